// SPDX-License-Identifier: GPL-2.0
/*
 * Messages between two processes whose threads share queues.
 *
 * A message contains its poster and its sequence number, and so does the wr_id of its send.
 * Every pair of these completes once as a send here and once as a receive there: a counter
 * for each finds lost messages and duplicates. If one thread polls a CQ, it also checks
 * that the messages of a poster come in order.
 *
 * A thread that polls a receive posts its slot again, so several threads post receives,
 * too.
 */
#include "storm_traffic.h"
#include "pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT		4096u
#define WINDOW		16u		/* messages of a poster in flight */
#define RECVS		32u		/* slots per queue pair */
#define BATCH		8
#define RECV_BIT	(1ull << 63)	/* in a wr_id */
/* 1 s, eight times: longer than the interface is ever down; longer on a slow kernel */
#define TIMEOUT		18
#define WAKE_MS		50		/* period of the checks whether the test is over */

struct head {
	uint32_t poster;
	uint32_t seq;
	uint32_t len;
	uint32_t qp;
};

struct traffic;

struct worker {
	struct traffic *t;
	unsigned int number;
	pthread_t thread;
};

struct traffic {
	struct storm *s;
	const struct traffic_plan *plan;
	unsigned int messages;
	uint8_t *buf;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_cq **cq;
	struct conn *conn;
	struct worker *posters, *pollers;
	_Atomic bool *busy;		/* send slots */
	_Atomic uint8_t *sent, *got;	/* by poster and sequence number */
	_Atomic uint32_t *next_sent;	/* by queue pair and poster */
	_Atomic uint32_t *next_got;
	_Atomic uint32_t sent_total, got_total;
	_Atomic bool done;
};

static uint32_t total(const struct traffic *t)
{
	return t->plan->posters * t->messages;
}

static bool ended(struct traffic *t)
{
	return atomic_load(&t->done) || atomic_load(&t->s->over);
}

/* Return the seed of a message's content, known to both ends. */
static uint64_t seed_of(uint32_t poster, uint32_t seq)
{
	return (uint64_t)poster << 32 | seq;
}

static uint32_t length_of(uint32_t poster, uint32_t seq)
{
	struct rnd r;

	rnd_init(&r, seq, poster);
	return sizeof(struct head) + rnd_below(&r, SLOT - sizeof(struct head) + 1);
}

static uint8_t *recv_slot(struct traffic *t, uint32_t slot)
{
	return t->buf + (size_t)(t->plan->posters * WINDOW + slot) * SLOT;
}

static int post_recv(struct traffic *t, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)recv_slot(t, slot), SLOT, t->mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = RECV_BIT | slot, .sg_list = &sge, .num_sge = 1,
	};

	if (t->srq)
		return ibv_post_srq_recv(t->srq, &wr, &bad);
	return ibv_post_recv(t->conn[slot / RECVS].qp, &wr, &bad);
}

/* Check the order, if this thread alone polls the CQ of the queue pair. */
static void check_order(struct traffic *t, _Atomic uint32_t *next, uint32_t qp, uint32_t poster,
			uint32_t seq, const char *what)
{
	_Atomic uint32_t *at = &next[qp * t->plan->posters + poster];

	if (t->plan->pollers > 1)
		return;
	if (seq < atomic_load_explicit(at, memory_order_relaxed))
		storm_fail(t->s, "%s %u of poster %u came after %u", what, seq, poster,
			   atomic_load(at) - 1);
	atomic_store_explicit(at, seq + 1, memory_order_relaxed);
}

static void check_once(struct traffic *t, _Atomic uint8_t *count, uint32_t poster, uint32_t seq,
		       const char *what)
{
	if (atomic_fetch_add(&count[(size_t)poster * t->messages + seq], 1))
		storm_fail(t->s, "%s %u of poster %u came twice", what, seq, poster);
}

static void took_send(struct traffic *t, const struct ibv_wc *wc)
{
	uint32_t poster = wc->wr_id >> 32 & 0xff, qp = wc->wr_id >> 40, seq = wc->wr_id;

	if (poster >= t->plan->posters || seq >= t->messages || qp >= t->plan->qps ||
	    wc->qp_num != t->conn[qp].qp->qp_num) {
		storm_fail(t->s, "send completion with wr_id %#llx of queue pair %#x",
			   (unsigned long long)wc->wr_id, wc->qp_num);
		return;
	}
	check_once(t, t->sent, poster, seq, "send completion");
	check_order(t, t->next_sent, qp, poster, seq, "send completion");
	atomic_store_explicit(&t->busy[poster * WINDOW + seq % WINDOW], false,
			      memory_order_release);
	atomic_fetch_add(&t->sent_total, 1);
}

static void check_message(struct traffic *t, const struct ibv_wc *wc, const uint8_t *slot)
{
	uint64_t seed;
	struct head h;
	uint32_t len;
	size_t at;

	memcpy(&h, slot, sizeof(h));
	if (wc->byte_len < sizeof(h) || h.poster >= t->plan->posters || h.seq >= t->messages ||
	    h.qp >= t->plan->qps || h.len != wc->byte_len ||
	    h.len != length_of(h.poster, h.seq)) {
		storm_fail(t->s, "message of %u bytes says it is %u of poster %u, %u bytes long",
			   wc->byte_len, h.seq, h.poster, h.len);
		return;
	}
	if (wc->qp_num != t->conn[h.qp].qp->qp_num)
		storm_fail(t->s, "message for queue pair %#x came to %#x",
			   t->conn[h.qp].qp->qp_num, wc->qp_num);
	seed = seed_of(h.poster, h.seq);
	len = h.len - sizeof(h);
	at = pattern_check(slot + sizeof(h), len, seed, 0);
	if (at < len)
		storm_fail(t->s, "byte %zu of message %u of poster %u is wrong", at, h.seq,
			   h.poster);
	check_once(t, t->got, h.poster, h.seq, "message");
	check_order(t, t->next_got, h.qp, h.poster, h.seq, "message");
}

static void took_recv(struct traffic *t, const struct ibv_wc *wc)
{
	uint64_t slot = wc->wr_id & ~RECV_BIT;
	int err;

	if (slot >= t->plan->qps * RECVS) {
		storm_fail(t->s, "receive completion with wr_id %#llx",
			   (unsigned long long)wc->wr_id);
		return;
	}
	check_message(t, wc, recv_slot(t, slot));
	err = post_recv(t, slot);
	if (err && !storm_gone(t->s))
		storm_fail(t->s, "cannot post a receive again: %s", strerror(err));
	atomic_fetch_add(&t->got_total, 1);
}

static void took(struct traffic *t, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		if (!storm_gone(t->s))
			storm_fail(t->s, "completion of %s with status %s",
				   wc->wr_id & RECV_BIT ? "a receive" : "a send",
				   ibv_wc_status_str(wc->status));
	} else if (wc->wr_id & RECV_BIT) {
		took_recv(t, wc);
	} else {
		took_send(t, wc);
	}
}

/* Poll at most @max completions; return their number. */
static int take(struct traffic *t, struct ibv_cq *cq, int max)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, max, wc);

	if (n < 0)
		storm_fail(t->s, "ibv_poll_cq failed");
	for (int i = 0; i < n; i++)
		took(t, &wc[i]);
	return n;
}

static void *poller(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->t;
	struct ibv_cq *cq = t->cq[w->number % t->plan->cqs];
	struct rnd r;

	rnd_init(&r, t->s->seed, w->number);
	while (!ended(t))
		if (take(t, cq, 1 + rnd_below(&r, BATCH)) <= 0)
			sched_yield();
	return NULL;
}

static int arm_and_drain(struct traffic *t, struct ibv_cq *cq)
{
	if (ibv_req_notify_cq(cq, 0))
		return -1;
	while (!ended(t) && take(t, cq, BATCH) > 0)
		;
	return 0;
}

/* An event goes to any one of the waiters; a waiter polls only the CQs of its events. */
static void *waiter(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->t;
	struct pollfd fd = { .fd = t->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	while (!ended(t)) {
		if (poll(&fd, 1, WAKE_MS) <= 0)
			continue;
		if (ibv_get_cq_event(t->channel, &cq, &context)) {
			if (errno != EAGAIN && !storm_gone(t->s))
				storm_fail(t->s, "ibv_get_cq_event: %s", strerror(errno));
			continue;
		}
		ibv_ack_cq_events(cq, 1);
		if (arm_and_drain(t, cq))
			storm_fail(t->s, "ibv_req_notify_cq failed");
	}
	return NULL;
}

static void make_message(uint8_t *slot, uint32_t poster, uint32_t seq, uint32_t qp)
{
	struct head h = { poster, seq, length_of(poster, seq), qp };

	memcpy(slot, &h, sizeof(h));
	pattern_fill(slot + sizeof(h), h.len - sizeof(h), seed_of(poster, seq), 0);
}

/* A full queue makes the poster wait. */
static void post_message(struct traffic *t, uint32_t poster, uint32_t seq, uint32_t qp)
{
	uint32_t n = poster * WINDOW + seq % WINDOW;
	uint8_t *slot = t->buf + (size_t)n * SLOT;
	struct ibv_sge sge = { (uintptr_t)slot, length_of(poster, seq), t->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = (uint64_t)qp << 40 | (uint64_t)poster << 32 | seq,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};
	int err;

	while (atomic_load_explicit(&t->busy[n], memory_order_acquire) && !ended(t))
		sched_yield();
	make_message(slot, poster, seq, qp);
	atomic_store(&t->busy[n], true);
	while ((err = ibv_post_send(t->conn[qp].qp, &wr, &bad)) == ENOMEM && !ended(t))
		sched_yield();
	if (err && !ended(t) && !storm_gone(t->s))
		storm_fail(t->s, "ibv_post_send: %s", strerror(err));
}

static void *poster(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->t;
	struct rnd r;

	rnd_init(&r, t->s->seed, 1000 + w->number);
	for (uint32_t seq = 0; seq < t->messages && !ended(t); seq++)
		post_message(t, w->number, seq, rnd_below(&r, t->plan->qps));
	return NULL;
}

static void *make_array(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		bail("out of memory");
	return p;
}

static void make_memory(struct traffic *t)
{
	const struct traffic_plan *plan = t->plan;
	size_t slots = plan->posters * WINDOW + plan->qps * RECVS;

	t->buf = aligned_alloc(4096, slots * SLOT);
	t->mr = ibv_reg_mr(t->s->dev.pd, t->buf, slots * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	t->cq = make_array(plan->cqs, sizeof(*t->cq));
	t->conn = make_array(plan->qps, sizeof(*t->conn));
	t->busy = make_array(plan->posters * WINDOW, sizeof(*t->busy));
	t->sent = make_array(total(t), sizeof(*t->sent));
	t->got = make_array(total(t), sizeof(*t->got));
	t->next_sent = make_array(plan->qps * plan->posters, sizeof(*t->next_sent));
	t->next_got = make_array(plan->qps * plan->posters, sizeof(*t->next_got));
}

static void make_channel(struct traffic *t)
{
	if (!t->plan->events)
		return;
	t->channel = ibv_create_comp_channel(t->s->dev.verbs);
	if (!t->channel || fcntl(t->channel->fd, F_SETFL, O_NONBLOCK))
		bail("no completion channel: %s", strerror(errno));
}

static void make_queues(struct traffic *t, struct oob *o)
{
	const struct traffic_plan *plan = t->plan;
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = plan->qps * RECVS, .max_sge = 1 },
	};
	struct conn_attr attr;

	make_channel(t);
	for (unsigned int i = 0; i < plan->cqs; i++) {
		t->cq[i] = ibv_create_cq(t->s->dev.verbs, 128 * plan->qps, NULL, t->channel, 0);
		if (!t->cq[i])
			bail("ibv_create_cq: %s", strerror(errno));
	}
	conn_attr_default(&attr, &t->s->dev);
	attr.timeout = TIMEOUT;
	while (1u << (attr.timeout - TIMEOUT) < t->s->divisor)
		attr.timeout++;
	if (plan->srq) {
		attr.srq = t->srq = ibv_create_srq(t->s->dev.pd, &init);
		if (!t->srq)
			bail("ibv_create_srq: %s", strerror(errno));
	}
	for (unsigned int i = 0; i < plan->qps; i++) {
		struct queue q = { .cq = t->cq[i % plan->cqs] };

		conn_create(&t->conn[i], &t->s->dev, &attr, &q, &q);
	}
	for (unsigned int i = 0; i < plan->qps * RECVS; i++)
		if (post_recv(t, i))
			bail("cannot post a receive");
	for (unsigned int i = 0; i < plan->cqs; i++)
		if (plan->events && arm_and_drain(t, t->cq[i]))
			bail("ibv_req_notify_cq failed");
	for (unsigned int i = 0; i < plan->qps; i++)
		conn_connect(&t->conn[i], o);
}

/* A device that is gone takes its objects along. */
static void free_all(struct traffic *t)
{
	const struct traffic_plan *plan = t->plan;

	for (unsigned int i = 0; i < plan->qps; i++)
		conn_destroy(&t->conn[i]);
	if (t->srq && ibv_destroy_srq(t->srq))
		bail("ibv_destroy_srq: %s", strerror(errno));
	for (unsigned int i = 0; i < plan->cqs; i++)
		if (ibv_destroy_cq(t->cq[i]))
			bail("ibv_destroy_cq: %s", strerror(errno));
	if (t->channel && ibv_destroy_comp_channel(t->channel))
		bail("ibv_destroy_comp_channel: %s", strerror(errno));
	if (ibv_dereg_mr(t->mr))
		bail("ibv_dereg_mr: %s", strerror(errno));
	free(t->next_got);
	free(t->next_sent);
	free(t->got);
	free(t->sent);
	free(t->busy);
	free(t->conn);
	free(t->cq);
	free(t->buf);
}

static struct worker *start(struct traffic *t, unsigned int count, void *(*run)(void *))
{
	struct worker *w = make_array(count, sizeof(*w));

	for (unsigned int i = 0; i < count; i++) {
		w[i] = (struct worker){ .t = t, .number = i };
		w[i].thread = thread_start(run, &w[i]);
	}
	return w;
}

static void join(struct worker *w, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pthread_join(w[i].thread, NULL);
	free(w);
}

/* The queues of a process end with the device, without completions: an event reports it. */
static bool told_gone(struct storm *s)
{
	struct pollfd fd = { .fd = s->dev.verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool fatal;

	if (!s->unplug || poll(&fd, 1, 0) <= 0 || ibv_get_async_event(s->dev.verbs, &event))
		return false;
	fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
	ibv_ack_async_event(&event);
	return fatal && storm_gone(s);
}

/* Wait until every message was sent and as many came, or until progress stops. */
static void wait_for_all(struct traffic *t)
{
	double moved = now();
	uint64_t last = 0;

	while (!atomic_load(&t->s->over)) {
		uint32_t sent = atomic_load(&t->sent_total), got = atomic_load(&t->got_total);

		if ((sent == total(t) && got == total(t)) || told_gone(t->s))
			return;
		if (last != (uint64_t)sent + got) {
			last = (uint64_t)sent + got;
			moved = now();
		} else if (now() - moved > t->s->patience) {
			storm_fail(t->s, "nothing moves: %u of %u sends completed, %u messages came",
				   sent, total(t), got);
		}
		usleep(5000);
	}
}

/* Completions in excess of the work would be left over. */
static void expect_empty(struct traffic *t)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < t->plan->cqs; i++)
		if (ibv_poll_cq(t->cq[i], 1, &wc))
			storm_fail(t->s, "a completion too many, status %s",
				   ibv_wc_status_str(wc.status));
}

void traffic_run(struct storm *s, struct oob *o, const struct traffic_plan *plan,
		 unsigned int messages)
{
	unsigned int pollers = plan->events ? plan->pollers : plan->pollers * plan->cqs;
	struct traffic t = { .s = s, .plan = plan, .messages = messages };

	make_memory(&t);
	make_queues(&t, o);
	storm_wait_gate(s);
	oob_barrier(o);
	t.pollers = start(&t, pollers, plan->events ? waiter : poller);
	t.posters = start(&t, plan->posters, poster);
	wait_for_all(&t);
	atomic_store(&t.done, true);
	join(t.posters, plan->posters);
	join(t.pollers, pollers);
	oob_barrier(o);
	if (!atomic_load(&s->over))
		expect_empty(&t);
	free_all(&t);
}
