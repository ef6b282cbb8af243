// SPDX-License-Identifier: GPL-2.0
/* Provider, clocks: the raw clock, and time stamps as times of day (ORN-CLK-5). */
#include <errno.h>

#include "test_libornic_kernel.h"

#define SECOND	2500000ull		/* ticks of CLOCKS */

static int setup(void **state)
{
	static struct rig rig;

	rig_open(&rig, 8);
	kernel.clocks = CLOCKS;
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	return 0;
}

static struct ibv_cq_ex *make_cq(struct rig *rig, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = wc_flags };

	return ornic_create_cq_ex(&rig->ctx->ibv_ctx.context, &attr);
}

static uint64_t wall(struct ibv_cq_ex *ex, uint64_t stamp)
{
	to_ocq_ex(ex)->cur.timestamp = htole64(stamp);
	return ibv_wc_read_completion_wallclock_ns(ex);
}

static void test_rt_values(void **state)
{
	struct rig *rig = *state;
	struct ibv_context *ctx = &rig->ctx->ibv_ctx.context;
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(ctx, &v), 0);
	assert_int_equal(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(v.raw_clock.tv_sec, 0);
	assert_int_equal(v.raw_clock.tv_nsec, 1000000);
	v.comp_mask = 2;
	assert_int_equal(ibv_query_rt_values_ex(ctx, &v), EINVAL);
	v.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	kernel.fail = EIO;
	assert_int_equal(ibv_query_rt_values_ex(ctx, &v), EIO);
	kernel.clocks.clock_khz = 0;
	assert_int_equal(ibv_query_rt_values_ex(ctx, &v), EOPNOTSUPP);
}

/* Without a clock there are no time stamps; a plain CQ never reads the clock. */
static void test_create(void **state)
{
	struct rig *rig = *state;
	uint32_t asked = kernel.queries;
	struct ibv_cq_ex *ex = make_cq(rig, IBV_WC_STANDARD_FLAGS);

	assert_non_null(ex);
	assert_int_equal(kernel.queries, asked);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
	kernel.clocks.clock_mask = 0;
	assert_null(make_cq(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
	assert_int_equal(errno, EOPNOTSUPP);
	kernel.clocks = CLOCKS;
	kernel.clocks.clock_khz = 0;
	assert_null(make_cq(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_cq(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(kernel.cqn, 2);	/* the rig's and the first of these */
}

static void test_wall(void **state)
{
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	uint32_t asked = kernel.queries;

	assert_non_null(ex);
	assert_int_equal(wall(ex, 1000000), 50000000000);
	assert_int_equal(wall(ex, 1000005), 50000002000);
	assert_int_equal(wall(ex, 1000001), 50000000400);
	assert_int_equal(wall(ex, 1000000 + SECOND), 51000000000);
	assert_int_equal(wall(ex, 0), 49600000000);
	assert_int_equal(kernel.queries, asked);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* Let @ns pass: for the host, the device clock and the system time. */
static void elapse(uint64_t ns)
{
	kernel.monotonic_ns += ns;
	kernel.clocks.system_ns += ns;
	kernel.clocks.clock += ns / 400;
	kernel.clocks.clock &= kernel.clocks.clock_mask;
}

/* ORN-CLK-5: within a poll that lasts long, the provider reads the clocks after 1.5 seconds. */
static void test_wall_is_read_again(void **state)
{
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	uint32_t asked = kernel.queries;

	assert_non_null(ex);
	elapse(1000000000);
	kernel.clocks.system_ns += 100000;
	assert_int_equal(wall(ex, 1000000 + SECOND), 51000000000);
	assert_int_equal(kernel.queries, asked);
	elapse(1000000000);
	assert_int_equal(wall(ex, 1000000 + 2 * SECOND - 5), 52000098000);
	assert_int_equal(wall(ex, 1000000 + 2 * SECOND), 52000100000);
	assert_int_equal(kernel.queries, asked + 1);
	elapse(1500000000);
	wall(ex, 1000000);
	assert_int_equal(kernel.queries, asked + 1);
	elapse(500000000);
	assert_int_equal(wall(ex, 1000000 + 4 * SECOND), 54000100000);
	assert_int_equal(kernel.queries, asked + 2);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* A failed reading is not repeated for each completion. */
static void test_wall_of_the_dead(void **state)
{
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	uint32_t asked = kernel.queries;

	assert_non_null(ex);
	elapse(3000000000);
	kernel.fail = EIO;
	assert_int_equal(wall(ex, 1000000 + 3 * SECOND), 53000000000);
	assert_int_equal(wall(ex, 1000000 + 3 * SECOND + 5), 53000002000);
	assert_int_equal(kernel.queries, asked + 1);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* The clock is counted on to the tick. */
static void test_wall_of_the_dead_is_exact(void **state)
{
	static const uint64_t ns[] = { 3000999600, 3000999999, 2000000400, 1999999999 };
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);

	assert_non_null(ex);
	for (size_t i = 0; i < ARRAY_SIZE(ns); i++) {
		elapse(ns[i]);
		kernel.fail = EIO;
		assert_int_equal(wall(ex, kernel.clocks.clock), kernel.clocks.system_ns);
		assert_int_equal(kernel.fail, 0);
	}
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

#define SHORT_MASK	0xfffffull
#define SHORT_WRAP_NS	((SHORT_MASK + 1) * 400)
#define SHORT_LIMIT_NS	(SHORT_MASK / 4 * 400)

/* A clock that wraps more than twice a second */
static struct ibv_cq_ex *make_short(struct rig *rig)
{
	struct ibv_cq_ex *ex;

	kernel.clocks.clock_mask = SHORT_MASK;
	kernel.clocks.clock &= SHORT_MASK;
	ex = make_cq(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	assert_non_null(ex);
	return ex;
}

/* After a pause of any length the time is right, although the clock has wrapped unnoticed. */
static void test_wall_after_a_pause(void **state)
{
	static const unsigned int percent[] = { 30, 51, 70, 99, 101, 130, 160, 720 };
	struct ibv_cq_ex *ex = make_short(*state);

	for (size_t i = 0; i < ARRAY_SIZE(percent); i++) {
		elapse((SHORT_MASK + 1) / 100 * percent[i] * 400);
		assert_int_equal(wall(ex, kernel.clocks.clock), kernel.clocks.system_ns);
		assert_int_equal(wall(ex, (kernel.clocks.clock - 5) & SHORT_MASK),
				 kernel.clocks.system_ns - 2000);
	}
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* A short clock is read again before it has run half of its wrap, not for each completion. */
static void test_wall_of_short_clock(void **state)
{
	struct ibv_cq_ex *ex = make_short(*state);
	uint32_t asked = kernel.queries;

	elapse(SHORT_LIMIT_NS / 2 * 3);
	wall(ex, 0);
	assert_int_equal(kernel.queries, asked);
	elapse(400);
	wall(ex, 0);
	wall(ex, 0);
	assert_int_equal(kernel.queries, asked + 1);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* Without readings the clock is counted on, through its wraps. */
static void test_wall_of_the_dead_wraps(void **state)
{
	struct ibv_cq_ex *ex = make_short(*state);

	for (int i = 0; i < 3; i++) {
		elapse(SHORT_WRAP_NS / 10 * 37);
		kernel.fail = EIO;
		assert_int_equal(wall(ex, kernel.clocks.clock), kernel.clocks.system_ns);
		assert_int_equal(kernel.fail, 0);
	}
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

static void test_wall_wraps(void **state)
{
	struct ibv_cq_ex *ex;

	kernel.clocks.clock_mask = 0xffffff;
	kernel.clocks.clock = 0xfffffe;
	ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	assert_non_null(ex);
	assert_int_equal(wall(ex, 3), 50000002000);
	assert_int_equal(wall(ex, 0xfffff9), 49999998000);
	/* the shorter of both distances, the past if they are equal */
	assert_int_equal(wall(ex, 0x7ffffd), 50000000000 + 0x7fffffll * 400);
	assert_int_equal(wall(ex, 0x7ffffe), 50000000000 - 0x800000ll * 400);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* A CQ with wall-clock times instead of the rig's, with a queue pair that has posted 4 sends. */
struct stamped {
	struct ibv_cq_ex *ex;
	struct ornic_cq *first_cq;
	uint32_t done;
};

static struct stamped stamped_open(struct rig *rig)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct stamped s = { .first_cq = rig->cq };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	s.ex = make_cq(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	assert_non_null(s.ex);
	rig->cq = to_ocq_ex(s.ex);
	rig_qp(rig, IBV_QPT_RC, cap, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ornic_post_send(&rig->qp->vqp.qp, &wr, &bad), 0);
	return s;
}

static void stamped_close(struct rig *rig, const struct stamped *s)
{
	assert_int_equal(ornic_destroy_qp(&rig->qp->vqp.qp), 0);
	rig->qp = NULL;
	rig->cq = s->first_cq;
	assert_int_equal(ornic_destroy_cq(ibv_cq_ex_to_cq(s->ex)), 0);
}

/* The device completes a send at this moment. */
static void stamped_complete(struct rig *rig, struct stamped *s)
{
	struct ornic_cqe cqe = cqe_of(rig->qp->qpn, s->done++, ORNIC_WC_SEND, 0);

	cqe.timestamp = htole64(kernel.clocks.clock);
	rig_complete(rig, cqe);
}

/* Poll one completion, whose time must be that of the system clock. */
static void expect_now(struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr attr = {};

	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(ibv_wc_read_completion_wallclock_ns(ex), kernel.clocks.system_ns);
	ibv_end_poll(ex);
}

static void holds_no_lock(void)
{
	assert_int_equal(locks.held, 0);
}

/* The command sleeps: no thread spins meanwhile. Polling an empty CQ enters no kernel. */
static void test_poll_reads_without_lock(void **state)
{
	struct stamped s = stamped_open(*state);
	struct ibv_poll_cq_attr attr = {}, wrong = { .comp_mask = 1 };
	uint32_t asked = kernel.queries;

	kernel.on_query_device = holds_no_lock;
	locks_watch();
	stamped_complete(*state, &s);
	expect_now(s.ex);
	assert_int_equal(kernel.queries, asked);
	elapse(1000000000);
	stamped_complete(*state, &s);
	expect_now(s.ex);
	assert_int_equal(kernel.queries, asked);
	elapse(400);
	assert_int_equal(ibv_start_poll(s.ex, &wrong), EINVAL);
	assert_int_equal(ibv_start_poll(s.ex, &attr), ENOENT);
	assert_int_equal(kernel.queries, asked);
	stamped_complete(*state, &s);
	expect_now(s.ex);
	stamped_complete(*state, &s);
	expect_now(s.ex);
	assert_int_equal(kernel.queries, asked + 1);
	assert_int_equal(locks.held, 0);
	kernel.on_query_device = NULL;
	stamped_close(*state, &s);
}

/* After a pause of any length, also the first poll tells the right time. */
static void test_poll_short_clock(void **state)
{
	static const unsigned int percent[] = { 60, 130, 500 };
	struct stamped s;

	kernel.clocks.clock_mask = SHORT_MASK;
	kernel.clocks.clock &= SHORT_MASK;
	s = stamped_open(*state);
	for (size_t i = 0; i < ARRAY_SIZE(percent); i++) {
		elapse((SHORT_MASK + 1) / 100 * percent[i] * 400);
		stamped_complete(*state, &s);
		expect_now(s.ex);
	}
	stamped_close(*state, &s);
}

/* The longest age of a reading is a second, or a quarter of the wrap of a clock if that is less. */
static void test_poll_limit(void **state)
{
	static const struct {
		uint32_t khz;
		uint64_t ns;
	} cases[] = {	/* a quarter of the wrap is 4194303 ticks */
		{ 1000, 1000000000 }, { 4194, 1000000000 }, { 4195, 999833849 },
		{ 8000, 524287875 },
	};

	kernel.clocks.clock_mask = 0xffffff;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_cq_ex *ex;

		kernel.clocks.clock_khz = cases[i].khz;
		ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
		assert_non_null(ex);
		kernel.monotonic_ns += cases[i].ns;
		assert_false(ornic_wall_is_old(to_ocq_ex(ex)));
		kernel.monotonic_ns++;
		assert_true(ornic_wall_is_old(to_ocq_ex(ex)));
		ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
	}
}

static struct ibv_cq *robbed;

static void poll_elsewhere(void)
{
	struct ibv_wc wc;

	assert_int_equal(ornic_poll_cq(robbed, 1, &wc), 1);
}

/* Another thread polls the completion while this one reads the clocks. */
static void test_poll_loses_completion(void **state)
{
	struct stamped s = stamped_open(*state);
	struct ibv_poll_cq_attr attr = {};

	robbed = ibv_cq_ex_to_cq(s.ex);
	kernel.on_query_device = poll_elsewhere;
	elapse(2000000000);
	stamped_complete(*state, &s);
	locks_watch();
	assert_int_equal(ibv_start_poll(s.ex, &attr), ENOENT);
	assert_int_equal(locks.held, 0);
	kernel.on_query_device = NULL;
	stamped_complete(*state, &s);
	expect_now(s.ex);
	stamped_close(*state, &s);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_rt_values), RIG_TEST(test_create), RIG_TEST(test_wall),
		RIG_TEST(test_wall_is_read_again), RIG_TEST(test_wall_of_the_dead),
		RIG_TEST(test_wall_wraps), RIG_TEST(test_wall_after_a_pause),
		RIG_TEST(test_wall_of_short_clock), RIG_TEST(test_wall_of_the_dead_wraps),
		RIG_TEST(test_wall_of_the_dead_is_exact),
		RIG_TEST(test_poll_reads_without_lock), RIG_TEST(test_poll_short_clock),
		RIG_TEST(test_poll_limit), RIG_TEST(test_poll_loses_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
