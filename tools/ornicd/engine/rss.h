/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive scaling in the data path: one of many queue pairs for each flow.
 */
#ifndef ORNICD_ENGINE_RSS_H
#define ORNICD_ENGINE_RSS_H

#include "../packet/frame.h"

#include <ornic/steer.h>
#include <stdint.h>

struct qp;
struct raw_meta;

/**
 * struct rss - a group
 * @number:	of the object
 * @rules:	receive rules that name it
 * @log_size:	log2 entries of @qp in use
 * @fields:	ORNIC_RSS_*
 * @key:	of the hash
 * @qp:		queue pair by the low bits of the hash
 */
struct rss {
	uint32_t number;
	uint32_t rules;
	uint8_t log_size;
	uint32_t fields;
	uint8_t key[ORNIC_RSS_KEY_BYTES];
	struct qp *qp[ORNIC_RSS_MAX_TABLE];
};

/**
 * rss_hash() - Toeplitz hash of the fields that both group and frame have
 * @rss:	group
 * @f:		frame
 * @type:	set to ORNIC_RSS_TYPE_*: what was hashed
 *
 * Return: the hash, or 0 if the frame has no field to hash.
 */
uint32_t rss_hash(const struct rss *rss, const struct frame *f, uint8_t *type);

/* rss_pick() - the queue pair for a frame; the hash goes to @meta */
struct qp *rss_pick(const struct rss *rss, const struct frame *f, struct raw_meta *meta);

#endif /* ORNICD_ENGINE_RSS_H */
