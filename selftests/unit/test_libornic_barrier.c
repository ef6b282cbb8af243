// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, order against the device (ORN-RNG-2, 5, 11, 17): rdma-core's barriers stand where
 * hardware needs them. The processor that runs this test may order more than required. Therefore
 * a note of the record's contents at that moment replaces each barrier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <util/udma_barrier.h>

#undef udma_to_device_barrier
#undef udma_from_device_barrier
#define udma_to_device_barrier()	note(&to_device)
#define udma_from_device_barrier()	note(&from_device)

struct barrier {
	unsigned int calls;
	uint32_t host_index, arm;	/* at the last call */
};

static struct barrier to_device, from_device;
static void note(struct barrier *b);

#include <ornic/cq.h>

#include "ring.h"

static struct ornic_rec rec;

static void note(struct barrier *b)
{
	b->calls++;
	b->host_index = le32toh(rec.host_index);
	b->arm = le32toh(rec.arm);
}

static int setup(void **state)
{
	(void)state;
	memset(&rec, 0, sizeof(rec));
	memset(&to_device, 0, sizeof(to_device));
	memset(&from_device, 0, sizeof(from_device));
	return 0;
}

/* The entries are written before the index that hands them over. */
static void test_publish(void **state)
{
	(void)state;
	rec.host_index = htole32(4);
	ornic_rec_publish(&rec, 4, 7);
	assert_int_equal(to_device.calls, 1);
	assert_int_equal(to_device.host_index, 4);
	assert_int_equal(le32toh(rec.host_index), 7);
}

/* The consumer index is written before the arm word, so that the device reads it after the arm. */
static void test_arm(void **state)
{
	(void)state;
	rec.arm = htole32(0x21000000);
	ornic_rec_arm(&rec, 0x21000001);
	assert_int_equal(to_device.calls, 1);
	assert_int_equal(to_device.arm, 0x21000000);
	assert_int_equal(le32toh(rec.arm), 0x21000001);
}

/* An entry is read before its slot is returned. */
static void test_consumed(void **state)
{
	(void)state;
	ornic_rec_consumed(&rec, 5);
	assert_int_equal(from_device.calls, 1);
	assert_int_equal(from_device.host_index, 0);
	assert_int_equal(le32toh(rec.host_index), 5);
}

/*
 * The phase is read before the rest. If the entry is not new, there is no further read and no
 * barrier.
 */
static void test_ready(void **state)
{
	const struct ornic_cqe cqe = { .phase = 1 };

	(void)state;
	assert_false(ornic_entry_ready(&cqe, 4, 2));
	assert_int_equal(from_device.calls, 0);
	assert_true(ornic_entry_ready(&cqe, 0, 2));
	assert_int_equal(from_device.calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_publish, setup),
		cmocka_unit_test_setup(test_arm, setup),
		cmocka_unit_test_setup(test_consumed, setup),
		cmocka_unit_test_setup(test_ready, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
