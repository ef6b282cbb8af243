// SPDX-License-Identifier: GPL-2.0
/*
 * DCQCN's reaction point.
 *
 * A CNP makes the current rate the target, lowers the rate by half of the estimate of congestion,
 * and raises the estimate. Without CNPs the estimate decreases with time, and each expiry of the
 * timer or the byte counter raises the rate halfway to the target (fast recovery). After
 * rp_threshold expiries the target rises too (additive increase), and faster once both timer and
 * byte counter exceeded that number (hyper increase). Rates are kbit/s, the estimate is a fraction
 * of CC_ONE. A packet costs no division by a variable: those happen once per CNP and when the timer
 * expires.
 */
#include "cc.h"

#include "rate.h"

#include <errno.h>
#include <string.h>

#define NS_PER_US	1000u
#define KBPS_PER_MBPS	1000u
/* Most steps done one by one: they leave no difference between rate and target. */
#define STEPS_MAX	64

const struct cc_range cc_ranges[CC_PARAM_COUNT] = {
#define CC_RANGE(name, value, least, most)	{ #name, value, least, most },
	CC_PARAMS(CC_RANGE)
#undef CC_RANGE
};

void cc_defaults(struct cc_param *p)
{
	p->on = true;
	for (int i = 0; i < CC_PARAM_COUNT; i++)
		p->v[i] = cc_ranges[i].value;
}

int cc_set(struct cc_param *p, const char *name, uint64_t value)
{
	for (int i = 0; i < CC_PARAM_COUNT; i++) {
		if (strcmp(cc_ranges[i].name, name))
			continue;
		if (value < cc_ranges[i].least || value > cc_ranges[i].most)
			return -ERANGE;
		p->v[i] = value;
		return 0;
	}
	return -ENOENT;
}

uint32_t cc_max_kbps(const struct cc_param *p)
{
	return p->v[CC_rp_max_rate] ? p->v[CC_rp_max_rate] * KBPS_PER_MBPS : RATE_MAX_KBPS;
}

static uint32_t min_kbps(const struct cc_param *p)
{
	uint32_t least = p->v[CC_rp_min_rate] * KBPS_PER_MBPS, most = cc_max_kbps(p);

	return least < most ? least : most;
}

/*
 * Set the rate to @kbps, but at least to rp_min_rate. That may be above the target, which the timer
 * and the byte counter move the rate towards. Raise the target then, so that they do not lower the
 * rate.
 */
static void set_rate(struct cc *c, const struct cc_param *p, uint64_t kbps)
{
	c->rate = kbps < min_kbps(p) ? min_kbps(p) : kbps;
	if (c->target < c->rate)
		c->target = c->rate;
}

static void raise_target(struct cc *c, const struct cc_param *p, uint64_t kbps)
{
	uint32_t most = cc_max_kbps(p);

	c->target = c->target + kbps < most ? c->target + kbps : most;
}

/* Return by how many kbit/s the target rises after the timer expired @time_stage times. */
static uint64_t target_step(const struct cc *c, const struct cc_param *p, uint32_t time_stage)
{
	uint32_t threshold = p->v[CC_rp_threshold];

	if (time_stage > threshold && c->byte_stage > threshold)
		return p->v[CC_rp_hai_rate] * KBPS_PER_MBPS;
	if (time_stage >= threshold || c->byte_stage >= threshold)
		return p->v[CC_rp_ai_rate] * KBPS_PER_MBPS;
	return 0;
}

/* Raise the rate once, after the timer or the byte counter expired. */
static void increase(struct cc *c, const struct cc_param *p)
{
	uint64_t step = target_step(c, p, c->time_stage);

	if (step)
		raise_target(c, p, step);
	c->rate = ((uint64_t)c->rate + c->target + 1) / 2;
}

/* Raise the rate for @n expiries of the timer. */
static void time_steps(struct cc *c, const struct cc_param *p, uint64_t n)
{
	if (n > STEPS_MAX) {
		uint64_t rest = n - STEPS_MAX;

		/* The byte counter stands still, and STEPS_MAX is beyond every threshold. */
		if (rest > UINT32_MAX)
			rest = UINT32_MAX;
		raise_target(c, p, rest * target_step(c, p, STEPS_MAX));
		n = STEPS_MAX;
	}
	for (; n; n--) {
		increase(c, p);
		c->time_stage++;
	}
}

static uint64_t timer_period(const struct cc_param *p)
{
	return (uint64_t)p->v[CC_rp_time_reset] * NS_PER_US;
}

uint64_t dcqcn_next(const struct cc *c, const struct cc_param *p)
{
	return c->timer_at + timer_period(p);
}

/* Advance the timer to @now. Return: true if it expired. */
static bool run_timer(struct cc *c, const struct cc_param *p, uint64_t now)
{
	uint64_t period = timer_period(p);

	if (now - c->timer_at < period)
		return false;
	time_steps(c, p, (now - c->timer_at) / period);
	c->timer_at = now - (now - c->timer_at) % period;
	return true;
}

/*
 * Count @bytes. Return: true if the byte counter expired. A period may be shorter than a packet, so
 * bound the steps.
 */
static bool run_counter(struct cc *c, const struct cc_param *p, uint32_t bytes)
{
	uint32_t period = p->v[CC_rp_byte_reset], stage = c->byte_stage;

	if (!period)
		return false;
	c->bytes += bytes;
	for (int n = 0; n < STEPS_MAX && c->bytes >= period; n++) {
		increase(c, p);
		c->byte_stage++;
		c->bytes -= period;
	}
	if (c->bytes >= period)
		c->bytes = 0;
	return c->byte_stage != stage;
}

bool dcqcn_advance(struct cc *c, const struct cc_param *p, uint32_t bytes, uint64_t now)
{
	bool timer = run_timer(c, p, now), counter = run_counter(c, p, bytes);

	if (c->rate >= cc_max_kbps(p))
		c->limiting = false;	/* also without an expiry, if rp_max_rate was lowered */
	return timer || counter || !c->limiting;
}

/* Return (1 - g)^n as a fraction of CC_ONE. */
static uint64_t decay(uint32_t g, uint64_t n)
{
	uint64_t factor = (1024 - g) * (CC_ONE / 1024), result = CC_ONE;

	for (; n && result; n >>= 1, factor = factor * factor / CC_ONE)
		if (n & 1)
			result = result * factor / CC_ONE;
	return result;
}

static void run_alpha(struct cc *c, const struct cc_param *p, uint64_t now)
{
	uint64_t n = (now - c->alpha_at) / (p->v[CC_rp_dce_tcp_rtt] * NS_PER_US);

	c->alpha = c->alpha * decay(p->v[CC_rp_dce_tcp_g], n) / CC_ONE;
}

static void begin(struct cc *c, const struct cc_param *p, uint64_t now)
{
	c->limiting = true;
	c->rate = cc_max_kbps(p);
	c->alpha = p->v[CC_rp_initial_alpha_value] * (CC_ONE / 1024);
	c->alpha_at = now;
	c->timer_at = now;
}

static void cut(struct cc *c, const struct cc_param *p)
{
	uint64_t rate = (uint64_t)c->rate * (CC_ONE - c->alpha / 2) / CC_ONE;
	uint64_t least = (uint64_t)c->rate * p->v[CC_rp_min_dec_fac] / 100;

	c->target = c->rate;
	set_rate(c, p, rate < least ? least : rate);
}

bool dcqcn_cnp(struct cc *c, const struct cc_param *p, uint64_t now)
{
	uint32_t first = p->v[CC_rp_rate_to_set_on_first_cnp] * KBPS_PER_MBPS;
	uint32_t g = p->v[CC_rp_dce_tcp_g];
	bool fresh = !c->limiting;

	if (fresh)
		begin(c, p, now);
	else if (now - c->cut_at < (uint64_t)p->v[CC_rp_rate_reduce_monitor_period] * NS_PER_US)
		return false;
	run_timer(c, p, now);
	run_alpha(c, p, now);
	cut(c, p);
	if (fresh && first && first < c->target)
		set_rate(c, p, first);
	c->alpha += (uint64_t)(CC_ONE - c->alpha) * g / 1024;
	c->alpha_at = now;
	c->timer_at = now;
	c->cut_at = now;
	c->bytes = 0;
	c->time_stage = 0;
	c->byte_stage = 0;
	return true;
}
