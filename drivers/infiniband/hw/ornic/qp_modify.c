// SPDX-License-Identifier: GPL-2.0
/*
 * Modify and query of queue pairs.
 *
 * The table of ib_core decides which attributes a transition requires and allows.
 * The device decides whether the transition is possible, because the queue pair
 * may have entered SQE or ERR by itself. States, masks and codes have the numbers
 * of verbs.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <linux/ornic/hw/qp.h>

#include "qp.h"
#include "ah.h"
#include "cmd.h"
#include "cq.h"
#include "event.h"
#include "mr.h"
#include "ornic_ib.h"
#include "rate.h"
#include "rss.h"
#include "wq.h"

static_assert((int)ORNIC_QPS_ERR == IB_QPS_ERR);
static_assert((int)ORNIC_MTU_4096 == IB_MTU_4096);
static_assert(ORNIC_QPM_DEST_QPN == IB_QP_DEST_QPN);
static_assert(ORNIC_QPM_SQ_PSN == IB_QP_SQ_PSN);
static_assert(ORNIC_QPM_RATE_LIMIT == IB_QP_RATE_LIMIT);

/* Supported attributes: all except those of the alternate path. */
#define MODIFY_MASK							\
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY |	\
	 IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT |		\
	 IB_QP_QKEY | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT |	\
	 IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_RQ_PSN |		\
	 IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN |	\
	 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_DEST_QPN | IB_QP_RATE_LIMIT)

static int ornic_check_limits(const struct ornic_ib_dev *dev, const struct ib_qp_attr *attr,
			      int mask)
{
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	    attr->max_rd_atomic > dev->lim.rd_atomic_init)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	    attr->max_dest_rd_atomic > dev->lim.rd_atomic_resp)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index)
		return -EINVAL;
	return 0;
}

static int ornic_fill_path(const struct ornic_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
			   struct ornic_path *path)
{
	u32 dest = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn;
	int ret;

	ret = ornic_ib_path_fill(path, &attr->ah_attr);
	if (ret)
		return ret;
	path->udp_sport = cpu_to_le16(rdma_get_udp_sport(le32_to_cpu(path->flow_label),
							 qp->ibqp.qp_num, dest));
	return 0;
}

/* Fill the attributes that the mask selects; the device ignores all others. */
static void ornic_fill_attr(const struct ornic_ib_dev *dev, const struct ib_qp_attr *attr, int mask,
			    struct ornic_qp_modify_cmd *cmd)
{
	cmd->mask = cpu_to_le32(mask);
	if (mask & IB_QP_STATE)
		cmd->next_state = attr->qp_state;
	if (mask & IB_QP_CUR_STATE)
		cmd->cur_state = attr->cur_qp_state;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		cmd->sqd_notify = !!attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		cmd->access =
			cpu_to_le32(attr->qp_access_flags & ornic_ib_remote_rights(dev));
	if (mask & IB_QP_PORT)
		cmd->port = attr->port_num;
	if (mask & IB_QP_QKEY)
		cmd->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_PATH_MTU)
		cmd->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		cmd->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		cmd->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		cmd->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		cmd->rq_psn = cpu_to_le32(attr->rq_psn & ORNIC_NUMBER_MASK);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		cmd->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		cmd->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_SQ_PSN)
		cmd->sq_psn = cpu_to_le32(attr->sq_psn & ORNIC_NUMBER_MASK);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		cmd->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		cmd->dest_qpn = cpu_to_le32(attr->dest_qp_num & ORNIC_NUMBER_MASK);
}

/* Drop all posted work requests and unpolled completions of a queue (ORN-CQ-19, ORN-QP-3). */
static void ornic_reset_wq(struct ornic_ib_qp *qp, struct ornic_ib_wq *wq, struct ib_cq *ibcq)
{
	struct ornic_ib_cq *cq = to_ocq(ibcq);

	mutex_lock(&cq->mutex);
	spin_lock_irq(&cq->lock);
	ornic_ib_cq_drop(cq, qp);
	ornic_ib_wq_reset(wq);
	spin_unlock_irq(&cq->lock);
	mutex_unlock(&cq->mutex);
}

/* Empty the kernel's queues. Providers do that for processes. */
static void ornic_reset_queues(struct ornic_ib_qp *qp)
{
	if (!qp->kbuf.cpu)
		return;
	ornic_reset_wq(qp, &qp->sq, qp->ibqp.send_cq);
	ornic_reset_wq(qp, &qp->rq, qp->ibqp.recv_cq);
}

/*
 * Forget the past after the transition to RESET. Do not wait for the delivery of pending events:
 * the caller may be the handler of one, or hold a lock that a handler takes.
 */
static void ornic_entered_reset(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	u64 last = ornic_event_last(dev->odev);

	ornic_reset_queues(qp);
	spin_lock_irq(&qp->life_lock);
	qp->before_reset = last;
	WRITE_ONCE(qp->dead, false);
	clear_bit(ORNIC_IB_QP_LAST_WQE, &qp->told);
	spin_unlock_irq(&qp->life_lock);
}

/*
 * Return true if the driver executes a transition without the device: consumers drain and destroy
 * queue pairs of a dead device, too (soft_flush.c).
 */
static bool ornic_soft_transition(const struct ornic_ib_dev *dev, int mask, enum ib_qp_state next)
{
	return (mask & IB_QP_STATE) && (next == IB_QPS_ERR || next == IB_QPS_RESET) &&
	       ornic_device_dead(dev->odev);
}

/*
 * Return true if the caller cannot handle a failure: ib_drain_qp() returns none, and consumers free
 * the memory of their work requests afterwards. A device accepts this transition (ORN-QP-47).
 */
static bool ornic_is_drain(const struct ornic_ib_qp *qp, int mask, enum ib_qp_state next)
{
	return qp->kbuf.cpu && mask == IB_QP_STATE && next == IB_QPS_ERR;
}

static int ornic_modify_locked(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			       const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	struct ornic_qp_modify_cmd cmd = {};
	int ret;

	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	ret = ornic_check_limits(dev, attr, mask);
	if (!ret)
		ret = ornic_ib_rate_fill(dev, qp, attr, mask, udata, &cmd);
	if (!ret && (mask & IB_QP_AV))
		ret = ornic_fill_path(qp, attr, mask, &cmd.path);
	if (ret)
		return ret;
	ornic_fill_attr(dev, attr, mask, &cmd);

	ret = ornic_ib_cmd_qp_modify(dev, qp->qpn, &cmd);
	if (ret && ornic_is_drain(qp, mask, next) && !ornic_device_dead(dev->odev)) {
		ibdev_err(&dev->ibdev, "transition of queue pair %u to ERR rejected: %d\n",
			  qp->qpn, ret);
		ornic_device_malformed(dev->odev, "transition to ERR rejected");
	}
	if (ret && !ornic_soft_transition(dev, mask, next))
		return ret;

	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	if (!(mask & IB_QP_STATE))
		return 0;
	/* The locks of the queues order the state: nothing is posted behind their reset. */
	WRITE_ONCE(qp->state, next);
	if (next == IB_QPS_RESET)
		ornic_entered_reset(dev, qp);
	return 0;
}

int ornic_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	int ret;

	if (qp->rss)
		return ornic_ib_rss_modify(qp, attr, mask);
	if (mask & ~MODIFY_MASK)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	ret = ornic_modify_locked(dev, qp, attr, mask, udata);
	mutex_unlock(&qp->mutex);
	smp_mb();	/* store state, then read death; ornic_ib_event() reads state after death */
	if (!ret && ornic_device_dead(dev->odev))
		ornic_ib_soft_last_wqe(dev, qp);
	return ret;
}

static void ornic_read_path(struct ornic_path *path, struct rdma_ah_attr *attr)
{
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, ORNIC_IB_PORT);
	rdma_ah_set_sl(attr, path->sl & 0xf);
	rdma_ah_set_static_rate(attr, path->static_rate);
	rdma_ah_set_grh(attr, NULL, le32_to_cpu(path->flow_label), le16_to_cpu(path->sgid_index),
			path->hop_limit, path->traffic_class);
	rdma_ah_set_dgid_raw(attr, path->dgid);
	memcpy(attr->roce.dmac, path->dmac, sizeof(attr->roce.dmac));
}

static void ornic_read_attr(struct ornic_qp_query_rsp *rsp, struct ib_qp_attr *attr)
{
	struct ornic_qp_modify_cmd *from = &rsp->attr;

	attr->qp_state = from->next_state;
	attr->cur_qp_state = from->next_state;
	attr->path_mtu = from->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(from->qkey);
	attr->rq_psn = le32_to_cpu(from->rq_psn);
	attr->sq_psn = le32_to_cpu(from->sq_psn);
	attr->dest_qp_num = le32_to_cpu(from->dest_qpn);
	attr->qp_access_flags = le32_to_cpu(from->access);
	attr->pkey_index = le16_to_cpu(from->pkey_index);
	attr->en_sqd_async_notify = from->sqd_notify;
	attr->sq_draining = rsp->sq_draining;
	attr->max_rd_atomic = from->max_rd_atomic;
	attr->max_dest_rd_atomic = from->max_dest_rd_atomic;
	attr->min_rnr_timer = from->min_rnr_timer;
	attr->port_num = ORNIC_IB_PORT;
	attr->timeout = from->timeout;
	attr->retry_cnt = from->retry_cnt;
	attr->rnr_retry = from->rnr_retry;
	attr->rate_limit = le32_to_cpu(from->rate_kbps);
	if (le32_to_cpu(from->mask) & ORNIC_QPM_PATH)
		ornic_read_path(&from->path, &attr->ah_attr);
}

int ornic_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *init)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	struct ornic_qp_query_rsp rsp;
	int ret;

	if (qp->rss) {
		ornic_ib_rss_query(qp, attr, init);
		return 0;
	}
	ret = ornic_ib_cmd_qp_query(dev, qp->qpn, &rsp);
	if (ret)
		return ret;
	if (rsp.attr.next_state > ORNIC_QPS_ERR) {
		ornic_device_malformed(dev->odev, "queue pair in an unknown state");
		return -EIO;
	}

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	ornic_read_attr(&rsp, attr);
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->port_num = ORNIC_IB_PORT;
	return 0;
}
