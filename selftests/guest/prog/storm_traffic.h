/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages between two processes whose threads share queues, each message and each
 * completion accounted for.
 */
#ifndef GUEST_STORM_TRAFFIC_H
#define GUEST_STORM_TRAFFIC_H

#include "storm.h"

/* Queue pair n completes in CQ n % cqs, sends and receives. */
struct traffic_plan {
	const char *name;
	unsigned int qps;
	unsigned int posters;		/* threads; each posts to every queue pair */
	unsigned int pollers;		/* threads of each CQ; with events: in all */
	unsigned int cqs;
	bool srq;			/* all queue pairs receive from one SRQ */
	bool events;			/* one channel of all CQs; without one, all poll */
};

/* Both ends call it with the same plan and number of messages per poster. */
void traffic_run(struct storm *s, struct oob *o, const struct traffic_plan *plan,
		 unsigned int messages);

#endif
