/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Send, receive and shared receive queues: rings of the kernel, and the size of an entry.
 * rwq.h has the work queues of verbs (struct ib_wq).
 */
#ifndef ORNIC_IB_WQ_H
#define ORNIC_IB_WQ_H

#include <linux/cache.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/ring.h>

#include "buf.h"

struct ornic_rec;

/**
 * struct ornic_ib_wr - copy of a posted work request's attributes
 * @id: the consumer's id
 * @room: bytes of a receive's buffers
 * @reported: it has an entry in the CQ even if it succeeds: a signaled send or a receive; not
 *            used for an SRQ
 */
struct ornic_ib_wr {
	u64 id;
	u32 room;
	bool reported;
};

/**
 * struct ornic_ib_wq - send or receive queue of the kernel
 * @cpu: pages of the buffer in which the ring lies
 * @at: offset of the ring in the buffer, in bytes
 * @rec: doorbell record
 * @wr: work request of each entry
 * @log: log2 of the entries
 * @stride: log2 bytes of an entry
 * @max_sge: SGEs of a work request
 * @max_inline: inline bytes of a work request
 * @lock: protects posting: @prod, the entries and @wr up to it
 * @prod: next entry to post; read without lock by polling
 * @cons: oldest entry not completed; written under the lock of the CQ
 *
 * The members that posting writes and that polling writes lie in separate cache lines, because
 * posting and polling run on different processors.
 */
struct ornic_ib_wq {
	void **cpu;
	size_t at;
	struct ornic_rec *rec;
	struct ornic_ib_wr *wr;
	u8 log;
	u8 stride;
	u16 max_sge;
	u16 max_inline;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* see above */
	u32 prod;

	u32 cons ____cacheline_aligned_in_smp;
};

/* Return the entry of a free-running index. */
static inline void *ornic_ib_wqe(const struct ornic_ib_wq *wq, u32 index)
{
	return ornic_paged_entry(wq->cpu, wq->at, index, wq->log, wq->stride);
}

/* qp_queues.c */
u32 ornic_ib_sq_bytes(enum ib_qp_type type, u32 sges, u32 inline_bytes);
u32 ornic_ib_rq_bytes(u32 sges);
void ornic_ib_wq_reset(struct ornic_ib_wq *wq);

#endif
