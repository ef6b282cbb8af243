// SPDX-License-Identifier: GPL-2.0
/*
 * engine/memop.c: fast registration, windows and invalidation, used by a queue pair and its peer,
 * and every reason to reject them.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/identify.h>
#include "engine/memop.h"
#include "lib/pair.h"

#define BUF	(16 * GUEST_PAGE)
#define IOVA	0x7000000100ull
#define LW	ORNIC_ACCESS_LOCAL_WRITE
#define RW	ORNIC_ACCESS_REMOTE_WRITE
#define RR	ORNIC_ACCESS_REMOTE_READ
#define ALL	(LW | RW | RR | ORNIC_ACCESS_MW_BIND)
#define FEATURES_MEM	(ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW1) | ORNIC_FEATURE(MW2B) |	\
			 ORNIC_FEATURE(ZERO_BASED) | ORNIC_FEATURE(ATOMICS))

/**
 * struct fix - two connections between the functions
 * @a:	here: privileged, owns the keys
 * @b:	its peer
 * @c:	here: another queue pair of the same domain
 * @d:	its peer
 * @buf: memory here
 * @key: region of it
 * @far: memory at the peers' end, with key @far_key
 */
struct fix {
	struct world w;
	struct conn a, b, c, d;
	uint64_t buf, far;
	uint32_t key, far_key;
};

static int setup_as(void **state, uint32_t flags)
{
	struct fix *t = test_calloc(1, sizeof(*t));
	struct conn_opt opt = { .flags = flags };

	world_init(&t->w, 0);
	for (int i = 0; i < DUTS; i++)
		t->w.dut[i].dev.features = FEATURES_MEM;
	conn_init(&t->a, &t->w.dut[0], &opt);
	conn_init(&t->b, &t->w.dut[1], NULL);
	conn_init(&t->c, &t->w.dut[0], &opt);
	conn_init(&t->d, &t->w.dut[1], NULL);
	conn_pair(&t->a, &t->b, 0x10, 0xfffffe);
	conn_pair(&t->c, &t->d, 0x20, 0x30);
	t->buf = guest_alloc(&t->a.d->guest, BUF, GUEST_PAGE);
	t->key = dut_key(t->a.d, NULL, t->buf, BUF, ALL);
	t->far = dut_buf(t->b.d, BUF);
	t->far_key = dut_key(t->b.d, NULL, t->far, BUF, ALL);
	fill(dut_at(t->b.d, t->far, BUF), BUF, 1);
	*state = t;
	return 0;
}

static int setup(void **state)
{
	return setup_as(state, ORNIC_QP_F_PRIVILEGED);
}

static int setup_user(void **state)
{
	return setup_as(state, 0);
}

static int teardown(void **state)
{
	struct fix *t = *state;

	conn_fini(&t->a);
	conn_fini(&t->b);
	conn_fini(&t->c);
	conn_fini(&t->d);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

static struct mr *mr_of(struct fix *t, uint32_t key)
{
	return table_get(&t->a.d->dev.keys, key >> ORNIC_KEY_TAG_BITS);
}

/* Post and run; return the completion's status. ORN-ERR-4: a failure has a syndrome. */
static uint8_t do_wr(struct fix *t, struct conn *c, struct wr *wr, struct ornic_cqe *cqe)
{
	wr->flags |= ORNIC_WQE_SIGNALED;
	conn_send(c, wr);
	world_run(&t->w);
	if (!conn_poll(c, &c->hscq, cqe))
		fail_msg("no completion of opcode %u", wr->opcode);
	return cqe->status;
}

static uint8_t status_of(struct fix *t, struct conn *c, struct wr wr)
{
	struct ornic_cqe cqe;

	return do_wr(t, c, &wr, &cqe);
}

/*
 * Check that a memory operation is rejected with @syndrome (ORN-WQE-63) and the queue pair is in
 * ERR.
 */
static void refused(struct fix *t, struct wr wr, uint32_t syndrome)
{
	struct ornic_cqe cqe;

	assert_int_equal(do_wr(t, &t->a, &wr, &cqe), ORNIC_WC_MW_BIND_ERR);
	assert_int_equal(le32toh(cqe.syndrome), syndrome);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
	conn_quiet(&t->a);
}

/* Register two pages of @buf in reverse order, from byte 0x100 of the first page on. */
static struct wr reg_wr(struct fix *t, uint32_t key)
{
	uint64_t list = guest_alloc(&t->a.d->guest, 64, 64);
	__le64 *page = guest_at(&t->a.d->guest, list, 16);
	struct wr wr = {
		.opcode = ORNIC_WR_FAST_REG,
		.reg = {
			.iova = htole64(IOVA), .length = htole64(GUEST_PAGE), .list = htole64(list),
			.npages = htole32(2), .key = htole32(key), .access = htole32(LW | RW | RR),
			.offset = htole32(0x100), .page_shift = 12,
		},
	};

	page[0] = htole64(t->buf + GUEST_PAGE);
	page[1] = htole64(t->buf);
	return wr;
}

static struct wr bind_wr(struct fix *t, uint32_t key, uint32_t access)
{
	return (struct wr){
		.opcode = ORNIC_WR_BIND_MW,
		.bind = {
			.addr = htole64(t->buf + 100), .length = htole64(1000),
			.lkey = htole32(t->key), .key = htole32(key), .access = htole32(access),
		},
	};
}

static struct wr inv_wr(uint8_t opcode, uint32_t key)
{
	return (struct wr){ .opcode = opcode, .imm = htole32(key) };
}

/* Return the result of the peer of @c for a WRITE of @len bytes with @key. */
static uint8_t peer_writes(struct fix *t, struct conn *c, uint32_t key, uint64_t addr, uint32_t len)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = addr, .rkey = key };

	wr_sge(&wr, t->far, len, t->far_key);
	return status_of(t, c, wr);
}

static uint32_t fast_key(struct fix *t)
{
	return dut_blank(t->a.d, NULL, ORNIC_KEY_FAST_REG, 4);
}

static uint32_t window(struct fix *t, uint8_t kind)
{
	return dut_blank(t->a.d, NULL, kind, 0);
}

/* ORN-MEM-61, ORN-MEM-62, ORN-MEM-70: registered, used by both ends, list no longer needed */
static void test_fast_reg(void **state)
{
	struct fix *t = *state;
	uint32_t key = fast_key(t), fresh = key ^ 3;
	struct wr wr = reg_wr(t, fresh), read = { .opcode = ORNIC_WR_RDMA_READ };
	struct ornic_cqe cqe;

	assert_int_equal(do_wr(t, &t->a, &wr, &cqe), 0);
	assert_int_equal(cqe.opcode, ORNIC_WC_FAST_REG);
	assert_int_equal(mr_of(t, key)->lists.left, 2);
	memset(guest_at(&t->a.d->guest, le64toh(wr.reg.list), 16), 0xff, 16);
	assert_int_equal(peer_writes(t, &t->b, fresh, IOVA, GUEST_PAGE), 0);
	check(dut_at(t->a.d, t->buf + GUEST_PAGE + 0x100, GUEST_PAGE - 0x100), GUEST_PAGE - 0x100,
	      1);
	read.raddr = t->far;
	read.rkey = t->far_key;
	wr_sge(&read, IOVA + 1, 16, fresh);
	assert_int_equal(status_of(t, &t->a, read), 0);
	check(dut_at(t->a.d, t->buf + GUEST_PAGE + 0x101, 16), 16, 1);
	assert_int_equal(peer_writes(t, &t->b, fresh, IOVA, GUEST_PAGE + 1),
			 ORNIC_WC_REM_ACCESS_ERR);
}

/* ORN-MEM-60, ORN-MEM-70: invalid before, and the tag of create is invalid afterwards */
static void test_invalid_key(void **state)
{
	struct fix *t = *state;
	uint32_t key = fast_key(t);
	struct wr wr = { .opcode = ORNIC_WR_SEND };

	assert_int_equal(status_of(t, &t->c, reg_wr(t, key ^ 1)), 0);
	assert_int_equal(peer_writes(t, &t->b, key, IOVA, 1), ORNIC_WC_REM_ACCESS_ERR);
	assert_int_equal(peer_writes(t, &t->d, key ^ 1, IOVA, 1), 0);
	assert_int_equal(status_of(t, &t->c, inv_wr(ORNIC_WR_LOCAL_INV, key ^ 1)), 0);
	wr_sge(&wr, IOVA, 1, key ^ 1);
	assert_int_equal(status_of(t, &t->c, wr), ORNIC_WC_LOC_PROT_ERR);
}

/* ORN-MEM-61: each reason; the key stays unchanged */
static void test_fast_reg_refused(void **state)
{
	static const struct {
		int what;
		uint32_t syndrome;
	} cases[] = {
		{ 0, ORNIC_SYN_KEY_INDEX }, { 1, ORNIC_SYN_KEY_ACCESS }, { 2, ORNIC_SYN_KEY_PD },
		{ 3, ORNIC_SYN_KEY_ACCESS }, { 4, ORNIC_SYN_KEY_ACCESS },
		{ 5, ORNIC_SYN_KEY_RANGE }, { 6, ORNIC_SYN_KEY_RANGE }, { 7, ORNIC_SYN_KEY_RANGE },
		{ 8, ORNIC_SYN_KEY_RANGE }, { 9, ORNIC_SYN_KEY_RANGE }, { 10, ORNIC_SYN_KEY_PAGE },
		{ 11, ORNIC_SYN_KEY_RANGE }, { 12, ORNIC_SYN_KEY_RANGE },
		{ 13, ORNIC_SYN_KEY_RANGE }, { 14, ORNIC_SYN_KEY_ACCESS },
		{ 15, ORNIC_SYN_KEY_STATE }, { 16, ORNIC_SYN_KEY_RANGE },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fix *t;
		uint32_t key;
		struct wr wr;

		setup(state);
		t = *state;
		key = fast_key(t);
		wr = reg_wr(t, key ^ 1);
		switch (cases[i].what) {
		case 0:
			wr.reg.key = htole32(0xfff00 | (key & 0xff));
			break;
		case 1:
			wr.reg.key = htole32(t->key);
			mr_of(t, t->key)->bound = false;
			break;
		case 2:
			mr_of(t, key)->pd = t->a.d->other_pd.number;
			break;
		case 3:
			wr.reg.access = htole32(RW);
			break;
		case 4:
			wr.reg.access = htole32(LW | ORNIC_ACCESS_MW_BIND);
			break;
		case 5:
			wr.reg.iova = htole64(UINT64_MAX - 5);
			break;
		case 6:
			wr.reg.npages = htole32(3);
			break;
		case 7:
			wr.reg.length = htole64(4 * GUEST_PAGE);	/* 5 pages */
			wr.reg.npages = htole32(5);
			break;
		case 8:
			wr.reg.length = 0;
			break;
		case 9:
			wr.reg.page_shift = 11;
			break;
		case 10:
			wr.reg.list = htole64(GUEST_BASE + GUEST_BYTES);
			break;
		case 11:
			wr.reg.list = htole64(le64toh(wr.reg.list) + 8);
			break;
		case 12:
			wr.reg.offset = htole32(GUEST_PAGE);
			break;
		case 13:
			*(__le64 *)guest_at(&t->a.d->guest, le64toh(wr.reg.list), 8) |= 1;
			break;
		case 14:
			wr.reg.access = htole32(LW | ORNIC_ACCESS_REMOTE_ATOMIC);
			t->a.d->dev.features &= ~ORNIC_FEATURE(ATOMICS);
			break;
		case 15:
			assert_int_equal(status_of(t, &t->c, reg_wr(t, key)), 0);
			break;
		case 16:
			wr.reg.length = htole64(UINT64_MAX);
			wr.reg.iova = 0;
			break;
		}
		refused(t, wr, cases[i].syndrome);
		assert_int_equal(mr_of(t, key)->tag, key & 0xff);
		assert_int_equal(mr_of(t, key)->lists.left, cases[i].what == 15 ? 2 : 4);
		teardown(state);
	}
}

/* ORN-WQE-62: it names physical addresses; ORN-WQE-22 without the features */
static void test_privileged(void **state)
{
	struct fix *t = *state;
	uint32_t key = fast_key(t);
	struct wr wr = reg_wr(t, key);
	struct ornic_cqe cqe;

	assert_int_equal(do_wr(t, &t->a, &wr, &cqe), ORNIC_WC_LOC_QP_OP_ERR);
	assert_int_equal(le32toh(cqe.syndrome), ORNIC_SYN_WQE_PRIVILEGED);
	assert_false(mr_of(t, key)->bound);
	t->a.d->dev.features = 0;
	wr = inv_wr(ORNIC_WR_LOCAL_INV, key);
	assert_int_equal(do_wr(t, &t->c, &wr, &cqe), ORNIC_WC_LOC_QP_OP_ERR);
	assert_int_equal(le32toh(cqe.syndrome), ORNIC_SYN_WQE_OPCODE);
}

/* ORN-WQE-60: in ring order, with work before and behind it in the same doorbell */
static void test_order(void **state)
{
	struct fix *t = *state;
	uint32_t key = fast_key(t);
	struct wr wr[] = {
		{ .opcode = ORNIC_WR_RDMA_WRITE, .raddr = t->far, .rkey = t->far_key },
		reg_wr(t, key),
		{ .opcode = ORNIC_WR_RDMA_READ, .raddr = t->far + 64, .rkey = t->far_key },
		inv_wr(ORNIC_WR_LOCAL_INV, key),
		reg_wr(t, key ^ 7),
		{ .opcode = ORNIC_WR_RDMA_READ, .raddr = t->far + 64, .rkey = t->far_key },
	};
	static const uint8_t wc[] = { ORNIC_WC_RDMA_WRITE, ORNIC_WC_FAST_REG, ORNIC_WC_RDMA_READ,
				      ORNIC_WC_LOCAL_INV, ORNIC_WC_FAST_REG, ORNIC_WC_RDMA_READ };

	wr_sge(&wr[0], t->buf, 8, t->key);
	wr_sge(&wr[2], IOVA, 100, key);
	wr_sge(&wr[5], IOVA, 100, key ^ 7);
	for (uint32_t i = 0; i < 6; i++) {
		wr[i].flags = ORNIC_WQE_SIGNALED;
		conn_write_wr(&t->a, &wr[i]);
		t->a.sq.index++;
	}
	conn_publish(&t->a, &t->a.sq, t->a.sq.index);
	world_run(&t->w);
	for (uint32_t i = 0; i < 6; i++)
		conn_expect(&t->a, &t->a.hscq, i, wc[i], 0);
}

/* A rejected operation completes after the work posted before it; later work is flushed. */
static void order_of_failure(struct fix *t, struct wr bad, uint8_t wc)
{
	struct wr wr = { .opcode = ORNIC_WR_SEND };

	wr_sge(&wr, t->buf, 8, t->key);
	conn_write_wr(&t->a, &wr);
	t->a.sq.index++;
	conn_write_wr(&t->a, &bad);
	t->a.sq.index++;
	conn_write_wr(&t->a, &wr);
	conn_publish(&t->a, &t->a.sq, ++t->a.sq.index);
	world_run(&t->w);
	conn_quiet(&t->a);	/* no receive yet: RNR */
	conn_recv(&t->b, t->far, 8, t->far_key);
	conn_recv(&t->b, t->far, 8, t->far_key);
	world_finish(&t->w, 100000000);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_expect(&t->a, &t->a.hscq, 1, wc, ORNIC_WC_MW_BIND_ERR);
	conn_expect(&t->a, &t->a.hscq, 2, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	conn_quiet(&t->b);
}

static void test_order_of_failure(void **state)
{
	order_of_failure(*state, inv_wr(ORNIC_WR_LOCAL_INV, 0x12300), ORNIC_WC_LOCAL_INV);
}

static void test_order_of_failed_bind(void **state)
{
	struct wr bind = { .opcode = ORNIC_WR_BIND_MW, .flags = ORNIC_WQE_SIGNALED };

	bind.bind.key = htole32(0x12300);
	order_of_failure(*state, bind, ORNIC_WC_BIND_MW);
}

/* ORN-WQE-61: packets sent before may be retransmitted, with the same key */
static void test_invalidate_waits(void **state)
{
	struct fix *t = *state;
	uint32_t key = fast_key(t);
	struct wr send = { .opcode = ORNIC_WR_SEND }, inv = inv_wr(ORNIC_WR_LOCAL_INV, key);

	assert_int_equal(status_of(t, &t->a, reg_wr(t, key)), 0);
	wr_sge(&send, IOVA, 100, key);
	send.flags = ORNIC_WQE_SIGNALED;
	inv.flags = ORNIC_WQE_SIGNALED;
	conn_send(&t->a, &send);
	conn_send(&t->a, &inv);
	world_run(&t->w);
	assert_true(mr_of(t, key)->bound);
	conn_quiet(&t->a);
	conn_recv(&t->b, t->far, 100, t->far_key);
	world_finish(&t->w, 100000000);
	conn_expect(&t->a, &t->a.hscq, 1, ORNIC_WC_SEND, 0);
	conn_expect(&t->a, &t->a.hscq, 2, ORNIC_WC_LOCAL_INV, 0);
	assert_false(mr_of(t, key)->bound);
	assert_int_equal(mr_of(t, key)->lists.left, 4);
}

/* ORN-MEM-68: the kinds, the tag, the domain, the queue pair; a repetition is allowed */
static void test_invalidate(void **state)
{
	struct fix *t = *state;
	uint32_t fast = fast_key(t), w1 = window(t, ORNIC_KEY_MW1), w2 = window(t, ORNIC_KEY_MW2B);
	uint32_t why = 0;

	assert_int_equal(status_of(t, &t->a, reg_wr(t, fast)), 0);
	assert_int_equal(status_of(t, &t->a, bind_wr(t, w1, RW)), 0);
	assert_int_equal(status_of(t, &t->a, bind_wr(t, w2, RW)), 0);
	assert_false(memop_invalidate(&t->a.qp, fast ^ 1, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_TAG);
	assert_false(memop_invalidate(&t->a.qp, w1, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_ACCESS);
	assert_false(memop_invalidate(&t->a.qp, t->key, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_ACCESS);
	assert_false(memop_invalidate(&t->c.qp, w2, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_PD);
	t->c.qp.pd = &t->a.d->other_pd;
	assert_false(memop_invalidate(&t->c.qp, fast, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_PD);
	t->c.qp.flags = 0;
	assert_false(memop_invalidate(&t->c.qp, fast, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_INDEX);	/* ORN-ERR-3 */
	assert_int_equal(mr_of(t, t->key)->windows, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(memop_invalidate(&t->a.qp, fast, &why));
		assert_true(memop_invalidate(&t->a.qp, w2, &why));
		assert_int_equal(mr_of(t, t->key)->windows, 1);
	}
	/* An error that the queue pair's own keys explain is reported to it as it is. */
	t->a.qp.flags = 0;
	assert_false(memop_invalidate(&t->a.qp, w1, &why));
	assert_int_equal(why, ORNIC_SYN_KEY_ACCESS);
	/* An unbound window belongs to no queue pair. */
	t->c.qp.pd = t->a.qp.pd;
	assert_true(memop_invalidate(&t->c.qp, w2, &why));
}

/* ORN-RQ-40: by the peer; with payload in several packets, too */
static void test_send_inv(void **state)
{
	struct fix *t = *state;
	uint32_t fast = fast_key(t);
	static const uint32_t lens[] = { 0, 10, 5000, 70000 };
	uint64_t to = guest_alloc(&t->a.d->guest, 80000, GUEST_PAGE);
	uint64_t from = guest_alloc(&t->b.d->guest, 80000, GUEST_PAGE);
	uint32_t to_key = dut_key(t->a.d, NULL, to, 80000, LW);
	uint32_t from_key = dut_key(t->b.d, NULL, from, 80000, 0);

	fill(dut_at(t->b.d, from, 80000), 80000, 3);
	for (uint32_t i = 0; i < 4; i++) {
		struct wr wr = inv_wr(ORNIC_WR_SEND_INV, fast);
		struct ornic_cqe cqe;

		assert_int_equal(status_of(t, &t->a, reg_wr(t, fast)), 0);
		conn_recv(&t->a, to, 80000, to_key);
		wr_sge(&wr, from, lens[i], from_key);
		assert_int_equal(status_of(t, &t->b, wr), 0);
		assert_true(conn_poll(&t->a, &t->a.hrcq, &cqe));
		assert_int_equal(cqe.status, 0);
		assert_int_equal(le32toh(cqe.flags), ORNIC_CQE_WITH_INV);
		assert_int_equal(le32toh(cqe.inv_key), fast);
		assert_int_equal(le32toh(cqe.byte_len), lens[i]);
		assert_false(mr_of(t, fast)->bound);
		check(dut_at(t->a.d, to, lens[i] + 1), lens[i], 3);
	}
	assert_int_equal(t->b.d->dev.cnt[CNT_tx_send], 4);
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_send], 0);
}

/* ORN-RQ-41: no answer; earlier requests are acknowledged, reads are answered */
static void test_send_inv_refused(void **state)
{
	struct fix *t = *state;
	struct wr wr = inv_wr(ORNIC_WR_SEND_INV, t->key);
	struct wr read = { .opcode = ORNIC_WR_RDMA_READ, .flags = ORNIC_WQE_SIGNALED,
			   .raddr = t->buf, .rkey = t->key };
	struct wr write = { .opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED,
			    .raddr = t->buf, .rkey = t->key };
	struct ornic_cqe cqe;

	wr_sge(&read, t->far, 64, t->far_key);
	wr_sge(&write, t->far, 64, t->far_key);
	conn_recv(&t->a, t->buf, 100, t->key);
	conn_send(&t->b, &read);
	conn_send(&t->b, &write);
	conn_send(&t->b, &wr);
	world_run(&t->w);
	conn_expect(&t->b, &t->b.hscq, 0, ORNIC_WC_RDMA_READ, 0);
	conn_expect(&t->b, &t->b.hscq, 1, ORNIC_WC_RDMA_WRITE, 0);
	assert_false(conn_poll(&t->b, &t->b.hscq, &cqe));
	assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
	assert_int_equal(t->a.d->dev.cnt[CNT_remote_access_errors], 1);
	conn_expect(&t->a, &t->a.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_LOC_ACCESS_ERR);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(peer_writes(t, &t->d, t->key, t->buf, 1), 0);
}

/* ORN-MEM-65: bound, moved, with fewer rights, unbound */
static void test_mw1(void **state)
{
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW1);
	struct wr wr = bind_wr(t, key + 1, RW | RR);

	assert_int_equal(status_of(t, &t->a, wr), 0);
	assert_int_equal(peer_writes(t, &t->b, key + 1, t->buf + 100, 1000), 0);
	check(dut_at(t->a.d, t->buf + 100, 1000), 1000, 1);
	assert_int_equal(peer_writes(t, &t->d, key + 1, t->buf + 1099, 1), 0);	/* any queue pair */
	wr.bind.addr = htole64(t->buf + 5000);
	wr.bind.key = htole32(key + 2);
	assert_int_equal(status_of(t, &t->a, wr), 0);
	assert_int_equal(mr_of(t, t->key)->windows, 1);
	assert_int_equal(peer_writes(t, &t->b, key + 2, t->buf + 5000, 1), 0);
	assert_int_equal(peer_writes(t, &t->d, key + 1, t->buf + 5000, 1), ORNIC_WC_REM_ACCESS_ERR);
	wr.bind.length = 0;
	wr.bind.key = htole32(key + 3);
	wr.bind.lkey = 0;
	assert_int_equal(status_of(t, &t->a, wr), 0);
	assert_int_equal(mr_of(t, t->key)->windows, 0);
	assert_int_equal(peer_writes(t, &t->b, key + 3, t->buf + 5000, 1), ORNIC_WC_REM_ACCESS_ERR);
}

/* ORN-MEM-66, ORN-MEM-74: only through the queue pair, within range and rights, not locally */
static void test_mw2b(void **state)
{
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW2B);
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	struct ornic_cqe cqe;

	assert_int_equal(status_of(t, &t->a, bind_wr(t, key, RW)), 0);
	assert_int_equal(peer_writes(t, &t->b, key, t->buf + 100, 1000), 0);
	assert_int_equal(peer_writes(t, &t->d, key, t->buf + 100, 1), ORNIC_WC_REM_ACCESS_ERR);
	/* The queue pair may use the key, but no right of a window suffices for a local access. */
	t->a.qp.flags &= ~ORNIC_QP_F_PRIVILEGED;
	wr_sge(&wr, t->buf + 100, 1, key);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_LOC_PROT_ERR);
	assert_int_equal(le32toh(cqe.syndrome), ORNIC_SYN_KEY_ACCESS);
}

static void test_mw_rights(void **state)
{
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW2B);
	struct wr all = bind_wr(t, window(t, ORNIC_KEY_MW2B), RW | ORNIC_ACCESS_REMOTE_ATOMIC);

	/* a window on all of the region, with all rights */
	all.bind.addr = htole64(t->buf);
	all.bind.length = htole64(BUF);
	assert_int_equal(status_of(t, &t->a, all), 0);
	/* Rights that the window does not have need no feature. */
	t->a.d->dev.features &= ~ORNIC_FEATURE(ATOMICS);
	assert_int_equal(status_of(t, &t->a, bind_wr(t, key, RR)), 0);
	assert_int_equal(peer_writes(t, &t->b, key, t->buf + 100, 1), ORNIC_WC_REM_ACCESS_ERR);
}

static void test_mw_range(void **state)
{
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW2B);

	assert_int_equal(status_of(t, &t->a, bind_wr(t, key, RW)), 0);
	assert_int_equal(status_of(t, &t->c, bind_wr(t, window(t, ORNIC_KEY_MW2B), RW)), 0);
	assert_int_equal(peer_writes(t, &t->b, key, t->buf + 100, 1001), ORNIC_WC_REM_ACCESS_ERR);
	assert_int_equal(peer_writes(t, &t->d, key, t->buf + 99, 1), ORNIC_WC_REM_ACCESS_ERR);
}

static void test_zero_based(void **state)
{
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW2B);

	assert_int_equal(status_of(t, &t->a, bind_wr(t, key, RW | ORNIC_ACCESS_ZERO_BASED)), 0);
	assert_int_equal(peer_writes(t, &t->b, key, 0, 1000), 0);
	check(dut_at(t->a.d, t->buf + 100, 1000), 1000, 1);
	assert_int_equal(peer_writes(t, &t->b, key, 1, 1000), ORNIC_WC_REM_ACCESS_ERR);
}

/* ORN-MEM-63, ORN-MEM-64: each reason; no binding stays */
static void test_bind_refused(void **state)
{
	for (int i = 0; i < 20; i++) {
		uint32_t syndrome = ORNIC_SYN_KEY_ACCESS;
		struct fix *t;
		struct mr *region, *mw;
		uint32_t key;
		struct wr wr;

		setup(state);
		t = *state;
		region = mr_of(t, t->key);
		key = window(t, i == 12 ? ORNIC_KEY_MW1 : ORNIC_KEY_MW2B);
		mw = mr_of(t, key);
		wr = bind_wr(t, key ^ 1, RW);
		switch (i) {
		case 0:
			wr.bind.lkey = htole32(t->key ^ 1);
			syndrome = ORNIC_SYN_KEY_INDEX;
			break;
		case 1:
			region->pd = t->a.d->other_pd.number;
			syndrome = ORNIC_SYN_KEY_INDEX;
			break;
		case 2:
			mw->pd = t->a.d->other_pd.number;
			syndrome = ORNIC_SYN_KEY_PD;
			break;
		case 3:
			wr.bind.lkey = htole32(key);		/* a window on a window */
			syndrome = ORNIC_SYN_KEY_INDEX;
			break;
		case 4:
			region->access &= ~ORNIC_ACCESS_MW_BIND;
			break;
		case 5:
			region->access &= ~LW;
			break;
		case 6:
			region->attr.flags = ORNIC_KEY_F_PEER;
			break;
		case 7:
			wr.bind.access = htole32(RW | LW);
			break;
		case 8:
			wr.bind.addr = htole64(t->buf - 1);
			syndrome = ORNIC_SYN_KEY_RANGE;
			break;
		case 9:
			wr.bind.length = htole64(BUF - 99);
			syndrome = ORNIC_SYN_KEY_RANGE;
			break;
		case 10:
			wr.bind.addr = htole64(t->buf + BUF + 1);
			syndrome = ORNIC_SYN_KEY_RANGE;
			break;
		case 11:
			wr.bind.length = htole64(UINT64_MAX);
			syndrome = ORNIC_SYN_KEY_RANGE;
			break;
		case 12:
			wr.bind.access = htole32(RW | ORNIC_ACCESS_ZERO_BASED);
			break;
		case 13:
			wr.bind.length = 0;
			syndrome = ORNIC_SYN_KEY_RANGE;
			break;
		case 14:
			wr.bind.key = htole32(t->key);
			break;
		case 15:
			wr.bind.key = htole32(0xfff00);
			syndrome = ORNIC_SYN_KEY_INDEX;
			break;
		case 16:
			assert_int_equal(status_of(t, &t->c, bind_wr(t, key, RW)), 0);
			syndrome = ORNIC_SYN_KEY_STATE;
			break;
		case 17:
			wr.bind.lkey = htole32(0xfff00);
			syndrome = ORNIC_SYN_KEY_INDEX;
			break;
		case 18:
			wr.bind.access = htole32(RW | ORNIC_ACCESS_REMOTE_ATOMIC);
			t->a.d->dev.features &= ~ORNIC_FEATURE(ATOMICS);
			break;
		case 19:
			wr.bind.access = htole32(RW | ORNIC_ACCESS_ZERO_BASED);
			t->a.d->dev.features &= ~ORNIC_FEATURE(ZERO_BASED);
			break;
		}
		refused(t, wr, syndrome);
		assert_int_equal(region->windows, i == 16);
		assert_int_equal(mw->tag, key & 0xff);
		teardown(state);
	}
}

/* Execute a work request of @a at once. Return: its syndrome. */
static uint32_t execute(struct fix *t, const struct wr *wr)
{
	struct wqe w = { .opcode = wr->opcode, .reg = &wr->reg, .bind = &wr->bind,
			 .rkey = le32toh(wr->imm) };

	memop_execute(&t->a.qp, &w);
	assert_true(w.done);
	assert_int_equal(w.status, w.syndrome ? ORNIC_WC_MW_BIND_ERR : 0);
	return w.syndrome;
}

/* ORN-MEM-61, ORN-MEM-63, ORN-MEM-64: each right, alone and with LOCAL_WRITE */
static void test_rights(void **state)
{
	const uint32_t atomic = ORNIC_ACCESS_REMOTE_ATOMIC, zero = ORNIC_ACCESS_ZERO_BASED;
	const uint32_t fast = LW | RW | RR | atomic | ORNIC_ACCESS_RELAXED_ORDERING;
	struct fix *t = *state;
	struct mr *region = mr_of(t, t->key);
	uint32_t key[3] = { fast_key(t), window(t, ORNIC_KEY_MW1), window(t, ORNIC_KEY_MW2B) };

	for (uint32_t i = 0; i < 3 * 32 * 2 * 2; i++) {
		uint32_t access = 1u << i % 32, kind = i / 32 % 3, fresh = key[kind] ^ i % 256;
		bool more = i / 96 & 1, offered = i / 192;
		struct mr *mr = mr_of(t, key[kind]);
		uint32_t needs_lw = access & (RW | atomic);
		bool legal;

		t->a.d->dev.features = FEATURES_MEM;
		if (!offered)
			t->a.d->dev.features &= ~(ORNIC_FEATURE(ATOMICS) |
						  ORNIC_FEATURE(ZERO_BASED));
		if (kind == 0) {
			struct wr wr = reg_wr(t, fresh);

			legal = access & fast && (!needs_lw || more);
			access |= more ? LW : 0;
			wr.reg.access = htole32(access);
			if (access & atomic && !offered)
				legal = false;
			assert_int_equal(execute(t, &wr), legal ? 0 : ORNIC_SYN_KEY_ACCESS);
		} else {
			struct wr wr = bind_wr(t, fresh, access);

			region->access = ORNIC_ACCESS_MW_BIND | (more ? LW : 0);
			legal = access & (RW | RR | atomic | zero) && (!needs_lw || more);
			if (access & zero && (kind == 1 || !offered))
				legal = false;
			if (access & atomic && !offered)
				legal = false;
			assert_int_equal(execute(t, &wr), legal ? 0 : ORNIC_SYN_KEY_ACCESS);
			assert_int_equal(region->windows, legal);
		}
		assert_int_equal(mr->bound, legal);
		if (!legal)
			continue;
		assert_int_equal(mr->tag, fresh & 0xff);
		assert_int_equal(mr->access, access);
		assert_int_equal(mr->iova, !kind ? IOVA : access & zero ? 0 : t->buf + 100);
		assert_int_equal(mr->length, kind ? 1000 : GUEST_PAGE);
		assert_ptr_equal(mr->region, kind ? region : NULL);
		assert_int_equal(mr->start, kind ? 100 : 0);
		assert_ptr_equal(mr->qp, kind == 2 ? &t->a.qp : NULL);
		memop_unbind(mr);
		assert_false(mr->bound);
		assert_null(mr->qp);
		assert_null(mr->region);
		assert_int_equal(region->windows, 0);
		assert_int_equal(mr->lists.left, kind ? 0 : 4);
	}
}

/* A window may be all of its region, or end where it ends. */
static void test_bind_limits(void **state)
{
	static const struct {
		uint64_t at, len;
		uint32_t syndrome;
	} cases[] = {
		{ 0, BUF, 0 }, { 0, BUF + 1, ORNIC_SYN_KEY_RANGE }, { BUF - 1, 1, 0 },
		{ BUF - 1, 2, ORNIC_SYN_KEY_RANGE }, { BUF, 1, ORNIC_SYN_KEY_RANGE },
		{ -1ull, 1, ORNIC_SYN_KEY_RANGE }, { 1, UINT64_MAX, ORNIC_SYN_KEY_RANGE },
	};
	struct fix *t = *state;
	uint32_t key = window(t, ORNIC_KEY_MW1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wr wr = bind_wr(t, key, RR);

		wr.bind.addr = htole64(t->buf + cases[i].at);
		wr.bind.length = htole64(cases[i].len);
		assert_int_equal(execute(t, &wr), cases[i].syndrome);
	}
	assert_int_equal(mr_of(t, key)->start, BUF - 1);
	assert_int_equal(mr_of(t, key)->length, 1);
}

/* An unreliable connection has windows, too, and no remote invalidation. */
static void test_uc(void **state)
{
	struct fix *t = *state;
	struct conn_opt opt = { .type = ORNIC_QPT_UC };
	uint32_t key = window(t, ORNIC_KEY_MW2B);
	struct conn here, there;
	struct wr inv = inv_wr(ORNIC_WR_SEND_INV, key);

	conn_init(&here, t->a.d, &opt);
	conn_init(&there, t->b.d, &opt);
	conn_pair(&here, &there, 5, 6);
	assert_int_equal(status_of(t, &here, bind_wr(t, key, RW)), 0);
	assert_int_equal(peer_writes(t, &there, key, t->buf + 100, 1000), 0);
	check(dut_at(t->a.d, t->buf + 100, 1000), 1000, 1);
	assert_int_equal(status_of(t, &here, inv_wr(ORNIC_WR_LOCAL_INV, key)), 0);
	assert_false(mr_of(t, key)->bound);
	assert_int_equal(status_of(t, &here, inv_wr(ORNIC_WR_LOCAL_INV, key ^ 1)),
			 ORNIC_WC_MW_BIND_ERR);
	assert_int_equal(status_of(t, &there, inv), ORNIC_WC_LOC_QP_OP_ERR);
	conn_fini(&here);
	conn_fini(&there);
}

/* ORN-MEM-69; a reset keeps them */
static void test_qp_gone(void **state)
{
	struct fix *t = *state;
	uint32_t one = window(t, ORNIC_KEY_MW2B), two = window(t, ORNIC_KEY_MW1);
	struct conn other;

	assert_int_equal(status_of(t, &t->a, bind_wr(t, one, RW)), 0);
	assert_int_equal(status_of(t, &t->a, bind_wr(t, two, RW)), 0);
	qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
	assert_int_equal(mr_of(t, t->key)->windows, 2);
	assert_false(memop_unbind_some(&t->a.qp, 0));
	assert_true(memop_unbind_some(&t->a.qp, 1));
	assert_int_equal(mr_of(t, t->key)->windows, 1);
	assert_false(mr_of(t, one)->bound);
	assert_int_equal(peer_writes(t, &t->d, two, t->buf + 100, 1), 0);
	conn_init(&other, t->a.d, NULL);
	conn_pair(&other, &t->b, 1, 2);
	assert_int_equal(status_of(t, &other, bind_wr(t, one, RW)), 0);
	assert_int_equal(mr_of(t, t->key)->windows, 2);
	conn_fini(&other);
	assert_int_equal(mr_of(t, t->key)->windows, 1);
	assert_false(mr_of(t, one)->bound);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fast_reg),
		TEST(test_invalid_key),
		cmocka_unit_test(test_fast_reg_refused),
		cmocka_unit_test_setup_teardown(test_privileged, setup_user, teardown),
		TEST(test_order),
		TEST(test_order_of_failure),
		TEST(test_order_of_failed_bind),
		TEST(test_invalidate_waits),
		TEST(test_invalidate),
		TEST(test_send_inv),
		TEST(test_send_inv_refused),
		TEST(test_mw1),
		TEST(test_mw2b),
		TEST(test_mw_rights),
		TEST(test_mw_range),
		TEST(test_zero_based),
		cmocka_unit_test(test_bind_refused),
		TEST(test_rights),
		TEST(test_bind_limits),
		TEST(test_uc),
		TEST(test_qp_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
