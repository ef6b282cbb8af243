/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a subject's file offers: a table of methods, listed in methods.c and described in
 * Documentation/control.rst.
 */
#ifndef ORNICD_CONTROL_METHOD_H
#define ORNICD_CONTROL_METHOD_H

#include "../daemon.h"

#include <jansson.h>

/** CONTROL_TEXT - bytes of an error's message, with its end */
#define CONTROL_TEXT	512

/** enum control_error - codes of errors: JSON-RPC's own, and what a method can say beside them */
enum control_error {
	CONTROL_PARSE = -32700,		/* not JSON */
	CONTROL_REQUEST = -32600,	/* JSON, and not a request */
	CONTROL_METHOD = -32601,	/* there is no such method */
	CONTROL_PARAMS = -32602,	/* its parameters are wrong */
	CONTROL_INTERNAL = -32603,	/* the daemon's own fault */
	CONTROL_NOT_FOUND = 1,		/* what is named does not exist */
	CONTROL_EXISTS = 2,		/* it exists already */
	CONTROL_REFUSED = 3,		/* that cannot be done with it */
	CONTROL_FAILED = 4,		/* the system did not let the daemon */
};

/**
 * struct control_call - one call of a method
 * @daemon:	for whom
 * @params:	an object, empty if none was given
 * @code:	of an error
 * @message:	of an error
 * @logged:	the first error line that was logged meanwhile
 * @done:	for control_done(), made before the method runs: what is done can be reported
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
 * @run:	runs between turns of the engine and takes no longer than a turn.
 *		Return: the result, of at most CONTROL_ANSWER bytes as JSON; or NULL
 *		after control_error(), control_failed() or control_params().
 */
struct control_method {
	const char *name;
	json_t *(*run)(struct control_call *call);
};

/** CONTROL_ANSWER - most bytes of an answer */
#define CONTROL_ANSWER	(1u << 20)

/* The tables; all are listed in methods.c */
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

/* control_method_find() - Return: the method, or NULL */
const struct control_method *control_method_find(const char *name);

/* control_error() - Return: NULL, for the method to return. */
json_t *control_error(struct control_call *call, enum control_error code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * control_failed() - a function returned @err after an error line, which becomes the message
 * Return: NULL, for the method to return.
 */
json_t *control_failed(struct control_call *call, int err);

/*
 * control_params() - take the parameters apart, as json_unpack() does with an object's format;
 * others than those are an error
 * Return: 0, or -EINVAL: the method returns NULL.
 */
int control_params(struct control_call *call, const char *fmt, ...);

/* control_device() - the device that is named @name; NULL after control_error() */
const struct attachment *control_device(struct control_call *call, const char *name);

/* control_done() - the result of a method that has nothing to tell: {}; once, never NULL */
json_t *control_done(struct control_call *call);

/*
 * control_text() - a string that JSON can carry: names of files may be any bytes, and of what is no
 * UTF-8 only the ASCII characters are shown; NULL without memory
 */
json_t *control_text(const char *text);
/* control_mac() - return a MAC address as text, NULL without memory */
json_t *control_mac(const uint8_t mac[6]);

#endif /* ORNICD_CONTROL_METHOD_H */
