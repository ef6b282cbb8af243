// SPDX-License-Identifier: GPL-2.0
/*
 * Message sockets: send and receive batches of frames by sendmmsg() and recvmmsg().
 */
#include "uplink_socket.h"

#include "../log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/**
 * struct uplink_socket - a backend's socket
 * @param:	parameters; @param.file is a copy
 * @tx:		messages to send
 * @rx:		messages received
 * @rx_iov:	the only piece of each message in @rx
 * @rx_buf:	frames; one byte longer than a frame, to detect frames that are too long
 */
struct uplink_socket {
	struct uplink_socket_param param;
	struct mmsghdr tx[UPLINK_BATCH];
	struct mmsghdr rx[UPLINK_BATCH];
	struct iovec rx_iov[UPLINK_BATCH];
	uint8_t rx_buf[UPLINK_BATCH][UPLINK_FRAME_BYTES + 1];
};

uint32_t uplink_sendmmsg(int fd, struct mmsghdr *tx, uint32_t n)
{
	uint32_t sent = 0;

	while (sent < n) {
		int ret = sendmmsg(fd, tx + sent, n - sent, MSG_DONTWAIT);

		if (ret > 0)
			sent += ret;
		else if (errno != EINTR)
			break;
	}
	return sent;
}

uint32_t uplink_socket_send(struct uplink *u, struct uplink_frame *f, uint32_t n)
{
	struct uplink_socket *s = uplink_private(u);

	for (uint32_t i = 0; i < n; i++)
		s->tx[i].msg_hdr = (struct msghdr) {
			.msg_name = s->param.to_len ? &s->param.to : NULL,
			.msg_namelen = s->param.to_len,
			.msg_iov = f[i].iov + 1,
			.msg_iovlen = f[i].niov - 1,
		};
	return uplink_sendmmsg(s->param.fd, s->tx, n);
}

static void prepare_rx(struct uplink_socket *s)
{
	for (uint32_t i = 0; i < UPLINK_BATCH; i++) {
		s->rx_iov[i] = (struct iovec) { s->rx_buf[i], sizeof(s->rx_buf[i]) };
		s->rx[i].msg_hdr = (struct msghdr) { .msg_iov = &s->rx_iov[i], .msg_iovlen = 1 };
	}
}

/*
 * Ignore errors of the peer, for example that it does not exist yet: a network just loses frames.
 */
static void socket_event(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct uplink_socket *s = uplink_private(u);
	int n;

	(void)events;
	prepare_rx(s);
	n = recvmmsg(s->param.fd, s->rx, UPLINK_BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		uplink_input(u, s->rx_buf[i], s->rx[i].msg_len);
	if (n > 0)
		uplink_input_done(u);
}

uint32_t uplink_socket_lost(struct uplink *u)
{
	return uplink_drops(((struct uplink_socket *)uplink_private(u))->param.fd);
}

int uplink_socket_open(struct uplink *u, const struct uplink_socket_param *param)
{
	struct uplink_socket *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		goto close_fd;
	s->param = *param;
	s->param.file = param->file ? strdup(param->file) : NULL;
	if (param->file && !s->param.file)
		goto free_socket;
	uplink_set_private(u, s);
	err = loop_add(uplink_loop(u), s->param.fd, EPOLLIN, socket_event, u);
	if (!err)
		return 0;
	free((char *)s->param.file);
free_socket:
	free(s);
close_fd:
	log_from(uplink_log(u), LOG_ERR, "cannot wait for frames of its socket: %s",
		 strerror(-err));
	close(param->fd);
	if (param->file)
		unlink(param->file);
	return err;
}

void uplink_socket_close(struct uplink *u)
{
	struct uplink_socket *s = uplink_private(u);

	loop_del(uplink_loop(u), s->param.fd);
	close(s->param.fd);
	if (s->param.file)
		unlink(s->param.file);
	free((char *)s->param.file);
	free(s);
}
