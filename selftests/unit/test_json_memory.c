// SPDX-License-Identifier: GPL-2.0
/*
 * json_memory.c: jansson gets memory from a reserve if malloc() fails, and tells the caller.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_memory.h"
#include "lib/failing.h"

#include <jansson.h>

#define RESERVE	(256u << 10)

/* Functions that jansson calls */
static json_malloc_t get;
static json_free_t give;

static int setup(void **state)
{
	(void)state;
	json_memory_begin();
	json_get_alloc_funcs(&get, &give);
	return 0;
}

/* Allocate while malloc() fails. */
static uint8_t *from_reserve(size_t bytes)
{
	uint8_t *mem;

	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	mem = get(bytes);
	assert_true(failing_end());
	return mem;
}

static void test_plenty(void **state)
{
	void *a = get(100), *b = get(100);

	(void)state;
	assert_non_null(a);
	memset(a, 1, 100);
	give(a);
	json_memory_free(b);
	json_memory_free(NULL);
	assert_false(json_memory_short());
}

/* Pieces are aligned, do not overlap, and are not passed to free(). */
static void test_reserve(void **state)
{
	uint8_t *a = from_reserve(1), *b = from_reserve(17), *c = from_reserve(16), *d;

	(void)state;
	assert_true(json_memory_short());
	assert_int_equal((uintptr_t)a % 16, 0);
	assert_ptr_equal(b, a + 16);
	assert_ptr_equal(c, b + 32);
	memset(a, 1, 1);
	memset(b, 2, 17);
	memset(c, 3, 16);
	give(b);
	json_memory_free(c);
	give(a);
	d = get(10);
	assert_non_null(d);
	assert_true(json_memory_short());	/* once is enough */
	give(d);
	json_memory_begin();
	assert_false(json_memory_short());
	assert_ptr_equal(from_reserve(1), a);
	json_memory_begin();
}

/* Use the whole reserve: then allocations fail; the first and the last byte belong to it. */
static void test_end_of_reserve(void **state)
{
	uint8_t *first, *last;

	(void)state;
	assert_null(from_reserve(RESERVE + 1));
	assert_null(from_reserve(SIZE_MAX));
	assert_true(json_memory_short());
	first = from_reserve(RESERVE - 16);
	assert_non_null(first);
	assert_null(from_reserve(17));
	last = from_reserve(16);
	assert_ptr_equal(last, first + RESERVE - 16);
	assert_null(from_reserve(1));
	give(first);
	give(last);
	json_memory_begin();
	assert_ptr_equal(from_reserve(RESERVE), first);
	json_memory_begin();
}

/* Memory next to the reserve, on either side, belongs to malloc(). */
static void test_not_of_reserve(void **state)
{
	void *mem[1000];

	(void)state;
	for (int i = 0; i < 1000; i++)
		mem[i] = get(1 + i);
	for (int i = 0; i < 1000; i++)
		give(mem[i]);
	json_memory_failed();
	assert_true(json_memory_short());
	json_memory_begin();
	assert_false(json_memory_short());
}

/* A string parsed while an allocation fails is whole, for each of the allocations. */
static void test_parse(void **state)
{
	static const char key[] = "a name of more than sixteen characters";
	static const char text[] =
		"{\"a name of more than sixteen characters\":\"and as long a value\"}";
	bool failed = true;
	uint32_t left;

	(void)state;
	for (left = 0; failed; left++) {
		json_t *root;

		json_memory_begin();
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		root = json_loads(text, 0, NULL);
		failed = failing_end();
		assert_int_equal(json_memory_short(), failed);
		assert_string_equal(json_string_value(json_object_get(root, key)),
				    "and as long a value");
		json_decref(root);
	}
	assert_true(left > 5);
}

#define TEST(name)	cmocka_unit_test_setup(test_##name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plenty), TEST(reserve), TEST(end_of_reserve), TEST(not_of_reserve),
		TEST(parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
