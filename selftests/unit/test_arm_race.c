// SPDX-License-Identifier: GPL-2.0
/*
 * Arming against posting, two threads, real queues (ORN-RNG-9 to 12, ORN-EQ-2): the host sleeps
 * on an interrupt whenever it finds nothing after arming. A lost wakeup ends the test.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <endian.h>
#include "lib/nic.h"

#define ENTRIES_LOG	5
#define TOTAL		400000u
#define PATIENCE_NS	10000000000ull

/**
 * struct race - both sides' state
 * @n, @eq, @cq: the function
 * @cq_ring, @eq_ring, @cq_rec, @eq_rec: where the host sees them
 * @consumed: CQ entries that the host has consumed
 * @sleeps: number of waits of the host for an interrupt
 * @rung: doorbell of the EQ
 * @lost: the host waited in vain
 */
struct race {
	struct nic n;
	struct nic_eq *eq;
	struct nic_cq *cq;
	uint8_t *cq_ring;
	uint8_t *eq_ring;
	struct ornic_rec *cq_rec;
	struct ornic_rec *eq_rec;
	uint32_t consumed;
	bool rung;
	bool lost;
	uint32_t sleeps;
};

static bool valid(const uint8_t *ring, uint32_t index, uint8_t log)
{
	const uint64_t *last = (const void *)(ring + (index & ((1u << log) - 1)) * 64ull + 56);
	uint64_t word = __atomic_load_n(last, __ATOMIC_ACQUIRE);

	return (word >> 56 & 1) == (((index >> log) & 1) ^ 1);
}

/* Arm; return true if the device asks for a doorbell (ORN-RNG-11). */
static bool host_arm(struct ornic_rec *rec, uint32_t index, uint32_t sn)
{
	uint32_t word = (index & ORNIC_ARM_INDEX_MASK) | (sn & 0xf) << 24 | 2u << 28;

	__atomic_store_n(&rec->arm, htole32(word), __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return le32toh(__atomic_load_n(&rec->notify, __ATOMIC_RELAXED)) & ORNIC_NOTIFY_ALWAYS;
}

/* Sleep until interrupt @seen + 1. */
static bool host_sleep(struct race *r, unsigned int seen)
{
	uint64_t start = engine_clock();
	unsigned int spins = 0;

	r->sleeps++;
	while (__atomic_load_n(&r->n.irqs[1], __ATOMIC_ACQUIRE) == seen) {
		if (engine_clock() - start > PATIENCE_NS)
			return false;
		if (++spins % 64 == 0)		/* the device may need this CPU */
			sched_yield();
	}
	return true;
}

static void *host(void *arg)
{
	struct race *r = arg;
	uint32_t index = 0, eq_index = 0, cq_sn = 1;
	unsigned int seen;

	while (index < TOTAL) {
		while (index < TOTAL && valid(r->cq_ring, index, ENTRIES_LOG)) {
			index++;
			__atomic_store_n(&r->cq_rec->host_index, htole32(index),
					 __ATOMIC_RELEASE);
		}
		__atomic_store_n(&r->consumed, index, __ATOMIC_RELEASE);
		host_arm(r->cq_rec, index, cq_sn);
		if (index == TOTAL || valid(r->cq_ring, index, ENTRIES_LOG))
			continue;
		for (;;) {
			seen = __atomic_load_n(&r->n.irqs[1], __ATOMIC_ACQUIRE);
			__atomic_store_n(&r->eq_rec->host_index, htole32(eq_index),
					 __ATOMIC_RELEASE);
			if (host_arm(r->eq_rec, eq_index, seen + 1))
				__atomic_store_n(&r->rung, true, __ATOMIC_RELEASE);
			if (valid(r->eq_ring, eq_index, ENTRIES_LOG))
				break;
			if (!host_sleep(r, seen)) {
				r->lost = true;
				__atomic_store_n(&r->consumed, TOTAL, __ATOMIC_RELEASE);
				return NULL;
			}
		}
		eq_index++;
		cq_sn++;
	}
	return NULL;
}

/* Post bursts as the host leaves room, and look at the queues or pause in between. */
static void device(struct race *r)
{
	uint32_t posted = 0, done, burst;
	unsigned int seed = 1;

	while ((done = __atomic_load_n(&r->consumed, __ATOMIC_ACQUIRE)) < TOTAL) {
		burst = rand_r(&seed) % 4;
		for (; burst && posted < TOTAL && posted - done < 1u << ENTRIES_LOG; burst--) {
			struct ornic_cqe cqe = { .wqe_id = htole32(posted++) };

			cq_post(&r->cq->cq, &cqe);
		}
		while (!TAILQ_EMPTY(&r->n.dev.look))
			cq_look(TAILQ_FIRST(&r->n.dev.look));
		if (__atomic_exchange_n(&r->rung, false, __ATOMIC_ACQ_REL))
			eq_doorbell(&r->eq->eq);
		while (!TAILQ_EMPTY(&r->n.dev.eq_look))
			eq_look(TAILQ_FIRST(&r->n.dev.eq_look));
		if (rand_r(&seed) % 64 == 0)
			sched_yield();
	}
}

static void test_no_wake_is_lost(void **state)
{
	struct engine e;
	pthread_t thread;
	struct race r = { .lost = false };
	static const uint8_t mac[6] = { 2 };

	(void)state;
	assert_int_equal(engine_init(&e, 0), 0);
	nic_init(&r.n, &e, mac);
	(void)nic_eq_new(&r.n, 4, 0);
	r.eq = nic_eq_new(&r.n, ENTRIES_LOG, 1);
	r.cq = nic_cq_new(&r.n, ENTRIES_LOG, r.eq, 0);
	r.cq_ring = guest_at(&r.n.guest, r.cq->host.ring, 64 << ENTRIES_LOG);
	r.eq_ring = guest_at(&r.n.guest, r.eq->host.ring, 64 << ENTRIES_LOG);
	r.cq_rec = nic_rec(&r.n, &r.cq->host);
	r.eq_rec = nic_rec(&r.n, &r.eq->host);
	assert_int_equal(pthread_create(&thread, NULL, host, &r), 0);
	device(&r);
	pthread_join(thread, NULL);
	assert_false(r.lost);
	print_message("slept %u times, %lu events held\n", r.sleeps, r.n.dev.cnt[CNT_eq_held]);
	assert_true(r.sleeps > 0);
	assert_false(r.cq->cq.error);
	assert_int_equal(r.n.fatals, 0);
	nic_fini(&r.n);
	engine_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_wake_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
