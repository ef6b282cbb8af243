// SPDX-License-Identifier: GPL-2.0
/*
 * The table of all methods, and functions that they share.
 */
#include "method.h"

#include "../dev/function.h"
#include "../json_memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *list_methods(struct control_call *call);

static const struct control_method own_methods[] = {
	{ "methods", list_methods },
	{ },
};

static const struct control_method *const tables[] = {
	own_methods,
	control_version_methods,
	control_cc_methods,
	control_device_methods,
	control_link_methods,
	control_port_methods,
	control_fault_methods,
	control_qp_methods,
	control_counters_methods,
	control_latency_methods,
	control_capture_methods,
};

#define TABLES	(sizeof(tables) / sizeof(tables[0]))

static json_t *list_methods(struct control_call *call)
{
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	for (size_t t = 0; t < TABLES; t++)
		for (const struct control_method *m = tables[t]; m->name; m++)
			json_array_append_new(all, json_string(m->name));
	return all;
}

const struct control_method *control_method_find(const char *name)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct control_method *m = tables[t]; m->name; m++)
			if (!strcmp(m->name, name))
				return m;
	return NULL;
}

json_t *control_error(struct control_call *call, enum control_error code, const char *fmt, ...)
{
	va_list args;

	call->code = code;
	va_start(args, fmt);
	vsnprintf(call->message, sizeof(call->message), fmt, args);
	va_end(args);
	return NULL;
}

/* Return the code for a negative errno. */
static enum control_error code_of(int err)
{
	switch (err) {
	case -EINVAL:
	case -ENAMETOOLONG:
		return CONTROL_PARAMS;
	case -ENOENT:
	case -ENODEV:
		return CONTROL_NOT_FOUND;
	case -EEXIST:
	case -EADDRINUSE:
		return CONTROL_EXISTS;
	case -EPERM:
	case -EBUSY:
		return CONTROL_REJECTED;
	case -ENOMEM:
		return CONTROL_INTERNAL;
	default:
		return CONTROL_FAILED;
	}
}

json_t *control_failed(struct control_call *call, int err)
{
	return control_error(call, code_of(err), "%s", *call->logged ? call->logged :
			     strerror(-err));
}

const struct attachment *control_device(struct control_call *call, const char *name)
{
	const struct daemon *d = call->daemon;

	for (unsigned int i = 0; i < d->n; i++)
		if (!strcmp(d->attached[i].function->dev.name, name))
			return &d->attached[i];
	control_error(call, CONTROL_NOT_FOUND, "there is no device %s", name);
	return NULL;
}

int control_params(struct control_call *call, const char *fmt, ...)
{
	json_error_t e;
	va_list args;
	int err;

	va_start(args, fmt);
	err = json_vunpack_ex(call->params, &e, JSON_STRICT, fmt, args);
	va_end(args);
	if (!err && !json_memory_short())
		return 0;
	control_error(call, CONTROL_PARAMS, "params: %s", e.text);
	return -EINVAL;
}

json_t *control_done(struct control_call *call)
{
	json_t *done = call->done;

	call->done = NULL;
	return done;
}

json_t *control_new_id(struct control_call *call)
{
	json_t *result = control_done(call);

	json_object_set_new(result, "id", json_integer(0));
	return result;
}

json_t *control_set_id(json_t *result, uint32_t id)
{
	json_integer_set(json_object_get(result, "id"), id);
	return result;
}

json_t *control_text(const char *text)
{
	json_t *good = json_string(text);
	char *ascii;

	if (good)
		return good;
	ascii = strdup(text);
	for (char *c = ascii; c && *c; c++)
		if (*c & 0x80)
			*c = '?';
	good = json_string(ascii);
	free(ascii);
	return good;
}

json_t *control_mac(const uint8_t mac[6])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
			    mac[4], mac[5]);
}
