// SPDX-License-Identifier: GPL-2.0
/*
 * engine/psn.h: 24-bit PSNs and the requester's 32-bit sequence numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/psn.h"

static void test_add(void **state)
{
	(void)state;
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_add(0xfffff0, 0x20), 0x10);
	assert_int_equal(psn_add(0, -1), 0xffffff);
	assert_int_equal(psn_add(5, 1 << 24), 5);
}

static void test_diff(void **state)
{
	(void)state;
	assert_int_equal(psn_diff(0, 0xffffff), 1);
	assert_int_equal(psn_diff(0xffffff, 0), -1);
	assert_int_equal(psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(psn_diff(0x10, 0xfffff0), 0x20);
	assert_int_equal(psn_diff(7, 7), 0);
}

static void test_seq(void **state)
{
	(void)state;
	assert_int_equal(seq_of(0x000001, 0x01ffffff), 0x02000001);
	assert_int_equal(seq_of(0xffffff, 0x02000000), 0x01ffffff);
	assert_int_equal(seq_of(0xffffff, 0), 0xffffffff);
	assert_int_equal(seq_of(0, 0xffffffff), 0);
	assert_int_equal(seq_of(0x7fffff, 0xff000000), 0xff7fffff);
	assert_int_equal(seq_diff(1, 0xffffffff), 2);
	assert_int_equal(seq_diff(0xffffffff, 1), -2);
}

static void test_count(void **state)
{
	(void)state;
	assert_int_equal(psn_count(0, 256), 1);
	assert_int_equal(psn_count(1, 256), 1);
	assert_int_equal(psn_count(256, 256), 1);
	assert_int_equal(psn_count(257, 256), 2);
	assert_int_equal(psn_count(0x80000000, 256), 1 << 23);
	assert_int_equal(psn_count(0xffffffff, 4096), 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_seq),
		cmocka_unit_test(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
