/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers: one-shot, nanoseconds of the monotonic clock, called
 * from the engine's turn.
 */
#ifndef ORNICD_TIMER_H
#define ORNICD_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct timer - embedded in its user, zeroed before first use
 * @expires:	when, in ns
 * @fn:		called once; may arm the timer again, or free its owner
 * @arg:	for @fn
 * @pos:	place in the heap + 1; 0 = not armed
 */
struct timer {
	uint64_t expires;
	void (*fn)(void *arg);
	void *arg;
	uint32_t pos;
};

/**
 * struct timers - a binary heap, the next to expire first
 * @heap:	armed timers
 * @n:		how many
 * @cap:	how many may be: the sum of what was reserved
 * @room:	entries allocated
 */
struct timers {
	struct timer **heap;
	uint32_t n;
	uint32_t cap;
	uint32_t room;
};

void timers_init(struct timers *ts);
void timers_fini(struct timers *ts);

/*
 * timers_reserve() - make room for @n more timers, so that timer_arm() cannot
 * fail. Return: 0 or -ENOMEM. timers_unreserve() gives it back.
 */
int timers_reserve(struct timers *ts, uint32_t n);
void timers_unreserve(struct timers *ts, uint32_t n);

void timer_arm(struct timers *ts, struct timer *t, uint64_t expires);
void timer_disarm(struct timers *ts, struct timer *t);
/* timers_run() - call what expired by @now; at most as many as were armed. */
void timers_run(struct timers *ts, uint64_t now);
/* timers_next() - ns until the next expiry (0: overdue), or -1 without timers. */
int64_t timers_next(const struct timers *ts, uint64_t now);

static inline bool timer_armed(const struct timer *t)
{
	return t->pos;
}

#endif /* ORNICD_TIMER_H */
