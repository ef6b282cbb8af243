// SPDX-License-Identifier: GPL-2.0
/*
 * Post send work requests of the kernel.
 *
 * A work request takes one slot of the ring: a control segment followed by the
 * segments of its opcode (ornic/wqe.h). A list of work requests is published by
 * one store of the index and, if the device requests it, one doorbell.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/wqe.h>

#include "post.h"
#include "ah.h"
#include "fast_reg.h"
#include "ornic_ib.h"
#include "qp.h"
#include "soft_flush.h"
#include "wq.h"

static_assert((int)ORNIC_WR_RDMA_WRITE_IMM == IB_WR_RDMA_WRITE_WITH_IMM);
static_assert((int)ORNIC_WR_SEND_IMM == IB_WR_SEND_WITH_IMM);
static_assert((int)ORNIC_WR_FETCH_ADD == IB_WR_ATOMIC_FETCH_AND_ADD);
static_assert((int)ORNIC_WR_ATOMIC_WRITE == IB_WR_ATOMIC_WRITE);
static_assert((int)ORNIC_WR_SEND_INV == IB_WR_SEND_WITH_INV);
static_assert((int)ORNIC_WR_LOCAL_INV == IB_WR_LOCAL_INV);
static_assert(ORNIC_WQE_FENCE == IB_SEND_FENCE);
static_assert(ORNIC_WQE_SIGNALED == IB_SEND_SIGNALED);
static_assert(ORNIC_WQE_SOLICITED == IB_SEND_SOLICITED);
static_assert(ORNIC_WQE_INLINE == IB_SEND_INLINE);

#define SEND_FLAGS	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_INLINE)

/**
 * ornic_ib_put_sges() - write scatter/gather elements into a ring entry
 * @sge: destination in the entry
 * @list: elements
 * @count: number of elements
 */
void ornic_ib_put_sges(struct ornic_sge *sge, const struct ib_sge *list, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		sge[i].addr = cpu_to_le64(list[i].addr);
		sge[i].length = cpu_to_le32(list[i].length);
		sge[i].lkey = cpu_to_le32(list[i].lkey);
	}
}

/* Copy inline data, whose elements are virtual addresses. Return: bytes copied or -EINVAL. */
static int ornic_put_inline(const struct ornic_ib_wq *sq, void *to, const struct ib_send_wr *wr)
{
	u32 room = sq->max_inline, used = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > room - used)
			return -EINVAL;
		memcpy(to + used, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		used += wr->sg_list[i].length;
	}
	return used;
}

/*
 * Write the data or its SGEs. Return: value for the control segment's count, which is the bytes of
 * inline data or the number of SGEs, or negative errno.
 */
static int ornic_put_data(const struct ornic_ib_wq *sq, void *to, const struct ib_send_wr *wr)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return ornic_put_inline(sq, to, wr);
	if (wr->num_sge < 0 || wr->num_sge > sq->max_sge)
		return -EINVAL;
	ornic_ib_put_sges(to, wr->sg_list, wr->num_sge);
	return wr->num_sge;
}

static void ornic_put_remote(struct ornic_wqe_remote *seg, u64 addr, u32 rkey)
{
	seg->addr = cpu_to_le64(addr);
	seg->rkey = cpu_to_le32(rkey);
	seg->xrc_srqn = 0;
}

static int ornic_put_rdma(const struct ornic_ib_wq *sq, struct ornic_wqe_remote *seg,
			  const struct ib_send_wr *wr)
{
	ornic_put_remote(seg, rdma_wr(wr)->remote_addr, rdma_wr(wr)->rkey);
	return ornic_put_data(sq, seg + 1, wr);
}

static int ornic_put_atomic(const struct ornic_ib_wq *sq, struct ornic_wqe_remote *seg,
			    const struct ib_send_wr *wr)
{
	struct ornic_wqe_atomic *operands = (struct ornic_wqe_atomic *)(seg + 1);
	const struct ib_atomic_wr *atomic = atomic_wr(wr);

	if (wr->num_sge != 1)
		return -EINVAL;
	ornic_put_remote(seg, atomic->remote_addr, atomic->rkey);
	if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		operands->swap_add = cpu_to_le64(atomic->swap);
		operands->compare = cpu_to_le64(atomic->compare_add);
	} else {
		operands->swap_add = cpu_to_le64(atomic->compare_add);
		operands->compare = 0;
	}
	return ornic_put_data(sq, operands + 1, wr);
}

/* A Q_Key with bit 31 selects that of the queue pair, both in verbs and in the device. */
static int ornic_put_datagram(const struct ornic_ib_wq *sq, struct ornic_path *path,
			      const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah)
		return -EINVAL;
	*path = to_oah(ud->ah)->path;
	path->dest_qpn = cpu_to_le32(ud->remote_qpn & ORNIC_NUMBER_MASK);
	path->qkey = cpu_to_le32(ud->remote_qkey);
	return ornic_put_data(sq, path + 1, wr);
}

/* Write the segments that follow the control segment. Return: as ornic_put_data(). */
static int ornic_put_body(const struct ornic_ib_qp *qp, void *seg, const struct ib_send_wr *wr)
{
	bool connected = ornic_ib_connected(qp->ibqp.qp_type);
	bool rc = qp->ibqp.qp_type == IB_QPT_RC;

	switch (wr->opcode) {
	case IB_WR_LOCAL_INV:
		return connected ? 0 : -EINVAL;
	case IB_WR_REG_MR:
		if (!connected)
			return -EINVAL;
		return ornic_ib_put_fast_reg(to_oib(qp->ibqp.device), seg, reg_wr(wr));
	case IB_WR_SEND_WITH_INV:
		return rc ? ornic_put_data(&qp->sq, seg, wr) : -EINVAL;
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return connected ? ornic_put_data(&qp->sq, seg, wr) :
				   ornic_put_datagram(&qp->sq, seg, wr);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return connected ? ornic_put_rdma(&qp->sq, seg, wr) : -EINVAL;
	case IB_WR_ATOMIC_WRITE:
		return rc ? ornic_put_rdma(&qp->sq, seg, wr) : -EINVAL;
	case IB_WR_RDMA_READ:
		if (!rc || (wr->send_flags & IB_SEND_INLINE))
			return -EINVAL;
		return ornic_put_rdma(&qp->sq, seg, wr);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		if (!rc || (wr->send_flags & IB_SEND_INLINE))
			return -EINVAL;
		return ornic_put_atomic(&qp->sq, seg, wr);
	default:
		return -EINVAL;
	}
}

static int ornic_put_wqe(const struct ornic_ib_qp *qp, u32 index, const struct ib_send_wr *wr)
{
	struct ornic_wqe_ctrl *ctrl = ornic_ib_wqe(&qp->sq, index);
	int count;

	if (wr->send_flags & ~SEND_FLAGS)
		return -EINVAL;
	count = ornic_put_body(qp, ctrl + 1, wr);
	if (count < 0)
		return count;

	ctrl->opcode = wr->opcode == IB_WR_REG_MR ? ORNIC_WR_FAST_REG : wr->opcode;
	ctrl->flags = wr->send_flags;
	ctrl->count = cpu_to_le16(count);
	ctrl->imm = 0;
	if (wr->opcode == IB_WR_SEND_WITH_IMM || wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		ctrl->imm = wr->ex.imm_data;
	else if (wr->opcode == IB_WR_SEND_WITH_INV || wr->opcode == IB_WR_LOCAL_INV)
		ctrl->inv_key = cpu_to_le32(wr->ex.invalidate_rkey);
	ctrl->qpn = cpu_to_le32(qp->qpn);
	ctrl->index = cpu_to_le32(index);
	return 0;
}

static int ornic_post_one_send(struct ornic_ib_qp *qp, const struct ib_send_wr *wr)
{
	struct ornic_ib_wq *sq = &qp->sq;
	u32 index = sq->prod;
	int ret;

	/* pairs with the release that frees the slot (poll_cq.c, soft_flush.c) */
	if (index - smp_load_acquire(&sq->cons) >= BIT(sq->log))
		return -ENOMEM;
	ret = ornic_put_wqe(qp, index, wr);
	if (ret)
		return ret;
	sq->wr[index & (BIT(sq->log) - 1)] = (struct ornic_ib_wr) {
		.id = wr->wr_id,
		.reported = qp->sig_all || (wr->send_flags & IB_SEND_SIGNALED),
	};
	smp_store_release(&sq->prod, index + 1); /* after wr, which polling reads */
	return 0;
}

static bool ornic_may_send(const struct ornic_ib_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state != IB_QPS_RESET && state != IB_QPS_INIT && state != IB_QPS_RTR;
}

int ornic_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	struct ornic_ib_wq *sq = &qp->sq;
	unsigned long flags;
	u32 first;
	int ret;

	spin_lock_irqsave(&sq->lock, flags);
	first = sq->prod;
	ret = ornic_may_send(qp) ? 0 : -EINVAL;
	while (wr && !ret) {
		ret = ornic_post_one_send(qp, wr);
		if (!ret)
			wr = wr->next;
	}
	if (sq->prod != first)
		ornic_ring_post(dev->odev, ORNIC_DB_SQ, qp->qpn, sq->rec, first, sq->prod);
	spin_unlock_irqrestore(&sq->lock, flags);

	ornic_ib_soft_posted(qp, ibqp->send_cq);
	if (ret && bad_wr)
		*bad_wr = wr;
	return ret;
}
