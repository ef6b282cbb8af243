// SPDX-License-Identifier: GPL-2.0
/*
 * The control socket and its clients.
 *
 * The number of clients is bounded. If it is reached, a new client replaces one that is stuck,
 * or is rejected with an error.
 */
#include "control.h"

#include "client.h"
#include "request.h"
#include "../daemon.h"
#include "../log.h"
#include "../unix_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/** CONTROL_CLIENTS - most clients */
#define CONTROL_CLIENTS	32
/** CONTROL_PATIENCE - ns without progress after which a client may be replaced */
#define CONTROL_PATIENCE	10000000000ull
/** CONTROL_HOLD - ns between checks if a held answer may be sent; the log takes about as long */
#define CONTROL_HOLD	200000

/**
 * struct control - the control socket
 * @daemon:	the daemon
 * @addr:	address
 * @sock:	listening socket
 * @clients:	connected clients
 */
struct control {
	struct daemon *daemon;
	struct sockaddr_un addr;
	int sock;
	struct client_owner clients;
};

/*
 * Make room for a new client; disconnect a stuck one if needed.
 * Return: false if all places are taken and no client is stuck.
 */
static bool make_place(struct control *c)
{
	struct control_client *client;

	if (c->clients.n < CONTROL_CLIENTS)
		return true;
	TAILQ_FOREACH(client, &c->clients.all, link) {
		if (client_is_stuck(client)) {
			client_free(client);
			return true;
		}
	}
	return false;
}

static void turn_away(struct control *c, int fd)
{
	size_t len;
	char *text = control_rejection("too many clients; try again later", &len);

	/* The send buffer of a new connection is empty, so the line fits. */
	if (text && send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_from(&c->clients.log, LOG_DEBUG,
			 "cannot send the reason to a rejected client: %s", strerror(errno));
	free(text);
	close(fd);
}

static void control_accept(void *arg, uint32_t events)
{
	struct control *c = arg;
	int fd = unix_accept(c->sock, &c->clients.log);
	int err;

	(void)events;
	if (fd < 0)
		return;
	if (!make_place(c)) {
		log_from(&c->clients.log, LOG_WARN, "rejected a client: %d are connected already",
			 CONTROL_CLIENTS);
		turn_away(c, fd);
		return;
	}
	err = client_new(&c->clients, c->daemon->loop, fd);
	if (err) {
		log_from(&c->clients.log, LOG_ERR, "cannot serve a client: %s", strerror(-err));
		close(fd);
	}
}

int control_open(struct daemon *daemon, const struct config_control *cc, struct control **control)
{
	struct control *c = calloc(1, sizeof(*c));
	struct unix_access access = cc->access;
	int err;

	if (!c) {
		log_err("control socket: out of memory");
		return -ENOMEM;
	}
	c->daemon = daemon;
	TAILQ_INIT(&c->clients.all);
	TAILQ_INIT(&c->clients.ready);
	TAILQ_INIT(&c->clients.held);
	c->clients.log.name = "control";
	c->clients.patience = CONTROL_PATIENCE;
	err = unix_address(&c->addr, cc->path);
	if (err)
		goto free_control;
	c->sock = unix_bind(&c->addr, SOCK_STREAM, &access);
	if (c->sock < 0) {
		err = c->sock;
		goto free_control;
	}
	unix_no_descriptors(c->sock);
	err = loop_add(daemon->loop, c->sock, EPOLLIN, control_accept, c);
	if (err) {
		log_err("control socket: cannot wait for clients on %s: %s", cc->path,
			strerror(-err));
		goto close_socket;
	}
	log_from(&c->clients.log, LOG_INFO, "listening on %s", cc->path);
	*control = c;
	return 0;

close_socket:
	close(c->sock);
	unlink(c->addr.sun_path);
free_control:
	free(c);
	return err;
}

void control_close(struct control *c)
{
	struct control_client *client;

	if (!c)
		return;
	loop_del(c->daemon->loop, c->sock);
	unix_stop_listening(c->sock, &c->addr);
	unix_close_listener(c->sock);
	while ((client = TAILQ_FIRST(&c->clients.held)))
		client_release(client);
	while ((client = TAILQ_FIRST(&c->clients.all)))
		client_free(client);
	log_source_end(&c->clients.log);
	free(c);
}

bool control_work(struct control *c)
{
	struct control_client *client;

	while ((client = TAILQ_FIRST(&c->clients.held)) && client_may_release(client))
		client_release(client);
	client = TAILQ_FIRST(&c->clients.ready);
	if (client)
		client_serve(client, c->daemon);
	return !TAILQ_EMPTY(&c->clients.ready);
}

int64_t control_wait(const struct control *c)
{
	return TAILQ_EMPTY(&c->clients.held) ? -1 : CONTROL_HOLD;
}
