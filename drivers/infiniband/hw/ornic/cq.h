/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues of processes and of the kernel.
 */
#ifndef ORNIC_IB_CQ_H
#define ORNIC_IB_CQ_H

#include <linux/cache.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>

#include "buf.h"
#include "event.h"

struct ornic_cq_query_rsp;
struct ornic_cqe;
struct ornic_ib_dev;
struct ornic_ib_qp;
struct ornic_ib_ring;

#define ORNIC_IB_CQE_LOG	6	/* log2 of ORNIC_ENTRY_BYTES */

/**
 * struct ornic_ib_cq - completion queue
 * @ibcq: ib_core's part
 * @comp: delivery of completion events
 * @ref: keeps the CQ while an event is delivered
 * @cqn: number in the device
 * @mutex: serialises resize, moderation and query with each other, with ornic_ib_cq_drop() and
 *	with destruction
 * @log_entries: log2 of its entries
 * @ubuf: ring and record of a process
 * @urec: record of a process, if it is not in @ubuf
 * @kbuf: ring and record of the kernel; @rec, @qps, @soft, @index, @arm, @used and
 *	@last are for these only
 * @rec: doorbell record
 * @qps: queue pairs that complete here, by handle; looked up under @lock
 * @soft: the driver generates the completions of at least one of @qps
 * @broken: the CQ is in error; the driver generates the completions of all @qps
 * @kick: runs the completion handler for completions that soft_flush.c generates
 * @comp_lock: serialises calls of the completion handler
 * @lock: protects the members that follow, place and entries of the ring, and the consumer
 *	index of every work queue that completes here
 * @index: next entry to consume
 * @arm: arming state
 * @closed: the CQ is being destroyed and its number not used, because another CQ may get it;
 *	also protected by @mutex
 * @used: a queue pair uses or used the CQ
 * @last: queue pair of the last polled entry, because the next is often of the same; NULL or
 *	in @qps
 *
 * Posting reads @soft, so it is not in a cache line that polling or an event writes.
 */
struct ornic_ib_cq {
	struct ib_cq ibcq;
	struct ornic_comp comp;
	struct ornic_ib_ref ref;
	u32 cqn;
	struct mutex mutex;	/* see above */
	u8 log_entries;
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_ubuf urec;

	struct ornic_ib_kbuf kbuf;
	struct ornic_rec *rec;
	struct xarray qps;
	bool soft;
	bool broken;
	struct work_struct kick;

	spinlock_t comp_lock ____cacheline_aligned_in_smp;	/* see above */
	spinlock_t lock;	/* see above */
	u32 index;
	struct ornic_arm arm;
	bool closed;
	bool used;
	struct ornic_ib_qp *last;
};

static inline struct ornic_ib_cq *to_ocq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct ornic_ib_cq, ibcq);
}

static inline struct ornic_cqe *ornic_ib_cqe(const struct ornic_ib_cq *cq, u32 index)
{
	return ornic_paged_entry(cq->kbuf.cpu, 0, index, cq->log_entries, ORNIC_IB_CQE_LOG);
}

/*
 * Return true if the consumer waits for a call of its completion handler. The caller holds the
 * lock. __ib_alloc_cq() arms a CQ before the handler can be called (6.1 to 7.2), but no queue pair
 * uses the CQ before it returns.
 */
static inline bool ornic_ib_cq_awaited(const struct ornic_ib_cq *cq)
{
	return cq->used && cq->arm.type != ORNIC_ARM_NONE;
}

/* cq.c */
int ornic_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs);
int ornic_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int ornic_ib_pre_destroy_cq(struct ib_cq *ibcq);
void ornic_ib_post_destroy_cq(struct ib_cq *ibcq);
int ornic_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int ornic_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int ornic_ib_cq_query(struct ornic_ib_cq *cq, struct ornic_cq_query_rsp *rsp);
int ornic_ib_cq_user_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
			  u8 log_entries, u32 entries, const struct uverbs_attr_bundle *attrs);
void ornic_ib_cq_call(struct ornic_ib_cq *cq);
void ornic_ib_cq_drop(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);
void ornic_ib_cq_forget(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);

/* poll_cq.c */
bool ornic_ib_cq_ready(const struct ornic_ib_cq *cq);
int ornic_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int ornic_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* cq_resize.c */
int ornic_ib_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata);

#endif
