// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device clock: read it, and convert a time stamp to system time.
 *
 * A CQ that converts keeps one reading of device clock and system time. It takes a new
 * one for a completion that is more than a second younger than the reading (ORN-CLK-5).
 * So the error from clocks of different speed does not add up. The reading is the only
 * system call of such a CQ.
 */
#include <errno.h>

#include "ornic.h"

#define ORNIC_WALL_NS		1000000000ull	/* ns for which a reading is used */

/*
 * Read device clock and system time. Return 0, a positive errno of the query, or EOPNOTSUPP
 * if the device has no clock.
 */
int ornic_clock_read(struct ornic_context *ctx, struct ornic_uresp_query_device *now)
{
	struct ornic_query_device_resp resp = {};
	size_t size = sizeof(resp);
	struct ibv_device_attr_ex attr;
	int ret;

	ret = ibv_cmd_query_device_any(&ctx->ibv_ctx.context, NULL, &attr, sizeof(attr),
				       &resp.ibv_resp, &size);
	if (ret)
		return ret;
	*now = resp.drv_payload;
	return now->clock_khz && now->clock_mask ? 0 : EOPNOTSUPP;
}

int ornic_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	struct ornic_uresp_query_device now;
	int ret;

	if (values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;
	ret = ornic_clock_read(to_octx(ctx), &now);
	if (ret)
		return ret;
	/* Verbs want ticks here, not a time; providers of other devices use tv_nsec too. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.clock;
	return 0;
}

/*
 * Return the ticks from @from to @to, negative if @to is earlier. The clock wraps at
 * @mask, so of the two possible distances the shorter one is taken.
 */
static int64_t ornic_clock_diff(uint64_t mask, uint64_t to, uint64_t from)
{
	uint64_t ahead = (to - from) & mask;

	return ahead > mask / 2 ? -(int64_t)((from - to) & mask) : (int64_t)ahead;
}

/*
 * Convert @ticks of a clock of @khz kHz to ns. The device chooses the stamp, so any value
 * is possible. The steps do not overflow; a result that does not fit is meaningless.
 */
static int64_t ornic_clock_ns(uint32_t khz, int64_t ticks)
{
	uint64_t n = ticks < 0 ? -(uint64_t)ticks : (uint64_t)ticks;

	n = n / khz * 1000000 + n % khz * 1000000 / khz;
	return ticks < 0 ? -n : n;
}

/*
 * Take a new reading of the clocks. If that fails, for example because the device died,
 * extrapolate the last reading by @ns to @stamp, because completions still arrive.
 * Caller holds the CQ's lock.
 */
static void ornic_wall_update(struct ornic_cq *cq, uint64_t stamp, int64_t ns)
{
	struct ornic_uresp_query_device now;

	if (!ornic_clock_read(to_octx(cq->vcq.cq.context), &now)) {
		cq->wall = now;
		return;
	}
	cq->wall.clock = stamp;
	cq->wall.system_ns += ns;
}

/* Convert @stamp to system time in ns since the epoch. Caller holds the CQ's lock. */
uint64_t ornic_wall_ns(struct ornic_cq *cq, uint64_t stamp)
{
	const struct ornic_uresp_query_device *w = &cq->wall;
	int64_t ns;

	ns = ornic_clock_ns(w->clock_khz, ornic_clock_diff(w->clock_mask, stamp, w->clock));
	if (ns > (int64_t)ORNIC_WALL_NS) {
		ornic_wall_update(cq, stamp, ns);
		ns = ornic_clock_ns(w->clock_khz,
				    ornic_clock_diff(w->clock_mask, stamp, w->clock));
	}
	return w->system_ns + ns;
}
