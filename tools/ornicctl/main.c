// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl: inspect and change a running ornicd.
 */
#include "ornicctl.h"

#include "version.h"	/* the daemon's: they are released together */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ctl_subject *const subjects[] = {
	&ctl_version, &ctl_device, &ctl_port, &ctl_link, &ctl_cc, &ctl_fault, &ctl_capture,
	&ctl_qp, &ctl_counters, &ctl_latency, &ctl_top,
};

#define SUBJECTS	(sizeof(subjects) / sizeof(subjects[0]))

/** HELP_COLUMN - column in which explanations begin */
#define HELP_COLUMN	26

/* Values of a verb's own options begin at OPT_VERB; the options below are valid everywhere */
#define OPT_VERB	0x100

static const struct option global_options[] = {
	{ "control", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
};

#define GLOBALS		(sizeof(global_options) / sizeof(global_options[0]))

static const char global_help[] =
	"Options:\n"
	"  -c, --control SOCKET    the daemon's control socket (default $ORNIC_CONTROL, or\n"
	"                          " CTL_SOCKET ")\n"
	"  -j, --json              print results as JSON\n"
	"  -V, --version           print the version of ornicctl and exit\n"
	"  -h, --help              print help on the command and exit\n";

/**
 * struct typed - the parsed command line
 * @subject:	first word, or NULL
 * @verb:	second word, or NULL
 * @args:	arguments of @verb
 * @help:	--help was given
 * @version:	--version was given
 */
struct typed {
	const struct ctl_subject *subject;
	const struct ctl_verb *verb;
	struct ctl_args args;
	bool help;
	bool version;
};

static void print_item(const char *item, const char *text)
{
	int pad = HELP_COLUMN - 2 - (int)strlen(item);

	if (pad < 1)
		printf("  %s\n%*s%s\n", item, HELP_COLUMN, "", text);
	else
		printf("  %s%*s%s\n", item, pad, "", text);
}

/* Return the usage of a command, such as "port add SPEC", in a static buffer. */
static const char *verb_form(const struct ctl_subject *s, const struct ctl_verb *v)
{
	static char form[128];

	snprintf(form, sizeof(form), "%s%s%s%s%s%s", s->name, v->name ? " " : "",
		 v->name ? v->name : "", v->options ? " [OPTION]..." : "", *v->args ? " " : "",
		 v->args);
	return form;
}

static void help_all(void)
{
	puts("Usage: ornicctl [OPTION]... COMMAND\n"
	     "Inspect and change a running ornicd.\n"
	     "\n"
	     "Commands:");
	for (size_t i = 0; i < SUBJECTS; i++)
		for (const struct ctl_verb *v = subjects[i]->verbs; v->run; v++)
			print_item(verb_form(subjects[i], v), v->summary);
	printf("\n%s\nSee ornicctl(8).\n", global_help);
}

static void help_subject(const struct ctl_subject *s)
{
	printf("Usage: ornicctl [OPTION]... %s COMMAND\n\nCommands:\n", s->name);
	for (const struct ctl_verb *v = s->verbs; v->run; v++)
		print_item(verb_form(s, v), v->summary);
	printf("\n%s", global_help);
}

static void help_verb(const struct ctl_subject *s, const struct ctl_verb *v)
{
	printf("Usage: ornicctl %s\n%c%s.\n\n", verb_form(s, v), v->summary[0] & ~0x20,
	       v->summary + 1);
	if (v->help)
		printf("%s\n", v->help);
	fputs(global_help, stdout);
	for (const struct ctl_option *o = v->options; o && o->name; o++) {
		char item[64];

		snprintf(item, sizeof(item), "    --%s%s%s", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
		print_item(item, o->help);
	}
}

static int help(const struct typed *typed)
{
	if (typed->verb)
		help_verb(typed->subject, typed->verb);
	else if (typed->subject)
		help_subject(typed->subject);
	else
		help_all();
	return CTL_OK;
}

/*
 * Parse options up to the next word; if the verb is known, parse all, because its options and words
 * may be mixed. Return: 0, or -1 after an error line.
 */
static int take_options(struct ctl *ctl, struct typed *typed, int argc, char **argv)
{
	struct option all[GLOBALS + CTL_OPTIONS + 1] = { 0 };
	const struct ctl_option *own = typed->verb ? typed->verb->options : NULL;
	unsigned int n = GLOBALS;
	int opt;

	memcpy(all, global_options, sizeof(global_options));
	for (unsigned int i = 0; own && own[i].name && i < CTL_OPTIONS; i++)
		all[n++] = (struct option) {
			.name = own[i].name,
			.has_arg = own[i].arg ? required_argument : no_argument,
			.val = OPT_VERB + i,
		};
	optind = 0;
	while ((opt = getopt_long(argc, argv, typed->verb ? "c:jVh" : "+c:jVh", all, NULL)) >= 0) {
		if (opt == 'c')
			ctl->path = optarg;
		else if (opt == 'j')
			ctl->json = true;
		else if (opt == 'V')
			typed->version = true;
		else if (opt == 'h')
			typed->help = true;
		else if (opt >= OPT_VERB)
			typed->args.opt[opt - OPT_VERB] = optarg ? optarg : "";
		else
			return -1;
	}
	return 0;
}

static const struct ctl_subject *subject_of(const char *name)
{
	for (size_t i = 0; i < SUBJECTS; i++)
		if (!strcmp(subjects[i]->name, name))
			return subjects[i];
	ctl_err("unknown command %s; see ornicctl --help", name);
	return NULL;
}

static const struct ctl_verb *verb_of(const struct ctl_subject *s, const char *name)
{
	for (const struct ctl_verb *v = s->verbs; v->run; v++)
		if (!strcmp(v->name, name))
			return v;
	ctl_err("unknown command %s %s; see ornicctl %s --help", s->name, name, s->name);
	return NULL;
}

/*
 * Parse options, subject, options, verb, options and words. getopt_long() skips argv[0], which is
 * the program's name and later the word before the options. Return: 0, or -1 after an error line.
 */
static int understand(struct ctl *ctl, struct typed *typed, int argc, char **argv)
{
	if (take_options(ctl, typed, argc, argv))
		return -1;
	argc -= optind;
	argv += optind;
	if (!argc)
		return 0;
	typed->subject = subject_of(argv[0]);
	if (!typed->subject)
		return -1;
	if (!typed->subject->verbs->name) {
		typed->verb = typed->subject->verbs;
	} else {
		if (take_options(ctl, typed, argc, argv))
			return -1;
		argc -= optind;
		argv += optind;
		if (!argc)
			return 0;
		typed->verb = verb_of(typed->subject, argv[0]);
		if (!typed->verb)
			return -1;
	}
	if (take_options(ctl, typed, argc, argv))
		return -1;
	typed->args.words = argc - optind;
	typed->args.word = argv + optind;
	return 0;
}

static int run(struct ctl *ctl, const struct typed *typed)
{
	const struct ctl_verb *v = typed->verb;

	if (typed->version) {
		printf("ornicctl %s\n", ORNICD_VERSION);
		return CTL_OK;
	}
	if (typed->help)
		return help(typed);
	if (!v) {
		ctl_err("command is missing; see ornicctl %s%s--help", typed->subject ?
			typed->subject->name : "", typed->subject ? " " : "");
		return CTL_USAGE;
	}
	if (typed->args.words < v->nargs || typed->args.words > v->nargs + v->more) {
		ctl_err("wrong number of arguments; usage: ornicctl %s",
			verb_form(typed->subject, v));
		return CTL_USAGE;
	}
	return v->run(ctl, &typed->args);
}

int main(int argc, char **argv)
{
	const char *env = getenv("ORNIC_CONTROL");
	struct ctl ctl = { .path = env && *env ? env : CTL_SOCKET, .fd = -1 };
	struct typed typed = { 0 };
	int ret = CTL_USAGE;

	if (!understand(&ctl, &typed, argc, argv))
		ret = run(&ctl, &typed);
	ctl_hang_up(&ctl);
	if (!ret && (fflush(stdout) || ferror(stdout))) {
		ctl_err("cannot write the result to standard output");
		ret = CTL_FAILED;
	}
	return ret;
}
