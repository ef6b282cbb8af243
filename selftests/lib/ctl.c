// SPDX-License-Identifier: GPL-2.0
/*
 * Run ornicctl, built with the sanitizers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl.h"

#include <stdlib.h>

FILE *ctl_start(struct stations *t, const char *words)
{
	const char *build = getenv("O");
	char line[512];
	FILE *p;

	snprintf(line, sizeof(line), "exec %s/san/ornicctl --control %s/control %s",
		 build ? build : "build", t->dir, words);
	p = popen(line, "re");
	assert_non_null(p);
	return p;
}

json_t *ctl_finish(FILE *p)
{
	json_error_t e;
	json_t *result = json_loadf(p, JSON_DECODE_ANY, &e);

	if (!result)
		fail_msg("no JSON: %s", e.text);
	assert_int_equal(pclose(p), 0);
	return result;
}

json_t *ctl(struct stations *t, const char *words)
{
	return ctl_finish(ctl_start(t, words));
}

void ctl_run(struct stations *t, const char *fmt, ...)
{
	char words[256], text[256];
	va_list args;
	FILE *p;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	p = ctl_start(t, words);
	while (fgets(text, sizeof(text), p))
		;
	assert_int_equal(pclose(p), 0);
}

json_int_t ctl_number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}
