/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data path of Ethernet queue pairs (RAW).
 */
#ifndef ORNICD_ENGINE_RAW_H
#define ORNICD_ENGINE_RAW_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;

/** ETH_OVERHEAD - bytes that max_frame does not count: Ethernet header and one VLAN tag */
#define ETH_OVERHEAD	18u

/**
 * struct raw_meta - values that a receive rule adds to the completion of a frame
 * @flow_tag:	tag of the rule
 * @rss_hash:	hash that chose the queue pair
 * @rss_type:	ORNIC_RSS_TYPE_*; 0 if no hash was computed
 */
struct raw_meta {
	uint32_t flow_tag;
	uint32_t rss_hash;
	uint8_t rss_type;
};

/* raw_run() - send frames for one turn. Return: true if more work may be ready. */
bool raw_run(struct qp *qp);

/**
 * raw_receive() - deliver a frame to a queue pair
 * @qp:		queue pair
 * @p:		frame; dropped and counted if no receive is posted, or if the next receive is too
 *		small, which then stays
 * @meta:	values of the rule that matched, or NULL
 */
void raw_receive(struct qp *qp, const struct packet *p, const struct raw_meta *meta);

#endif /* ORNICD_ENGINE_RAW_H */
