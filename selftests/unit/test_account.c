// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that guests make the daemon use: guarantees, the shared part, and the limit of one account.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/account.h"

#define MIB	(1ull << 20)

/* Return how many MiB @a can still take, and give them back. */
static uint64_t room(struct account *a)
{
	uint64_t n = 0;

	while (account_take(a, MIB))
		n++;
	account_give(a, n * MIB);
	return n;
}

/* Nobody takes the guarantee of another, and one account alone gets a quarter. */
static void test_shares(void **state)
{
	struct account_pool pool;
	struct account a[4];

	(void)state;
	account_pool_init(&pool, 64 * MIB);
	for (int i = 0; i < 4; i++)
		account_open(&a[i], &pool);
	assert_int_equal(pool.guarantee, ACCOUNT_GUARANTEE);
	assert_int_equal(pool.most, 16 * MIB);
	for (int i = 0; i < 4; i++)
		assert_int_equal(room(&a[i]), 16);
	assert_true(account_take(&a[0], 16 * MIB));
	assert_false(account_take(&a[0], 1));
	assert_int_equal(a[0].rejected, 2);	/* and one of room() */
	assert_true(account_take(&a[1], 16 * MIB));
	assert_true(account_take(&a[2], 16 * MIB));
	assert_int_equal(pool.shared, 36 * MIB);
	assert_int_equal(room(&a[3]), 16);
	account_give(&a[0], 16 * MIB);
	assert_int_equal(a[0].used, 0);
	assert_int_equal(pool.shared, 24 * MIB);
	for (int i = 1; i < 3; i++)
		account_give(&a[i], 16 * MIB);
	assert_int_equal(pool.shared, 0);
	for (int i = 0; i < 4; i++)
		account_close(&a[i]);
}

/* Many accounts: the guarantees take half, all together never get more than the pool has. */
static void test_many(void **state)
{
	static struct account a[64];
	struct account_pool pool;
	uint64_t total = 0;

	(void)state;
	account_pool_init(&pool, 128 * MIB);
	for (int i = 0; i < 64; i++)
		account_open(&a[i], &pool);
	assert_int_equal(pool.guarantee, MIB);
	for (int i = 0; i < 64; i++)
		while (account_take(&a[i], MIB / 2))
			total += MIB / 2;
	assert_int_equal(total, 128 * MIB);
	for (int i = 0; i < 64; i++)
		assert_in_range(a[i].used, MIB, 32 * MIB);
	for (int i = 0; i < 64; i++) {
		account_give(&a[i], a[i].used);
		account_close(&a[i]);
	}
	assert_int_equal(pool.shared, 0);
	assert_int_equal(pool.n, 0);
}

/* A new account lowers the guarantees: nobody gets more than the pool has, and giving back works. */
static void test_new_account(void **state)
{
	struct account_pool pool;
	struct account a, b, c;

	(void)state;
	account_pool_init(&pool, 16 * MIB);
	account_open(&a, &pool);
	account_open(&b, &pool);
	assert_true(account_take(&a, 4 * MIB));
	assert_true(account_take(&b, 4 * MIB));
	account_open(&c, &pool);
	assert_int_equal(pool.guarantee, 16 * MIB / 6);
	assert_int_equal(pool.shared, 2 * (4 * MIB - pool.guarantee));
	assert_int_equal(room(&a), 0);
	assert_int_equal(room(&c), 4);
	assert_true(account_take(&c, pool.guarantee));
	account_give(&c, pool.guarantee);
	account_close(&c);
	assert_int_equal(pool.guarantee, ACCOUNT_GUARANTEE);
	assert_int_equal(pool.shared, 0);
	account_give(&a, 4 * MIB);
	account_give(&b, 4 * MIB);
	account_close(&a);
	account_close(&b);
}

static void test_overflow(void **state)
{
	struct account_pool pool;
	struct account a;

	(void)state;
	account_pool_init(&pool, UINT64_MAX);
	account_open(&a, &pool);
	assert_true(account_take(&a, MIB));
	assert_false(account_take(&a, UINT64_MAX));
	assert_false(account_take(&a, UINT64_MAX - MIB + 1));
	assert_true(account_take(&a, 1ull << 60));
	assert_int_equal(a.used, (1ull << 60) + MIB);
	account_give(&a, a.used);
	account_close(&a);
}

static void test_alloc(void **state)
{
	struct account_pool pool;
	struct account a;
	uint8_t *memory;

	(void)state;
	account_pool_init(&pool, 4 * MIB);
	account_open(&a, &pool);
	memory = account_alloc(&a, MIB);
	assert_non_null(memory);
	assert_int_equal(memory[0] | memory[MIB - 1], 0);
	assert_int_equal(a.used, MIB);
	assert_null(account_alloc(&a, MIB + 1));
	assert_int_equal(a.used, MIB);
	account_free(&a, NULL, MIB);
	assert_int_equal(a.used, MIB);
	account_free(&a, memory, MIB);
	assert_int_equal(a.used, 0);
	account_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares), cmocka_unit_test(test_many),
		cmocka_unit_test(test_new_account), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_alloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
