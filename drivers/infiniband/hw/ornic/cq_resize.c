// SPDX-License-Identifier: GPL-2.0
/*
 * Resize: move a completion queue that is in use to a new ring (ORN-CQ-20 to 28).
 *
 * The device switches rings at one index and reports that index of the old ring.
 * Entries before it stay in the old ring, and the polling side copies those that
 * it has not consumed to the new ring. For a queue of a process, the provider
 * copies them and the driver only pins the new ring. A queue of the kernel is
 * polled and armed in the old ring until the command has completed.
 *
 * Rings are allocated before the mutex of the CQ is taken: such an allocation may do I/O, and the
 * destruction of a queue pair waits for the mutex under odev->numbers (core.h).
 */
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/cq.h>
#include <rdma/ornic-abi.h>

#include "cq.h"
#include "buf.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "ring.h"

/* Check the reported indices: copying more entries than a ring holds would exceed it. */
static int ornic_check_switch(struct ornic_ib_dev *dev, const struct ornic_ib_cq *cq, u8 log,
			      const struct ornic_cq_resize_rsp *at)
{
	u32 unpolled = le32_to_cpu(at->producer) - le32_to_cpu(at->consumer);

	if (unpolled <= BIT(cq->log_entries) && unpolled <= BIT(log))
		return 0;
	ornic_device_malformed(dev->odev, "impossible indices of a resized completion queue");
	return -EIO;
}

static int ornic_cq_resize_in_device(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq,
				     const struct ornic_ib_ring *ring,
				     struct ornic_cq_resize_rsp *at)
{
	struct ornic_cq_resize_cmd cmd = {
		.log_entries = ring->log,
		.record = ring->record,
		.pages = ring->pages,
	};
	int ret;

	ret = ornic_ib_cmd_cq_resize(dev, cq->cqn, &cmd, at);
	return ret ? ret : ornic_check_switch(dev, cq, ring->log, at);
}

static int ornic_cq_resize_user(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq,
				u32 entries, struct ib_udata *udata)
{
	struct ornic_uresp_resize_cq resp = {};
	struct ornic_ib_ring ring = {};
	struct ornic_cq_resize_rsp at;
	struct ornic_ureq_resize_cq req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	ret = ornic_ib_cq_user_ring(dev, &ring, req.buf_addr, req.log_entries, entries, NULL);
	if (ret)
		goto out;
	mutex_lock(&cq->mutex);
	ret = ornic_cq_resize_in_device(dev, cq, &ring, &at);
	if (!ret) {
		swap(cq->ubuf, ring.ubuf);
		swap(cq->urec, ring.urec);
		cq->log_entries = ring.log;
		cq->ibcq.cqe = entries;
		resp.producer = le32_to_cpu(at.producer);
		resp.consumer = le32_to_cpu(at.consumer);
	}
	mutex_unlock(&cq->mutex);
out:
	ornic_ib_ring_free(dev, &ring);
	return ret ? ret : ib_respond_udata(udata, resp);
}

/* Copy the unpolled entries and switch to the new ring. On return @ring is the old one. */
static int ornic_switch_kernel(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq,
			       struct ornic_ib_ring *ring, u32 producer, u32 consumer)
{
	struct ornic_rec *rec = ornic_ib_ring_rec(ring);
	struct ornic_rec *old = cq->rec;
	struct ornic_cqe *cqe;
	u32 i;

	if (cq->index - consumer > producer - consumer) {
		ornic_device_malformed(dev->odev, "resized completion queue lost entries");
		return -EIO;
	}
	for (i = cq->index; i != producer; i++) {
		cqe = ornic_paged_entry(ring->kbuf.cpu, 0, i - consumer, ring->log,
					ORNIC_IB_CQE_LOG);
		*cqe = *ornic_ib_cqe(cq, i);
		cqe->phase |= ORNIC_PHASE;
	}
	swap(cq->kbuf, ring->kbuf);
	swap(cq->log_entries, ring->log);
	cq->rec = rec;
	cq->index -= consumer;
	ornic_rec_consumed(cq->rec, cq->index);
	ornic_rec_rearm(dev->odev, cq->rec, old, consumer, ORNIC_DB_CQ_ARM, cq->cqn);
	return 0;
}

static int ornic_cq_resize_kernel(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq,
				  u32 entries)
{
	struct ornic_ib_ring ring = {
		.log = order_base_2(entries),
		.stride = ORNIC_IB_CQE_LOG,
	};
	struct ornic_cq_resize_rsp at;
	unsigned long flags;
	int ret;

	ret = ornic_ib_ring_alloc(dev, &ring);
	if (ret)
		goto out;
	mutex_lock(&cq->mutex);
	ret = ornic_cq_resize_in_device(dev, cq, &ring, &at);
	if (!ret) {
		spin_lock_irqsave(&cq->lock, flags);
		ret = ornic_switch_kernel(dev, cq, &ring, le32_to_cpu(at.producer),
					  le32_to_cpu(at.consumer));
		spin_unlock_irqrestore(&cq->lock, flags);
	}
	if (!ret)
		cq->ibcq.cqe = BIT(cq->log_entries);
	mutex_unlock(&cq->mutex);
out:
	ornic_ib_ring_free(dev, &ring);
	return ret;
}

int ornic_ib_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_ib_cq *cq = to_ocq(ibcq);

	if (!entries || entries > dev->lim.max_cqe)
		return -EINVAL;
	if (udata)
		return ornic_cq_resize_user(dev, cq, entries, udata);
	return ornic_cq_resize_kernel(dev, cq, entries);
}
