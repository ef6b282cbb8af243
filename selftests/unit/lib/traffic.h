/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A mix of operations of one RC queue pair on another. It proves that each operation was executed
 * once and in order by the data and the completions of both sides, and by words that only atomics
 * change. Include after <cmocka.h>'s prerequisites.
 */
#ifndef UNIT_LIB_TRAFFIC_H
#define UNIT_LIB_TRAFFIC_H

#include "pair.h"

/** TRAFFIC_BATCH - operations posted before any is verified */
#define TRAFFIC_BATCH	40

/** TRAFFIC_SLOTS - the first slot has the words of the atomics */
#define TRAFFIC_SLOTS	(TRAFFIC_BATCH + 1)

/** struct op - a posted operation; its memory is slot @slot on both sides */
struct op {
	uint8_t opcode;
	uint32_t len;
	uint32_t seed;
	uint32_t slot;
	uint64_t before;
};

/**
 * struct traffic - see above
 * @a, @b:	requester and responder
 * @abuf, @bbuf: their memory
 * @akey, @bkey: its keys
 * @window:	keys of @b, one for each slot, for SENDs to invalidate
 * @seed:	state of the random numbers
 * @sum:	current value of the word of the FETCH_ADDs
 * @swapped:	current value of the word of the COMP_SWAPs
 * @flushes:	FLUSHes posted
 * @op:		the batch
 */
struct traffic {
	struct world *w;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
	uint32_t window[TRAFFIC_SLOTS];
	uint64_t seed;
	uint64_t sum;
	uint64_t swapped;
	uint64_t flushes;
	struct op op[TRAFFIC_BATCH];
};

/* traffic_init() - connect dut[0] with dut[1]; @psn is the first PSN that @a sends */
void traffic_init(struct traffic *t, struct world *w, uint64_t seed, uint32_t psn);
void traffic_fini(struct traffic *t);

uint32_t traffic_random(struct traffic *t, uint32_t below);

/* traffic_post() - post random operation @i of the batch, with @seed in its data */
void traffic_post(struct traffic *t, uint32_t i, uint32_t seed);
/* traffic_verify() - check completions and data of the batch */
void traffic_verify(struct traffic *t);
/* traffic_end() - check by counters and the words of the atomics that each operation ran once */
void traffic_end(struct traffic *t);

#endif /* UNIT_LIB_TRAFFIC_H */
