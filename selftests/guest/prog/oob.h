/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The TCP connection over which the two ends of a test synchronise: they swap addresses
 * and verdicts, and wait for each other.
 */
#ifndef GUEST_OOB_H
#define GUEST_OOB_H

#include <stdbool.h>
#include <stddef.h>

struct oob {
	int fd;
	bool server;
};

int oob_listen(const char *port);
/* Return false if no client came. */
bool oob_accept(struct oob *o, int listener);
void oob_connect(struct oob *o, const char *host, const char *port);
void oob_close(struct oob *o);

void oob_send(struct oob *o, const void *data, size_t len);
/* Return false if the other end closed the connection instead. */
bool oob_recv(struct oob *o, void *data, size_t len);
/* Both ends send len bytes and receive the other's. */
void oob_swap(struct oob *o, const void *mine, void *theirs, size_t len);
void oob_barrier(struct oob *o);

#endif
