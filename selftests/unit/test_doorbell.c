// SPDX-License-Identifier: GPL-2.0
/*
 * dev/doorbell.c: a page rings only its owner's objects, for every value that a process stores
 * there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include "engine/cq.h"
#include "engine/eq.h"
#include "engine/qp.h"

#include <ornic/srq.h>
#include <ornic/wqe.h>
#include <endian.h>
#include <stdlib.h>

static uint64_t test_now = 1000;

static uint64_t test_clock(void)
{
	return test_now;
}

#define PAGE(n)	(FUNC_DB_OFFSET + (n) * 4096ull)

static uint64_t payload(enum ornic_db_kind kind, uint32_t number)
{
	return number | (uint64_t)kind << ORNIC_DB_KIND_SHIFT;
}

/* Store at @off; return 1 if counted as a doorbell, -1 if counted as rejected, 0 otherwise. */
static int ring(struct inproc *p, uint64_t off, unsigned int len, uint64_t val)
{
	uint64_t good = inproc_counter(p, CNT_doorbells);
	uint64_t bad = inproc_counter(p, CNT_db_rejected);

	p->host.bus.write(p, off, len, val);
	good = inproc_counter(p, CNT_doorbells) - good;
	bad = inproc_counter(p, CNT_db_rejected) - bad;
	return (int)good - (int)bad;
}

/* ORN-DB-1 */
static void test_ownership(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd srq = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .dbpage = htole32(1),
		.max_sge = htole16(3), .record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
	struct host_qp qp;
	uint32_t srqn;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &srq, sizeof(srq), NULL, 0),
			 0);
	srqn = host_number(&p->host);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	for (uint64_t page = 0; page < 1024; page += page < 4 ? 1 : 255) {
		int mine = page == 1 ? 1 : -1, driver = page == 0 ? 1 : -1;

		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_SQ, qp.number)), mine);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_RQ, qp.number)), mine);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_CQ_ARM, p->cq.number)),
				 mine);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_SRQ, srqn)), mine);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_EQ_ARM, 0)), driver);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ASQ)),
				 driver);
		assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ACQ)),
				 driver);
	}
}

/* ORN-DB-1, ORN-PCI-11 */
static void test_nonsense(void **state)
{
	struct inproc *p = *state;

	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_SQ, 77)), -1);
	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_SQ, 0)), -1);
	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_SQ, 0xffffff)), -1);
	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_SRQ, 1)), -1);
	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_CQ_ARM, 77)), -1);
	assert_int_equal(ring(p, PAGE(0), 8, payload(ORNIC_DB_EQ_ARM, 77)), -1);
	assert_int_equal(ring(p, PAGE(0), 8, payload(ORNIC_DB_ADMIN, 2)), -1);
	for (uint32_t kind = 6; kind < 16; kind++)
		assert_int_equal(ring(p, PAGE(0), 8, payload(kind, 0)), -1);
	for (uint64_t bit = 1; bit; bit <<= 1)
		if (bit & ORNIC_DB_MBZ)
			assert_int_equal(ring(p, PAGE(1), 8,
					      payload(ORNIC_DB_CQ_ARM, p->cq.number) | bit), -1);
	/* Two half stores are not a doorbell. */
	assert_int_equal(ring(p, PAGE(1), 4, payload(ORNIC_DB_CQ_ARM, p->cq.number)), -1);
	assert_int_equal(ring(p, PAGE(1) + 4, 4, 0), -1);
	/* The rest of the page is reserved: no effect and no count. */
	assert_int_equal(ring(p, PAGE(1) + 8, 8, payload(ORNIC_DB_CQ_ARM, p->cq.number)), 0);
	assert_int_equal(ring(p, PAGE(1) + ORNIC_DB_PUSH, 8, ~0ull), 0);
	assert_int_equal(ring(p, PAGE(1023) + 4088, 8, ~0ull), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/* A queue that the queue pair does not have cannot be rung. */
static void test_absent_queue(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;

	for (int sq = 0; sq < 2; sq++) {
		host_qp_template(&p->host, &qp, ORNIC_QPT_UD, 4, p->pd, p->cq.number, p->cq.number,
				 &cmd);
		*(sq ? &cmd.sq_log : &cmd.rq_log) = ORNIC_NO_RING;
		assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL,
					   0), 0);
		qp.number = host_number(&p->host);
		assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_SQ, qp.number)),
				 sq ? -1 : 1);
		assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_RQ, qp.number)),
				 sq ? 1 : -1);
	}
}

/* Return which objects wait for the next iteration: a bit for QP, CQ, EQ and admin queue. */
static uint32_t awake(struct inproc *p, const struct qp *qp)
{
	const struct cq *cq = table_get(&p->f->dev.cqs, p->cq.number);
	const struct eq *eq = table_get(&p->f->dev.eqs, p->eq1.number);

	return (qp->sched != QP_ASLEEP) | cq->dirty << 1 | eq->dirty << 2 |
	       p->f->admin.pending << 3;
}

/* A doorbell wakes the object that it names, and no other one. */
static void test_wakes(void **state)
{
	static const struct {
		uint32_t page, kind, wakes;
	} rings[] = {
		{ 1, ORNIC_DB_SQ, 1 }, { 1, ORNIC_DB_RQ, 1 }, { 1, ORNIC_DB_CQ_ARM, 2 },
		{ 0, ORNIC_DB_EQ_ARM, 4 }, { 0, ORNIC_DB_ADMIN, 8 },
	};
	struct inproc *p = *state;
	uint32_t number[] = {
		[ORNIC_DB_CQ_ARM] = p->cq.number, [ORNIC_DB_EQ_ARM] = p->eq1.number,
		[ORNIC_DB_ADMIN] = ORNIC_DB_ASQ,
	};
	struct host_qp host;
	struct qp *qp;

	assert_int_equal(host_qp_create(&p->host, &host, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	qp = table_get(&p->f->dev.qps, host.number);
	qp->state = ORNIC_QPS_INIT;
	number[ORNIC_DB_SQ] = host.number;
	number[ORNIC_DB_RQ] = host.number;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		while (awake(p, qp))
			inproc_turn(p);
		assert_int_equal(ring(p, PAGE(rings[i].page), 8,
				      payload(rings[i].kind, number[rings[i].kind])), 1);
		assert_int_equal(awake(p, qp), rings[i].wakes);
	}
}

/* ORN-DB-6 */
static void test_flood(void **state)
{
	struct inproc *p = *state;
	uint64_t off;
	struct host_qp qp;
	uint32_t key;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	off = inproc_counter(p, CNT_db_rejected) + inproc_counter(p, CNT_doorbells);
	srandom(1);
	for (int i = 0; i < 100000; i++)
		p->host.bus.write(p, PAGE(random() % 1024), 8,
				  (uint64_t)random() << 33 ^ (uint64_t)random());
	assert_int_equal(inproc_counter(p, CNT_db_rejected) + inproc_counter(p, CNT_doorbells) -
			 off, 100000);
	inproc_turn(p);
	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
}

/* ORN-EQ-17, ORN-EQ-19 */
static void test_told(void **state)
{
	struct inproc *p = *state;
	struct ornic_eqe eqe;

	p->engine.clock = test_clock;
	for (uint32_t page = 3; page < 9; page++)
		for (int i = 0; i < 100; i++)
			assert_int_equal(ring(p, PAGE(page), 8, payload(ORNIC_DB_SQ, 77)), -1);
	inproc_turn(p);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_DB_REJECTED);
	assert_int_equal(le32toh(eqe.number), 3);
	assert_int_equal(le32toh(eqe.info0), 1);
	assert_int_equal(eqe.owner, 0);
	assert_false(host_next(&p->eq0, &eqe));

	test_now += 999999999;
	assert_int_equal(ring(p, PAGE(8), 8, payload(ORNIC_DB_SQ, 77)), -1);
	assert_false(host_next(&p->eq0, &eqe));
	test_now++;
	assert_int_equal(ring(p, PAGE(9), 8, payload(ORNIC_DB_SQ, 77)), -1);
	inproc_turn(p);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(le32toh(eqe.number), 9);
	assert_int_equal(le32toh(eqe.info0), 602);
	assert_int_equal(eqe.owner | eqe.syndrome | eqe.info1, 0);
	assert_false(host_next(&p->eq0, &eqe));

	/* A reset ends the silence. */
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, INPROC_FEATURES, &p->eq0, &p->eq1), 0);
	assert_int_equal(ring(p, PAGE(5), 8, payload(ORNIC_DB_SQ, 77)), -1);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(le32toh(eqe.number), 5);
	assert_int_equal(le32toh(eqe.info0), 1);
}

/* ORN-CTL-14 */
static void test_stride(void **state)
{
	struct inproc *p = *state;

	host_prepare(&p->host, 3);
	host_set32(&p->host, ORNIC_REG_CONTROL,
		   ORNIC_CTL_ENABLE | 4u << ORNIC_CTL_STRIDE_SHIFT);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(function_dbpages(p->f), FUNC_DB_BYTES >> 16);
	assert_int_equal(ring(p, PAGE(0), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ASQ)), 1);
	assert_int_equal(ring(p, PAGE(1), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ASQ)), 0);
	assert_int_equal(ring(p, PAGE(16), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ASQ)), -1);
}

/* ORN-CTL-4 */
static void test_not_ready(void **state)
{
	struct inproc *p = *state;

	assert_int_equal(ring(p, PAGE(0), 8, payload(ORNIC_DB_ADMIN, ORNIC_DB_ASQ)), 0);
	inproc_turn(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)
#define PLAIN(t)	cmocka_unit_test_setup_teardown(t, inproc_setup, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_ownership), READY(test_nonsense), READY(test_absent_queue),
		READY(test_wakes), READY(test_flood), READY(test_told),
		PLAIN(test_stride), PLAIN(test_not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
