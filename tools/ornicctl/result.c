// SPDX-License-Identifier: GPL-2.0
/*
 * Print errors and JSON results, read members of results.
 */
#include "ornicctl.h"
#include "screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ctl_err(const char *fmt, ...)
{
	va_list args;

	screen_end();	/* a message on the alternate screen of ornicctl top would vanish */
	va_start(args, fmt);
	fputs("ornicctl: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

int ctl_done(struct ctl *ctl, json_t *result)
{
	if (!result)
		return CTL_FAILED;
	if (ctl->json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(result);
	return CTL_OK;
}

int ctl_number(const char *what, const char *text, long min, long max, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	if (*text && !*end && !errno && *out >= min && *out <= max)
		return 0;
	ctl_err("%s \"%s\" is not a number from %ld to %ld", what, text, min, max);
	return -1;
}

const char *ctl_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

json_int_t ctl_int(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

bool ctl_is(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}
