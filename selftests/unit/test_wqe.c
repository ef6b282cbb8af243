// SPDX-License-Identifier: GPL-2.0
/* engine/wqe.c: decoding of work requests and their errors, in the order of ORN-WQE-1. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/identify.h>
#include "lib/pair.h"
#include "packet/bth.h"

#define STRIDE	9

struct fix {
	struct world w;
	struct conn c;
	struct wqe *q;
};

static void open_fix(struct fix *t, uint8_t type, uint32_t ring_offset)
{
	struct conn_opt opt = { .type = type, .sq_stride = STRIDE, .ring_offset = ring_offset };

	world_init(&t->w, 0);
	conn_init(&t->c, &t->w.dut[0], &opt);
	t->c.qp.sq.max_sge = 20;
	/* exactly as large as it must be, for the sanitizer */
	t->q = aligned_alloc(16, sizeof(*t->q) + (1u << STRIDE));
	assert_non_null(t->q);
}

static void close_fix(struct fix *t)
{
	free(t->q);
	conn_fini(&t->c);
	world_fini(&t->w);
}

static struct wr make(uint8_t opcode, uint32_t nsge, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = 0x1122334455667788,
			 .rkey = 0xaabbccdd, .swap_add = 17, .imm = 0x01020304,
			 .flush.type = ORNIC_FLUSH_GLOBAL };

	for (uint32_t i = 0; i < nsge; i++)
		wr_sge(&wr, 0x1000 * i, len, i);
	return wr;
}

static bool decode(struct fix *t, const struct wr *wr)
{
	memcpy(t->q->bytes, conn_write_wr(&t->c, wr), 1u << STRIDE);
	return wqe_decode(&t->c.qp, t->q, t->c.sq.index);
}

/* Every opcode of RC */
static void test_rc(void **state)
{
	static const uint8_t ops[] = { ORNIC_WR_RDMA_WRITE, ORNIC_WR_RDMA_WRITE_IMM, ORNIC_WR_SEND,
				       ORNIC_WR_SEND_IMM, ORNIC_WR_RDMA_READ };
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	for (uint32_t i = 0; i < sizeof(ops); i++) {
		struct wr wr = make(ops[i], 3, 100);

		assert_true(decode(&t, &wr));
		assert_int_equal(t.q->status, 0);
		assert_int_equal(t.q->opcode, ops[i]);
		assert_int_equal(t.q->flags, ORNIC_WQE_SIGNALED);
		assert_int_equal(t.q->nsge, 3);
		assert_int_equal(t.q->len, 300);
		assert_int_equal(le64toh(t.q->sge[2].addr), 0x2000);
		assert_int_equal(t.q->imm, 0x01020304);
		assert_int_equal(t.q->index, 0);
		if (ops[i] == ORNIC_WR_SEND || ops[i] == ORNIC_WR_SEND_IMM) {
			assert_int_equal(t.q->rkey, 0);
			continue;
		}
		assert_int_equal(t.q->raddr, 0x1122334455667788);
		assert_int_equal(t.q->rkey, 0xaabbccdd);
	}
	close_fix(&t);
}

static void test_atomic(void **state)
{
	struct wr wr = make(ORNIC_WR_COMP_SWAP, 1, 8);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	wr.compare = 18;
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->swap_add, 17);
	assert_int_equal(t.q->compare, 18);
	assert_true(wqe_is_read(t.q));
	wr = make(ORNIC_WR_FETCH_ADD, 1, 8);
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->swap_add, 17);
	wr = make(ORNIC_WR_NOP, 0, 0);
	assert_true(decode(&t, &wr));
	close_fix(&t);
}

static void test_inline(void **state)
{
	uint8_t text[128];
	struct wr wr = make(ORNIC_WR_RDMA_WRITE, 0, 0);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	fill(text, sizeof(text), 1);
	wr.inl = text;
	wr.inl_len = sizeof(text);
	wr.flags |= ORNIC_WQE_INLINE;
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->len, 128);
	assert_int_equal(t.q->nsge, 0);
	check(t.q->inl, 128, 1);
	wr.inl_len = 0;
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->len, 0);
	close_fix(&t);
}

static void test_ud(void **state)
{
	struct wr wr = make(ORNIC_WR_SEND_IMM, 2, 10);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_UD, 0);
	wr.path.dest_qpn = htole32(0xffffff);
	wr.path.port = 1;
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->nsge, 2);
	assert_int_equal(le32toh(t.q->path->dest_qpn), 0xffffff);
	close_fix(&t);
}

/** struct bad - one byte or length that is wrong, and the expected result */
struct bad {
	uint8_t type;
	uint8_t opcode;
	uint32_t nsge;
	uint32_t len;
	int at;			/* this byte is set to ... */
	uint8_t value;
	uint8_t status;
	uint32_t syndrome;
};

#define ALL_FEATURES	\
	(ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW1) | ORNIC_FEATURE(FLUSH_GLOBAL))
#define OP	ORNIC_WC_LOC_QP_OP_ERR
#define RC	ORNIC_QPT_RC
#define UD	ORNIC_QPT_UD
#define RAW	ORNIC_QPT_RAW

static const struct bad bad[] = {
	/* ORN-WQE-22: opcodes unknown, reserved, of another type */
	{ RC, ORNIC_WR_SEND, 1, 8, 0, 0xff, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_LOCAL_INV, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_BIND_MW, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_SEND_INV, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_TSO, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_MASKED_CS, OP, ORNIC_SYN_WQE_OPCODE },
	{ UD, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_FLUSH, OP, ORNIC_SYN_WQE_OPCODE },
	{ UD, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_ATOMIC_WRITE, OP, ORNIC_SYN_WQE_OPCODE },
	{ RC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_FAST_REG, OP, ORNIC_SYN_WQE_OPCODE },
	{ UD, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_RDMA_WRITE, OP, ORNIC_SYN_WQE_OPCODE },
	{ UD, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_RDMA_READ, OP, ORNIC_SYN_WQE_OPCODE },
	{ UD, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_FETCH_ADD, OP, ORNIC_SYN_WQE_OPCODE },
	{ ORNIC_QPT_UC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_RDMA_READ, OP, ORNIC_SYN_WQE_OPCODE },
	{ ORNIC_QPT_UC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_COMP_SWAP, OP, ORNIC_SYN_WQE_OPCODE },
	{ ORNIC_QPT_UC, ORNIC_WR_SEND, 1, 8, 0, ORNIC_WR_FETCH_ADD, OP, ORNIC_SYN_WQE_OPCODE },
	/* ORN-WQE-5, ORN-WQE-6 */
	{ RC, ORNIC_WR_SEND, 1, 8, 8, 0x77, OP, ORNIC_SYN_WQE_QPN },
	{ RC, ORNIC_WR_SEND, 1, 8, 11, 1, OP, ORNIC_SYN_WQE_QPN },
	{ RC, ORNIC_WR_SEND, 1, 8, 12, 0x77, OP, ORNIC_SYN_WQE_STALE },
	{ RC, ORNIC_WR_SEND, 1, 8, 15, 1, OP, ORNIC_SYN_WQE_STALE },
	{ UD, ORNIC_WR_SEND, 1, 8, 16 + 0x2c, 2, OP, ORNIC_SYN_WQE_MBZ },	/* port */
	{ UD, ORNIC_WR_SEND, 1, 8, 16 + 0x2d, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ UD, ORNIC_WR_SEND, 1, 8, 16 + 0x2e, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ UD, ORNIC_WR_SEND, 1, 8, 16 + 0x17, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ UD, ORNIC_WR_SEND, 1, 8, 16 + 0x2f, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 8, 0, OP, ORNIC_SYN_WQE_MBZ },	/* type */
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 8, 4, OP, ORNIC_SYN_WQE_MBZ },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 8, 0x81, OP, ORNIC_SYN_WQE_MBZ },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 9, 2, OP, ORNIC_SYN_WQE_MBZ },		/* level */
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 10, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 15, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 3, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 6, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 12, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 12, 4, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 13, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 14, 1, OP, ORNIC_SYN_WQE_MBZ },
	{ RAW, ORNIC_WR_SEND, 1, 8, 16 + 15, 1, OP, ORNIC_SYN_WQE_MBZ },
	/* segments past the stride: 31 SGEs fit for SEND, 30 with a remote segment */
	{ RC, ORNIC_WR_SEND, 1, 8, 2, 32, OP, ORNIC_SYN_WQE_SEGMENT },
	{ RC, ORNIC_WR_RDMA_WRITE, 1, 8, 2, 31, OP, ORNIC_SYN_WQE_SEGMENT },
	{ UD, ORNIC_WR_SEND, 1, 8, 2, 29, OP, ORNIC_SYN_WQE_SEGMENT },
	{ RC, ORNIC_WR_SEND, 1, 8, 3, 0xff, OP, ORNIC_SYN_WQE_SEGMENT },
	/* ORN-WQE-23 */
	{ RC, ORNIC_WR_SEND, 1, 8, 2, 21, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_RDMA_READ, 1, 8, 2, 17, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_FETCH_ADD, 2, 4, -1, 0, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_COMP_SWAP, 0, 0, -1, 0, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_NOP, 0, 0, 2, 1, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 2, 1, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_ATOMIC_WRITE, 2, 4, -1, 0, OP, ORNIC_SYN_WQE_COUNT },
	{ RC, ORNIC_WR_ATOMIC_WRITE, 1, 8, 2, 0, OP, ORNIC_SYN_WQE_COUNT },
	/* ORN-WQE-13 */
	{ RC, ORNIC_WR_SEND, 2, 0x40000001, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_SEND, 20, 0xffffffff, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_FETCH_ADD, 1, 4, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_FETCH_ADD, 1, 16, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_ATOMIC_WRITE, 1, 7, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_ATOMIC_WRITE, 1, 9, -1, 0, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
	{ RC, ORNIC_WR_FLUSH, 0, 0, 32 + 4, 1, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH },
};

/* ORN-WQE-5, ORN-WQE-6, ORN-WQE-22, ORN-WQE-23, ORN-ERR-4 */
static void test_malformed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wr wr = make(bad[i].opcode, bad[i].nsge, bad[i].len);
		struct fix t;

		open_fix(&t, bad[i].type, 0);
		assert_true(bad[i].at < 0 || bad[i].len > 0xff || bad[i].nsge > 20 ||
			    decode(&t, &wr));
		memcpy(t.q->bytes, conn_write_wr(&t.c, &wr), 1u << STRIDE);
		if (bad[i].at >= 0)
			t.q->bytes[bad[i].at] = bad[i].value;
		assert_false(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
		if (t.q->status != bad[i].status || t.q->syndrome != bad[i].syndrome)
			fail_msg("entry %u: status %u syndrome %x", i, t.q->status, t.q->syndrome);
		close_fix(&t);
	}
}

/* ORN-WQE-1: of two errors, the one that is checked first is reported. */
static void test_order(void **state)
{
	static const struct {
		int at;
		uint8_t value;
		uint32_t syndrome;
	} fault[] = {
		{ 2, 21, ORNIC_SYN_WQE_COUNT },
		{ 3, 0xff, ORNIC_SYN_WQE_SEGMENT },
		{ 12, 0x99, ORNIC_SYN_WQE_STALE },
		{ 8, 0x99, ORNIC_SYN_WQE_QPN },
		{ 1, 0x40, ORNIC_SYN_WQE_MBZ },
		{ 0, 0x40, ORNIC_SYN_WQE_OPCODE },
	};
	struct wr wr = make(ORNIC_WR_SEND, 20, 0xffffffff);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	assert_false(decode(&t, &wr));
	assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_LENGTH);
	for (uint32_t i = 0; i < sizeof(fault) / sizeof(fault[0]); i++) {
		t.q->bytes[fault[i].at] = fault[i].value;
		assert_false(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
		assert_int_equal(t.q->syndrome, fault[i].syndrome);
	}
	close_fix(&t);
}

/* Memory operations: flags and data that they do not have (ORN-WQE-17) */
static void test_memops(void **state)
{
	static const uint8_t ops[] = { ORNIC_WR_FAST_REG, ORNIC_WR_BIND_MW, ORNIC_WR_LOCAL_INV };
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	t.c.qp.flags = ORNIC_QP_F_PRIVILEGED;
	t.c.d->dev.features = ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW1);
	for (uint32_t i = 0; i < sizeof(ops); i++) {
		struct wr wr = make(ops[i], 0, 0);

		assert_true(decode(&t, &wr));
		assert_true(wqe_is_memop(t.q));
		assert_int_equal(t.q->len, 0);
		t.q->bytes[2] = 1;
		assert_false(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
		assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_COUNT);
		t.q->bytes[2] = 0;
		t.q->bytes[1] = ORNIC_WQE_INLINE;
		assert_false(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
		assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_MBZ);
		t.q->bytes[1] = ORNIC_WQE_FENCE;
		assert_true(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
	}
	assert_int_equal(t.q->rkey, 0x01020304);
	close_fix(&t);
}

/** struct field - a field of a work request with reserved bits; @good are those that it defines */
struct field {
	uint8_t type;
	uint8_t opcode;
	uint8_t at;
	uint8_t size;
	uint64_t good;
};

/* Offset of the first segment, and of one behind a remote segment */
#define SEG1	sizeof(struct ornic_wqe_ctrl)
#define SEG2	(SEG1 + sizeof(struct ornic_wqe_remote))

#define FIELD(type, opcode, before, seg, member, good)				\
	{ type, ORNIC_WR_##opcode, (before) + offsetof(struct ornic_##seg, member),	\
	  sizeof(((struct ornic_##seg *)0)->member), good }

static const struct field fields[] = {
	FIELD(RC, SEND, 0, wqe_ctrl, flags, 0x0f),
	FIELD(RC, RDMA_READ, 0, wqe_ctrl, flags, 0x07),
	FIELD(RC, FETCH_ADD, 0, wqe_ctrl, flags, 0x07),
	FIELD(RC, COMP_SWAP, 0, wqe_ctrl, flags, 0x07),
	FIELD(RC, FLUSH, 0, wqe_ctrl, flags, 0x07),
	FIELD(RC, NOP, 0, wqe_ctrl, flags, 0x07),
	FIELD(UD, SEND, 0, wqe_ctrl, flags, 0x0f),
	FIELD(ORNIC_QPT_RAW, SEND, 0, wqe_ctrl, flags, 0x1f),
	FIELD(RC, RDMA_WRITE, SEG1, wqe_remote, xrc_srqn, 0),
	FIELD(RC, FETCH_ADD, SEG1, wqe_remote, xrc_srqn, 0),
	FIELD(ORNIC_QPT_XRC_INI, RDMA_WRITE, SEG1, wqe_remote, xrc_srqn, ORNIC_NUMBER_MASK),
	FIELD(RC, FETCH_ADD, SEG2, wqe_atomic, compare, 0),
	FIELD(RC, FLUSH, SEG2, wqe_flush, level, 0x01),
	FIELD(RC, FLUSH, SEG2, wqe_flush, type, 0x03),
	FIELD(RC, FLUSH, SEG2, wqe_flush, mbz, 0),
	FIELD(UD, SEND, SEG1, path, mbz, 0),
	FIELD(UD, SEND, SEG1, path, dest_qpn, ORNIC_NUMBER_MASK),
	FIELD(UD, SEND, SEG1, path, flags, 0),
	FIELD(UD, SEND, SEG1, path, dlid, 0),
	FIELD(ORNIC_QPT_RAW, SEND, SEG1, wqe_eth, mss, 0),
	FIELD(ORNIC_QPT_RAW, SEND, SEG1, wqe_eth, hdr_len, 0),
	FIELD(ORNIC_QPT_RAW, SEND, SEG1, wqe_eth, vlan_tci, 0),
	FIELD(ORNIC_QPT_RAW, SEND, SEG1, wqe_eth, eflags, ORNIC_ETH_CSUM_PARTIAL),
	FIELD(ORNIC_QPT_RAW, SEND, SEG1, wqe_eth, mbz, 0),
	FIELD(RC, FAST_REG, SEG1, wqe_fast_reg, mbz, 0),
	FIELD(RC, BIND_MW, SEG1, wqe_bind, mbz, 0),
};

/* ORN-WQE-17, ORN-ETH-13: each reserved bit of each segment */
static void test_reserved_bits(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct field *f = &fields[i];
		bool word = f->opcode == ORNIC_WR_FETCH_ADD || f->opcode == ORNIC_WR_COMP_SWAP;
		struct wr wr = make(f->opcode, word, 8);
		struct fix t;

		open_fix(&t, f->type, 0);
		t.c.qp.flags = ORNIC_QP_F_PRIVILEGED;
		t.c.d->dev.features = ALL_FEATURES;
		wr.flush.type = ORNIC_FLUSH_GLOBAL;
		assert_true(decode(&t, &wr));
		for (uint32_t bit = 0; bit < 8u * f->size; bit++) {
			if (f->good >> bit & 1)
				continue;
			decode(&t, &wr);
			t.q->bytes[f->at + bit / 8] |= 1u << bit % 8;
			if (wqe_decode(&t.c.qp, t.q, t.c.sq.index) ||
			    t.q->status != OP || t.q->syndrome != ORNIC_SYN_WQE_MBZ)
				fail_msg("field %u, bit %u: status %u syndrome %x", i, bit,
					 t.q->status, t.q->syndrome);
		}
		close_fix(&t);
	}
}

/* Segments past the end of a slot, which is smaller here than QP_CREATE permits */
static void test_small_slot(void **state)
{
	static const struct {
		uint8_t type;
		uint8_t opcode;
		uint8_t stride;
	} slot[] = {
		{ RC, ORNIC_WR_RDMA_WRITE, 4 }, { RC, ORNIC_WR_FETCH_ADD, 5 },
		{ RC, ORNIC_WR_FLUSH, 5 }, { RC, ORNIC_WR_FAST_REG, 5 },
		{ RC, ORNIC_WR_BIND_MW, 5 }, { UD, ORNIC_WR_SEND, 5 },
		{ ORNIC_QPT_RAW, ORNIC_WR_SEND, 4 },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(slot) / sizeof(slot[0]); i++) {
		struct wr wr = make(slot[i].opcode, slot[i].opcode == ORNIC_WR_FETCH_ADD, 8);
		struct fix t;

		open_fix(&t, slot[i].type, 0);
		t.c.qp.flags = ORNIC_QP_F_PRIVILEGED;
		t.c.d->dev.features = ALL_FEATURES;
		wr.flush.type = ORNIC_FLUSH_GLOBAL;
		assert_true(decode(&t, &wr));
		t.c.qp.sq.stride = slot[i].stride;
		assert_false(wqe_decode(&t.c.qp, t.q, t.c.sq.index));
		assert_int_equal(t.q->status, OP);
		assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_SEGMENT);
		t.c.qp.sq.stride = STRIDE;
		close_fix(&t);
	}
}

static void test_inline_limits(void **state)
{
	uint8_t text[512] = { 0 };
	struct wr wr = make(ORNIC_WR_SEND, 0, 0);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	wr.inl = text;
	wr.flags |= ORNIC_WQE_INLINE;
	wr.inl_len = 129;
	assert_false(decode(&t, &wr));
	assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_COUNT);
	wr.inl_len = 0;
	assert_true(decode(&t, &wr));
	t.q->bytes[2] = 0xf1;	/* 497 bytes after 16: one too many */
	t.q->bytes[3] = 1;
	assert_false(wqe_decode(&t.c.qp, t.q, 0));
	assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_SEGMENT);
	close_fix(&t);
}

/* As many SGEs as the slot has room for, and as a READ may have (ORN-WQE-23) */
static void test_most_sges(void **state)
{
	struct wr write = make(ORNIC_WR_RDMA_WRITE, 30, 8), read = make(ORNIC_WR_RDMA_READ, 16, 8);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	t.c.qp.sq.max_sge = 30;
	assert_true(decode(&t, &write));
	assert_int_equal(t.q->nsge, 30);
	assert_true(decode(&t, &read));
	assert_int_equal(t.q->nsge, 16);
	close_fix(&t);
}

/* The longest message that is legal: 2^31 bytes (ORN-WQE-13) */
static void test_longest(void **state)
{
	struct wr wr = make(ORNIC_WR_RDMA_READ, 2, 0x40000000);
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	assert_true(decode(&t, &wr));
	assert_int_equal(t.q->len, 0x80000000u);
	close_fix(&t);
}

/* Begin a work request of @opcode whose other bytes are zero. */
static void blank(struct fix *t, uint8_t opcode)
{
	struct ornic_wqe_ctrl *c = (void *)t->q->bytes;

	memset(c, 0, 1u << STRIDE);
	c->opcode = opcode;
	c->qpn = htole32(t->c.qp.handle);
	c->index = htole32(7);
	if (opcode == ORNIC_WR_FLUSH)
		((struct ornic_wqe_flush *)(t->q->bytes + 32))->type = ORNIC_FLUSH_GLOBAL;
}

/* Return the syndrome, or 0. */
static uint32_t decoded(struct fix *t)
{
	bool good = wqe_decode(&t->c.qp, t->q, 7);

	assert_int_equal(good, !t->q->syndrome);
	assert_int_equal(!t->q->status, !t->q->syndrome);
	return t->q->syndrome;
}

#define BIT(type)	(1u << ORNIC_QPT_##type)
#define RELIABLE	(BIT(RC) | BIT(XRC_INI))
#define ANY_TYPE	(BIT(RC) | BIT(UC) | BIT(UD) | BIT(GSI) | BIT(RAW) | BIT(XRC_INI))

/** struct known - an opcode */
struct known {
	uint32_t types;		/* that have it */
	uint64_t features;	/* of which it needs one, if any */
	uint32_t bytes;		/* of the segments, without data */
	bool inl;		/* data may be inline */
};

static const struct known known[256] = {
	[ORNIC_WR_SEND] = { ANY_TYPE, 0, 16, true },
	[ORNIC_WR_SEND_IMM] = { ANY_TYPE & ~BIT(RAW), 0, 16, true },
	[ORNIC_WR_SEND_INV] = { BIT(RC), ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW2B), 16, true },
	[ORNIC_WR_RDMA_WRITE] = { RELIABLE | BIT(UC), 0, 32, true },
	[ORNIC_WR_RDMA_WRITE_IMM] = { RELIABLE | BIT(UC), 0, 32, true },
	[ORNIC_WR_RDMA_READ] = { RELIABLE, 0, 32, false },
	[ORNIC_WR_COMP_SWAP] = { RELIABLE, 0, 48, false },
	[ORNIC_WR_FETCH_ADD] = { RELIABLE, 0, 48, false },
	[ORNIC_WR_FLUSH] = { BIT(RC), ORNIC_FEATURE(FLUSH_GLOBAL) |
			     ORNIC_FEATURE(FLUSH_PERSISTENT), 48, false },
	[ORNIC_WR_ATOMIC_WRITE] = { BIT(RC), ORNIC_FEATURE(ATOMIC_WRITE), 32, true },
	[ORNIC_WR_LOCAL_INV] = { BIT(RC) | BIT(UC), ORNIC_FEATURE(FAST_REG) |
				 ORNIC_FEATURE(MW2B), 16, false },
	[ORNIC_WR_BIND_MW] = { BIT(RC) | BIT(UC), ORNIC_FEATURE(MW1) | ORNIC_FEATURE(MW2B), 48,
			       false },
	[ORNIC_WR_FAST_REG] = { BIT(RC) | BIT(UC), ORNIC_FEATURE(FAST_REG), 64, false },
	[ORNIC_WR_NOP] = { ANY_TYPE, 0, 16, false },
};

/* Bytes of control, address and operand segments of an opcode that the type has */
static uint32_t segment_bytes(uint8_t type, uint8_t opcode)
{
	bool send = opcode == ORNIC_WR_SEND || opcode == ORNIC_WR_SEND_IMM;

	if (send && (type == ORNIC_QPT_UD || type == ORNIC_QPT_GSI))
		return 64;
	return send && (type == ORNIC_QPT_RAW || type == ORNIC_QPT_XRC_INI) ? 32 :
	       known[opcode].bytes;
}

/* ORN-WQE-22, ORN-WQE-17: opcodes of each type with each feature; flags and slots of all opcodes */
static void test_opcodes(void **state)
{
	(void)state;
	for (uint8_t type = 0; type < 32; type++) {
		struct fix t;

		if (!(ANY_TYPE >> type & 1))
			continue;
		open_fix(&t, type, 0);
		t.c.qp.flags = ORNIC_QP_F_PRIVILEGED;
		for (uint32_t op = 0; op < 256; op++) {
			const struct known *k = &known[op];
			uint8_t flags = ORNIC_WQE_FENCE | ORNIC_WQE_SIGNALED | ORNIC_WQE_SOLICITED;

			blank(&t, op);
			for (int f = -1; f <= 64; f++) {
				uint64_t has = f < 0 ? 0 : f == 64 ? UINT64_MAX : 1ull << f;
				bool legal = k->types >> type & 1 &&
					     (!k->features || k->features & has);

				t.c.d->dev.features = has;
				assert_int_equal(decoded(&t) != ORNIC_SYN_WQE_OPCODE, legal);
			}
			if (!(k->types >> type & 1))
				continue;
			flags |= k->inl ? ORNIC_WQE_INLINE : 0;
			flags |= type == ORNIC_QPT_RAW ? ORNIC_WQE_IP_CSUM : 0;
			for (int bit = 0; bit < 8; bit++) {
				t.q->bytes[1] = 1u << bit;
				assert_int_equal(decoded(&t) != ORNIC_SYN_WQE_MBZ,
						 flags >> bit & 1);
			}
			t.q->bytes[1] = 0;
			for (t.c.qp.sq.stride = 4; t.c.qp.sq.stride < STRIDE; t.c.qp.sq.stride++)
				assert_int_equal(decoded(&t) != ORNIC_SYN_WQE_SEGMENT,
						 1u << t.c.qp.sq.stride >=
						 segment_bytes(type, op));
		}
		t.c.d->dev.features = 0;
		close_fix(&t);
	}
}

/* FAST_REG gives DMA addresses (ORN-WQE-62). */
static void test_privilege(void **state)
{
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	t.c.d->dev.features = ORNIC_FEATURE(FAST_REG);
	blank(&t, ORNIC_WR_FAST_REG);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_PRIVILEGED);
	assert_int_equal(t.q->status, ORNIC_WC_LOC_QP_OP_ERR);
	t.c.qp.flags = ORNIC_QP_F_PRIVILEGED;
	assert_int_equal(decoded(&t), 0);
	assert_ptr_equal(t.q->reg, t.q->bytes + 16);
	close_fix(&t);
}

/* The bytes of a FLUSH, at most 2^31, or all of a region (ORN-WQE-13) */
static void test_flush(void **state)
{
	struct ornic_wqe_flush *f;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	f = (void *)(t.q->bytes + 32);
	blank(&t, ORNIC_WR_FLUSH);
	f->length = htole64(ORNIC_MAX_MSG);
	f->type = ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT;
	assert_int_equal(decoded(&t), 0);
	assert_int_equal(t.q->flush_len, ORNIC_MAX_MSG);
	assert_int_equal(t.q->feth, 3);
	assert_int_equal(t.q->len, 0);
	f->length = htole64(ORNIC_MAX_MSG + 1ull);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_LENGTH);
	assert_int_equal(t.q->status, ORNIC_WC_LOC_LEN_ERR);
	f->level = ORNIC_FLUSH_REGION;
	assert_int_equal(decoded(&t), 0);
	assert_int_equal(t.q->flush_len, 0);
	assert_int_equal(t.q->feth, 3 | 1 << FETH_LEVEL_SHIFT);
	close_fix(&t);
}

/* ATOMIC_WRITE takes eight inline bytes, whatever the limit of others is. */
static void test_inline_word(void **state)
{
	struct ornic_wqe_ctrl *c;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	c = (void *)t.q->bytes;
	t.c.qp.max_inline = 0;
	blank(&t, ORNIC_WR_ATOMIC_WRITE);
	c->flags = ORNIC_WQE_INLINE;
	for (uint16_t count = 0; count <= 16; count++) {
		c->count = htole16(count);
		assert_int_equal(decoded(&t), count == 8 ? 0 : ORNIC_SYN_WQE_COUNT);
	}
	blank(&t, ORNIC_WR_SEND);
	c->flags = ORNIC_WQE_INLINE;
	c->count = htole16(1);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_COUNT);
	close_fix(&t);
}

/* ORN-XRC-4: the number of an SRQ, and the remote segment of a SEND, which has no more */
static void test_xrc(void **state)
{
	struct ornic_wqe_remote *r;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_XRC_INI, 0);
	r = (void *)(t.q->bytes + 16);
	blank(&t, ORNIC_WR_SEND);
	r->xrc_srqn = htole32(ORNIC_NUMBER_MASK);
	assert_int_equal(decoded(&t), 0);
	assert_int_equal(t.q->xrc_srqn, ORNIC_NUMBER_MASK);
	r->rkey = htole32(1);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_MBZ);
	r->rkey = 0;
	r->addr = htole64(1);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_MBZ);
	assert_int_equal(t.q->status, ORNIC_WC_LOC_QP_OP_ERR);
	r->addr = 0;
	r->xrc_srqn = htole32(ORNIC_NUMBER_MASK + 1);
	assert_int_equal(decoded(&t), ORNIC_SYN_WQE_MBZ);
	close_fix(&t);
}

/* ORN-ETH-11: inline bytes of a frame, padded to 16, before the data */
static void test_eth(void **state)
{
	struct ornic_wqe_ctrl *c;
	struct ornic_wqe_eth *e;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RAW, 0);
	c = (void *)t.q->bytes;
	e = (void *)(c + 1);
	for (uint32_t hdr = 0; hdr <= 500; hdr++) {
		uint32_t padded = (hdr + 15) / 16 * 16;

		blank(&t, ORNIC_WR_SEND);
		c->count = htole16(1);
		e->inline_hdr = htole16(hdr);
		e->eflags = ORNIC_ETH_CSUM_PARTIAL;
		if (decoded(&t)) {
			assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_SEGMENT);
			assert_true(32 + padded + 16 > 1u << STRIDE);
			continue;
		}
		assert_true(32 + padded + 16 <= 1u << STRIDE);
		assert_ptr_equal(t.q->eth, e);
		assert_ptr_equal(t.q->hdr, t.q->bytes + 32);
		assert_ptr_equal(t.q->sge, t.q->bytes + 32 + padded);
	}
	close_fix(&t);
}

/* A malformed entry is fetched and counted; a ring that breaks is reported once, by an event. */
static void test_fetch(void **state)
{
	const struct wr wr = make(ORNIC_WR_SEND, 1, 8);
	struct ornic_eqe e;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	conn_rts(&t.c);
	assert_int_equal(wqe_fetch(&t.c.qp, t.q), 0);
	conn_write_wr(&t.c, &wr)[1] = 0x80;
	conn_publish(&t.c, &t.c.sq, 1);
	assert_int_equal(wqe_fetch(&t.c.qp, t.q), 1);
	assert_int_equal(t.q->syndrome, ORNIC_SYN_WQE_MBZ);
	assert_int_equal(t.q->seen, 0);
	assert_int_equal(t.c.d->dev.cnt[CNT_wqe_errors], 1);
	assert_int_equal(t.c.qp.sq.cons, 1);
	conn_publish(&t.c, &t.c.sq, 1000);
	assert_int_equal(wqe_fetch(&t.c.qp, t.q), -EIO);
	assert_true(t.c.qp.sq.bad);
	assert_int_equal(t.c.qp.sq.cons, 1);
	assert_int_equal(t.c.qp.state, ORNIC_QPS_ERR);
	assert_true(dut_event(t.c.d, &e));
	assert_int_equal(e.type, ORNIC_EV_QP_FATAL);
	assert_int_equal(le32toh(e.number), t.c.qp.handle);
	assert_int_equal(le32toh(e.syndrome), ORNIC_SYN_RING_INDEX);
	assert_int_equal(le32toh(e.info0), ORNIC_QPS_ERR);
	assert_int_equal(le32toh(e.info1), 1);
	assert_int_equal(le32toh(e.owner), 7);
	assert_int_equal(t.c.d->dev.cnt[CNT_wqe_errors], 1);
	close_fix(&t);
}

/* Slots that lie in two pages which are not neighbours */
static void test_straddle(void **state)
{
	struct wr wr = make(ORNIC_WR_SEND, 20, 8);
	uint32_t n = 16;
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 64);
	for (uint32_t i = 0; i < n; i++) {
		conn_write_wr(&t.c, &wr);
		t.c.sq.index++;
	}
	/* Page 1 moves elsewhere; the ring's copy of the list follows. */
	{
		uint64_t old = (t.c.sq.ring & ~(GUEST_PAGE - 1)) + GUEST_PAGE;
		uint64_t new = guest_alloc(&t.c.d->guest, GUEST_PAGE, GUEST_PAGE);

		memcpy(guest_at(&t.c.d->guest, new, GUEST_PAGE),
		       guest_at(&t.c.d->guest, old, GUEST_PAGE), GUEST_PAGE);
		memset(guest_at(&t.c.d->guest, old, GUEST_PAGE), 0, GUEST_PAGE);
		t.c.qp.sq.mem.page[1] = new;
	}
	conn_publish(&t.c, &t.c.sq, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(wqe_fetch(&t.c.qp, t.q), 1);
		assert_int_equal(t.q->status, 0);
		assert_int_equal(t.q->index, i);
		assert_int_equal(le64toh(t.q->sge[19].addr), 0x1000 * 19);
	}
	assert_int_equal(wqe_fetch(&t.c.qp, t.q), 0);
	close_fix(&t);
}

static uint32_t rnd(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* Accepted work requests lie within the copy, for any bytes. */
static void inside(const struct fix *t)
{
	const uint8_t *end = t->q->bytes + (1u << STRIDE);

	if (t->q->inl)
		assert_true(t->q->inl >= t->q->bytes && t->q->inl + t->q->len <= end);
	if (t->q->sge)
		assert_true((const uint8_t *)(t->q->sge + t->q->nsge) <= end);
	assert_true(t->q->nsge <= t->c.qp.sq.max_sge);
	assert_true(t->q->len <= ORNIC_MAX_MSG);
}

/* ORN-RNG-3 */
static void test_fuzz(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UC, ORNIC_QPT_UD,
					 ORNIC_QPT_GSI, ORNIC_QPT_RAW };
	uint64_t seed = 1;
	uint32_t good = 0;

	(void)state;
	for (uint32_t k = 0; k < sizeof(types); k++) {
		struct fix t;

		open_fix(&t, types[k], 0);
		for (uint32_t i = 0; i < 20000; i++) {
			struct ornic_wqe_ctrl *c = (void *)t.q->bytes;

			for (uint32_t j = 0; j < 1u << STRIDE; j++)
				t.q->bytes[j] = rnd(&seed) & 31 ? 0 : rnd(&seed);
			c->opcode &= 7;
			c->flags &= rnd(&seed);
			c->count &= rnd(&seed) & 1 ? htole16(0x3f) : 0xffff;
			c->qpn = htole32(t.c.qp.handle);
			c->index = htole32(i);
			good += wqe_decode(&t.c.qp, t.q, i);
			if (!t.q->status)
				inside(&t);
		}
		close_fix(&t);
	}
	assert_true(good > 1000);
}

/* Receives: malformed forms, straight from the ring (ORN-RQ-2, ORN-RQ-10) */
static void test_receive(void **state)
{
	static const struct {
		int at;
		uint8_t value;
		uint32_t syndrome;
	} fault[] = {
		{ 0, 12, ORNIC_SYN_WQE_COUNT },
		{ 1, 0xff, ORNIC_SYN_WQE_SEGMENT },
		{ 2, 1, ORNIC_SYN_WQE_MBZ },
		{ 4, 9, ORNIC_SYN_WQE_STALE },
		{ 15, 1, ORNIC_SYN_WQE_MBZ },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(fault) / sizeof(fault[0]); i++) {
		struct rwqe r = {};
		struct fix t;

		open_fix(&t, ORNIC_QPT_RC, 0);
		t.c.qp.rq.max_sge = 11;
		qp_set_state(&t.c.qp, ORNIC_QPS_INIT);
		qp_set_state(&t.c.qp, ORNIC_QPS_RTR);
		conn_recv(&t.c, 0x1000, 7, 0);
		conn_recv(&t.c, 0x2000, 8, 0);
		*(uint8_t *)guest_at(&t.c.d->guest, t.c.rq.ring + 256 + fault[i].at, 1) =
			fault[i].value;
		assert_int_equal(rwqe_fetch(&t.c.qp, &r), 1);
		assert_int_equal(r.len, 7);
		assert_true(rwqe_fetch(&t.c.qp, &r) < 0);
		conn_expect(&t.c, &t.c.hrcq, 1, ORNIC_WC_RECV, ORNIC_WC_LOC_QP_OP_ERR);
		assert_int_equal(t.c.d->dev.cnt[CNT_wqe_errors], 1);
		assert_int_equal(t.c.qp.syndrome, fault[i].syndrome);
		assert_int_equal(t.c.qp.state, ORNIC_QPS_ERR);
		world_run(&t.w);
		close_fix(&t);
	}
}

/* A receive with as many SGEs as its slot has room for; the next one does not add to it. */
static void test_receive_most_sges(void **state)
{
	const uint16_t most = (256 - sizeof(struct ornic_rwqe)) / sizeof(struct ornic_sge);
	struct rwqe r = {};
	struct fix t;

	(void)state;
	open_fix(&t, ORNIC_QPT_RC, 0);
	t.c.qp.rq.max_sge = most;
	conn_recv(&t.c, 0x1000, 7, 0);
	conn_recv(&t.c, 0x2000, 8, 0);
	((struct ornic_rwqe *)guest_at(&t.c.d->guest, t.c.rq.ring, 256))->count = htole16(most);
	assert_int_equal(rwqe_fetch(&t.c.qp, &r), 1);
	assert_int_equal(r.nsge, most);
	assert_int_equal(r.len, 7);
	assert_int_equal(rwqe_fetch(&t.c.qp, &r), 1);
	assert_int_equal(r.nsge, 1);
	assert_int_equal(r.len, 8);
	close_fix(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rc), cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_inline), cmocka_unit_test(test_ud),
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_order),
		cmocka_unit_test(test_memops), cmocka_unit_test(test_reserved_bits),
		cmocka_unit_test(test_small_slot), cmocka_unit_test(test_inline_limits),
		cmocka_unit_test(test_most_sges), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_straddle), cmocka_unit_test(test_fuzz),
		cmocka_unit_test(test_opcodes), cmocka_unit_test(test_privilege),
		cmocka_unit_test(test_flush), cmocka_unit_test(test_inline_word),
		cmocka_unit_test(test_xrc), cmocka_unit_test(test_eth),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_receive), cmocka_unit_test(test_receive_most_sges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
