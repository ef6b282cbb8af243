// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: create, destroy, moderate. cq_resize.c resizes them.
 *
 * Ring and doorbell record (ring.c) of a user CQ belong to the process, which polls and arms
 * without the driver. Those of a kernel CQ belong to the kernel; poll_cq.c polls and arms it.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/eq.h>
#include <rdma/ornic-abi.h>

#include "cq.h"
#include "buf.h"
#include "cmd.h"
#include "event.h"
#include "ornic_ib.h"
#include "pagelist.h"
#include "qp.h"
#include "ring.h"
#include "soft_flush.h"
#include "srq.h"
#include "ucontext.h"

static_assert(BIT(ORNIC_IB_CQE_LOG) == ORNIC_ENTRY_BYTES);

/**
 * ornic_ib_cq_call() - call the user's completion handler
 * @cq: completion queue
 *
 * Context: any. Takes @cq->comp_lock, so that calls of one CQ's handler do not overlap.
 */
void ornic_ib_cq_call(struct ornic_ib_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->comp_lock, flags);
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	spin_unlock_irqrestore(&cq->comp_lock, flags);
}

/*
 * Handle a completion event. A process counts the events of its own CQs (ORN-RNG-10). A kernel
 * consumer gets only an event that it waits for, because a faulty device may invent others.
 */
static void ornic_cq_comp(struct ornic_comp *comp)
{
	struct ornic_ib_cq *cq = container_of(comp, struct ornic_ib_cq, comp);
	unsigned long flags;
	bool due = true;

	if (cq->kbuf.cpu) {
		spin_lock_irqsave(&cq->lock, flags);
		due = ornic_ib_cq_awaited(cq);
		ornic_arm_event(&cq->arm);
		spin_unlock_irqrestore(&cq->lock, flags);
	}
	if (due)
		ornic_ib_cq_call(cq);
}

/* Overwritten entries of a CQ that the driver polls would look like those of a faulty device. */
static int ornic_check_attr(const struct ornic_ib_dev *dev, const struct ib_cq_init_attr *attr,
			    bool user)
{
	u32 known = 0;

	if (ornic_has(dev->odev, ORNIC_FEATURE(TIMESTAMP)))
		known |= IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	if (user && ornic_has(dev->odev, ORNIC_FEATURE(CQ_IGNORE_OVERRUN)))
		known |= IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	if (attr->flags & ~known) {
		ibdev_dbg(&dev->ibdev, "CQ flags %#x, known are %#x\n", attr->flags, known);
		return -EOPNOTSUPP;
	}
	if (attr->cqe && attr->cqe <= dev->lim.max_cqe &&
	    attr->comp_vector < dev->odev->comp_vectors)
		return 0;
	ibdev_dbg(&dev->ibdev, "CQ of %u entries on vector %u, limits are %u and %u\n",
		  attr->cqe, attr->comp_vector, dev->lim.max_cqe, dev->odev->comp_vectors - 1);
	return -EINVAL;
}

static u8 ornic_to_flags(const struct ib_cq_init_attr *attr)
{
	u8 flags = 0;

	if (attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		flags |= ORNIC_CQ_F_TIMESTAMP;
	if (attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		flags |= ORNIC_CQ_F_IGNORE_OVERRUN;
	return flags;
}

/**
 * ornic_ib_cq_user_ring() - check and pin ring and record of a process
 * @dev: device
 * @ring: to fill; the caller frees it by ornic_ib_ring_free(), also after an error
 * @addr: address that the process gave, see ornic_ib_ring_pin() and ornic_ib_ring_pin_cq()
 * @log_entries: log2 of the ring's entries according to the process
 * @entries: number of entries that the ring must hold
 * @attrs: attributes of the CQ's creation; NULL for a resize
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_cq_user_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
			  u8 log_entries, u32 entries, const struct uverbs_attr_bundle *attrs)
{
	if (log_entries > dev->lim.log_cq || entries > BIT(log_entries)) {
		ibdev_dbg(&dev->ibdev, "CQ ring of 2^%u for %u entries, limit is 2^%u\n",
			  log_entries, entries, dev->lim.log_cq);
		return -EINVAL;
	}
	ring->log = log_entries;
	ring->stride = ORNIC_IB_CQE_LOG;
	return attrs ? ornic_ib_ring_pin_cq(dev, ring, addr, attrs) :
		       ornic_ib_ring_pin(dev, ring, addr);
}

static int ornic_cq_user_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring,
			      const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct ornic_ureq_create_cq req;
	int ret;

	ret = ib_copy_validate_udata_in(&attrs->driver_udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	return ornic_ib_cq_user_ring(dev, ring, req.buf_addr, req.log_entries, attr->cqe, attrs);
}

static int ornic_cq_kernel_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring,
				const struct ib_cq_init_attr *attr)
{
	ring->log = order_base_2(attr->cqe);
	ring->stride = ORNIC_IB_CQE_LOG;
	return ornic_ib_ring_alloc(dev, ring);
}

/* Take over the buffers of @ring, which the device has accepted. */
static void ornic_adopt_ring(struct ornic_ib_cq *cq, const struct ornic_ib_ring *ring)
{
	cq->log_entries = ring->log;
	cq->ubuf = ring->ubuf;
	cq->urec = ring->urec;
	cq->kbuf = ring->kbuf;
	if (cq->kbuf.cpu)
		cq->rec = ornic_ib_ring_rec(ring);
}

static void ornic_cq_init_state(struct ornic_ib_cq *cq)
{
	mutex_init(&cq->mutex);
	spin_lock_init(&cq->lock);
	spin_lock_init(&cq->comp_lock);
	ornic_arm_init(&cq->arm);
	xa_init(&cq->qps);
	INIT_WORK(&cq->kick, ornic_ib_soft_kick);
	ornic_ib_ref_init(&cq->ref);
	cq->comp.comp = ornic_cq_comp;
}

static void ornic_cq_free_rings(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq)
{
	ornic_ib_ubuf_unpin(&cq->ubuf);
	ornic_ib_ubuf_unpin(&cq->urec);
	ornic_ib_kbuf_free(dev, &cq->kbuf);
}

/* Start the delivery of events; the CQ exists in the device. */
static int ornic_cq_publish(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq)
{
	unsigned int noio;
	int ret;

	noio = ornic_numbers_lock(dev->odev);
	ret = ornic_comp_add(dev->odev, cq->cqn, &cq->comp);
	if (!ret) {
		ret = xa_insert(&dev->cqs, cq->cqn, cq, GFP_KERNEL);
		if (ret)
			ornic_comp_del(dev->odev, cq->cqn);
	}
	ornic_numbers_unlock(dev->odev, noio);
	if (ret)
		return ornic_ib_number_error(dev, ret);
	/* pairs with ornic_ib_soft_device(): it finds the CQ, or dev->dead is true here */
	smp_mb();
	if (READ_ONCE(dev->dead))
		ornic_ib_soft_cq(dev, cq);
	return 0;
}

/*
 * On return no handler of the CQ's user runs or will be called. The CQ leaves the table before the
 * command: if the device dies meanwhile, soft_flush.c kicks all CQs in the table. Pending events
 * are processed before another CQ can get the number.
 */
static void ornic_cq_destroy_in_device(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq)
{
	mutex_lock(&cq->mutex);
	spin_lock_irq(&cq->lock);
	cq->closed = true;
	spin_unlock_irq(&cq->lock);
	mutex_unlock(&cq->mutex);

	down_read(&dev->odev->numbers);
	xa_erase(&dev->cqs, cq->cqn);
	ornic_ib_cmd_cq_destroy(dev, cq->cqn);
	ornic_comp_del(dev->odev, cq->cqn);
	ornic_event_flush(dev->odev);
	up_read(&dev->odev->numbers);
	ornic_ib_ref_drain(&cq->ref);
	cancel_work_sync(&cq->kick);
}

/* Pin the ring of the process or allocate one for the kernel, then create the CQ in the device. */
static int ornic_cq_create_in_device(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq,
				     const struct ib_cq_init_attr *attr,
				     struct uverbs_attr_bundle *attrs)
{
	u32 page = ornic_ib_caller_page(attrs ? &attrs->driver_udata : NULL);
	struct ornic_ib_ring ring = {};
	struct ornic_cq_create_cmd cmd = {
		.flags = ornic_to_flags(attr),
		.eq = cpu_to_le32(ornic_comp_vector_eq(dev->odev, attr->comp_vector)),
		.dbpage = cpu_to_le32(page),
		.owner = cpu_to_le32(page),
	};
	int ret;

	ret = attrs ? ornic_cq_user_ring(dev, &ring, attr, attrs) :
		      ornic_cq_kernel_ring(dev, &ring, attr);
	if (ret)
		goto err;
	cmd.log_entries = ring.log;
	cmd.record = ring.record;
	cmd.pages = ring.pages;
	ret = ornic_ib_cmd_cq_create(dev, &cmd, &cq->cqn);
	if (ret)
		goto err;
	ornic_adopt_ring(cq, &ring);
	cq->ibcq.cqe = attrs ? attr->cqe : BIT(cq->log_entries);
	ornic_ib_pagelist_free(dev, &ring.list);
	return 0;

err:
	ornic_ib_ring_free(dev, &ring);
	return ret;
}

static int ornic_cq_respond(struct ornic_ib_cq *cq, struct ib_udata *udata)
{
	struct ornic_uresp_create_cq resp = { .cqn = cq->cqn };

	return ib_respond_udata(udata, resp);
}

static int ornic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_ib_cq *cq = to_ocq(ibcq);
	int ret;

	ret = ornic_check_attr(dev, attr, attrs);
	if (ret)
		return ret;

	ornic_cq_init_state(cq);
	ret = ornic_cq_create_in_device(dev, cq, attr, attrs);
	if (ret)
		return ret;
	ret = ornic_cq_publish(dev, cq);
	if (ret)
		goto err_device;
	if (attrs)
		ret = ornic_cq_respond(cq, &attrs->driver_udata);
	if (!ret)
		return 0;

	ornic_cq_destroy_in_device(dev, cq);
	goto err_rings;
err_device:
	ornic_ib_cmd_cq_destroy(dev, cq->cqn);
err_rings:
	ornic_cq_free_rings(dev, cq);
	return ret;
}

int ornic_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs)
{
	return ornic_create_cq(ibcq, attr, NULL);
}

int ornic_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	return ornic_create_cq(ibcq, attr, attrs);
}

/*
 * Destroy a CQ of the kernel in two steps. ib_free_cq() stops its own polling between
 * pre_destroy_cq() and post_destroy_cq() (6.12 and 7.2): the polling reads the ring, and no event
 * may queue it again once it has stopped. With destroy_cq() alone, an event or a kick after the
 * stop would make ib_core poll a freed CQ.
 */
int ornic_ib_pre_destroy_cq(struct ib_cq *ibcq)
{
	ornic_cq_destroy_in_device(to_oib(ibcq->device), to_ocq(ibcq));
	return 0;
}

void ornic_ib_post_destroy_cq(struct ib_cq *ibcq)
{
	ornic_cq_free_rings(to_oib(ibcq->device), to_ocq(ibcq));
}

/* Destroy a CQ of a process, or one that a kernel consumer created by ib_create_cq(). */
int ornic_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	ornic_ib_pre_destroy_cq(ibcq);
	ornic_ib_post_destroy_cq(ibcq);
	return 0;
}

/* ib_free_cq() stops the moderation of a CQ after pre_destroy_cq() (7.2). */
int ornic_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_ib_cq *cq = to_ocq(ibcq);
	const struct ornic_identify_device *id = &dev->odev->id;
	struct ornic_moderate_cmd cmd = {
		.mask = cpu_to_le32(ORNIC_MODERATE_TIMING),
		.mod_count = cpu_to_le16(count),
		.mod_period_us = cpu_to_le16(period),
	};
	int ret;

	if (count > le16_to_cpu(id->max_mod_count) || period > le16_to_cpu(id->max_mod_period_us))
		return -EINVAL;
	mutex_lock(&cq->mutex);
	ret = cq->closed ? -EINVAL : ornic_ib_cmd_cq_modify(dev, cq->cqn, &cmd);
	mutex_unlock(&cq->mutex);
	return ret;
}

/**
 * ornic_ib_cq_query() - query a CQ that may be being destroyed
 * @cq: completion queue
 * @rsp: for the answer of the device
 *
 * Context: process context, may sleep. Return: 0, -ENOENT if the device no longer has the CQ, or
 * another negative errno.
 */
int ornic_ib_cq_query(struct ornic_ib_cq *cq, struct ornic_cq_query_rsp *rsp)
{
	struct ornic_ib_dev *dev = to_oib(cq->ibcq.device);
	int ret;

	mutex_lock(&cq->mutex);
	ret = cq->closed ? -ENOENT : ornic_ib_cmd_cq_query(dev, cq->cqn, rsp);
	mutex_unlock(&cq->mutex);
	return ret;
}

/**
 * ornic_ib_cq_drop() - drop the unpolled entries of a queue pair (ORN-CQ-19)
 * @cq: completion queue of the kernel
 * @qp: queue pair for which the device writes no more entries
 *
 * Also frees the SRQ entries of its receive completions. Frees none for a completion with the
 * number of another SRQ, which polling rejects, too (ORN-SRQ-15).
 *
 * Context: the caller holds the mutex and the lock of the CQ. During a resize, which has the mutex,
 * entries may already be in the new ring.
 */
void ornic_ib_cq_drop(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp)
{
	struct ib_srq *ibsrq = qp->ibqp.srq;
	struct ornic_cqe *cqe;
	u64 wr_id;
	u32 i;

	lockdep_assert_held(&cq->mutex);
	lockdep_assert_held(&cq->lock);

	for (i = 0; i < BIT(cq->log_entries); i++) {
		cqe = ornic_ib_cqe(cq, cq->index + i);
		if (!ornic_entry_ready(cqe, cq->index + i, cq->log_entries))
			break;
		if ((le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK) != qp->qpn)
			continue;
		if (ibsrq && (cqe->opcode & ORNIC_WC_RECV_BIT) &&
		    le32_to_cpu(cqe->srqn) == to_osrq(ibsrq)->srqn)
			ornic_ib_srq_retire(to_osrq(ibsrq), le32_to_cpu(cqe->wqe_id), 0,
					    &wr_id);
		cqe->qpn = cpu_to_le32(ORNIC_CQE_DROPPED);
	}
}

/**
 * ornic_ib_cq_forget() - remove the remaining references of a CQ to a queue pair
 * @cq: completion queue of the kernel
 * @qp: queue pair, no longer in the table of the CQ
 *
 * Context: process context, takes the mutex of the CQ. On return polling does not use the queue
 * pair.
 */
void ornic_ib_cq_forget(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp)
{
	mutex_lock(&cq->mutex);
	spin_lock_irq(&cq->lock);
	ornic_ib_cq_drop(cq, qp);
	if (cq->last == qp)
		cq->last = NULL;
	spin_unlock_irq(&cq->lock);
	mutex_unlock(&cq->mutex);
}
