// SPDX-License-Identifier: GPL-2.0
/*
 * Post receive work requests of the kernel. The first 40 bytes of a receive for
 * datagrams are room for the network header, which the device writes.
 */
#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/wqe.h>

#include "post.h"
#include "ornic_ib.h"
#include "qp.h"
#include "soft_flush.h"
#include "wq.h"

/**
 * ornic_ib_put_rwqe() - write a receive work request into its ring
 * @wq: receive queue or shared receive queue, its lock held
 * @index: free-running index of the entry
 * @id: id that the completion will contain
 * @wr: work request, with at most @wq->max_sge SGEs
 */
void ornic_ib_put_rwqe(struct ornic_ib_wq *wq, u32 index, u32 id, const struct ib_recv_wr *wr)
{
	struct ornic_rwqe *rwqe = ornic_ib_wqe(wq, index);

	rwqe->count = cpu_to_le16(wr->num_sge);
	rwqe->mbz0 = 0;
	rwqe->id = cpu_to_le32(id);
	rwqe->mbz1 = 0;
	ornic_ib_put_sges((struct ornic_sge *)(rwqe + 1), wr->sg_list, wr->num_sge);
}

/* ornic_ib_recv_room() - return the number of bytes that a receive has room for. */
u32 ornic_ib_recv_room(const struct ib_recv_wr *wr)
{
	u64 room = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		room += wr->sg_list[i].length;
	return min_t(u64, room, U32_MAX);
}

static int ornic_post_one_recv(struct ornic_ib_qp *qp, const struct ib_recv_wr *wr)
{
	struct ornic_ib_wq *rq = &qp->rq;
	u32 index = rq->prod;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	/* pairs with the release that frees the slot (poll_cq.c, soft_flush.c) */
	if (index - smp_load_acquire(&rq->cons) >= BIT(rq->log))
		return -ENOMEM;

	ornic_ib_put_rwqe(rq, index, index, wr);
	rq->wr[index & (BIT(rq->log) - 1)] = (struct ornic_ib_wr) {
		.id = wr->wr_id,
		.room = ornic_ib_recv_room(wr),
		.reported = true,
	};
	smp_store_release(&rq->prod, index + 1); /* after wr, which polling reads */
	return 0;
}

int ornic_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	struct ornic_ib_wq *rq = &qp->rq;
	unsigned long flags;
	u32 first;
	int ret;

	spin_lock_irqsave(&rq->lock, flags);
	first = rq->prod;
	ret = READ_ONCE(qp->state) == IB_QPS_RESET || ibqp->srq ? -EINVAL : 0;
	while (wr && !ret) {
		ret = ornic_post_one_recv(qp, wr);
		if (!ret)
			wr = wr->next;
	}
	if (rq->prod != first)
		ornic_ring_post(dev->odev, ORNIC_DB_RQ, qp->qpn, rq->rec, first, rq->prod);
	spin_unlock_irqrestore(&rq->lock, flags);

	ornic_ib_soft_posted(qp, ibqp->recv_cq);
	if (ret && bad_wr)
		*bad_wr = wr;
	return ret;
}
