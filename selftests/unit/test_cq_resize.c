// SPDX-License-Identifier: GPL-2.0
/*
 * CQ_RESIZE: completions before and after the switch, waits, and rejected commands. Entries come
 * directly from engine/cq.c; the command is complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include <endian.h>
#include <string.h>

#define LOG	4
#define ENTRIES	(1u << LOG)

/* Create a second, small CQ on a device that is up. */
struct fixture {
	struct inproc *p;
	struct host_ring cq;
	struct cq *dev;
	uint32_t posted;
	struct ornic_cq_resize_rsp at;
};

static int setup_with(void **state, uint8_t flags)
{
	static struct fixture f;
	void *p;

	inproc_setup_ready(&p);
	f = (struct fixture){ .p = p };
	assert_int_equal(host_cq_create(&f.p->host, &f.cq, LOG, f.p->eq1.number, flags), 0);
	f.dev = table_get(&f.p->f->dev.cqs, f.cq.number);
	assert_non_null(f.dev);
	*state = &f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 0);
}

static int setup_ignore(void **state)
{
	return setup_with(state, ORNIC_CQ_F_IGNORE_OVERRUN);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *p = f->p;

	return inproc_teardown(&p);
}

static void post(struct fixture *f, uint32_t n, uint32_t flags)
{
	while (n--) {
		struct ornic_cqe cqe = {
			.wqe_id = htole32(f->posted++), .flags = htole32(flags),
		};

		cq_post(f->dev, &cqe);
	}
	inproc_turn(f->p);
}

/* Check that exactly the next @n entries are those posted as number @first and later. */
static void check_polled(struct fixture *f, uint32_t first, uint32_t n)
{
	struct ornic_cqe cqe;

	for (uint32_t i = 0; i < n; i++) {
		assert_true(host_next(&f->cq, &cqe));
		assert_int_equal(le32toh(cqe.wqe_id), first + i);
	}
	assert_false(host_next(&f->cq, &cqe));
}

static uint32_t events(struct fixture *f)
{
	struct ornic_eqe eqe;
	uint32_t n = 0;

	inproc_turn(f->p);
	while (host_next(&f->p->eq1, &eqe)) {
		assert_int_equal(eqe.type, ORNIC_EV_COMPLETION);
		assert_int_equal(le32toh(eqe.number), f->cq.number);
		host_fired(&f->cq);
		n++;
	}
	return n;
}

static struct ornic_cq_resize_cmd resize_cmd(struct fixture *f, uint8_t log)
{
	return (struct ornic_cq_resize_cmd){
		.log_entries = log,
		.record = htole64(host_record(&f->p->host)),
		.pages = host_contiguous(dma_alloc(&f->p->host.dma, 64u << log, 4096)),
	};
}

static int resize(struct fixture *f, const struct ornic_cq_resize_cmd *cmd)
{
	return host_exec(&f->p->host, ORNIC_OP_CQ_RESIZE, f->cq.number, cmd, sizeof(*cmd),
			 &f->at, sizeof(f->at));
}

/* ORN-CQ-22: the host's steps after the command. */
static void carry_over(struct fixture *f, const struct ornic_cq_resize_cmd *cmd)
{
	struct dma *dma = &f->p->host.dma;
	uint32_t producer = le32toh(f->at.producer), consumer = le32toh(f->at.consumer);
	struct host_ring old = f->cq;
	struct ornic_rec *rec;
	uint32_t word;

	f->cq.log = cmd->log_entries;
	f->cq.ring = le64toh(cmd->pages.addr);
	f->cq.rec = le64toh(cmd->record);
	for (uint32_t i = old.cons; i != producer; i++) {
		uint32_t to = (i - consumer) & ((1u << f->cq.log) - 1);
		struct ornic_cqe *cqe = dma_at(dma, f->cq.ring + 64ull * to);

		memcpy(cqe, dma_at(dma, old.ring + 64ull * (i & ((1u << old.log) - 1))), 64);
		cqe->phase |= ORNIC_PHASE;
	}
	f->cq.cons -= consumer;
	rec = dma_at(dma, f->cq.rec);
	assert_int_equal(rec->notify, 0);	/* no doorbells */
	rec->host_index = htole32(f->cq.cons);
	word = le32toh(((struct ornic_rec *)dma_at(dma, old.rec))->arm);
	word = (word & ~ORNIC_ARM_INDEX_MASK) | ((word - consumer) & ORNIC_ARM_INDEX_MASK);
	rec->arm = htole32(word);
	if (word >> ORNIC_ARM_TYPE_SHIFT)
		host_doorbell(&f->p->host, 1, ORNIC_DB_CQ_ARM, f->cq.number, word);
}

static void resize_to(struct fixture *f, uint8_t log)
{
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, log);

	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	carry_over(f, &cmd);
}

/* ORN-CQ-24, ORN-CQ-25, ORN-CQ-26 */
static void test_entries(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, LOG + 1);
	uint64_t old_ring = f->cq.ring, old_rec = f->cq.rec;
	uint8_t before[64 * ENTRIES + 64];
	struct dma *dma = &f->p->host.dma;

	post(f, ENTRIES, 0);
	check_polled(f, 0, ENTRIES);
	post(f, 10, 0);
	check_polled(f, ENTRIES, 10);
	post(f, ENTRIES, 0);	/* on both sides of the ring's end */
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	assert_int_equal(le32toh(f->at.producer), 2 * ENTRIES + 10);
	assert_int_equal(le32toh(f->at.consumer), ENTRIES + 10);
	memcpy(before, dma_at(dma, old_ring), 64 * ENTRIES);
	memcpy(&before[64 * ENTRIES], dma_at(dma, old_rec), 64);
	post(f, ENTRIES, 0);	/* before the host has carried entries over */
	carry_over(f, &cmd);
	check_polled(f, ENTRIES + 10, 2 * ENTRIES);
	for (uint32_t i = 0; i < 5; i++) {
		post(f, 2 * ENTRIES, 0);
		check_polled(f, (3 + 2 * i) * ENTRIES + 10, 2 * ENTRIES);
	}
	assert_memory_equal(before, dma_at(dma, old_ring), 64 * ENTRIES);
	assert_memory_equal(&before[64 * ENTRIES], dma_at(dma, old_rec), 64);
	assert_false(f->dev->error);
}

/* ORN-CQ-21: entries that the host consumes before it sees the switch do not appear again. */
static void test_consumed_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, LOG);

	post(f, 7, 0);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	post(f, 2, 0);
	check_polled(f, 0, 7);
	carry_over(f, &cmd);
	check_polled(f, 7, 2);
}

/* ORN-CQ-26: the new ring's room counts the unpolled entries. */
static void test_overflow_of_the_new_ring(void **state)
{
	struct fixture *f = *state;

	post(f, ENTRIES, 0);
	check_polled(f, 0, ENTRIES);
	post(f, 1, 0);		/* the device learns what the host has consumed */
	check_polled(f, ENTRIES, 1);
	post(f, 3, 0);
	resize_to(f, 2);
	post(f, 1, 0);
	assert_false(f->dev->error);
	post(f, 1, 0);
	assert_true(f->dev->error);
	check_polled(f, ENTRIES + 1, 4);
}

/* ORN-CQ-27, ORN-CQ-28: armed before; the entry comes before or after the switch, one event. */
static void test_wait_goes_along(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, LOG);
	uint32_t word;

	post(f, 3, 0);
	check_polled(f, 0, 3);
	host_arm(&f->cq, ORNIC_ARM_ANY);
	word = le32toh(((struct ornic_rec *)dma_at(&f->p->host.dma, f->cq.rec))->arm);
	resize_to(f, 3);
	assert_int_equal(le32toh(f->at.consumer), 3);
	assert_int_equal(f->dev->arm.seen, word - 3);
	assert_int_equal(events(f), 0);
	post(f, 1, 0);
	assert_int_equal(events(f), 1);
	check_polled(f, 3, 1);
	/* the wait has fired: the new ring does not fire it again */
	resize_to(f, 3);
	assert_int_equal(events(f), 0);
	/* after the switch, before the host carries entries over */
	host_arm(&f->cq, ORNIC_ARM_ANY);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	post(f, 1, 0);
	assert_int_equal(events(f), 0);
	carry_over(f, &cmd);
	assert_int_equal(events(f), 1);
	check_polled(f, 4, 1);
}

/* ORN-CQ-28: armed in the old record after the switch, for an entry before it or after. */
static void test_armed_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, LOG);

	post(f, 2, 0);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	check_polled(f, 0, 2);
	host_arm(&f->cq, ORNIC_ARM_SOLICITED);
	post(f, 1, 0);
	post(f, 1, ORNIC_CQE_SOLICITED);
	assert_int_equal(events(f), 0);
	carry_over(f, &cmd);
	assert_int_equal(events(f), 1);
	check_polled(f, 2, 2);
}

static void test_solicited_goes_along(void **state)
{
	struct fixture *f = *state;

	post(f, 5, ORNIC_CQE_SOLICITED);
	check_polled(f, 0, 5);
	host_arm(&f->cq, ORNIC_ARM_SOLICITED);
	resize_to(f, 3);
	post(f, 2, 0);
	assert_int_equal(events(f), 0);
	post(f, 1, ORNIC_CQE_SOLICITED);
	assert_int_equal(events(f), 1);
}

/* ORN-CQ-27 */
static void test_moderated(void **state)
{
	struct fixture *f = *state;
	struct ornic_moderate_cmd mod = {
		.mask = htole32(ORNIC_MODERATE_TIMING),
		.mod_count = htole16(8), .mod_period_us = htole16(LIMIT_MOD_PERIOD_US),
	};

	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_CQ_MODIFY, f->cq.number, &mod,
				   sizeof(mod), NULL, 0), 0);
	host_arm(&f->cq, ORNIC_ARM_ANY);
	post(f, 2, 0);
	assert_int_equal(events(f), 0);
	resize_to(f, 3);
	assert_int_equal(events(f), 1);
	check_polled(f, 0, 2);
	host_arm(&f->cq, ORNIC_ARM_ANY);
	post(f, 2, 0);
	assert_int_equal(events(f), 0);
}

#define FIELD(member)	(ORNIC_SYN_FIELD | offsetof(struct ornic_cq_resize_cmd, member))

static void refused(struct fixture *f, const struct ornic_cq_resize_cmd *cmd, uint8_t status,
		    uint32_t syndrome)
{
	uint64_t budget = f->p->f->dev.lists.left;

	assert_int_equal(resize(f, cmd), status);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome), syndrome);
	assert_int_equal(f->p->f->dev.lists.left, budget);
	assert_int_equal(f->dev->log, LOG);
	assert_int_equal(f->dev->rec, f->cq.rec);
}

/* ORN-CQ-23, ORN-ADM-16 */
static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd good = resize_cmd(f, 2), bad;
	struct ornic_cq_resize_cmd big = resize_cmd(f, LOG + 1);
	struct ornic_rec *rec = dma_at(&f->p->host.dma, f->cq.rec);

	post(f, 5, 0);
	refused(f, &good, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	rec->host_index = htole32(6);
	refused(f, &big, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	rec->host_index = htole32(-1);
	refused(f, &big, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	rec->host_index = 0;
	f->dev->rec = 64;
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_CQ_RESIZE, f->cq.number, &big, sizeof(big),
				   &f->at, sizeof(f->at)), ORNIC_ST_DMA_ERROR);
	f->dev->rec = f->cq.rec;
	bad = big;
	bad.log_entries = ORNIC_LOG_MAX_CQ + 1;
	refused(f, &bad, ORNIC_ST_LIMIT, FIELD(log_entries));
	bad = big;
	bad.mbz[6] = 1;
	refused(f, &bad, ORNIC_ST_RESERVED, FIELD(mbz));
	bad = big;
	bad.record = htole64(64);
	refused(f, &bad, ORNIC_ST_DMA_ERROR, FIELD(record));
	bad = big;
	bad.record |= htole64(32);
	refused(f, &bad, ORNIC_ST_BAD_PARAM, FIELD(record));
	bad = big;
	bad.pages.addr = htole64(INPROC_BASE + INPROC_BYTES);
	refused(f, &bad, ORNIC_ST_DMA_ERROR, FIELD(pages));
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_CQ_RESIZE, 77, &big, sizeof(big),
				   &f->at, sizeof(f->at)), ORNIC_ST_BAD_NUMBER);
	check_polled(f, 0, 5);
	post(f, ENTRIES + 1, 0);
	assert_true(f->dev->error);
	refused(f, &big, ORNIC_ST_BAD_STATE, 0);
}

static void test_query(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_query_rsp q;
	uint64_t budget = f->p->f->dev.lists.left;

	post(f, 3, 0);
	check_polled(f, 0, 3);
	post(f, 1, 0);
	resize_to(f, 6);
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_CQ_QUERY, f->cq.number, NULL, 0, &q,
				   sizeof(q)), 0);
	assert_int_equal(q.attr.log_entries, 6);
	assert_int_equal(le64toh(q.attr.record), f->cq.rec);
	assert_int_equal(le64toh(q.attr.pages.addr), f->cq.ring);
	assert_int_equal(le32toh(q.state.producer), 1);
	assert_int_equal(le32toh(q.state.consumer), 0);
	assert_int_equal(f->p->f->dev.lists.left, budget);
}

/* This CQ does not count room; a ring too small for the unpolled entries cannot be used. */
static void test_ignore_overrun(void **state)
{
	struct fixture *f = *state;
	struct ornic_cq_resize_cmd cmd = resize_cmd(f, LOG + 1);

	post(f, 3 * ENTRIES, 0);
	refused(f, &cmd, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	f->cq.cons = 3 * ENTRIES - 2;
	((struct ornic_rec *)dma_at(&f->p->host.dma, f->cq.rec))->host_index = htole32(f->cq.cons);
	resize_to(f, LOG + 1);
	post(f, 4, 0);
	check_polled(f, 3 * ENTRIES - 2, 6);
}

/* ORN-FEA-2 */
static void test_feature(void **state)
{
	struct inproc *p = *state;
	struct ornic_cq_resize_cmd cmd = { .log_entries = 1 };
	struct ornic_cq_resize_rsp rsp;
	struct host_ring cq;

	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, FEATURES & ~ORNIC_FEATURE(CQ_RESIZE), &p->eq0,
				       &p->eq1), 0);
	assert_int_equal(host_cq_create(&p->host, &cq, LOG, p->eq1.number, 0), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CQ_RESIZE, cq.number, &cmd, sizeof(cmd),
				   &rsp, sizeof(rsp)), ORNIC_ST_UNSUPPORTED);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entries), TEST(test_consumed_meanwhile),
		TEST(test_overflow_of_the_new_ring), TEST(test_wait_goes_along),
		TEST(test_armed_meanwhile), TEST(test_solicited_goes_along), TEST(test_moderated),
		TEST(test_refused), TEST(test_query),
		cmocka_unit_test_setup_teardown(test_ignore_overrun, setup_ignore, teardown),
		cmocka_unit_test_setup_teardown(test_feature, inproc_setup, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
