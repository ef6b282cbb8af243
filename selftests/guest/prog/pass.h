/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pass a file descriptor to another process, with some bytes.
 */
#ifndef GUEST_PASS_H
#define GUEST_PASS_H

#include <stddef.h>

/* @s: connected socket of the family UNIX. Exits if it cannot be sent. */
void pass_fd(int s, int fd, const void *with, size_t len);
/* Receive the descriptor, -1 if none came. */
int take_fd(int s, void *with, size_t len);

#endif
