// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs for receive scaling: a hash and a table of work queues (rwq.c).
 *
 * They have no queues of their own. In the device each is an RSS group, which is
 * a target for flows and has no state. The driver keeps the state of verbs.
 */
#include <linux/bits.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/steer.h>
#include <rdma/ornic-abi.h>

#include "rss.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "qp.h"
#include "rwq.h"
#include "ucontext.h"

static int ornic_rss_check_init(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (attr->qp_type != IB_QPT_RAW_PACKET || attr->create_flags || attr->srq)
		return -EOPNOTSUPP;
	if (cap->max_send_wr || cap->max_send_sge || cap->max_inline_data || attr->send_cq)
		return -EINVAL;
	return 0;
}

static int ornic_read_request(const struct ornic_ib_dev *dev, struct ib_udata *udata,
			      struct ornic_ureq_create_rss *req)
{
	int ret;

	ret = ib_copy_validate_udata_in(udata, *req, key);
	if (ret)
		return ret;
	if (memchr_inv(req->reserved, 0, sizeof(req->reserved)) ||
	    req->function != ORNIC_RSS_TOEPLITZ || (req->fields & ~dev->lim.rss_fields))
		return -EOPNOTSUPP;
	return 0;
}

static int ornic_create_group(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			      const struct ib_rwq_ind_table *table,
			      const struct ornic_ureq_create_rss *req, u32 owner)
{
	struct ornic_rss_create_cmd *cmd;
	u32 i;
	int ret;

	cmd = kzalloc_obj(*cmd);
	if (!cmd)
		return -ENOMEM;
	cmd->function = req->function;
	cmd->log_size = table->log_ind_tbl_size;
	cmd->port = ORNIC_IB_PORT;
	cmd->fields = cpu_to_le32(req->fields);
	cmd->owner = cpu_to_le32(owner);
	memcpy(cmd->key, req->key, sizeof(cmd->key));
	for (i = 0; i < BIT(table->log_ind_tbl_size); i++)
		cmd->table[i] = cpu_to_le32(ornic_ib_wq_handle(table->ind_tbl[i]));
	ret = ornic_ib_cmd_rss_create(dev, cmd, &qp->qpn);
	kfree(cmd);
	return ret;
}

int ornic_ib_rss_create(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct ornic_uresp_create_qp resp = {};
	struct ornic_ureq_create_rss req;
	int ret;

	if (!udata || !ornic_has(dev->odev, ORNIC_FEATURE(RSS)))
		return -EOPNOTSUPP;
	ret = ornic_rss_check_init(attr);
	if (!ret)
		ret = ornic_read_request(dev, udata, &req);
	if (ret) {
		ibdev_dbg(&dev->ibdev, "QP for receive scaling, type %u: %d\n", attr->qp_type, ret);
		return ret;
	}
	ret = ornic_create_group(dev, qp, attr->rwq_ind_tbl, &req, ornic_ib_caller_page(udata));
	if (ret)
		return ret;
	mutex_init(&qp->mutex);
	qp->rss = true;
	qp->state = IB_QPS_RESET;
	qp->ibqp.qp_num = qp->qpn;
	resp.qpn = qp->qpn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		ornic_ib_cmd_rss_destroy(dev, qp->qpn);
	return ret;
}

void ornic_ib_rss_destroy(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	ornic_ib_cmd_rss_destroy(dev, qp->qpn);
}

int ornic_ib_rss_modify(struct ornic_ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur, next;
	int ret = 0;

	if (mask & ~(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_PORT))
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, IB_QPT_RAW_PACKET, mask))
		ret = -EINVAL;
	else
		qp->state = next;
	mutex_unlock(&qp->mutex);
	return ret;
}

void ornic_ib_rss_query(const struct ornic_ib_qp *qp, struct ib_qp_attr *attr,
			struct ib_qp_init_attr *init)
{
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->port_num = ORNIC_IB_PORT;
	init->qp_type = IB_QPT_RAW_PACKET;
	init->port_num = ORNIC_IB_PORT;
}
