/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ornicctl at the daemon of two stations. Include it after stations.h.
 */
#ifndef SELFTESTS_LIB_CTL_H
#define SELFTESTS_LIB_CTL_H

#include "stations.h"

#include <jansson.h>
#include <stdio.h>

/* ctl_start() - start ornicctl with a command line in the shell's syntax. Return: its output. */
FILE *ctl_start(struct stations *t, const char *words);
/* ctl_finish() - wait for its end, which must be a success. Return: its output as JSON. */
json_t *ctl_finish(FILE *p);
/* ctl() - run ornicctl to its end. Return: its output as JSON, for json_decref(). */
json_t *ctl(struct stations *t, const char *words);
/* ctl_run() - the same without a result; a format for printf() */
void ctl_run(struct stations *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ctl_number() - return a member that must be an integer */
json_int_t ctl_number(const json_t *o, const char *key);

#endif /* SELFTESTS_LIB_CTL_H */
