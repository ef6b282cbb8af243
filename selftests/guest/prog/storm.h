/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the storm programs share: how much work there is, numbers by seed, and the
 * one verdict of many threads.
 *
 * Work is counted in operations, never in seconds. A thread that finds something
 * wrong says so and raises @over, at which all end.
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
	unsigned int divisor;		/* of the amount of work: slow kernels do less */
	bool unplug;			/* the device may go; what fails then is no fault */
	bool tough;			/* a failure ends nothing: what is sent is changed on its way */
	const char *gate;		/* file that must be there before anything is sent, or NULL */
	double patience;		/* seconds without any progress before all is lost */
	_Atomic bool over;
	pthread_mutex_t lock;		/* verdict */
	struct verdict verdict;
};

void storm_init(struct storm *s, uint64_t seed, unsigned int divisor, bool unplug);
/* Before the device is opened: objects of a device that is gone can be destroyed. */
void storm_allow_unplug(void);
/* Until somebody has opened the gate. */
void storm_wait_gate(struct storm *s);
/* Amount of work, at least one. */
unsigned int storm_work(const struct storm *s, unsigned int amount);
void storm_fail(struct storm *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * A verb gave @err, or a completion came with an error: true if that is because the
 * device is gone, as was to be expected. Waits until that is sure, and raises @over.
 */
bool storm_gone(struct storm *s);
/* A verb went well: true, and @over raised, if it did so because there is no device any more. */
bool storm_gone_now(struct storm *s);

/* Numbers of one thread; the same seed and number of thread give the same ones. */
struct rnd {
	uint64_t state;
};

void rnd_init(struct rnd *r, uint64_t seed, uint64_t thread);
/* From 0 to @n - 1. */
uint32_t rnd_below(struct rnd *r, uint32_t n);

/* A thread that must start. */
pthread_t thread_start(void *(*run)(void *), void *arg);

#endif
