// SPDX-License-Identifier: GPL-2.0
/* engine/umem.c: page descriptors of every level, and hostile lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "engine/pagelist.h"
#include "engine/umem.h"
#include "lib/guest.h"

#define SIZES	(1ull << 12 | 1ull << 21 | 1ull << 63)
#define BUDGET	100000ull

struct fixture {
	struct guest guest;
	struct page_lists budget;
	struct umem m;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	guest_init(&f->guest);
	f->budget.left = BUDGET;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	umem_free(&f->m, &f->budget);
	assert_int_equal(f->budget.left, BUDGET);
	guest_fini(&f->guest);
	free(f);
	return 0;
}

static int load(struct fixture *f, struct ornic_pages desc, uint64_t bytes)
{
	return umem_load(&f->m, f->guest.gpa, &desc, bytes, SIZES, &f->budget);
}

/* Allocate @n pages, none adjacent to the one before. */
static void scattered(struct fixture *f, uint64_t *page, uint32_t n)
{
	uint64_t base = guest_alloc(&f->guest, 2 * n * GUEST_PAGE, GUEST_PAGE);

	for (uint32_t i = 0; i < n; i++)
		page[i] = base + 2 * (n - 1 - i) * GUEST_PAGE;
}

/* Check that every byte of the block is where the page list says. */
static void check_pages(struct fixture *f, const uint64_t *page, uint64_t bytes)
{
	for (uint64_t off = 0; off < bytes; off += 977) {
		uint64_t pos = off + f->m.offset;
		uint64_t rest = GUEST_PAGE - pos % GUEST_PAGE;
		void *ptr;

		if (rest > bytes - off)
			rest = bytes - off;
		assert_int_equal(umem_span(&f->m, off, bytes - off, true, &ptr), rest);
		assert_ptr_equal(ptr, guest_at(&f->guest, page[pos / GUEST_PAGE] +
					       pos % GUEST_PAGE, 1));
	}
}

static void test_contiguous(void **state)
{
	struct fixture *f = *state;
	uint64_t addr = guest_alloc(&f->guest, 8 * GUEST_PAGE, GUEST_PAGE);
	struct ornic_pages desc = guest_contiguous(addr);
	void *ptr;

	desc.offset = htole32(128);
	assert_int_equal(load(f, desc, 7 * GUEST_PAGE), ORNIC_ST_OK);
	assert_int_equal(f->budget.left, BUDGET - 1);
	assert_int_equal(umem_span(&f->m, 0, 7 * GUEST_PAGE, true, &ptr), 7 * GUEST_PAGE);
	assert_ptr_equal(ptr, guest_at(&f->guest, addr + 128, 1));
	assert_int_equal(umem_span(&f->m, 7 * GUEST_PAGE - 1, 1, true, &ptr), 1);
	assert_int_equal(umem_span(&f->m, 7 * GUEST_PAGE - 1, 2, true, &ptr), 0);
	assert_int_equal(umem_span(&f->m, 7 * GUEST_PAGE, 1, true, &ptr), 0);
	assert_int_equal(umem_span(&f->m, UINT64_MAX, 2, true, &ptr), 0);
}

static void test_level1(void **state)
{
	struct fixture *f = *state;
	struct ornic_pages desc;
	uint64_t page[9];

	scattered(f, page, 9);
	desc = guest_list(&f->guest, 1, 12, page, 9);
	desc.offset = htole32(64);
	assert_int_equal(load(f, desc, 8 * GUEST_PAGE), ORNIC_ST_OK);
	assert_int_equal(f->m.npages, 9);
	check_pages(f, page, 8 * GUEST_PAGE);
}

static void test_level2(void **state)
{
	enum { N = 1100 };
	struct fixture *f = *state;
	uint64_t page[N];

	scattered(f, page, N);
	assert_int_equal(load(f, guest_list(&f->guest, 2, 12, page, N), N * GUEST_PAGE - 5),
			 ORNIC_ST_OK);
	assert_int_equal(f->budget.left, BUDGET - N);
	check_pages(f, page, N * GUEST_PAGE - 5);
}

static void test_adjacent_pages_are_one_span(void **state)
{
	struct fixture *f = *state;
	uint64_t base = guest_alloc(&f->guest, 4 * GUEST_PAGE, GUEST_PAGE);
	uint64_t page[] = { base, base + GUEST_PAGE, base + 3 * GUEST_PAGE };
	uint64_t more[] = { base + 3 * GUEST_PAGE, base, base + GUEST_PAGE, base + 2 * GUEST_PAGE,
			    base + 3 * GUEST_PAGE, base };
	void *ptr;

	assert_int_equal(load(f, guest_list(&f->guest, 1, 12, page, 3), 3 * GUEST_PAGE),
			 ORNIC_ST_OK);
	assert_int_equal(umem_span(&f->m, 10, 3 * GUEST_PAGE - 10, false, &ptr),
			 2 * GUEST_PAGE - 10);
	assert_non_null(umem_ptr(&f->m, 4000, 200, false));
	assert_null(umem_ptr(&f->m, 2 * GUEST_PAGE - 1, 2, false));
	umem_free(&f->m, &f->budget);
	assert_int_equal(load(f, guest_list(&f->guest, 1, 12, more, 6), 6 * GUEST_PAGE),
			 ORNIC_ST_OK);
	assert_int_equal(umem_span(&f->m, GUEST_PAGE + 1, 5 * GUEST_PAGE - 1, false, &ptr),
			 4 * GUEST_PAGE - 1);
	assert_ptr_equal(ptr, guest_at(&f->guest, base + 1, 1));
}

static void test_last_page_of_the_address_space(void **state)
{
	struct fixture *f = *state;
	uint64_t page[] = { -GUEST_PAGE, 0 };
	void *ptr;

	assert_int_equal(load(f, guest_list(&f->guest, 1, 12, page, 2), 2 * GUEST_PAGE),
			 ORNIC_ST_OK);
	assert_int_equal(umem_span(&f->m, 0, 2 * GUEST_PAGE, false, &ptr), 0);
}

/* A block and a list may end with the address space, if memory is mapped there. */
static void test_last_bytes_of_the_address_space(void **state)
{
	struct fixture *f = *state;
	uint64_t at = guest_alloc(&f->guest, GUEST_PAGE, GUEST_PAGE);
	__le64 *list = guest_at(&f->guest, at + GUEST_PAGE - 64, 64);
	struct ornic_pages desc = { .addr = htole64(-64ull), .page_shift = 12, .level = 1 };
	uint64_t page[8];
	void *ptr;

	assert_int_equal(gpa_map(f->guest.gpa, -GUEST_PAGE, GUEST_PAGE, GPA_READ, f->guest.fd,
				 at - GUEST_BASE), 0);
	assert_int_equal(load(f, guest_contiguous(-GUEST_PAGE), GUEST_PAGE), ORNIC_ST_OK);
	assert_int_equal(umem_span(&f->m, 0, GUEST_PAGE, false, &ptr), GUEST_PAGE);
	umem_free(&f->m, &f->budget);
	scattered(f, page, 8);
	for (int i = 0; i < 8; i++)
		list[i] = htole64(page[i]);
	assert_int_equal(load(f, desc, 8 * GUEST_PAGE), ORNIC_ST_OK);
	check_pages(f, page, 8 * GUEST_PAGE);
}

/* ORN-MEM-1, ORN-SEC-4 */
static void test_list_is_read_once(void **state)
{
	struct fixture *f = *state;
	struct ornic_pages desc;
	uint64_t page[4];

	scattered(f, page, 4);
	desc = guest_list(&f->guest, 1, 12, page, 4);
	assert_int_equal(load(f, desc, 4 * GUEST_PAGE), ORNIC_ST_OK);
	memset(guest_at(&f->guest, le64toh(desc.addr), 32), 0xff, 32);
	check_pages(f, page, 4 * GUEST_PAGE);
}

static void refused(struct fixture *f, struct ornic_pages desc, uint64_t bytes, int status)
{
	assert_int_equal(load(f, desc, bytes), status);
	assert_null(f->m.page);
	assert_int_equal(f->budget.left, BUDGET);
}

/* ORN-MEM-10 */
static void test_descriptor_refused(void **state)
{
	struct fixture *f = *state;
	uint64_t page[2] = { GUEST_BASE, GUEST_BASE + GUEST_PAGE };
	struct ornic_pages flat = guest_contiguous(GUEST_BASE), d;
	struct ornic_pages list = guest_list(&f->guest, 1, 12, page, 2);

	d = flat, d.mbz = htole16(1);
	refused(f, d, 64, ORNIC_ST_RESERVED);
	d = flat, d.level = 3;
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	d = flat, d.page_shift = 12;
	refused(f, d, 64, ORNIC_ST_RESERVED);
	d = flat, d.offset = htole32(4096);
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	d = flat, d.addr = htole64(GUEST_BASE + 64);
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	refused(f, flat, 0, ORNIC_ST_BAD_PARAM);
	d = list, d.page_shift = 13;
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	d = list, d.page_shift = 11;
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	for (uint32_t shift = 0; shift < 256; shift = shift == 11 ? 64 : shift + 1) {
		d = list, d.page_shift = shift;		/* whatever the device permits */
		assert_int_equal(umem_load(&f->m, f->guest.gpa, &d, 64, UINT64_MAX, &f->budget),
				 ORNIC_ST_BAD_PARAM);
	}
	refused(f, list, 0, ORNIC_ST_BAD_PARAM);
	for (uint32_t level = 3; level < 256; level++) {
		d = list, d.level = level;
		refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	}
	d = list, d.offset = htole32(4096);
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
	d = list, d.addr = htole64(le64toh(list.addr) + 8);
	refused(f, d, 64, ORNIC_ST_BAD_PARAM);
}

/* ORN-MEM-2 */
static void test_overflow_refused(void **state)
{
	struct fixture *f = *state;
	struct ornic_pages d = guest_contiguous(-GUEST_PAGE);
	uint64_t page[1] = { GUEST_BASE };

	refused(f, d, GUEST_PAGE + 1, ORNIC_ST_BAD_PARAM);
	refused(f, d, UINT64_MAX, ORNIC_ST_BAD_PARAM);
	d.offset = htole32(64);
	refused(f, d, GUEST_PAGE, ORNIC_ST_BAD_PARAM);
	refused(f, d, UINT64_MAX - 63, ORNIC_ST_BAD_PARAM);
	d = guest_contiguous(0);
	refused(f, d, (1ull << 63) + 1, ORNIC_ST_BAD_PARAM);
	d = guest_list(&f->guest, 1, 12, page, 1);
	refused(f, d, UINT64_MAX, ORNIC_ST_NO_RESOURCE);
	d.offset = htole32(64);
	refused(f, d, UINT64_MAX, ORNIC_ST_BAD_PARAM);
}

/* ORN-MEM-11 */
static void test_budget(void **state)
{
	struct fixture *f = *state;
	struct page_lists budget = { .left = 2 };
	uint64_t page[3];
	struct ornic_pages desc;

	scattered(f, page, 3);
	desc = guest_list(&f->guest, 1, 12, page, 3);
	assert_int_equal(umem_load(&f->m, f->guest.gpa, &desc, 2 * GUEST_PAGE + 1, SIZES, &budget),
			 ORNIC_ST_NO_RESOURCE);
	assert_int_equal(budget.left, 2);
	assert_int_equal(umem_load(&f->m, f->guest.gpa, &desc, 2 * GUEST_PAGE, SIZES, &budget),
			 ORNIC_ST_OK);
	assert_int_equal(budget.left, 0);
	umem_free(&f->m, &budget);
	assert_int_equal(budget.left, 2);
}

/* ORN-MEM-10 */
static void test_garbage_entries_refused(void **state)
{
	static const uint64_t garbage[] = { 1, 0x800, GUEST_BASE + 4095, UINT64_MAX };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		uint64_t page[3] = { GUEST_BASE, GUEST_BASE, garbage[i] };

		refused(f, guest_list(&f->guest, 1, 12, page, 3), 3 * GUEST_PAGE,
			ORNIC_ST_BAD_PARAM);
		refused(f, guest_list(&f->guest, 2, 12, page, 3), 3 * GUEST_PAGE,
			ORNIC_ST_BAD_PARAM);
	}
}

static void test_small_pages_refused_as_huge(void **state)
{
	struct fixture *f = *state;
	uint64_t page[1] = { GUEST_BASE + GUEST_PAGE };

	refused(f, guest_list(&f->guest, 1, 21, page, 1), 100, ORNIC_ST_BAD_PARAM);
}

static void test_leaf_not_aligned(void **state)
{
	struct fixture *f = *state;
	uint64_t page[600];
	struct ornic_pages desc;
	uint64_t *top;

	scattered(f, page, 600);
	desc = guest_list(&f->guest, 2, 12, page, 600);
	top = guest_at(&f->guest, le64toh(desc.addr), 16);
	top[1] = htole64(le64toh(top[1]) + 64);
	refused(f, desc, 600 * GUEST_PAGE, ORNIC_ST_BAD_PARAM);
}

/* ORN-ADM-27 */
static void test_unreachable_lists(void **state)
{
	struct fixture *f = *state;
	struct ornic_pages desc = { .page_shift = 12, .level = 1 };
	uint64_t page[600], *top;

	desc.addr = htole64(0x1000);
	refused(f, desc, 64, ORNIC_ST_DMA_ERROR);
	desc.level = 2;
	refused(f, desc, 64, ORNIC_ST_DMA_ERROR);
	desc.addr = htole64(GUEST_BASE + GUEST_BYTES - 64);
	desc.level = 1;
	refused(f, desc, 9 * GUEST_PAGE, ORNIC_ST_DMA_ERROR);
	desc.addr = htole64(-64ull);
	refused(f, desc, 9 * GUEST_PAGE, ORNIC_ST_DMA_ERROR);
	scattered(f, page, 600);
	desc = guest_list(&f->guest, 2, 12, page, 600);
	top = guest_at(&f->guest, le64toh(desc.addr), 16);
	top[1] = htole64(GUEST_BASE + GUEST_BYTES);
	refused(f, desc, 600 * GUEST_PAGE, ORNIC_ST_DMA_ERROR);
}

static void test_page_goes_away(void **state)
{
	struct fixture *f = *state;
	uint64_t page[3];
	void *ptr;

	scattered(f, page, 3);
	assert_int_equal(load(f, guest_list(&f->guest, 1, 12, page, 3), 3 * GUEST_PAGE),
			 ORNIC_ST_OK);
	guest_hide(&f->guest, page[1]);
	assert_int_equal(umem_span(&f->m, GUEST_PAGE, 64, false, &ptr), 0);
	assert_null(umem_ptr(&f->m, GUEST_PAGE, 64, false));
	assert_non_null(umem_ptr(&f->m, 0, 64, false));
	assert_non_null(umem_ptr(&f->m, 2 * GUEST_PAGE, 64, false));
}

/* ORN-SEC-14: a list is read in steps of any length; each entry is one unit of work. */
static void test_steps(void **state)
{
	enum { N = 1100 };
	static const uint64_t steps[] = { 1, 7, 511, 512, 513, N - 1, N, N + 1 };
	struct fixture *f = *state;
	uint64_t page[N];

	scattered(f, page, N);
	for (uint32_t i = 0; i < 2 * sizeof(steps) / sizeof(steps[0]); i++) {
		struct ornic_pages desc = guest_list(&f->guest, 1 + i % 2, 12, page, N);
		uint64_t step = steps[i / 2], work = 0;
		struct umem_load l;

		assert_int_equal(umem_begin(&l, f->guest.gpa, &desc, N * GUEST_PAGE, SIZES,
					    &f->budget), ORNIC_ST_OK);
		assert_int_equal(f->budget.left, BUDGET - N);
		assert_int_equal(umem_step(&l, &work), UMEM_MORE);
		assert_int_equal(l.done, 0);
		for (uint64_t done = step; done < N; done += step) {
			work = step;
			assert_int_equal(umem_step(&l, &work), UMEM_MORE);
			assert_int_equal(work, 0);
			assert_int_equal(l.done, done);
		}
		work = step;
		assert_int_equal(umem_step(&l, &work), ORNIC_ST_OK);
		assert_int_equal(l.done, N);
		assert_int_equal(work, (step - N % step) % step);
		assert_memory_equal(l.mem.page, page, sizeof(page));
		umem_free(&l.mem, &f->budget);
		assert_int_equal(f->budget.left, BUDGET);
		umem_free(&l.mem, &f->budget);
		assert_int_equal(f->budget.left, BUDGET);
	}
}

/* ORN-MEM-10: what is just legal: the largest offset and page, the alignment of a list */
static void test_limits(void **state)
{
	struct fixture *f = *state;
	uint64_t at = guest_alloc(&f->guest, 4 * GUEST_PAGE, GUEST_PAGE), page[2] = { at, at };
	struct ornic_pages flat = guest_contiguous(at), list;
	struct umem_load l, none = { 0 };
	void *ptr;

	flat.offset = htole32(4095);
	assert_int_equal(load(f, flat, 1), ORNIC_ST_OK);
	assert_int_equal(umem_span(&f->m, 0, 1, false, &ptr), 1);
	assert_ptr_equal(ptr, guest_at(&f->guest, at + 4095, 1));
	umem_free(&f->m, &f->budget);
	list = guest_list(&f->guest, 1, 12, page, 2);
	list.offset = htole32(4095);
	assert_int_equal(load(f, list, 2), ORNIC_ST_OK);
	assert_int_equal(f->m.npages, 2);
	assert_int_equal(umem_span(&f->m, 0, 2, false, &ptr), 1);
	umem_free(&f->m, &f->budget);
	assert_int_equal(load(f, list, 1), ORNIC_ST_OK);
	assert_int_equal(f->m.npages, 1);
	umem_free(&f->m, &f->budget);
	page[0] = 0;
	list = guest_list(&f->guest, 1, 63, page, 1);
	assert_int_equal(load(f, list, 1ull << 63), ORNIC_ST_OK);
	assert_int_equal(f->m.npages, 1);
	umem_free(&f->m, &f->budget);
	list.page_shift = 64;
	refused(f, list, 1, ORNIC_ST_BAD_PARAM);
	list.page_shift = 12;
	for (uint64_t off = 1; off <= 64; off++) {
		list.addr = htole64(at + off);
		assert_int_equal(umem_begin(&l, f->guest.gpa, &list, 1, SIZES, &f->budget),
				 off < 64 ? ORNIC_ST_BAD_PARAM : ORNIC_ST_OK);
		if (off < 64)
			assert_memory_equal(&l, &none, sizeof(l));
	}
	umem_free(&l.mem, &f->budget);
	assert_memory_equal(&l.mem, &none.mem, sizeof(l.mem));
	/* The top array of a list of level 2 ends with the address space. */
	list = (struct ornic_pages) { .addr = htole64(-64ull), .page_shift = 12, .level = 2 };
	refused(f, list, 9 * 512 * GUEST_PAGE, ORNIC_ST_DMA_ERROR);
}

static bool is_mapped(const uint64_t *at)
{
	unsigned char resident;

	return !mincore((void *)((uintptr_t)at & ~(GUEST_PAGE - 1)), 1, &resident);
}

/* ORN-SEC-14: a large list is freed in pieces, the first one first; a small one is freed at once. */
static void test_large_lists(void **state)
{
	const uint64_t piece = PAGELIST_PIECE / sizeof(uint64_t), budget = 10 * piece;
	struct pagelist_queue queue = STAILQ_HEAD_INITIALIZER(queue);
	struct page_lists lists = { .left = budget, .queue = &queue };
	uint64_t *small, *list[2];

	(void)state;
	assert_false(pagelist_reap(&queue));
	assert_null(pagelist_alloc(&lists, UINT64_MAX));
	assert_null(pagelist_alloc(&lists, budget + 1));
	pagelist_free(&lists, NULL, 5 * piece);
	small = pagelist_alloc(&lists, piece);
	memset(small, 1, PAGELIST_PIECE);
	pagelist_free(&lists, small, piece);
	assert_int_equal(lists.left, budget);
	assert_false(pagelist_reap(&queue));
	list[0] = pagelist_alloc(&lists, 3 * piece + 1);
	list[1] = pagelist_alloc(&lists, 2 * piece);
	list[0][3 * piece] = 1;
	list[1][2 * piece - 1] = 1;
	pagelist_free(&lists, list[0], 3 * piece + 1);
	pagelist_free(&lists, list[1], 2 * piece);
	assert_int_equal(lists.left, budget - 5 * piece - 1);
	assert_int_equal(lists.waiting, 5 * piece + 1);
	for (uint64_t left = 3; left; left--) {
		assert_true(pagelist_reap(&queue));
		assert_true(is_mapped(list[0] + left * piece - 1));
		assert_false(is_mapped(list[0] + left * piece));
		assert_int_equal(lists.waiting, (2 + left) * piece);
	}
	assert_true(pagelist_reap(&queue));
	assert_false(is_mapped(list[0]));
	assert_true(is_mapped(list[1] + 2 * piece - 1));
	assert_true(pagelist_reap(&queue));
	assert_true(is_mapped(list[1] + piece - 1));
	assert_false(is_mapped(list[1] + piece));
	pagelist_disown(&lists);
	assert_int_equal(lists.left, budget);
	assert_int_equal(lists.waiting, 0);
	assert_false(pagelist_reap(&queue));
	assert_false(is_mapped(list[1]));
	assert_int_equal(lists.left, budget);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_contiguous),
		TEST(test_level1),
		TEST(test_level2),
		TEST(test_adjacent_pages_are_one_span),
		TEST(test_last_page_of_the_address_space),
		TEST(test_last_bytes_of_the_address_space),
		TEST(test_list_is_read_once),
		TEST(test_descriptor_refused),
		TEST(test_overflow_refused),
		TEST(test_budget),
		TEST(test_garbage_entries_refused),
		TEST(test_small_pages_refused_as_huge),
		TEST(test_leaf_not_aligned),
		TEST(test_unreachable_lists),
		TEST(test_page_goes_away),
		TEST(test_steps),
		TEST(test_limits),
		cmocka_unit_test(test_large_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
