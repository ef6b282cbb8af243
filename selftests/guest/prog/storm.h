/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the storm programs: the amount of work, numbers by seed, and the one
 * verdict of many threads.
 *
 * Work is counted in operations, never in seconds. A thread that finds an error reports it
 * and raises @over, at which all threads end.
 */
#ifndef GUEST_STORM_H
#define GUEST_STORM_H

#include "conn.h"
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>

struct storm {
	struct dev dev;
	uint64_t seed;
	unsigned int divisor;		/* divisor of the amount of work: slow kernels do less */
	bool unplug;			/* the device may go; failures due to that are no fault */
	bool tough;			/* go on after failures: commands are changed in transit */
	const char *gate;		/* file that must exist before anything is sent, or NULL */
	double patience;		/* seconds without any progress until the test fails */
	_Atomic bool over;
	pthread_mutex_t lock;		/* verdict */
	struct verdict verdict;
};

void storm_init(struct storm *s, uint64_t seed, unsigned int divisor, bool unplug);
/* Call before the device is opened: objects of a device that is gone can be destroyed. */
void storm_allow_unplug(void);
/* Wait until the gate file exists. */
void storm_wait_gate(struct storm *s);
/* Return the amount of work, at least one. */
unsigned int storm_work(const struct storm *s, unsigned int amount);
void storm_fail(struct storm *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * A verb returned @err, or a completion came with an error. Return true if the reason is
 * the expected removal of the device. Wait until that is certain, and raise @over.
 */
bool storm_gone(struct storm *s);
/*
 * A verb succeeded: return true, and raise @over, if it did so because there is no device
 * any more.
 */
bool storm_gone_now(struct storm *s);

/* Numbers of one thread, determined by the seed and the thread's number. */
struct rnd {
	uint64_t state;
};

void rnd_init(struct rnd *r, uint64_t seed, uint64_t thread);
/* Return a number from 0 to @n - 1. */
uint32_t rnd_below(struct rnd *r, uint32_t n);

/* Create a thread; exit if that fails. */
pthread_t thread_start(void *(*run)(void *), void *arg);

#endif
