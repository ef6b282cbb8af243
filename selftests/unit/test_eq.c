// SPDX-License-Identifier: GPL-2.0
/* engine/eq.c: events, interrupts, and a host that does not read events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "lib/nic.h"

#define LOG		4
#define ENTRIES		(1u << LOG)

struct fixture {
	struct engine e;
	struct nic n;
	struct nic_eq *eq;
};

static const uint8_t mac[6] = { 2 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(engine_init(&f->e, 0), 0);
	nic_init(&f->n, &f->e, mac);
	f->eq = nic_eq_new(&f->n, LOG, 1);
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

static void raise_event(struct fixture *f, uint32_t number)
{
	device_event(&f->n.dev, ORNIC_EV_QP_FATAL, number, 5, 6, 7, 8);
}

static uint32_t notify(struct fixture *f)
{
	return le32toh(nic_rec(&f->n, &f->eq->host)->notify);
}

static struct ornic_eqe *next(struct fixture *f)
{
	return nic_next(&f->n, &f->eq->host);
}

/* Consume all, publish, arm, as a driver's interrupt handler does. */
static uint32_t consume(struct fixture *f, uint8_t sn)
{
	uint32_t n = 0;

	while (next(f))
		n++;
	nic_consumed(&f->n, &f->eq->host);
	nic_arm(&f->n, &f->eq->host, sn, ORNIC_ARM_ANY);
	return n;
}

/* Compare the next event with one of raise_event(), whose number and info0 are given. */
static void expect_event(struct fixture *f, uint8_t type, uint32_t number, uint32_t info0,
			 uint32_t lost)
{
	const struct ornic_eqe *e = next(f);
	struct ornic_eqe want = {
		.type = type, .number = htole32(number), .owner = htole32(5),
		.syndrome = htole32(6), .info0 = htole32(info0), .info1 = htole32(8),
		.lost = htole32(lost),
	};

	assert_non_null(e);
	want.timestamp = e->timestamp;
	want.phase = e->phase;
	assert_memory_equal(e, &want, sizeof(want));
}

/* ORN-EQ-15 */
static void test_entry(void **state)
{
	struct fixture *f = *state;
	const struct ornic_eqe *e = guest_at(&f->n.guest, f->eq->host.ring, sizeof(*e));
	uint64_t before = engine_clock();

	assert_int_equal(notify(f), 0);
	raise_event(f, 4);
	assert_in_range(le64toh(e->timestamp), before, engine_clock());
	expect_event(f, ORNIC_EV_QP_FATAL, 4, 7, 0);
	assert_null(next(f));
	assert_int_equal(f->n.dev.cnt[CNT_eq_held], 0);
}

static void test_no_eq(void **state)
{
	struct fixture *f = *state;
	uint32_t number;

	table_del(&f->n.dev.eqs, 0);
	raise_event(f, 1);
	assert_null(next(f));
	assert_int_equal(table_add(&f->n.dev.eqs, f->eq, &number), 0);
}

static void test_unarmed_is_silent(void **state)
{
	struct fixture *f = *state;

	raise_event(f, 1);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 0);
}

/* ORN-EQ-2, ORN-RNG-28 */
static void test_fires_once_per_arm(void **state)
{
	struct fixture *f = *state;

	consume(f, 1);
	raise_event(f, 1);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
	raise_event(f, 2);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
	assert_int_equal(consume(f, 2), 2);
	raise_event(f, 3);
	raise_event(f, 4);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 2);
	assert_int_equal(f->n.irqs[0], 0);
}

static void test_many_laps(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i < 20 * ENTRIES; i++) {
		consume(f, i);
		for (uint32_t k = 0; k <= i % ENTRIES; k++)
			raise_event(f, i);
		nic_turns(&f->e);
		assert_int_equal(f->n.irqs[1], i);
		assert_int_equal(consume(f, i + 1), i % ENTRIES + 1);
	}
	assert_int_equal(f->n.fatals, 0);
}

/*
 * Events of more objects than there is room for wait, and arrive in order (ORN-EQ-1, ORN-EQ-11).
 * The arm word that counts is the one found when no event waits any more (ORN-RNG-22).
 */
static void test_full_queues_async(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES + 5; i++)
		raise_event(f, i);
	assert_int_equal(f->n.dev.cnt[CNT_eq_held], 5);
	nic_turns(&f->e);
	assert_true(eq_holding(&f->eq->eq));
	assert_int_equal(f->n.dev.cnt[CNT_eq_held], 5);
	assert_int_equal(notify(f), ORNIC_NOTIFY_ALWAYS);
	assert_int_equal(consume(f, 1), ENTRIES);
	eq_doorbell(&f->eq->eq);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
	assert_int_equal(notify(f), 0);
	for (uint32_t i = 0; i < 5; i++)
		expect_event(f, ORNIC_EV_QP_FATAL, ENTRIES + i, 7, 0);
	assert_null(next(f));
	assert_int_equal(f->n.fatals, 0);
}

/* An event that is held long after the EQ became full makes the host ring, too. */
static void test_full_for_long(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		raise_event(f, i);
	nic_turns(&f->e);
	assert_int_equal(notify(f), 0);
	raise_event(f, ENTRIES);
	nic_turns(&f->e);
	assert_int_equal(notify(f), ORNIC_NOTIFY_ALWAYS);
	assert_int_equal(consume(f, 1), ENTRIES);
	eq_doorbell(&f->eq->eq);
	nic_turns(&f->e);
	expect_event(f, ORNIC_EV_QP_FATAL, ENTRIES, 7, 0);
}

/* The host consumed before it could see ALWAYS: nothing rings, nothing is lost (ORN-RNG-21). */
static void test_consumed_before_always(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES + 1; i++)
		raise_event(f, i);
	consume(f, 1);
	nic_turns(&f->e);
	assert_false(eq_holding(&f->eq->eq));
	assert_int_equal(notify(f), 0);
	assert_int_equal(f->n.irqs[1], 1);
	assert_int_equal(consume(f, 2), 1);
}

/* While events wait, an arm counts for entries that were written long before it (ORN-RNG-31). */
static void test_arm_while_holding(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES + 2; i++)
		raise_event(f, i);
	nic_turns(&f->e);
	assert_int_equal(notify(f), ORNIC_NOTIFY_ALWAYS);
	assert_int_equal(f->n.irqs[1], 0);
	nic_arm(&f->n, &f->eq->host, 1, ORNIC_ARM_ANY);
	eq_doorbell(&f->eq->eq);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
	assert_int_equal(notify(f), ORNIC_NOTIFY_ALWAYS);
}

/* An event takes the place of an older one of its type and object, behind all that are held. */
static void test_async_once_per_object_and_type(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->n.dev;

	for (uint32_t i = 0; i < ENTRIES; i++)
		raise_event(f, i);
	for (int i = 0; i < 1000; i++) {
		device_event(dev, ORNIC_EV_PORT_ACTIVE, 1, 5, 6, i, 8);
		device_event(dev, ORNIC_EV_PORT_ERR, 1, 5, 6, i, 8);
	}
	assert_int_equal(dev->cnt[CNT_eq_held], 2000);
	device_event(dev, ORNIC_EV_PORT_ACTIVE, 1, 5, 6, 1000, 8);
	device_event(dev, ORNIC_EV_PORT_ACTIVE, 2, 5, 6, 1001, 8);
	nic_turns(&f->e);
	assert_int_equal(f->eq->eq.nasync, 3);
	consume(f, 1);
	eq_doorbell(&f->eq->eq);
	nic_turns(&f->e);
	expect_event(f, ORNIC_EV_PORT_ERR, 1, 999, 0);
	expect_event(f, ORNIC_EV_PORT_ACTIVE, 1, 1000, 0);
	expect_event(f, ORNIC_EV_PORT_ACTIVE, 2, 1001, 0);
	assert_null(next(f));
	assert_int_equal(f->eq->eq.nasync, 0);
}

/* ORN-EQ-12: 1024 events wait, and those beyond are counted. Events that left are not. */
static void test_lost_is_counted(void **state)
{
	struct fixture *f = *state;
	uint8_t sn = 1;

	for (uint32_t round = 0; round < 3; round++) {
		const uint32_t total = ENTRIES + 1024 + round;
		uint32_t lost = 0, seen = 0;
		struct ornic_eqe *e;

		for (uint32_t i = 0; i < total; i++)
			raise_event(f, i);
		nic_turns(&f->e);
		for (; seen + lost < total; sn++) {
			while ((e = next(f))) {
				lost += le32toh(e->lost);
				seen++;
			}
			consume(f, sn);
			eq_doorbell(&f->eq->eq);
			nic_turns(&f->e);
		}
		assert_int_equal(lost, round);
		assert_int_equal(lost + seen, total);
		assert_int_equal(f->eq->eq.nasync, 0);
	}
	assert_int_equal(f->n.fatals, 0);
}

static void test_impossible_index_is_fatal(void **state)
{
	struct fixture *f = *state;

	nic_rec(&f->n, &f->eq->host)->host_index = htole32(ENTRIES + 1);
	for (uint32_t i = 0; i < 3 * ENTRIES; i++)
		raise_event(f, i);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->n.fatal, ORNIC_SYN_EQ_MEMORY);
	f->n.dev.running = true;
	nic_turns(&f->e);
	assert_int_equal(f->n.fatals, 1);
}

/* The same after a lap: an index behind the last entry */
static void test_index_ahead_is_fatal(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 2 * ENTRIES; i++) {
		if (i == ENTRIES)
			consume(f, 1);
		raise_event(f, i);
	}
	nic_rec(&f->n, &f->eq->host)->host_index = htole32(2 * ENTRIES + 1);
	raise_event(f, 0);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->eq->eq.cons, ENTRIES);
}

static void test_index_going_back_is_fatal(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		raise_event(f, i);
	consume(f, 1);
	for (uint32_t i = 0; i < ENTRIES; i++)
		raise_event(f, i);
	assert_int_equal(f->n.fatals, 0);
	nic_rec(&f->n, &f->eq->host)->host_index = 0;
	raise_event(f, 0);
	assert_int_equal(f->n.fatals, 1);
}

static void test_unreachable_is_fatal(void **state)
{
	struct fixture *f = *state;

	guest_hide(&f->n.guest, f->eq->host.ring);
	raise_event(f, 1);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->n.fatal, ORNIC_SYN_EQ_MEMORY);
	assert_int_equal(f->eq->eq.prod, 0);
	/* Events wait from now on, and the error is reported once. */
	f->n.dev.running = true;
	raise_event(f, 2);
	nic_turns(&f->e);
	assert_int_equal(f->eq->eq.nasync, 1);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(notify(f), 0);
}

static void test_read_only_is_fatal(void **state)
{
	struct fixture *f = *state;
	struct guest *g = &f->n.guest;
	uint64_t page = f->eq->host.ring & ~(GUEST_PAGE - 1);

	guest_hide(g, page);
	assert_int_equal(gpa_map(g->gpa, page, GUEST_PAGE, GPA_READ, g->fd, page - GUEST_BASE), 0);
	raise_event(f, 1);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->eq->eq.prod, 0);
}

static void test_unreachable_record_is_fatal(void **state)
{
	struct fixture *f = *state;

	raise_event(f, 1);
	guest_hide(&f->n.guest, f->eq->host.rec);
	nic_turns(&f->e);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->n.irqs[1], 0);
}

/* The record is read, too, to find out whether a full ring has room again. */
static void test_unreachable_record_of_full_ring_is_fatal(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ENTRIES; i++)
		raise_event(f, i);
	guest_hide(&f->n.guest, f->eq->host.rec);
	raise_event(f, ENTRIES);
	assert_int_equal(f->n.fatals, 1);
	assert_int_equal(f->n.fatal, ORNIC_SYN_EQ_MEMORY);
}

/* ORN-PCI-4 */
static void test_no_dma_while_stopped(void **state)
{
	struct fixture *f = *state;

	consume(f, 1);
	f->n.dev.running = false;
	raise_event(f, 1);
	nic_turns(&f->e);
	assert_null(next(f));
	assert_int_equal(f->n.irqs[1], 0);
	f->n.dev.running = true;
	eq_doorbell(&f->eq->eq);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
	assert_non_null(next(f));
}

/* ORN-RNG-14, ORN-RNG-36; the device writes to the record, so its memory must permit that */
static void test_init_refuses(void **state)
{
	struct fixture *f = *state;
	struct guest *g = &f->n.guest;
	uint64_t page = f->eq->host.rec & ~(GUEST_PAGE - 1);
	struct eq eq = f->eq->eq;

	eq.rec = f->eq->host.rec + 32;
	assert_int_equal(eq_init(&eq), ORNIC_ST_BAD_PARAM);
	eq.rec = 0x1000;
	assert_int_equal(eq_init(&eq), ORNIC_ST_DMA_ERROR);
	eq.rec = f->eq->host.rec;
	eq.mem.offset = 32;
	assert_int_equal(eq_init(&eq), ORNIC_ST_BAD_PARAM);
	eq.mem.offset = 64;
	assert_int_equal(eq_init(&eq), ORNIC_ST_OK);
	guest_hide(g, page);
	assert_int_equal(gpa_map(g->gpa, page, GUEST_PAGE, GPA_READ, g->fd, page - GUEST_BASE), 0);
	assert_int_equal(eq_init(&eq), ORNIC_ST_DMA_ERROR);
}

/*
 * An EQ remembers the word, not its serial number (ORN-RNG-27). It accepts the arm of a host that
 * counted an interrupt twice, or not at all, and ignores a repeated word.
 */
static void test_whole_arm_word_counts(void **state)
{
	struct fixture *f = *state;

	consume(f, 1);
	for (uint32_t i = 1; i <= 20; i++) {
		raise_event(f, i);
		nic_turns(&f->e);
		assert_int_equal(f->n.irqs[1], i);
		raise_event(f, i + 100);
		nic_turns(&f->e);
		assert_int_equal(f->n.irqs[1], i);
		consume(f, i & 1 ? 1 : 0);
	}
}

/* Malformed arm words have no effect (ORN-RNG-35). */
static void test_arm_garbage(void **state)
{
	static const uint32_t word[] = {
		0x40000000u | 2u << 28 | 1u << 24, 0x80000000u | 2u << 28 | 1u << 24,
		3u << 28 | 1u << 24, 1u << 28 | 1u << 24, 1u << 24, 0,
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		nic_rec(&f->n, &f->eq->host)->arm = htole32(word[i]);
		raise_event(f, i);
		nic_turns(&f->e);
	}
	assert_int_equal(f->n.irqs[1], 0);
}

/* An arm for a later index fires for any entry written after the device saw the word. */
static void test_arm_far_ahead(void **state)
{
	struct fixture *f = *state;

	nic_rec(&f->n, &f->eq->host)->arm = htole32(1000 | 1u << 24 | 2u << 28);
	raise_event(f, 1);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 0);
	raise_event(f, 2);
	nic_turns(&f->e);
	assert_int_equal(f->n.irqs[1], 1);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entry),
		TEST(test_no_eq),
		TEST(test_unarmed_is_silent),
		TEST(test_fires_once_per_arm),
		TEST(test_many_laps),
		TEST(test_full_queues_async), TEST(test_full_for_long),
		TEST(test_consumed_before_always),
		TEST(test_arm_while_holding),
		TEST(test_async_once_per_object_and_type),
		TEST(test_lost_is_counted),
		TEST(test_impossible_index_is_fatal),
		TEST(test_index_ahead_is_fatal), TEST(test_index_going_back_is_fatal),
		TEST(test_unreachable_is_fatal), TEST(test_read_only_is_fatal),
		TEST(test_unreachable_record_is_fatal),
		TEST(test_unreachable_record_of_full_ring_is_fatal),
		TEST(test_no_dma_while_stopped),
		TEST(test_init_refuses),
		TEST(test_whole_arm_word_counts),
		TEST(test_arm_garbage),
		TEST(test_arm_far_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
