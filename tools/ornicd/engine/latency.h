/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long send work requests take: from when the engine copies one from the ring until it
 * writes its completion, or knows it done without one.
 *
 * The engine's own notion of time stands still during a turn, and between devices of one daemon
 * that is all it takes. So the clock is read at both ends, some tens of ns each; that is why it has
 * to be switched on. Off, a work request costs two branches that are never taken.
 */
#ifndef ORNICD_ENGINE_LATENCY_H
#define ORNICD_ENGINE_LATENCY_H

#include "engine.h"
#include "wqe.h"

#include <stdint.h>

/** LATENCY_BUCKETS - the n-th is for 2^n ns up to 2^(n+1); the last for all that is more */
#define LATENCY_BUCKETS	40

#define LATENCY_CLASSES(C)	\
	C(send)			\
	C(write)		\
	C(read)			\
	C(atomic)		\
	C(flush)		\
	C(local)

/** enum latency_class - work requests of a kind; local: those that send nothing */
enum latency_class {
#define LATENCY_ENUM(name)	LATENCY_##name,
	LATENCY_CLASSES(LATENCY_ENUM)
#undef LATENCY_ENUM
	LATENCY_COUNT,
};

/**
 * struct histogram - times of one class
 * @bucket:	how many fell in each
 * @sum:	of all, ns
 * @max:	the longest, ns
 */
struct histogram {
	uint64_t bucket[LATENCY_BUCKETS];
	uint64_t sum;
	uint64_t max;
};

/** struct latency - times of one device's work requests */
struct latency {
	struct histogram of[LATENCY_COUNT];
};

/* latency_add() - a work request of @opcode (enum ornic_wqe_opcode) took @ns */
void latency_add(struct latency *l, uint8_t opcode, uint64_t ns);

/* latency_done_slow() - see latency_done() */
void latency_done_slow(struct device *dev, const struct wqe *w);

/* latency_seen() - @w was fetched */
static inline void latency_seen(const struct device *dev, struct wqe *w)
{
	w->seen = __builtin_expect(!!dev->latency, false) ? dev->engine->clock() : 0;
}

/* latency_done() - @w is done, as its status says */
static inline void latency_done(struct device *dev, const struct wqe *w)
{
	if (__builtin_expect(!!dev->latency, false))
		latency_done_slow(dev, w);
}

#endif /* ORNICD_ENGINE_LATENCY_H */
