// SPDX-License-Identifier: GPL-2.0
/*
 * Start the daemon's threads: see thread.h.
 */
#include "thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, size_t stack, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
