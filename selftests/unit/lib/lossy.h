/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A bad network between two functions. The functions send packets to its MAC address. It forwards
 * them by their destination GID: late, twice, or not at all. Include after <cmocka.h>'s
 * prerequisites.
 */
#ifndef UNIT_LIB_LOSSY_H
#define UNIT_LIB_LOSSY_H

#include "pair.h"

/** struct held - a packet and a copy of its payload */
struct held {
	TAILQ_ENTRY(held) link;
	struct packet p;
	uint8_t data[];
};

/**
 * struct lossy - the network
 * @seed:	state of the random numbers
 * @drop, @twice, @late: rates in packets per 1000
 * @ce:		packets per 1000 that get a congestion mark
 * @split:	true: split packets that stand for several packets of the wire
 * @wait:	packets that are late
 * @sent:	packets passed on in this turn; their payload is needed until it ends
 * @passed, @dropped, @doubled, @delayed: counts of packets
 */
struct lossy {
	struct world *w;
	struct switch_port *port;
	uint8_t mac[6];
	uint64_t seed;
	uint32_t drop, twice, late;
	uint32_t ce;
	bool split;
	TAILQ_HEAD(, held) wait;
	TAILQ_HEAD(, held) sent;
	uint32_t nwait;
	uint32_t passed, dropped, doubled, delayed;
};

void lossy_init(struct lossy *l, struct world *w, uint64_t seed);
void lossy_fini(struct lossy *l);
uint32_t lossy_random(struct lossy *l, uint32_t below);
/* lossy_run() - run the world for up to @ns, then deliver the late packets */
void lossy_run(struct lossy *l, uint64_t ns);

#endif /* UNIT_LIB_LOSSY_H */
