// SPDX-License-Identifier: GPL-2.0
/*
 * engine/cq.c: entries, arming, moderation, overflow, and a host that publishes wrong values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "lib/nic.h"

#define LOG		4
#define ENTRIES		(1u << LOG)

struct fixture {
	struct engine e;
	struct nic n;
	struct nic_eq *eq;
	struct nic_eq *ceq;
	struct nic_cq *cq;
};

static const uint8_t mac[6] = { 2 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(engine_init(&f->e, 0), 0);
	nic_init(&f->n, &f->e, mac);
	f->eq = nic_eq_new(&f->n, 6, 0);
	f->ceq = nic_eq_new(&f->n, 4, 1);
	f->cq = nic_cq_new(&f->n, LOG, f->ceq, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nic_fini(&f->n);
	engine_fini(&f->e);
	free(f);
	return 0;
}

static void post(struct fixture *f, uint32_t id, uint32_t flags, uint8_t status)
{
	struct ornic_cqe cqe = {
		.wqe_id = htole32(id),
		.flags = htole32(flags),
		.status = status,
	};

	cq_post(&f->cq->cq, &cqe);
}

static struct ornic_cqe *next(struct fixture *f)
{
	return nic_next(&f->n, &f->cq->host);
}

static uint32_t poll_all(struct fixture *f)
{
	uint32_t n = 0;

	while (next(f))
		n++;
	nic_consumed(&f->n, &f->cq->host);
	return n;
}

static void arm(struct fixture *f, uint8_t sn, enum ornic_arm_type type)
{
	nic_arm(&f->n, &f->cq->host, sn, type);
}

/* Count completion events since the last call; the handler consumes them and arms. */
static uint32_t events(struct fixture *f)
{
	static uint8_t sn;
	struct ornic_eqe *e;
	uint32_t n = 0;

	nic_turns(&f->e);
	while ((e = nic_next(&f->n, &f->ceq->host))) {
		assert_int_equal(e->type, ORNIC_EV_COMPLETION);
		assert_int_equal(le32toh(e->number), f->cq->cq.number);
		assert_int_equal(le32toh(e->owner), 77);
		n++;
	}
	nic_consumed(&f->n, &f->ceq->host);
	nic_arm(&f->n, &f->ceq->host, ++sn, ORNIC_ARM_ANY);
	return n;
}

/* ORN-CQ-16 */
static void test_entry(void **state)
{
	struct fixture *f = *state;
	struct ornic_cqe *c;

	post(f, 42, 0, 0);
	c = next(f);
	assert_non_null(c);
	assert_int_equal(le32toh(c->wqe_id), 42);
	assert_int_equal(c->timestamp, 0);
	assert_null(next(f));
	assert_int_equal(nic_rec(&f->n, &f->cq->host)->notify, 0);
}

/* ORN-CLK-3 */
static void test_timestamp(void **state)
{
	struct fixture *f = *state;
	struct ornic_cqe *c;
	uint64_t before = engine_clock();

	f->cq->cq.flags = ORNIC_CQ_F_TIMESTAMP;
	post(f, 1, 0, 0);
	c = next(f);
	assert_true(le64toh(c->timestamp) >= before);
	assert_true(le64toh(c->timestamp) <= engine_clock());
}

/* ORN-RNG-15 */
static void test_laps(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t k = 0; k < i % (ENTRIES + 1); k++)
			post(f, k, 0, 0);
		assert_int_equal(poll_all(f), i % (ENTRIES + 1));
	}
	assert_false(f->cq->cq.error);
}

static void test_unarmed_is_silent(void **state)
{
	struct fixture *f = *state;

	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	assert_int_equal(events(f), 0);
}

/* Compare the next completion event; its info0 is the arm word @word. */
static void expect_event(struct fixture *f, uint32_t word)
{
	const struct ornic_eqe *e = nic_next(&f->n, &f->ceq->host);
	struct ornic_eqe want = {
		.type = ORNIC_EV_COMPLETION, .number = htole32(f->cq->cq.number),
		.owner = htole32(77), .info0 = word,
	};

	assert_non_null(e);
	want.timestamp = e->timestamp;
	want.phase = e->phase;
	assert_memory_equal(e, &want, sizeof(want));
}

/* An event has the arm word for which it fired, also if it waited meanwhile. */
static void test_event(void **state)
{
	struct fixture *f = *state;
	uint32_t word[3];

	for (uint32_t i = 0; i < 3; i++) {
		arm(f, i + 1, ORNIC_ARM_ANY);
		word[i] = nic_rec(&f->n, &f->cq->host)->arm;
		post(f, i, 0, 0);
		nic_turns(&f->e);
		assert_int_equal(poll_all(f), 1);
		assert_int_equal(f->n.dev.cnt[CNT_eq_held], !!i);
	}
	expect_event(f, word[0]);
	assert_null(nic_next(&f->n, &f->ceq->host));
	nic_consumed(&f->n, &f->ceq->host);
	eq_doorbell(&f->ceq->eq);
	nic_turns(&f->e);
	expect_event(f, word[2]);
	assert_null(nic_next(&f->n, &f->ceq->host));
	assert_int_equal(f->n.dev.cnt[CNT_eq_held], 1);
}

static void test_any(void **state)
{
	struct fixture *f = *state;

	arm(f, 1, ORNIC_ARM_ANY);
	assert_int_equal(events(f), 0);
	post(f, 1, 0, 0);
	assert_int_equal(events(f), 1);
	assert_true(f->n.irqs[1] <= 1);
	post(f, 2, 0, 0);
	assert_int_equal(events(f), 0);
	poll_all(f);
	arm(f, 2, ORNIC_ARM_ANY);
	post(f, 3, 0, 0);
	post(f, 4, 0, 0);
	assert_int_equal(events(f), 1);
}

static void test_solicited(void **state)
{
	struct fixture *f = *state;

	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 1, 0, 0);
	assert_int_equal(events(f), 0);
	post(f, 2, ORNIC_CQE_SOLICITED, 0);
	post(f, 3, 0, 0);
	assert_int_equal(events(f), 1);
	poll_all(f);
	arm(f, 2, ORNIC_ARM_SOLICITED);
	post(f, 4, 0, 0);
	assert_int_equal(events(f), 0);
	post(f, 5, 0, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(events(f), 1);
}

/* The process rewrites an entry before the device looks at the arm word (ORN-RNG-29). */
static void test_rewritten_entry(void **state)
{
	struct fixture *f = *state;
	uint8_t *ring = guest_at(&f->n.guest, f->cq->host.ring, 64 * ENTRIES);

	assert_int_equal(events(f), 0);
	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	memset(ring, 0, 64 * ENTRIES);
	assert_int_equal(events(f), 1);
	f->cq->host.index++;
	arm(f, 2, ORNIC_ARM_SOLICITED);
	post(f, 2, 0, 0);
	memset(ring, 0xff, 64 * ENTRIES);
	assert_int_equal(events(f), 0);
}

/*
 * Entries before the arm's index do not count. Entries after it do, even if written before the
 * arm.
 */
static void test_index(void **state)
{
	struct fixture *f = *state;

	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	poll_all(f);
	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 2, 0, 0);
	assert_int_equal(events(f), 0);
	poll_all(f);
	arm(f, 1, ORNIC_ARM_ANY);
	cq_doorbell(&f->cq->cq);
	assert_int_equal(events(f), 0);
	post(f, 3, 0, 0);
	assert_int_equal(events(f), 1);
	arm(f, 2, ORNIC_ARM_ANY);
	cq_doorbell(&f->cq->cq);
	assert_int_equal(events(f), 1);
}

static void test_raise_solicited_to_any(void **state)
{
	struct fixture *f = *state;

	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 1, 0, 0);
	assert_int_equal(events(f), 0);
	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 2, 0, 0);
	assert_int_equal(events(f), 1);
}

/* A solicited arm older than 2^23 entries still fires for the next solicited one. */
static void test_long_standing_arm(void **state)
{
	struct fixture *f = *state;

	f->cq->cq.flags = ORNIC_CQ_F_IGNORE_OVERRUN;
	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 1, 0, 0);
	nic_turns(&f->e);
	for (uint32_t i = 0; i < (1u << 23) + 100; i++)
		post(f, 1, 0, 0);
	assert_int_equal(events(f), 0);
	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	assert_int_equal(events(f), 1);
}

static void test_stale_solicited_is_void(void **state)
{
	struct fixture *f = *state;

	f->cq->cq.flags = ORNIC_CQ_F_IGNORE_OVERRUN;
	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	for (uint32_t i = 0; i <= ENTRIES; i++)
		post(f, 1, 0, 0);
	arm(f, 1, ORNIC_ARM_SOLICITED);
	cq_doorbell(&f->cq->cq);
	assert_int_equal(events(f), 0);
	assert_int_equal(nic_rec(&f->n, &f->cq->host)->notify, 0);
}

static void test_sn_wraps(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i < 100; i++) {
		arm(f, i, ORNIC_ARM_ANY);
		post(f, i, 0, 0);
		assert_int_equal(events(f), 1);
		assert_int_equal(poll_all(f), 1);
	}
}

static void test_index_wraps(void **state)
{
	struct fixture *f = *state;
	struct cq *cq = &f->cq->cq;

	cq->prod = 0xffffffe0;
	cq->cons = cq->prod;
	cq->arm.looked = cq->prod;
	f->cq->host.index = cq->prod;
	nic_consumed(&f->n, &f->cq->host);
	for (uint32_t i = 1; i < 48; i++) {
		arm(f, i, ORNIC_ARM_ANY);
		assert_int_equal(events(f), 0);
		post(f, i, 0, 0);
		assert_int_equal(events(f), 1);
		poll_all(f);
	}
}

/* A process that arms in a loop costs one entry until that is read (ORN-EQ-10), at any index. */
static void test_one_unread_event_per_cq(void **state)
{
	struct fixture *f = *state;
	struct eq *eq = &f->ceq->eq;

	for (uint32_t round = 0; round < 6; round++) {
		uint32_t prod;

		if (round == 3) {
			eq->prod = 0xfffffffc;
			eq->cons = eq->prod;
			eq->arm.looked = eq->prod;
			f->ceq->host.index = eq->prod;
			f->cq->cq.evented = false;
			/* no valid entry in this lap and the next one */
			memset(guest_at(&f->n.guest, f->ceq->host.ring, 12 * 64), 0, 12 * 64);
			memset(guest_at(&f->n.guest, f->ceq->host.ring + 12 * 64, 4 * 64), 0xff,
			       4 * 64);
			nic_consumed(&f->n, &f->ceq->host);
		}
		assert_int_equal(events(f), 0);
		prod = eq->prod;
		for (uint32_t i = 1; i < 100; i++) {
			arm(f, i, ORNIC_ARM_ANY);
			post(f, i, 0, 0);
			nic_turns(&f->e);
			poll_all(f);
		}
		assert_int_equal(eq->prod, prod + 1);
		assert_true(f->cq->cq.held);
		assert_int_equal(f->n.dev.cnt[CNT_eq_held], round + 1);
		assert_int_equal(nic_rec(&f->n, &f->ceq->host)->notify,
				 htole32(ORNIC_NOTIFY_ALWAYS));
		assert_int_equal(events(f), 1);
		eq_doorbell(eq);
		assert_int_equal(events(f), 1);
		assert_false(f->cq->cq.held);
		eq_doorbell(eq);
		assert_int_equal(events(f), 0);
		assert_int_equal(nic_rec(&f->n, &f->ceq->host)->notify, 0);
	}
	assert_int_equal(f->n.fatals, 0);
}

/* An unread event of another CQ, here the first one of the EQ, does not delay that of a new CQ. */
static void test_unread_event_of_other_cq(void **state)
{
	struct fixture *f = *state;
	struct nic_cq *other = nic_cq_new(&f->n, LOG, f->ceq, 0);
	struct ornic_cqe cqe = { 0 };

	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 1, 0, 0);
	nic_turns(&f->e);
	assert_int_equal(f->ceq->eq.prod, 1);
	nic_arm(&f->n, &other->host, 1, ORNIC_ARM_ANY);
	cq_post(&other->cq, &cqe);
	nic_turns(&f->e);
	assert_int_equal(f->ceq->eq.prod, 2);
	assert_false(other->cq.held);
}

/* Consume @n events of CQs that were created one after the other. Return: number of events. */
static uint32_t events_of(struct fixture *f, const struct nic_cq *first, uint32_t n)
{
	const struct ornic_eqe *e;
	uint32_t i;

	for (i = 0; i < n && (e = nic_next(&f->n, &f->ceq->host)); i++)
		assert_int_equal(le32toh(e->number), first->cq.number + i);
	assert_null(nic_next(&f->n, &f->ceq->host));
	nic_consumed(&f->n, &f->ceq->host);
	return i;
}

/* More CQs fire than the EQ has room for: each one gets its event in the end (ORN-EQ-3). */
static void test_events_held_when_eq_full(void **state)
{
	enum { N = 50 };
	struct fixture *f = *state;
	struct nic_cq *cq[N];
	uint32_t seen[N + 2] = { 0 }, total = 0;
	struct ornic_eqe *e;

	for (int i = 0; i < N; i++) {
		struct ornic_cqe cqe = { .status = 0 };

		cq[i] = nic_cq_new(&f->n, 0, f->ceq, 0);
		nic_arm(&f->n, &cq[i]->host, 1, ORNIC_ARM_ANY);
		cq_post(&cq[i]->cq, &cqe);
	}
	nic_turns(&f->e);
	assert_true(f->n.dev.cnt[CNT_eq_held] > 0);
	while (total < N) {
		uint32_t before = total;

		while ((e = nic_next(&f->n, &f->ceq->host))) {
			seen[le32toh(e->number) - 1]++;
			total++;
		}
		nic_consumed(&f->n, &f->ceq->host);
		eq_doorbell(&f->ceq->eq);
		nic_turns(&f->e);
		assert_true(total > before);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(seen[cq[i]->cq.number - 1], 1);
	assert_false(eq_holding(&f->ceq->eq));
}

/* Fire the event of @cq by another completion. */
static void fire(struct fixture *f, struct nic_cq *cq, uint8_t sn)
{
	struct ornic_cqe cqe = { .status = 0 };

	nic_arm(&f->n, &cq->host, sn, ORNIC_ARM_ANY);
	cq_post(&cq->cq, &cqe);
	nic_turns(&f->e);
	assert_non_null(nic_next(&f->n, &cq->host));
	nic_consumed(&f->n, &cq->host);
}

/* A held event is written before a later one, also if the host has made room in between. */
static void test_order_of_held_events(void **state)
{
	struct fixture *f = *state;
	const uint32_t room = 1u << f->ceq->eq.log;
	struct nic_cq *cq[18];

	for (uint32_t i = 0; i < room + 2; i++)
		cq[i] = nic_cq_new(&f->n, 2, f->ceq, 0);
	for (uint32_t lap = 1; lap <= 3; lap++) {
		for (uint32_t i = 0; i < room + 2; i++) {
			if (i == room + 1)
				assert_int_equal(events_of(f, cq[0], room), room);
			fire(f, cq[i], lap);
			assert_int_equal(cq[i]->cq.held, i == room);
		}
		assert_int_equal(events_of(f, cq[room], 2), 2);
		assert_int_equal(f->n.dev.cnt[CNT_eq_held], 2 * lap);
	}
	assert_int_equal(f->n.fatals, 0);
}

/* ORN-ADM-4 */
static void test_destroyed_while_held(void **state)
{
	struct fixture *f = *state;

	events(f);
	for (uint32_t i = 1; i < 3; i++) {
		arm(f, i, ORNIC_ARM_ANY);
		post(f, i, 0, 0);
		nic_turns(&f->e);
	}
	assert_true(f->cq->cq.held);
	post(f, 3, 0, 0);
	nic_cq_del(&f->n, f->cq);
	assert_false(eq_holding(&f->ceq->eq));
	nic_turns(&f->e);
	assert_int_equal(f->ceq->eq.prod, 1);
}

/* ORN-CQ-18 */
static void test_change_of_eq(void **state)
{
	struct fixture *f = *state;

	events(f);
	for (uint32_t i = 1; i < 3; i++) {
		arm(f, i, ORNIC_ARM_ANY);
		post(f, i, 0, 0);
		nic_turns(&f->e);
	}
	cq_set_eq(&f->cq->cq, &f->eq->eq);
	assert_false(eq_holding(&f->ceq->eq));
	assert_int_equal(f->eq->eq.prod, 1);
	arm(f, 3, ORNIC_ARM_ANY);
	post(f, 3, 0, 0);
	nic_turns(&f->e);
	assert_int_equal(f->ceq->eq.prod, 1);
}

/* An event that is unread in the old EQ does not delay those in the new one. */
static void test_change_of_eq_with_unread_event(void **state)
{
	struct fixture *f = *state;

	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 1, 0, 0);
	nic_turns(&f->e);
	assert_int_equal(f->ceq->eq.prod, 1);
	device_event(&f->n.dev, ORNIC_EV_PORT_ACTIVE, 1, 0, 0, 0, 0);
	cq_set_eq(&f->cq->cq, &f->eq->eq);
	arm(f, 2, ORNIC_ARM_ANY);
	post(f, 2, 0, 0);
	nic_turns(&f->e);
	assert_int_equal(f->eq->eq.prod, 2);
	assert_false(f->cq->cq.held);
}

/* CQ in error: one event, no more entries, its queue pairs in ERR, others untouched. */
static void check_failed(struct fixture *f, uint32_t syndrome)
{
	struct nic_cq *good = nic_cq_new(&f->n, LOG, f->ceq, 0);
	struct nic_qp *user = nic_qp_new(&f->n, ORNIC_QPT_RAW, 0, good, f->cq);
	struct nic_qp *other = nic_qp_new(&f->n, ORNIC_QPT_RAW, 0, good, good);
	struct nic_qp *reset = nic_qp_new(&f->n, ORNIC_QPT_RAW, 0, f->cq, f->cq);
	uint32_t prod;
	struct ornic_eqe *e;

	nic_qp_rts(user);
	nic_qp_rts(other);
	post(f, 99, 0, 0);
	prod = f->cq->cq.prod;
	assert_true(f->cq->cq.error);
	assert_int_equal(f->cq->cq.syndrome, syndrome);
	nic_turns(&f->e);
	assert_int_equal(user->qp.state, ORNIC_QPS_ERR);
	assert_int_equal(other->qp.state, ORNIC_QPS_RTS);
	assert_int_equal(reset->qp.state, ORNIC_QPS_RESET);
	e = nic_next(&f->n, &f->eq->host);
	assert_non_null(e);
	assert_int_equal(e->type, ORNIC_EV_CQ_ERR);
	assert_int_equal(le32toh(e->number), f->cq->cq.number);
	assert_int_equal(le32toh(e->owner), 77);
	assert_int_equal(le32toh(e->syndrome), syndrome);
	assert_null(nic_next(&f->n, &f->eq->host));
	for (int i = 0; i < 100; i++)
		post(f, i, 0, 0);
	nic_turns(&f->e);
	assert_int_equal(f->cq->cq.prod, prod);
	assert_null(nic_next(&f->n, &f->eq->host));
	assert_int_equal(f->n.fatals, 0);
}

/*
 * A guest may let all CQs fail at the end of one turn. The looks visit no queue pair: one later
 * visit of each serves all CQs.
 */
static void test_many_fail(void **state)
{
	enum { N = 16 };
	struct fixture *f = *state;
	struct ornic_cqe cqe = {};
	struct nic_cq *cq[N];
	struct nic_qp *qp[N];

	for (int i = 0; i < N; i++) {
		cq[i] = nic_cq_new(&f->n, LOG, f->ceq, 0);
		qp[i] = nic_qp_new(&f->n, ORNIC_QPT_RAW, 0, f->cq, cq[i]);
		nic_qp_rts(qp[i]);
	}
	nic_turns(&f->e);
	for (int i = 0; i < N; i++) {
		cq_post(&cq[i]->cq, &cqe);
		cq[i]->cq.rec = 0x1000;		/* no memory */
	}
	for (int i = 0; i < N; i++) {
		cq_look(&cq[i]->cq);
		assert_true(cq[i]->cq.error);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(qp[i]->qp.state, ORNIC_QPS_RTS);
	engine_turn(&f->e);
	for (int i = 0; i < N; i++) {
		assert_int_equal(qp[i]->qp.state, ORNIC_QPS_ERR);
		assert_int_equal(qp[i]->qp.syndrome, ORNIC_SYN_RING_MEMORY);
	}
}

/* ORN-CQ-3, ORN-CQ-10 */
static void test_overflow(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		post(f, i, 0, 0);
	assert_false(f->cq->cq.error);
	check_failed(f, ORNIC_SYN_RING_FULL);
	assert_int_equal(f->n.dev.cnt[CNT_cq_overflows], 1);
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(le32toh(next(f)->wqe_id), i);
	assert_null(next(f));
}

/* ORN-CQ-11 */
static void test_ignore_overrun(void **state)
{
	struct fixture *f = *state;

	f->cq->cq.flags = ORNIC_CQ_F_IGNORE_OVERRUN;
	nic_rec(&f->n, &f->cq->host)->host_index = htole32(12345);
	for (uint32_t i = 0; i < 10 * ENTRIES; i++)
		post(f, i, 0, 0);
	assert_false(f->cq->cq.error);
	assert_int_equal(f->cq->cq.prod, 10 * ENTRIES);
}

/* ORN-RNG-8 */
static void test_index_beyond_producer(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		post(f, i, 0, 0);
	nic_rec(&f->n, &f->cq->host)->host_index = htole32(ENTRIES + 1);
	check_failed(f, ORNIC_SYN_RING_INDEX);
}

static void test_index_going_back(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		post(f, i, 0, 0);
	poll_all(f);
	for (uint32_t i = 0; i < ENTRIES; i++)
		post(f, i, 0, 0);
	assert_false(f->cq->cq.error);
	nic_rec(&f->n, &f->cq->host)->host_index = htole32(ENTRIES - 1);
	check_failed(f, ORNIC_SYN_RING_INDEX);
}

static void test_ring_unreachable(void **state)
{
	struct fixture *f = *state;

	guest_hide(&f->n.guest, f->cq->host.ring);
	check_failed(f, ORNIC_SYN_RING_MEMORY);
}

static void test_record_unreachable(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		post(f, i, 0, 0);
	guest_hide(&f->n.guest, f->cq->host.rec);
	check_failed(f, ORNIC_SYN_RING_MEMORY);
}

static void test_record_unreachable_at_look(void **state)
{
	struct fixture *f = *state;

	post(f, 1, 0, 0);
	guest_hide(&f->n.guest, f->cq->host.rec);
	nic_turns(&f->e);
	assert_true(f->cq->cq.error);
	assert_int_equal(nic_rec(&f->n, &f->ceq->host)->notify, 0);
}

/* Entries written before the failure are announced before the failure. */
static void test_announced_before_failure(void **state)
{
	struct fixture *f = *state;

	arm(f, 1, ORNIC_ARM_ANY);
	for (uint32_t i = 0; i <= ENTRIES; i++)
		post(f, i, 0, 0);
	assert_true(f->cq->cq.error);
	assert_int_equal(events(f), 1);
}

static void moderate(struct fixture *f, uint16_t count, uint16_t period_us)
{
	cq_moderate(&f->cq->cq, count, period_us);
}

/* One turn only, without waiting for the moderation period. */
static uint32_t events_now(struct fixture *f)
{
	uint32_t before = f->ceq->eq.prod;

	engine_turn(&f->e);
	return f->ceq->eq.prod - before;
}

/* ORN-CQ-4 */
static void test_moderation_by_count(void **state)
{
	struct fixture *f = *state;

	moderate(f, 5, 60000);
	for (uint32_t sn = 1; sn <= 2; sn++) {
		arm(f, sn, ORNIC_ARM_ANY);
		for (uint32_t i = 0; i < 4; i++) {
			post(f, i, 0, 0);
			assert_int_equal(events_now(f), 0);
		}
		post(f, 4, 0, 0);
		assert_int_equal(events_now(f), 1);
		assert_false(timer_armed(&f->cq->cq.mod_timer));
		assert_int_equal(events(f), 1);
		poll_all(f);
	}
}

static void test_moderation_by_period(void **state)
{
	struct fixture *f = *state;
	uint64_t start = engine_clock();

	moderate(f, 1000, 2000);
	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 0, 0, 0);
	assert_int_equal(events_now(f), 0);
	while (!events_now(f))
		assert_true(engine_clock() - start < 5000000000ull);
	assert_true(engine_clock() - start >= 2000000);
	assert_int_equal(events(f), 1);
}

static void test_moderation_zero_is_at_once(void **state)
{
	struct fixture *f = *state;

	moderate(f, 0, 60000);
	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 0, 0, 0);
	assert_int_equal(events_now(f), 1);
	assert_int_equal(events(f), 1);
	moderate(f, 100, 0);
	poll_all(f);
	arm(f, 2, ORNIC_ARM_ANY);
	post(f, 0, 0, 0);
	assert_int_equal(events_now(f), 1);
}

/* ORN-CQ-4: a change holds for an event that is due, from the time of the first entry on. */
static void test_moderation_change(void **state)
{
	static const struct { uint16_t count, period_us; } faster[] = {
		{ 0, 0 }, { 0, 60000 }, { 1000, 0 }, { 1, 60000 },
	};
	struct fixture *f = *state;
	struct timer *t = &f->cq->cq.mod_timer;
	uint64_t expires;

	for (uint32_t i = 0; i < sizeof(faster) / sizeof(faster[0]); i++) {
		moderate(f, 1000, 60000);
		arm(f, i + 1, ORNIC_ARM_ANY);
		post(f, i, 0, 0);
		assert_int_equal(events_now(f), 0);
		expires = t->expires;
		moderate(f, 2000, 50000);
		assert_true(timer_armed(t));
		assert_int_equal(t->expires, expires - 10000000);
		moderate(f, faster[i].count, faster[i].period_us);
		assert_int_equal(events(f), 1);
		assert_false(timer_armed(t));
		poll_all(f);
	}
}

/* A solicited arm is not moderated (ORN-CQ-5). */
static void test_moderation_of_solicited(void **state)
{
	struct fixture *f = *state;

	moderate(f, 100, 60000);
	arm(f, 1, ORNIC_ARM_SOLICITED);
	post(f, 0, 0, 0);
	assert_int_equal(events_now(f), 0);
	post(f, 1, ORNIC_CQE_SOLICITED, 0);
	assert_int_equal(events_now(f), 1);
	assert_false(timer_armed(&f->cq->cq.mod_timer));
}

/* The host polled the entries and armed again, so no event is due. */
static void test_moderation_overtaken_by_poll(void **state)
{
	struct fixture *f = *state;

	moderate(f, 100, 1000);
	arm(f, 1, ORNIC_ARM_ANY);
	post(f, 0, 0, 0);
	assert_int_equal(events_now(f), 0);
	poll_all(f);
	arm(f, 1, ORNIC_ARM_ANY);
	while (timer_armed(&f->cq->cq.mod_timer))
		assert_int_equal(events_now(f), 0);
	assert_int_equal(events(f), 0);
	post(f, 1, 0, 0);
	assert_int_equal(events_now(f), 0);
	assert_true(timer_armed(&f->cq->cq.mod_timer));
	poll_all(f);
	arm(f, 2, ORNIC_ARM_ANY);
	cq_doorbell(&f->cq->cq);
	assert_int_equal(events_now(f), 0);
	assert_false(timer_armed(&f->cq->cq.mod_timer));
	post(f, 2, 0, 0);
	assert_int_equal(events_now(f), 0);
	assert_true(timer_armed(&f->cq->cq.mod_timer));
	/* a CQ that fails has no further completion to announce */
	cq_fail(&f->cq->cq, ORNIC_SYN_RING_FULL);
	assert_false(timer_armed(&f->cq->cq.mod_timer));
}

static void test_init_refuses(void **state)
{
	struct fixture *f = *state;
	struct cq cq = f->cq->cq;

	cq.rec += 4;
	assert_int_equal(cq_init(&cq), ORNIC_ST_BAD_PARAM);
	cq.rec = 0x1000;
	assert_int_equal(cq_init(&cq), ORNIC_ST_DMA_ERROR);
	cq.rec = f->cq->host.rec;
	cq.mem.offset = 8;
	assert_int_equal(cq_init(&cq), ORNIC_ST_BAD_PARAM);
}

/* The state of an arm word by itself: an event stays due until it is sent, whatever is written. */
static void test_arm_state(void **state)
{
	const uint32_t word = 997 | 1u << ORNIC_ARM_SN_SHIFT, any = ORNIC_ARM_ANY;
	const uint32_t solicited = word | ORNIC_ARM_SOLICITED << ORNIC_ARM_TYPE_SHIFT;
	struct ring_arm a = { .looked = 1000 };

	(void)state;
	assert_false(ring_arm_due(&a, solicited, 1000, LOG));
	assert_int_equal(a.since, 997);
	ring_arm_solicited(&a, 1000);
	for (uint32_t prod = 1001; prod < 1004; prod++)
		assert_true(ring_arm_due(&a, solicited, prod, LOG));
	ring_arm_fired(&a);
	assert_false(ring_arm_due(&a, solicited, 1004, LOG));
	/* a solicited entry counts until a ring's length of others is behind it */
	ring_arm_due(&a, solicited, 1001 + ENTRIES, LOG);
	assert_true(a.any_solicited);
	ring_arm_due(&a, solicited, 1002 + ENTRIES, LOG);
	assert_false(a.any_solicited);
	/* a resize changes all indices, and nothing else of the word */
	a = (struct ring_arm) {
		.seen = 5 | any << ORNIC_ARM_TYPE_SHIFT, .fired = 77, .solicited = 1000,
		.since = 900, .looked = 800,
	};
	ring_arm_shift(&a, 6);
	assert_int_equal(a.seen, ORNIC_ARM_INDEX_MASK | any << ORNIC_ARM_TYPE_SHIFT);
	assert_int_equal(a.fired, 77);
	assert_int_equal(a.solicited, 994);
	assert_int_equal(a.since, 894);
	assert_int_equal(a.looked, 794);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entry),
		TEST(test_timestamp),
		TEST(test_laps),
		TEST(test_unarmed_is_silent),
		TEST(test_event), TEST(test_order_of_held_events), TEST(test_any),
		TEST(test_solicited),
		TEST(test_rewritten_entry),
		TEST(test_index),
		TEST(test_raise_solicited_to_any),
		TEST(test_long_standing_arm),
		TEST(test_stale_solicited_is_void),
		TEST(test_sn_wraps),
		TEST(test_index_wraps),
		TEST(test_one_unread_event_per_cq),
		TEST(test_unread_event_of_other_cq),
		TEST(test_events_held_when_eq_full),
		TEST(test_destroyed_while_held),
		TEST(test_change_of_eq),
		TEST(test_change_of_eq_with_unread_event),
		TEST(test_many_fail),
		TEST(test_overflow),
		TEST(test_ignore_overrun),
		TEST(test_index_beyond_producer),
		TEST(test_index_going_back),
		TEST(test_ring_unreachable),
		TEST(test_record_unreachable),
		TEST(test_record_unreachable_at_look),
		TEST(test_announced_before_failure),
		TEST(test_moderation_by_count),
		TEST(test_moderation_by_period),
		TEST(test_moderation_zero_is_at_once),
		TEST(test_moderation_change),
		TEST(test_moderation_of_solicited),
		TEST(test_moderation_overtaken_by_poll),
		TEST(test_init_refuses),
		cmocka_unit_test(test_arm_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
