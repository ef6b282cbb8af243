// SPDX-License-Identifier: GPL-2.0
/*
 * Completion events: on the chosen vector, through the chosen channel, for the requested
 * completions, and no sooner than moderation allows.
 */
#include "cq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CQS	4

static void arm(struct ibv_cq *cq, int solicited_only)
{
	int err = ibv_req_notify_cq(cq, solicited_only);

	if (err)
		bail("ibv_req_notify_cq: %s", strerror(err));
}

/*
 * Return the number of interrupts of completion vector @n on all processors, -1 if it has
 * no line.
 */
static long interrupts(int n)
{
	char line[1024], name[32], *at;
	long sum = -1;
	FILE *f = fopen("/proc/interrupts", "r");

	snprintf(name, sizeof(name), "ornic-comp%d@", n);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, name))
			continue;
		at = strchr(line, ':') + 1;
		for (sum = 0; strspn(at, " 0123456789") > strspn(at, " ");)
			sum += strtol(at, &at, 10);
	}
	if (f)
		fclose(f);
	return sum;
}

/*
 * The event of a CQ on vector @n raises the interrupt of that vector and of no other. Only
 * vector 0 also carries the events of management datagrams.
 */
static void one_vector(struct dev *d, int n, struct verdict *v)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(d->verbs);
	int vectors = d->verbs->num_comp_vectors;
	long before[64] = {}, after;
	struct queue q = { .channel = channel };
	struct loop l;

	q.cq = ibv_create_cq(d->verbs, 16, NULL, channel, n);
	if (!q.cq)
		bail("cannot create a CQ on vector %d: %s", n, strerror(errno));
	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < vectors && i < 64; i++)
		before[i] = interrupts(i);
	arm(q.cq, 0);
	loop_write(&l, 1);
	EXPECT(v, channel_event(channel, SOON) == q.cq, "no event on vector %d", n);
	expect_ids(v, q.cq, 1, 1);
	for (int i = 0; i < vectors && i < 64; i++) {
		after = interrupts(i);
		EXPECT(v, before[i] < 0 || (!i && n) || (i == n) == (after > before[i]),
		       "a CQ on vector %d: vector %d had %ld interrupts", n, i, after - before[i]);
	}
	EXPECT(v, before[n] >= 0, "/proc/interrupts has no line of vector %d", n);
	loop_close(&l);
	queue_destroy(&q);
}

static void vectors(struct dev *d, struct verdict *v)
{
	EXPECT(v, d->verbs->num_comp_vectors > 1, "only one vector");
	for (int i = 0; i < d->verbs->num_comp_vectors; i++)
		one_vector(d, i, v);
}

/* Several queues with one channel: the event names the right one. */
static void one_channel(struct dev *d, struct verdict *v)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(d->verbs);
	struct queue q[CQS] = {};
	struct loop l[CQS];

	for (int i = 0; i < CQS; i++) {
		q[i].cq = ibv_create_cq(d->verbs, 16, NULL, channel, 0);
		loop_open(&l[i], d, &q[i], NULL);
		arm(q[i].cq, 0);
	}
	for (int round = 0; round < 2 * CQS; round++) {
		int i = (round * 3 + 1) % CQS;

		loop_write(&l[i], round);
		EXPECT(v, channel_event(channel, SOON) == q[i].cq, "no event of queue %d", i);
		expect_ids(v, q[i].cq, round, 1);
		arm(q[i].cq, 0);
	}
	EXPECT(v, !channel_event(channel, AWHILE), "one event too many");
	for (int i = 0; i < CQS; i++) {
		loop_close(&l[i]);
		queue_destroy(&q[i]);
	}
	ibv_destroy_comp_channel(channel);
}

/* ORN-RNG-9, ORN-CQ-14: the sender decides about the event; an error always raises one. */
static void solicited(struct dev *d, struct verdict *v)
{
	struct queue send, recv;
	struct loop l;

	queue_create(&send, d, 64, false);
	queue_create(&recv, d, 64, true);
	loop_open(&l, d, &send, &recv);
	arm(recv.cq, 1);
	for (int i = 0; i < 3; i++)
		loop_send(&l, i, false);
	expect_ids(v, recv.cq, 0, 3);
	EXPECT(v, !channel_event(recv.channel, AWHILE), "an event that nobody solicited");
	loop_send(&l, 3, true);
	EXPECT(v, channel_event(recv.channel, SOON) == recv.cq, "no solicited event");
	expect_ids(v, recv.cq, 3, 1);
	arm(recv.cq, 1);
	loop_send(&l, 4, true);
	expect_ids(v, recv.cq, 4, 1);
	EXPECT(v, channel_event(recv.channel, SOON) == recv.cq, "no second solicited event");
	arm(recv.cq, 1);
	loop_send(&l, 5, false);
	expect_ids(v, recv.cq, 5, 1);
	EXPECT(v, !channel_event(recv.channel, AWHILE), "an event after a solicited one");
	expect_ids(v, send.cq, 0, 6);
	loop_close(&l);
	queue_destroy(&recv);
	queue_destroy(&send);
}

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { count, period },
	};
	int err = ibv_modify_cq(cq, &attr);

	if (err)
		bail("ibv_modify_cq: %s", strerror(err));
}

/*
 * ORN-CQ-4. The longest period is 65 ms. A burst of few completions must raise its event
 * late, and a full burst early. The writes are posted one after the other's completion.
 */
static double until_event(struct loop *l, struct queue *q, int completions, struct verdict *v)
{
	double begin;

	arm(q->cq, 0);
	begin = now();
	for (int i = 0; i < completions; i++) {
		loop_write(l, i);
		expect_ids(v, q->cq, i, 1);
	}
	EXPECT(v, channel_event(q->channel, SOON) == q->cq, "no event");
	return now() - begin;
}

static void moderation(struct dev *d, struct verdict *v)
{
	double late = 0, early = 0, plain = 0;
	struct queue q;
	struct loop l;

	queue_create(&q, d, 64, true);
	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < 5; i++) {
		moderate(q.cq, 60000, 60000);
		late += until_event(&l, &q, 1, v);
		moderate(q.cq, 3, 60000);
		early += until_event(&l, &q, 3, v);
		moderate(q.cq, 0, 0);
		plain += until_event(&l, &q, 1, v);
	}
	EXPECT(v, late >= 5 * 0.060, "an event before the period was over: %.3f s for five", late);
	EXPECT(v, early < late, "%.3f s with the count reached, %.3f s without", early, late);
	EXPECT(v, plain < late, "%.3f s without moderation, %.3f s with", plain, late);
	loop_close(&l);
	queue_destroy(&q);
}

static void expect_refused(struct dev *d, int entries, int vector, struct verdict *v)
{
	struct ibv_cq *cq = ibv_create_cq(d->verbs, entries, NULL, NULL, vector);

	EXPECT(v, !cq && errno == EINVAL, "%d entries on vector %d: %s", entries, vector,
	       cq ? "accepted" : strerror(errno));
	if (cq)
		ibv_destroy_cq(cq);
}

static void refused(struct dev *d, struct verdict *v)
{
	expect_refused(d, 16, d->verbs->num_comp_vectors, v);
	expect_refused(d, 16, -1, v);
	expect_refused(d, 0, 0, v);
	expect_refused(d, d->attr.max_cqe + 1, 0, v);
}

const struct cq_test event_tests[] = {
	{ "vectors", vectors },
	{ "one_channel", one_channel },
	{ "solicited", solicited },
	{ "moderation", moderation },
	{ "refused", refused },
	{ }
};
