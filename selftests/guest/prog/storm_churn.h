/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that create, use and destroy objects of every kind in random order.
 */
#ifndef GUEST_STORM_CHURN_H
#define GUEST_STORM_CHURN_H

#include "storm_kinds.h"

#define CHURN_THREADS	8

struct churn {
	struct storm *s;
	struct shared_cq shared;
	struct churner {
		struct churn *c;
		struct nest nest;
		unsigned int rounds;
		enum kind last;		/* later kinds may need objects that are gone by then */
		pthread_t thread;
	} churner[CHURN_THREADS];
	unsigned int threads;
	pthread_t poller, listener;
	_Atomic bool done;
	_Atomic uint32_t made[KINDS];
};

/* Start @threads threads, each for @rounds operations. */
void churn_start(struct churn *c, struct storm *s, unsigned int threads, unsigned int rounds);
/* Wait for them. If any of their objects remains, the storm has failed. */
void churn_end(struct churn *c);

#endif
