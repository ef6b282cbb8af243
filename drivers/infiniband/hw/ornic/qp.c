// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: create and destroy.
 *
 * The GSI queue pair of ib_core differs from others only in its number on the
 * wire, which is 1 and not its handle in the device. Destruction has a fixed
 * order: destroy the queue pair in the device, which then writes no more entries
 * and events; deliver the pending events; leave the tables; free the memory.
 */
#include <linux/bits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <rdma/ornic-abi.h>

#include "qp.h"
#include "cmd.h"
#include "cq.h"
#include "event.h"
#include "ornic_ib.h"
#include "pagelist.h"
#include "pd.h"
#include "rss.h"
#include "srq.h"
#include "ucontext.h"
#include "xrcd.h"

#define GSI_QPN		1

/* Return the IB_QP_CREATE_* flags that a queue pair of this type may have. */
static u32 ornic_create_flags_of(const struct ornic_ib_dev *dev, enum ib_qp_type type)
{
	if (type == IB_QPT_UD && ornic_has(dev->odev, ORNIC_FEATURE(MCAST)))
		return IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	return 0;
}

static int ornic_qp_check_init(const struct ornic_ib_dev *dev, const struct ib_qp_init_attr *attr,
			       bool user)
{
	const struct ornic_ib_limits *lim = &dev->lim;
	const struct ib_qp_cap *cap = &attr->cap;

	switch (attr->qp_type) {
	case IB_QPT_RC:
		if (!ornic_has(dev->odev, ORNIC_FEATURE(RC)))
			return -EOPNOTSUPP;
		break;
	case IB_QPT_UC:
		if (!ornic_has(dev->odev, ORNIC_FEATURE(UC)))
			return -EOPNOTSUPP;
		break;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		/* ib_create_qp_user() passes no udata for targets (6.12 and 7.2): allow !user */
		if (!user && attr->qp_type == IB_QPT_XRC_INI)
			return -EOPNOTSUPP;
		if (!ornic_has(dev->odev, ORNIC_FEATURE(XRC)))
			return -EOPNOTSUPP;
		break;
	case IB_QPT_GSI:
		if (user)
			return -EOPNOTSUPP;
		fallthrough;
	case IB_QPT_UD:
		if (!ornic_has(dev->odev, ORNIC_FEATURE(UD)))
			return -EOPNOTSUPP;
		break;
	case IB_QPT_RAW_PACKET:
		if (!user || !ornic_has(dev->odev, ORNIC_FEATURE(RAW)))
			return -EOPNOTSUPP;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (attr->create_flags & ~ornic_create_flags_of(dev, attr->qp_type))
		return -EOPNOTSUPP;
	if (attr->srq && attr->qp_type == IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (attr->srq && (attr->qp_type == IB_QPT_GSI || ornic_ib_is_xrc(attr->qp_type) ||
			  attr->srq->srq_type != IB_SRQT_BASIC))
		return -EINVAL;
	if (!attr->send_cq && attr->qp_type != IB_QPT_XRC_TGT)
		return -EINVAL;
	if (!attr->recv_cq && !ornic_ib_is_xrc(attr->qp_type))
		return -EINVAL;
	if (attr->qp_type == IB_QPT_XRC_TGT && !attr->xrcd)
		return -EINVAL;
	if (cap->max_send_wr > BIT(lim->log_sq) || cap->max_recv_wr > BIT(lim->log_rq) ||
	    cap->max_send_sge > lim->send_sge || cap->max_recv_sge > lim->recv_sge ||
	    cap->max_inline_data > lim->max_inline) {
		ibdev_dbg(&dev->ibdev,
			  "QP of %u+%u entries, %u+%u SGEs, %u bytes inline; limits %lu+%lu, %u+%u, %u\n",
			  cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
			  cap->max_recv_sge, cap->max_inline_data, BIT(lim->log_sq),
			  BIT(lim->log_rq), lim->send_sge, lim->recv_sge, lim->max_inline);
		return -EINVAL;
	}
	return 0;
}

static void ornic_fill_cmd(const struct ornic_ib_qp *qp, const struct ib_qp_init_attr *attr,
			   struct ornic_qp_create_cmd *cmd)
{
	bool raw = attr->qp_type == IB_QPT_RAW_PACKET;
	u32 flags = 0;

	if (qp->sig_all)
		flags |= ORNIC_QP_F_SIG_ALL;
	if (attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		flags |= ORNIC_QP_F_BLOCK_MC_LOOP;
	if (qp->owner == ORNIC_IB_DRIVER && attr->qp_type != IB_QPT_XRC_TGT)
		flags |= ORNIC_QP_F_PRIVILEGED;

	cmd->type = attr->qp_type;
	cmd->transport = raw ? ORNIC_TP_ETHERNET : ORNIC_TP_ROCEV2;
	if (raw || attr->qp_type == IB_QPT_GSI)
		cmd->port = ORNIC_IB_PORT;
	if (attr->qp_type == IB_QPT_XRC_TGT)
		cmd->xrcd = cpu_to_le32(container_of(attr->xrcd, struct ornic_ib_xrcd,
						     ibxrcd)->xrcdn);
	else
		cmd->pd = cpu_to_le32(to_opd(qp->ibqp.pd)->pdn);
	cmd->send_cq = cpu_to_le32(attr->send_cq ? to_ocq(attr->send_cq)->cqn : ORNIC_NONE);
	cmd->recv_cq = cpu_to_le32(attr->recv_cq ? to_ocq(attr->recv_cq)->cqn : ORNIC_NONE);
	cmd->srq = cpu_to_le32(attr->srq ? to_osrq(attr->srq)->srqn : ORNIC_NONE);
	cmd->flags = cpu_to_le32(flags);
	cmd->dbpage = cpu_to_le32(qp->owner);
	cmd->owner = cpu_to_le32(qp->owner);
	cmd->max_send_sge = cpu_to_le16(qp->cap.max_send_sge);
	cmd->max_recv_sge = cpu_to_le16(qp->cap.max_recv_sge);
	cmd->max_inline = cpu_to_le16(qp->cap.max_inline_data);
}

static int ornic_qp_create_in_device(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
				     const struct ib_qp_init_attr *attr)
{
	struct ornic_ib_pagelist lists[2] = {};
	struct ornic_qp_create_cmd cmd = {};
	int ret;

	ornic_fill_cmd(qp, attr, &cmd);
	ret = ornic_ib_queues_describe(dev, qp, &cmd, lists);
	if (!ret)
		ret = ornic_ib_cmd_qp_create(dev, &cmd, &qp->qpn);
	ornic_ib_pagelist_free(dev, &lists[0]);
	ornic_ib_pagelist_free(dev, &lists[1]);
	return ret;
}

static void ornic_qp_destroy_in_device(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	ornic_ib_cmd_qp_destroy(dev, qp->qpn, qp->ibqp.qp_type == IB_QPT_RAW_PACKET);
}

/* Enter the queue pair in the table of a CQ; called twice if both of its queues use the CQ. */
static int ornic_enter_cq(struct ib_cq *ibcq, struct ornic_ib_qp *qp)
{
	struct ornic_ib_cq *cq = to_ocq(ibcq);

	spin_lock_irq(&cq->lock);
	cq->used = true;
	spin_unlock_irq(&cq->lock);
	return xa_err(xa_store(&cq->qps, qp->qpn, qp, GFP_KERNEL));
}

/* Remove the queue pair from its CQs. On return polling does not use it. */
static void ornic_leave_cqs(struct ornic_ib_qp *qp)
{
	xa_erase(&to_ocq(qp->ibqp.send_cq)->qps, qp->qpn);
	xa_erase(&to_ocq(qp->ibqp.recv_cq)->qps, qp->qpn);
	ornic_ib_cq_forget(to_ocq(qp->ibqp.send_cq), qp);
	ornic_ib_cq_forget(to_ocq(qp->ibqp.recv_cq), qp);
}

/* Let events and, for queues of the kernel, completions find the queue pair. */
static int ornic_qp_enter(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	int ret;

	ret = xa_insert(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	if (ret || !qp->kbuf.cpu)
		return ret;
	ret = ornic_enter_cq(qp->ibqp.send_cq, qp);
	if (!ret)
		ret = ornic_enter_cq(qp->ibqp.recv_cq, qp);
	if (!ret)
		return 0;
	ornic_leave_cqs(qp);
	xa_erase(&dev->qps, qp->qpn);
	ornic_ib_ref_drain(&qp->ref);
	return ret;
}

static int ornic_qp_publish(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	unsigned int noio;
	int ret;

	noio = ornic_numbers_lock(dev->odev);
	ret = ornic_qp_enter(dev, qp);
	ornic_numbers_unlock(dev->odev, noio);
	return ornic_ib_number_error(dev, ret);
}

/* Remove a queue pair destroyed in the device from all tables. On return it has no more users. */
static void ornic_qp_unpublish(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	ornic_event_flush(dev->odev);
	xa_erase(&dev->qps, qp->qpn);
	ornic_ib_ref_drain(&qp->ref);
	if (qp->kbuf.cpu)
		ornic_leave_cqs(qp);
}

static void ornic_qp_init_state(struct ornic_ib_qp *qp, const struct ib_qp_init_attr *attr)
{
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->life_lock);
	INIT_LIST_HEAD(&qp->members);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	ornic_ib_ref_init(&qp->ref);
	qp->state = IB_QPS_RESET;
	qp->cap = attr->cap;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
}

static int ornic_qp_respond(struct ornic_ib_qp *qp, struct ib_udata *udata)
{
	struct ornic_uresp_create_qp resp = { .qpn = qp->qpn };

	return ib_respond_udata(udata, resp);
}

/**
 * ornic_ib_qp_make() - create a queue pair and its queues
 * @dev: device
 * @qp: queue pair; zeroed, except @ibqp
 * @attr: attributes, already validated
 * @udata: data of the provider; NULL for a queue pair of the kernel
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_qp_make(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
		     const struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int ret = 0;

	ornic_qp_init_state(qp, attr);
	qp->owner = ornic_ib_caller_page(udata);
	if (attr->qp_type == IB_QPT_XRC_TGT)
		ornic_ib_no_queues(qp);
	else if (udata)
		ret = ornic_ib_user_queues(dev, qp, udata);
	else
		ret = ornic_ib_kernel_queues(dev, qp);
	if (!ret)
		ret = ornic_qp_create_in_device(dev, qp, attr);
	if (ret)
		goto err_queues;
	ret = ornic_qp_publish(dev, qp);
	if (!ret)
		return 0;

	ornic_qp_destroy_in_device(dev, qp);
err_queues:
	ornic_ib_queues_free(dev, qp);
	return ret;
}

/* Destroy a queue pair created by ornic_ib_qp_make(). May sleep, cannot fail. */
void ornic_ib_qp_unmake(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	down_read(&dev->odev->numbers);
	ornic_qp_destroy_in_device(dev, qp);
	ornic_qp_unpublish(dev, qp);
	up_read(&dev->odev->numbers);
	ornic_ib_queues_free(dev, qp);
}

int ornic_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	int ret;

	if (attr->rwq_ind_tbl)
		return ornic_ib_rss_create(dev, qp, attr, udata);
	/* verbs ignore the receive capabilities of a queue pair without a receive queue */
	if (attr->srq || ornic_ib_is_xrc(attr->qp_type)) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
	ret = ornic_qp_check_init(dev, attr, udata);
	if (ret)
		ibdev_dbg(&dev->ibdev, "QP of type %u with flags %#x: %d\n", attr->qp_type,
			  attr->create_flags, ret);
	else
		ret = ornic_ib_qp_make(dev, qp, attr, udata);
	if (ret)
		return ret;

	ibqp->qp_num = attr->qp_type == IB_QPT_GSI ? GSI_QPN : qp->qpn;
	attr->cap = qp->cap;
	if (udata)
		ret = ornic_qp_respond(qp, udata);
	if (ret)
		ornic_ib_qp_unmake(dev, qp);
	return ret;
}

int ornic_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);

	if (qp->rss)
		ornic_ib_rss_destroy(dev, qp);
	else
		ornic_ib_qp_unmake(dev, qp);
	return 0;
}
