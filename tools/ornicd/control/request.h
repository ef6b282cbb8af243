/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A line in, a line out.
 */
#ifndef ORNICD_CONTROL_REQUEST_H
#define ORNICD_CONTROL_REQUEST_H

#include <stddef.h>

struct daemon;

/** CONTROL_DEPTH - how deep arrays and objects of a request may be nested */
#define CONTROL_DEPTH	16

/*
 * control_request() - do what a line asks for
 * @line: @len bytes of whatever a client sent
 * Return: the answer with its newline, @answer_len bytes, for free(); NULL if there is none to
 * give, or no memory for it.
 */
char *control_request(struct daemon *daemon, const char *line, size_t len, size_t *answer_len);

/* control_refusal() - an answer to what was not even looked at; as control_request() returns it */
char *control_refusal(const char *message, size_t *answer_len);

#endif /* ORNICD_CONTROL_REQUEST_H */
