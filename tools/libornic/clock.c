// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device clock: read it, and convert a time stamp to system time.
 *
 * A CQ that converts keeps one reading of device clock and system time. A poll that begins takes a
 * new one when the reading is older than a second (ORN-CLK-5), so that the error from clocks of
 * different speed does not add up, or older than a quarter of the time in which the device clock
 * wraps, because a stamp does not tell how often the clock has wrapped since the reading. So the
 * age comes from CLOCK_MONOTONIC. The reading is the only ioctl of such a CQ.
 */
#include <errno.h>
#include <time.h>

#include "ornic.h"

#define ORNIC_WALL_NS		1000000000ull	/* longest age of a reading */

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
 * @mask, so of the two possible distances the shorter one is taken. Bits beyond @mask are ignored.
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

static uint64_t ornic_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Return the age in ns at which the reading has to be replaced when a poll begins. */
static uint64_t ornic_wall_limit(const struct ornic_wall *w)
{
	uint64_t quarter = w->clocks.clock_mask / 4;

	if (quarter >= w->clocks.clock_khz * 1000ull)
		return ORNIC_WALL_NS;
	return ornic_clock_ns(w->clocks.clock_khz, quarter);
}

/* Take the first reading of a CQ. Return as ornic_clock_read(). */
int ornic_wall_init(struct ornic_context *ctx, struct ornic_wall *w)
{
	w->taken_at = ornic_monotonic_ns();
	return ornic_clock_read(ctx, &w->clocks);
}

/*
 * Take a new reading. If that fails, for example because the device died, advance the last one to
 * @now, because completions still arrive. The clock may exceed its mask then, which
 * ornic_clock_diff() allows.
 */
static void ornic_wall_renew(struct ornic_context *ctx, struct ornic_wall *w, uint64_t now)
{
	uint64_t ns = now - w->taken_at, khz = w->clocks.clock_khz;
	struct ornic_uresp_query_device read;

	w->taken_at = now;
	if (!ornic_clock_read(ctx, &read)) {
		w->clocks = read;
		return;
	}
	w->clocks.clock += ns / 1000000 * khz + ns % 1000000 * khz / 1000000;
	w->clocks.system_ns += ns;
}

/* Return true if a poll that begins has to replace the reading. Caller holds the CQ's lock. */
bool ornic_wall_is_old(const struct ornic_cq *cq)
{
	return ornic_monotonic_ns() - cq->wall.taken_at > ornic_wall_limit(&cq->wall);
}

/*
 * Replace the reading. Caller holds the CQ's lock. It is released meanwhile, because the command
 * sleeps: other threads can poll.
 */
void ornic_wall_refresh(struct ornic_cq *cq)
{
	struct ornic_wall next = cq->wall;

	ornic_unlock(&cq->lock);
	ornic_wall_renew(to_octx(cq->vcq.cq.context), &next, ornic_monotonic_ns());
	ornic_lock(&cq->lock);
	cq->wall = next;
}

/*
 * Convert @stamp to system time in ns since the epoch. Caller holds the CQ's lock. In a poll that
 * takes longer than half of the limit, replace the reading under the lock.
 */
uint64_t ornic_wall_ns(struct ornic_cq *cq, uint64_t stamp)
{
	const struct ornic_uresp_query_device *c = &cq->wall.clocks;
	uint64_t now = ornic_monotonic_ns();

	if (now - cq->wall.taken_at > ornic_wall_limit(&cq->wall) / 2 * 3)
		ornic_wall_renew(to_octx(cq->vcq.cq.context), &cq->wall, now);
	return c->system_ns + ornic_clock_ns(c->clock_khz,
					     ornic_clock_diff(c->clock_mask, stamp, c->clock));
}
