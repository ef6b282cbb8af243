/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The message stream of one client: it receives bytes and descriptors, passes whole messages to the
 * handler and sends the replies. It knows headers, not commands.
 */
#ifndef ORNICD_VFU_MESSAGE_H
#define ORNICD_VFU_MESSAGE_H

#include "proto.h"

#include "../loop.h"

#include <stdbool.h>

/**
 * struct vfu_msg - one request and the reply to it
 * @hdr:	header of the request
 * @payload:	bytes behind the header, unaligned, @len of them
 * @len:	bytes of @payload
 * @fd:		descriptors sent with it; a handler that keeps one sets it to -1, the others are
 *		closed after the request
 * @nfd:	number of descriptors in @fd
 * @out:	payload of the reply: room for VFU_MAX_PAYLOAD bytes, unaligned; sent only if the
 *		handler returns 0
 * @out_len:	bytes of @out to send
 * @work:	parts of the request that the handler may carry out now, >= 1; the handler of a request
 *		with many parts subtracts those that it did
 * @done:	parts carried out so far; belongs to the handler, 0 at its first call
 * @result:	belongs to the handler, too
 */
struct vfu_msg {
	struct vfu_hdr hdr;
	const uint8_t *payload;
	size_t len;
	int fd[VFU_MAX_FDS];
	unsigned int nfd;
	uint8_t *out;
	size_t out_len;
	unsigned int work;
	uint64_t done;
	int result;
};

/**
 * VFU_CLOSE - result of a handler: reply with the positive errno @err, then close the connection.
 * Its value is below that of every negative errno, so that one int holds either.
 */
#define VFU_CLOSE(err)	(-(err) - 0x10000)

/**
 * VFU_WAIT - result of a handler: vfu_conn_reply() follows, and later messages wait until then. The
 * message is not valid any more, but its descriptors are.
 */
#define VFU_WAIT	1

/**
 * VFU_MORE - result of a handler: parts of the request are left. It is called again with the message,
 * its @done and @result, in the next iteration of the loop. Descriptors are not kept until then.
 */
#define VFU_MORE	2

/**
 * VFU_SHARE - messages of a connection that are handled in one iteration of the loop
 *
 * VFU_SHARE_BYTES of a request and its reply count as one more message.
 */
#define VFU_SHARE	32
#define VFU_SHARE_BYTES	2048

/**
 * struct vfu_handler - receiver of the messages
 * @request:	handle a request; must not free the connection. Return: 0, a negative errno for an
 *		error reply, VFU_CLOSE(), VFU_WAIT or VFU_MORE.
 * @begin:	requests are going to be handled, until @end. NULL if not wanted.
 * @held:	return true while requests have to wait; it is asked again in the next iteration of
 *		the loop. NULL: never.
 * @end:	some requests were handled. NULL if not wanted.
 * @closed:	the connection has ended, by either side, and is freed; called once, before @end
 * @arg:	argument of all
 * @mapper:	closes descriptors and the socket; NULL: they are closed at once
 */
struct vfu_handler {
	int (*request)(void *arg, struct vfu_msg *msg);
	void (*begin)(void *arg);
	bool (*held)(void *arg);
	void (*end)(void *arg);
	void (*closed)(void *arg);
	void *arg;
	struct mapper *mapper;
};

struct log_source;
struct mapper;
struct vfu_conn;

/**
 * vfu_conn_new() - take over a connected socket
 * @loop:	event loop
 * @fd:		stream socket; belongs to the connection on success, to the caller on failure
 * @log:	source of log lines
 * @handler:	receiver of the messages, copied
 *
 * Return: the connection, or NULL with errno set.
 */
struct vfu_conn *vfu_conn_new(struct loop *loop, int fd, struct log_source *log,
			      const struct vfu_handler *handler);

/**
 * vfu_conn_reply() - end the request for which the handler returned VFU_WAIT
 * @c:		connection; it may be gone afterwards, because later messages are handled
 * @err:	0 or a negative errno for an error reply
 */
void vfu_conn_reply(struct vfu_conn *c, int err);

/**
 * vfu_conn_resume() - read again after descriptors were closed
 * @c:	connection
 */
void vfu_conn_resume(struct vfu_conn *c);

/**
 * vfu_conn_free() - close a connection without calling handler.closed()
 * @c:	connection; NULL is ignored
 */
void vfu_conn_free(struct vfu_conn *c);

/**
 * vfu_conn_hung_up() - check whether the client has closed its end
 * @c:	connection
 *
 * handler.closed() follows when the bytes that the client sent before are read.
 *
 * Return: true if it has.
 */
bool vfu_conn_hung_up(const struct vfu_conn *c);

#endif /* ORNICD_VFU_MESSAGE_H */
