/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of a file that implements methods: a table of them, which methods.c lists and
 * Documentation/control.rst describes.
 */
#ifndef ORNICD_CONTROL_METHOD_H
#define ORNICD_CONTROL_METHOD_H

#include "../daemon.h"

#include <jansson.h>

/** CONTROL_TEXT - bytes of an error's message, including the terminating zero */
#define CONTROL_TEXT	512

/** enum control_error - error codes: those of JSON-RPC, and positive ones of the methods */
enum control_error {
	CONTROL_PARSE = -32700,		/* not JSON */
	CONTROL_REQUEST = -32600,	/* JSON, but not a request */
	CONTROL_METHOD = -32601,	/* no such method */
	CONTROL_PARAMS = -32602,	/* wrong parameters */
	CONTROL_INTERNAL = -32603,	/* the daemon failed */
	CONTROL_NOT_FOUND = 1,		/* the named object does not exist */
	CONTROL_EXISTS = 2,		/* the object exists already or is in use */
	CONTROL_REJECTED = 3,		/* the object does not support the operation */
	CONTROL_FAILED = 4,		/* the operating system rejected the operation */
};

/**
 * struct control_call - one call of a method
 * @daemon:	the daemon
 * @params:	an object, empty if the request has none
 * @code:	code of an error
 * @message:	message of an error
 * @logged:	first error line that was logged during the call, "" if none
 * @done:	empty result, made before the method runs, so that success can always be reported
 */
struct control_call {
	struct daemon *daemon;
	json_t *params;
	int code;
	char message[CONTROL_TEXT];
	char logged[CONTROL_TEXT];
	json_t *done;
};

/**
 * struct control_method - a method
 * @name:	"subject.verb"; NULL ends a table
 * @run:	executes the method between iterations of the engine; must not take longer than
 *		one. Return: the result, of at most CONTROL_ANSWER bytes as JSON; or NULL
 *		after control_error(), control_failed() or control_params().
 */
struct control_method {
	const char *name;
	json_t *(*run)(struct control_call *call);
};

/** CONTROL_ANSWER - most bytes of an answer */
#define CONTROL_ANSWER	(1u << 20)

/* The tables; methods.c lists them */
extern const struct control_method control_version_methods[];
extern const struct control_method control_cc_methods[];
extern const struct control_method control_device_methods[];
extern const struct control_method control_link_methods[];
extern const struct control_method control_port_methods[];
extern const struct control_method control_fault_methods[];
extern const struct control_method control_qp_methods[];
extern const struct control_method control_counters_methods[];
extern const struct control_method control_latency_methods[];
extern const struct control_method control_capture_methods[];

/* control_method_find() - return the method @name, or NULL */
const struct control_method *control_method_find(const char *name);

/* control_error() - set code and message of an error. Return: NULL, for the method to return. */
json_t *control_error(struct control_call *call, enum control_error code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * control_failed() - set an error from negative errno @err; the message is the logged error line,
 * if there is one, else strerror(). Return: NULL, for the method to return.
 */
json_t *control_failed(struct control_call *call, int err);

/*
 * control_params() - unpack the parameters as json_unpack() does; unknown ones are an error
 * Return: 0, or -EINVAL after control_error(): the method returns NULL.
 */
int control_params(struct control_call *call, const char *fmt, ...);

/* control_device() - return the device named @name, or NULL after control_error() */
const struct attachment *control_device(struct control_call *call, const char *name);

/* control_done() - return the empty result {}; at most once per call, never NULL */
json_t *control_done(struct control_call *call);

/*
 * control_new_id() - return the result {"id": 0} for control_set_id(). To be called before
 * control_params(), which fails if there was no memory for it, so that a request without an answer
 * has no effect.
 */
json_t *control_new_id(struct control_call *call);
/* control_set_id() - set the id in @result of control_new_id(). Return: @result. */
json_t *control_set_id(json_t *result, uint32_t id);

/*
 * control_text() - return @text as a JSON string, NULL without memory. JSON is UTF-8, but file
 * names are any bytes: if @text is not UTF-8, each byte above 127 becomes '?'.
 */
json_t *control_text(const char *text);
/* control_mac() - return a MAC address as text, NULL without memory */
json_t *control_mac(const uint8_t mac[6]);

#endif /* ORNICD_CONTROL_METHOD_H */
