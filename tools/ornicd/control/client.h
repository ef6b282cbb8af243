/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of the control socket.
 */
#ifndef ORNICD_CONTROL_CLIENT_H
#define ORNICD_CONTROL_CLIENT_H

#include "../log.h"
#include "../loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct daemon;

/** CONTROL_LINE - most bytes of a request, without its newline */
#define CONTROL_LINE	65536

/**
 * struct control_client - a client
 * @owner:	list of clients that it is in
 * @log:	source of the lines that its requests cause
 * @loop:	event loop
 * @fd:		socket
 * @events:	EPOLL* that the loop waits for
 * @rx:		received bytes
 * @rx_len:	number of received bytes
 * @line:	bytes of a complete line at the start of @rx, with its newline; 0: there is none
 * @tx:		answer that is being sent, or NULL
 * @tx_len:	bytes of the answer
 * @tx_at:	bytes of the answer that are sent
 * @held:	the answer waits for the log: it is in @held of the owner
 * @close:	close the connection when the answer is sent
 * @moved:	last time that bytes were received or sent, ns of CLOCK_MONOTONIC_COARSE
 * @link:	in @all of the owner
 * @ready:	in @ready of the owner, if @line; in its @held, if @held
 */
struct control_client {
	struct client_owner *owner;
	struct log_source log;
	struct loop *loop;
	int fd;
	uint32_t events;
	char rx[CONTROL_LINE + 1];
	size_t rx_len;
	size_t line;
	char *tx;
	size_t tx_len;
	size_t tx_at;
	bool held;
	bool close;
	uint64_t moved;
	TAILQ_ENTRY(control_client) link;
	TAILQ_ENTRY(control_client) ready;
};

TAILQ_HEAD(client_list, control_client);

/**
 * struct client_owner - the clients of a control socket
 * @all:	all clients
 * @n:		number of clients
 * @ready:	clients with a complete line, longest waiting first
 * @held:	clients whose answer waits for the log
 * @log:	source of the socket's lines; parent of the clients' sources
 * @patience:	ns without progress after which a client is stuck
 */
struct client_owner {
	struct client_list all;
	unsigned int n;
	struct client_list ready;
	struct client_list held;
	struct log_source log;
	uint64_t patience;
};

/* client_new() - create a client; it owns @fd unless this fails. Return: 0 or a negative errno. */
int client_new(struct client_owner *owner, struct loop *loop, int fd);
/* client_free() - close the connection and free the client */
void client_free(struct control_client *c);

/*
 * client_serve() - execute the complete line of @c and start to send the answer, or hold it until
 * the lines that the request caused are in the log; may free @c
 */
void client_serve(struct control_client *c, struct daemon *daemon);

/* client_release() - send the held answer of @c; may free @c */
void client_release(struct control_client *c);
/* client_may_release() - return true if the log has the lines of @c, or its reader is late */
bool client_may_release(const struct control_client *c);

/*
 * client_is_stuck() - return true if the client has sent half a line or does not read its answer,
 * and made no progress for the owner's @patience
 */
bool client_is_stuck(const struct control_client *c);

#endif /* ORNICD_CONTROL_CLIENT_H */
