/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pacing: how fast a queue pair may send (ORN-QP-41 to ORN-QP-43).
 *
 * Four rates bound a queue pair: the static rate of a packet's path, the rate limit of the queue
 * pair, the rate of congestion control (cc.h), and the rate to a remote peer, which is behind a
 * network. Each packet is charged the time that its bytes take, once at the static rate of its
 * path, once at the rate limit and once at the lower of the other two. The next packet may go while
 * all three debts are small enough: this is the burst. Otherwise the queue pair waits for a timer.
 * So a queue pair without a rate costs three comparisons per packet, and sending needs no division.
 *
 * Programs change rate limits without a privilege. The rate limit has a debt of its own, so that a
 * change affects neither debt nor burst of the other rates.
 */
#ifndef ORNICD_ENGINE_RATE_H
#define ORNICD_ENGINE_RATE_H

#include "device.h"
#include "../timer.h"

#include <stdbool.h>
#include <stdint.h>

/** RATE_MIN_KBPS, RATE_MAX_KBPS - rate limits accepted: up to the speed of the port */
#define RATE_MIN_KBPS	1
#define RATE_MAX_KBPS	(PORT_SPEED_MBPS * 1000)
/** RATE_BURST_NS - default burst as a time at the rate, ns */
#define RATE_BURST_NS	500000
/**
 * RATE_PACE_NS - burst of congestion control and to remote peers as a time at the rate, ns: it has
 * to fit into the queues of a network
 */
#define RATE_PACE_NS	100000
/** RATE_MAX_BYTES - most bytes of one charge, so that no product overflows */
#define RATE_MAX_BYTES	(1u << 20)

/**
 * struct rate_debt - sent packets that are not paid for
 * @due:	time when all are paid for, ns
 * @part:	fraction of a ns that belongs to @due
 */
struct rate_debt {
	uint64_t due;
	uint64_t part;
};

/**
 * struct rate - pacing of one queue pair; without a limit after rate_init()
 * @path:	debt at static rates; the next packet may go if @path.due is at most RATE_BURST_NS
 *		ahead of now
 * @limit_debt:	debt at @limit
 * @net_debt:	debt at @net_cost; the next packet may go if @net_debt.due is at most RATE_PACE_NS
 *		ahead of now
 * @slack:	most time that @limit_debt.due may be ahead of now for the next packet to go, ns
 * @limit:	time of a byte at the rate limit, ns << COST_SHIFT; 0 = no rate
 * @net_cost:	the larger one of @pace and @remote_cost
 * @pace:	time of a byte at the rate of congestion control
 * @again:	if @pace: latest time to wake up, ns
 * @remote_cost: time of a byte at the rate to a remote peer
 * @remote:	the last packet went to a remote peer
 * @most:	most bytes of a packet that stands for many packets of the wire
 * @timer:	armed while the queue pair waits
 * @kbps, @burst, @packet: rate limit as it was set, in kbit/s and bytes
 */
struct rate {
	struct rate_debt path;
	struct rate_debt limit_debt;
	struct rate_debt net_debt;
	uint64_t slack;
	uint64_t limit;
	uint64_t net_cost;
	uint64_t pace;
	uint64_t again;
	uint64_t remote_cost;
	bool remote;
	uint32_t most;
	struct timer timer;
	uint32_t kbps;
	uint32_t burst;
	uint16_t packet;
};

/* rate_init() - initialise without a limit; @wake(@arg) is called when a wait is over */
void rate_init(struct rate *r, void (*wake)(void *arg), void *arg);

/*
 * rate_set() - set the rate limit to @kbps, RATE_MIN_KBPS to RATE_MAX_KBPS, or 0 for none, at @now
 * @burst: bytes that may go at once, 0 for the default; @packet: bytes of a typical packet, one of
 * which may always go, 0 for @frame. After a change of the rate, or to a smaller burst, the rate
 * limit permits the next packet at @now. A wait in progress continues, see rate_stop().
 */
void rate_set(struct rate *r, uint32_t kbps, uint32_t burst, uint16_t packet, uint32_t frame,
	      uint64_t now);

/*
 * rate_pace() - set the rate of congestion control to @kbps, 0 for none, and convert the debt at
 * @now
 * @again: time of the next change by congestion control, ns: a wait ends then even if the next
 * packet may not go yet.
 */
void rate_pace(struct rate *r, uint32_t kbps, uint64_t now, uint64_t again);

/*
 * rate_remote() - set if the peer is remote, and the rate to it: @kbps, 0 for no limit; convert the
 * debt at @now
 */
void rate_remote(struct rate *r, bool remote, uint32_t kbps, uint64_t now);

/* rate_stop() - end a wait */
void rate_stop(struct rate *r, struct timers *ts);

/* rate_wait() - arm the timer for the time when a packet may go; for rate_open() */
void rate_wait(struct rate *r, struct timers *ts, uint64_t now);

/* rate_open() - return true if the next packet may go; otherwise arrange a wakeup */
static inline bool rate_open(struct rate *r, struct timers *ts, uint64_t now)
{
	if (__builtin_expect(r->limit_debt.due <= now + r->slack &&
			     r->net_debt.due <= now + RATE_PACE_NS &&
			     r->path.due <= now + RATE_BURST_NS, true))
		return true;
	rate_wait(r, ts, now);
	return false;
}

/* rate_waits() - return true while a wait is in progress */
static inline bool rate_waits(const struct rate *r)
{
	return timer_armed(&r->timer);
}

/*
 * rate_charge() - charge @bytes, at most RATE_MAX_BYTES, that leave now on a path with @static_rate
 */
void rate_charge(struct rate *r, uint8_t static_rate, uint32_t bytes, uint64_t now);

#endif /* ORNICD_ENGINE_RATE_H */
