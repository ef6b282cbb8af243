// SPDX-License-Identifier: GPL-2.0
/*
 * dev/: create, query and destroy of every kind of object; rejected commands, and that they leave
 * no state behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dev/command.h"
#include "engine/link.h"
#include "engine/mr.h"
#include "engine/srq.h"
#include "lib/commands.h"
#include "lib/inproc.h"

#include <ornic/dm.h>
#include <ornic/identify.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <ornic/stats.h>
#include <ornic/steer.h>
#include <endian.h>
#include <string.h>

#define OFF(type, member)	offsetof(struct ornic_##type, member)

/* The last command was rejected with @status because of the field at @off. */
static void refused_at(struct inproc *p, int got, uint8_t status, size_t off)
{
	assert_int_equal(got, status);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD | off);
	assert_int_equal(p->host.cpl.out_size, 0);
}

/* Execute a command without output. */
static int exec(struct inproc *p, uint16_t opcode, uint32_t number, const void *cmd, uint16_t len)
{
	int status = host_exec(&p->host, opcode, number, cmd, len, NULL, 0);

	assert_int_equal(p->host.cpl.out_size, 0);
	return status;
}

#define EXEC(p, op, number, cmd)	exec(p, ORNIC_OP_##op, number, &(cmd), sizeof(cmd))
#define DESTROY(p, kind, number)	exec(p, ORNIC_OP_##kind##_DESTROY, number, NULL, 0)

/* Change @member of a good command to @val and expect it to be rejected. */
#define REFUSE_AT(p, op, number, good, member, val, status) do {		\
	__typeof__(good) bad_ = (good);						\
										\
	bad_.member = (val);							\
	refused_at(p, EXEC(p, op, number, bad_), status,			\
		   (const char *)&bad_.member - (const char *)&bad_);		\
} while (0)
#define REFUSE(p, op, good, member, val, status)	\
	REFUSE_AT(p, op, 0, good, member, val, status)

static struct ornic_eq_create_cmd good_eq(struct inproc *p)
{
	return (struct ornic_eq_create_cmd) {
		.log_entries = 4,
		.vector = htole16(2),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
		.classes = htole64(ORNIC_EQ_COMPLETION),
	};
}

/* ORN-EQ-6, ORN-EQ-7, ORN-EQ-14, ORN-EQ-16, ORN-EQ-18, ORN-ADM-12, ORN-RNG-14, ORN-RNG-36 */
static void test_eq(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd good = good_eq(p);
	struct ornic_moderate_cmd mod = { .mask = htole32(ORNIC_MODERATE_TARGET) };
	struct ornic_eq_query_rsp q;
	uint32_t n;

	REFUSE(p, EQ_CREATE, good, log_entries, 3, ORNIC_ST_BAD_PARAM);
	REFUSE(p, EQ_CREATE, good, log_entries, 21, ORNIC_ST_LIMIT);
	REFUSE(p, EQ_CREATE, good, flags, 1, ORNIC_ST_RESERVED);
	REFUSE(p, EQ_CREATE, good, vector, htole16(FUNC_VECTORS), ORNIC_ST_BAD_PARAM);
	REFUSE(p, EQ_CREATE, good, want, 1, ORNIC_ST_RESERVED);
	REFUSE(p, EQ_CREATE, good, mod_count, 1, ORNIC_ST_RESERVED);
	REFUSE(p, EQ_CREATE, good, mod_period_us, 1, ORNIC_ST_RESERVED);
	REFUSE(p, EQ_CREATE, good, record, good.record + 8, ORNIC_ST_BAD_PARAM);
	REFUSE(p, EQ_CREATE, good, record, 64, ORNIC_ST_DMA_ERROR);
	REFUSE(p, EQ_CREATE, good, pages.offset, htole32(32), ORNIC_ST_BAD_PARAM);
	REFUSE(p, EQ_CREATE, good, pages.mbz, 1, ORNIC_ST_RESERVED);
	REFUSE(p, EQ_CREATE, good, classes, htole64(ORNIC_EQ_COMPLETION | ORNIC_EQ_ASYNC),
	       ORNIC_ST_BAD_PARAM);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, good), ORNIC_ST_OK);
	n = host_number(&p->host);
	assert_int_equal(n, 2);
	mod.target = htole32(FUNC_VECTORS);
	refused_at(p, EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_BAD_PARAM, OFF(moderate_cmd, target));
	mod.target = htole32(5);
	assert_int_equal(EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_OK);
	refused_at(p, EXEC(p, EQ_MODIFY, 0, mod), ORNIC_ST_BAD_PARAM, OFF(moderate_cmd, target));
	mod.mask = htole32(ORNIC_MODERATE_TIMING);
	assert_int_equal(EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_OK);
	mod.mod_count = htole16(1);
	refused_at(p, EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(moderate_cmd, mod_count));
	/* Moderation alone is wrong: the target is not changed either. */
	mod.mask |= htole32(ORNIC_MODERATE_TARGET);
	mod.target = htole32(6);
	refused_at(p, EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(moderate_cmd, mod_count));
	mod.mod_count = 0;
	mod.mask = htole32(ORNIC_MODERATE_TARGET);
	for (uint32_t bit = 4; bit; bit <<= 1)
		REFUSE_AT(p, EQ_MODIFY, n, mod, mask, mod.mask | htole32(bit), ORNIC_ST_RESERVED);
	/* Of two errors, the first one is reported. */
	mod.mask |= htole32(ORNIC_MODERATE_TIMING);
	mod.mod_count = htole16(1);
	mod.mbz = 1;
	refused_at(p, EXEC(p, EQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(moderate_cmd, mbz));
	assert_int_equal(host_exec(&p->host, ORNIC_OP_EQ_QUERY, n, NULL, 0, &q, sizeof(q)), 0);
	assert_int_equal(le16toh(q.attr.vector), 5);
	assert_int_equal(q.attr.record, good.record);
	assert_int_equal(DESTROY(p, EQ, 1), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, EQ, 0), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, EQ, n), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, EQ, n), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(DESTROY(p, EQ, 0), ORNIC_ST_BUSY);	/* EQ 1 is left */
}

/* Return a list for a ring of @bytes, more than the memory here: all its pages are the same one. */
static struct ornic_pages many_pages(struct inproc *p, uint64_t bytes)
{
	const uint8_t shift = 21;
	uint64_t page = dma_alloc(&p->host.dma, 1ull << shift, 1ull << shift);
	uint64_t list = dma_alloc(&p->host.dma, (bytes >> shift) * sizeof(page), 64);

	for (uint64_t i = 0; i < bytes >> shift; i++)
		((__le64 *)dma_at(&p->host.dma, list))[i] = htole64(page);
	return (struct ornic_pages) {
		.addr = htole64(list), .level = 1, .page_shift = shift,
	};
}

/* ORN-IDN-2: one EQ more than Identify reports; the attempt costs nothing. */
static void test_most_eqs(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd eq = good_eq(p);
	uint64_t budget = p->f->dev.lists.left;
	uint32_t n = 2;			/* EQ 0 and EQ 1 exist */

	for (; n < 64; n++, budget--)
		assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_LIMIT);
	assert_int_equal(p->f->dev.lists.left, budget);
	assert_int_equal(DESTROY(p, EQ, 5), ORNIC_ST_OK);
	/* also one as large as possible */
	eq.log_entries = 20;
	eq.pages = many_pages(p, 64ull << 20);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	assert_int_equal(host_number(&p->host), 5);
}

/* ORN-EQ-5, ORN-ADM-7 */
static void test_first_eq(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd eq = good_eq(p);

	assert_int_equal(host_enable(&p->host), 0);
	refused_at(p, EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_BAD_PARAM, OFF(eq_create_cmd, vector));
	eq.vector = 0;
	refused_at(p, EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_BAD_PARAM, OFF(eq_create_cmd, classes));
	eq.classes = htole64(ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
		assert_int_equal(host_number(&p->host), 0);
		assert_int_equal(DESTROY(p, EQ, 0), ORNIC_ST_OK);
	}
}

/* ORN-PD-1 */
static void test_pd(void **state)
{
	struct inproc *p = *state;
	struct ornic_pd_create_cmd good = { .owner = htole32(3) };
	struct host_qp qp;
	uint32_t key;

	REFUSE(p, PD_CREATE, good, want, htole32(9), ORNIC_ST_RESERVED);
	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 2, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, qp.number), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(DESTROY(p, PD, 0), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(DESTROY(p, PD, UINT32_MAX), ORNIC_ST_BAD_NUMBER);
}

/* ORN-IDN-2 */
static void test_pd_limit(void **state)
{
	struct inproc *p = *state;
	uint32_t pd;

	for (uint32_t i = 1; i < LIMIT_PD; i++)
		assert_int_equal(host_pd_create(&p->host, &pd), ORNIC_ST_OK);
	assert_int_equal(host_pd_create(&p->host, &pd), ORNIC_ST_LIMIT);
	assert_int_equal(DESTROY(p, PD, 7), ORNIC_ST_OK);
	assert_int_equal(host_pd_create(&p->host, &pd), ORNIC_ST_OK);
	assert_int_equal(pd, 7);
}

/* ORN-PD-2, ORN-MEM-2, ORN-MEM-15, ORN-MEM-16, ORN-MEM-18, ORN-ADM-14, ORN-ADM-27 */
static void test_key(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	struct ornic_key_create_cmd good = {
		.flags = ORNIC_KEY_F_PEER | ORNIC_KEY_F_HUGETLB,
		.pd = htole32(p->pd),
		.access = htole32(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE),
		.iova = htole64(0x7f0000000000),
		.length = htole64(8192),
		.pages = host_contiguous(INPROC_BASE),
		.owner = htole32(3),
	};
	struct ornic_key_query_rsp q;
	uint32_t key;

	REFUSE(p, KEY_CREATE, good, kind, ORNIC_KEY_MW2A, ORNIC_ST_UNSUPPORTED);
	for (uint8_t kind = ORNIC_KEY_INDIRECT; kind < 12; kind++)
		REFUSE(p, KEY_CREATE, good, kind, kind, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, KEY_CREATE, good, flags, 4, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, mbz0, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, pd, 0, ORNIC_ST_BAD_NUMBER);
	REFUSE(p, KEY_CREATE, good, pd, htole32(77), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, KEY_CREATE, good, access, htole32(1u << 7), ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, access, htole32(ORNIC_ACCESS_ON_DEMAND), ORNIC_ST_UNSUPPORTED);
	/* ORN-MEM-40 */
	p->f->dev.features &= ~ORNIC_FEATURE(FLUSH_PERSISTENT);
	REFUSE(p, KEY_CREATE, good, access, htole32(ORNIC_ACCESS_FLUSH_PERSISTENT),
	       ORNIC_ST_UNSUPPORTED);
	REFUSE(p, KEY_CREATE, good, access, htole32(ORNIC_ACCESS_REMOTE_WRITE),
	       ORNIC_ST_BAD_PARAM);
	REFUSE(p, KEY_CREATE, good, max_pages, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, length, htole64(LIMIT_REGION + 1), ORNIC_ST_LIMIT);
	REFUSE(p, KEY_CREATE, good, dm, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, want, 1, ORNIC_ST_RESERVED);
	good.iova = htole64(UINT64_MAX - 8190);
	refused_at(p, EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_BAD_PARAM,
		   OFF(key_create_cmd, length));
	good.iova = htole64(0x7f0000000000);
	good.pages.level = 1;
	good.pages.page_shift = 12;
	good.pages.addr = htole64(INPROC_BASE + INPROC_BYTES);
	refused_at(p, EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_DMA_ERROR, OFF(key_create_cmd, pages));
	good.pages = host_contiguous(INPROC_BASE);
	assert_int_equal(p->f->dev.lists.left, budget);

	assert_int_equal(EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_OK);
	key = host_number(&p->host);
	assert_int_not_equal(key >> 8, 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_QUERY, key ^ 0x55, NULL, 0, &q,
				   sizeof(q)), 0);
	assert_memory_equal(&q.attr, &good, sizeof(good));
	assert_int_equal(le32toh(q.key), key);
	assert_int_equal(le32toh(q.state), 1);
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(p->f->dev.lists.left, budget);
	good.length = 0;
	assert_int_equal(EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, KEY, host_number(&p->host)), ORNIC_ST_OK);
}

/* ORN-MEM-60: kinds that work requests fill have no memory at create */
static void test_blank_keys(void **state)
{
	static const uint8_t kinds[] = { ORNIC_KEY_FAST_REG, ORNIC_KEY_MW1, ORNIC_KEY_MW2B };
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;

	for (uint32_t i = 0; i < 3; i++) {
		struct ornic_key_create_cmd good = { .kind = kinds[i], .pd = htole32(p->pd) };
		struct ornic_key_query_rsp q;
		uint32_t key;

		good.max_pages = htole32(i ? 0 : 5);
		REFUSE(p, KEY_CREATE, good, pd, 0, ORNIC_ST_BAD_NUMBER);
		REFUSE(p, KEY_CREATE, good, flags, ORNIC_KEY_F_PEER, ORNIC_ST_RESERVED);
		REFUSE(p, KEY_CREATE, good, access, htole32(1), ORNIC_ST_RESERVED);
		REFUSE(p, KEY_CREATE, good, iova, 1, ORNIC_ST_RESERVED);
		REFUSE(p, KEY_CREATE, good, length, 1, ORNIC_ST_RESERVED);
		REFUSE(p, KEY_CREATE, good, max_pages,
		       htole32(i ? 1 : LIMIT_FAST_REG_PAGES + 1),
		       i ? ORNIC_ST_RESERVED : ORNIC_ST_LIMIT);
		if (!i)
			REFUSE(p, KEY_CREATE, good, max_pages, 0, ORNIC_ST_BAD_PARAM);
		assert_int_equal(p->f->dev.lists.left, budget);
		assert_int_equal(EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_OK);
		key = host_number(&p->host);
		assert_int_equal(p->f->dev.lists.left, budget - (i ? 0 : 5));
		assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_QUERY, key, NULL, 0, &q,
					   sizeof(q)), 0);
		assert_int_equal(q.state, 0);
		assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);
		assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
		assert_int_equal(p->f->dev.lists.left, budget);
		p->f->dev.features = 0;
		REFUSE(p, KEY_CREATE, good, kind, kinds[i], ORNIC_ST_UNSUPPORTED);
		p->f->dev.features = INPROC_FEATURES;
	}
}

/* ORN-MEM-60: room for the page list is allocated at create */
static void test_fast_reg_budget(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_FAST_REG, .pd = htole32(p->pd), .max_pages = htole32(8),
	};
	uint64_t budget = p->f->dev.lists.left;

	p->f->dev.lists.left = 96;
	while (p->f->dev.lists.left)
		assert_int_equal(EXEC(p, KEY_CREATE, 0, cmd), ORNIC_ST_OK);
	p->f->dev.lists.left = 7;
	assert_int_equal(EXEC(p, KEY_CREATE, 0, cmd), ORNIC_ST_NO_RESOURCE);
	p->f->dev.lists.left = budget - 96;
}

/* ORN-MEM-67: a region is in use until the windows that are bound to it are destroyed. */
static void test_bound_region(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd cmd = { .kind = ORNIC_KEY_MW1, .pd = htole32(p->pd) };
	struct mr *region, *window;
	uint32_t key, bound;

	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
	region = table_get(&p->f->dev.keys, key >> 8);
	assert_int_equal(EXEC(p, KEY_CREATE, 0, cmd), ORNIC_ST_OK);
	bound = host_number(&p->host);
	window = table_get(&p->f->dev.keys, bound >> 8);
	window->bound = true;
	window->region = region;
	region->windows = 1;
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, KEY, bound), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
}

/* Each key has another tag than the one before, so that a stale number is rejected. */
static void test_tags(void **state)
{
	struct inproc *p = *state;
	uint32_t key, last = 0;

	for (int i = 0; i < 300; i++) {
		assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
		assert_true(!i || (uint8_t)key != (uint8_t)last);
		last = key;
		assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
	}
}

/* ORN-MEM-71 */
static void test_zero_based(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd good = {
		.pd = htole32(p->pd),
		.access = htole32(ORNIC_ACCESS_ZERO_BASED),
		.length = htole64(4096),
		.pages = host_contiguous(INPROC_BASE),
	};

	REFUSE(p, KEY_CREATE, good, iova, 4096, ORNIC_ST_RESERVED);
	assert_int_equal(EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_OK);
	p->f->dev.features = 0;
	REFUSE(p, KEY_CREATE, good, access, htole32(ORNIC_ACCESS_ZERO_BASED), ORNIC_ST_UNSUPPORTED);
}

/* ORN-MEM-17 */
static void test_phys_all(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd good = {
		.kind = ORNIC_KEY_PHYS_ALL,
		.access = htole32(ORNIC_ACCESS_LOCAL_WRITE),
	};

	REFUSE(p, KEY_CREATE, good, iova, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, length, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, good, access,
	       htole32(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_READ), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(EXEC(p, KEY_CREATE, 0, good), ORNIC_ST_OK);
}

/* ORN-CQ-12, ORN-CQ-13, ORN-CQ-17, ORN-ADM-13, ORN-ADM-21 */
static void test_cq(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	struct ornic_cq_create_cmd good = {
		.log_entries = 4,
		.eq = htole32(1),
		.dbpage = htole32(3),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 64)),
		.owner = htole32(9),
	};
	struct ornic_moderate_cmd mod = { .mask = htole32(3), .target = htole32(1) };
	struct ornic_cq_resize_cmd resize = { .log_entries = 22 };
	struct ornic_cq_query_rsp q;
	uint32_t n;

	REFUSE(p, CQ_CREATE, good, log_entries, 23, ORNIC_ST_LIMIT);
	REFUSE(p, CQ_CREATE, good, flags, 4, ORNIC_ST_RESERVED);
	REFUSE(p, CQ_CREATE, good, eq, 0, ORNIC_ST_BAD_NUMBER);
	REFUSE(p, CQ_CREATE, good, eq, htole32(9), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, CQ_CREATE, good, dbpage, htole32(1024), ORNIC_ST_BAD_PARAM);
	REFUSE(p, CQ_CREATE, good, record, 1, ORNIC_ST_BAD_PARAM);
	REFUSE(p, CQ_CREATE, good, mod_count, htole16(LIMIT_MOD_COUNT + 1), ORNIC_ST_LIMIT);
	REFUSE(p, CQ_CREATE, good, mod_period_us, htole16(LIMIT_MOD_PERIOD_US + 1),
	       ORNIC_ST_LIMIT);
	good.pages.addr = htole64(INPROC_BASE + INPROC_BYTES);
	refused_at(p, EXEC(p, CQ_CREATE, 0, good), ORNIC_ST_DMA_ERROR, OFF(cq_create_cmd, pages));
	good.pages.addr = htole64(INPROC_BASE);
	assert_int_equal(p->f->dev.lists.left, budget);
	assert_int_equal(EXEC(p, CQ_CREATE, 0, good), ORNIC_ST_OK);
	n = host_number(&p->host);
	mod.mod_count = htole16(4);
	mod.mod_period_us = htole16(100);
	assert_int_equal(EXEC(p, CQ_MODIFY, n, mod), ORNIC_ST_OK);
	mod.mod_count = htole16(LIMIT_MOD_COUNT + 1);
	refused_at(p, EXEC(p, CQ_MODIFY, n, mod), ORNIC_ST_LIMIT, OFF(moderate_cmd, mod_count));
	mod.mod_count = htole16(4);
	mod.target = 0;
	refused_at(p, EXEC(p, CQ_MODIFY, n, mod), ORNIC_ST_BAD_NUMBER, OFF(moderate_cmd, target));
	/* Of two errors, the first one is reported. */
	mod.mod_count = htole16(LIMIT_MOD_COUNT + 1);
	mod.mbz = 1;
	refused_at(p, EXEC(p, CQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(moderate_cmd, mbz));
	mod.mask = htole32(4);
	refused_at(p, EXEC(p, CQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(moderate_cmd, mask));
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CQ_QUERY, n, NULL, 0, &q, sizeof(q)), 0);
	assert_int_equal(le16toh(q.attr.mod_count), 4);
	assert_int_equal(le16toh(q.attr.mod_period_us), 100);
	assert_int_equal(le32toh(q.attr.owner), 9);
	assert_int_equal(q.state.state, 0);
	assert_int_equal(DESTROY(p, CQ, n), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, CQ, n), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(p->f->dev.lists.left, budget);
	/* the largest legal values, and of two errors the first one */
	good.log_entries = 22;
	good.pages = many_pages(p, 256ull << 20);
	good.mod_count = htole16(LIMIT_MOD_COUNT);
	good.mod_period_us = htole16(LIMIT_MOD_PERIOD_US);
	assert_int_equal(EXEC(p, CQ_CREATE, 0, good), ORNIC_ST_OK);
	n = host_number(&p->host);
	assert_int_equal(((struct cq *)table_get(&p->f->dev.cqs, n))->owner, 9);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CQ_QUERY, n, NULL, 0, &q, sizeof(q)), 0);
	assert_memory_equal(&q.attr, &good, sizeof(good));
	resize.record = good.record;
	resize.pages = good.pages;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CQ_RESIZE, n, &resize, sizeof(resize), NULL,
				   0), ORNIC_ST_OK);
	REFUSE_AT(p, CQ_RESIZE, n, resize, log_entries, 23, ORNIC_ST_LIMIT);
	good.eq = htole32(9);
	REFUSE(p, CQ_CREATE, good, mbz0, 1, ORNIC_ST_RESERVED);
}

/* ORN-FEA-2: each flag needs its feature, also beside the other one, and moderation another one. */
static void test_cq_features(void **state)
{
	static const struct {
		uint8_t flag;
		uint64_t feature;
	} flags[] = {
		{ ORNIC_CQ_F_IGNORE_OVERRUN, ORNIC_FEATURE(CQ_IGNORE_OVERRUN) },
		{ ORNIC_CQ_F_TIMESTAMP, ORNIC_FEATURE(TIMESTAMP) },
	};
	const uint8_t both = ORNIC_CQ_F_IGNORE_OVERRUN | ORNIC_CQ_F_TIMESTAMP;
	struct inproc *p = *state;
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(1), .record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 64)),
	};

	for (int i = 0; i < 2; i++) {
		p->f->dev.features &= ~flags[i].feature;
		REFUSE(p, CQ_CREATE, cq, flags, flags[i].flag, ORNIC_ST_UNSUPPORTED);
		REFUSE(p, CQ_CREATE, cq, flags, both, ORNIC_ST_UNSUPPORTED);
		p->f->dev.features |= flags[i].feature;
	}
	cq.flags = both;
	assert_int_equal(EXEC(p, CQ_CREATE, 0, cq), ORNIC_ST_OK);
	p->f->dev.features &= ~ORNIC_FEATURE(CQ_MODERATION);
	REFUSE(p, CQ_CREATE, cq, mod_count, htole16(1), ORNIC_ST_UNSUPPORTED);
	cq.mod_period_us = htole16(1);
	refused_at(p, EXEC(p, CQ_CREATE, 0, cq), ORNIC_ST_UNSUPPORTED,
		   OFF(cq_create_cmd, mod_count));
}

/* An EQ counts its CQs, also those that move, and is busy while it has some. */
static void test_eq_users(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd cmd = good_eq(p);
	struct ornic_moderate_cmd mod = { .mask = htole32(ORNIC_MODERATE_TARGET) };
	const struct eq *from = table_get(&p->f->dev.eqs, p->eq1.number), *to;
	uint32_t n;

	assert_int_equal(from->users, 1);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, cmd), ORNIC_ST_OK);
	n = host_number(&p->host);
	to = table_get(&p->f->dev.eqs, n);
	mod.target = htole32(n);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(EXEC(p, CQ_MODIFY, p->cq.number, mod), ORNIC_ST_OK);
		assert_int_equal(from->users, 0);
		assert_int_equal(to->users, 1);
	}
	assert_int_equal(DESTROY(p, EQ, n), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_OK);
	assert_int_equal(to->users, 0);
	assert_int_equal(DESTROY(p, EQ, n), ORNIC_ST_OK);
}

/* The completion event of a CQ goes to the EQ that it was moved to. */
static void test_cq_moves(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd eq = good_eq(p);
	struct ornic_moderate_cmd mod = { .mask = htole32(ORNIC_MODERATE_TARGET) };
	struct cq *cq = table_get(&p->f->dev.cqs, p->cq.number);
	struct ornic_cq_query_rsp q;

	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	mod.target = htole32(host_number(&p->host));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(EXEC(p, CQ_MODIFY, p->cq.number, mod), ORNIC_ST_OK);
		assert_ptr_equal(cq->eq, table_get(&p->f->dev.eqs, le32toh(mod.target)));
		assert_int_equal(host_exec(&p->host, ORNIC_OP_CQ_QUERY, p->cq.number, NULL, 0, &q,
					   sizeof(q)), 0);
		assert_int_equal(q.attr.eq, mod.target);
		mod.target = htole32(p->eq1.number);
	}
}

/*
 * The largest values are accepted. Rings that do not fit the test's memory are rejected for that
 * reason only.
 */
static void test_largest(void **state)
{
	static const struct {
		uint8_t sq_log;
		uint8_t sq_stride;
		uint8_t rq_log;
		uint8_t rq_stride;
	} rings[] = {
		{ 15, 6, 0, 11 }, { 0, 11, 15, 5 },
	};
	struct inproc *p = *state;
	struct ornic_pages big = host_contiguous(dma_alloc(&p->host.dma, 4 << 20, 4096));
	struct ornic_eq_create_cmd eq = good_eq(p);
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(1), .record = eq.record, .pages = big,
		.dbpage = htole32(1023), .mod_count = htole16(LIMIT_MOD_COUNT),
		.mod_period_us = htole16(LIMIT_MOD_PERIOD_US),
	};
	struct ornic_key_create_cmd key = {
		.pd = htole32(p->pd), .length = htole64(LIMIT_REGION), .pages = big,
	};
	struct ornic_key_create_cmd fast = {
		.kind = ORNIC_KEY_FAST_REG, .pd = htole32(p->pd),
		.max_pages = htole32(LIMIT_FAST_REG_PAGES),
	};
	struct ornic_qp_create_cmd qp;
	struct host_qp hqp;
	struct ornic_eqe eqe;

	/* 16 entries of 64 bytes just fit. */
	for (int end = 0; end < 2; end++) {
		eq.pages.addr = htole64(INPROC_BASE + INPROC_BYTES - 4096);
		eq.pages.offset = htole32(4096 - (end ? 1024 : 960));
		cq.pages = eq.pages;
		assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), end ? ORNIC_ST_OK : ORNIC_ST_DMA_ERROR);
		assert_int_equal(EXEC(p, CQ_CREATE, 0, cq), end ? ORNIC_ST_OK : ORNIC_ST_DMA_ERROR);
	}
	cq.pages = big;
	eq.vector = htole16(FUNC_VECTORS - 1);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	eq.log_entries = 20;
	refused_at(p, EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_DMA_ERROR, OFF(eq_create_cmd, pages));
	assert_int_equal(EXEC(p, CQ_CREATE, 0, cq), ORNIC_ST_OK);
	cq.log_entries = LIMIT_LOG_CQ;
	refused_at(p, EXEC(p, CQ_CREATE, 0, cq), ORNIC_ST_DMA_ERROR, OFF(cq_create_cmd, pages));
	assert_int_equal(EXEC(p, KEY_CREATE, 0, key), ORNIC_ST_OK);
	assert_int_equal(EXEC(p, KEY_CREATE, 0, fast), ORNIC_ST_OK);
	for (int i = 0; i < 2; i++) {
		struct ornic_srq_create_cmd srq = {
			.log_entries = rings[i].rq_log, .stride = rings[i].rq_stride,
			.pd = htole32(p->pd), .max_sge = htole16(30), .record = eq.record,
			.pages = big, .dbpage = htole32(1023),
			.limit = htole32(1u << rings[i].rq_log),
		};

		host_qp_template(&p->host, &hqp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
				 p->cq.number, &qp);
		qp.sq_log = rings[i].sq_log;
		qp.sq_stride = rings[i].sq_stride;
		qp.rq_log = rings[i].rq_log;
		qp.rq_stride = rings[i].rq_stride;
		qp.max_send_sge = htole16(30);
		qp.max_recv_sge = htole16(30);
		qp.max_inline = htole16(512);
		qp.sq_pages = big;
		qp.rq_pages = big;
		assert_int_equal(EXEC(p, QP_CREATE, 0, qp), ORNIC_ST_OK);
		assert_int_equal(EXEC(p, SRQ_CREATE, 0, srq), ORNIC_ST_OK);
		/* It has fewer entries than its limit. */
		assert_true(host_wait(&p->eq0, &eqe));
		assert_int_equal(eqe.type, ORNIC_EV_SRQ_LIMIT);
		assert_int_equal(le32toh(eqe.number), host_number(&p->host));
	}
}

/*
 * ORN-ADM-27: the device writes the entries of CQs and EQs, and only reads those of send and
 * receive queues.
 */
static void test_read_only_rings(void **state)
{
	const uint64_t read_only = INPROC_BASE + 2 * INPROC_BYTES;
	struct inproc *p = *state;
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_srq_resize_cmd srq_resize = {
		.log_entries = 5, .pages = host_contiguous(read_only),
	};
	struct ornic_eq_create_cmd eq = good_eq(p);
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(1), .record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 64)),
	};
	struct ornic_cq_resize_cmd resize = {
		.log_entries = 5, .record = htole64(host_record(&p->host)),
		.pages = host_contiguous(read_only),
	};
	struct ornic_qp_create_cmd qp;
	struct host_qp hqp;

	assert_int_equal(gpa_map(p->ep.gpa, read_only, 4096, GPA_READ, p->host.dma.fd, 0), 0);
	REFUSE(p, EQ_CREATE, eq, pages, host_contiguous(read_only), ORNIC_ST_DMA_ERROR);
	REFUSE(p, CQ_CREATE, cq, pages, host_contiguous(read_only), ORNIC_ST_DMA_ERROR);
	refused_at(p, EXEC(p, CQ_RESIZE, p->cq.number, resize), ORNIC_ST_DMA_ERROR,
		   OFF(cq_resize_cmd, pages));
	host_qp_template(&p->host, &hqp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &qp);
	qp.sq_pages = host_contiguous(read_only);
	qp.rq_pages = host_contiguous(read_only);
	assert_int_equal(EXEC(p, QP_CREATE, 0, qp), ORNIC_ST_OK);
	srq.pages = host_contiguous(read_only);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, srq), ORNIC_ST_OK);
	srq_resize.record = srq.record;
	assert_int_equal(EXEC(p, SRQ_RESIZE, host_number(&p->host), srq_resize), ORNIC_ST_OK);
}

/* ORN-QP-1, ORN-QP-8, ORN-QP-10, ORN-QP-28, ORN-ADM-16, ORN-ETH-13 */
static void test_qp(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	struct ornic_qp_create_cmd good, one_ring;
	struct host_qp qp;
	struct qp *made;
	uint32_t n;

	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &good);
	REFUSE(p, QP_CREATE, good, type, ORNIC_QPT_SMI, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, QP_CREATE, good, type, 77, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, QP_CREATE, good, transport, ORNIC_TP_ETHERNET, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, port, 1, ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, mbz0, 1, ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, pd, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, QP_CREATE, good, send_cq, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, QP_CREATE, good, recv_cq, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, QP_CREATE, good, xrcd, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, flags, htole32(1u << 9), ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, flags, htole32(ORNIC_QP_F_VLAN_STRIP), ORNIC_ST_UNSUPPORTED);
	REFUSE(p, QP_CREATE, good, flags, htole32(1u << 5), ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, flags, htole32(ORNIC_QP_F_DRIVER), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, flags, htole32(ORNIC_QP_F_BLOCK_MC_LOOP), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, max_lso_header, htole16(1), ORNIC_ST_UNSUPPORTED);
	REFUSE(p, QP_CREATE, good, cc_profile, htole32(1), ORNIC_ST_UNSUPPORTED);
	REFUSE(p, QP_CREATE, good, dbpage, htole32(5000), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, sq_log, 16, ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, sq_stride, 5, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, sq_stride, 12, ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, rq_log, 16, ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, rq_stride, 4, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, rq_stride, 12, ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, max_send_sge, htole16(31), ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, max_recv_sge, htole16(31), ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, max_inline, htole16(513), ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, want, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, good, sq_record, htole64(INPROC_BASE + 32), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, good, rq_record, 0, ORNIC_ST_DMA_ERROR);
	REFUSE(p, QP_CREATE, good, rq_pages.offset, htole32(64), ORNIC_ST_BAD_PARAM);
	assert_int_equal(p->f->dev.lists.left, budget);
	assert_int_equal(p->f->dev.qps.used, 0);

	good.flags = htole32(ORNIC_QP_F_SIG_ALL | ORNIC_QP_F_PRIVILEGED);
	good.owner = htole32(0x12345678);
	good.max_inline = htole16(77);
	assert_int_equal(EXEC(p, QP_CREATE, 0, good), ORNIC_ST_OK);
	n = host_number(&p->host);
	assert_int_equal(n, 2);		/* on the wire 0 and 1 are SMI and GSI */
	made = table_get(&p->f->dev.qps, n);
	assert_int_equal(made->flags, ORNIC_QP_F_SIG_ALL | ORNIC_QP_F_PRIVILEGED);
	assert_int_equal(made->owner, 0x12345678);
	assert_int_equal(made->max_inline, 77);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, n), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, QP, n), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(p->f->dev.lists.left, budget);
	/* The limits of work requests also hold for an absent queue; its stride is ignored. */
	one_ring = good;
	one_ring.rq_log = ORNIC_NO_RING;
	REFUSE(p, QP_CREATE, one_ring, max_recv_sge, htole16(UINT16_MAX), ORNIC_ST_LIMIT);
	good.sq_log = ORNIC_NO_RING;
	good.send_cq = htole32(ORNIC_NONE);
	REFUSE(p, QP_CREATE, good, max_send_sge, htole16(31), ORNIC_ST_LIMIT);
	REFUSE(p, QP_CREATE, good, max_inline, htole16(513), ORNIC_ST_LIMIT);
	good.sq_stride = 0;
	assert_int_equal(EXEC(p, QP_CREATE, 0, good), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, QP, host_number(&p->host)), ORNIC_ST_OK);
	good.rq_log = ORNIC_NO_RING;
	refused_at(p, EXEC(p, QP_CREATE, 0, good), ORNIC_ST_BAD_PARAM, OFF(qp_create_cmd, sq_log));
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_OK);
}

/* ORN-SRQ-10, ORN-SRQ-11, ORN-SRQ-12, ORN-SRQ-13, ORN-PD-1 */
static void test_srq(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	struct ornic_srq_modify_cmd mod = { .mask = htole32(ORNIC_SRQM_LIMIT), .limit = htole32(5) };
	struct ornic_srq_create_cmd good = inproc_srq(p);
	struct ornic_rec *rec = dma_at(&p->host.dma, le64toh(good.record));
	struct ornic_srq_query_rsp q;
	uint32_t n;

	REFUSE(p, SRQ_CREATE, good, type, ORNIC_SRQT_TM, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, SRQ_CREATE, good, type, 77, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, SRQ_CREATE, good, flags, 2, ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, log_entries, 16, ORNIC_ST_LIMIT);
	REFUSE(p, SRQ_CREATE, good, stride, 4, ORNIC_ST_BAD_PARAM);
	REFUSE(p, SRQ_CREATE, good, stride, 12, ORNIC_ST_LIMIT);
	REFUSE(p, SRQ_CREATE, good, max_sge, htole16(31), ORNIC_ST_LIMIT);
	REFUSE(p, SRQ_CREATE, good, limit, htole32(17), ORNIC_ST_BAD_PARAM);
	REFUSE(p, SRQ_CREATE, good, pd, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, SRQ_CREATE, good, xrcd, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, cq, htole32(p->cq.number), ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, dbpage, htole32(5000), ORNIC_ST_BAD_PARAM);
	REFUSE(p, SRQ_CREATE, good, mbz0, htole16(1), ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, want, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, mbz1, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(p, SRQ_CREATE, good, record, htole64(INPROC_BASE + 32), ORNIC_ST_BAD_PARAM);
	REFUSE(p, SRQ_CREATE, good, pages.offset, htole32(8), ORNIC_ST_BAD_PARAM);
	good.stride = 5;
	REFUSE(p, SRQ_CREATE, good, pages.offset, htole32(32), ORNIC_ST_BAD_PARAM);
	good.stride = 6;
	assert_int_equal(p->f->dev.lists.left, budget);
	assert_int_equal(p->f->dev.srqs.used, 0);

	good.flags = ORNIC_SRQ_F_PRIVILEGED;
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, good), ORNIC_ST_OK);
	assert_true(srq_get(&p->f->dev, host_number(&p->host))->privileged);
	assert_int_equal(DESTROY(p, SRQ, host_number(&p->host)), ORNIC_ST_OK);
	good.flags = 0;
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, good), ORNIC_ST_OK);
	n = host_number(&p->host);
	assert_false(srq_get(&p->f->dev, n)->privileged);
	assert_int_equal(le32toh(rec->notify), ORNIC_NOTIFY_INDEX);	/* ORN-RNG-7 */
	refused_at(p, EXEC(p, SRQ_MODIFY, n, ((struct ornic_srq_modify_cmd){ .mask = 2 })),
		   ORNIC_ST_RESERVED, OFF(srq_modify_cmd, mask));
	mod.limit = htole32(17);
	refused_at(p, EXEC(p, SRQ_MODIFY, n, mod), ORNIC_ST_BAD_PARAM,
		   OFF(srq_modify_cmd, limit));
	mod.limit = htole32(5);
	mod.mbz = 1;
	refused_at(p, EXEC(p, SRQ_MODIFY, n, mod), ORNIC_ST_RESERVED, OFF(srq_modify_cmd, mbz));
	mod.mbz = 0;
	assert_int_equal(EXEC(p, SRQ_MODIFY, n + 1, mod), ORNIC_ST_BAD_NUMBER);
	/* sixteen entries are posted, so five are not too few */
	rec->host_index = htole32(16);
	assert_int_equal(EXEC(p, SRQ_MODIFY, n, mod), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_QUERY, n, NULL, 0, &q, sizeof(q)), 0);
	assert_int_equal(le32toh(q.attr.limit), 5);
	q.attr.limit = 0;
	assert_memory_equal(&q.attr, &good, sizeof(good));
	assert_int_equal(le32toh(q.state.producer), 16);
	assert_int_equal(le32toh(q.state.consumer), 0);
	assert_int_equal(le32toh(q.state.state), ORNIC_RING_ARMED);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, SRQ, n), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, SRQ, n), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(p->f->dev.lists.left, budget);
}

/* ORN-SRQ-12, ORN-SRQ-14, ORN-DB-1 */
static void test_srq_users(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd cmd = inproc_srq(p);
	struct ornic_qp_create_cmd good;
	struct host_qp qp;
	uint32_t srqn, qpn;

	assert_int_equal(EXEC(p, SRQ_CREATE, 0, cmd), ORNIC_ST_OK);
	srqn = host_number(&p->host);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &good);
	good.srq = htole32(srqn);
	refused_at(p, EXEC(p, QP_CREATE, 0, good), ORNIC_ST_BAD_PARAM, OFF(qp_create_cmd, rq_log));
	good.rq_log = ORNIC_NO_RING;
	p->f->dev.features &= ~ORNIC_FEATURE(SRQ);
	REFUSE(p, QP_CREATE, good, srq, htole32(srqn), ORNIC_ST_UNSUPPORTED);
	p->f->dev.features |= ORNIC_FEATURE(SRQ);
	REFUSE(p, QP_CREATE, good, srq, htole32(srqn + 1), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, QP_CREATE, good, recv_cq, htole32(99), ORNIC_ST_BAD_NUMBER);
	good.type = ORNIC_QPT_GSI;
	good.port = 1;
	refused_at(p, EXEC(p, QP_CREATE, 0, good), ORNIC_ST_BAD_PARAM, OFF(qp_create_cmd, srq));
	good.type = ORNIC_QPT_RAW;
	good.transport = ORNIC_TP_ETHERNET;
	refused_at(p, EXEC(p, QP_CREATE, 0, good), ORNIC_ST_BAD_PARAM, OFF(qp_create_cmd, srq));
	good.type = ORNIC_QPT_UD;
	good.transport = ORNIC_TP_ROCEV2;
	good.port = 0;
	good.sq_log = ORNIC_NO_RING;
	assert_int_equal(EXEC(p, QP_CREATE, 0, good), ORNIC_ST_OK);
	qpn = host_number(&p->host);
	assert_int_equal(DESTROY(p, SRQ, srqn), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, qpn), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, SRQ, srqn), ORNIC_ST_OK);
}

/* ORN-XRC-1, ORN-XRC-2, ORN-XRC-3 */
static void test_xrc(void **state)
{
	struct inproc *p = *state;
	struct ornic_pd_create_cmd dom = { .owner = htole32(3) };
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_qp_create_cmd tgt, ini, rc;
	uint32_t xrcd, srqn, basic, qpn;
	struct host_qp qp;
	struct qp *target;

	REFUSE(p, XRCD_CREATE, dom, want, htole32(1), ORNIC_ST_RESERVED);
	assert_int_equal(EXEC(p, XRCD_CREATE, 0, dom), ORNIC_ST_OK);
	xrcd = host_number(&p->host);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, srq), ORNIC_ST_OK);
	basic = host_number(&p->host);
	srq.type = ORNIC_SRQT_XRC;
	srq.xrcd = htole32(xrcd);
	srq.cq = htole32(p->cq.number);
	REFUSE(p, SRQ_CREATE, srq, xrcd, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, SRQ_CREATE, srq, cq, htole32(99), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, srq), ORNIC_ST_OK);
	srqn = host_number(&p->host);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_BUSY);

	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &rc);
	REFUSE(p, QP_CREATE, rc, xrcd, htole32(xrcd), ORNIC_ST_RESERVED);
	rc.rq_log = ORNIC_NO_RING;
	REFUSE(p, QP_CREATE, rc, srq, htole32(srqn), ORNIC_ST_BAD_PARAM);
	ini = rc;
	ini.type = ORNIC_QPT_XRC_INI;
	REFUSE(p, QP_CREATE, ini, rq_log, 4, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, ini, srq, htole32(srqn), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, ini, srq, htole32(basic), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, ini, xrcd, htole32(xrcd), ORNIC_ST_RESERVED);
	ini.recv_cq = htole32(ORNIC_NONE);
	assert_int_equal(EXEC(p, QP_CREATE, 0, ini), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, QP, host_number(&p->host)), ORNIC_ST_OK);
	tgt = ini;
	tgt.type = ORNIC_QPT_XRC_TGT;
	tgt.pd = 0;
	tgt.sq_log = ORNIC_NO_RING;
	tgt.xrcd = htole32(xrcd);
	REFUSE(p, QP_CREATE, tgt, pd, htole32(p->pd), ORNIC_ST_RESERVED);
	REFUSE(p, QP_CREATE, tgt, sq_log, 4, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, tgt, rq_log, 4, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, tgt, srq, htole32(srqn), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, tgt, srq, htole32(basic), ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, tgt, xrcd, htole32(99), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(EXEC(p, QP_CREATE, 0, tgt), ORNIC_ST_OK);
	qpn = host_number(&p->host);
	/* ORN-XRC-9: a request named the SRQ. */
	target = table_get(&p->f->dev.qps, qpn);
	target->srq = srq_get(&p->f->dev, srqn);
	assert_int_equal(DESTROY(p, SRQ, srqn), ORNIC_ST_OK);
	assert_null(target->srq);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, qpn), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_BAD_NUMBER);
}

/* ORN-FEA-2: each type needs its feature and no other one. */
static void test_qp_features(void **state)
{
	static const struct {
		uint8_t type;
		uint64_t feature;
	} types[] = {
		{ ORNIC_QPT_RC, ORNIC_FEATURE(RC) }, { ORNIC_QPT_UC, ORNIC_FEATURE(UC) },
		{ ORNIC_QPT_UD, ORNIC_FEATURE(UD) }, { ORNIC_QPT_GSI, ORNIC_FEATURE(UD) },
		{ ORNIC_QPT_XRC_INI, ORNIC_FEATURE(XRC) },
		{ ORNIC_QPT_XRC_TGT, ORNIC_FEATURE(XRC) },
		{ ORNIC_QPT_RAW, ORNIC_FEATURE(RAW) },
	};
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		host_qp_template(&p->host, &qp, types[i].type, 4, p->pd, p->cq.number,
				 p->cq.number, &cmd);
		p->f->dev.features = FEATURES & ~types[i].feature;
		refused_at(p, EXEC(p, QP_CREATE, 0, cmd), ORNIC_ST_UNSUPPORTED,
			   OFF(qp_create_cmd, type));
		/* A reserved field is checked after the type. */
		p->f->dev.features = types[i].feature;
		cmd.flags = htole32(1u << 31);
		refused_at(p, EXEC(p, QP_CREATE, 0, cmd), ORNIC_ST_RESERVED,
			   OFF(qp_create_cmd, flags));
	}
}

/* @member of @cmd needs the feature, and is accepted or rejected for another reason with it. */
#define NEEDS(p, op, number, cmd, member, feature) do {				\
	(p)->f->dev.features = FEATURES & ~ORNIC_FEATURE(feature);		\
	refused_at(p, EXEC(p, op, number, cmd), ORNIC_ST_UNSUPPORTED,		\
		   (const char *)&(cmd).member - (const char *)&(cmd));		\
	(p)->f->dev.features = ORNIC_FEATURE(feature);				\
	assert_int_not_equal(host_exec(&(p)->host, ORNIC_OP_##op, number, &(cmd), sizeof(cmd),	\
				       NULL, 0), ORNIC_ST_UNSUPPORTED);		\
	(p)->f->dev.features = FEATURES;					\
} while (0)

#define RIGHT_NEEDS(p, key, right, right_feature) do {				\
	(key).access = htole32(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_##right);	\
	NEEDS(p, KEY_CREATE, 0, key, access, right_feature);			\
} while (0)

#define KIND_NEEDS(p, key, key_kind) do {					\
	(key).kind = ORNIC_KEY_##key_kind;					\
	NEEDS(p, KEY_CREATE, 0, key, kind, key_kind);				\
} while (0)

/* ORN-FEA-2 */
static void test_needs(void **state)
{
	struct inproc *p = *state;
	struct ornic_pd_create_cmd dom = { 0 };
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(1), .record = srq.record, .pages = srq.pages,
	};
	struct ornic_cq_resize_cmd cq_resize = { .record = srq.record, .pages = srq.pages };
	struct ornic_srq_resize_cmd srq_resize = { .record = srq.record, .pages = srq.pages };
	struct ornic_key_create_cmd key = {
		.pd = htole32(p->pd), .length = htole64(4096),
		.pages = host_contiguous(INPROC_BASE),
	};
	struct ornic_moderate_cmd mod = {
		.mask = htole32(ORNIC_MODERATE_TIMING), .mod_count = htole16(1),
	};

	NEEDS(p, XRCD_CREATE, 0, dom, want, XRC);
	NEEDS(p, SRQ_CREATE, 0, srq, type, SRQ);
	NEEDS(p, SRQ_RESIZE, 1, srq_resize, log_entries, SRQ_RESIZE);
	NEEDS(p, CQ_RESIZE, p->cq.number, cq_resize, log_entries, CQ_RESIZE);
	srq.type = ORNIC_SRQT_XRC;
	NEEDS(p, SRQ_CREATE, 0, srq, type, XRC);
	NEEDS(p, CQ_MODIFY, p->cq.number, mod, mod_count, CQ_MODERATION);
	mod.mod_count = 0;
	mod.mod_period_us = htole16(1);
	NEEDS(p, CQ_MODIFY, p->cq.number, mod, mod_count, CQ_MODERATION);
	cq.flags = ORNIC_CQ_F_TIMESTAMP;
	NEEDS(p, CQ_CREATE, 0, cq, flags, TIMESTAMP);
	cq.flags = ORNIC_CQ_F_IGNORE_OVERRUN;
	NEEDS(p, CQ_CREATE, 0, cq, flags, CQ_IGNORE_OVERRUN);
	RIGHT_NEEDS(p, key, REMOTE_ATOMIC, ATOMICS);
	RIGHT_NEEDS(p, key, ZERO_BASED, ZERO_BASED);
	RIGHT_NEEDS(p, key, FLUSH_GLOBAL, FLUSH_GLOBAL);
	RIGHT_NEEDS(p, key, FLUSH_PERSISTENT, FLUSH_PERSISTENT);
	RIGHT_NEEDS(p, key, RELAXED_ORDERING, RELAXED_ORDERING);
	key.access = 0;
	KIND_NEEDS(p, key, FAST_REG);
	KIND_NEEDS(p, key, MW1);
	KIND_NEEDS(p, key, MW2B);
	KIND_NEEDS(p, key, DM);
}

/* Create fails while the table is full, and leaves nothing behind. */
static void full(struct inproc *p, struct table *t, uint16_t opcode, const void *cmd, uint16_t len)
{
	struct device *dev = &p->f->dev;
	uint64_t budget = dev->lists.left, dm_used = p->f->dm_used;
	struct pd *pd = table_get(&dev->pds, p->pd);
	uint32_t users = pd->users;
	struct table kept = *t;

	table_init(t, 1, 0);
	assert_int_equal(exec(p, opcode, 0, cmd, len), ORNIC_ST_LIMIT);
	*t = kept;
	assert_int_equal(dev->lists.left, budget);
	assert_int_equal(p->f->dm_used, dm_used);
	assert_int_equal(pd->users, users);
}

/* ORN-IDN-2: test_pd_limit reaches one limit; here they are made small. */
static void test_full_tables(void **state)
{
	struct inproc *p = *state;
	struct device *dev = &p->f->dev;
	struct ornic_pd_create_cmd pd = { 0 };
	struct ornic_dm_create_cmd dm = { .bytes = htole64(1) };
	struct ornic_key_create_cmd key = {
		.pd = htole32(p->pd), .length = htole64(4096),
		.pages = host_contiguous(INPROC_BASE),
	};
	struct ornic_key_create_cmd fast = {
		.kind = ORNIC_KEY_FAST_REG, .pd = htole32(p->pd), .max_pages = htole32(5),
	};
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(1), .record = srq.record, .pages = srq.pages,
	};
	struct ornic_qp_create_cmd qp;
	struct host_qp hqp;

	host_qp_template(&p->host, &hqp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &qp);
	full(p, &dev->xrcds, ORNIC_OP_XRCD_CREATE, &pd, sizeof(pd));
	full(p, &p->f->dms, ORNIC_OP_DM_CREATE, &dm, sizeof(dm));
	full(p, &dev->keys, ORNIC_OP_KEY_CREATE, &key, sizeof(key));
	full(p, &dev->keys, ORNIC_OP_KEY_CREATE, &fast, sizeof(fast));
	full(p, &dev->cqs, ORNIC_OP_CQ_CREATE, &cq, sizeof(cq));
	full(p, &dev->srqs, ORNIC_OP_SRQ_CREATE, &srq, sizeof(srq));
	full(p, &dev->qps, ORNIC_OP_QP_CREATE, &qp, sizeof(qp));
	full(p, &dev->sets, ORNIC_OP_COUNTER_CREATE, NULL, 0);
}

/* ORN-PD-1: users of different kinds add up: none may be destroyed before the last one. */
static void test_users(void **state)
{
	struct inproc *p = *state;
	struct ornic_pd_create_cmd dom = { 0 };
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_qp_create_cmd cmd;
	uint32_t key, xrcd, srqn, send, tgt;
	struct host_qp qp;

	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
	assert_int_equal(EXEC(p, XRCD_CREATE, 0, dom), ORNIC_ST_OK);
	xrcd = host_number(&p->host);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &cmd);
	cmd.rq_log = ORNIC_NO_RING;
	assert_int_equal(EXEC(p, QP_CREATE, 0, cmd), ORNIC_ST_OK);
	send = host_number(&p->host);
	cmd.type = ORNIC_QPT_XRC_TGT;
	cmd.sq_log = ORNIC_NO_RING;
	cmd.pd = 0;
	cmd.xrcd = htole32(xrcd);
	assert_int_equal(EXEC(p, QP_CREATE, 0, cmd), ORNIC_ST_OK);
	tgt = host_number(&p->host);
	srq.type = ORNIC_SRQT_XRC;
	srq.xrcd = htole32(xrcd);
	srq.cq = htole32(p->cq.number);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, srq), ORNIC_ST_OK);
	srqn = host_number(&p->host);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, tgt), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, QP, send), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);		/* key and SRQ */
	assert_int_equal(DESTROY(p, KEY, key), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_BUSY);
	assert_int_equal(DESTROY(p, SRQ, srqn), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, XRCD, xrcd), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, CQ, p->cq.number), ORNIC_ST_OK);
	assert_int_equal(DESTROY(p, PD, p->pd), ORNIC_ST_OK);
}

/* ORN-QP-9 */
static void test_gsi(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	struct ornic_qp_query_rsp q;
	struct host_qp a, b;

	host_qp_template(&p->host, &a, ORNIC_QPT_GSI, 4, p->pd, p->cq.number, p->cq.number, &cmd);
	REFUSE(p, QP_CREATE, cmd, port, 0, ORNIC_ST_BAD_PARAM);
	REFUSE(p, QP_CREATE, cmd, port, 2, ORNIC_ST_BAD_PARAM);
	assert_int_equal(host_qp_create(&p->host, &a, ORNIC_QPT_GSI, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(host_qp_create(&p->host, &b, ORNIC_QPT_GSI, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_EXISTS);
	/* That is not the case for other types, which may be bound to a port too. */
	assert_int_equal(host_qp_create(&p->host, &b, ORNIC_QPT_RAW, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_QUERY, a.number, NULL, 0, &q, sizeof(q)),
			 0);
	assert_int_equal(le32toh(q.wire_qpn), 1);
	assert_int_equal(q.attr.port, 1);
	assert_int_equal(DESTROY(p, QP, a.number), ORNIC_ST_OK);
	assert_int_equal(host_qp_create(&p->host, &b, ORNIC_QPT_GSI, 4, p->pd, p->cq.number,
					p->cq.number), 0);
}

/* ORN-FEA-1, ORN-FEA-2, ORN-FEA-3, ORN-PORT-11 */
static void test_features(void **state)
{
	struct inproc *p = *state;
	struct ornic_features_cmd f = { .features0 = htole64(ORNIC_FEATURE(RC)) };
	struct host_ring eq0, eq1, cq;
	struct host_qp qp;
	uint32_t pd;

	assert_int_equal(host_enable(&p->host), 0);
	f.features0 |= htole64(ORNIC_FEATURE(TAG_MATCHING));
	refused_at(p, EXEC(p, SET_FEATURES, 0, f), ORNIC_ST_UNSUPPORTED, 0);
	assert_int_equal(host_eq_create(&p->host, &eq0, 4, 0, ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN), 0);
	assert_int_equal(host_eq_create(&p->host, &eq1, 4, 1, ORNIC_EQ_COMPLETION), 0);
	f.features0 = htole64(ORNIC_FEATURE(RC));
	assert_int_equal(EXEC(p, SET_FEATURES, 0, f), ORNIC_ST_BAD_STATE);
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, ORNIC_FEATURE(RC), &eq0, &eq1), 0);
	f.features0 = htole64(ORNIC_FEATURE(RC));
	assert_int_equal(EXEC(p, SET_FEATURES, 0, f), ORNIC_ST_BAD_STATE);
	assert_int_equal(host_pd_create(&p->host, &pd), 0);
	assert_int_equal(host_cq_create(&p->host, &cq, 4, 1, ORNIC_CQ_F_TIMESTAMP),
			 ORNIC_ST_UNSUPPORTED);
	assert_int_equal(host_cq_create(&p->host, &cq, 4, 1, ORNIC_CQ_F_IGNORE_OVERRUN),
			 ORNIC_ST_UNSUPPORTED);
	assert_int_equal(host_cq_create(&p->host, &cq, 4, 1, 0), 0);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_UD, 4, pd, cq.number, cq.number),
			 ORNIC_ST_UNSUPPORTED);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, pd, cq.number, cq.number),
			 0);
	assert_int_equal(host_port_up(&p->host, 9000), ORNIC_ST_UNSUPPORTED);
}

static int set_features(struct inproc *p)
{
	struct ornic_features_cmd f = { .features0 = htole64(ORNIC_FEATURE(RC)) };

	return EXEC(p, SET_FEATURES, 0, f);
}

/* A device with EQ 0, to which SET_FEATURES was not sent yet */
static void before_features(struct inproc *p)
{
	struct host_ring eq0;

	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_eq_create(&p->host, &eq0, 4, 0, ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN), 0);
}

/* ORN-FEA-3: neither other commands nor a rejected create end the time for SET_FEATURES. */
static void test_features_late(void **state)
{
	static const struct {
		uint16_t opcode;
		uint16_t number;
		uint16_t in;
	} others[] = {
		{ ORNIC_OP_NOP, 0, 0 },
		{ ORNIC_OP_IDENTIFY, 0, sizeof(struct ornic_identify_cmd) },
		{ ORNIC_OP_HOST_INFO, 0, sizeof(struct ornic_host_info_cmd) },
		{ ORNIC_OP_STAT_NAMES, 0, sizeof(struct ornic_stat_names_cmd) },
		{ ORNIC_OP_STAT_READ, 0, sizeof(struct ornic_stat_read_cmd) },
		{ ORNIC_OP_CLOCK_READ, 0, 0 },
		{ ORNIC_OP_EQ_MODIFY, 0, sizeof(struct ornic_moderate_cmd) },
		{ ORNIC_OP_EQ_QUERY, 0, 0 },
		{ ORNIC_OP_EQ_DESTROY, 0, 0 },
		{ ORNIC_OP_PORT_MODIFY, 1, sizeof(struct ornic_port_modify_cmd) },
		{ ORNIC_OP_PORT_QUERY, 1, 0 },
		{ ORNIC_OP_GET_GID, 1, sizeof(struct ornic_gid_get_cmd) },
	};
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	static const uint8_t zero[512];
	struct inproc *p = *state;
	struct ornic_pd_create_cmd pd = { 0 };
	struct ornic_key_create_cmd key = { .kind = ORNIC_KEY_PHYS_ALL };
	struct ornic_eq_create_cmd eq = good_eq(p);

	before_features(p);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(host_exec(&p->host, others[i].opcode, others[i].number, zero,
					   others[i].in, NULL, 0), ORNIC_ST_OK);
	assert_int_equal(host_gid_set(&p->host, 0, 0x0a000001, mac), ORNIC_ST_OK);
	REFUSE(p, PD_CREATE, pd, want, 1, ORNIC_ST_RESERVED);
	assert_int_equal(set_features(p), ORNIC_ST_OK);
	assert_int_equal(set_features(p), ORNIC_ST_BAD_STATE);

	before_features(p);
	assert_int_equal(EXEC(p, PD_CREATE, 0, pd), ORNIC_ST_OK);
	assert_int_equal(set_features(p), ORNIC_ST_BAD_STATE);
	before_features(p);
	assert_int_equal(EXEC(p, KEY_CREATE, 0, key), ORNIC_ST_OK);
	assert_int_equal(set_features(p), ORNIC_ST_BAD_STATE);
	/* A CQ needs a second EQ, which ends the time for it. */
	before_features(p);
	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	assert_int_equal(set_features(p), ORNIC_ST_BAD_STATE);
}

/* ORN-PORT-11: the limits, and the one that needs the feature JUMBO (ORN-FEA-2) */
static void check_frame_sizes(struct inproc *p)
{
	static const uint16_t good[] = { 68, 1500 };
	struct ornic_port_modify_cmd m = { .mask = htole32(ORNIC_PORT_M_FRAME) };
	struct ornic_eqe eqe;

	REFUSE_AT(p, PORT_MODIFY, 1, m, max_frame, htole16(67), ORNIC_ST_BAD_PARAM);
	REFUSE_AT(p, PORT_MODIFY, 1, m, max_frame, htole16(9001), ORNIC_ST_BAD_PARAM);
	p->f->dev.features &= ~ORNIC_FEATURE(JUMBO);
	REFUSE_AT(p, PORT_MODIFY, 1, m, max_frame, htole16(1501), ORNIC_ST_UNSUPPORTED);
	for (int i = 0; i < 2; i++) {
		m.max_frame = htole16(good[i]);
		assert_int_equal(EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_OK);
		assert_true(host_next(&p->eq0, &eqe));
		assert_int_equal(eqe.type, ORNIC_EV_IDENTIFY);
	}
	p->f->dev.features |= ORNIC_FEATURE(JUMBO);
}

/*
 * ORN-PORT-6, ORN-PORT-10, ORN-PORT-11, ORN-PORT-12, ORN-PORT-13, ORN-PORT-15, ORN-PORT-18,
 * ORN-IDN-4, ORN-IDN-5
 */
static void test_port(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 9 };
	static const uint8_t mine[2][6] = { { [5] = 1 }, { 2, 9 } };
	struct inproc *p = *state;
	struct ornic_port_modify_cmd m = { .mask = htole32(ORNIC_PORT_M_MAC), .mac = { 2, 9 } };
	struct ornic_identify_port q;
	struct function *f2;
	struct ornic_eqe eqe;
	int err;

	f2 = function_new(&p->engine, "other", other, 0, &err);
	assert_non_null(f2);
	assert_int_equal(EXEC(p, PORT_MODIFY, 2, m), ORNIC_ST_BAD_NUMBER);
	for (int i = 0; i < 2; i++) {
		memcpy(m.mac, mine[i], sizeof(m.mac));
		assert_int_equal(EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_OK);
		assert_true(host_next(&p->eq0, &eqe));
		assert_int_equal(eqe.type, ORNIC_EV_IDENTIFY);
	}
	memcpy(m.mac, other, 6);
	refused_at(p, EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_EXISTS, OFF(port_modify_cmd, mac));
	m.mac[0] = 3;
	refused_at(p, EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_BAD_PARAM, OFF(port_modify_cmd, mac));
	memset(m.mac, 0, sizeof(m.mac));
	m.max_frame = UINT16_MAX;
	refused_at(p, EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_BAD_PARAM, OFF(port_modify_cmd, mac));
	/* A valid frame size does not hide the error. */
	m.mask |= htole32(ORNIC_PORT_M_FRAME);
	m.max_frame = htole16(1500);
	refused_at(p, EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_BAD_PARAM, OFF(port_modify_cmd, mac));
	m.mask = htole32(ORNIC_PORT_M_ADMIN);
	REFUSE_AT(p, PORT_MODIFY, 1, m, mask, htole32(1u << 4), ORNIC_ST_RESERVED);
	REFUSE_AT(p, PORT_MODIFY, 1, m, mask, htole32(ORNIC_PORT_M_FLAGS), ORNIC_ST_UNSUPPORTED);
	REFUSE_AT(p, PORT_MODIFY, 1, m, admin_up, htole32(2), ORNIC_ST_BAD_PARAM);
	REFUSE_AT(p, PORT_MODIFY, 1, m, flags, htole32(1), ORNIC_ST_RESERVED);
	REFUSE_AT(p, PORT_MODIFY, 1, m, mbz[0], 1, ORNIC_ST_RESERVED);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_QUERY, 2, NULL, 0, &q, sizeof(q)),
			 ORNIC_ST_BAD_NUMBER);
	check_frame_sizes(p);
	assert_int_equal(host_port_up(&p->host, 4200), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &q, sizeof(q)), 0);
	assert_int_equal(q.state, 4);
	assert_int_equal(q.active_mtu, ORNIC_MTU_4096);
	assert_int_equal(q.current_mac[1], 9);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_IDENTIFY);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_PORT_ACTIVE);
	assert_int_equal(le32toh(eqe.number), 1);
	assert_int_equal(eqe.owner, 0);
	assert_int_equal(le32toh(eqe.info0), 1);
	/* another frame size alone; the same again is no change */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(host_port_up(&p->host, 4300), ORNIC_ST_OK);
		assert_int_equal(host_next(&p->eq0, &eqe), !i);
	}
	assert_int_equal(eqe.type, ORNIC_EV_IDENTIFY);
	m = (struct ornic_port_modify_cmd) { .mask = htole32(ORNIC_PORT_M_ADMIN) };
	assert_int_equal(EXEC(p, PORT_MODIFY, 1, m), ORNIC_ST_OK);
	assert_true(host_next(&p->eq0, &eqe));
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_PORT_ERR);
	/*
	 * A reset keeps the MAC address and nothing else; a function level reset does not keep it
	 * either.
	 */
	assert_int_equal(host_port_up(&p->host, 9000), ORNIC_ST_OK);
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(p->f->dev.port.mac[1], 9);
	assert_false(p->f->dev.port.admin_up);
	assert_int_equal(p->f->dev.port.max_frame, 1500);
	/* While another function uses the permanent address, a reset keeps the present one. */
	memcpy(f2->dev.port.mac, p->f->dev.port.permanent_mac, sizeof(f2->dev.port.mac));
	assert_int_equal(link_update(&f2->dev), 0);
	inproc_flr(p);
	assert_memory_equal(p->f->dev.port.mac, ((uint8_t[6]) { 2, 9 }), 6);
	function_free(f2);
	inproc_flr(p);
	assert_int_equal(p->f->dev.port.mac[5], 1);
}

/* ORN-PORT-8, ORN-PORT-14, ORN-PORT-15 */
static void test_gid(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 9 };
	struct inproc *p = *state;
	struct ornic_gid_entry good = {
		.port = 1, .type = ORNIC_GID_ROCEV2, .index = htole16(3),
		.flags = htole32(ORNIC_GID_VALID), .smac = { 2, 0, 0, 0, 0, 1 },
		.owner = htole32(5),
	}, last = {
		.port = 1, .type = ORNIC_GID_ROCEV2, .index = htole16(255),
		.flags = htole32(ORNIC_GID_VALID | ORNIC_GID_VLAN), .vlan = htole16(4094),
	}, out;
	struct ornic_gid_get_cmd get = { .index = htole16(3) };
	struct function *f2;
	int err;

	host_gid_ipv4(good.gid, 0x0a000001);
	assert_int_equal(EXEC(p, SET_GID, 2, good), ORNIC_ST_BAD_NUMBER);
#define REFUSE_GID(member, val, status)	REFUSE_AT(p, SET_GID, 1, good, member, val, status)
	REFUSE_GID(port, 2, ORNIC_ST_BAD_PARAM);
	REFUSE_GID(type, ORNIC_GID_ROCEV1, ORNIC_ST_BAD_PARAM);
	REFUSE_GID(index, htole16(256), ORNIC_ST_BAD_PARAM);
	REFUSE_GID(flags, htole32(5), ORNIC_ST_RESERVED);
	REFUSE_GID(gid[0], 0xff, ORNIC_ST_BAD_PARAM);
	REFUSE_GID(smac[0], 1, ORNIC_ST_BAD_PARAM);
	REFUSE_GID(mbz[0], 1, ORNIC_ST_RESERVED);
	memset(good.smac, 0, sizeof(good.smac));
	good.vlan = htole16(5);
	refused_at(p, EXEC(p, SET_GID, 1, good), ORNIC_ST_BAD_PARAM, OFF(gid_entry, smac));
	good.smac[0] = 2;
	good.flags |= htole32(ORNIC_GID_VLAN);
	REFUSE_GID(vlan, htole16(4095), ORNIC_ST_BAD_PARAM);
	assert_int_equal(EXEC(p, SET_GID, 1, good), ORNIC_ST_OK);
	/* the last VLAN, entry and byte of the MAC address and GID */
	last.gid[15] = 1;
	last.smac[5] = 1;
	assert_int_equal(EXEC(p, SET_GID, 1, last), ORNIC_ST_OK);
	memset(last.gid, 0, sizeof(last.gid));
	last.smac[0] = 2;
	refused_at(p, EXEC(p, SET_GID, 1, last), ORNIC_ST_BAD_PARAM, OFF(gid_entry, gid));
	good.flags = htole32(ORNIC_GID_VALID);
	good.vlan = htole16(4095);	/* without the flag it means nothing */
	assert_int_equal(EXEC(p, SET_GID, 1, good), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_GET_GID, 2, &get, sizeof(get), &out,
				   sizeof(out)), ORNIC_ST_BAD_NUMBER);
	REFUSE_AT(p, GET_GID, 1, get, index, htole16(256), ORNIC_ST_BAD_PARAM);
	REFUSE_AT(p, GET_GID, 1, get, mbz, 1, ORNIC_ST_RESERVED);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_GET_GID, 1, &get, sizeof(get), &out,
				   sizeof(out)), 0);
	assert_memory_equal(&out, &good, sizeof(good));

	f2 = function_new(&p->engine, "other", other, 0, &err);
	assert_non_null(f2);
	/* An address may be on two functions: one takes over from the other. */
	f2->dev.port.gid[0] = good;
	assert_int_equal(EXEC(p, SET_GID, 1, good), ORNIC_ST_OK);
	function_free(f2);
	good.flags = 0;
	REFUSE_GID(mbz[0], 1, ORNIC_ST_RESERVED);
	assert_int_equal(EXEC(p, SET_GID, 1, good), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_GET_GID, 1, &get, sizeof(get), &out,
				   sizeof(out)), 0);
	assert_memory_equal(&out, &((struct ornic_gid_entry) { .port = 1, .index = get.index }),
			    sizeof(out));
}

/*
 * Every command that names an object is rejected if there is no object of that number. The others
 * must not have a number.
 */
static void test_no_object(void **state)
{
	static const uint32_t numbers[] = { 0, 63, 0x7fffff, 0xffffffff };
	struct inproc *p = *state;
	uint8_t in[ORNIC_ADMIN_MAX_PAYLOAD] = { 0 };

	for (size_t i = 0; i < ADMIN_OPS; i++) {
		uint16_t opcode = admin_ops[i].opcode;

		if (!admin_ops[i].named) {
			refused_at(p, host_exec(&p->host, opcode, 1, in, admin_ops[i].in, NULL, 0),
				   ORNIC_ST_RESERVED, ORNIC_SYN_FIELD_ENTRY |
				   offsetof(struct ornic_admin_cmd, number));
			continue;
		}
		/* KEY_MODIFY needs a mask. */
		in[0] = opcode == ORNIC_OP_KEY_MODIFY ? ORNIC_KEYM_ACCESS : 0;
		/* EQ 0 exists. */
		for (int n = opcode >> 8 == ORNIC_OP_EQ_CREATE >> 8; n < 4; n++)
			assert_int_equal(host_exec(&p->host, opcode, numbers[n], in,
						   admin_ops[i].in, NULL, 0), ORNIC_ST_BAD_NUMBER);
	}
}

/* The modify command @cmd changes nothing that a query reports. */
static void unchanged(struct inproc *p, uint16_t modify, uint16_t query, uint32_t number,
		      const void *cmd, uint16_t len)
{
	uint8_t before[512], after[512];

	assert_int_equal(host_exec(&p->host, query, number, NULL, 0, before, sizeof(before)),
			 ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, modify, number, cmd, len, NULL, 0), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, query, number, NULL, 0, after, sizeof(after)),
			 ORNIC_ST_OK);
	assert_memory_equal(before, after, sizeof(before));
}

#define UNCHANGED(p, kind, number, cmd)						\
	unchanged(p, ORNIC_OP_##kind##_MODIFY, ORNIC_OP_##kind##_QUERY, number,	\
		  &(cmd), sizeof(cmd))

/* ORN-ADM-12: values that the mask does not select are neither checked nor applied. */
static void test_unselected(void **state)
{
	struct inproc *p = *state;
	struct ornic_moderate_cmd mod = {
		.target = htole32(99), .mod_count = UINT16_MAX, .mod_period_us = UINT16_MAX,
	};
	struct ornic_srq_modify_cmd srq = { .limit = htole32(99) };
	struct ornic_port_modify_cmd port = {
		.admin_up = htole32(7), .mac = { 3 }, .max_frame = UINT16_MAX,
	};
	struct ornic_srq_create_cmd create = inproc_srq(p);
	struct ornic_eq_create_cmd eq = good_eq(p);
	struct ornic_eqe eqe;

	assert_int_equal(EXEC(p, EQ_CREATE, 0, eq), ORNIC_ST_OK);
	UNCHANGED(p, EQ, host_number(&p->host), mod);
	UNCHANGED(p, CQ, p->cq.number, mod);
	UNCHANGED(p, PORT, 1, port);
	assert_int_equal(EXEC(p, SRQ_CREATE, 0, create), ORNIC_ST_OK);
	UNCHANGED(p, SRQ, host_number(&p->host), srq);
	assert_false(host_next(&p->eq0, &eqe));		/* no SRQ_LIMIT */
}

/* ORN-STEER-4, ORN-STEER-6, ORN-STEER-12, ORN-QP-11 */
static void test_rules(void **state)
{
	struct inproc *p = *state;
	struct host_qp raw, rc;
	struct ornic_rule_cmd good = { .kind = ORNIC_RULE_UNICAST, .port = 1 };
	struct ornic_qp_create_cmd cmd;
	uint32_t n;

	host_qp_template(&p->host, &raw, ORNIC_QPT_RAW, 4, p->pd, p->cq.number, p->cq.number,
			 &cmd);
	cmd.flags = htole32(ORNIC_QP_F_DRIVER);
	assert_int_equal(EXEC(p, QP_CREATE, 0, cmd), ORNIC_ST_OK);
	raw.number = host_number(&p->host);
	assert_int_equal(host_qp_create(&p->host, &rc, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	good.target = htole32(raw.number);
	REFUSE(p, RULE_CREATE, good, kind, ORNIC_RULE_SNIFFER, ORNIC_ST_UNSUPPORTED);
	REFUSE(p, RULE_CREATE, good, port, 2, ORNIC_ST_BAD_NUMBER);
	REFUSE(p, RULE_CREATE, good, target_type, htole32(1), ORNIC_ST_UNSUPPORTED);
	REFUSE(p, RULE_CREATE, good, target, htole32(rc.number), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, RULE_CREATE, good, target, htole32(99), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, RULE_CREATE, good, flags, 1, ORNIC_ST_RESERVED);
	REFUSE(p, RULE_CREATE, good, fields, 1, ORNIC_ST_RESERVED);
	for (uint8_t kind = ORNIC_RULE_UNICAST; kind <= ORNIC_RULE_PROMISC; kind++) {
		good.kind = kind;
		assert_int_equal(EXEC(p, RULE_CREATE, 0, good), ORNIC_ST_OK);
		n = host_number(&p->host);
		refused_at(p, EXEC(p, RULE_CREATE, 0, good), ORNIC_ST_EXISTS, 0);
		assert_int_equal(DESTROY(p, QP, raw.number), ORNIC_ST_BUSY);
		assert_int_equal(DESTROY(p, RULE, n), ORNIC_ST_OK);
		assert_int_equal(DESTROY(p, RULE, n), ORNIC_ST_BAD_NUMBER);
	}
	assert_int_equal(DESTROY(p, QP, raw.number), ORNIC_ST_OK);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)
#define PLAIN(t)	cmocka_unit_test_setup_teardown(t, inproc_setup, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_eq), PLAIN(test_first_eq), READY(test_most_eqs), READY(test_cq_features),
		READY(test_eq_users),
		READY(test_cq_moves),
		READY(test_pd), READY(test_pd_limit),
		READY(test_key), READY(test_phys_all), READY(test_cq),
		READY(test_largest), READY(test_read_only_rings), READY(test_qp),
		READY(test_srq), READY(test_srq_users), READY(test_xrc),
		READY(test_users), READY(test_qp_features), READY(test_needs),
		READY(test_full_tables),
		READY(test_blank_keys), READY(test_fast_reg_budget), READY(test_bound_region),
		READY(test_tags),
		READY(test_zero_based), READY(test_gsi), PLAIN(test_features),
		PLAIN(test_features_late),
		READY(test_port), READY(test_gid), READY(test_rules),
		READY(test_unselected), READY(test_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
