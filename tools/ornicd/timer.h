/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One-shot timers in nanoseconds of the monotonic clock. The engine runs them in its turn.
 */
#ifndef ORNICD_TIMER_H
#define ORNICD_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct timer - embedded in its user, zeroed before the first use
 * @expires:	time of expiry, ns
 * @fn:		called once; may arm the timer again, or free its owner
 * @arg:	argument of @fn
 * @pos:	place in the heap + 1; 0 = not armed
 */
struct timer {
	uint64_t expires;
	void (*fn)(void *arg);
	void *arg;
	uint32_t pos;
};

/**
 * struct timers - a binary heap; the next timer to expire is the root
 * @heap:	armed timers
 * @n:		number of armed timers
 * @cap:	number of reserved timers
 * @room:	entries allocated
 */
struct timers {
	struct timer **heap;
	uint32_t n;
	uint32_t cap;
	uint32_t room;
};

/* timers_init() - initialise an empty heap */
void timers_init(struct timers *ts);
/* timers_fini() - free the heap; timers that are still armed never fire */
void timers_fini(struct timers *ts);

/*
 * timers_reserve() - make room for @n more timers, so that timer_arm() cannot fail. Return: 0 or
 * -ENOMEM.
 */
int timers_reserve(struct timers *ts, uint32_t n);
/* timers_unreserve() - return the room of @n timers, which are not armed */
void timers_unreserve(struct timers *ts, uint32_t n);

/* timer_arm() - call @t->fn at time @expires, ns; if @t is armed already, only the time changes */
void timer_arm(struct timers *ts, struct timer *t, uint64_t expires);
/* timer_disarm() - cancel a timer, armed or not */
void timer_disarm(struct timers *ts, struct timer *t);

/** TIMERS_BATCH - most timers that one call of timers_run() calls */
#define TIMERS_BATCH	64

/*
 * timers_run() - call the timers that expired by @now, ns, earliest first, TIMERS_BATCH at most
 * A timer that arms itself for the past runs again, but no more calls are made than timers were
 * armed at the beginning. timers_next() is 0 while expired ones are left.
 */
void timers_run(struct timers *ts, uint64_t now);

/* timers_next() - return the ns until the next expiry, 0 if one is overdue, -1 without timers */
int64_t timers_next(const struct timers *ts, uint64_t now);

/* timers_sooner() - return the shorter one of two waits, where a negative one means for ever */
static inline int64_t timers_sooner(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* timer_armed() - return true while @t is armed */
static inline bool timer_armed(const struct timer *t)
{
	return t->pos;
}

#endif /* ORNICD_TIMER_H */
