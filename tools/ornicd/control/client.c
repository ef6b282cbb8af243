// SPDX-License-Identifier: GPL-2.0
/*
 * One client of the control socket. It is in one of four states: the next line is incomplete,
 * and the loop waits for more bytes; a line is complete and waits for the end of the engine's
 * iteration; the answer waits until the log has the lines that the request caused; the answer is
 * being sent, and nothing else is read before the client has taken it.
 * A client that does not read therefore delays only itself and needs no memory beyond one
 * answer.
 */
#include "client.h"

#include "request.h"

#include "../json_memory.h"
#include "../log_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void client_event(void *arg, uint32_t events);

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int client_new(struct client_owner *owner, struct loop *loop, int fd)
{
	struct control_client *c = malloc(sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	*c = (struct control_client) {
		.owner = owner,
		.log = { .name = owner->log.name, .parent = &owner->log },
		.loop = loop,
		.fd = fd,
		.events = EPOLLIN,
		.moved = now(),
	};
	err = loop_add(loop, fd, EPOLLIN, client_event, c);
	if (err) {
		free(c);
		return err;
	}
	TAILQ_INSERT_TAIL(&owner->all, c, link);
	owner->n++;
	return 0;
}

void client_free(struct control_client *c)
{
	loop_del(c->loop, c->fd);
	close(c->fd);
	if (c->line)
		TAILQ_REMOVE(&c->owner->ready, c, ready);
	if (c->held)
		TAILQ_REMOVE(&c->owner->held, c, ready);
	log_source_end(&c->log);
	TAILQ_REMOVE(&c->owner->all, c, link);
	c->owner->n--;
	free(c->tx);
	free(c);
}

bool client_is_stuck(const struct control_client *c)
{
	bool waits = (c->tx && !c->held) || (c->rx_len && !c->line);

	return waits && now() - c->moved > c->owner->patience;
}

static void client_wait(struct control_client *c, uint32_t events)
{
	if (events != c->events)
		loop_mod(c->loop, c->fd, events);
	c->events = events;
}

static void client_answer(struct control_client *c, char *text, size_t len);

/* Look for the end of the line in the bytes from @from on, and enter the next state. */
static void client_look(struct control_client *c, size_t from)
{
	const char *end = memchr(c->rx + from, '\n', c->rx_len - from);
	char *text;
	size_t len;

	if (end) {
		c->line = end + 1 - c->rx;
		TAILQ_INSERT_TAIL(&c->owner->ready, c, ready);
		client_wait(c, 0);
	} else if (c->rx_len == sizeof(c->rx)) {
		/* Close the connection, because the beginning of the next request is unknown. */
		c->close = true;
		text = control_rejection("the line is too long", &len);
		client_answer(c, text, len);
	} else {
		client_wait(c, EPOLLIN);
	}
}

/* Continue after an answer was sent, or there was none. May free @c. */
static void client_next(struct control_client *c)
{
	free(c->tx);
	c->tx = NULL;
	if (c->close)
		client_free(c);
	else
		client_look(c, 0);
}

/*
 * Send as many bytes as the socket takes. If the client has closed its end, discard the answer and
 * continue: the lines that it sent are executed. May free @c.
 */
static void client_send(struct control_client *c)
{
	ssize_t n = send(c->fd, c->tx + c->tx_at, c->tx_len - c->tx_at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
		client_next(c);
		return;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_free(c);
		return;
	}
	if (n > 0) {
		c->tx_at += n;
		c->moved = now();
	}
	if (c->tx_at < c->tx_len)
		client_wait(c, EPOLLOUT);
	else
		client_next(c);
}

/* Send @text, which may be NULL, then continue with the bytes behind the line. May free @c. */
static void client_answer(struct control_client *c, char *text, size_t len)
{
	c->tx = text;
	c->tx_at = 0;
	c->tx_len = len;
	if (text)
		client_send(c);
	else
		client_next(c);
}

/* Send @text, but not before the lines that led to it are in the log. May free @c. */
static void client_reply(struct control_client *c, char *text, size_t len)
{
	if (!text || log_writer_settled()) {
		client_answer(c, text, len);
		return;
	}
	c->tx = text;
	c->tx_at = 0;
	c->tx_len = len;
	c->held = true;
	TAILQ_INSERT_TAIL(&c->owner->held, c, ready);
	client_wait(c, 0);
}

void client_release(struct control_client *c)
{
	TAILQ_REMOVE(&c->owner->held, c, ready);
	c->held = false;
	client_send(c);
}

bool client_may_release(const struct control_client *c)
{
	return log_writer_settled() || now() - c->moved > LOG_WRITER_PATIENCE_NS;
}

void client_serve(struct control_client *c, struct daemon *daemon)
{
	size_t line = c->line, len = 0;
	char *text = NULL;

	TAILQ_REMOVE(&c->owner->ready, c, ready);
	c->line = 0;
	c->moved = now();
	if (line > 1) {
		log_charge(&c->log);
		text = control_request(daemon, c->rx, line - 1, &len);
		log_charge(NULL);
		/* the order may have been executed: no answer is better than a wrong one */
		if (!text && json_memory_short())
			c->close = true;
	}
	c->rx_len -= line;
	memmove(c->rx, c->rx + line, c->rx_len);
	client_reply(c, text, len);
}

static void client_receive(struct control_client *c)
{
	size_t from = c->rx_len;
	ssize_t n = recv(c->fd, c->rx + from, sizeof(c->rx) - from, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_free(c);
		return;
	}
	c->rx_len += n;
	c->moved = now();
	client_look(c, from);
}

/*
 * Handle an event of the socket. Ignore it while a line or its answer waits: a client may send
 * requests and close the connection, and these are executed first.
 */
static void client_event(void *arg, uint32_t events)
{
	struct control_client *c = arg;

	(void)events;
	if (c->line || c->held)
		return;
	if (c->tx)
		client_send(c);
	else
		client_receive(c);
}
