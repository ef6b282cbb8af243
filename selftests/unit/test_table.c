// SPDX-License-Identifier: GPL-2.0
/* engine/table.c: numbers to objects, and how late numbers are reused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/table.h"

static int obj[4];

/* Random numbers: those of the kernel, others, or fewer bytes than wanted */
static const uint32_t *chosen;
static ssize_t missing;

/* Replaces the C library's */
ssize_t getrandom(void *bytes, size_t len, unsigned int flags)
{
	if (!chosen)
		return syscall(SYS_getrandom, bytes, len, flags);
	memcpy(bytes, chosen, len);
	return len - missing;
}

static void test_empty(void **state)
{
	struct table t;
	uint32_t n = 0;

	(void)state;
	table_init(&t, 1, 10);
	assert_null(table_get(&t, 0));
	assert_null(table_get(&t, 1));
	assert_null(table_get(&t, UINT32_MAX));
	assert_null(table_next(&t, &n));
	table_del(&t, 5);
	table_fini(&t);
}

static void test_numbers_start_at_first(void **state)
{
	struct table t;
	uint32_t a, b;

	(void)state;
	table_init(&t, 7, 10);
	assert_int_equal(table_add(&t, &obj[0], &a), 0);
	assert_int_equal(table_add(&t, &obj[1], &b), 0);
	assert_int_equal(a, 7);
	assert_int_equal(b, 8);
	assert_ptr_equal(table_get(&t, 8), &obj[1]);
	assert_null(table_get(&t, 6));
	assert_null(table_get(&t, 9));
	table_fini(&t);
}

static void test_full(void **state)
{
	struct table t;
	uint32_t n;

	(void)state;
	table_init(&t, 1, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(table_add(&t, &obj[i], &n), 0);
	assert_int_equal(table_add(&t, &obj[3], &n), -ENOSPC);
	assert_int_equal(table_add_random(&t, &obj[3], &n), -ENOSPC);
	table_del(&t, 2);
	assert_int_equal(table_add(&t, &obj[3], &n), 0);
	assert_int_equal(n, 2);
	table_fini(&t);
}

static void test_freed_number_comes_back_last(void **state)
{
	struct table t;
	uint32_t n;

	(void)state;
	table_init(&t, 1, 5000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(table_add(&t, &obj[i], &n), 0);
	table_del(&t, 2);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(table_add(&t, &obj[3], &n), 0);
		assert_int_not_equal(n, 2);
		table_del(&t, n);
	}
	table_fini(&t);
}

static void test_order_of_freeing_is_order_of_reuse(void **state)
{
	static const uint32_t order[] = { 3, 1, 4, 2 };
	struct table t;
	uint32_t n;

	(void)state;
	table_init(&t, 1, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(table_add(&t, &obj[i], &n), 0);
	for (int i = 0; i < 4; i++)
		table_del(&t, order[i]);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(table_add(&t, &obj[i], &n), 0);
		assert_int_equal(n, order[i]);
	}
	table_fini(&t);
}

static void test_random_numbers(void **state)
{
	uint32_t number[200], in_order = 0;
	struct table t;

	(void)state;
	table_init(&t, 1, 1 << 20);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(table_add_random(&t, &obj[0], &number[i]), 0);
		assert_true(number[i] >= 1 && number[i] <= 1 << 20);
		if (i && number[i] == number[i - 1] + 1)
			in_order++;
	}
	assert_true(in_order < 10);
	assert_int_equal(t.used, 200);
	assert_int_equal(t.cap, 65536);
	for (int i = 0; i < 200; i++) {
		assert_non_null(table_get(&t, number[i]));
		table_del(&t, number[i]);
	}
	assert_int_equal(t.used, 0);
	table_fini(&t);
}

/*
 * A random addition takes the first of 32 random slots that is free, or the next free slot above
 * the last one.
 */
static void test_random_search(void **state)
{
	static const struct {
		uint32_t guess[32];
		uint32_t number;
	} cases[] = {
		{ { 14 }, 7 }, { { 6, 3 }, 4 }, { { 6, 3, 6, 3, [31] = 2 }, 1 },
		{ { 0, 0, 6, 3, [31] = 2 }, 3 }, { { 0, [31] = 6 }, 8 }, { { 6, [31] = 6 }, 2 },
		{ { [31] = 7 }, 5 },
	};
	uint32_t n, used = 0;
	struct table t;

	(void)state;
	table_init(&t, 1, 8);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		chosen = cases[i].guess;
		for (missing = 1; missing >= 0; missing--) {
			n = 0;
			assert_int_equal(table_add_random(&t, &obj[0], &n), missing ? -EIO : 0);
			assert_int_equal(n, missing ? 0 : cases[i].number);
		}
		assert_int_equal(t.used, ++used);
	}
	chosen = NULL;
	missing = 0;
	table_fini(&t);
}

/* A slot that was taken from the middle of the FIFO has its old place when it is freed. */
static void test_random_in_fifo(void **state)
{
	static const uint32_t middle[32] = { 4 };
	struct table t;
	uint32_t n;

	(void)state;
	table_init(&t, 1, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(table_add(&t, &obj[0], &n), 0);
	table_del(&t, 5);
	table_del(&t, 1);
	chosen = middle;
	assert_int_equal(table_add_random(&t, &obj[0], &n), 0);
	chosen = NULL;
	assert_int_equal(n, 5);
	table_del(&t, 5);
	assert_int_equal(table_add(&t, &obj[0], &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(table_add(&t, &obj[0], &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(table_add(&t, &obj[0], &n), -ENOSPC);
	table_fini(&t);
}

/* Random and ordered additions, deletions: no number twice, none lost. */
static void test_mixed(void **state)
{
	enum { MAX = 300 };
	bool used[MAX + 1] = { false };
	uint32_t n, count = 0;
	struct table t;
	int err;

	(void)state;
	srand(1);
	table_init(&t, 1, MAX);
	for (int i = 0; i < 20000; i++) {
		if (rand() % 5 < 3) {
			err = rand() % 2 ? table_add(&t, &obj[0], &n) :
					   table_add_random(&t, &obj[0], &n);
			assert_int_equal(err, count == MAX ? -ENOSPC : 0);
			if (err)
				continue;
			assert_true(n >= 1 && n <= MAX && !used[n]);
			used[n] = true;
			count++;
		} else {
			n = 1 + rand() % MAX;
			table_del(&t, n);
			count -= used[n];
			used[n] = false;
		}
		assert_int_equal(t.used, count);
	}
	table_fini(&t);
}

static void test_next(void **state)
{
	struct table t;
	uint32_t n;

	(void)state;
	table_init(&t, 10, 100);
	for (int i = 0; i < 4; i++)
		assert_int_equal(table_add(&t, &obj[i], &n), 0);
	n = 0;
	assert_ptr_equal(table_next(&t, &n), &obj[0]);
	assert_int_equal(n, 10);
	table_del(&t, 10);
	table_del(&t, 12);
	n = 0;
	assert_ptr_equal(table_next(&t, &n), &obj[1]);
	assert_int_equal(n, 11);
	n++;
	assert_ptr_equal(table_next(&t, &n), &obj[3]);
	assert_int_equal(n, 13);
	n++;
	assert_null(table_next(&t, &n));
	table_fini(&t);
}

/*
 * A table grows before more than half of its numbers are used, up to its maximum, and a freed
 * number comes back after the others that are free.
 */
static void test_growth(void **state)
{
	enum { MAX = 3000 };
	uint32_t cap = 1024, n, free;
	struct table t;

	(void)state;
	table_init(&t, 1, MAX);
	for (uint32_t used = 0; used < MAX; used++) {
		assert_int_equal(table_add(&t, &obj[0], &n), 0);
		assert_int_equal(n, used + 1);
		if (used >= cap / 2)
			cap = cap * 2 < MAX ? cap * 2 : MAX;
		assert_int_equal(t.cap, cap);
		assert_int_equal(t.used, used + 1);
	}
	assert_int_equal(table_add(&t, &obj[0], &n), -ENOSPC);
	table_del(&t, 7);
	table_del(&t, 7);
	table_del(&t, 0);
	table_del(&t, MAX + 1);
	assert_int_equal(t.used, MAX - 1);
	table_fini(&t);
	assert_null(table_get(&t, 1));
	assert_int_equal(t.used, 0);
	/* the same as before, with a number that is freed at once */
	assert_int_equal(table_add(&t, &obj[0], &n), 0);
	assert_int_equal(n, 1);
	table_del(&t, 1);
	free = t.cap - 1;
	for (uint32_t i = 0; i < free; i++) {
		assert_int_equal(table_add(&t, &obj[1], &n), 0);
		assert_int_equal(n, i + 2);
		table_del(&t, n);
	}
	assert_int_equal(table_add(&t, &obj[1], &n), 0);
	assert_int_equal(n, 1);
	table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_numbers_start_at_first),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_freed_number_comes_back_last),
		cmocka_unit_test(test_order_of_freeing_is_order_of_reuse),
		cmocka_unit_test(test_random_numbers),
		cmocka_unit_test(test_random_search),
		cmocka_unit_test(test_random_in_fifo),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
