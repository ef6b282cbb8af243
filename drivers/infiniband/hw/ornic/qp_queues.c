// SPDX-License-Identifier: GPL-2.0
/*
 * The rings of a queue pair: size, layout, and description for the create
 * command.
 *
 * Both rings and their records lie in one buffer, in the order of
 * rdma/ornic-abi.h, for processes and for the kernel. The provider allocates the
 * buffer of a process and the driver checks it. The driver allocates the buffer
 * of the kernel.
 */
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/wqe.h>
#include <rdma/ornic-abi.h>

#include "qp.h"
#include "buf.h"
#include "ornic_ib.h"
#include "pagelist.h"
#include "wq.h"

/* Offsets of the rings and records in the buffer, and its size, in bytes. */
struct layout {
	u64 sq;
	u64 rq;
	u64 sq_rec;
	u64 rq_rec;
	u64 size;
};

/* Return the bytes of a send entry with @sges SGEs or @inline_bytes of inline data. */
u32 ornic_ib_sq_bytes(enum ib_qp_type type, u32 sges, u32 inline_bytes)
{
	u32 data = max_t(u32, sges * sizeof(struct ornic_sge), inline_bytes);
	u32 atomic = sizeof(struct ornic_wqe_atomic) + sizeof(struct ornic_sge);

	if (type == IB_QPT_RAW_PACKET)
		return sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_wqe_eth) + data;
	if (!ornic_ib_connected(type))
		return sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_path) + data;
	return sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_wqe_remote) + max(data, atomic);
}

/* Return the bytes of a receive entry with @sges SGEs. */
u32 ornic_ib_rq_bytes(u32 sges)
{
	return sizeof(struct ornic_rwqe) + sges * sizeof(struct ornic_sge);
}

static u64 ornic_queue_bytes(u8 log, u8 stride)
{
	return log == ORNIC_NO_RING ? 0 : 1ULL << (log + stride);
}

static void ornic_lay_out(const struct ornic_ib_geom *geom, struct layout *at)
{
	at->sq = 0;
	at->rq = at->sq + ornic_queue_bytes(geom->sq_log, geom->sq_stride);
	if (geom->rq_log != ORNIC_NO_RING)
		at->rq = ALIGN(at->rq, 1ULL << geom->rq_stride);
	at->sq_rec = at->rq + ornic_queue_bytes(geom->rq_log, geom->rq_stride);
	at->rq_rec = at->sq_rec + sizeof(struct ornic_rec);
	at->size = at->rq_rec + sizeof(struct ornic_rec);
}

/* Check the size of a ring. It may be missing if the capabilities request no entries. */
static int ornic_check_ring(u8 log, u8 stride, u8 max_log, u8 min_stride, u8 max_stride, u32 wrs,
			    u32 entry_bytes)
{
	if (log == ORNIC_ABI_NO_RING)
		return stride || wrs ? -EINVAL : 0;
	if (log > max_log || stride < min_stride || stride > max_stride)
		return -EINVAL;
	if (wrs > BIT(log) || entry_bytes > BIT(stride))
		return -EINVAL;
	/* the ring or record behind this ring needs the alignment of a record */
	return ornic_queue_bytes(log, stride) < sizeof(struct ornic_rec) ? -EINVAL : 0;
}

static int ornic_check_geom(const struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
			    const struct ornic_ib_geom *geom)
{
	const struct ornic_ib_limits *lim = &dev->lim;
	const struct ib_qp_cap *cap = &qp->cap;
	int ret;

	if (qp->wq && geom->sq_log != ORNIC_ABI_NO_RING)
		return -EINVAL;
	if (qp->ibqp.srq || ornic_ib_is_xrc(qp->ibqp.qp_type)) {
		if (geom->rq_log != ORNIC_ABI_NO_RING)
			return -EINVAL;
	} else if (geom->sq_log == ORNIC_ABI_NO_RING && geom->rq_log == ORNIC_ABI_NO_RING) {
		return -EINVAL;
	}
	ret = ornic_check_ring(geom->sq_log, geom->sq_stride, lim->log_sq, ORNIC_SQ_MIN_STRIDE,
			       lim->sq_stride, cap->max_send_wr,
			       ornic_ib_sq_bytes(qp->ibqp.qp_type, cap->max_send_sge,
						 cap->max_inline_data));
	if (ret)
		return ret;
	return ornic_check_ring(geom->rq_log, geom->rq_stride, lim->log_rq, ORNIC_RQ_MIN_STRIDE,
				lim->rq_stride, cap->max_recv_wr,
				ornic_ib_rq_bytes(cap->max_recv_sge));
}

/**
 * ornic_ib_no_queues() - initialise an XRC target, which has neither rings nor capabilities
 * @qp: queue pair
 */
void ornic_ib_no_queues(struct ornic_ib_qp *qp)
{
	qp->cap = (struct ib_qp_cap) {};
	qp->geom.sq_log = ORNIC_NO_RING;
	qp->geom.rq_log = ORNIC_NO_RING;
}

/**
 * ornic_ib_user_queues() - check and pin the rings of a process
 * @dev: device
 * @qp: queue pair, its type and capabilities filled in
 * @udata: data of the provider
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_user_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp, struct ib_udata *udata)
{
	struct ornic_ureq_create_qp req;
	struct layout at;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	if (!PAGE_ALIGNED(req.buf_addr))
		return -EINVAL;
	qp->geom.sq_log = req.sq_log;
	qp->geom.sq_stride = req.sq_stride;
	qp->geom.rq_log = req.rq_log;
	qp->geom.rq_stride = req.rq_stride;
	ret = ornic_check_geom(dev, qp, &qp->geom);
	if (ret) {
		ibdev_dbg(&dev->ibdev, "QP rings of 2^%u * 2^%u and 2^%u * 2^%u bytes, too large or small\n",
			  req.sq_log, req.sq_stride, req.rq_log, req.rq_stride);
		return ret;
	}
	ornic_lay_out(&qp->geom, &at);
	return ornic_ib_ubuf_pin(dev, &qp->ubuf, req.buf_addr, at.size, req.buf_addr,
				 IB_ACCESS_LOCAL_WRITE);
}

/* Return log2 of a kernel ring's entries. Two entries at least, which aligns the records. */
static u8 ornic_kernel_log(u32 wrs)
{
	return order_base_2(max_t(u32, wrs, 2));
}

static void ornic_kernel_geom(struct ornic_ib_qp *qp)
{
	struct ib_qp_cap *cap = &qp->cap;
	struct ornic_ib_geom *geom = &qp->geom;

	cap->max_send_sge = max_t(u32, cap->max_send_sge, 1);
	geom->sq_log = ornic_kernel_log(cap->max_send_wr);
	geom->sq_stride = order_base_2(ornic_ib_sq_bytes(qp->ibqp.qp_type, cap->max_send_sge,
							 cap->max_inline_data));
	geom->sq_stride = max_t(u8, geom->sq_stride, ORNIC_SQ_MIN_STRIDE);
	cap->max_send_wr = BIT(geom->sq_log);
	if (qp->ibqp.srq) {
		geom->rq_log = ORNIC_NO_RING;
		return;
	}
	cap->max_recv_sge = max_t(u32, cap->max_recv_sge, 1);
	geom->rq_log = ornic_kernel_log(cap->max_recv_wr);
	geom->rq_stride = order_base_2(ornic_ib_rq_bytes(cap->max_recv_sge));
	geom->rq_stride = max_t(u8, geom->rq_stride, ORNIC_RQ_MIN_STRIDE);
	cap->max_recv_wr = BIT(geom->rq_log);
}

static int ornic_wq_init(struct ornic_ib_wq *wq, u8 log, u8 stride, u32 max_sge)
{
	wq->wr = kvzalloc_objs(*wq->wr, BIT(log));
	if (!wq->wr)
		return -ENOMEM;
	wq->log = log;
	wq->stride = stride;
	wq->max_sge = max_sge;
	return 0;
}

/**
 * ornic_ib_kernel_queues() - allocate the rings of a queue pair of the kernel
 * @dev: device
 * @qp: queue pair, its type and capabilities filled in; the capabilities are updated to
 *	the real sizes
 *
 * The caller frees by ornic_ib_queues_free(), also after an error.
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_kernel_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	struct layout at;
	int ret;

	ornic_kernel_geom(qp);
	ret = ornic_check_geom(dev, qp, &qp->geom);
	if (ret)
		return ret;
	ornic_lay_out(&qp->geom, &at);
	ret = ornic_ib_kbuf_alloc(dev, &qp->kbuf, at.size);
	if (!ret)
		ret = ornic_wq_init(&qp->sq, qp->geom.sq_log, qp->geom.sq_stride,
				    qp->cap.max_send_sge);
	if (!ret && qp->geom.rq_log != ORNIC_NO_RING)
		ret = ornic_wq_init(&qp->rq, qp->geom.rq_log, qp->geom.rq_stride,
				    qp->cap.max_recv_sge);
	if (ret)
		return ret;

	qp->sq.cpu = qp->kbuf.cpu;
	qp->rq.cpu = qp->kbuf.cpu;
	qp->sq.at = at.sq;
	qp->rq.at = at.rq;
	qp->sq.rec = ornic_ib_kbuf_at(&qp->kbuf, at.sq_rec);
	qp->rq.rec = ornic_ib_kbuf_at(&qp->kbuf, at.rq_rec);
	qp->sq.max_inline = qp->cap.max_inline_data;
	ornic_rec_init(qp->sq.rec);
	ornic_rec_init(qp->rq.rec);
	return 0;
}

/* Free the rings of a queue pair, also after one of the functions above failed. */
void ornic_ib_queues_free(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	kvfree(qp->sq.wr);
	kvfree(qp->rq.wr);
	ornic_ib_kbuf_free(dev, &qp->kbuf);
	ornic_ib_ubuf_unpin(&qp->ubuf);
}

/**
 * ornic_ib_wq_reset() - empty a queue of the kernel
 * @wq: queue whose queue pair is in RESET, so the device does not access the
 *	record before INIT
 *
 * Context: the caller holds the lock of its CQ.
 */
void ornic_ib_wq_reset(struct ornic_ib_wq *wq)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	WRITE_ONCE(wq->prod, 0);
	WRITE_ONCE(wq->cons, 0);
	ornic_rec_init(wq->rec);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static int ornic_describe_user(struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
			       const struct layout *at, struct ornic_qp_create_cmd *cmd,
			       struct ornic_ib_pagelist *lists)
{
	u64 sq_bytes = ornic_queue_bytes(qp->geom.sq_log, qp->geom.sq_stride);
	u64 rq_bytes = ornic_queue_bytes(qp->geom.rq_log, qp->geom.rq_stride);
	int ret = 0;

	if (sq_bytes)
		ret = ornic_ib_pagelist_build(dev, &lists[0], &qp->ubuf, at->sq, sq_bytes);
	if (!ret && rq_bytes)
		ret = ornic_ib_pagelist_build(dev, &lists[1], &qp->ubuf, at->rq, rq_bytes);
	if (!ret)
		ret = ornic_ib_ubuf_addr(&qp->ubuf, at->sq_rec, &cmd->sq_record);
	if (!ret)
		ret = ornic_ib_ubuf_addr(&qp->ubuf, at->rq_rec, &cmd->rq_record);
	cmd->sq_pages = lists[0].desc;
	cmd->rq_pages = lists[1].desc;
	return ret;
}

/* Describe the rings of the kernel, which always include a send queue. */
static int ornic_describe_kernel(struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
				 const struct layout *at, struct ornic_qp_create_cmd *cmd,
				 struct ornic_ib_pagelist *lists)
{
	u64 sq_bytes = ornic_queue_bytes(qp->geom.sq_log, qp->geom.sq_stride);
	u64 rq_bytes = ornic_queue_bytes(qp->geom.rq_log, qp->geom.rq_stride);
	int ret;

	ret = ornic_ib_pagelist_kernel(dev, &lists[0], &qp->kbuf, at->sq, sq_bytes);
	if (!ret && rq_bytes)
		ret = ornic_ib_pagelist_kernel(dev, &lists[1], &qp->kbuf, at->rq, rq_bytes);
	cmd->sq_pages = lists[0].desc;
	cmd->rq_pages = lists[1].desc;
	cmd->sq_record = cpu_to_le64(ornic_ib_kbuf_dma(&qp->kbuf, at->sq_rec));
	cmd->rq_record = cpu_to_le64(ornic_ib_kbuf_dma(&qp->kbuf, at->rq_rec));
	return ret;
}

/**
 * ornic_ib_queues_describe() - fill the rings into the create command
 * @dev: device
 * @qp: queue pair
 * @cmd: command to fill
 * @lists: two zeroed page lists, needed until the command has completed; freed by the
 *	caller, also after an error
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_queues_describe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			     struct ornic_qp_create_cmd *cmd, struct ornic_ib_pagelist *lists)
{
	struct layout at;

	cmd->sq_log = qp->geom.sq_log;
	cmd->sq_stride = qp->geom.sq_stride;
	cmd->rq_log = qp->geom.rq_log;
	cmd->rq_stride = qp->geom.rq_stride;
	if (qp->ibqp.qp_type == IB_QPT_XRC_TGT)
		return 0;
	ornic_lay_out(&qp->geom, &at);
	if (qp->ubuf.umem)
		return ornic_describe_user(dev, qp, &at, cmd, lists);
	return ornic_describe_kernel(dev, qp, &at, cmd, lists);
}
