// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on captures.
 */
#include "method.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../capture/capture.h"
#include "../json_memory.h"
#include "../log.h"

static const char *state(const struct capture *c)
{
	if (c->err)
		return "failed";
	return c->ending ? "ending" : "running";
}

static json_t *show(const struct capture *c, const char *state)
{
	return json_pack("{s:I, s:o, s:s, s:s*, s:I, s:I, s:I}",
			 "id", (json_int_t)c->id, "file", control_text(c->spec.path),
			 "state", state, "error", c->err ? strerror(-c->err) : NULL,
			 "frames", (json_int_t)c->frames, "dropped", (json_int_t)c->dropped,
			 "bytes", (json_int_t)c->bytes);
}

static json_t *list(struct control_call *call)
{
	struct capture *c;
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	TAILQ_FOREACH(c, &call->daemon->captures.list, link)
		json_array_append_new(all, show(c, state(c)));
	return all;
}

/* Reject standard output: it belongs to the daemon, and the caller cannot see it. */
static int parse(struct capture_spec *spec, const char *text, char *why, size_t room)
{
	int err = capture_spec_parse(spec, text, why, room);

	if (err || strcmp(spec->path, "-"))
		return err;
	capture_spec_free(spec);
	snprintf(why, room, "- is the daemon's standard output: name a file or a pipe");
	return -EINVAL;
}

static json_t *start(struct control_call *call)
{
	json_t *result = control_new_id(call);
	struct capture_spec spec;
	const char *text;
	char why[256];
	uint32_t id;
	int err;

	if (control_params(call, "{s:s}", "spec", &text)) {
		json_decref(result);
		return NULL;
	}
	err = parse(&spec, text, why, sizeof(why));
	if (!err) {
		err = captures_start(&call->daemon->captures, &spec, &id, why, sizeof(why));
		capture_spec_free(&spec);
	}
	if (!err)
		return control_set_id(result, id);
	json_decref(result);
	log_err("cannot capture: %s", why);
	return control_failed(call, err);
}

/* Make the result first, so that a request without an answer does not end the capture. */
static json_t *stop(struct control_call *call)
{
	struct captures *cs = &call->daemon->captures;
	struct capture *c;
	json_t *last;
	json_int_t id;

	if (control_params(call, "{s:I}", "id", &id))
		return NULL;
	c = id > 0 && id <= UINT32_MAX ? captures_find(cs, id) : NULL;
	if (!c)
		return control_error(call, CONTROL_NOT_FOUND, "there is no capture %lld",
				     (long long)id);
	last = show(c, c->err ? "failed" : "ending");
	if (json_memory_short()) {
		json_decref(last);
		return NULL;
	}
	capture_stop(cs, c);
	json_integer_set(json_object_get(last, "bytes"), c->bytes);
	if (c->err)
		capture_forget(cs, c);
	return last;
}

const struct control_method control_capture_methods[] = {
	{ "capture.list", list },
	{ "capture.start", start },
	{ "capture.stop", stop },
	{ },
};
