/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that backends with a message socket share: each message is one frame.
 */
#ifndef ORNICD_NET_UPLINK_SOCKET_H
#define ORNICD_NET_UPLINK_SOCKET_H

#include "uplink_backend.h"

#include <sys/socket.h>

/**
 * struct uplink_socket_param - a socket to carry frames
 * @fd:		non-blocking socket
 * @to:		destination of frames, @to_len bytes
 * @to_len:	bytes of @to; 0 if the socket is connected
 * @file:	name of the socket in the file system, removed on close; NULL if it has none
 */
struct uplink_socket_param {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
	const char *file;
};

/*
 * uplink_socket_open() - take over @param->fd, which is closed on failure
 * Return: 0, or a negative errno after an error line.
 */
int uplink_socket_open(struct uplink *u, const struct uplink_socket_param *param);
void uplink_socket_close(struct uplink *u);
/*
 * uplink_sendmmsg() - send @n messages in order until one fails, without blocking
 * Return: number of messages sent; if not all, errno has the reason.
 */
uint32_t uplink_sendmmsg(int fd, struct mmsghdr *tx, uint32_t n);
/* uplink_socket_send() - see @send of struct uplink_backend */
uint32_t uplink_socket_send(struct uplink *u, struct uplink_frame *f, uint32_t n);
/* uplink_socket_lost() - see @lost of struct uplink_backend */
uint32_t uplink_socket_lost(struct uplink *u);

#endif /* ORNICD_NET_UPLINK_SOCKET_H */
