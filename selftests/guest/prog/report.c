// SPDX-License-Identifier: GPL-2.0
/*
 * TAP output and verdicts.
 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int points, bad_points;

void bail(const char *fmt, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	exit(2);
}

void verdict_fail(struct verdict *v, const char *fmt, ...)
{
	va_list args;

	if (v->bad)
		return;
	v->bad = 1;
	va_start(args, fmt);
	vsnprintf(v->why, sizeof(v->why), fmt, args);
	va_end(args);
}

bool tap_chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

void tap_point(const char *name, const struct verdict *client, const struct verdict *server)
{
	bool bad = client->bad || server->bad;

	points++;
	bad_points += bad;
	printf("%s %d - %s\n", bad ? "not ok" : "ok", points, name);
	if (client->bad)
		printf("# client: %s\n", client->why);
	if (server->bad)
		printf("# server: %s\n", server->why);
	fflush(stdout);
}

void tap_skip(const char *name, const char *reason)
{
	points++;
	printf("ok %d - %s # SKIP %s\n", points, name, reason);
	fflush(stdout);
}

int tap_end(void)
{
	printf("1..%d\n", points);
	fflush(stdout);
	return bad_points || !points;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
