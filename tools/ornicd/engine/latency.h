/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Latency of send work requests: from the copy out of the ring to the completion, or to the end of
 * an unsignaled work request.
 *
 * The engine reads its time once per turn, and a work request between devices of one daemon takes
 * no longer than a turn. So the clock is read at both ends, at some tens of ns each, and the
 * measurement has to be switched on. While it is off, a work request costs two branches.
 */
#ifndef ORNICD_ENGINE_LATENCY_H
#define ORNICD_ENGINE_LATENCY_H

#include "engine.h"
#include "wqe.h"

#include <stdint.h>

/** LATENCY_BUCKETS - bucket n counts 2^n ns up to 2^(n+1) ns, the last one also all longer times */
#define LATENCY_BUCKETS	40

#define LATENCY_CLASSES(C)	\
	C(send)			\
	C(write)		\
	C(read)			\
	C(atomic)		\
	C(flush)		\
	C(local)

/** enum latency_class - kinds of work requests; local: without packets */
enum latency_class {
#define LATENCY_ENUM(name)	LATENCY_##name,
	LATENCY_CLASSES(LATENCY_ENUM)
#undef LATENCY_ENUM
	LATENCY_COUNT,
};

/**
 * struct histogram - latencies of one class
 * @bucket:	work requests per bucket
 * @sum:	sum of all latencies, ns
 * @max:	longest latency, ns
 */
struct histogram {
	uint64_t bucket[LATENCY_BUCKETS];
	uint64_t sum;
	uint64_t max;
};

/** struct latency - latencies of one device's work requests */
struct latency {
	struct histogram of[LATENCY_COUNT];
};

/* latency_add() - count a work request of @opcode (enum ornic_wqe_opcode) that took @ns */
void latency_add(struct latency *l, uint8_t opcode, uint64_t ns);

/* latency_done_slow() - end a measurement while latency is measured; see latency_done() */
void latency_done_slow(struct device *dev, const struct wqe *w);

/* latency_seen() - start the measurement when @w was fetched */
static inline void latency_seen(const struct device *dev, struct wqe *w)
{
	w->seen = __builtin_expect(!!dev->latency, false) ? dev->engine->clock() : 0;
}

/* latency_done() - end the measurement when @w is done; its status is set */
static inline void latency_done(struct device *dev, const struct wqe *w)
{
	if (__builtin_expect(!!dev->latency, false))
		latency_done_slow(dev, w);
}

#endif /* ORNICD_ENGINE_LATENCY_H */
