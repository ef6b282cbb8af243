/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Count the mutexes that each thread holds, because a missing lock shows only by an accident. The
 * two functions replace the C library's. Include in one file of a program, whose threads hold at
 * most one mutex.
 */
#ifndef UNIT_LIB_LOCKS_H
#define UNIT_LIB_LOCKS_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

static _Thread_local unsigned int locks_held;
static _Atomic unsigned int locks_bad;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *) = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_mutex_lock");

	locks_bad += locks_held++;
	return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *) = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_mutex_unlock");

	locks_bad += !locks_held;
	locks_held -= !!locks_held;
	return real(mutex);
}

/* locks_work() - count a mistake if this thread holds a mutex or gets signals */
static inline void locks_work(void)
{
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	locks_bad += locks_held + !sigismember(&blocked, SIGTERM) +
		     !sigismember(&blocked, SIGHUP);
}

/* locks_wrong() - return the mistakes of all threads, and the mutexes that this one holds */
static inline unsigned int locks_wrong(void)
{
	return locks_bad + locks_held;
}

#endif /* UNIT_LIB_LOCKS_H */
