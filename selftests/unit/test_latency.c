// SPDX-License-Identifier: GPL-2.0
/*
 * engine/latency.c, engine/ack.c: latency and round trip time; no measurement while it is off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/latency.h"
#include "engine/requester.h"
#include "lib/pair.h"
#include "lib/peer.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)
#define TICK	100
#define BYTES	65536

/* A clock that runs: each read of the clock takes TICK ns. */
static uint64_t looks;

static uint64_t ticking(void)
{
	return 1000000000 + TICK * ++looks;
}

struct fixture {
	struct world w;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
	struct latency latency;
};

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	world_init(&f->w, 0);
	looks = 0;
	f->w.e.clock = ticking;
	conn_init(&f->a, &f->w.dut[0], NULL);
	conn_init(&f->b, &f->w.dut[1], NULL);
	conn_pair(&f->a, &f->b, 5, 6);
	f->abuf = dut_buf(f->a.d, BYTES);
	f->bbuf = dut_buf(f->b.d, BYTES);
	f->akey = dut_key(f->a.d, NULL, f->abuf, BYTES, ALL);
	f->bkey = dut_key(f->b.d, NULL, f->bbuf, BYTES, ALL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	conn_fini(&f->a);
	conn_fini(&f->b);
	world_fini(&f->w);
	test_free(f);
	return 0;
}

static void post(struct fixture *f, uint8_t opcode, uint32_t len)
{
	struct wr wr = {
		.opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = f->bbuf, .rkey = f->bkey,
	};

	if (opcode == ORNIC_WR_SEND)
		conn_recv(&f->b, f->bbuf, BYTES, f->bkey);
	if (opcode != ORNIC_WR_NOP)
		wr_sge(&wr, f->abuf, len, f->akey);
	conn_send(&f->a, &wr);
}

static uint64_t count(const struct fixture *f, enum latency_class c)
{
	uint64_t n = 0;

	for (int i = 0; i < LATENCY_BUCKETS; i++)
		n += f->latency.of[c].bucket[i];
	return n;
}

/* Return how often the clock is read while @n writes are executed. */
static uint64_t looks_for(struct fixture *f, int n)
{
	uint64_t before;

	for (int i = 0; i < n; i++)
		post(f, ORNIC_WR_RDMA_WRITE, 100);
	before = looks;
	world_run(&f->w);
	return looks - before;
}

/* Off, the clock is not read for a work request; on, it is read twice. */
static void test_price(void **state)
{
	struct fixture *f = *state;
	uint64_t eight;

	looks_for(f, 8);
	eight = looks_for(f, 8);
	assert_int_equal(looks_for(f, 2), eight);
	f->a.d->dev.latency = &f->latency;
	assert_int_equal(looks_for(f, 8), eight + 16);
	f->a.d->dev.latency = NULL;
	assert_int_equal(looks_for(f, 8), eight);
	assert_int_equal(count(f, LATENCY_write), 8);
}

static void test_classes(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
		enum latency_class class;
	} cases[] = {
		{ ORNIC_WR_SEND, 9000, LATENCY_send }, { ORNIC_WR_RDMA_WRITE, 1, LATENCY_write },
		{ ORNIC_WR_RDMA_READ, 60000, LATENCY_read }, { ORNIC_WR_FETCH_ADD, 8, LATENCY_atomic },
		{ ORNIC_WR_NOP, 0, LATENCY_local },
	};
	struct fixture *f = *state;

	f->a.d->dev.latency = &f->latency;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		post(f, cases[i].opcode, cases[i].len);
		world_run(&f->w);
		assert_int_equal(count(f, cases[i].class), 1);
		/* longer than a tick, and shorter than the test, also if the clock began late */
		assert_in_range(f->latency.of[cases[i].class].max, TICK, TICK * looks);
		assert_int_equal(f->latency.of[cases[i].class].sum,
				 f->latency.of[cases[i].class].max);
	}
	assert_int_equal(count(f, LATENCY_flush), 0);
}

static void test_buckets(void **state)
{
	static const struct {
		uint64_t ns;
		int bucket;
	} cases[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 2 }, { 1023, 9 }, { 1024, 10 },
		{ (1ull << 39) - 1, 38 }, { 1ull << 39, 39 }, { 1ull << 40, 39 }, { 1ull << 62, 39 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct histogram *h = &f->latency.of[LATENCY_send];

		memset(&f->latency, 0, sizeof(f->latency));
		latency_add(&f->latency, ORNIC_WR_SEND_IMM, cases[i].ns);
		assert_int_equal(h->bucket[cases[i].bucket], 1);
		assert_int_equal(h->sum, cases[i].ns);
		assert_int_equal(h->max, cases[i].ns);
		assert_int_equal(count(f, LATENCY_send), 1);
	}
}

static void test_what_is_no_measure(void **state)
{
	struct fixture *f = *state;
	struct wqe w = { .opcode = ORNIC_WR_SEND };

	/* fetched while it was off */
	w.seen = 7;
	latency_seen(&f->a.d->dev, &w);
	f->a.d->dev.latency = &f->latency;
	latency_done(&f->a.d->dev, &w);
	assert_int_equal(count(f, LATENCY_send), 0);
	/* at the time of the next look, and after it */
	w.seen = 1000000000 + TICK * (looks + 1);
	latency_done_slow(&f->a.d->dev, &w);
	assert_int_equal(count(f, LATENCY_send), 1);
	assert_int_equal(f->latency.of[LATENCY_send].sum, 0);
	w.seen = 1000000000 + TICK * (looks + 1) + 1;
	latency_done_slow(&f->a.d->dev, &w);
	w.seen = 1;
	w.status = ORNIC_WC_WR_FLUSH_ERR;
	latency_done_slow(&f->a.d->dev, &w);
	assert_int_equal(count(f, LATENCY_send), 1);
	/* an error */
	f->bkey ^= 1;
	post(f, ORNIC_WR_RDMA_WRITE, 8);
	world_run(&f->w);
	assert_int_equal(f->a.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(count(f, LATENCY_write), 0);
}

/* ---- round trip time ------------------------------------------------------- */

/* The peer is no device, so its address is not announced. */
static int remote_setup(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 2, 2 };
	struct script *f = script_new(NULL, 100, 200);

	switch_port_set_promisc(f->peer.port, true);
	memcpy(f->c.qp.path.dmac, mac, 6);
	f->buf = dut_buf(f->c.d, BYTES);
	f->key = dut_key(f->c.d, NULL, f->buf, BYTES, ALL);
	*state = f;
	return 0;
}

static void remote_write(struct script *f)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x1000, .rkey = 7 };

	wr_sge(&wr, f->buf, 8, f->key);
	conn_send(&f->c, &wr);
	world_run(&f->w);
}

static void remote_ack(struct script *f, uint32_t psn)
{
	peer_ack(&f->peer, &f->c, psn, 0x1f);
}

static void test_rtt(void **state)
{
	struct script *f = *state;
	const struct requester *r = &f->c.qp.req;

	assert_int_equal(r->rtt, 0);
	remote_write(f);
	assert_true(r->remote);
	world_pass(&f->w, 8000);
	remote_ack(f, 100);
	assert_int_equal(r->rtt, 8000);
	/* smoothed by an eighth; packets sent while one is timed do not count */
	remote_write(f);
	world_pass(&f->w, 8000);
	remote_write(f);
	world_pass(&f->w, 8000);
	remote_ack(f, 101);
	assert_int_equal(r->rtt, 9000);
	remote_ack(f, 102);
	assert_int_equal(r->rtt, 9000);
}

/* Karn: a packet that was retransmitted gives no sample. */
static void test_rtt_after_loss(void **state)
{
	struct script *f = *state;
	const struct requester *r = &f->c.qp.req;

	remote_write(f);
	world_pass(&f->w, 8000);
	remote_ack(f, 100);
	remote_write(f);
	world_finish(&f->w, 4096ull << f->c.qp.timeout);
	assert_int_equal(f->c.d->dev.cnt[CNT_ack_timeouts], 1);
	assert_int_equal(r->retransmits, 1);
	remote_ack(f, 101);
	assert_int_equal(r->rtt, 8000);
	remote_write(f);
	world_pass(&f->w, 16000);
	remote_ack(f, 102);
	assert_int_equal(r->rtt, 9000);
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)
#define REMOTE(t)	cmocka_unit_test_setup_teardown(t, remote_setup, script_teardown)

/* The class of each opcode; LATENCY_send, which is 0, if it has no other */
static void test_all_classes(void **state)
{
	static const uint8_t class[256] = {
		[ORNIC_WR_RDMA_WRITE] = LATENCY_write, [ORNIC_WR_RDMA_WRITE_IMM] = LATENCY_write,
		[ORNIC_WR_ATOMIC_WRITE] = LATENCY_write, [ORNIC_WR_RDMA_READ] = LATENCY_read,
		[ORNIC_WR_COMP_SWAP] = LATENCY_atomic, [ORNIC_WR_FETCH_ADD] = LATENCY_atomic,
		[ORNIC_WR_FLUSH] = LATENCY_flush, [ORNIC_WR_NOP] = LATENCY_local,
		[ORNIC_WR_FAST_REG] = LATENCY_local, [ORNIC_WR_BIND_MW] = LATENCY_local,
		[ORNIC_WR_LOCAL_INV] = LATENCY_local,
	};

	(void)state;
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		struct latency l = { 0 };

		latency_add(&l, opcode, 0);
		for (uint32_t i = 0; i < LATENCY_COUNT; i++)
			assert_int_equal(l.of[i].bucket[0], i == class[opcode]);
	}
}

/* Sum, maximum and bucket of each sample; the last bucket has all longer ones. */
static void test_sums(void **state)
{
	static const uint64_t ns[] = { 0, 1, 2, 3, 4, 1000, 1ull << 62, 5 };
	struct latency l = { 0 };
	uint64_t sum = 0, max = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		latency_add(&l, ORNIC_WR_SEND, ns[i]);
		sum += ns[i];
		max = ns[i] > max ? ns[i] : max;
		assert_true(l.of[LATENCY_send].sum == sum);
		assert_true(l.of[LATENCY_send].max == max);
	}
	assert_int_equal(l.of[LATENCY_send].bucket[0], 2);
	assert_int_equal(l.of[LATENCY_send].bucket[1], 2);
	assert_int_equal(l.of[LATENCY_send].bucket[2], 2);
	assert_int_equal(l.of[LATENCY_send].bucket[9], 1);
	assert_int_equal(l.of[LATENCY_send].bucket[LATENCY_BUCKETS - 1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_price), WITH(test_classes), WITH(test_buckets),
		WITH(test_what_is_no_measure), WITH(test_sums), WITH(test_all_classes),
		REMOTE(test_rtt),
		REMOTE(test_rtt_after_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
