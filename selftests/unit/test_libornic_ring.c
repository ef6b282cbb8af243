// SPDX-License-Identifier: GPL-2.0
/* Provider, host side of a ring and the queue pair table (ORN-RNG-1, 2, 4, 5, 9, 11). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test_libornic_kernel.h"

static void test_rec_init(void **state)
{
	struct ornic_rec rec;

	(void)state;
	memset(&rec, 0xaa, sizeof(rec));
	ornic_rec_init(&rec);
	assert_int_equal(le32toh(rec.notify), ORNIC_NOTIFY_ALWAYS);
	rec.notify = 0;
	for (size_t i = 0; i < sizeof(rec); i++)
		assert_int_equal(((uint8_t *)&rec)[i], 0);
}

static bool rings(uint32_t notify, uint32_t old, uint32_t new)
{
	struct ornic_rec rec = { .notify = htole32(notify) };
	bool ring = ornic_rec_publish(&rec, old, new);

	assert_int_equal(le32toh(rec.host_index), new);
	return ring;
}

static void test_crossing(void **state)
{
	(void)state;
	/* the worked example of the specification */
	assert_true(rings(0x1ff, 0x1ff, 0x200));
	assert_false(rings(0x1ff, 0x200, 0x201));
	/* ALWAYS, for any index; and the device that polls everything (N = C - 1) */
	assert_true(rings(ORNIC_NOTIFY_ALWAYS, 0x200, 0x201));
	assert_false(rings(0x1fe, 0x1ff, 0x200));
	/* first, last and beyond the last of a batch */
	assert_true(rings(10, 10, 14));
	assert_true(rings(13, 10, 14));
	assert_false(rings(14, 10, 14));
	assert_false(rings(9, 10, 14));
}

static void test_crossing_wraps(void **state)
{
	(void)state;
	/* 31 bits: the notify word loses the index's top bit */
	assert_true(rings(0x7fffffff, 0x7fffffff, 0x80000000));
	assert_true(rings(0, 0x80000000, 0x80000001));
	assert_true(rings(0, 0x7ffffffe, 0x80000002));
	assert_false(rings(0x7ffffffd, 0x7ffffffe, 0x80000002));
	/* 32 bits */
	assert_true(rings(0x7fffffff, 0xffffffff, 0));
	assert_true(rings(1, 0xfffffffe, 2));
	assert_false(rings(2, 0xfffffffe, 2));
}

static void test_phase(void **state)
{
	struct ornic_cqe cqe = { .phase = 1 };

	(void)state;
	assert_true(ornic_entry_ready(&cqe, 0, 2));
	assert_true(ornic_entry_ready(&cqe, 3, 2));
	assert_false(ornic_entry_ready(&cqe, 4, 2));
	cqe.phase = 0;
	assert_true(ornic_entry_ready(&cqe, 4, 2));
	assert_false(ornic_entry_ready(&cqe, 8, 2));
	/* the specification's: index 0xc05 of 1024 entries; the index wraps with the lap */
	assert_true(ornic_entry_ready(&cqe, 0xc05, 10));
	assert_true(ornic_entry_ready(&cqe, 0xffffffff, 10));
	/* a ring of one entry changes phase each time; other bits of the byte do not count */
	cqe.phase = 0xff;
	assert_true(ornic_entry_ready(&cqe, 0, 0));
	assert_false(ornic_entry_ready(&cqe, 1, 0));
}

static void test_arm(void **state)
{
	struct ornic_arm arm;
	struct ornic_rec rec;

	(void)state;
	ornic_arm_init(&arm);
	assert_int_equal(ornic_arm_word(&arm, 0xab123456, ORNIC_ARM_SOLICITED), 0x11123456);
	ornic_arm_event(&arm);
	ornic_arm_event(&arm);
	assert_int_equal(ornic_arm_word(&arm, 0xc05, ORNIC_ARM_ANY), 0x23000c05);
	assert_int_equal(ornic_arm_word(&arm, 0xc06, ORNIC_ARM_SOLICITED), 0x23000c06);
	ornic_rec_init(&rec);
	assert_true(ornic_rec_arm(&rec, 0x23000c05));
	assert_int_equal(le32toh(rec.arm), 0x23000c05);
	rec.notify = 0;
	assert_false(ornic_rec_arm(&rec, 0x24000c05));
	assert_int_equal(le32toh(rec.arm), 0x24000c05);
}

/* Only the leaves are freed, for any values of the words behind them. */
static void test_qp_table_end(void **state)
{
	struct ornic_qp_table *table = calloc(2, sizeof(*table));

	(void)state;
	assert_non_null(table);
	assert_int_equal(ornic_qp_table_insert(table, ORNIC_MAX_NUMBER, (void *)table, table), 0);
	memset(table + 1, 0x5a, sizeof(*table));
	ornic_qp_table_free(table);
	free(table);
}

static void test_qp_table(void **state)
{
	struct ornic_qp_table *table = calloc(1, sizeof(*table));
	struct ornic_cq *cq = (void *)table, *other = (void *)&table->leaf[1];
	struct ornic_qp *a = (void *)table, *b = a + 1;

	(void)state;
	assert_null(ornic_qp_table_find(table, 5, cq));
	assert_int_equal(ornic_qp_table_insert(table, 0, cq, a), EINVAL);
	assert_int_equal(ornic_qp_table_insert(table, ORNIC_CQE_DROPPED, cq, a), EINVAL);
	assert_int_equal(ornic_qp_table_insert(table, 5, cq, a), 0);
	assert_int_equal(ornic_qp_table_insert(table, ORNIC_MAX_NUMBER, cq, b), 0);
	assert_ptr_equal(ornic_qp_table_find(table, 5, cq), a);
	assert_ptr_equal(ornic_qp_table_find(table, 0xff000005, cq), a);
	assert_ptr_equal(ornic_qp_table_find(table, ORNIC_MAX_NUMBER, cq), b);
	assert_null(ornic_qp_table_find(table, 5, other));
	assert_null(ornic_qp_table_find(table, 6, cq));
	assert_null(ornic_qp_table_find(table, 5 + ORNIC_QP_LEAF_SIZE, cq));
	assert_null(ornic_qp_table_find(table, ORNIC_CQE_DROPPED, cq));
	ornic_qp_table_remove(table, 5);
	assert_null(ornic_qp_table_find(table, 5, cq));
	assert_int_equal(ornic_qp_table_insert(table, 5, other, b), 0);
	assert_null(ornic_qp_table_find(table, 5, cq));
	assert_ptr_equal(ornic_qp_table_find(table, 5, other), b);
	ornic_qp_table_free(table);
	free(table);
}

/* A lookup reads one cache line, for any address that calloc() returns. */
static void test_qp_slot_size(void **state)
{
	(void)state;
	assert_int_equal(64 % sizeof(struct ornic_qp_slot), 0);
	assert_true(sizeof(struct ornic_qp_slot) <= _Alignof(max_align_t));
}

/* A walk finds the objects of one CQ, in order of their numbers, to the last number. */
static void test_qp_table_walk(void **state)
{
	struct ornic_qp_table *table = calloc(1, sizeof(*table));
	struct ornic_cq *cq = (void *)table, *other = (void *)&table->leaf[1];
	const uint32_t numbers[] = { 1, ORNIC_QP_LEAF_SIZE, 3 * ORNIC_QP_LEAF_SIZE - 1,
				     ORNIC_MAX_NUMBER };
	uint32_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_int_equal(ornic_qp_table_insert(table, numbers[i], cq, table + i), 0);
	assert_int_equal(ornic_qp_table_insert(table, 2, other, cq), 0);
	assert_int_equal(ornic_qp_table_insert(table, 3 * ORNIC_QP_LEAF_SIZE, other, cq), 0);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++, n++) {
		assert_ptr_equal(ornic_qp_table_next(table, &n, cq), table + i);
		assert_int_equal(n, numbers[i]);
	}
	assert_null(ornic_qp_table_next(table, &n, cq));
	ornic_qp_table_free(table);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rec_init),
		cmocka_unit_test(test_crossing),
		cmocka_unit_test(test_crossing_wraps),
		cmocka_unit_test(test_phase),
		cmocka_unit_test(test_arm),
		cmocka_unit_test(test_qp_table),
		cmocka_unit_test(test_qp_table_end),
		cmocka_unit_test(test_qp_table_walk),
		cmocka_unit_test(test_qp_slot_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
