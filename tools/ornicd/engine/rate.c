// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: the time that a byte costs, and the time when it is paid for.
 *
 * Costs are in ns times 2^COST_SHIFT. So the rate is exact to a few parts in 10^5 at 100 Gbit/s,
 * and the product of the highest cost and RATE_MAX_BYTES fits 64 bits.
 */
#include "rate.h"

#include "../packet/packet.h"

#include <ornic/qp.h>

#define COST_SHIFT	20
#define NS_KBPS		8000000ull	/* ns of a byte, times kbit/s */

/* Cost of a byte at @kbps, rounded up so that the rate is never exceeded. */
#define COST(kbps)	(((NS_KBPS << COST_SHIFT) + (kbps) - 1) / (kbps))

/* Costs of IBTA's rates below the speed of the port; rates above it are no limit. */
#define STATIC(mbps)	((mbps) < PORT_SPEED_MBPS ? COST((mbps) * 1000ull) : 0)

static const uint32_t static_costs[] = {
	[ORNIC_RATE_2_5_GBPS]	= STATIC(2500),
	[ORNIC_RATE_10_GBPS]	= STATIC(10000),
	[ORNIC_RATE_30_GBPS]	= STATIC(30000),
	[ORNIC_RATE_5_GBPS]	= STATIC(5000),
	[ORNIC_RATE_20_GBPS]	= STATIC(20000),
	[ORNIC_RATE_40_GBPS]	= STATIC(40000),
	[ORNIC_RATE_60_GBPS]	= STATIC(60000),
	[ORNIC_RATE_80_GBPS]	= STATIC(80000),
	[ORNIC_RATE_120_GBPS]	= STATIC(120000),
	[ORNIC_RATE_14_GBPS]	= STATIC(14062),
	[ORNIC_RATE_56_GBPS]	= STATIC(56250),
	[ORNIC_RATE_112_GBPS]	= STATIC(112500),
	[ORNIC_RATE_168_GBPS]	= STATIC(168750),
	[ORNIC_RATE_25_GBPS]	= STATIC(25781),
	[ORNIC_RATE_100_GBPS]	= STATIC(103125),
	[ORNIC_RATE_200_GBPS]	= STATIC(206250),
	[ORNIC_RATE_300_GBPS]	= STATIC(309375),
	[ORNIC_RATE_28_GBPS]	= STATIC(28125),
	[ORNIC_RATE_50_GBPS]	= STATIC(53125),
	[ORNIC_RATE_400_GBPS]	= STATIC(425000),
	[ORNIC_RATE_600_GBPS]	= STATIC(637500),
	[ORNIC_RATE_800_GBPS]	= STATIC(850000),
};

_Static_assert(COST(RATE_MIN_KBPS) <= UINT64_MAX / RATE_MAX_BYTES - 1, "a charge fits");
_Static_assert(COST(RATE_MAX_KBPS) > 10000, "the highest rate is exact to 1 in 10^4");

static uint64_t static_cost(uint8_t code)
{
	return code < sizeof(static_costs) / sizeof(static_costs[0]) ? static_costs[code] : 0;
}

void rate_init(struct rate *r, void (*wake)(void *arg), void *arg)
{
	*r = (struct rate) { .timer = { .fn = wake, .arg = arg } };
	rate_set(r, 0, 0, 0, 0, 0);
}

/* Return the bytes that take half of the burst, so that two packets make one burst. */
static uint32_t remote_packet(const struct rate *r)
{
	uint64_t bytes = ((uint64_t)RATE_PACE_NS / 2 << COST_SHIFT) / r->remote_cost;

	return bytes < PACKET_MAX_PAYLOAD ? bytes : PACKET_MAX_PAYLOAD;
}

/* Convert @d at @now from cost @was to @cost. Without a rate there is no debt. */
static void convert(struct rate_debt *d, uint64_t was, uint64_t cost, uint64_t now)
{
	unsigned __int128 left;

	if (d->due <= now || !was || was == cost)
		return;
	left = d->due - now;
	d->due = now + (uint64_t)(left * cost / was);
}

static void update_most(struct rate *r)
{
	r->most = PACKET_MAX_PAYLOAD;
	if (r->limit || r->pace)
		r->most = 0;
	else if (r->remote_cost)
		r->most = remote_packet(r);
}

void rate_set(struct rate *r, uint32_t kbps, uint32_t burst, uint16_t packet, uint32_t frame,
	      uint64_t now)
{
	uint32_t one = packet ? packet : frame;
	uint64_t was = r->limit, slack = r->slack;

	r->kbps = kbps;
	r->burst = burst;
	r->packet = packet;
	r->limit = kbps ? COST(kbps) : 0;
	r->slack = RATE_BURST_NS;
	if (kbps && burst)
		r->slack = burst > one ? (burst - one) * NS_KBPS / kbps : 0;
	convert(&r->limit_debt, was, r->limit, now);
	/*
	 * The debt of a faster limit or a larger burst can take hours at the new rate: reduce it so
	 * that the next packet may go. A limit that is set to the same rate keeps its debt, because
	 * it holds from the first time on (ORN-QP-42).
	 */
	if ((r->limit != was || r->slack < slack) && r->limit_debt.due > now + r->slack)
		r->limit_debt.due = now + r->slack;
	update_most(r);
}

/* Compute cost, packet size and debt after a rate of the network changed at @now. */
static void update_net(struct rate *r, uint64_t now)
{
	uint64_t was = r->net_cost;

	r->net_cost = r->pace > r->remote_cost ? r->pace : r->remote_cost;
	convert(&r->net_debt, was, r->net_cost, now);
	update_most(r);
}

void rate_pace(struct rate *r, uint32_t kbps, uint64_t now, uint64_t again)
{
	r->pace = kbps ? COST(kbps) : 0;
	r->again = again;
	update_net(r, now);
}

void rate_remote(struct rate *r, bool remote, uint32_t kbps, uint64_t now)
{
	r->remote = remote;
	r->remote_cost = kbps ? COST(kbps) : 0;
	update_net(r, now);
}

void rate_stop(struct rate *r, struct timers *ts)
{
	timer_disarm(ts, &r->timer);
}

/* Return the time when half of @slack is available if @d exceeds @slack at @now, otherwise @now. */
static uint64_t wake_time(const struct rate_debt *d, uint64_t slack, uint64_t now)
{
	uint64_t half = slack < RATE_BURST_NS ? slack / 2 : RATE_BURST_NS / 2;

	return d->due > now + slack ? d->due - slack + half : now;
}

/*
 * Wake up when half of the burst is available, so that each wakeup sends several packets and may be
 * a little late. A large burst does not extend the wait beyond half of RATE_BURST_NS.
 */
void rate_wait(struct rate *r, struct timers *ts, uint64_t now)
{
	uint64_t path = wake_time(&r->path, RATE_BURST_NS, now);
	uint64_t net = wake_time(&r->net_debt, RATE_PACE_NS, now);
	uint64_t wake = wake_time(&r->limit_debt, r->slack, now);

	if (net > wake)
		wake = net;
	if (path > wake)
		wake = path;
	if (r->pace && wake > r->again)
		wake = r->again;
	if (!rate_waits(r))
		timer_arm(ts, &r->timer, wake);
}

static void charge(struct rate_debt *d, uint64_t cost, uint32_t bytes, uint64_t now)
{
	if (d->due < now)
		*d = (struct rate_debt) { .due = now };
	cost = cost * bytes + d->part;
	d->due += cost >> COST_SHIFT;
	d->part = cost & ((1u << COST_SHIFT) - 1);
}

void rate_charge(struct rate *r, uint8_t static_rate, uint32_t bytes, uint64_t now)
{
	charge(&r->path, static_cost(static_rate), bytes, now);
	charge(&r->limit_debt, r->limit, bytes, now);
	charge(&r->net_debt, r->net_cost, bytes, now);
}
