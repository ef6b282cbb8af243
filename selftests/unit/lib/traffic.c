// SPDX-License-Identifier: GPL-2.0
/*
 * A mix of operations, and the proof that each was executed once and in order.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "traffic.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC | \
		 ORNIC_ACCESS_FLUSH_GLOBAL)

#define SLOT	20480
#define SUM	0
#define SWAPPED	8

void traffic_init(struct traffic *t, struct world *w, uint64_t seed, uint32_t psn)
{
	memset(t, 0, sizeof(*t));
	t->w = w;
	t->seed = seed;
	conn_init(&t->a, &w->dut[0], NULL);
	conn_init(&t->b, &w->dut[1], NULL);
	conn_pair(&t->a, &t->b, psn, psn + 5);
	t->abuf = dut_buf(t->a.d, TRAFFIC_SLOTS * SLOT);
	t->bbuf = dut_buf(t->b.d, TRAFFIC_SLOTS * SLOT);
	t->akey = dut_key(t->a.d, NULL, t->abuf, TRAFFIC_SLOTS * SLOT, ALL);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, TRAFFIC_SLOTS * SLOT, ALL);
	t->a.d->dev.features |= ORNIC_FEATURE(MW2B);
	t->b.d->dev.features |= ORNIC_FEATURE(MW2B);
	t->b.qp.access |= ORNIC_ACCESS_FLUSH_GLOBAL;
	for (uint32_t i = 0; i < TRAFFIC_SLOTS; i++)
		t->window[i] = dut_blank(t->b.d, NULL, ORNIC_KEY_MW2B, 0);
}

void traffic_fini(struct traffic *t)
{
	conn_fini(&t->a);
	conn_fini(&t->b);
}

uint32_t traffic_random(struct traffic *t, uint32_t below)
{
	t->seed = t->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (t->seed >> 33) % below;
}

static uint8_t *amem(struct traffic *t, const struct op *o)
{
	return dut_at(t->a.d, t->abuf + o->slot * SLOT, SLOT);
}

static uint8_t *bmem(struct traffic *t, const struct op *o)
{
	return dut_at(t->b.d, t->bbuf + o->slot * SLOT, SLOT);
}

static uint64_t word(struct traffic *t, uint32_t off)
{
	return le64toh(*(uint64_t *)dut_at(t->b.d, t->bbuf + off, 8));
}

static bool is_atomic(const struct op *o)
{
	return o->opcode == ORNIC_WR_FETCH_ADD || o->opcode == ORNIC_WR_COMP_SWAP;
}

static bool takes_receive(const struct op *o)
{
	return o->opcode == ORNIC_WR_SEND || o->opcode == ORNIC_WR_SEND_IMM ||
	       o->opcode == ORNIC_WR_SEND_INV || o->opcode == ORNIC_WR_RDMA_WRITE_IMM;
}

static struct mr *window(struct traffic *t, const struct op *o)
{
	return table_get(&t->b.d->dev.keys, t->window[o->slot] >> ORNIC_KEY_TAG_BITS);
}

static uint32_t random_len(struct traffic *t)
{
	uint32_t big = traffic_random(t, 4);

	return traffic_random(t, big ? 3000 : SLOT);
}

static void prepare(struct traffic *t, struct op *o)
{
	if (is_atomic(o) || o->opcode == ORNIC_WR_ATOMIC_WRITE)
		o->len = 8;
	if (o->opcode == ORNIC_WR_RDMA_READ) {
		fill(bmem(t, o), o->len, o->seed);
		memset(amem(t, o), 0, SLOT);
	} else {
		fill(amem(t, o), o->len, o->seed);
		memset(bmem(t, o), 0, SLOT);
	}
}

/* Plan an atomic: its address, its operands, and the value that it must return. */
static void plan_atomic(struct traffic *t, struct op *o, struct wr *wr)
{
	bool add = o->opcode == ORNIC_WR_FETCH_ADD;

	wr->raddr = t->bbuf + (add ? SUM : SWAPPED);
	wr->swap_add = o->seed;
	wr->compare = add ? 0 : t->swapped;
	o->before = add ? t->sum : t->swapped;
	if (add)
		t->sum += o->seed;
	else
		t->swapped = o->seed;
}

void traffic_post(struct traffic *t, uint32_t i, uint32_t seed)
{
	static const uint8_t kind[] = {
		ORNIC_WR_SEND, ORNIC_WR_SEND_IMM, ORNIC_WR_RDMA_WRITE, ORNIC_WR_RDMA_WRITE_IMM,
		ORNIC_WR_RDMA_READ, ORNIC_WR_FETCH_ADD, ORNIC_WR_COMP_SWAP, ORNIC_WR_ATOMIC_WRITE,
		ORNIC_WR_SEND_INV, ORNIC_WR_FLUSH,
	};
	struct op *o = &t->op[i];
	struct wr wr = { .flags = ORNIC_WQE_SIGNALED };

	*o = (struct op){ .opcode = kind[traffic_random(t, sizeof(kind))], .len = random_len(t),
			  .seed = seed, .slot = i + 1 };
	prepare(t, o);
	wr.opcode = o->opcode;
	wr.imm = htobe32(seed);
	wr.raddr = t->bbuf + o->slot * SLOT;
	wr.rkey = t->bkey;
	if (is_atomic(o))
		plan_atomic(t, o, &wr);
	if (o->opcode == ORNIC_WR_SEND_INV) {
		wr.imm = htole32(t->window[o->slot]);
		window(t, o)->bound = true;
	}
	if (!traffic_random(t, 5))
		wr.flags |= ORNIC_WQE_FENCE;
	if (o->opcode == ORNIC_WR_FLUSH) {
		wr.flush.type = ORNIC_FLUSH_GLOBAL;
		wr.flush.length = htole64(o->len);
		t->flushes++;
	} else {
		wr_sge(&wr, t->abuf + o->slot * SLOT, o->len, t->akey);
	}
	if (o->opcode == ORNIC_WR_RDMA_WRITE_IMM)
		conn_recv(&t->b, t->bbuf, 0, 0);
	else if (takes_receive(o))
		conn_recv(&t->b, t->bbuf + o->slot * SLOT, o->len, t->bkey);
	conn_send(&t->a, &wr);
}

static void verify_receive(struct traffic *t, const struct op *o)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.wqe_id), t->b.hrcq.index - 1);
	assert_int_equal(le32toh(cqe.byte_len), o->len);
	if (o->opcode == ORNIC_WR_SEND_INV) {
		assert_int_equal(le32toh(cqe.inv_key), t->window[o->slot]);
		assert_false(window(t, o)->bound);
	} else if (o->opcode != ORNIC_WR_SEND) {
		assert_int_equal(be32toh(cqe.imm), o->seed);
	}
}

static void verify(struct traffic *t, uint32_t i)
{
	const struct op *o = &t->op[i];
	struct ornic_cqe cqe;

	if (!conn_poll(&t->a, &t->a.hscq, &cqe))
		fail_msg("work request %u of the batch did not complete", i);
	if (cqe.status)
		fail_msg("status %u syndrome %x opcode %u", cqe.status, le32toh(cqe.syndrome),
			 o->opcode);
	assert_int_equal(le32toh(cqe.wqe_id), t->a.hscq.index - 1);
	if (is_atomic(o))
		assert_int_equal(le64toh(*(uint64_t *)amem(t, o)), o->before);
	else if (o->opcode == ORNIC_WR_RDMA_READ)
		check(amem(t, o), o->len, o->seed);
	else if (o->opcode != ORNIC_WR_FLUSH)
		check(bmem(t, o), o->len, o->seed);
	if (takes_receive(o))
		verify_receive(t, o);
}

void traffic_verify(struct traffic *t)
{
	for (uint32_t i = 0; i < TRAFFIC_BATCH; i++)
		verify(t, i);
	conn_quiet(&t->a);
	conn_quiet(&t->b);
}

void traffic_end(struct traffic *t)
{
	assert_int_equal(word(t, SUM), t->sum);
	assert_int_equal(word(t, SWAPPED), t->swapped);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_flush], t->flushes);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
	assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
}
