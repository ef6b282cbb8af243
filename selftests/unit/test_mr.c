// SPDX-License-Identifier: GPL-2.0
/*
 * engine/mr.c: every error of a key (ORN-MEM-6, ORN-SEC-3, ORN-SEC-9), and the pieces of memory
 * of a valid key.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "lib/nic.h"

#define LEN	(3 * GUEST_PAGE)
#define WRITE	ORNIC_ACCESS_LOCAL_WRITE

struct fixture {
	struct engine e;
	struct nic n;
	uint64_t addr;
	uint32_t key;
};

static const uint8_t mac[6] = { 2 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(engine_init(&f->e, 0), 0);
	nic_init(&f->n, &f->e, mac);
	f->addr = guest_alloc(&f->n.guest, LEN + GUEST_PAGE, GUEST_PAGE) + 100;
	f->key = nic_region(&f->n, f->n.pd.number, WRITE, f->addr, LEN);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nic_fini(&f->n);
	engine_fini(&f->e);
	free(f);
	return 0;
}

/* Return the syndrome, or 0. */
static uint32_t check(struct fixture *f, bool privileged, uint32_t pd, uint32_t access,
		      uint32_t key, uint64_t addr, uint64_t len)
{
	struct mr_access who = { .pd = pd, .privileged = privileged, .access = access };
	uint32_t syndrome = 0;
	struct mr *mr = mr_check(&f->n.dev, &who, key, addr, len, &syndrome);

	assert_int_equal(!mr, syndrome != 0);
	return syndrome;
}

static uint32_t by_user(struct fixture *f, uint32_t access, uint32_t key, uint64_t addr,
			uint64_t len)
{
	return check(f, false, f->n.pd.number, access, key, addr, len);
}

static void test_granted(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	assert_int_equal(by_user(f, 0, f->key, f->addr, LEN), 0);
	assert_int_equal(by_user(f, WRITE, f->key, f->addr + LEN - 1, 1), 0);
	assert_int_equal(mr->uses, 2);
}

/* ORN-SEC-12 */
static void test_range(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, 0, f->key, f->addr, LEN + 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr - 1, 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr - 1, 10), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + LEN, 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + 1, LEN), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, UINT64_MAX, 2), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr, UINT64_MAX), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + 8, -8ull), ORNIC_SYN_KEY_RANGE);
}

/* ORN-MEM-6 */
static void test_rights(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, ORNIC_ACCESS_REMOTE_READ, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(by_user(f, WRITE | ORNIC_ACCESS_REMOTE_ATOMIC, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_ACCESS);
}

/* Rights are checked before range, in the order of the clause (ORN-MEM-6). */
static void test_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, ORNIC_ACCESS_REMOTE_READ, f->key, 0, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(check(f, true, 99, ORNIC_ACCESS_REMOTE_READ, f->key ^ 1, 0, 1),
			 ORNIC_SYN_KEY_TAG);
	assert_int_equal(check(f, true, 99, ORNIC_ACCESS_REMOTE_READ, f->key, 0, 1),
			 ORNIC_SYN_KEY_PD);
}

/* ORN-ERR-3, ORN-SEC-9 */
static void test_no_oracle(void **state)
{
	struct fixture *f = *state;
	uint32_t absent = ((f->key >> 8) ^ 1) << 8 | 0x5a, pd = f->n.pd.number;

	assert_int_equal(check(f, true, pd, 0, absent, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, absent, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, f->key ^ 1, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd + 1, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, 0, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, UINT32_MAX, f->addr, 1), ORNIC_SYN_KEY_INDEX);
}

static void test_key_not_valid(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	mr->kind = ORNIC_KEY_FAST_REG;	/* and not registered */
	assert_int_equal(check(f, true, f->n.pd.number, 0, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_STATE);
	assert_int_equal(by_user(f, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_INDEX);
}

/* ORN-SEC-3 */
static void test_phys_all(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);

	assert_int_equal(check(f, true, 12345, WRITE, key, 0, 1), 0);
	assert_int_equal(check(f, true, 1, 0, key, UINT64_MAX, 1), 0);
	assert_int_equal(check(f, true, 1, 0, key, UINT64_MAX, 2), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(check(f, true, 1, ORNIC_ACCESS_REMOTE_WRITE, key, 0, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(check(f, false, f->n.pd.number, 0, key, f->addr, 1),
			 ORNIC_SYN_KEY_INDEX);
}

static void test_phys_all_of_a_pd(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);

	((struct mr *)table_get(&f->n.dev.keys, key >> 8))->pd = 5;
	assert_int_equal(check(f, true, 5, 0, key, 0, 1), 0);
	assert_int_equal(check(f, true, 6, 0, key, 0, 1), ORNIC_SYN_KEY_PD);
	assert_int_equal(check(f, false, 5, 0, key, 0, 1), ORNIC_SYN_KEY_INDEX);
}

/* ORN-MEM-6 */
static void test_empty_region(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	mr->length = 0;
	assert_int_equal(by_user(f, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_RANGE);
}

static void test_segs_of_a_region(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);
	struct seg seg[2];
	uint64_t got;

	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr + 5, LEN - 5, true, seg, 2, &got), 1);
	assert_int_equal(got, LEN - 5);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, f->addr + 5, 1));
	assert_int_equal(seg[0].len, LEN - 5);
}

/* A region of pages that are not contiguous: one piece per page, within the limit of pieces. */
static void test_segs_limit(void **state)
{
	struct fixture *f = *state;
	uint64_t base = guest_alloc(&f->n.guest, 8 * GUEST_PAGE, GUEST_PAGE), got;
	uint64_t page[] = { base, base + 2 * GUEST_PAGE, base + 3 * GUEST_PAGE,
			    base + 6 * GUEST_PAGE };
	struct ornic_pages desc = guest_list(&f->n.guest, 1, 12, page, 4);
	struct mr mr = { .kind = ORNIC_KEY_REGION, .iova = 0x7000, .length = 4 * GUEST_PAGE };
	struct device *dev = &f->n.dev;
	struct seg seg[8];

	assert_int_equal(umem_load(&mr.mem, dev->gpa, &desc, mr.length, 1ull << 12,
				   &dev->list_budget), ORNIC_ST_OK);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 8, &got), 3);
	assert_int_equal(got, mr.length);
	assert_int_equal(seg[1].len, 2 * GUEST_PAGE);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 2, &got), 2);
	assert_int_equal(got, 3 * GUEST_PAGE);
	assert_int_equal(mr_segs(dev, &mr, 0x7ffe, 3, true, seg, 8, &got), 2);
	assert_int_equal(seg[0].len, 2);
	assert_int_equal(seg[1].len, 1);
	guest_hide(&f->n.guest, page[3]);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 8, &got), -EFAULT);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, 3 * GUEST_PAGE, true, seg, 8, &got), 2);
	umem_free(&mr.mem, &dev->list_budget);
}

static void test_segs_of_phys_all(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);
	struct mr *mr = table_get(&f->n.dev.keys, key >> 8);
	struct seg seg[4];
	uint64_t got;

	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr, LEN, true, seg, 4, &got), 1);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, f->addr, 1));
	assert_int_equal(mr_segs(&f->n.dev, mr, 0, 1, true, seg, 4, &got), -EFAULT);
	assert_int_equal(mr_segs(&f->n.dev, mr, GUEST_BASE + GUEST_BYTES - 1, 2, true, seg, 4,
				 &got), -EFAULT);
	guest_hide(&f->n.guest, f->addr + GUEST_PAGE);
	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr, LEN, true, seg, 4, &got), -EFAULT);
}

/* An SGE does not continue at address 0, whatever the key permits. */
static void test_sge_wraps(void **state)
{
	struct fixture *f = *state;
	struct qp qp = { .dev = &f->n.dev, .pd = &f->n.pd, .flags = ORNIC_QP_F_PRIVILEGED };
	struct ornic_sge sge = {
		.addr = htole64(-32ull), .length = htole32(256),
		.lkey = htole32(nic_phys_all(&f->n, WRITE)),
	};
	struct seg seg[PACKET_SEGS];
	uint32_t syndrome = 0;
	uint64_t got;

	assert_int_equal(data_gather(&qp, &sge, 1, 64, 8, seg, &got, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_RANGE);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_granted),
		TEST(test_range),
		TEST(test_rights),
		TEST(test_order),
		TEST(test_no_oracle),
		TEST(test_key_not_valid),
		TEST(test_phys_all),
		TEST(test_phys_all_of_a_pd),
		TEST(test_empty_region),
		TEST(test_segs_of_a_region),
		TEST(test_segs_limit),
		TEST(test_segs_of_phys_all),
		TEST(test_sge_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
