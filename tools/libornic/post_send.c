// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_post_send: post a list of work requests.
 *
 * These functions reject a work request that does not fit into its slot or whose opcode
 * the queue pair type does not have. The device checks rights, lengths and addresses, and
 * reports errors by completions.
 */
#include <errno.h>

#include "wqe.h"

/*
 * Return true if opcode and flags are valid for the type of queue pair. The opcodes of the
 * device have the values of verbs.
 */
static bool ornic_send_legal(const struct ornic_qp *qp, const struct ibv_send_wr *wr)
{
	enum ibv_qp_type type = qp->vqp.qp.qp_type;

	if (wr->send_flags & ~(ornic_send_flags(type) | IBV_SEND_INLINE))
		return false;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		return true;
	case IBV_WR_SEND_WITH_IMM:
		return type != IBV_QPT_RAW_PACKET;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_XRC_SEND;
	case IBV_WR_RDMA_READ:
		return ornic_is_reliable(&qp->vqp.qp) && !(wr->send_flags & IBV_SEND_INLINE);
	case IBV_WR_ATOMIC_WRITE:
		return type == IBV_QPT_RC && wr->num_sge == 1;
	case IBV_WR_SEND_WITH_INV:
		return type == IBV_QPT_RC;
	case IBV_WR_BIND_MW:
		if (!ornic_bind_legal(wr->bind_mw.mw, &wr->bind_mw.bind_info))
			return false;
		SWITCH_FALLTHROUGH;
	case IBV_WR_LOCAL_INV:
		return (type == IBV_QPT_RC || type == IBV_QPT_UC) &&
		       !(wr->send_flags & IBV_SEND_INLINE);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ornic_is_reliable(&qp->vqp.qp) && wr->num_sge == 1 &&
		       !(wr->send_flags & IBV_SEND_INLINE);
	default:
		return false;
	}
}

/*
 * Write the segments between control and data. Return the address of the data, NULL for a request
 * that never has data.
 */
static void *ornic_send_header(const struct ornic_qp *qp, const struct ibv_send_wr *wr, void *seg)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		return ornic_wqe_remote(seg, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		seg = ornic_wqe_remote(seg, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		return ornic_wqe_atomic(seg, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		seg = ornic_wqe_remote(seg, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		return ornic_wqe_atomic(seg, wr->wr.atomic.compare_add, 0);
	case IBV_WR_BIND_MW:
		ornic_wqe_bind(seg, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return NULL;
	case IBV_WR_LOCAL_INV:
		return NULL;
	default:
		if (qp->vqp.qp.qp_type == IBV_QPT_RAW_PACKET)
			return ornic_wqe_eth(seg);
		if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
			return ornic_wqe_remote(seg, 0, 0);
		if (qp->vqp.qp.qp_type != IBV_QPT_UD)
			return seg;
		return ornic_wqe_path(seg, to_oah(wr->wr.ud.ah), wr->wr.ud.remote_qpn,
				      wr->wr.ud.remote_qkey);
	}
}

/*
 * Write the data of the work request. Return the number of SGEs or, with INLINE, of bytes;
 * -1 if the inline data is too long.
 */
static int ornic_send_data(const struct ornic_qp *qp, const struct ibv_send_wr *wr, void *data)
{
	size_t used = 0;
	int i;

	if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		ornic_wqe_sges(data, wr->sg_list, wr->num_sge);
		return wr->num_sge;
	}
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!ornic_wqe_inline(data, &used, qp->max_inline, (void *)(uintptr_t)sge->addr,
				      sge->length))
			return -1;
	}
	return used;
}

static int ornic_send_build(struct ornic_qp *qp, uint32_t index, const struct ibv_send_wr *wr)
{
	struct ornic_wq *sq = &qp->sq;
	struct ornic_wqe_ctrl *ctrl;
	bool has_imm;
	void *seg;
	int count;

	if (!ornic_send_legal(qp, wr) || wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge)
		return EINVAL;
	if (ornic_wq_full(sq, index))
		return ENOMEM;
	has_imm = wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	ctrl = ornic_wq_slot(sq, index);
	seg = ornic_wqe_ctrl(ctrl, wr->opcode, wr->send_flags, has_imm ? wr->imm_data : 0,
			     qp->qpn, index);
	seg = ornic_send_header(qp, wr, seg);
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		ornic_wqe_target(ctrl, wr->qp_type.xrc.remote_srqn);
	count = ornic_send_data(qp, wr, seg);
	if (count < 0)
		return EINVAL;
	ctrl->count = htole16(count);
	if (wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_LOCAL_INV)
		ornic_wqe_invalidate(ctrl, wr->invalidate_rkey);
	sq->wr_id[index & (sq->entries - 1)] = wr->wr_id;
	return 0;
}

/*
 * Post a list. On failure *@bad_wr is the first request that is not posted. Caller holds the SQ
 * lock. Return 0, EINVAL, or ENOMEM if the queue is full.
 */
static int ornic_send_list(struct ornic_qp *qp, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad_wr)
{
	struct ornic_wq *sq = &qp->sq;
	uint32_t old, new;
	int ret = 0;

	if (!sq->open) {
		*bad_wr = wr;
		return EINVAL;
	}
	old = atomic_load_explicit(&sq->head, memory_order_relaxed);
	for (new = old; wr; wr = wr->next, new++) {
		ret = ornic_send_build(qp, new, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (new != old && ornic_wq_publish(sq, old, new))
		ornic_db_ring(to_octx(qp->vqp.qp.context), ORNIC_DB_SQ, qp->qpn, new);
	return ret;
}

int ornic_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ornic_qp *qp = to_oqp(ibqp);
	int ret;

	ornic_lock(&qp->sq.lock);
	ret = ornic_send_list(qp, wr, bad_wr);
	ornic_unlock(&qp->sq.lock);
	return ret;
}
