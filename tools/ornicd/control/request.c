// SPDX-License-Identifier: GPL-2.0
/*
 * JSON-RPC 2.0 (jsonrpc.org/specification), without batches: each line is one request.
 */
#include "request.h"

#include "method.h"
#include "../json_memory.h"
#include "../log.h"

#include <stdlib.h>
#include <string.h>

/*
 * Return true if the line is nested too deep. Checked before parsing, because jansson's parser
 * is recursive. Ignores brackets in strings; the parser finds other errors.
 */
static bool too_deep(const char *line, size_t len)
{
	unsigned int depth = 0;
	bool string = false;

	for (size_t i = 0; i < len; i++) {
		char c = line[i];

		if (string && c == '\\')
			i++;
		else if (c == '"')
			string = !string;
		else if (!string && (c == '[' || c == '{') && ++depth > CONTROL_DEPTH)
			return true;
		else if (!string && (c == ']' || c == '}') && depth)
			depth--;
	}
	return false;
}

/*
 * Return the answer as a line of *@len bytes, or NULL: without memory, if it is longer than
 * CONTROL_ANSWER, or for a notification (@id NULL). Consumes @answer.
 */
static char *answer_text(json_t *id, json_t *answer, size_t *len)
{
	char *text = NULL;
	size_t n;

	if (!id || !answer || json_object_set_new(answer, "jsonrpc", json_string("2.0")) ||
	    json_object_set(answer, "id", id))
		goto out;
	n = json_dumpb(answer, NULL, 0, JSON_COMPACT);
	if (!n || n >= CONTROL_ANSWER)
		goto out;
	text = malloc(n + 1);
	if (!text) {
		json_memory_failed();
		goto out;
	}
	if (json_dumpb(answer, text, n, JSON_COMPACT) != n) {	/* it takes memory, too */
		free(text);
		text = NULL;
		goto out;
	}
	text[n] = '\n';
	*len = n + 1;
out:
	json_decref(answer);
	return text;
}

/* Make an error answer. If memory is short, report that instead of @message. */
static char *error_text(json_t *id, int code, const char *message, size_t *len)
{
	if (json_memory_short()) {
		code = CONTROL_INTERNAL;
		message = "out of memory";
	}
	return answer_text(id, json_pack("{s:{s:i, s:o}}", "error", "code", code, "message",
					 control_text(message)), len);
}

/* Call method @m. Return: the answer line, as answer_text(). */
static char *run(const struct control_method *m, struct control_call *call, json_t *id,
		 size_t *len)
{
	json_t *result;
	char *text;

	/* Cannot fail: a request that did not leave the reserve of memory is rejected before. */
	call->done = json_object();
	log_keep(call->logged, sizeof(call->logged));
	result = m->run(call);
	log_keep(NULL, 0);
	json_decref(call->done);
	if (!id || json_memory_short()) {
		json_decref(result);
		result = NULL;
	}
	if (!result)
		return error_text(id, call->code, call->message, len);
	text = answer_text(id, json_pack("{s:o}", "result", result), len);
	if (text || json_memory_short())
		return text;
	return error_text(id, CONTROL_INTERNAL, "the answer is too long", len);
}

static char *request(struct daemon *daemon, json_t *root, size_t *len)
{
	json_t *id = json_object_get(root, "id"), *params = NULL, *none = NULL;
	struct control_call call = { .daemon = daemon };
	const char *version, *name;
	const struct control_method *m;
	json_error_t e;
	char *text;

	if (id && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return error_text(json_null(), CONTROL_REQUEST,
				  "id must be a string, a number or null", len);
	if (json_unpack_ex(root, &e, JSON_STRICT, "{s:s, s?o, s:s, s?o}", "jsonrpc", &version,
			   "id", &id, "method", &name, "params", &params))
		return error_text(id ?: json_null(), CONTROL_REQUEST, e.text, len);
	if (strcmp(version, "2.0"))
		return error_text(id ?: json_null(), CONTROL_REQUEST, "jsonrpc must be \"2.0\"",
				  len);
	m = control_method_find(name);
	if (!m)
		return error_text(id, CONTROL_METHOD,
				  "there is no such method; \"methods\" lists all", len);
	if (params && !json_is_object(params))
		return error_text(id, CONTROL_PARAMS, "params must be an object", len);
	if (!params)
		none = json_object();
	call.params = params ?: none;
	text = run(m, &call, id, len);
	json_decref(none);
	return text;
}

char *control_request(struct daemon *daemon, const char *line, size_t len, size_t *answer_len)
{
	json_error_t e;
	json_t *root;
	char *text;

	json_memory_begin();
	if (too_deep(line, len))
		return error_text(json_null(), CONTROL_PARSE, "nested too deep", answer_len);
	root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &e);
	if (json_memory_short()) {
		json_decref(root);
		root = NULL;
	}
	if (!root)
		return error_text(json_null(), CONTROL_PARSE, e.text, answer_len);
	if (json_is_array(root))
		text = error_text(json_null(), CONTROL_REQUEST,
				  "batches are not supported: send one request per line",
				  answer_len);
	else
		text = request(daemon, root, answer_len);
	json_decref(root);
	return text;
}

char *control_rejection(const char *message, size_t *answer_len)
{
	json_memory_begin();
	return error_text(json_null(), CONTROL_REQUEST, message, answer_len);
}
