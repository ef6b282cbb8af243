/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads what the code under test prints.
 */
#ifndef UNIT_LIB_PRINTED_H
#define UNIT_LIB_PRINTED_H

#include <stdio.h>

/**
 * struct printed - output to a descriptor between print_begin() and print_end()
 * @out:	file that receives it
 * @fd:		the descriptor, STDOUT_FILENO or STDERR_FILENO
 * @kept:	copy of the descriptor that it replaces
 */
struct printed {
	FILE *out;
	int fd;
	int kept;
};

/* print_begin() - divert the output to @fd */
void print_begin(struct printed *p, int fd);

/* print_end() - restore the descriptor, and store the output in @text as a string, cut to @size */
void print_end(struct printed *p, char *text, size_t size);

#endif /* UNIT_LIB_PRINTED_H */
