// SPDX-License-Identifier: GPL-2.0
/*
 * timer.c: order, re-arming, disarming from within, room.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/failing.h"
#include "timer.h"

#define MANY	500

struct owner {
	struct timers *ts;
	struct timer t;
	uint64_t fired_at;
	unsigned int calls;
	struct owner *victim;
	uint64_t again;
};

static uint64_t now;

static void fire(void *arg)
{
	struct owner *o = arg;

	assert_false(timer_armed(&o->t));
	assert_true(o->t.expires <= now);
	o->fired_at = o->t.expires;
	o->calls++;
	if (o->victim)
		timer_disarm(o->ts, &o->victim->t);
	if (o->again)
		timer_arm(o->ts, &o->t, o->again);
}

static void owner_init(struct owner *o, struct timers *ts)
{
	*o = (struct owner){ .ts = ts, .t = { .fn = fire, .arg = o } };
	assert_int_equal(timers_reserve(ts, 1), 0);
}

static void run(struct timers *ts, uint64_t t)
{
	now = t;
	timers_run(ts, t);
}

static void test_empty(void **state)
{
	struct timers ts;

	(void)state;
	timers_init(&ts);
	assert_int_equal(timers_next(&ts, 5), -1);
	run(&ts, 100);
	timers_fini(&ts);
}

static void test_one(void **state)
{
	struct timers ts;
	struct owner o;

	(void)state;
	timers_init(&ts);
	owner_init(&o, &ts);
	timer_arm(&ts, &o.t, 10);
	assert_true(timer_armed(&o.t));
	assert_int_equal(timers_next(&ts, 4), 6);
	assert_int_equal(timers_next(&ts, 10), 0);
	assert_int_equal(timers_next(&ts, 11), 0);
	run(&ts, 9);
	assert_int_equal(o.calls, 0);
	run(&ts, 10);
	assert_int_equal(o.calls, 1);
	run(&ts, 20);
	assert_int_equal(o.calls, 1);
	timer_disarm(&ts, &o.t);
	/* the longest waits, which the caller takes as a signed number */
	timer_arm(&ts, &o.t, 7 + (uint64_t)INT64_MAX);
	assert_int_equal(timers_next(&ts, 8), INT64_MAX - 1);
	assert_int_equal(timers_next(&ts, 7), INT64_MAX);
	assert_int_equal(timers_next(&ts, 6), INT64_MAX);
	timer_arm(&ts, &o.t, UINT64_MAX);
	assert_int_equal(timers_next(&ts, 0), INT64_MAX);
	timer_disarm(&ts, &o.t);
	assert_int_equal(ts.n, 0);
	timers_unreserve(&ts, 1);
	assert_int_equal(ts.cap, 0);
	timers_fini(&ts);
}

/* The end of all timers disarms them; then they can be used again. */
static void test_end(void **state)
{
	struct owner o[3];
	struct timers ts;

	(void)state;
	timers_init(&ts);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			owner_init(&o[i], &ts);
			timer_arm(&ts, &o[i].t, 9 - i);
		}
		timers_fini(&ts);
		for (int i = 0; i < 3; i++)
			assert_false(timer_armed(&o[i].t));
		assert_int_equal(timers_next(&ts, 0), -1);
		assert_int_equal(ts.cap, 0);
		assert_null(ts.heap);
	}
}

/* No timer expires before its parent in the heap, and each knows its place. */
static void check_heap(const struct timers *ts)
{
	for (uint32_t i = 0; i < ts->n; i++) {
		assert_int_equal(ts->heap[i]->pos, i + 1);
		assert_true(!i || ts->heap[(i - 1) / 2]->expires <= ts->heap[i]->expires);
	}
}

/* Random arming, moving and disarming; then everything fires in order. */
static void test_many(void **state)
{
	static struct owner o[MANY];
	uint64_t due[MANY] = { 0 }, next = UINT64_MAX;
	struct timers ts;

	(void)state;
	srand(2);
	timers_init(&ts);
	for (int i = 0; i < MANY; i++)
		owner_init(&o[i], &ts);
	for (int i = 0; i < 20000; i++) {
		int k = rand() % MANY;

		if (rand() % 4) {
			due[k] = 1 + rand() % 1000;
			timer_arm(&ts, &o[k].t, due[k]);
		} else {
			due[k] = 0;
			timer_disarm(&ts, &o[k].t);
		}
		check_heap(&ts);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(timer_armed(&o[i].t), due[i] != 0);
		if (due[i] && due[i] < next)
			next = due[i];
	}
	assert_int_equal(timers_next(&ts, 0), next);
	for (uint64_t t = 1; t <= 1000; t++) {
		run(&ts, t);
		for (int i = 0; i < MANY; i++)
			assert_int_equal(o[i].calls, due[i] && due[i] <= t);
	}
	assert_int_equal(ts.n, 0);
	timers_unreserve(&ts, MANY);
	assert_int_equal(ts.cap, 0);
	timers_fini(&ts);
}

/* Many timers that expired at once take several calls, the earliest first. */
static void test_batches(void **state)
{
	static struct owner o[MANY];
	struct timers ts;

	(void)state;
	timers_init(&ts);
	for (int i = 0; i < MANY; i++) {
		o[i] = (struct owner) { 0 };
		owner_init(&o[i], &ts);
		timer_arm(&ts, &o[i].t, MANY - i);
	}
	for (int done = TIMERS_BATCH; done < MANY; done += TIMERS_BATCH) {
		assert_int_equal(timers_next(&ts, MANY), 0);
		run(&ts, MANY);
		assert_int_equal(ts.n, MANY - done);
		for (int i = 0; i < MANY; i++)
			assert_int_equal(o[i].calls, i >= MANY - done);
	}
	run(&ts, MANY);
	assert_int_equal(ts.n, 0);
	timers_fini(&ts);
}

static void test_disarm_from_another(void **state)
{
	struct owner a, b;
	struct timers ts;

	(void)state;
	timers_init(&ts);
	owner_init(&a, &ts);
	owner_init(&b, &ts);
	a.victim = &b;
	timer_arm(&ts, &a.t, 1);
	timer_arm(&ts, &b.t, 2);
	run(&ts, 10);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 0);
	timers_fini(&ts);
}

static void test_rearm_for_the_past_ends(void **state)
{
	struct timers ts;
	struct owner a, b;

	(void)state;
	timers_init(&ts);
	owner_init(&a, &ts);
	owner_init(&b, &ts);
	a.again = 1;
	timer_arm(&ts, &a.t, 1);
	timer_arm(&ts, &b.t, 1000);
	run(&ts, 10);
	assert_int_equal(a.calls, 2);
	assert_true(timer_armed(&a.t));
	timers_fini(&ts);
}

static void test_room_survives_growth(void **state)
{
	static struct owner o[MANY];
	struct timers ts;

	(void)state;
	timers_init(&ts);
	for (int i = 0; i < MANY; i++) {
		owner_init(&o[i], &ts);
		timer_arm(&ts, &o[i].t, MANY - i);
	}
	while (ts.n)
		run(&ts, MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(o[i].fired_at, MANY - i);
	timers_fini(&ts);
}

static void test_no_memory(void **state)
{
	struct timers ts;
	struct owner o;

	(void)state;
	timers_init(&ts);
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	assert_int_equal(timers_reserve(&ts, 1), -ENOMEM);
	assert_true(failing_end());
	assert_int_equal(ts.cap, 0);
	assert_int_equal(ts.room, 0);
	owner_init(&o, &ts);
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	assert_int_equal(timers_reserve(&ts, ts.room), -ENOMEM);
	assert_true(failing_end());
	assert_int_equal(ts.cap, 1);
	timer_arm(&ts, &o.t, 1);
	run(&ts, 1);
	assert_int_equal(o.calls, 1);
	timers_fini(&ts);
}

static void test_unreasonable_reserve_fails(void **state)
{
	struct timers ts;

	(void)state;
	timers_init(&ts);
	assert_int_equal(timers_reserve(&ts, UINT32_MAX), -ENOMEM);
	assert_int_equal(timers_reserve(&ts, (1u << 31) + 1), -ENOMEM);
	assert_int_equal(ts.cap, 0);
	assert_null(ts.heap);
	assert_int_equal(timers_reserve(&ts, 1), 0);
	timers_fini(&ts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_disarm_from_another),
		cmocka_unit_test(test_rearm_for_the_past_ends),
		cmocka_unit_test(test_room_survives_growth),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_unreasonable_reserve_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
