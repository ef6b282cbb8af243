/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ornicctl: subjects, their verbs, and the connection to the daemon.
 *
 * A subject is a file, with a table of its verbs; main.c lists them, finds the verb and prints
 * help from the tables.
 */
#ifndef ORNICCTL_H
#define ORNICCTL_H

#include <jansson.h>
#include <stdbool.h>

/** CTL_SOCKET - where the daemon listens unless --control or $ORNIC_CONTROL say otherwise */
#define CTL_SOCKET	"/run/ornic/control.sock"

/* Exit codes */
#define CTL_OK		0
#define CTL_FAILED	1	/* no daemon, or it rejected the request */
#define CTL_USAGE	2	/* bad option or argument */

/**
 * struct ctl - a run of the program
 * @path:	control socket
 * @json:	results are printed as they came
 * @fd:		connection, -1 before the first call
 * @serial:	id of the last request
 * @rx:		bytes of answers, @rx_len of them, in @rx_size
 */
struct ctl {
	const char *path;
	bool json;
	int fd;
	int serial;
	char *rx;
	size_t rx_len;
	size_t rx_size;
};

/** CTL_OPTIONS - options a verb may have */
#define CTL_OPTIONS	8

/**
 * struct ctl_option - an option of a verb
 * @name:	long name; NULL ends a table
 * @arg:	its argument, for help; NULL: it takes none
 * @help:	a line
 */
struct ctl_option {
	const char *name;
	const char *arg;
	const char *help;
};

/**
 * struct ctl_args - what was typed behind the verb
 * @word:	@words words
 * @words:	number of @word
 * @opt:	values of options, as the verb's table has them; NULL: not given, "": without value
 */
struct ctl_args {
	char **word;
	int words;
	const char *opt[CTL_OPTIONS];
};

/**
 * struct ctl_verb - what can be done with a subject
 * @name:	as typed; NULL if the subject is all that is typed
 * @args:	words that follow, for help; "" if there are none
 * @nargs:	how many it needs
 * @more:	how many it takes besides
 * @options:	its options, or NULL
 * @summary:	one line, not a sentence
 * @help:	more lines, or NULL
 * @run:	Return: an exit code.
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
 * @name:	as typed
 * @verbs:	ended by one without a function
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

/* ctl_err() - "ornicctl: ..." on standard error */
void ctl_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * ctl_call() - call a method with parameters as json_pack() makes them of @fmt and what follows;
 * NULL: it has none
 * Return: its result, or NULL after an error line.
 */
json_t *ctl_call(struct ctl *ctl, const char *method, const char *fmt, ...);
void ctl_hang_up(struct ctl *ctl);

/*
 * ctl_devices() - names of devices: the one named @name, or all if that is NULL
 * Return: an array, or NULL after an error line.
 */
json_t *ctl_devices(struct ctl *ctl, const char *name);
/*
 * ctl_qps() - queue pairs of a device as the daemon tells them, and of which device they are;
 * at least @max of them, if there are so many
 * Return: an array, or NULL after an error line.
 */
json_t *ctl_qps(struct ctl *ctl, const char *device, size_t max);

/*
 * ctl_done() - print @result if --json asks for that, and forget it
 * Return: exit code; @result NULL is a failure that has been reported.
 */
int ctl_done(struct ctl *ctl, json_t *result);

/*
 * ctl_number() - a number from @min to @max that was typed as @what
 * Return: 0, or -1 after an error line.
 */
int ctl_number(const char *what, const char *text, long min, long max, long *out);

/*
 * ctl_text(), ctl_int(), ctl_is() - a member of an object; where it is not what one expects: "-",
 * 0, false
 */
const char *ctl_text(const json_t *object, const char *key);
json_int_t ctl_int(const json_t *object, const char *key);
bool ctl_is(const json_t *object, const char *key);

#endif /* ORNICCTL_H */
