/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work queues: rings of work requests that the host produces. SQ, RQ and SRQ share where the entries
 * are and how to count the posted ones.
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
 * @present:	the queue exists
 * @log:	log2 entries
 * @stride:	log2 bytes per entry
 * @max_sge:	SGEs per work request
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 * @cons:	next index to fetch
 * @done:	SQ: oldest index not completed
 * @bad:	the ring cannot be read any more (ORN-RNG-8): no CQEs follow
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

/*
 * wq_record() - host pointer of the record; NULL if it cannot be reached
 * wq_pending() - entries published and not fetched; -EPROTO for an impossible index,
 * -EFAULT for an unreachable record
 * wq_copy() - copy the first @len bytes of the next entry. Return: as wq_pending(),
 * without @dst if that is not positive; -EFAULT also for unreachable memory
 * wq_syndrome() - what such an error means
 */
struct ornic_rec *wq_record(struct device *dev, const struct wq *wq);
int64_t wq_pending(struct device *dev, const struct wq *wq);
int64_t wq_copy(struct device *dev, const struct wq *wq, void *dst, uint64_t len);
uint32_t wq_syndrome(int64_t error);

#endif /* ORNICD_ENGINE_WQ_H */
