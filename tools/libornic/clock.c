// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device clock: reading it, and telling the time of day from a time stamp.
 *
 * A CQ that gives the time of day keeps one reading of device clock and system
 * time and takes a new one when a completion is younger than that by a second
 * (ORN-CLK-5), so the two clocks may differ in speed without the error adding up.
 * That is the only system call of such a CQ.
 */
#include <errno.h>

#include "ornic.h"

#define ORNIC_WALL_NS		1000000000ull	/* how long a reading serves */

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
	/* A count of the clock, not a time: so do all providers. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.clock;
	return 0;
}

/* Ticks from @from to @to, which may lie before it: the shorter way around. */
static int64_t ornic_clock_diff(uint64_t mask, uint64_t to, uint64_t from)
{
	uint64_t ahead = (to - from) & mask;

	return ahead > mask / 2 ? -(int64_t)((from - to) & mask) : (int64_t)ahead;
}

/* A stamp is the device's word: whatever it says, nothing overflows but the result. */
static int64_t ornic_clock_ns(uint32_t khz, int64_t ticks)
{
	uint64_t n = ticks < 0 ? -(uint64_t)ticks : (uint64_t)ticks;

	n = n / khz * 1000000 + n % khz * 1000000 / khz;
	return ticks < 0 ? -n : n;
}

/*
 * A reading that cannot be had, of a device that died, say, is replaced by what
 * the clock's rate makes of the last one: completions are still coming.
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

/* System time of @stamp, in ns since the epoch. Caller holds the CQ's lock. */
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
