// SPDX-License-Identifier: GPL-2.0
/*
 * The connection to the daemon: JSON-RPC 2.0, one line per request and answer
 * (Documentation/control.rst).
 */
#include "ornicctl.h"
#include "screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/** NOT_FOUND - error code of the daemon: the named object does not exist */
#define NOT_FOUND	1

/** ANSWER_MAX - limit for answers, larger than CONTROL_ANSWER of the daemon */
#define ANSWER_MAX	(4u << 20)

/* Explain an error of connect(). */
static const char *why(int err)
{
	switch (err) {
	case ENOENT:
		return "no such socket; start ornicd with --control, or name its socket";
	case ECONNREFUSED:
		return "no process listens there: ornicd has ended; start it again";
	case EACCES:
		return "permission denied; see --control-group in ornicd(8)";
	default:
		return strerror(err);
	}
}

/* Connect, unless connected. Return: 0, or -1 after an error line. */
static int dial(struct ctl *ctl)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (ctl->fd >= 0)
		return 0;
	if (strlen(ctl->path) >= sizeof(addr.sun_path)) {
		ctl_err("%s: longer than %zu characters", ctl->path, sizeof(addr.sun_path) - 1);
		return -1;
	}
	strcpy(addr.sun_path, ctl->path);
	ctl->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ctl->fd >= 0 && !connect(ctl->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return 0;
	ctl_err("%s: %s", ctl->path, why(errno));
	ctl_hang_up(ctl);
	return -1;
}

void ctl_hang_up(struct ctl *ctl)
{
	if (ctl->fd >= 0)
		close(ctl->fd);
	ctl->fd = -1;
	free(ctl->rx);
	ctl->rx = NULL;
	ctl->rx_len = 0;
	ctl->rx_size = 0;
}

/* Send all bytes. Return: 0, or -1 with errno. */
static int send_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			text += n;
			len -= n;
		}
	}
	return 0;
}

/* Receive bytes, interruptible by screen_stopped(). Return: bytes, 0 at the end, -1 with errno. */
static ssize_t receive(struct ctl *ctl)
{
	ssize_t n;

	if (ctl->rx_size - ctl->rx_len < 4096) {
		size_t size = ctl->rx_size ? 2 * ctl->rx_size : 65536;
		char *rx = size <= ANSWER_MAX ? realloc(ctl->rx, size) : NULL;

		if (!rx) {
			errno = EMSGSIZE;
			return -1;
		}
		ctl->rx = rx;
		ctl->rx_size = size;
	}
	if (!screen_wait(ctl->fd, -1)) {
		errno = EINTR;
		return -1;
	}
	n = recv(ctl->fd, ctl->rx + ctl->rx_len, ctl->rx_size - ctl->rx_len, 0);
	if (n > 0)
		ctl->rx_len += n;
	return n;
}

/* Receive the next line. Return: the line, or NULL after an error line unless screen_stopped(). */
static json_t *receive_line(struct ctl *ctl)
{
	size_t from = 0;
	json_error_t e;
	json_t *line;
	char *end;

	while (!(end = ctl->rx_len ? memchr(ctl->rx + from, '\n', ctl->rx_len - from) : NULL)) {
		ssize_t n;

		from = ctl->rx_len;
		n = receive(ctl);
		if (n <= 0) {
			if (!screen_stopped())
				ctl_err("%s: %s", ctl->path, n ? strerror(errno) :
					"ornicd closed the connection");
			return NULL;
		}
	}
	line = json_loadb(ctl->rx, end - ctl->rx, 0, &e);
	if (!line)
		ctl_err("%s: the answer is not JSON: %s", ctl->path, e.text);
	ctl->rx_len -= end + 1 - ctl->rx;
	memmove(ctl->rx, end + 1, ctl->rx_len);
	return line;
}

/* Make the request line without a newline. Consumes @params, which may be NULL. */
static char *request_text(struct ctl *ctl, const char *method, json_t *params)
{
	json_t *line = json_pack("{s:s, s:i, s:s, s:o*}", "jsonrpc", "2.0", "id", ++ctl->serial,
				 "method", method, "params", params);
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;

	json_decref(line);
	if (!text)
		ctl_err("out of memory for the request");
	return text;
}

static int request(struct ctl *ctl, const char *method, json_t *params)
{
	char *text = request_text(ctl, method, params);
	int err = -1;

	if (!text || dial(ctl))
		goto out;
	err = send_all(ctl->fd, text, strlen(text));
	if (!err)
		err = send_all(ctl->fd, "\n", 1);
	/* A daemon that rejects a client sends the reason before it closes: read that. */
	if (err && errno == EPIPE)
		err = 0;
	if (err)
		ctl_err("%s: %s", ctl->path, strerror(errno));
out:
	free(text);
	return err;
}

json_t *ctl_call(struct ctl *ctl, const char *method, const char *fmt, ...)
{
	json_t *params = NULL, *answer, *result, *error;
	json_error_t e;
	va_list args;

	ctl->gone = false;
	if (fmt) {
		va_start(args, fmt);
		params = json_vpack_ex(&e, 0, fmt, args);
		va_end(args);
		if (!params) {
			ctl_err("%s", strstr(e.text, "UTF-8") ?
				"an argument is not UTF-8 text" : e.text);
			return NULL;
		}
	}
	if (request(ctl, method, params))
		return NULL;
	answer = receive_line(ctl);
	if (!answer)
		return NULL;
	result = json_incref(json_object_get(answer, "result"));
	error = json_object_get(answer, "error");
	ctl->gone = !result && ctl->all && ctl_int(error, "code") == NOT_FOUND;
	if (!result && !ctl->gone)
		ctl_err("%s", ctl_text(error, "message"));
	json_decref(answer);
	return result;
}
