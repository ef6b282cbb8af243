/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Execute one request line and make the answer line.
 */
#ifndef ORNICD_CONTROL_REQUEST_H
#define ORNICD_CONTROL_REQUEST_H

#include <stddef.h>

struct daemon;

/** CONTROL_DEPTH - most levels of nested arrays and objects in a request */
#define CONTROL_DEPTH	16

/*
 * control_request() - execute a request, between iterations of the engine
 * @line: @len bytes from a client, not trusted, without the newline
 * Return: the answer with its newline, @answer_len bytes, to be freed; NULL for a notification or
 * without memory.
 */
char *control_request(struct daemon *daemon, const char *line, size_t len, size_t *answer_len);

/* control_rejection() - return an error answer to a request that was not read, as control_request() */
char *control_rejection(const char *message, size_t *answer_len);

#endif /* ORNICD_CONTROL_REQUEST_H */
