// SPDX-License-Identifier: GPL-2.0
/*
 * KEY_MODIFY: changed and unchanged attributes, and rejected commands, which change nothing
 * (ORN-MEM-4, ORN-MEM-41 to 46).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include "engine/mr.h"

#include <ornic/mr.h>
#include <endian.h>
#include <string.h>

#define IOVA	0x7f0000000000ull
#define RW	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE)

static int modify(struct inproc *p, uint32_t key, const struct ornic_key_modify_cmd *m)
{
	int st = host_exec(&p->host, ORNIC_OP_KEY_MODIFY, key, m, sizeof(*m), NULL, 0);

	assert_int_equal(p->host.cpl.out_size, 0);
	return st;
}

static uint32_t region(struct inproc *p, uint32_t access)
{
	struct ornic_key_create_cmd cmd = {
		.pd = htole32(p->pd),
		.access = htole32(access),
		.iova = htole64(IOVA),
		.length = htole64(8192),
		.pages = host_contiguous(INPROC_BASE),
	};

	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	return host_number(&p->host);
}

/* Return the position of a byte of the key as an offset into the guest's memory, or -1 */
static int64_t find(struct inproc *p, uint32_t pd, uint32_t key, uint64_t addr, uint32_t access)
{
	struct mr_access who = { .pd = pd, .access = access };
	uint8_t *base = gpa_ptr(p->f->dev.gpa, INPROC_BASE, 1, true);
	uint32_t syndrome;
	struct mr *mr = mr_check(&p->f->dev, &who, key, addr, 1, &syndrome);
	struct seg seg;
	uint64_t got;

	if (!mr)
		return -1;
	assert_int_equal(mr_segs(&p->f->dev, mr, addr, 1, true, &seg, 1, &got), 1);
	return seg.ptr - base;
}

static struct ornic_key_modify_cmd move_to(uint64_t iova, uint64_t at, uint64_t length)
{
	return (struct ornic_key_modify_cmd) {
		.mask = htole32(ORNIC_KEYM_TRANSLATION),
		.attr = {
			.iova = htole64(iova),
			.length = htole64(length),
			.pages = host_contiguous(at),
		},
	};
}

/*
 * Other memory under the same key; the old memory is not reachable any more (ORN-MEM-4,
 * ORN-MEM-43)
 */
static void test_translation(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	uint32_t key = region(p, RW);
	struct ornic_key_modify_cmd m = move_to(0x5000, INPROC_BASE + 0x4000, 0x1000);
	struct ornic_key_create_cmd want = m.attr;
	struct ornic_key_query_rsp q;

	assert_int_equal(find(p, p->pd, key, IOVA + 0x1010, RW), 0x1010);
	m.attr.pd = htole32(77);		/* not selected, so ignored (ORN-ADM-12) */
	m.attr.access = htole32(0xffffffff);
	m.attr.flags = ORNIC_KEY_F_PEER | ORNIC_KEY_F_HUGETLB;
	assert_int_equal(modify(p, key ^ 0x7f, &m), ORNIC_ST_OK);	/* any tag */
	assert_int_equal(find(p, p->pd, key, IOVA, RW), -1);
	assert_int_equal(find(p, p->pd, key, 0x5010, RW), 0x4010);
	assert_int_equal(find(p, p->pd, key, 0x6000, RW), -1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_QUERY, key, NULL, 0, &q, sizeof(q)), 0);
	assert_int_equal(le32toh(q.key), key);
	want.pd = htole32(p->pd);
	want.access = htole32(RW);
	want.flags = m.attr.flags;
	assert_memory_equal(&q.attr, &want, sizeof(want));
	m = move_to(0x5000, 0, 0);		/* to length 0, and back */
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, 0x5000, RW), -1);
	m = move_to(IOVA, INPROC_BASE, 8192);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, IOVA + 8191, RW), 8191);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY, key, NULL, 0, NULL, 0), 0);
	assert_int_equal(p->f->dev.lists.left, budget);
}

/* Memory of another device is removed even without any free resource (ORN-MEM-46) */
static void test_taken_away(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left;
	uint32_t key = region(p, RW);
	struct ornic_key_modify_cmd m = move_to(0, 0, 0);

	m.attr.flags = ORNIC_KEY_F_PEER;
	p->f->dev.lists.left = 0;
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, IOVA, RW), -1);
	assert_int_equal(find(p, p->pd, key, 0, 0), -1);
	p->f->dev.lists.left = budget;
	assert_int_not_equal(region(p, RW) >> 8, key >> 8);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY, key, NULL, 0, NULL, 0), 0);
}

/* Another domain: the new one is in use, the old one is not (ORN-PD-1) */
static void test_pd(void **state)
{
	struct inproc *p = *state;
	uint32_t key = region(p, RW), pd;
	struct ornic_key_modify_cmd m = { .mask = htole32(ORNIC_KEYM_PD) };

	assert_int_equal(host_pd_create(&p->host, &pd), 0);
	m.attr.pd = htole32(pd);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, IOVA, RW), -1);
	assert_int_equal(find(p, pd, key, IOVA, RW), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PD_DESTROY, pd, NULL, 0, NULL, 0),
			 ORNIC_ST_BUSY);
	m.attr.pd = htole32(p->pd);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PD_DESTROY, pd, NULL, 0, NULL, 0), 0);
}

static void test_access(void **state)
{
	struct inproc *p = *state;
	uint32_t key = region(p, ORNIC_ACCESS_LOCAL_WRITE);
	struct ornic_key_modify_cmd m = {
		.mask = htole32(ORNIC_KEYM_ACCESS), .attr.access = htole32(RW),
	};

	m.attr.flags = 0x80;		/* not selected, so ignored (ORN-ADM-12) */
	m.attr.length = htole64(LIMIT_REGION + 1);
	m.attr.pd = htole32(77);
	assert_int_equal(find(p, p->pd, key, IOVA, ORNIC_ACCESS_REMOTE_WRITE), -1);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, IOVA, ORNIC_ACCESS_REMOTE_WRITE), 0);
	m.attr.access = 0;
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, IOVA, ORNIC_ACCESS_LOCAL_WRITE), -1);
	assert_int_equal(find(p, p->pd, key, IOVA, 0), 0);
}

/* ORN-MEM-44: addresses from zero on, for any offset in the first page */
static void test_zero_based(void **state)
{
	struct inproc *p = *state;
	uint32_t key = region(p, RW);
	struct ornic_key_modify_cmd m = move_to(0, INPROC_BASE, 100);

	m.mask |= htole32(ORNIC_KEYM_ACCESS);
	m.attr.access = htole32(RW | ORNIC_ACCESS_ZERO_BASED);
	m.attr.pages.offset = htole32(24);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_OK);
	assert_int_equal(find(p, p->pd, key, 0, RW), 24);
	assert_int_equal(find(p, p->pd, key, 99, RW), 123);
	assert_int_equal(find(p, p->pd, key, 100, RW), -1);
	m = move_to(IOVA, INPROC_BASE, 100);
	assert_int_equal(modify(p, key, &m), ORNIC_ST_RESERVED);
	assert_int_equal(find(p, p->pd, key, 0, RW), 24);
}

static struct mr *mr_of(struct inproc *p, uint32_t key)
{
	return table_get(&p->f->dev.keys, key >> ORNIC_KEY_TAG_BITS);
}

/* A command with one field wrong is rejected because of that field, and changes nothing. */
#define REFUSE(p, key, good, member, val, status) do {				\
	struct ornic_key_modify_cmd bad_ = (good);				\
	uint64_t budget_ = (p)->f->dev.lists.left;				\
										\
	bad_.member = (val);							\
	assert_int_equal(modify(p, key, &bad_), status);			\
	assert_int_equal(le32toh((p)->host.cpl.syndrome), ORNIC_SYN_FIELD |	\
			 offsetof(struct ornic_key_modify_cmd, member));	\
	assert_int_equal(find(p, (p)->pd, key, IOVA + 4096, RW), 4096);		\
	assert_int_equal((p)->f->dev.lists.left, budget_);			\
} while (0)

/* ORN-MEM-41, ORN-MEM-42, ORN-ADM-16: rejected, and unchanged */
static void test_refused(void **state)
{
	const struct ornic_pages absent = {
		.addr = htole64(INPROC_BASE + INPROC_BYTES), .level = 1, .page_shift = 12,
	};
	struct inproc *p = *state;
	uint32_t key = region(p, RW);
	const struct ornic_key_modify_cmd good = move_to(0x5000, INPROC_BASE + 0x4000, 0x1000);
	struct ornic_key_modify_cmd m = good;
	uint32_t all;

	REFUSE(p, key, good, mask, 0, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, mask, htole32(8), ORNIC_ST_RESERVED);
	REFUSE(p, key, good, mbz, 1, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.mbz0, 1, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.mbz1, 1, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.want, 1, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.mbz2[0], 1, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.flags, 0x80, ORNIC_ST_RESERVED);
	REFUSE(p, key, good, attr.length, htole64(LIMIT_REGION + 1), ORNIC_ST_LIMIT);
	REFUSE(p, key, good, attr.length, htole64(-0x5000ull), ORNIC_ST_LIMIT);
	REFUSE(p, key, good, attr.pages, absent, ORNIC_ST_DMA_ERROR);
	m.attr.iova = htole64(UINT64_MAX - 0xffe);
	REFUSE(p, key, m, attr.length, htole64(0xfff), ORNIC_ST_BAD_PARAM);
	m = good;
	m.mask |= htole32(ORNIC_KEYM_PD | ORNIC_KEYM_ACCESS);
	m.attr.pd = htole32(p->pd);
	REFUSE(p, key, m, attr.pd, htole32(77), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, key, m, attr.access, htole32(1u << 7), ORNIC_ST_RESERVED);
	REFUSE(p, key, m, attr.access, htole32(ORNIC_ACCESS_FLUSH_PERSISTENT), ORNIC_ST_BAD_PARAM);
	REFUSE(p, key, m, attr.access, htole32(ORNIC_ACCESS_REMOTE_WRITE), ORNIC_ST_BAD_PARAM);
	m.attr.access = htole32(RW | ORNIC_ACCESS_ZERO_BASED);
	REFUSE(p, key, m, attr.iova, htole64(4096), ORNIC_ST_RESERVED);
	assert_int_equal(modify(p, 0x7777700, &good), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0,
				   &(struct ornic_key_create_cmd) {
					.kind = ORNIC_KEY_PHYS_ALL,
					.access = htole32(ORNIC_ACCESS_LOCAL_WRITE) },
				   sizeof(struct ornic_key_create_cmd), NULL, 0), 0);
	all = host_number(&p->host);
	assert_int_equal(modify(p, all, &good), ORNIC_ST_BAD_STATE);
	mr_of(p, key)->windows++;		/* ORN-MEM-45 */
	assert_int_equal(modify(p, key, &good), ORNIC_ST_BUSY);
	mr_of(p, key)->windows--;
	p->f->dev.features &= ~ORNIC_FEATURE(REREG);
	assert_int_equal(modify(p, key, &good), ORNIC_ST_UNSUPPORTED);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, inproc_setup_ready, inproc_teardown)
	const struct CMUnitTest tests[] = {
		T(test_translation), T(test_pd), T(test_access), T(test_zero_based),
		T(test_refused), T(test_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
