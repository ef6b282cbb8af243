/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pacing: how fast a queue pair may send (ORN-QP-41 to ORN-QP-43).
 *
 * There are two reasons to hold a queue pair back: the static rate of the path that a packet
 * takes, and the rate limit of the queue pair. A packet pays with time for its bytes, at the
 * lower rate of the two; @due is when all that was sent will be paid for. While that is at
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
/** RATE_MAX_BYTES - most bytes of one charge, so that no product overflows */
#define RATE_MAX_BYTES	(1u << 20)

/**
 * struct rate - pacing of one queue pair; rate_init() makes it one without a limit
 * @due:	when what was sent is paid for, ns
 * @slack:	how far ahead @due may be for the next packet to go, ns
 * @cost:	of the limit: time of a byte; 0 = no limit
 * @part:	what @due has to be more precise than a ns
 * @timer:	armed = wait for it
 * @kbps, @burst, @packet: the limit as it was set, in kbit/s and bytes
 */
struct rate {
	uint64_t due;
	uint64_t slack;
	uint64_t cost;
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
