// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive work queues and indirection tables of them.
 *
 * A work queue is a queue pair without a send queue. It is in the table of receive queues, so
 * that its completions are found.
 */
#include <errno.h>
#include <stdlib.h>

#include "ornic.h"

struct ornic_rwq {
	struct ibv_wq ibv_wq;
	struct ornic_qp *qp;
};

static struct ornic_rwq *to_orwq(struct ibv_wq *wq)
{
	return container_of(wq, struct ornic_rwq, ibv_wq);
}

static int ornic_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr)
{
	return ornic_rq_post(to_octx(wq->context), to_orwq(wq)->qp, wr, bad_wr);
}

static int ornic_wq_check(struct ornic_context *ctx, const struct ibv_wq_init_attr *attr)
{
	if (attr->wq_type != IBV_WQT_RQ) {
		verbs_err(&ctx->ibv_ctx, "no work queues of type %d\n", attr->wq_type);
		return EOPNOTSUPP;
	}
	if (ornic_unsupported(ctx, "comp_mask of a work queue", attr->comp_mask,
			      IBV_WQ_INIT_ATTR_FLAGS))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS &&
	    ornic_unsupported(ctx, "create_flags of a work queue", attr->create_flags, 0))
		return EOPNOTSUPP;
	if (attr->max_wr)
		return 0;
	verbs_err(&ctx->ibv_ctx, "a work queue needs entries\n");
	return EINVAL;
}

static int ornic_wq_cmd(struct ibv_context *ctx, struct ornic_rwq *rwq,
			struct ibv_wq_init_attr *attr)
{
	struct ornic_create_wq_resp resp = {};
	struct ornic_create_wq cmd = {};
	int ret;

	ornic_qp_describe(rwq->qp, &cmd.drv_payload);
	ret = ibv_cmd_create_wq(ctx, attr, &rwq->ibv_wq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	rwq->qp->qpn = resp.qpn;
	ret = ornic_qp_enter(rwq->qp);
	if (ret)
		ibv_cmd_destroy_wq(&rwq->ibv_wq);
	return ret;
}

static int ornic_wq_setup(struct ibv_context *ctx, struct ornic_rwq *rwq,
			  struct ibv_wq_init_attr *attr)
{
	struct ibv_qp_cap cap = { .max_recv_wr = attr->max_wr, .max_recv_sge = attr->max_sge };
	struct ornic_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return ENOMEM;
	qp->vqp.qp.context = ctx;
	qp->vqp.qp.recv_cq = attr->cq;
	ret = ornic_qp_rings(to_octx(ctx), qp, to_opd(attr->pd), IBV_QPT_RAW_PACKET, &cap);
	if (ret) {
		free(qp);
		return ret;
	}
	rwq->qp = qp;
	ret = ornic_wq_cmd(ctx, rwq, attr);
	if (ret) {
		ornic_qp_free(qp);
		return ret;
	}
	attr->max_wr = cap.max_recv_wr;
	attr->max_sge = cap.max_recv_sge;
	rwq->ibv_wq.post_recv = ornic_post_wq_recv;
	return 0;
}

struct ibv_wq *ornic_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr)
{
	struct ornic_rwq *rwq;
	int ret;

	ret = ornic_wq_check(to_octx(ctx), attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	rwq = calloc(1, sizeof(*rwq));
	if (!rwq)
		return NULL;
	ret = ornic_wq_setup(ctx, rwq, attr);
	if (ret) {
		free(rwq);
		errno = ret;
		return NULL;
	}
	return &rwq->ibv_wq;
}

int ornic_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	struct ornic_qp *qp = to_orwq(wq)->qp;
	struct ibv_modify_wq cmd = {};
	int ret;

	ret = ibv_cmd_modify_wq(wq, attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	if (!(attr->attr_mask & IBV_WQ_ATTR_STATE))
		return 0;
	if (attr->wq_state == IBV_WQS_RESET)
		ornic_qp_reset(qp);
	else
		ornic_wq_set_open(&qp->rq, true);
	return 0;
}

int ornic_destroy_wq(struct ibv_wq *wq)
{
	struct ornic_rwq *rwq = to_orwq(wq);
	int ret;

	ret = ibv_cmd_destroy_wq(wq);
	if (ret)
		return ret;
	ornic_qp_leave(rwq->qp);
	ornic_qp_free(rwq->qp);
	free(rwq);
	return 0;
}

struct ibv_rwq_ind_table *ornic_create_rwq_ind_table(struct ibv_context *ctx,
						     struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return NULL;
	ret = ibv_cmd_create_rwq_ind_table(ctx, attr, table, &resp, sizeof(resp));
	if (ret) {
		free(table);
		errno = ret;
		return NULL;
	}
	return table;
}

int ornic_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int ret = ibv_cmd_destroy_rwq_ind_table(table);

	if (!ret)
		free(table);
	return ret;
}
