// SPDX-License-Identifier: GPL-2.0
/*
 * The end of the daemon costs each virtual machine its device. So only a request to end may cause
 * it, and always in order: sockets are removed, and clients read an end of file.
 */
#include "signals.h"

#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/** SENDER_BYTES - size of a text that names the sender of a signal */
#define SENDER_BYTES	24

/** unmanaged - errors of the program, and signals whose default action does not end the process */
static const int unmanaged[] = {
	SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS,
	SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGURG, SIGWINCH,
};

/** of_write - signals of write(), which returns an error, too */
static const int of_write[] = { SIGPIPE, SIGXFSZ };

static const char *sender(char text[SENDER_BYTES], const struct signalfd_siginfo *info)
{
	if (info->ssi_code == SI_KERNEL)
		snprintf(text, SENDER_BYTES, "the kernel");
	else
		snprintf(text, SENDER_BYTES, "process %u", info->ssi_pid);
	return text;
}

static void signals_received(struct signals *s, const struct signalfd_siginfo *info)
{
	char by[SENDER_BYTES];

	switch (info->ssi_signo) {
	case SIGINT:
	case SIGTERM:
	case SIGQUIT:
	case SIGXCPU:
		loop_stop(s->loop);
		break;
	case SIGHUP:
		log_from(&s->log, LOG_WARN,
			 "ignored SIGHUP from %s: ornicd cannot reload; to restart it, stop its virtual machines, send SIGTERM and start it again",
			 sender(by, info));
		break;
	default:
		log_from(&s->log, LOG_WARN, "ignored signal %u (%s) from %s; SIGTERM ends ornicd",
			 info->ssi_signo, strsignal(info->ssi_signo), sender(by, info));
	}
}

static void signals_event(void *arg, uint32_t events)
{
	struct signalfd_siginfo info;
	struct signals *s = arg;

	(void)events;
	if (read(s->fd, &info, sizeof(info)) == sizeof(info))
		signals_received(s, &info);
}

int signals_open(struct signals *s, struct loop *loop)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;
	int err;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(unmanaged) / sizeof(unmanaged[0]); i++)
		sigdelset(&set, unmanaged[i]);
	for (size_t i = 0; i < sizeof(of_write) / sizeof(of_write[0]); i++) {
		sigdelset(&set, of_write[i]);
		if (sigaction(of_write[i], &ignore, NULL) < 0)
			return -errno;
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->log = (struct log_source) { .name = "signals" };
	s->loop = loop;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return -errno;
	err = loop_add(loop, s->fd, EPOLLIN, signals_event, s);
	if (err)
		close(s->fd);
	return err;
}

void signals_close(struct signals *s)
{
	loop_del(s->loop, s->fd);
	close(s->fd);
	log_source_end(&s->log);
}
