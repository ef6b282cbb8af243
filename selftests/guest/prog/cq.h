/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the completion queue tests: a connection of the process with itself, whose
 * sends complete into the queue of a test.
 */
#ifndef GUEST_CQ_H
#define GUEST_CQ_H

#include "conn.h"
#include "report.h"

#define SOON		10.0		/* seconds for an event that must come */
#define AWHILE		0.3		/* seconds without an event */

struct cq_test {
	const char *name;
	void (*run)(struct dev *d, struct verdict *v);
};

#define EXPECT(v, condition, ...) do { \
		if (!(condition)) \
			verdict_fail(v, __VA_ARGS__); \
	} while (0)

/* Two connected queue pairs of one process; send and receive side use one queue each. */
struct loop {
	struct dev *dev;
	struct queue recv;
	struct conn from, to;
	uint8_t *mem;
	struct ibv_mr *mr;
};

/* Sends complete into @send, receives into a queue of the loop or into @recv. */
void loop_open(struct loop *l, struct dev *d, struct queue *send, struct queue *recv);
void loop_close(struct loop *l);
/* Post a write of 8 bytes whose completion has this id. */
void loop_write(struct loop *l, uint64_t id);
/* Send a message of 8 bytes, with its receive; the completions have these ids. */
void loop_send(struct loop *l, uint64_t id, bool solicited);
/* Return true if an event of the channel came within this time; acknowledge it. */
struct ibv_cq *channel_event(struct ibv_comp_channel *channel, double seconds);
/* Poll until @n completions came; check that their ids count up from @first. */
void expect_ids(struct verdict *v, struct ibv_cq *cq, uint64_t first, int n);

extern const struct cq_test clock_tests[], event_tests[], size_tests[], domain_tests[];

#endif
