// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "stream": a UNIX stream socket with a length of four bytes before each frame, as
 * -netdev stream of QEMU 7.2 and later uses it. It listens for one peer at a time, or
 * connects and retries every second.
 */
#include "uplink_backend.h"

#include "../log.h"
#include "../packet/wire.h"
#include "../unix_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LENGTH_BYTES	4
#define RX_BYTES	(UPLINK_BATCH * (LENGTH_BYTES + UPLINK_FRAME_BYTES))

/**
 * struct stream - the socket and its buffers
 * @addr:	address
 * @wait_fd:	listening socket, or the timer of the next attempt to connect
 * @fd:		socket to the peer, -1 if there is none
 * @client:	connect to the peer instead of listening
 * @access:	who may connect, if it listens
 * @rx_len:	bytes in @rx
 * @tx_len:	bytes of @tx that are not sent yet; while not 0, frames are dropped
 * @tx_at:	offset of the first of these bytes
 * @length:	lengths of the frames being sent, in network byte order
 * @rx:		bytes received
 * @tx:		rest of a frame that was partly sent
 */
struct stream {
	struct sockaddr_un addr;
	int wait_fd;
	int fd;
	bool client;
	struct unix_access access;
	uint32_t rx_len;
	uint32_t tx_len;
	uint32_t tx_at;
	uint8_t length[UPLINK_BATCH][LENGTH_BYTES];
	uint8_t rx[RX_BYTES];
	uint8_t tx[LENGTH_BYTES + UPLINK_FRAME_BYTES];
};

static void stream_event(void *arg, uint32_t events);

static void set_timer(struct stream *s, bool on)
{
	const struct itimerspec every = { .it_interval.tv_sec = on, .it_value.tv_sec = on };

	timerfd_settime(s->wait_fd, 0, &every, NULL);
}

/*
 * Disconnect the peer; @why may be NULL. Received bytes that are left count as a malformed frame:
 * an illegal length, or a frame that is cut off. A client tries again to connect.
 */
static void stream_hang_up(struct uplink *u, const char *why)
{
	struct stream *s = uplink_private(u);

	log_from(uplink_log(u), LOG_INFO, "peer on %s disconnected%s%s", s->addr.sun_path,
		 why ? ": " : "", why ? why : "");
	loop_del(uplink_loop(u), s->fd);
	close(s->fd);
	s->fd = -1;
	if (s->rx_len)
		uplink_malformed(u, s->rx_len);
	s->rx_len = 0;
	s->tx_len = 0;
	if (s->client)
		set_timer(s, true);
}

/* Use @fd, the connection to a new peer; close it on failure. Return: 0 or a negative errno. */
static int stream_adopt(struct uplink *u, int fd)
{
	struct stream *s = uplink_private(u);
	int err = loop_add(uplink_loop(u), fd, EPOLLIN, stream_event, u);

	if (err) {
		close(fd);
		return err;
	}
	uplink_buffers(fd);
	s->fd = fd;
	log_from(uplink_log(u), LOG_INFO, "peer on %s connected", s->addr.sun_path);
	return 0;
}

/* Copy the rest of a frame of which the socket took only the first @taken bytes to @tx. */
static void keep_rest(struct stream *s, const struct uplink_frame *f, uint32_t taken)
{
	s->tx_at = 0;
	s->tx_len = 0;
	for (uint32_t i = 0; i < f->niov; i++) {
		uint32_t len = f->iov[i].iov_len;

		if (taken >= len) {
			taken -= len;
			continue;
		}
		memcpy(s->tx + s->tx_len, (uint8_t *)f->iov[i].iov_base + taken, len - taken);
		s->tx_len += len - taken;
		taken = 0;
	}
}

/* Send frames. Their pieces are adjacent in one array, so one call sends all frames. */
static uint32_t stream_send(struct uplink *u, struct uplink_frame *f, uint32_t n)
{
	struct stream *s = uplink_private(u);
	struct msghdr msg = { .msg_iov = f[0].iov };
	ssize_t done;
	uint32_t i;

	if (s->fd < 0 || s->tx_len)
		return 0;
	for (i = 0; i < n && f[i].len <= UPLINK_FRAME_BYTES; i++) {
		be32_put(s->length[i], f[i].len);
		f[i].iov[0] = (struct iovec) { s->length[i], LENGTH_BYTES };
		msg.msg_iovlen += f[i].niov;
	}
	n = i;
	if (!n)
		return 0;
	done = sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done < 0)
		return 0;
	for (i = 0; i < n && (uint32_t)done >= LENGTH_BYTES + f[i].len; i++)
		done -= LENGTH_BYTES + f[i].len;
	if (i < n && done) {
		keep_rest(s, &f[i++], done);
		loop_mod(uplink_loop(u), s->fd, EPOLLIN | EPOLLOUT);
	}
	return i;
}

/*
 * Send the rest of a frame. Discard it if the peer reads no more: EPOLLOUT stays set then, so the
 * loop would spin. The peer may still send, so stream_receive() decides when to disconnect it.
 */
static void stream_flush(struct uplink *u)
{
	struct stream *s = uplink_private(u);
	ssize_t n = send(s->fd, s->tx + s->tx_at, s->tx_len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		n = s->tx_len;
	if (n < 0)
		return;
	s->tx_at += n;
	s->tx_len -= n;
	if (!s->tx_len)
		loop_mod(uplink_loop(u), s->fd, EPOLLIN);
}

/*
 * Pass on at most a batch of complete frames, from byte *@at on, which is advanced. Return: number
 * of frames; -1 if a length is illegal.
 */
static int stream_batch(struct uplink *u, uint32_t *at)
{
	struct stream *s = uplink_private(u);
	int n = 0;

	while (n < UPLINK_BATCH && s->rx_len - *at >= LENGTH_BYTES) {
		uint32_t len = be32_get(s->rx + *at);

		if (!len || len > UPLINK_FRAME_BYTES)
			return -1;
		if (len > s->rx_len - *at - LENGTH_BYTES)
			break;
		uplink_input(u, s->rx + *at + LENGTH_BYTES, len);
		*at += LENGTH_BYTES + len;
		n++;
	}
	return n;
}

/* Return: false if the peer violates the protocol. */
static bool stream_frames(struct uplink *u)
{
	struct stream *s = uplink_private(u);
	uint32_t at = 0;
	int n;

	do {
		n = stream_batch(u, &at);
		uplink_input_done(u);
	} while (n == UPLINK_BATCH);
	s->rx_len -= at;
	memmove(s->rx, s->rx + at, s->rx_len);
	return n >= 0;
}

static void stream_receive(struct uplink *u)
{
	struct stream *s = uplink_private(u);
	ssize_t n = recv(s->fd, s->rx + s->rx_len, RX_BYTES - s->rx_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stream_hang_up(u, n ? strerror(errno) : NULL);
		return;
	}
	s->rx_len += n;
	if (!stream_frames(u))
		stream_hang_up(u, "it sent an illegal frame length");
}

static void stream_event(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct stream *s = uplink_private(u);

	if (events & EPOLLOUT)
		stream_flush(u);
	if (s->fd >= 0 && events & ~EPOLLOUT)
		stream_receive(u);
}

static void stream_accept(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct stream *s = uplink_private(u);
	int fd = unix_accept(s->wait_fd, uplink_log(u));

	(void)events;
	if (fd < 0)
		return;
	if (s->fd >= 0) {
		log_from(uplink_log(u), LOG_WARN,
			 "%s: rejected a second peer; disconnect the first", s->addr.sun_path);
		close(fd);
		return;
	}
	stream_adopt(u, fd);
}

static void stream_connect(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct stream *s = uplink_private(u);
	uint64_t times;
	int fd;

	(void)events;
	if (read(s->wait_fd, &times, sizeof(times)) < 0 && errno != EAGAIN)
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	unix_no_descriptors(fd);
	if (connect(fd, (struct sockaddr *)&s->addr, sizeof(s->addr)))
		close(fd);
	else if (!stream_adopt(u, fd))
		set_timer(s, false);
}

static int stream_wait(struct uplink *u)
{
	struct stream *s = uplink_private(u);
	int err;

	if (s->client)
		s->wait_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	else
		s->wait_fd = unix_bind(&s->addr, SOCK_STREAM, &s->access);
	if (s->wait_fd < 0 && !s->client)
		return s->wait_fd;
	if (s->wait_fd < 0) {
		err = -errno;
		log_from(uplink_log(u), LOG_ERR, "cannot make a timer: %s", strerror(-err));
		return err;
	}
	if (!s->client)
		unix_no_descriptors(s->wait_fd);
	err = loop_add(uplink_loop(u), s->wait_fd, EPOLLIN,
		       s->client ? stream_connect : stream_accept, u);
	if (err) {
		log_from(uplink_log(u), LOG_ERR, "cannot wait for %s: %s", s->addr.sun_path,
			 strerror(-err));
		close(s->wait_fd);
		if (!s->client)
			unlink(s->addr.sun_path);
		return err;
	}
	if (s->client) {
		set_timer(s, true);
		stream_connect(u, 0);
	}
	return 0;
}

static int stream_open(struct uplink *u, const struct uplink_spec *spec)
{
	struct stream *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->client = spec->client;
	s->access = spec->access;
	uplink_set_private(u, s);
	err = unix_address(&s->addr, spec->path);
	if (!err)
		err = stream_wait(u);
	if (err)
		free(s);
	return err;
}

static void stream_close(struct uplink *u)
{
	struct stream *s = uplink_private(u);

	if (s->fd >= 0) {
		loop_del(uplink_loop(u), s->fd);
		close(s->fd);
	}
	loop_del(uplink_loop(u), s->wait_fd);
	close(s->wait_fd);
	if (!s->client)
		unlink(s->addr.sun_path);
	free(s);
}

static bool stream_is_up(struct uplink *u)
{
	return ((struct stream *)uplink_private(u))->fd >= 0;
}

const struct uplink_backend uplink_stream = {
	.kind = "stream",
	.open = stream_open,
	.close = stream_close,
	.send = stream_send,
	.is_up = stream_is_up,
};
