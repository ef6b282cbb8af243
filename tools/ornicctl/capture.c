// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl capture: list, start and stop captures.
 */
#include "ornicctl.h"
#include "signals.h"
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Another name of "-", which cannot have keys, because "-,KEY=VALUE" looks like an option */
#define STDOUT		"/dev/stdout"

/* Milliseconds between polls whether a capture has ended, and most polls */
#define LOOK_MS		20
#define LOOKS		1000

static atomic_bool interrupted;

static void on_signal(int signal)
{
	(void)signal;
	interrupted = true;
}

static int capture_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = ctl_call(ctl, "capture.list", NULL), *c;
	struct table t;
	size_t i;

	(void)args;
	if (!all || ctl->json)
		return ctl_done(ctl, all);
	table_head(&t, "<ID STATE <FRAMES <DROPPED <BYTES FILE");
	json_array_foreach(all, i, c) {
		table_cell(&t, "%lld", (long long)ctl_int(c, "id"));
		table_cell(&t, "%s", ctl_text(c, "state"));
		table_cell(&t, "%lld", (long long)ctl_int(c, "frames"));
		table_cell(&t, "%lld", (long long)ctl_int(c, "dropped"));
		table_cell(&t, "%lld", (long long)ctl_int(c, "bytes"));
		if (json_object_get(c, "error"))
			table_cell(&t, "%s: %s", ctl_text(c, "file"), ctl_text(c, "error"));
		else
			table_cell(&t, "%s", ctl_text(c, "file"));
	}
	json_decref(all);
	return table_print(&t);
}

/* ---- stop ---------------------------------------------------------------------- */

static int tell_failed(const json_t *c)
{
	ctl_err("capture %lld: %s ends early: %s", (long long)ctl_int(c, "id"),
		ctl_text(c, "file"), ctl_text(c, "error"));
	return CTL_FAILED;
}

/* Get the result of a capture that was stopped. Return: exit code, -1 while it is not finished. */
static int outcome(struct ctl *ctl, json_int_t id)
{
	json_t *all = ctl_call(ctl, "capture.list", NULL), *c;
	int ret = all ? CTL_OK : CTL_FAILED;
	size_t i;

	json_array_foreach(all, i, c) {
		if (ctl_int(c, "id") != id)
			continue;
		ret = -1;
		if (json_object_get(c, "error")) {
			ret = tell_failed(c);
			/* Remove it from the list: the daemon kept it until its error was read. */
			json_decref(ctl_call(ctl, "capture.stop", "{s:I}", "id", id));
		}
	}
	json_decref(all);
	return ret;
}

/* Wait until a stopped capture is written. Return: exit code, after an error line on failure. */
static int wait_written(struct ctl *ctl, json_int_t id)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };

	for (int i = 0; i < LOOKS; i++) {
		int ret = outcome(ctl, id);

		if (ret >= 0)
			return ret;
		nanosleep(&pause, NULL);
	}
	ctl_err("capture %lld is not written yet; see ornicctl capture list", (long long)id);
	return CTL_FAILED;
}

static int capture_stop(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *last;
	char *end;
	json_int_t id = strtoll(args->word[0], &end, 10);
	int ret;

	if (*end || end == args->word[0]) {
		ctl_err("%s is not the number of a capture; see ornicctl capture list",
			args->word[0]);
		return CTL_USAGE;
	}
	last = ctl_call(ctl, "capture.stop", "{s:I}", "id", id);
	if (!last)
		return CTL_FAILED;
	ret = json_object_get(last, "error") ? tell_failed(last) : wait_written(ctl, id);
	if (ret) {
		json_decref(last);
		return ret;
	}
	if (!ctl->json)
		printf("capture %lld: %s: %lld frames written, %lld dropped\n", (long long)id,
		       ctl_text(last, "file"), (long long)ctl_int(last, "frames"),
		       (long long)ctl_int(last, "dropped"));
	return ctl_done(ctl, last);
}

/* ---- start --------------------------------------------------------------------- */

/* Reject a path with a comma, behind which keys begin. Return: 0, or -1 after an error line. */
static int check_folder(const char *path)
{
	if (!strchr(path, ','))
		return 0;
	ctl_err("%s: a capture's path cannot have a comma", path);
	return -1;
}

static json_t *begin(struct ctl *ctl, const char *spec)
{
	return ctl_call(ctl, "capture.start", "{s:s}", "spec", spec);
}

/* Start a capture to a relative path; make it absolute, as the daemon has another directory. */
static json_t *begin_here(struct ctl *ctl, const char *spec)
{
	char here[PATH_MAX], *text = NULL;
	json_t *done = NULL;

	if (!getcwd(here, sizeof(here)) || asprintf(&text, "%s/%s", here, spec) < 0)
		ctl_err("%s: %s", spec, strerror(errno));
	else if (!check_folder(here))
		done = begin(ctl, text);
	free(text);
	return done;
}

/* ---- to standard output ------------------------------------------------------ */

/**
 * struct pipe - a named pipe to which the daemon writes
 * @dir:	its directory, of random name and not listable, so that only the daemon finds the
 *		pipe
 * @path:	its path
 * @fd:		descriptor to read from
 */
struct pipe {
	char dir[PATH_MAX];
	char path[PATH_MAX + 8];
	int fd;
};

static void pipe_close(struct pipe *p)
{
	if (p->fd >= 0)
		close(p->fd);
	unlink(p->path);
	rmdir(p->dir);
}

/* Create and open a pipe. Return: 0, or -1 after an error line. */
static int pipe_open(struct pipe *p)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(p->dir, sizeof(p->dir), "%s/ornicctl-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (check_folder(p->dir))
		return -1;
	if (!mkdtemp(p->dir)) {
		ctl_err("%s: %s", p->dir, strerror(errno));
		return -1;
	}
	snprintf(p->path, sizeof(p->path), "%s/pipe", p->dir);
	p->fd = -1;
	/* Others may write, because the daemon may run as another user. */
	if (!chmod(p->dir, 0711) && !mkfifo(p->path, 0600) && !chmod(p->path, 0622))
		p->fd = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (p->fd >= 0)
		return 0;
	ctl_err("%s: %s", p->path, strerror(errno));
	pipe_close(p);
	return -1;
}

/* Write to standard output. Return: 0, or -1 with errno. */
static int put_out(const char *at, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, at, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
	return 0;
}

/* Return true if the reader of standard output has closed it: then end the capture. */
static bool is_unread(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, 0) > 0 && out.revents & POLLERR;
}

/*
 * Copy from the pipe to standard output until the daemon ends the capture, which a signal requests.
 * Return: exit code.
 */
static int copy(struct ctl *ctl, int fd, json_int_t id)
{
	static char buffer[65536];
	struct pollfd in = { .fd = fd, .events = POLLIN };
	bool asked = false;

	while (!is_unread()) {
		ssize_t n = poll(&in, 1, LOOK_MS) > 0 ? read(fd, buffer, sizeof(buffer)) : -1;

		if (!n)
			return wait_written(ctl, id);
		if (n > 0 && put_out(buffer, n)) {
			if (errno == EPIPE)
				break;
			ctl_err("cannot write the capture: %s", strerror(errno));
			return CTL_FAILED;
		}
		if (interrupted && !asked) {
			asked = true;
			json_decref(ctl_call(ctl, "capture.stop", "{s:I}", "id", id));
		}
	}
	return CTL_OK;
}

static int capture_to_stdout(struct ctl *ctl, const char *keys)
{
	struct pipe p;
	json_t *done = NULL;
	char *spec = NULL;
	int ret = CTL_FAILED;

	if (isatty(STDOUT_FILENO)) {
		ctl_err("standard output is a terminal: redirect it to a file or to a program");
		return CTL_USAGE;
	}
	if (pipe_open(&p))
		return CTL_FAILED;
	signal(SIGPIPE, SIG_IGN);
	/* without SA_RESTART: a signal wakes poll() */
	signal_handle(SIGINT, on_signal, 0);
	signal_handle(SIGTERM, on_signal, 0);
	signal_handle(SIGHUP, on_signal, 0);
	if (asprintf(&spec, "%s%s", p.path, keys) >= 0)
		done = begin(ctl, spec);
	if (done) {
		fcntl(p.fd, F_SETFL, 0);
		ret = copy(ctl, p.fd, ctl_int(done, "id"));
	}
	json_decref(done);
	free(spec);
	pipe_close(&p);
	return ret;
}

static int capture_start(struct ctl *ctl, const struct ctl_args *args)
{
	const char *spec = args->word[0];
	json_t *done;

	if (!strcmp(spec, "-"))
		return capture_to_stdout(ctl, "");
	if (!strncmp(spec, STDOUT, strlen(STDOUT)) &&
	    strchr(",", spec[strlen(STDOUT)]))
		return capture_to_stdout(ctl, spec + strlen(STDOUT));
	/* The daemon reports a missing file, such as ",device=vm1". */
	done = strchr("/,", *spec) ? begin(ctl, spec) : begin_here(ctl, spec);
	if (done && !ctl->json)
		printf("capture %lld\n", (long long)ctl_int(done, "id"));
	return ctl_done(ctl, done);
}

/* ---- verbs --------------------------------------------------------------------- */

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = capture_list,
		.summary = "captures, with their numbers of frames and bytes",
		.help = "DROPPED are frames that could not be written fast enough.\n",
	},
	{
		.name = "start", .args = "SPEC", .nargs = 1, .run = capture_start,
		.summary = "write the packets that pass the switch to a pcapng file",
		.help = "SPEC has the form of --capture on the daemon's command line,\n"
			"FILE[,KEY=VALUE]..., see ornicd(8). The daemon writes the file. With\n"
			"- or /dev/stdout the capture goes to standard output, until interrupted:\n"
			"\n"
			"    ornicctl capture start - | wireshark -k -i -\n"
			"    ornicctl capture start /dev/stdout,device=vm1 | tshark -i -\n",
	},
	{
		.name = "stop", .args = "ID", .nargs = 1, .run = capture_stop,
		.summary = "stop a capture",
		.help = "When the command returns, the file is complete.\n",
	},
	{ },
};

const struct ctl_subject ctl_capture = { "capture", verbs };
