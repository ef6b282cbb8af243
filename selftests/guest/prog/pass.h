/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file descriptor for another process, and some bytes that go with it.
 */
#ifndef GUEST_PASS_H
#define GUEST_PASS_H

#include <stddef.h>

/* @s: connected socket of the family UNIX. Gives up if it cannot be sent. */
void pass_fd(int s, int fd, const void *with, size_t len);
/* The descriptor, -1 if none came. */
int take_fd(int s, void *with, size_t len);

#endif
