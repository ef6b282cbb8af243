// SPDX-License-Identifier: GPL-2.0
/*
 * Parse settings of congestion control: "on|off[,parameter=value]..."
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

static int unknown_param(const char *text, const char *name)
{
	char names[1024] = "";

	for (int i = 0; i < CC_PARAM_COUNT; i++) {
		strcat(names, i ? ", " : "");
		strcat(names, cc_ranges[i].name);
	}
	log_err("congestion control \"%s\": \"%s\" is not on, off or one of %s", text, name, names);
	return -EINVAL;
}

static const struct cc_range *range_of(const char *name)
{
	for (int i = 0; i < CC_PARAM_COUNT; i++)
		if (!strcmp(cc_ranges[i].name, name))
			return &cc_ranges[i];
	return NULL;
}

/* Apply one item of the list: "on", "off" or "parameter=value". */
static int apply(struct cc_param *p, const char *text, char *item)
{
	char *value = strchr(item, '=');
	const struct cc_range *range;
	uint64_t v;

	if (!value) {
		if (strcmp(item, "on") && strcmp(item, "off"))
			return unknown_param(text, item);
		p->on = !strcmp(item, "on");
		return 0;
	}
	*value++ = '\0';
	range = range_of(item);
	if (!range)
		return unknown_param(text, item);
	if (!number(value, &v) && !cc_set(p, item, v))
		return 0;
	log_err("congestion control \"%s\": %s must be a number from %u to %u", text, item,
		range->least, range->most);
	return -EINVAL;
}

int config_cc(struct cc_param *p, const char *text)
{
	struct cc_param next = *p;
	char *copy = strdup(text), *rest = copy, *item;
	int err = copy ? 0 : config_no_memory("congestion control's settings");

	while (!err && (item = strsep(&rest, ",")))
		err = apply(&next, text, item);
	free(copy);
	if (!err)
		*p = next;
	return err;
}
