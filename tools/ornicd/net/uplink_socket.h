/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What backends with a message socket have in common: a frame is a message.
 */
#ifndef ORNICD_NET_UPLINK_SOCKET_H
#define ORNICD_NET_UPLINK_SOCKET_H

#include "uplink_backend.h"

#include <sys/socket.h>

/**
 * struct uplink_socket_param - a socket to carry frames
 * @fd:		socket, non-blocking; the uplink's from now on
 * @to:		where frames go, @to_len bytes; none if the socket is connected
 * @to_len:	bytes of @to
 * @file:	socket's name in the file system, removed in the end; NULL if it has none
 */
struct uplink_socket_param {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
	const char *file;
};

/* uplink_socket_open() - Return: 0 or a negative errno; then @param->fd is closed. */
int uplink_socket_open(struct uplink *u, const struct uplink_socket_param *param);
void uplink_socket_close(struct uplink *u);
/* uplink_sendmmsg() - Return: how many of @n messages went, the first ones; if not all, see errno. */
uint32_t uplink_sendmmsg(int fd, struct mmsghdr *tx, uint32_t n);
uint32_t uplink_socket_send(struct uplink *u, struct uplink_frame *f, uint32_t n);

#endif /* ORNICD_NET_UPLINK_SOCKET_H */
