/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Output of a test program: TAP points, and the reason of a failure.
 *
 * A test goes on after a failed expectation so that both ends stay in step; the first
 * failure is kept and becomes the test's verdict.
 */
#ifndef GUEST_REPORT_H
#define GUEST_REPORT_H

#include <stdbool.h>

struct verdict {
	int bad;
	char why[252];
};

/* Exit: the program cannot run its tests at all. */
void bail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void verdict_fail(struct verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Return true if a test is among the names of a command line, which end with NULL; no name
 * means all.
 */
bool tap_chosen(const char *name, char **names);
void tap_point(const char *name, const struct verdict *client, const struct verdict *server);
void tap_skip(const char *name, const char *reason);
/* Print the plan; return the exit status of the program. */
int tap_end(void);

double now(void);

#endif
