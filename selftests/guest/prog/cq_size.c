// SPDX-License-Identifier: GPL-2.0
/*
 * Capacity of a completion queue: overflow, overruns that are ignored, and a resize while
 * it is in use.
 */
#include "cq.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define WRITES	64

/* Wait for an asynchronous event of this type. */
static bool async_event(struct dev *d, enum ibv_event_type type, double seconds)
{
	struct pollfd fd = { .fd = d->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	double end = now() + seconds, left;

	while ((left = end - now()) > 0 && poll(&fd, 1, (int)(left * 1000) + 1) > 0) {
		if (ibv_get_async_event(d->verbs, &event))
			bail("ibv_get_async_event: %s", strerror(errno));
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return true;
	}
	return false;
}

static struct queue small_queue(struct dev *d, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = flags,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->verbs, &attr);

	if (!cq)
		bail("cannot create a CQ with flags %x: %s", flags, strerror(errno));
	return (struct queue){ .cq = ibv_cq_ex_to_cq(cq) };
}

/* ORN-CQ-3: CQ_ERR, and the queue pair enters ERR. */
static void overflow(struct dev *d, struct verdict *v)
{
	struct queue q = small_queue(d, 0);
	double end = now() + SOON;
	struct loop l;

	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < 5; i++)
		loop_write(&l, i);
	EXPECT(v, async_event(d, IBV_EVENT_CQ_ERR, SOON), "no CQ_ERR");
	while (conn_state(&l.from) != IBV_QPS_ERR && now() < end)
		usleep(1000);
	EXPECT(v, conn_state(&l.from) == IBV_QPS_ERR, "the queue pair is not in ERR");
	EXPECT(v, conn_state(&l.to) == IBV_QPS_RTS, "a queue pair of another CQ is not in RTS");
	expect_ids(v, q.cq, 0, 4);
	loop_close(&l);
	queue_destroy(&q);
}

/* ORN-CQ-11: four times its length, without an error. */
static void ignore_overrun(struct dev *d, struct verdict *v)
{
	struct queue q = small_queue(d, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	volatile uint64_t *last;
	double end = now() + SOON;
	struct loop l;

	loop_open(&l, d, &q, NULL);
	last = (volatile uint64_t *)(l.mem + 64);
	for (uint64_t i = 1; i <= 16; i++) {
		*(uint64_t *)l.mem = i;
		loop_write(&l, i);
		while (*last != i && now() < end)
			sched_yield();
	}
	EXPECT(v, *last == 16, "write %lu was the last one", *last);
	EXPECT(v, !async_event(d, IBV_EVENT_CQ_ERR, AWHILE), "CQ_ERR");
	EXPECT(v, conn_state(&l.from) == IBV_QPS_RTS, "the queue pair is not in RTS");
	loop_close(&l);
	queue_destroy(&q);
}

static void resize(struct ibv_cq *cq, int cqe, struct verdict *v)
{
	int err = ibv_resize_cq(cq, cqe);

	EXPECT(v, !err, "resize to %d: %s", cqe, strerror(err));
	EXPECT(v, cq->cqe >= cqe, "%d entries after a resize to %d", cq->cqe, cqe);
}

/* ORN-CQ-22, ORN-CQ-24: the device continues to write; each completion comes once, in order. */
static void resize_under_traffic(struct dev *d, struct verdict *v)
{
	static const int sizes[] = { 65, 200, 1000, 70, 4096, 64, 300 };
	struct queue q;
	struct loop l;
	uint64_t id = 0;

	queue_create(&q, d, WRITES, false);
	loop_open(&l, d, &q, NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < WRITES; i++)
			loop_write(&l, id + i);
		if (round % 3)
			expect_ids(v, q.cq, id, round % WRITES);
		resize(q.cq, sizes[round % 7], v);
		if (round % 3)
			expect_ids(v, q.cq, id + round % WRITES, WRITES - round % WRITES);
		else
			expect_ids(v, q.cq, id, WRITES);
		id += WRITES;
	}
	loop_close(&l);
	queue_destroy(&q);
}

/* ORN-CQ-28: a waiting thread is woken, whichever ring has received the completion. */
static void resize_while_waiting(struct dev *d, struct verdict *v)
{
	struct queue q;
	struct loop l;

	queue_create(&q, d, 64, true);
	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < 20; i++) {
		if (ibv_req_notify_cq(q.cq, 0))
			bail("ibv_req_notify_cq failed");
		if (i % 2)
			loop_write(&l, i);
		resize(q.cq, i % 3 ? 100 : 20, v);
		if (!(i % 2))
			loop_write(&l, i);
		EXPECT(v, channel_event(q.channel, SOON) == q.cq, "no event, round %d", i);
		expect_ids(v, q.cq, i, 1);
	}
	EXPECT(v, !channel_event(q.channel, AWHILE), "one event too many");
	loop_close(&l);
	queue_destroy(&q);
}

/* While the writes have not completed, the CQ keeps its size: more than 4 may complete. */
static void resize_refused(struct dev *d, struct verdict *v)
{
	double end = now() + SOON;
	struct queue q;
	struct loop l;
	int err;

	queue_create(&q, d, 16, false);
	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < 6; i++)
		loop_write(&l, i);
	while (!(err = ibv_resize_cq(q.cq, 4)) && now() < end)
		EXPECT(v, q.cq->cqe == 16, "%d entries for 6 work requests", q.cq->cqe);
	EXPECT(v, err == EINVAL, "4 entries for 6 completions");
	EXPECT(v, ibv_resize_cq(q.cq, 0) == EINVAL, "no entries");
	EXPECT(v, ibv_resize_cq(q.cq, d->attr.max_cqe + 1) == EINVAL, "too many entries");
	expect_ids(v, q.cq, 0, 6);
	resize(q.cq, 4, v);
	loop_close(&l);
	queue_destroy(&q);
}

const struct cq_test size_tests[] = {
	{ "overflow", overflow },
	{ "ignore_overrun", ignore_overrun },
	{ "resize_under_traffic", resize_under_traffic },
	{ "resize_while_waiting", resize_while_waiting },
	{ "resize_refused", resize_refused },
	{ }
};
