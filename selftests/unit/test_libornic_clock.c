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

/* ORN-CLK-5: after one second the provider reads the clocks again and corrects their drift. */
static void test_wall_is_read_again(void **state)
{
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	uint32_t asked = kernel.queries;

	assert_non_null(ex);
	kernel.clocks.clock = 1000000 + 2 * SECOND;
	kernel.clocks.system_ns = 52000100000;
	assert_int_equal(wall(ex, 1000000 + 2 * SECOND - 5), 52000098000);
	assert_int_equal(wall(ex, 1000000 + 2 * SECOND), 52000100000);
	assert_int_equal(kernel.queries, asked + 1);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

/* A failed reading is not repeated for each completion. */
static void test_wall_of_the_dead(void **state)
{
	struct ibv_cq_ex *ex = make_cq(*state, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	uint32_t asked = kernel.queries;

	assert_non_null(ex);
	kernel.fail = EIO;
	assert_int_equal(wall(ex, 1000000 + 3 * SECOND), 53000000000);
	assert_int_equal(wall(ex, 1000000 + 3 * SECOND + 5), 53000002000);
	assert_int_equal(kernel.queries, asked + 1);
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
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_rt_values), RIG_TEST(test_create), RIG_TEST(test_wall),
		RIG_TEST(test_wall_is_read_again), RIG_TEST(test_wall_of_the_dead),
		RIG_TEST(test_wall_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
