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

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)

#define SLOTS	128
#define SLOT	20480
#define BATCH	40
#define BATCHES	12

/** struct op - what was posted; its memory is slot @slot on both sides */
struct op {
	uint8_t opcode;
	uint32_t len;
	uint32_t seed;
	uint32_t slot;
	uint64_t before;
};

struct net {
	struct world w;
	struct lossy l;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
	uint64_t sum;
	struct op op[BATCH];
};

static void net_init(struct net *t, uint64_t seed, uint32_t psn)
{
	memset(t, 0, sizeof(*t));
	world_init(&t->w, 0);
	lossy_init(&t->l, &t->w, seed);
	conn_init(&t->a, &t->w.dut[0], NULL);
	conn_init(&t->b, &t->w.dut[1], NULL);
	conn_pair(&t->a, &t->b, psn, psn + 5);
	memcpy(t->a.qp.path.dmac, t->l.mac, 6);
	memcpy(t->b.qp.path.dmac, t->l.mac, 6);
	t->abuf = dut_buf(t->a.d, SLOTS * SLOT);
	t->bbuf = dut_buf(t->b.d, SLOTS * SLOT);
	t->akey = dut_key(t->a.d, NULL, t->abuf, SLOTS * SLOT, ALL);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, SLOTS * SLOT, ALL);
}

static void net_fini(struct net *t)
{
	conn_fini(&t->a);
	conn_fini(&t->b);
	lossy_fini(&t->l);
	world_fini(&t->w);
}

static uint8_t *amem(struct net *t, const struct op *o)
{
	return dut_at(t->a.d, t->abuf + o->slot * SLOT, SLOT);
}

static uint8_t *bmem(struct net *t, const struct op *o)
{
	return dut_at(t->b.d, t->bbuf + o->slot * SLOT, SLOT);
}

static uint32_t random_len(struct net *t)
{
	uint32_t big = lossy_random(&t->l, 4);

	return lossy_random(&t->l, big ? 3000 : SLOT);
}

static void prepare(struct net *t, struct op *o)
{
	switch (o->opcode) {
	case ORNIC_WR_RDMA_READ:
		fill(bmem(t, o), o->len, o->seed);
		memset(amem(t, o), 0, SLOT);
		break;
	case ORNIC_WR_FETCH_ADD:
		o->len = 8;
		break;
	default:
		fill(amem(t, o), o->len, o->seed);
		memset(bmem(t, o), 0, SLOT);
		break;
	}
}

/* Post one random operation in slot @i + 1; slot 0 is the counter. */
static void post(struct net *t, uint32_t i, uint32_t seed)
{
	static const uint8_t kind[] = { ORNIC_WR_SEND, ORNIC_WR_SEND_IMM, ORNIC_WR_RDMA_WRITE,
					ORNIC_WR_RDMA_WRITE_IMM, ORNIC_WR_RDMA_READ,
					ORNIC_WR_FETCH_ADD };
	struct op *o = &t->op[i];
	struct wr wr = { .flags = ORNIC_WQE_SIGNALED };

	*o = (struct op){ .opcode = kind[lossy_random(&t->l, 6)], .len = random_len(t),
			  .seed = seed, .slot = i + 1 };
	prepare(t, o);
	wr.opcode = o->opcode;
	wr.imm = htobe32(seed);
	wr.raddr = t->bbuf + (o->opcode == ORNIC_WR_FETCH_ADD ? 0 : o->slot * SLOT);
	wr.rkey = t->bkey;
	if (o->opcode == ORNIC_WR_FETCH_ADD) {
		wr.swap_add = seed;
		o->before = t->sum;
		t->sum += seed;
	}
	if (!lossy_random(&t->l, 5))
		wr.flags |= ORNIC_WQE_FENCE;
	wr_sge(&wr, t->abuf + o->slot * SLOT, o->len, t->akey);
	if (o->opcode == ORNIC_WR_SEND || o->opcode == ORNIC_WR_SEND_IMM)
		conn_recv(&t->b, t->bbuf + o->slot * SLOT, o->len, t->bkey);
	else if (o->opcode == ORNIC_WR_RDMA_WRITE_IMM)
		conn_recv(&t->b, t->bbuf, 0, 0);
	conn_send(&t->a, &wr);
}

static void verify(struct net *t, uint32_t i)
{
	const struct op *o = &t->op[i];
	struct ornic_cqe cqe;

	if (!conn_poll(&t->a, &t->a.hscq, &cqe))
		fail_msg("work request %u of the batch did not complete", i);
	if (cqe.status)
		fail_msg("status %u syndrome %x opcode %u", cqe.status, le32toh(cqe.syndrome),
			 o->opcode);
	assert_int_equal(le32toh(cqe.wqe_id), t->a.hscq.index - 1);
	if (o->opcode == ORNIC_WR_FETCH_ADD)
		assert_int_equal(le64toh(*(uint64_t *)amem(t, o)), o->before);
	else if (o->opcode == ORNIC_WR_RDMA_READ)
		check(amem(t, o), o->len, o->seed);
	else
		check(bmem(t, o), o->len, o->seed);
	if (o->opcode == ORNIC_WR_FETCH_ADD || o->opcode == ORNIC_WR_RDMA_READ ||
	    o->opcode == ORNIC_WR_RDMA_WRITE)
		return;
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.wqe_id), t->b.hrcq.index - 1);
	assert_int_equal(le32toh(cqe.byte_len), o->len);
	if (o->opcode != ORNIC_WR_SEND)
		assert_int_equal(be32toh(cqe.imm), o->seed);
}

static void run(struct net *t, uint64_t seed)
{
	for (uint32_t n = 0; n < BATCHES; n++) {
		for (uint32_t i = 0; i < BATCH; i++) {
			post(t, i, seed + n * BATCH + i);
			if (!lossy_random(&t->l, 3))
				lossy_run(&t->l, 0);
		}
		lossy_run(&t->l, 1000000000000ull);
		for (uint32_t i = 0; i < BATCH; i++)
			verify(t, i);
		conn_quiet(&t->a);
		conn_quiet(&t->b);
	}
	assert_int_equal(le64toh(*(uint64_t *)dut_at(t->b.d, t->bbuf, 8)), t->sum);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
	assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
}

static void many(bool split, uint32_t drop, uint32_t twice, uint32_t late, uint8_t max_rd)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct net *t = test_calloc(1, sizeof(*t));

		net_init(t, seed * 1000 + drop + twice + late, seed & 1 ? 0xffff80 : 0x7ffff0);
		t->l.split = split;
		t->l.drop = drop;
		t->l.twice = twice;
		t->l.late = late;
		t->a.qp.max_rd_atomic = max_rd;
		t->b.qp.max_dest_rd_atomic = max_rd;
		run(t, seed);
		assert_true(!drop || t->l.dropped > 2);
		assert_true(!twice || t->l.doubled > 2);
		assert_true(!late || t->l.delayed > 2);
		net_fini(t);
		test_free(t);
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
	many(true, 5, 20, 5, 4);
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
