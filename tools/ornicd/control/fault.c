// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on fault injection.
 */
#include "method.h"

#include "../fault/fault.h"

#include <errno.h>
#include <inttypes.h>

/* The seed is a string, because many JSON parsers have no 64-bit integers. */
static json_t *describe(const struct fault_info *i)
{
	return json_pack("{s:I, s:s, s:o, s:I, s:I, s:I, s:b}", "id", (json_int_t)i->id,
			 "rule", i->text, "seed", json_sprintf("%#" PRIx64, i->seed),
			 "matched", (json_int_t)i->matched, "acted", (json_int_t)i->acted,
			 "no_room", (json_int_t)i->no_room, "spent", i->spent);
}

static json_t *list(struct control_call *call)
{
	struct fault_info info = { 0 };
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	while (fault_next(&call->daemon->engine, info.id, &info))
		json_array_append_new(all, describe(&info));
	return all;
}

/* Return the code for an errno of fault_add(). */
static enum control_error code_of(int err)
{
	switch (err) {
	case -EINVAL:
		return CONTROL_PARAMS;
	case -ENOENT:
	case -ENODEV:
		return CONTROL_NOT_FOUND;
	case -ENOMEM:
		return CONTROL_INTERNAL;
	default:
		return CONTROL_REJECTED;
	}
}

static json_t *add(struct control_call *call)
{
	json_t *result = control_new_id(call);
	char text[FAULT_ERROR];
	const char *rule;
	uint32_t id;
	int err;

	if (control_params(call, "{s:s}", "rule", &rule))
		goto failed;
	err = fault_add(&call->daemon->engine, rule, &id, text);
	if (!err)
		return control_set_id(result, id);
	control_error(call, code_of(err), "%s", text);
failed:
	json_decref(result);
	return NULL;
}

static json_t *del(struct control_call *call)
{
	json_int_t id;

	if (control_params(call, "{s:I}", "id", &id))
		return NULL;
	if (id < 1 || id > UINT32_MAX || fault_del(&call->daemon->engine, id))
		return control_error(call, CONTROL_NOT_FOUND, "there is no fault rule %lld",
				     (long long)id);
	return control_done(call);
}

static json_t *clear(struct control_call *call)
{
	if (control_params(call, "{}"))
		return NULL;
	fault_clear(&call->daemon->engine);
	return control_done(call);
}

const struct control_method control_fault_methods[] = {
	{ "fault.list", list },
	{ "fault.add", add },
	{ "fault.del", del },
	{ "fault.clear", clear },
	{ },
};
