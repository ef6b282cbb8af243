// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues and tables of them, for receive scaling (rss.c).
 *
 * In the device a work queue is a raw packet queue pair without a send queue.
 * State RDY is RTR of that queue pair, which receives without RTS. A table exists
 * only in ib_core; the device gets its content when a queue pair is created from
 * it.
 */
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <rdma/ornic-abi.h>

#include "rwq.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "qp.h"

struct ornic_ib_rwq {
	struct ib_wq ibwq;
	struct ornic_ib_qp qp;
};

static struct ornic_ib_rwq *to_orwq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct ornic_ib_rwq, ibwq);
}

/* Return the handle of a work queue's queue pair. */
u32 ornic_ib_wq_handle(struct ib_wq *ibwq)
{
	return to_orwq(ibwq)->qp.qpn;
}

static int ornic_wq_check_init(const struct ornic_ib_dev *dev, const struct ib_wq_init_attr *attr)
{
	const struct ornic_ib_limits *lim = &dev->lim;

	if (attr->wq_type != IB_WQT_RQ || attr->create_flags)
		return -EOPNOTSUPP;
	if (attr->max_wr && attr->max_wr <= BIT(lim->log_rq) && attr->max_sge <= lim->recv_sge)
		return 0;
	ibdev_dbg(&dev->ibdev, "WQ of %u entries with %u SGEs, limits are %lu and %u\n",
		  attr->max_wr, attr->max_sge, BIT(lim->log_rq), lim->recv_sge);
	return -EINVAL;
}

static int ornic_wq_make(struct ornic_ib_dev *dev, struct ornic_ib_rwq *rwq, struct ib_pd *pd,
			 const struct ib_wq_init_attr *attr, struct ib_udata *udata)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RAW_PACKET,
		.send_cq = attr->cq,
		.recv_cq = attr->cq,
		.cap.max_recv_wr = attr->max_wr,
		.cap.max_recv_sge = attr->max_sge,
	};
	struct ornic_uresp_create_qp resp = {};
	int ret;

	rwq->qp.ibqp.device = pd->device;
	rwq->qp.ibqp.pd = pd;
	rwq->qp.ibqp.qp_type = init.qp_type;
	rwq->qp.ibqp.send_cq = attr->cq;
	rwq->qp.ibqp.recv_cq = attr->cq;
	rwq->qp.wq = &rwq->ibwq;
	ret = ornic_ib_qp_make(dev, &rwq->qp, &init, udata);
	if (ret)
		return ret;
	resp.qpn = rwq->qp.qpn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		ornic_ib_qp_unmake(dev, &rwq->qp);
	return ret;
}

struct ib_wq *ornic_ib_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
				 struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(pd->device);
	struct ornic_ib_rwq *rwq;
	int ret;

	if (!udata)
		return ERR_PTR(-EOPNOTSUPP);
	ret = ornic_wq_check_init(dev, attr);
	if (ret)
		return ERR_PTR(ret);
	rwq = kzalloc_obj(*rwq);
	if (!rwq)
		return ERR_PTR(-ENOMEM);
	rwq->ibwq.event_handler = attr->event_handler;
	rwq->ibwq.wq_context = attr->wq_context;
	rwq->ibwq.state = IB_WQS_RESET;
	ret = ornic_wq_make(dev, rwq, pd, attr, udata);
	if (ret) {
		kfree(rwq);
		return ERR_PTR(ret);
	}
	rwq->ibwq.wq_num = rwq->qp.qpn;
	return &rwq->ibwq;
}

int ornic_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct ornic_ib_rwq *rwq = to_orwq(ibwq);

	ornic_ib_qp_unmake(to_oib(ibwq->device), &rwq->qp);
	kfree(rwq);
	return 0;
}

static int ornic_to_state(struct ornic_ib_dev *dev, struct ornic_ib_rwq *rwq, u8 state, u32 mask)
{
	struct ornic_qp_modify_cmd cmd = {
		.mask = cpu_to_le32(ORNIC_QPM_STATE | mask),
		.next_state = state,
		.port = ORNIC_IB_PORT,
	};

	return ornic_ib_cmd_qp_modify(dev, rwq->qp.qpn, &cmd);
}

static int ornic_set_ready(struct ornic_ib_dev *dev, struct ornic_ib_rwq *rwq)
{
	int ret;

	ret = ornic_to_state(dev, rwq, ORNIC_QPS_INIT, ORNIC_QPM_PORT);
	return ret ? ret : ornic_to_state(dev, rwq, ORNIC_QPS_RTR, 0);
}

static int ornic_wq_transition(struct ornic_ib_dev *dev, struct ornic_ib_rwq *rwq,
			       enum ib_wq_state next)
{
	enum ib_wq_state cur = rwq->ibwq.state;

	if (next == IB_WQS_RESET)
		return ornic_to_state(dev, rwq, ORNIC_QPS_RESET, 0);
	if (cur == next)
		return 0;
	if (cur == IB_WQS_RESET && next == IB_WQS_RDY)
		return ornic_set_ready(dev, rwq);
	if (cur == IB_WQS_RDY && next == IB_WQS_ERR)
		return ornic_to_state(dev, rwq, ORNIC_QPS_ERR, 0);
	return -EINVAL;
}

int ornic_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		       struct ib_udata *udata)
{
	struct ornic_ib_rwq *rwq = to_orwq(ibwq);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (mask & IB_WQ_FLAGS)
		return -EOPNOTSUPP;
	mutex_lock(&rwq->qp.mutex);
	if ((mask & IB_WQ_CUR_STATE) && attr->curr_wq_state != ibwq->state)
		ret = -EINVAL;
	else if (mask & IB_WQ_STATE)
		ret = ornic_wq_transition(to_oib(ibwq->device), rwq, attr->wq_state);
	if (!ret && (mask & IB_WQ_STATE))
		ibwq->state = attr->wq_state;
	mutex_unlock(&rwq->qp.mutex);
	return ret;
}

int ornic_ib_create_rwq_table(struct ib_rwq_ind_table *table,
			      struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata)
{
	u32 max = to_oib(table->device)->lim.rss_table;
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	return attr->log_ind_tbl_size > ilog2(max) ? -EINVAL : 0;
}

int ornic_ib_destroy_rwq_table(struct ib_rwq_ind_table *table)
{
	return 0;
}
