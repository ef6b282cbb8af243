// SPDX-License-Identifier: GPL-2.0
/*
 * Resize: move a shared receive queue that is in use to a new ring (ORN-SRQ-17 to 26).
 *
 * Indices continue in the new ring, so both rings can hold the same entries before the device
 * switches. For a queue of a process, the provider copies the entries and the driver only pins
 * the new ring. Consumers of a queue of the kernel may post while the device executes the
 * command. Meanwhile post_srq_recv() posts to both rings, so the queue works no matter when
 * the device switches and whether the command succeeds.
 */
#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/srq.h>
#include <rdma/ornic-abi.h>

#include "srq.h"
#include "buf.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "ring.h"
#include "wq.h"

/* The arrays indexed by id; they grow before the ring does. */
struct ids {
	u32 *next;
	struct ornic_ib_wr *wr;
	u32 count;
};

static int ornic_srq_resize_in_device(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
				      const struct ornic_ib_ring *ring, const u32 *limit)
{
	struct ornic_srq_resize_cmd cmd = {
		.log_entries = ring->log,
		.flags = limit ? ORNIC_SRQ_RESIZE_LIMIT : 0,
		.limit = cpu_to_le32(limit ? *limit : 0),
		.record = ring->record,
		.pages = ring->pages,
	};

	return ornic_ib_cmd_srq_resize(dev, srq->srqn, &cmd);
}

static int ornic_srq_resize_user(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
				 u32 max_wr, const u32 *limit, struct ib_udata *udata)
{
	struct ornic_ib_ring ring = { .stride = srq->wq.stride };
	struct ornic_ureq_modify_srq req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	if (req.log_entries > dev->lim.log_srq || max_wr > BIT(req.log_entries))
		return -EINVAL;
	ring.log = req.log_entries;
	ret = ornic_ib_ring_pin(dev, &ring, req.buf_addr);
	if (!ret)
		ret = ornic_srq_resize_in_device(dev, srq, &ring, limit);
	if (!ret) {
		ornic_ib_srq_adopt(srq, &ring);
		srq->max_wr = max_wr;
	}
	ornic_ib_ring_free(dev, &ring);
	return ret;
}

static void ornic_ids_free(struct ids *ids)
{
	kvfree(ids->next);
	kvfree(ids->wr);
}

/* Allocate larger arrays if @entries needs them. They never shrink, since any id may be posted. */
static int ornic_ids_grow(struct ids *ids, const struct ornic_ib_srq *srq, u32 entries)
{
	*ids = (struct ids) { .count = entries };
	if (entries <= srq->ids)
		return 0;
	ids->next = kvzalloc_objs(*ids->next, entries);
	ids->wr = kvzalloc_objs(*ids->wr, entries);
	if (ids->next && ids->wr)
		return 0;
	ornic_ids_free(ids);
	return -ENOMEM;
}

/* Use the new arrays; on return @ids are the old ones. Context: the lock of the queue is held. */
static void ornic_ids_adopt(struct ids *ids, struct ornic_ib_srq *srq)
{
	if (!ids->next)
		return;
	memcpy(ids->next, srq->next, srq->ids * sizeof(*ids->next));
	memcpy(ids->wr, srq->wq.wr, srq->ids * sizeof(*ids->wr));
	swap(ids->next, srq->next);
	swap(ids->wr, srq->wq.wr);
	swap(ids->count, srq->ids);
}

static void ornic_copy_entries(const struct ornic_ib_srq *srq, const struct ornic_ib_ring *ring,
			       u32 first, u32 end)
{
	const struct ornic_ib_wq *wq = &srq->wq;

	for (; first != end; first++)
		memcpy(ornic_paged_entry(ring->kbuf.cpu, 0, first, ring->log, ring->stride),
		       ornic_ib_wqe(wq, first), BIT(wq->stride));
}

/**
 * ornic_ib_srq_post_coming() - copy newly posted entries to the new ring and publish them there
 * @dev: device
 * @srq: shared receive queue during a resize, the lock of its queue held
 * @first: first new entry; the caller publishes the entries in the old ring afterwards
 *	(ORN-SRQ-18)
 */
void ornic_ib_srq_post_coming(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq, u32 first)
{
	u32 end = srq->wq.prod;

	ornic_copy_entries(srq, srq->coming, first, end);
	ornic_ring_post(dev->odev, ORNIC_DB_SRQ, srq->srqn, ornic_ib_ring_rec(srq->coming), first,
			end);
}

/*
 * Copy the entries to the new ring; from then on consumers post to both rings. Until the end of the
 * resize no more entries may be posted than the smaller ring holds (ORN-SRQ-15).
 *
 * Return: false if more entries than that are outstanding.
 */
static bool ornic_srq_resize_begin(struct ornic_ib_srq *srq, struct ornic_ib_ring *ring,
				   struct ids *ids)
{
	u32 entries = BIT(min(ring->log, srq->wq.log));
	unsigned long flags;
	bool fits;

	spin_lock_irqsave(&srq->wq.lock, flags);
	ornic_ids_adopt(ids, srq);
	fits = ornic_ib_srq_use_ids(srq, entries);
	if (fits) {
		ornic_copy_entries(srq, ring, srq->wq.prod - entries, srq->wq.prod);
		ornic_ib_ring_rec(ring)->host_index = cpu_to_le32(srq->wq.prod);
		srq->coming = ring;
	}
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return fits;
}

/* End the resize. On return @ring is the one that the device does not use. */
static void ornic_srq_resize_finish(struct ornic_ib_srq *srq, struct ornic_ib_ring *ring, bool done)
{
	unsigned long flags;

	spin_lock_irqsave(&srq->wq.lock, flags);
	srq->coming = NULL;
	if (done)
		ornic_ib_srq_adopt(srq, ring);
	ornic_ib_srq_use_ids(srq, BIT(srq->wq.log));
	spin_unlock_irqrestore(&srq->wq.lock, flags);
}

static int ornic_srq_resize_kernel(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
				   u32 *max_wr, const u32 *limit)
{
	struct ornic_ib_ring ring = {
		.log = ornic_ib_srq_log(*max_wr),
		.stride = srq->wq.stride,
	};
	struct ids ids;
	int ret;

	ret = ornic_ids_grow(&ids, srq, BIT(ring.log));
	if (ret)
		return ret;
	ret = ornic_ib_ring_alloc(dev, &ring);
	if (!ret && !ornic_srq_resize_begin(srq, &ring, &ids))
		ret = -EINVAL;
	if (ret)
		goto out;
	ret = ornic_srq_resize_in_device(dev, srq, &ring, limit);
	ornic_srq_resize_finish(srq, &ring, !ret);
	if (!ret) {
		srq->max_wr = BIT(srq->wq.log);
		*max_wr = srq->max_wr;
	}
out:
	ornic_ib_ring_free(dev, &ring);
	ornic_ids_free(&ids);
	return ret;
}

/**
 * ornic_ib_srq_resize() - move a shared receive queue to a new ring
 * @dev: device
 * @srq: shared receive queue, its mutex held
 * @attr: max_wr, and srq_limit if @limit; for the kernel, max_wr is updated to the real size
 * @limit: also arm the limit
 * @udata: data of the provider, NULL for the kernel
 *
 * Context: process context, may sleep.
 *
 * Return: 0 or negative errno; -EINVAL if the new ring is too small for the outstanding entries
 * or for an armed limit. After an error nothing has changed.
 */
int ornic_ib_srq_resize(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
			struct ib_srq_attr *attr, bool limit, struct ib_udata *udata)
{
	if (!ornic_has(dev->odev, ORNIC_FEATURE(SRQ_RESIZE)))
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > BIT(dev->lim.log_srq) ||
	    (limit && attr->srq_limit > attr->max_wr))
		return -EINVAL;
	if (udata)
		return ornic_srq_resize_user(dev, srq, attr->max_wr,
					     limit ? &attr->srq_limit : NULL, udata);
	return ornic_srq_resize_kernel(dev, srq, &attr->max_wr,
				       limit ? &attr->srq_limit : NULL);
}
