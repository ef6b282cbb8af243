// SPDX-License-Identifier: GPL-2.0
/*
 * RC over a network that loses, doubles and reorders packets: every work request
 * completes once and in order, data is right, atomics are executed exactly once
 * (ORN-QP-25, ORN-QP-26, ORN-WQE-7, ORN-RQ-1).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/lossy.h"
#include "lib/traffic.h"

#define BATCHES	12

struct net {
	struct world w;
	struct lossy l;
	struct traffic t;
};

static void net_init(struct net *n, uint64_t seed, uint32_t psn)
{
	world_init(&n->w, 0);
	lossy_init(&n->l, &n->w, seed);
	traffic_init(&n->t, &n->w, seed, psn);
	memcpy(n->t.a.qp.path.dmac, n->l.mac, 6);
	memcpy(n->t.b.qp.path.dmac, n->l.mac, 6);
}

static void net_fini(struct net *n)
{
	traffic_fini(&n->t);
	lossy_fini(&n->l);
	world_fini(&n->w);
}

static void run(struct net *n, uint64_t seed)
{
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		for (uint32_t i = 0; i < TRAFFIC_BATCH; i++) {
			traffic_post(&n->t, i, seed + batch * TRAFFIC_BATCH + i);
			if (!lossy_random(&n->l, 3))
				lossy_run(&n->l, 0);
		}
		lossy_run(&n->l, 1000000000000ull);
		traffic_verify(&n->t);
	}
	traffic_end(&n->t);
}

static void many(bool split, uint32_t drop, uint32_t twice, uint32_t late, uint8_t max_rd)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct net *n = test_calloc(1, sizeof(*n));

		net_init(n, seed * 1000 + drop + twice + late, seed & 1 ? 0xffff80 : 0x7ffff0);
		n->l.split = split;
		n->l.drop = drop;
		n->l.twice = twice;
		n->l.late = late;
		n->t.a.qp.max_rd_atomic = max_rd;
		n->t.b.qp.max_dest_rd_atomic = max_rd;
		run(n, seed);
		assert_true(!drop || n->l.dropped > 2);
		assert_true(!twice || n->l.doubled > 2);
		assert_true(!late || n->l.delayed > 2);
		net_fini(n);
		test_free(n);
	}
}

static void test_perfect(void **state)
{
	(void)state;
	many(false, 0, 0, 0, 16);
	many(true, 0, 0, 0, 16);
}

static void test_loss(void **state)
{
	(void)state;
	many(false, 30, 0, 0, 16);
	many(true, 20, 0, 0, 16);
}

static void test_twice(void **state)
{
	(void)state;
	many(false, 0, 200, 0, 2);
	many(true, 0, 100, 0, 2);
}

static void test_late(void **state)
{
	(void)state;
	many(false, 0, 0, 50, 3);
	many(true, 0, 0, 10, 3);
}

static void test_all(void **state)
{
	(void)state;
	many(false, 20, 50, 20, 4);
	many(true, 5, 20, 8, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perfect),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
