// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_wr_*: build work requests by several calls.
 *
 * wr_start takes the SQ lock. Each opcode call opens the next slot, and the data call
 * completes it. wr_complete publishes all of them at once. After the first error further
 * calls do nothing; wr_complete returns the error and publishes nothing.
 */
#include <errno.h>

#include "wqe.h"

static void ornic_wr_start(struct ibv_qp_ex *ibqp)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);

	ornic_lock(&qp->sq.lock);
	qp->build_err = qp->sq.open ? 0 : EINVAL;
	qp->build_next = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	qp->build = NULL;
}

static int ornic_wr_complete(struct ibv_qp_ex *ibqp)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);
	uint32_t old = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	uint32_t new = qp->build_next;
	int err = qp->build_err;

	if (!err && new != old && ornic_wq_publish(&qp->sq, old, new))
		ornic_db_ring(to_octx(ibqp->qp_base.context), ORNIC_DB_SQ, qp->qpn, new);
	ornic_unlock(&qp->sq.lock);
	return err;
}

static void ornic_wr_abort(struct ibv_qp_ex *ibqp)
{
	ornic_unlock(&to_oqp_ex(ibqp)->sq.lock);
}

/*
 * Open the next slot and write its control segment. Return the address behind it, or NULL
 * after an error, which is in build_err. Ignore IBV_SEND_INLINE, which programs copy from the
 * flags of ibv_post_send(): the data call decides. Caller holds the SQ lock.
 */
static void *ornic_wr_open(struct ibv_qp_ex *ibqp, uint8_t opcode, __be32 imm)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);
	unsigned int flags = ibqp->wr_flags & ~IBV_SEND_INLINE;
	uint32_t index = qp->build_next;

	if (qp->build_err)
		return NULL;
	if (flags & ~ornic_send_flags(ibqp->qp_base.qp_type)) {
		qp->build_err = EINVAL;
		return NULL;
	}
	if (ornic_wq_full(&qp->sq, index)) {
		qp->build_err = ENOMEM;
		return NULL;
	}
	qp->sq.wr_id[index & (qp->sq.entries - 1)] = ibqp->wr_id;
	qp->build = ornic_wq_slot(&qp->sq, index);
	qp->build_next = index + 1;
	return ornic_wqe_ctrl(qp->build, opcode, flags, imm, qp->qpn, index);
}

static void ornic_wr_open_send(struct ibv_qp_ex *ibqp, uint8_t opcode, __be32 imm)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);
	void *seg = ornic_wr_open(ibqp, opcode, imm);

	if (!seg)
		return;
	if (ibqp->qp_base.qp_type == IBV_QPT_UD)
		seg = (struct ornic_path *)seg + 1;
	else if (ibqp->qp_base.qp_type == IBV_QPT_RAW_PACKET)
		seg = ornic_wqe_eth(seg);
	else if (ibqp->qp_base.qp_type == IBV_QPT_XRC_SEND)
		seg = ornic_wqe_remote(seg, 0, 0);
	qp->build_data = seg;
}

static void ornic_wr_open_rdma(struct ibv_qp_ex *ibqp, uint8_t opcode, __be32 imm, uint32_t rkey,
			       uint64_t addr)
{
	void *seg = ornic_wr_open(ibqp, opcode, imm);

	if (seg)
		to_oqp_ex(ibqp)->build_data = ornic_wqe_remote(seg, addr, rkey);
}

static void ornic_wr_open_atomic(struct ibv_qp_ex *ibqp, uint8_t opcode, uint32_t rkey,
				 uint64_t addr, uint64_t swap_add, uint64_t compare)
{
	void *seg = ornic_wr_open(ibqp, opcode, 0);

	if (!seg)
		return;
	seg = ornic_wqe_remote(seg, addr, rkey);
	to_oqp_ex(ibqp)->build_data = ornic_wqe_atomic(seg, swap_add, compare);
}

static void ornic_wr_send(struct ibv_qp_ex *ibqp)
{
	ornic_wr_open_send(ibqp, ORNIC_WR_SEND, 0);
}

static void ornic_wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm)
{
	ornic_wr_open_send(ibqp, ORNIC_WR_SEND_IMM, imm);
}

static void ornic_wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);

	ornic_wr_open_send(ibqp, ORNIC_WR_SEND_INV, 0);
	if (!qp->build_err)
		ornic_wqe_invalidate(qp->build, rkey);
}

static void ornic_wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);

	if (ornic_wr_open(ibqp, ORNIC_WR_LOCAL_INV, 0))
		ornic_wqe_invalidate(qp->build, rkey);
}

static void ornic_wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
			     const struct ibv_mw_bind_info *info)
{
	void *seg = ornic_wr_open(ibqp, ORNIC_WR_BIND_MW, 0);

	if (!seg)
		return;
	if (!ornic_bind_legal(mw, info)) {
		to_oqp_ex(ibqp)->build_err = EINVAL;
		return;
	}
	ornic_wqe_bind(seg, mw, rkey, info);
}

static void ornic_wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr)
{
	ornic_wr_open_rdma(ibqp, ORNIC_WR_RDMA_WRITE, 0, rkey, addr);
}

static void ornic_wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
				    __be32 imm)
{
	ornic_wr_open_rdma(ibqp, ORNIC_WR_RDMA_WRITE_IMM, imm, rkey, addr);
}

static void ornic_wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr)
{
	ornic_wr_open_rdma(ibqp, ORNIC_WR_RDMA_READ, 0, rkey, addr);
}

static void ornic_wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
				    uint64_t compare, uint64_t swap)
{
	ornic_wr_open_atomic(ibqp, ORNIC_WR_COMP_SWAP, rkey, addr, swap, compare);
}

static void ornic_wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
				      uint64_t add)
{
	ornic_wr_open_atomic(ibqp, ORNIC_WR_FETCH_ADD, rkey, addr, add, 0);
}

#ifndef ORNIC_LACKS_WR_FLUSH
static void ornic_wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr, size_t len,
			   uint8_t type, uint8_t level)
{
	void *seg = ornic_wr_open(ibqp, ORNIC_WR_FLUSH, 0);

	if (!seg)
		return;
	seg = ornic_wqe_remote(seg, addr, rkey);
	ornic_wqe_flush(seg, len, type, level);
}
#endif

/* Build an ATOMIC_WRITE. The call has the operand of 8 bytes, so no data call follows. */
static void ornic_wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
				  const void *value)
{
	void *seg = ornic_wr_open(ibqp, ORNIC_WR_ATOMIC_WRITE, 0);
	struct ornic_qp *qp = to_oqp_ex(ibqp);

	if (!seg)
		return;
	memcpy(ornic_wqe_remote(seg, addr, rkey), value, sizeof(uint64_t));
	qp->build->flags |= ORNIC_WQE_INLINE;
	qp->build->count = htole16(sizeof(uint64_t));
}

/* Return the work request for a data or address call, NULL without one or after an error. */
static struct ornic_wqe_ctrl *ornic_wr_building(struct ornic_qp *qp)
{
	if (!qp->build && !qp->build_err)
		qp->build_err = EINVAL;
	return qp->build_err ? NULL : qp->build;
}

/*
 * Return true if a data call may follow. The listed requests have no data, and their slot may
 * lack room for SGEs behind their segments. build_data still belongs to an earlier request.
 */
static bool ornic_wr_takes_data(const struct ornic_wqe_ctrl *ctrl)
{
	switch (ctrl->opcode) {
	case ORNIC_WR_FLUSH:
	case ORNIC_WR_ATOMIC_WRITE:
	case ORNIC_WR_LOCAL_INV:
	case ORNIC_WR_BIND_MW:
		return false;
	default:
		return true;
	}
}

/* Return true for an atomic. It has one SGE: its second segment uses the room of the others. */
static bool ornic_wr_is_atomic(const struct ornic_wqe_ctrl *ctrl)
{
	return ctrl->opcode == ORNIC_WR_COMP_SWAP || ctrl->opcode == ORNIC_WR_FETCH_ADD;
}

static void ornic_wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah, uint32_t remote_qpn,
				 uint32_t remote_qkey)
{
	struct ornic_wqe_ctrl *ctrl = ornic_wr_building(to_oqp_ex(ibqp));

	if (ctrl)
		ornic_wqe_path((struct ornic_path *)(ctrl + 1), to_oah(ah), remote_qpn,
			       remote_qkey);
}

static void ornic_wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct ornic_wqe_ctrl *ctrl = ornic_wr_building(to_oqp_ex(ibqp));

	if (ctrl)
		ornic_wqe_target(ctrl, remote_srqn);
}

static void ornic_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
				  const struct ibv_sge *sge)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);
	struct ornic_wqe_ctrl *ctrl = ornic_wr_building(qp);

	if (!ctrl)
		return;
	if (num_sge > qp->sq.max_sge || !ornic_wr_takes_data(ctrl) ||
	    (ornic_wr_is_atomic(ctrl) && num_sge != 1)) {
		qp->build_err = EINVAL;
		return;
	}
	ornic_wqe_sges(qp->build_data, sge, num_sge);
	ctrl->flags &= ~ORNIC_WQE_INLINE;
	ctrl->count = htole16(num_sge);
}

static void ornic_wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	ornic_wr_set_sge_list(ibqp, 1, &sge);
}

static void ornic_wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
					  const struct ibv_data_buf *buf)
{
	struct ornic_qp *qp = to_oqp_ex(ibqp);
	struct ornic_wqe_ctrl *ctrl = ornic_wr_building(qp);
	size_t used = 0;
	size_t i;

	if (!ctrl)
		return;
	if (ornic_wr_is_atomic(ctrl) || !ornic_wr_takes_data(ctrl) ||
	    ctrl->opcode == ORNIC_WR_RDMA_READ) {
		qp->build_err = EINVAL;
		return;
	}
	for (i = 0; i < num_buf; i++) {
		if (!ornic_wqe_inline(qp->build_data, &used, qp->max_inline, buf[i].addr,
				      buf[i].length)) {
			qp->build_err = EINVAL;
			return;
		}
	}
	ctrl->flags |= ORNIC_WQE_INLINE;
	ctrl->count = htole16(used);
}

static void ornic_wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	ornic_wr_set_inline_data_list(ibqp, 1, &buf);
}

static void ornic_qp_set_connected_builders(struct ibv_qp_ex *ex)
{
	ex->wr_send_imm = ornic_wr_send_imm;
	ex->wr_rdma_write = ornic_wr_rdma_write;
	ex->wr_rdma_write_imm = ornic_wr_rdma_write_imm;
	if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
		return;
	ex->wr_local_inv = ornic_wr_local_inv;
	ex->wr_bind_mw = ornic_wr_bind_mw;
}

static void ornic_qp_set_read_builders(struct ibv_qp_ex *ex)
{
	ex->wr_rdma_read = ornic_wr_rdma_read;
	ex->wr_atomic_cmp_swp = ornic_wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = ornic_wr_atomic_fetch_add;
}

static void ornic_qp_set_rc_builders(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_write = ornic_wr_atomic_write;
#ifndef ORNIC_LACKS_WR_FLUSH
	ex->wr_flush = ornic_wr_flush;
#endif
	ex->wr_send_inv = ornic_wr_send_inv;
}

static void ornic_qp_set_ud_builders(struct ibv_qp_ex *ex)
{
	ex->wr_send_imm = ornic_wr_send_imm;
	ex->wr_set_ud_addr = ornic_wr_set_ud_addr;
}

void ornic_qp_set_builders(struct ornic_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = ornic_wr_start;
	ex->wr_complete = ornic_wr_complete;
	ex->wr_abort = ornic_wr_abort;
	ex->wr_send = ornic_wr_send;
	ex->wr_set_sge = ornic_wr_set_sge;
	ex->wr_set_sge_list = ornic_wr_set_sge_list;
	ex->wr_set_inline_data = ornic_wr_set_inline_data;
	ex->wr_set_inline_data_list = ornic_wr_set_inline_data_list;
	if (ex->qp_base.qp_type == IBV_QPT_UD)
		ornic_qp_set_ud_builders(ex);
	else if (ex->qp_base.qp_type != IBV_QPT_RAW_PACKET)
		ornic_qp_set_connected_builders(ex);
	if (ornic_is_reliable(&ex->qp_base))
		ornic_qp_set_read_builders(ex);
	if (ex->qp_base.qp_type == IBV_QPT_RC)
		ornic_qp_set_rc_builders(ex);
	if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = ornic_wr_set_xrc_srqn;
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
