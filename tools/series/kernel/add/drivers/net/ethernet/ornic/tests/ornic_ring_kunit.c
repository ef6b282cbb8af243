// SPDX-License-Identifier: GPL-2.0
/* Ring arithmetic of both ornic drivers: indices that wrap, phase bits, the wake rule, arming. */
#include <kunit/test.h>
#include <linux/module.h>

#include <linux/ornic/ring.h>

#define LOG_ENTRIES	2
#define LOG_BYTES	6	/* log2 of ORNIC_ENTRY_BYTES */

/* The device's last step when it writes an entry. */
static void ornic_test_write_phase(void *entry, bool phase)
{
	u8 *last = entry + ORNIC_ENTRY_BYTES - 1;

	*last = phase ? ORNIC_PHASE : 0;
}

/* The first pass over a zeroed ring writes phase 1, the second 0. */
static void ornic_test_phase(struct kunit *test)
{
	u8 *ring = kunit_kzalloc(test, ORNIC_ENTRY_BYTES << LOG_ENTRIES, GFP_KERNEL);
	void *entry;
	u32 index;

	KUNIT_ASSERT_NOT_NULL(test, ring);
	for (index = 0; index < 4 << LOG_ENTRIES; index++) {
		entry = ornic_ring_entry(ring, index, LOG_ENTRIES, LOG_BYTES);
		KUNIT_EXPECT_FALSE(test, ornic_entry_ready(entry, index, LOG_ENTRIES));
		ornic_test_write_phase(entry, !(index >> LOG_ENTRIES & 1));
		KUNIT_EXPECT_TRUE(test, ornic_entry_ready(entry, index, LOG_ENTRIES));
	}
}

static void ornic_test_entry_address(struct kunit *test)
{
	u8 ring[1];

	KUNIT_EXPECT_PTR_EQ(test, ornic_ring_entry(ring, 0, LOG_ENTRIES, LOG_BYTES), (void *)ring);
	KUNIT_EXPECT_PTR_EQ(test, ornic_ring_entry(ring, 5, LOG_ENTRIES, LOG_BYTES),
			    (void *)(ring + ORNIC_ENTRY_BYTES));
	KUNIT_EXPECT_PTR_EQ(test, ornic_ring_entry(ring, U32_MAX, LOG_ENTRIES, LOG_BYTES),
			    (void *)(ring + 3 * ORNIC_ENTRY_BYTES));
}

/* A doorbell is due if the device requested a notification for an index among the new ones. */
static void ornic_test_publish(struct kunit *test)
{
	static const struct {
		u32 notify;
		u32 old;
		u32 new;
		bool ring;
	} cases[] = {
		{ ORNIC_NOTIFY_ALWAYS, 0, 1, true },
		{ 0, 0, 1, true },
		{ 1, 0, 1, false },
		{ 1, 0, 2, true },
		{ 4, 5, 9, false },
		{ 5, 5, 9, true },
		{ 8, 5, 9, true },
		{ 9, 5, 9, false },
		{ ORNIC_NOTIFY_INDEX, U32_MAX, 1, true },
		{ 0, U32_MAX, 1, true },
		{ 1, U32_MAX, 1, false },
	};
	struct ornic_rec rec;
	bool ring;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ornic_rec_init(&rec);
		rec.notify = cpu_to_le32(cases[i].notify);
		ring = ornic_rec_publish(&rec, cases[i].old, cases[i].new);
		KUNIT_EXPECT_EQ_MSG(test, ring, cases[i].ring, "case %d", i);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.host_index), cases[i].new);
	}
}

/* A new record requests every doorbell (ORN-RNG-4). */
static void ornic_test_new_record(struct kunit *test)
{
	struct ornic_rec rec;

	memset(&rec, 0xff, sizeof(rec));
	ornic_rec_init(&rec);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.notify), ORNIC_NOTIFY_ALWAYS);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.host_index), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.arm), 0);
}

/* The consumer index is stored once per quarter of the ring, and with each entry of a tiny one. */
static void ornic_test_keep_up(struct kunit *test)
{
	struct ornic_rec rec;
	u32 index;

	ornic_rec_init(&rec);
	for (index = 1; index < 64; index++) {
		ornic_rec_keep_up(&rec, index, 4);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.host_index), index & ~3u);
	}
	for (index = 1; index < 8; index++) {
		ornic_rec_keep_up(&rec, index, 1);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rec.host_index), index);
	}
}

/* The serial number counts events, not arms, and wraps within its bits. */
static void ornic_test_arm_serial(struct kunit *test)
{
	struct ornic_arm arm;
	int i;

	ornic_arm_init(&arm);
	KUNIT_EXPECT_EQ(test, arm.sn, 1);
	arm.type = ORNIC_ARM_ANY;
	for (i = 0; i < ORNIC_ARM_SN_MASK; i++)
		ornic_arm_event(&arm);
	KUNIT_EXPECT_EQ(test, arm.sn, 0);
	KUNIT_EXPECT_EQ(test, arm.type, ORNIC_ARM_NONE);
}

static struct kunit_case ornic_ring_cases[] = {
	KUNIT_CASE(ornic_test_phase),
	KUNIT_CASE(ornic_test_entry_address),
	KUNIT_CASE(ornic_test_publish),
	KUNIT_CASE(ornic_test_new_record),
	KUNIT_CASE(ornic_test_keep_up),
	KUNIT_CASE(ornic_test_arm_serial),
	{}
};

static struct kunit_suite ornic_ring_suite = {
	.name = "ornic_ring",
	.test_cases = ornic_ring_cases,
};

kunit_test_suite(ornic_ring_suite);

MODULE_DESCRIPTION("KUnit tests of the ring rules of the ornic drivers");
MODULE_LICENSE("GPL");
