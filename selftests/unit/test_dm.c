// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: blocks, keys, BAR4 (ORN-DM).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include "engine/mr.h"

#include <ornic/dm.h>
#include <ornic/mr.h>
#include <endian.h>
#include <string.h>

#define RW	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE)

static int create(struct inproc *p, uint64_t bytes, uint8_t log_align, uint32_t *number,
		  uint64_t *offset)
{
	struct ornic_dm_create_cmd cmd = { .bytes = htole64(bytes), .log_align = log_align };
	struct ornic_dm_create_rsp rsp = {};
	int st = host_exec(&p->host, ORNIC_OP_DM_CREATE, 0, &cmd, sizeof(cmd), &rsp, sizeof(rsp));

	if (!st) {
		*number = host_number(&p->host);
		*offset = le64toh(rsp.offset);
		assert_int_equal(le64toh(rsp.bytes), (bytes + 4095) & ~4095ull);
	}
	return st;
}

static int destroy(struct inproc *p, uint32_t number)
{
	int st = host_exec(&p->host, ORNIC_OP_DM_DESTROY, number, NULL, 0, NULL, 0);

	assert_int_equal(p->host.cpl.out_size, 0);
	return st;
}

static uint64_t load(struct inproc *p, uint64_t off, unsigned int len)
{
	return p->f->vfu.ops->bar_read(&p->f->vfu, ORNIC_BAR_DM, off, len);
}

static void store(struct inproc *p, uint64_t off, unsigned int len, uint64_t val)
{
	p->f->vfu.ops->bar_write(&p->f->vfu, ORNIC_BAR_DM, off, len, val);
}

static struct ornic_key_create_cmd key_of(struct inproc *p, uint32_t dm, uint64_t off,
					  uint64_t length)
{
	return (struct ornic_key_create_cmd) {
		.kind = ORNIC_KEY_DM,
		.pd = htole32(p->pd),
		.access = htole32(RW | ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_ZERO_BASED),
		.length = htole64(length),
		.dm = htole32(dm),
		.dm_offset = htole64(off),
	};
}

static int key_create(struct inproc *p, const struct ornic_key_create_cmd *cmd)
{
	return host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, cmd, sizeof(*cmd), NULL, 0);
}

/* ORN-DM-3, ORN-DM-7: blocks do not overlap, are aligned, and run out */
static void test_blocks(void **state)
{
	struct inproc *p = *state;
	uint32_t number[LIMIT_DMS], n = 0;
	uint64_t at[LIMIT_DMS], end = 0, off;

	assert_int_equal(create(p, 1, 0, &number[n], &at[n]), 0);
	n++;
	assert_int_equal(create(p, 5000, 15, &number[n], &at[n]), 0);
	assert_int_equal(at[n++] % (1 << 15), 0);
	assert_int_equal(create(p, LIMIT_DM + 1, 0, &number[n], &at[n]), ORNIC_ST_LIMIT);
	assert_int_equal(create(p, LIMIT_DM, 0, &number[n], &at[n]), ORNIC_ST_NO_RESOURCE);
	while (!create(p, 4096, 0, &number[n], &at[n]))
		n++;
	assert_int_equal(p->host.cpl.status, ORNIC_ST_NO_RESOURCE);
	assert_int_equal(n, LIMIT_DM / 4096 - 1);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < i; j++)
			assert_true(at[i] != at[j] && at[i] != at[1] + 4096);
		if (at[i] > end)
			end = at[i];
	}
	assert_int_equal(end, LIMIT_DM - 4096);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(destroy(p, number[i]), ORNIC_ST_OK);
	assert_int_equal(destroy(p, number[0]), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(create(p, LIMIT_DM, 18, &number[0], &off), 0);
	assert_int_equal(off, 0);
	/* all pages but the last one, and that one */
	assert_int_equal(destroy(p, number[0]), ORNIC_ST_OK);
	assert_int_equal(create(p, LIMIT_DM - 4096, 0, &number[0], &off), 0);
	assert_int_equal(create(p, 1, 0, &number[1], &off), 0);
	assert_int_equal(off, LIMIT_DM - 4096);
	/* a block for each page */
	assert_int_equal(destroy(p, number[0]), ORNIC_ST_OK);
	assert_int_equal(destroy(p, number[1]), ORNIC_ST_OK);
	for (n = 0; n < 64; n++) {
		assert_int_equal(create(p, 1, 0, &number[0], &off), 0);
		assert_int_equal(off, n * 4096);
	}
	assert_int_equal(create(p, 1, 0, &number[0], &off), ORNIC_ST_NO_RESOURCE);
}

/* ORN-DM-3: the first gap at a multiple of the alignment */
static void test_align(void **state)
{
	static const struct {
		uint64_t bytes;
		uint8_t log_align;
		uint64_t at;
	} blocks[] = {
		{ 1, 0, 0 }, { 4097, 13, 8192 }, { 4096, 12, 4096 }, { 1, 17, 128 << 10 },
		{ 1, 11, 16384 }, { 1, 16, 64 << 10 }, { 4096, 1, 20480 },
	};
	struct inproc *p = *state;
	uint32_t number;
	uint64_t at;

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		assert_int_equal(create(p, blocks[i].bytes, blocks[i].log_align, &number, &at), 0);
		assert_int_equal(at, blocks[i].at);
	}
	for (uint8_t log = 17; log < 64; log++)		/* only 0 is aligned, and taken */
		assert_int_equal(create(p, 1, log, &number, &at), ORNIC_ST_NO_RESOURCE);
}

/* ORN-DM-4, ORN-DM-6, ORN-DM-9, ORN-SEC-6: all widths; no data of the last owner is left */
static void test_contents(void **state)
{
	struct inproc *p = *state;
	uint32_t number, other;
	uint64_t at, first;

	assert_int_equal(create(p, 1, 0, &other, &first), 0);
	assert_int_equal(create(p, 8192, 0, &number, &at), 0);
	store(p, first, 8, 0x77);
	store(p, at, 8, 0x1122334455667788);
	store(p, at + 4096, 4, 0xaabbccdd);
	store(p, at + 2, 2, 0xeeee);
	store(p, at + 7, 1, 0x99);
	assert_int_equal(load(p, at, 8), 0x99223344eeee7788);
	assert_int_equal(load(p, at + 4096, 4), 0xaabbccdd);
	assert_int_equal(load(p, at + 4098, 2), 0xaabb);
	assert_int_equal(load(p, at + 4099, 1), 0xaa);
	assert_int_equal(destroy(p, number), ORNIC_ST_OK);
	assert_int_equal(load(p, at, 8) | load(p, at + 4096, 8), 0);
	store(p, at, 8, 1);			/* a driver that did not unmap it */
	store(p, at + 4096, 8, 1);
	store(p, at + 8192, 8, 0x88);		/* behind it */
	assert_int_equal(create(p, 8192, 0, &number, &at), 0);
	assert_int_equal(load(p, at, 8) | load(p, at + 4096, 8), 0);
	assert_int_equal(load(p, at + 8192, 8), 0x88);
	assert_int_equal(load(p, first, 8), 0x77);
	store(p, at, 8, 2);
	store(p, LIMIT_DM - 8, 8, 3);
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(load(p, at, 8), 0);
	assert_int_equal(load(p, LIMIT_DM - 8, 8), 0);
}

/* The data path reads the same bytes as the BAR, within the key; ORN-DM-5 */
static void test_key(void **state)
{
	struct inproc *p = *state;
	struct mr_access who = { .pd = p->pd, .access = RW };
	struct ornic_key_create_cmd cmd;
	uint32_t other, number, key, syndrome;
	struct seg seg;
	struct mr *mr;
	uint64_t at, got;

	assert_int_equal(create(p, 4096, 0, &other, &at), 0);
	assert_int_equal(create(p, 8000, 0, &number, &at), 0);
	cmd = key_of(p, number, 64, 7936);
	assert_int_equal(key_create(p, &cmd), ORNIC_ST_OK);
	key = host_number(&p->host);
	store(p, at + 64 + 8, 8, 0x1234);
	mr = mr_check(&p->f->dev, &who, key, 8, 7928, &syndrome);
	assert_non_null(mr);
	assert_int_equal(mr_segs(&p->f->dev, mr, 8, 7928, true, &seg, 1, &got), 1);
	assert_int_equal(got, 7928);
	assert_int_equal(*(uint64_t *)seg.ptr, 0x1234);
	seg.ptr[0] = 0x35;
	assert_int_equal(load(p, at + 64 + 8, 8), 0x1235);
	assert_null(mr_check(&p->f->dev, &who, key, 8, 7929, &syndrome));
	who.pd++;
	assert_null(mr_check(&p->f->dev, &who, key, 8, 8, &syndrome));
	assert_int_equal(destroy(p, number), ORNIC_ST_BUSY);
	assert_int_equal(destroy(p, other), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY, key, NULL, 0, NULL, 0), 0);
	assert_int_equal(destroy(p, number), ORNIC_ST_OK);
}

/* Change @member of a good command to @val and expect it to be rejected. */
#define REFUSE(p, op, good, member, val, status) do {				\
	__typeof__(good) bad_ = (good);						\
										\
	bad_.member = (val);							\
	assert_int_equal(host_exec(&(p)->host, ORNIC_OP_##op, 0, &bad_, sizeof(bad_), NULL, 0),	\
			 status);						\
	assert_int_equal(le32toh((p)->host.cpl.syndrome), ORNIC_SYN_FIELD |	\
			 ((const char *)&bad_.member - (const char *)&bad_));	\
} while (0)

/* ORN-DM-8, ORN-ADM-11, ORN-ADM-21 */
static void test_refused(void **state)
{
	struct inproc *p = *state;
	struct ornic_dm_create_cmd good = { .bytes = htole64(4096) };
	struct ornic_key_create_cmd key;
	struct ornic_key_modify_cmd m = { .mask = htole32(ORNIC_KEYM_ACCESS) };
	uint32_t number;
	uint64_t at;

	REFUSE(p, DM_CREATE, good, bytes, 0, ORNIC_ST_BAD_PARAM);
	REFUSE(p, DM_CREATE, good, bytes, UINT64_MAX, ORNIC_ST_LIMIT);
	REFUSE(p, DM_CREATE, good, log_align, 64, ORNIC_ST_BAD_PARAM);
	REFUSE(p, DM_CREATE, good, mbz[0], 1, ORNIC_ST_RESERVED);
	REFUSE(p, DM_CREATE, good, want, 1, ORNIC_ST_RESERVED);
	assert_int_equal(p->f->dm_used, 0);
	assert_int_equal(create(p, 100, 63, &number, &at), 0);
	key = key_of(p, number, 0, 100);
	REFUSE(p, KEY_CREATE, key, length, htole64(101), ORNIC_ST_BAD_PARAM); /* end of the block */
	REFUSE(p, KEY_CREATE, key, length, htole64(UINT64_MAX), ORNIC_ST_BAD_PARAM);
	REFUSE(p, KEY_CREATE, key, dm_offset, htole64(101), ORNIC_ST_BAD_PARAM);
	REFUSE(p, KEY_CREATE, key, dm_offset, htole64(UINT64_MAX), ORNIC_ST_BAD_PARAM);
	REFUSE(p, KEY_CREATE, key, dm, htole32(number + 1), ORNIC_ST_BAD_NUMBER);
	REFUSE(p, KEY_CREATE, key, flags, ORNIC_KEY_F_PEER, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, key, pages, host_contiguous(1), ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, key, iova, htole64(4096), ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, key, max_pages, 1, ORNIC_ST_RESERVED);
	REFUSE(p, KEY_CREATE, key, pd, 0, ORNIC_ST_BAD_NUMBER);
	REFUSE(p, KEY_CREATE, key, access, htole32(ORNIC_ACCESS_FLUSH_PERSISTENT),
	       ORNIC_ST_BAD_PARAM);
	key.access = htole32(RW);
	key.iova = htole64(UINT64_MAX - 99);
	REFUSE(p, KEY_CREATE, key, length, htole64(100), ORNIC_ST_BAD_PARAM);
	/* The largest address, and no bytes at the end */
	key.iova = htole64(UINT64_MAX - 100);
	assert_int_equal(key_create(p, &key), ORNIC_ST_OK);
	key = key_of(p, number, 100, 0);
	assert_int_equal(key_create(p, &key), ORNIC_ST_OK);
	key = key_of(p, number, 0, 100);
	assert_int_equal(key_create(p, &key), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_MODIFY, host_number(&p->host), &m,
				   sizeof(m), NULL, 0), ORNIC_ST_BAD_STATE);
	p->f->dev.features &= ~ORNIC_FEATURE(DM);
	assert_int_equal(create(p, 100, 0, &number, &at), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(key_create(p, &key), ORNIC_ST_UNSUPPORTED);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, inproc_setup_ready, inproc_teardown)
	const struct CMUnitTest tests[] = {
		T(test_blocks), T(test_align), T(test_contents), T(test_key), T(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
