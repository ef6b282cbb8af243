/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the two race tests: random numbers, pauses, and the limit after which a
 * wait counts as lost.
 */
#ifndef ORNIC_STRESS_H
#define ORNIC_STRESS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Longer than any scheduling delay: an event that has not happened by then never will. */
#define STRESS_LOST_NS		10000000000ull
#define STRESS_ROUND_NS		1000000000ull
/* Minimum events of a significant round; on a busy machine a round lasts longer to reach it. */
#define STRESS_ENTRIES		4096
#define STRESS_MEETINGS		1000
#define STRESS_PATIENCE_NS	120000000000ull

static inline uint64_t stress_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/*
 * Return true if a round that began at @since is over: its time has passed, and it has
 * enough events or has run out of patience.
 */
static inline bool stress_over(uint64_t since, uint32_t entries, uint64_t meetings)
{
	uint64_t age = stress_now() - since;
	bool enough = entries >= STRESS_ENTRIES && meetings >= STRESS_MEETINGS;

	return age >= (enough ? STRESS_ROUND_NS : STRESS_PATIENCE_NS);
}

/* xorshift32; @state is not 0. */
static inline uint32_t stress_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Pause up to about a microsecond, so that the sides meet at every offset. */
static inline void stress_jitter(uint32_t *state)
{
	uint32_t n = stress_random(state);

	for (n = n & 3 ? n >> 4 & 15 : n >> 4 & 511; n; n--)
		__asm__ volatile("" ::: "memory");
}

/* State of a wait for the other side; initially all zero. */
struct stress_wait {
	uint64_t since;
	uint32_t turns;
};

/* Make one iteration: mostly spin, sometimes yield the CPU; return false once the wait is lost. */
static inline bool stress_turn(struct stress_wait *wait)
{
	uint64_t now;

	if (++wait->turns % 256) {
		__asm__ volatile("" ::: "memory");
		return true;
	}
	sched_yield();
	now = stress_now();
	if (!wait->since)
		wait->since = now;
	return now - wait->since < STRESS_LOST_NS;
}

#endif
