// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_post_recv: post work requests to a receive queue. */
#include <errno.h>

#include "wqe.h"

static int ornic_recv_build(struct ornic_wq *rq, uint32_t index, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (ornic_wq_full(rq, index))
		return ENOMEM;
	ornic_rwqe_build(rq, index, index, wr);
	rq->wr_id[index & (rq->entries - 1)] = wr->wr_id;
	return 0;
}

/*
 * Post a list. On failure *@bad_wr is the first request that is not posted. Caller holds the RQ
 * lock. Return 0, EINVAL, or ENOMEM if the queue is full.
 */
static int ornic_recv_list(struct ornic_context *ctx, struct ornic_qp *qp, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	struct ornic_wq *rq = &qp->rq;
	uint32_t old, new;
	int ret = 0;

	if (!rq->open) {
		*bad_wr = wr;
		return EINVAL;
	}
	old = atomic_load_explicit(&rq->head, memory_order_relaxed);
	for (new = old; wr; wr = wr->next, new++) {
		ret = ornic_recv_build(rq, new, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (new != old && ornic_wq_publish(rq, old, new))
		ornic_db_ring(ctx, ORNIC_DB_RQ, qp->qpn, new);
	return ret;
}

/* Post to the receive queue of a queue pair or work queue. Return as ornic_recv_list(). */
int ornic_rq_post(struct ornic_context *ctx, struct ornic_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad_wr)
{
	int ret;

	ornic_lock(&qp->rq.lock);
	ret = ornic_recv_list(ctx, qp, wr, bad_wr);
	ornic_unlock(&qp->rq.lock);
	return ret;
}

int ornic_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return ornic_rq_post(to_octx(ibqp->context), to_oqp(ibqp), wr, bad_wr);
}
