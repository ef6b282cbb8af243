// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers of both ornic drivers against the device (ORN-RNG-2, 5, 11, 17). The processor that runs
 * the tests may order more than required. Therefore a note of the record's contents at that moment
 * replaces each barrier.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <asm/barrier.h>

#include <linux/ornic/core.h>

struct ornic_test_barrier {
	unsigned int calls;
	u32 host_index;		/* at the last call */
	u32 arm;
};

static struct ornic_test_barrier ornic_test_write, ornic_test_read, ornic_test_both,
				 ornic_test_full;
static struct ornic_rec ornic_test_rec;
static bool ornic_test_sleeps;	/* at its full barrier the device asks for doorbells */

static void ornic_test_note(struct ornic_test_barrier *barrier)
{
	if (ornic_test_sleeps && barrier == &ornic_test_full)
		ornic_test_rec.notify = cpu_to_le32(ORNIC_NOTIFY_ALWAYS);
	barrier->calls++;
	barrier->host_index = le32_to_cpu(ornic_test_rec.host_index);
	barrier->arm = le32_to_cpu(ornic_test_rec.arm);
}

#undef dma_wmb
#undef dma_rmb
#undef dma_mb
#undef mb
#define dma_wmb()	ornic_test_note(&ornic_test_write)
#define dma_rmb()	ornic_test_note(&ornic_test_read)
#define dma_mb()	ornic_test_note(&ornic_test_both)
#define mb()		ornic_test_note(&ornic_test_full)	/* a note, no barrier */

#include <linux/ornic/ring.h>

static int ornic_barrier_init(struct kunit *test)
{
	memset(&ornic_test_write, 0, sizeof(ornic_test_write));
	memset(&ornic_test_read, 0, sizeof(ornic_test_read));
	memset(&ornic_test_both, 0, sizeof(ornic_test_both));
	memset(&ornic_test_full, 0, sizeof(ornic_test_full));
	memset(&ornic_test_rec, 0, sizeof(ornic_test_rec));
	ornic_test_sleeps = false;
	return 0;
}

/* The entries are written before the index, and the index before notify is read. */
static void ornic_test_publish(struct kunit *test)
{
	ornic_test_sleeps = true;
	ornic_test_rec.host_index = cpu_to_le32(4);
	KUNIT_EXPECT_TRUE(test, ornic_rec_publish(&ornic_test_rec, 4, 7));
	KUNIT_EXPECT_EQ(test, ornic_test_write.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_write.host_index, 4);
	KUNIT_EXPECT_EQ(test, ornic_test_full.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_full.host_index, 7);
}

/* The consumer index is written before the arm word, and that before the next entry is read. */
static void ornic_test_arm(struct kunit *test)
{
	struct ornic_arm arm;
	u32 word;

	ornic_arm_init(&arm);
	ornic_rec_arm(NULL, &ornic_test_rec, &arm, 3, ORNIC_ARM_ANY, ORNIC_DB_CQ_ARM, 0);
	word = le32_to_cpu(ornic_test_rec.arm);
	KUNIT_EXPECT_NE(test, word, 0);
	KUNIT_EXPECT_EQ(test, ornic_test_write.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_write.arm, 0);
	KUNIT_EXPECT_EQ(test, ornic_test_full.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_full.arm, word);
}

/* The same order in the record of a resized ring. */
static void ornic_test_rearm(struct kunit *test)
{
	const struct ornic_rec old = { .arm = cpu_to_le32(3) };

	ornic_rec_rearm(NULL, &ornic_test_rec, &old, 2, ORNIC_DB_CQ_ARM, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ornic_test_rec.arm), 1);
	KUNIT_EXPECT_EQ(test, ornic_test_write.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_write.arm, 0);
}

/* An entry is read before its slot is returned. */
static void ornic_test_consumed(struct kunit *test)
{
	ornic_rec_consumed(&ornic_test_rec, 5);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ornic_test_rec.host_index), 5);
	KUNIT_EXPECT_EQ(test, ornic_test_both.calls, 1);
	KUNIT_EXPECT_EQ(test, ornic_test_both.host_index, 0);
}

/* The phase is read before the rest of a new entry. */
static void ornic_test_ready(struct kunit *test)
{
	__le64 entry[ORNIC_ENTRY_BYTES / sizeof(__le64)] = {};

	entry[ARRAY_SIZE(entry) - 1] = cpu_to_le64((u64)ORNIC_PHASE << 56);
	KUNIT_EXPECT_FALSE(test, ornic_entry_ready(entry, 4, 2));
	KUNIT_EXPECT_EQ(test, ornic_test_read.calls, 0);
	KUNIT_EXPECT_TRUE(test, ornic_entry_ready(entry, 0, 2));
	KUNIT_EXPECT_EQ(test, ornic_test_read.calls, 1);
}

static struct kunit_case ornic_barrier_cases[] = {
	KUNIT_CASE(ornic_test_publish),
	KUNIT_CASE(ornic_test_arm),
	KUNIT_CASE(ornic_test_rearm),
	KUNIT_CASE(ornic_test_consumed),
	KUNIT_CASE(ornic_test_ready),
	{}
};

static struct kunit_suite ornic_barrier_suite = {
	.name = "ornic_barrier",
	.test_cases = ornic_barrier_cases,
	.init = ornic_barrier_init,
};

kunit_test_suite(ornic_barrier_suite);

MODULE_DESCRIPTION("KUnit tests of the barriers of the ornic drivers");
MODULE_LICENSE("GPL");
