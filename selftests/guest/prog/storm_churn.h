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
		enum kind last;		/* later ones may need what has gone with the device */
		pthread_t thread;
	} churner[CHURN_THREADS];
	unsigned int threads;
	pthread_t poller, listener;
	_Atomic bool done;
	_Atomic uint32_t made[KINDS];
};

/* @threads of them do @rounds things each. */
void churn_start(struct churn *c, struct storm *s, unsigned int threads, unsigned int rounds);
/* Waits for them. Nothing is left of what they made, or the storm has failed. */
void churn_end(struct churn *c);

#endif
