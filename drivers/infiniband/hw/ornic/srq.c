// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: create, modify, query, destroy, post. srq_resize.c resizes them.
 *
 * Ring and doorbell record (ring.c) belong to the process or to the kernel. The device takes
 * entries in ring order and completes them in any order, so each entry has an id that its
 * completion contains. For a queue of the kernel the driver allocates ids from a free list.
 * There are as many ids as slots in the ring. Therefore the next slot may be written
 * whenever an id is free (ORN-SRQ-1).
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/srq.h>
#include <rdma/ornic-abi.h>

#include "srq.h"
#include "buf.h"
#include "cmd.h"
#include "cq.h"
#include "event.h"
#include "ornic_ib.h"
#include "pd.h"
#include "post.h"
#include "ring.h"
#include "ucontext.h"
#include "wq.h"
#include "xrcd.h"

static_assert((int)ORNIC_SRQT_BASIC == IB_SRQT_BASIC);
static_assert((int)ORNIC_SRQT_XRC == IB_SRQT_XRC);

static int ornic_srq_check_init(const struct ornic_ib_dev *dev, const struct ib_srq_init_attr *attr,
				bool user)
{
	const struct ornic_ib_limits *lim = &dev->lim;

	if (attr->srq_type == IB_SRQT_XRC) {
		if (!user || !ornic_has(dev->odev, ORNIC_FEATURE(XRC)))
			return -EOPNOTSUPP;
		if (!attr->ext.cq || !attr->ext.xrc.xrcd)
			return -EINVAL;
	} else if (attr->srq_type != IB_SRQT_BASIC) {
		return -EOPNOTSUPP;
	}
	if (!attr->attr.max_wr || attr->attr.max_wr > BIT(lim->log_srq) ||
	    attr->attr.max_sge > lim->srq_sge) {
		ibdev_dbg(&dev->ibdev, "SRQ of %u entries with %u SGEs, limits are %lu and %u\n",
			  attr->attr.max_wr, attr->attr.max_sge, BIT(lim->log_srq), lim->srq_sge);
		return -EINVAL;
	}
	return 0;
}

static int ornic_srq_user_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring,
			       const struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct ornic_ureq_create_srq req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	if (req.log_entries > dev->lim.log_srq || attr->attr.max_wr > BIT(req.log_entries) ||
	    req.stride < ORNIC_RQ_MIN_STRIDE || req.stride > dev->lim.rq_stride ||
	    ornic_ib_rq_bytes(attr->attr.max_sge) > BIT(req.stride)) {
		ibdev_dbg(&dev->ibdev, "SRQ ring of 2^%u entries of 2^%u bytes, too large or small\n",
			  req.log_entries, req.stride);
		return -EINVAL;
	}
	ring->log = req.log_entries;
	ring->stride = req.stride;
	return ornic_ib_ring_pin(dev, ring, req.buf_addr);
}

/**
 * ornic_ib_srq_log() - return log2 of the entries of a ring of the kernel
 * @max_wr: entries that the consumer requests; the ring has at least two, which align the
 *	record behind it
 */
u8 ornic_ib_srq_log(u32 max_wr)
{
	return order_base_2(max_t(u32, max_wr, 2));
}

static int ornic_srq_kernel_ring(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
				 struct ornic_ib_ring *ring, struct ib_srq_init_attr *attr)
{
	int ret;

	attr->attr.max_sge = max_t(u32, attr->attr.max_sge, 1);
	ring->log = ornic_ib_srq_log(attr->attr.max_wr);
	ring->stride = max_t(u8, order_base_2(ornic_ib_rq_bytes(attr->attr.max_sge)),
			     ORNIC_RQ_MIN_STRIDE);
	srq->wq.max_sge = attr->attr.max_sge;
	attr->attr.max_wr = BIT(ring->log);
	ret = ornic_ib_srq_make_ids(srq, BIT(ring->log));
	return ret ? ret : ornic_ib_ring_alloc(dev, ring);
}

/**
 * ornic_ib_srq_adopt() - switch to a ring that the device uses
 * @srq: shared receive queue; for one of the kernel that consumers can post to, the lock of
 *	its queue is held
 * @ring: the new ring; on return the previous one
 */
void ornic_ib_srq_adopt(struct ornic_ib_srq *srq, struct ornic_ib_ring *ring)
{
	srq->wq.cpu = ring->kbuf.cpu;
	srq->wq.rec = ring->kbuf.cpu ? ornic_ib_ring_rec(ring) : NULL;
	srq->wq.stride = ring->stride;
	swap(srq->wq.log, ring->log);
	swap(srq->ubuf, ring->ubuf);
	swap(srq->kbuf, ring->kbuf);
}

static void ornic_srq_free_rings(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq)
{
	kvfree(srq->next);
	kvfree(srq->wq.wr);
	ornic_ib_kbuf_free(dev, &srq->kbuf);
	ornic_ib_ubuf_unpin(&srq->ubuf);
}

/*
 * Set the XRC attributes. Messages of all processes in the XRC domain use the entries of such a
 * queue, and all of them complete in one CQ.
 */
static void ornic_fill_xrc(const struct ib_srq_init_attr *attr, struct ornic_srq_create_cmd *cmd)
{
	if (attr->srq_type != IB_SRQT_XRC)
		return;
	cmd->xrcd = cpu_to_le32(container_of(attr->ext.xrc.xrcd, struct ornic_ib_xrcd,
					     ibxrcd)->xrcdn);
	cmd->cq = cpu_to_le32(to_ocq(attr->ext.cq)->cqn);
}

/*
 * Pin the ring of the process or allocate one for the kernel, then create the SRQ in the device.
 * Ignore srq_limit, which need not be initialised: consumers arm the limit by a modify.
 */
static int ornic_srq_create_in_device(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
				      struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	u32 page = ornic_ib_caller_page(udata);
	struct ornic_ib_ring ring = {};
	struct ornic_srq_create_cmd cmd = {
		.type = attr->srq_type,
		.flags = udata ? 0 : ORNIC_SRQ_F_PRIVILEGED,
		.pd = cpu_to_le32(to_opd(srq->ibsrq.pd)->pdn),
		.dbpage = cpu_to_le32(page),
		.owner = cpu_to_le32(page),
	};
	int ret;

	if (udata)
		ret = ornic_srq_user_ring(dev, &ring, attr, udata);
	else
		ret = ornic_srq_kernel_ring(dev, srq, &ring, attr);
	if (!ret) {
		cmd.log_entries = ring.log;
		cmd.stride = ring.stride;
		cmd.record = ring.record;
		cmd.pages = ring.pages;
		cmd.max_sge = cpu_to_le16(attr->attr.max_sge);
		ornic_fill_xrc(attr, &cmd);
		ret = ornic_ib_cmd_srq_create(dev, &cmd, &srq->srqn);
	}
	if (!ret) {
		srq->max_wr = attr->attr.max_wr;
		srq->max_sge = attr->attr.max_sge;
		ornic_ib_srq_adopt(srq, &ring);
	}
	ornic_ib_ring_free(dev, &ring);
	return ret;
}

/* Let events find the SRQ. */
static int ornic_srq_publish(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq)
{
	unsigned int noio;
	int ret;

	noio = ornic_numbers_lock(dev->odev);
	ret = xa_insert(&dev->srqs, srq->srqn, srq, GFP_KERNEL);
	ornic_numbers_unlock(dev->odev, noio);
	return ornic_ib_number_error(dev, ret);
}

/* Destroy the SRQ in the device. On return no event of it is being or will be delivered. */
static void ornic_srq_destroy_in_device(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq)
{
	down_read(&dev->odev->numbers);
	ornic_ib_cmd_srq_destroy(dev, srq->srqn);
	ornic_event_flush(dev->odev);
	xa_erase(&dev->srqs, srq->srqn);
	ornic_ib_ref_drain(&srq->ref);
	up_read(&dev->odev->numbers);
}

static int ornic_srq_respond(struct ornic_ib_srq *srq, struct ib_udata *udata)
{
	struct ornic_uresp_create_srq resp = { .srqn = srq->srqn };

	return ib_respond_udata(udata, resp);
}

int ornic_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
			struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	struct ornic_ib_srq *srq = to_osrq(ibsrq);
	int ret;

	ret = ornic_srq_check_init(dev, attr, udata);
	if (ret)
		return ret;

	mutex_init(&srq->modify);
	spin_lock_init(&srq->wq.lock);
	ornic_ib_ref_init(&srq->ref);
	ret = ornic_srq_create_in_device(dev, srq, attr, udata);
	if (ret)
		goto err_rings;
	ret = ornic_srq_publish(dev, srq);
	if (ret)
		goto err_device;
	if (attr->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = srq->srqn;
	if (udata)
		ret = ornic_srq_respond(srq, udata);
	if (!ret)
		return 0;

	ornic_srq_destroy_in_device(dev, srq);
	goto err_rings;
err_device:
	ornic_ib_cmd_srq_destroy(dev, srq->srqn);
err_rings:
	ornic_srq_free_rings(dev, srq);
	return ret;
}

int ornic_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	struct ornic_ib_srq *srq = to_osrq(ibsrq);

	ornic_srq_destroy_in_device(dev, srq);
	ornic_srq_free_rings(dev, srq);
	return 0;
}

static int ornic_set_limit(struct ornic_ib_dev *dev, const struct ornic_ib_srq *srq, u32 limit)
{
	struct ornic_srq_modify_cmd cmd = {
		.mask = cpu_to_le32(ORNIC_SRQM_LIMIT),
		.limit = cpu_to_le32(limit),
	};

	if (limit > srq->max_wr)
		return -EINVAL;
	return ornic_ib_cmd_srq_modify(dev, srq->srqn, &cmd);
}

int ornic_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	struct ornic_ib_srq *srq = to_osrq(ibsrq);
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_MAX_WR))
		ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	mutex_lock(&srq->modify);
	if (mask & IB_SRQ_MAX_WR)
		ret = ornic_ib_srq_resize(dev, srq, attr, mask & IB_SRQ_LIMIT, udata);
	else if (mask & IB_SRQ_LIMIT)
		ret = ornic_set_limit(dev, srq, attr->srq_limit);
	mutex_unlock(&srq->modify);
	return ret;
}

int ornic_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct ornic_ib_srq *srq = to_osrq(ibsrq);
	struct ornic_srq_query_rsp rsp;
	int ret;

	ret = ornic_ib_cmd_srq_query(to_oib(ibsrq->device), srq->srqn, &rsp);
	if (ret)
		return ret;
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le32_to_cpu(rsp.attr.limit);
	return 0;
}

/* Context: the lock of the queue is held. */
static int ornic_srq_post_one(struct ornic_ib_srq *srq, const struct ib_recv_wr *wr)
{
	struct ornic_ib_wr kept = { .id = wr->wr_id };
	struct ornic_ib_wq *wq = &srq->wq;
	u32 id;

	if (wr->num_sge < 0 || wr->num_sge > wq->max_sge)
		return -EINVAL;
	kept.room = ornic_ib_recv_room(wr);
	if (!ornic_ib_srq_take_id(srq, &kept, &id))
		return -ENOMEM;
	ornic_ib_put_rwqe(wq, wq->prod, id, wr);
	wq->prod++;
	return 0;
}

int ornic_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	struct ornic_ib_srq *srq = to_osrq(ibsrq);
	struct ornic_ib_wq *wq = &srq->wq;
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&wq->lock, flags);
	first = wq->prod;
	while (wr && !ret) {
		ret = ornic_srq_post_one(srq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (wq->prod != first) {
		if (unlikely(srq->coming))
			ornic_ib_srq_post_coming(dev, srq, first);
		ornic_ring_post(dev->odev, ORNIC_DB_SRQ, srq->srqn, wq->rec, first, wq->prod);
	}
	spin_unlock_irqrestore(&wq->lock, flags);

	if (ret && bad_wr)
		*bad_wr = wr;
	return ret;
}
