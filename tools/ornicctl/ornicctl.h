/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ornicctl: subjects, their verbs, and the connection to the daemon.
 *
 * Each subject has a file with a table of its verbs. main.c lists the tables, finds the verb and
 * prints help from the tables.
 */
#ifndef ORNICCTL_H
#define ORNICCTL_H

#include <jansson.h>
#include <stdbool.h>

/** CTL_SOCKET - path of the control socket without --control and $ORNIC_CONTROL */
#define CTL_SOCKET	"/run/ornic/control.sock"

/* Exit codes */
#define CTL_OK		0
#define CTL_FAILED	1	/* no daemon, or it rejected the request */
#define CTL_USAGE	2	/* bad option or argument */

/**
 * struct ctl - global options and the connection
 * @path:	control socket
 * @json:	print results as JSON
 * @all:	calls are for each device that was listed; one of them may be removed meanwhile
 * @gone:	the last call failed for that reason, and printed nothing
 * @fd:		connection, -1 before the first call
 * @serial:	id of the last request
 * @rx:		buffer for answers
 * @rx_len:	bytes in @rx
 * @rx_size:	size of @rx
 */
struct ctl {
	const char *path;
	bool json;
	bool all;
	bool gone;
	int fd;
	int serial;
	char *rx;
	size_t rx_len;
	size_t rx_size;
};

/** CTL_OPTIONS - most options of a verb */
#define CTL_OPTIONS	8

/**
 * struct ctl_option - an option of a verb
 * @name:	long name; NULL ends a table
 * @arg:	name of its argument, for help; NULL: it has none
 * @help:	one line for help
 */
struct ctl_option {
	const char *name;
	const char *arg;
	const char *help;
};

/**
 * struct ctl_args - words and options after the verb
 * @word:	array of @words words
 * @words:	number of @word
 * @opt:	values of options, by index in the verb's table; NULL: not given, "": without value
 */
struct ctl_args {
	char **word;
	int words;
	const char *opt[CTL_OPTIONS];
};

/**
 * struct ctl_verb - a command
 * @name:	second word of the command; NULL if the subject has only one command
 * @args:	names of the words that follow, for help; "" if there are none
 * @nargs:	number of mandatory words
 * @more:	number of optional words
 * @options:	options, or NULL
 * @summary:	one line for help, not a sentence
 * @help:	more lines, or NULL
 * @run:	execute the command. Return: an exit code.
 */
struct ctl_verb {
	const char *name;
	const char *args;
	int nargs;
	int more;
	const struct ctl_option *options;
	const char *summary;
	const char *help;
	int (*run)(struct ctl *ctl, const struct ctl_args *args);
};

/**
 * struct ctl_subject - first word of a command
 * @name:	the word
 * @verbs:	table of verbs; one without a function ends it
 */
struct ctl_subject {
	const char *name;
	const struct ctl_verb *verbs;
};

extern const struct ctl_subject ctl_cc;
extern const struct ctl_subject ctl_counters;
extern const struct ctl_subject ctl_capture;
extern const struct ctl_subject ctl_device;
extern const struct ctl_subject ctl_fault;
extern const struct ctl_subject ctl_latency;
extern const struct ctl_subject ctl_link;
extern const struct ctl_subject ctl_port;
extern const struct ctl_subject ctl_qp;
extern const struct ctl_subject ctl_top;
extern const struct ctl_subject ctl_version;

/* ctl_err() - print an error line "ornicctl: ..." to standard error */
void ctl_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * ctl_call() - call a method of the daemon; connects first if needed
 * @fmt: parameters for json_pack(); NULL: none
 * Return: the result, or NULL after an error line, or if the device is @gone.
 */
json_t *ctl_call(struct ctl *ctl, const char *method, const char *fmt, ...);
/* ctl_hang_up() - close the connection, if there is one, and free the buffer */
void ctl_hang_up(struct ctl *ctl);

/*
 * ctl_devices() - get names of devices: @name, or all if that is NULL; the calls for all devices may
 * find one @gone
 * Return: an array, or NULL after an error line.
 */
json_t *ctl_devices(struct ctl *ctl, const char *name);
/*
 * ctl_qps() - get the first @max or more queue pairs of a device: objects of qp.list with the
 * additional member "device"
 * Return: an array, or NULL after an error line, or if the device is @gone.
 */
json_t *ctl_qps(struct ctl *ctl, const char *device, size_t max);

/*
 * ctl_done() - free @result, and print it before with --json
 * Return: exit code; CTL_FAILED if @result is NULL, which was reported before.
 */
int ctl_done(struct ctl *ctl, json_t *result);

/*
 * ctl_number() - parse a number from @min to @max; @what names it in the message
 * Return: 0, or -1 after an error line.
 */
int ctl_number(const char *what, const char *text, long min, long max, long *out);

/*
 * ctl_text(), ctl_int(), ctl_is() - return a member of an object; "-", 0, false if it is missing or
 * has another type
 */
const char *ctl_text(const json_t *object, const char *key);
json_int_t ctl_int(const json_t *object, const char *key);
bool ctl_is(const json_t *object, const char *key);

#endif /* ORNICCTL_H */
