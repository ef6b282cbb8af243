/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive side scaling in the data path: a group of queue pairs shares the flows.
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
 * @number:	number of the object
 * @rules:	number of receive rules that name it
 * @log_size:	log2 entries of @qp in use
 * @fields:	ORNIC_RSS_*
 * @key:	key of the hash
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
 * rss_hash() - compute the Toeplitz hash of the fields that both group and frame have
 * @rss:	group
 * @f:		frame
 * @type:	set to the ORNIC_RSS_TYPE_* of the hashed fields, 0 if there are none
 *
 * Return: the hash, 0 if no field was hashed.
 */
uint32_t rss_hash(const struct rss *rss, const struct frame *f, uint8_t *type);

/* rss_pick() - choose the queue pair for a frame; store the hash in @meta */
struct qp *rss_pick(const struct rss *rss, const struct frame *f, struct raw_meta *meta);

#endif /* ORNICD_ENGINE_RSS_H */
