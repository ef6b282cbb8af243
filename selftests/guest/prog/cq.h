/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of completion queues share: a connection of the process with
 * itself, whose sends complete into the queue of a test.
 */
#ifndef GUEST_CQ_H
#define GUEST_CQ_H

#include "conn.h"
#include "report.h"

#define SOON		10.0		/* seconds for what must happen */
#define AWHILE		0.3		/* seconds in which nothing may happen */

struct cq_test {
	const char *name;
	void (*run)(struct dev *d, struct verdict *v);
};

#define EXPECT(v, condition, ...) do { \
		if (!(condition)) \
			verdict_fail(v, __VA_ARGS__); \
	} while (0)

/* Two connected queue pairs of one process, both of whose sides use one queue each. */
struct loop {
	struct dev *dev;
	struct queue recv;
	struct conn from, to;
	uint8_t *mem;
	struct ibv_mr *mr;
};

/* Sends complete into @send, receives into a queue of the loop's own or into @recv. */
void loop_open(struct loop *l, struct dev *d, struct queue *send, struct queue *recv);
void loop_close(struct loop *l);
/* A write of 8 bytes whose completion has this id. */
void loop_write(struct loop *l, uint64_t id);
/* A message of 8 bytes, with its receive; the completions have these ids. */
void loop_send(struct loop *l, uint64_t id, bool solicited);
/* An event of the channel came within this time; it is acknowledged. */
struct ibv_cq *channel_event(struct ibv_comp_channel *channel, double seconds);
/* Polls until @n completions came; they have the ids from @first on. */
void expect_ids(struct verdict *v, struct ibv_cq *cq, uint64_t first, int n);

extern const struct cq_test clock_tests[], event_tests[], size_tests[], domain_tests[];

#endif
