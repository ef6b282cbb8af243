/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of the control socket.
 */
#ifndef ORNICD_CONTROL_CLIENT_H
#define ORNICD_CONTROL_CLIENT_H

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
 * @owner:	of whom
 * @loop:	event loop
 * @fd:		socket
 * @events:	what the loop waits for
 * @rx:		bytes received
 * @rx_len:	how many
 * @line:	bytes of a complete line at the start of @rx, with its newline; 0: there is none
 * @tx:		answer under way, or NULL
 * @tx_len:	its bytes
 * @tx_at:	the next one to send
 * @close:	hang up when it is sent
 * @moved:	when it last sent or took something, ns
 * @link:	in the server's list
 * @ready:	in its list of those with a complete line
 */
struct control_client {
	struct client_owner *owner;
	struct loop *loop;
	int fd;
	uint32_t events;
	char rx[CONTROL_LINE + 1];
	size_t rx_len;
	size_t line;
	char *tx;
	size_t tx_len;
	size_t tx_at;
	bool close;
	uint64_t moved;
	TAILQ_ENTRY(control_client) link;
	TAILQ_ENTRY(control_client) ready;
};

TAILQ_HEAD(client_list, control_client);

/**
 * struct client_owner - what the clients belong to
 * @all:	clients, @n of them
 * @n:		number of @all
 * @ready:	those whose next line is complete, longest waiting first
 * @patience:	ns after which one that does not move is stuck
 */
struct client_owner {
	struct client_list all;
	unsigned int n;
	struct client_list ready;
	uint64_t patience;
};

/* client_new() - take over a connected socket. Return: 0 or a negative errno. */
int client_new(struct client_owner *owner, struct loop *loop, int fd);
/* client_free() - hang up */
void client_free(struct control_client *c);

/* client_serve() - answer the line that is complete; the client may be gone after that */
void client_serve(struct control_client *c, struct daemon *daemon);

/* client_is_stuck() - it is in the middle of something, and the owner's patience is over */
bool client_is_stuck(const struct control_client *c);

#endif /* ORNICD_CONTROL_CLIENT_H */
