/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pacing: how fast a queue pair may send (ORN-QP-41 to ORN-QP-43).
 *
 * There are some reasons to hold a queue pair back: the static rate of the path that a packet
 * takes, the rate limit of the queue pair, congestion (cc.h), and a peer that is not a device of
 * this daemon, with a network before it. A packet pays with time for its bytes, at
 * the lowest of these rates; @due is when all that was sent will be paid for. While that is at
 * most @slack ahead, the next packet may go: this is the burst. Otherwise the queue pair
 * sleeps on a timer. So nothing is computed for a queue pair without a rate but one
 * comparison, and nothing is divided while sending.
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
/** RATE_BURST_NS - the burst, if nobody says otherwise, as the time it takes at the rate */
#define RATE_BURST_NS	500000
/**
 * RATE_PACE_NS - the same for congestion control and for peers far away: what leaves at once
 * has to find room in the queues of a network
 */
#define RATE_PACE_NS	100000
/** RATE_MAX_BYTES - most bytes of one charge, so that no product overflows */
#define RATE_MAX_BYTES	(1u << 20)

/**
 * struct rate - pacing of one queue pair; rate_init() makes it one without a limit
 * @due:	when what was sent is paid for, ns
 * @slack:	how far ahead @due may be for the next packet to go, ns
 * @cost:	time of a byte, static rates apart; 0 = it costs none
 * @limit:	the same, of the limit alone
 * @limit_slack: @slack, if there is only the limit
 * @pace:	time of a byte for the sake of congestion control
 * @again:	if there is a @pace: wake up at this time at the latest
 * @far_cost:	time of a byte on the way to a peer far away
 * @far:	the peer is far away, as of the last packet
 * @most:	bytes of a packet that stands for many of the wire: all of them leave at once
 * @part:	what @due has to be more precise than a ns
 * @timer:	armed = wait for it
 * @kbps, @burst, @packet: the limit as it was set, in kbit/s and bytes
 */
struct rate {
	uint64_t due;
	uint64_t slack;
	uint64_t cost;
	uint64_t limit;
	uint64_t limit_slack;
	uint64_t pace;
	uint64_t again;
	uint64_t far_cost;
	bool far;
	uint32_t most;
	uint64_t part;
	struct timer timer;
	uint32_t kbps;
	uint32_t burst;
	uint16_t packet;
};

/* rate_init() - no limit; @wake(@arg) is called when a wait is over */
void rate_init(struct rate *r, void (*wake)(void *arg), void *arg);

/*
 * rate_set() - limit to @kbps, RATE_MIN_KBPS to RATE_MAX_KBPS, or 0 for no limit; debts are
 * forgotten. @burst: bytes that may go at once, 0 for the default; @packet: those of the usual
 * packet, of which one always may, 0 for @frame. A wait goes on: see rate_stop().
 */
void rate_set(struct rate *r, uint32_t kbps, uint32_t burst, uint16_t packet, uint32_t frame);

/*
 * rate_pace() - congestion control allows @kbps from now on; 0: anything. What is not paid for yet
 * costs what it does now. @again: when to ask congestion control again, also if it is too early
 * for the next packet
 */
void rate_pace(struct rate *r, uint32_t kbps, uint64_t now, uint64_t again);

/* rate_far() - is the peer @far away? It gets @kbps at most; 0: no limit. */
void rate_far(struct rate *r, bool far, uint32_t kbps);

/* rate_stop() - nobody waits any more */
void rate_stop(struct rate *r, struct timers *ts);

/* rate_wait() - for rate_open(): call back when there is something to spend */
void rate_wait(struct rate *r, struct timers *ts);

/* rate_open() - may the next packet go? If not, the queue pair will be woken. */
static inline bool rate_open(struct rate *r, struct timers *ts, uint64_t now)
{
	if (__builtin_expect(r->due <= now + r->slack, true))
		return true;
	rate_wait(r, ts);
	return false;
}

/* rate_waits() - was it told to wait? */
static inline bool rate_waits(const struct rate *r)
{
	return timer_armed(&r->timer);
}

/* rate_charge() - @bytes, RATE_MAX_BYTES at most, go on a path with @static_rate now */
void rate_charge(struct rate *r, uint8_t static_rate, uint32_t bytes, uint64_t now);

#endif /* ORNICD_ENGINE_RATE_H */
