/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Start the daemon's threads.
 */
#ifndef ORNICD_THREAD_H
#define ORNICD_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * thread_start() - start a thread that takes no signals, because the main thread handles them
 * @thread: returns the thread, to be joined or detached
 * @stack: bytes of its stack; 0: the default
 * @run: called with @arg in the thread
 *
 * The thread must not access mappings of memory files: SIGBUS would end the process.
 * Return: 0 or a negative errno.
 */
int thread_start(pthread_t *thread, size_t stack, void *(*run)(void *arg), void *arg);

#endif /* ORNICD_THREAD_H */
