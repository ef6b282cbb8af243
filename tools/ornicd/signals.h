/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the daemon does on each signal.
 */
#ifndef ORNICD_SIGNALS_H
#define ORNICD_SIGNALS_H

#include "log.h"

struct loop;

/**
 * struct signals - signals of the process, as events of a loop
 * @log:	source of log lines
 * @loop:	the loop
 * @fd:		signalfd
 */
struct signals {
	struct log_source log;
	struct loop *loop;
	int fd;
};

/*
 * signals_open() - receive signals in a callback of @loop from now on
 *
 * SIGINT, SIGTERM, SIGQUIT and SIGXCPU end loop_run(). SIGPIPE and SIGXFSZ have no effect beside
 * the error of write(). Errors of the program, such as SIGSEGV and SIGABRT, and stops, such as
 * SIGTSTP, keep their action. All other signals, which would end the process, only cause a
 * rate-limited line in the log.
 *
 * Call it before other threads exist that take signals: it blocks them for the calling thread. They
 * stay blocked after signals_close(), so that a second SIGTERM does not interrupt the orderly end.
 *
 * Return: 0 or a negative errno.
 */
int signals_open(struct signals *s, struct loop *loop);

/* signals_close() - end this; call it before loop_free() */
void signals_close(struct signals *s);

#endif /* ORNICD_SIGNALS_H */
