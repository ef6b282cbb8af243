/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work queues: rings of work requests that the host produces. This is the common part of SQ, RQ and
 * SRQ.
 */
#ifndef ORNICD_ENGINE_WQ_H
#define ORNICD_ENGINE_WQ_H

#include "ring.h"
#include "umem.h"

#include <stdbool.h>
#include <stdint.h>

struct device;

/**
 * struct wq - a work queue
 * @present:	the queue exists; unused for SRQs
 * @log:	log2 entries
 * @stride:	log2 bytes per entry
 * @max_sge:	SGEs per work request
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 * @cons:	next index to fetch
 * @done:	SQ: oldest index not completed
 * @bad:	the ring is unusable (ORN-RNG-8): no CQEs follow
 */
struct wq {
	bool present;
	uint8_t log;
	uint8_t stride;
	uint16_t max_sge;
	struct umem mem;
	uint64_t rec;
	uint32_t cons;
	uint32_t done;
	bool bad;
};

/* wq_record() - return the host pointer of the doorbell record, or NULL if it cannot be reached */
struct ornic_rec *wq_record(struct device *dev, const struct wq *wq);

/*
 * wq_pending() - count the entries that are published and not fetched
 * Return: their number; -EPROTO for an impossible index, -EFAULT if the record cannot be reached.
 */
int64_t wq_pending(struct device *dev, const struct wq *wq);

/*
 * wq_copy() - copy the first @len bytes of the next entry to @dst, if one is pending
 * Return: as wq_pending(); -EFAULT also if the entry cannot be reached.
 */
int64_t wq_copy(struct device *dev, const struct wq *wq, void *dst, uint64_t len);

/* wq_syndrome() - return the syndrome of an error of wq_pending() or wq_copy() */
uint32_t wq_syndrome(int64_t error);

#endif /* ORNICD_ENGINE_WQ_H */
