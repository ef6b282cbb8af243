// SPDX-License-Identifier: GPL-2.0
/*
 * Flush completions made by the driver (ORN-QP-22).
 *
 * A consumer of the kernel drains a queue pair by posting to it in ERR and
 * waiting for the completion. When the device died, when a CQ is in error or
 * when the rings of a queue pair became unusable, no completion comes; then
 * polling makes one for every work request that is posted and not completed.
 *
 * A CQ that has such queue pairs is marked soft, and its completion handler is
 * called from a workqueue, since no event will do that: once when the mark is
 * set, and for each post that sees the mark. Post stores the index, then reads
 * the mark; marking sets the mark, then polls. With a barrier between each two
 * (ornic_rec_publish() has the one of the post) one of them sees the other.
 */
#include "ornic_ib.h"

/**
 * ornic_ib_is_soft() - does the driver make the completions?
 * @cq: completion queue of the kernel
 * @qp: queue pair that completes there
 */
bool ornic_ib_is_soft(const struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp)
{
	return READ_ONCE(cq->broken) || READ_ONCE(qp->dead) ||
	       READ_ONCE(to_oib(cq->ibcq.device)->dead);
}

/**
 * ornic_ib_soft_cq() - the device does not serve all of a CQ any more
 * @dev: device
 * @cq: completion queue
 *
 * Queues of processes are the provider's business.
 */
void ornic_ib_soft_cq(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq)
{
	if (!cq->kbuf.cpu)
		return;
	WRITE_ONCE(cq->soft, true);
	smp_mb();	/* see above */
	queue_work(dev->wq, &cq->kick);
}

/**
 * ornic_ib_soft_qp() - the device stopped serving a queue pair
 * @dev: device
 * @qp: queue pair
 */
void ornic_ib_soft_qp(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	WRITE_ONCE(qp->dead, true);
	if (!qp->kbuf.cpu)
		return;
	ornic_ib_soft_cq(dev, to_ocq(qp->ibqp.send_cq));
	ornic_ib_soft_cq(dev, to_ocq(qp->ibqp.recv_cq));
}

/**
 * ornic_ib_soft_device() - the device died
 * @dev: device
 */
void ornic_ib_soft_device(struct ornic_ib_dev *dev)
{
	struct ornic_ib_cq *cq;
	unsigned long cqn;

	WRITE_ONCE(dev->dead, true);
	smp_mb();	/* pairs with the one when a CQ is entered in the table */
	xa_lock(&dev->cqs);
	xa_for_each(&dev->cqs, cqn, cq)
		ornic_ib_soft_cq(dev, cq);
	xa_unlock(&dev->cqs);
}

/**
 * ornic_ib_soft_posted() - work requests were posted
 * @qp: to this queue pair of the kernel
 * @ibcq: they complete here
 *
 * Context: any; a full barrier lies between the new index and this call.
 */
void ornic_ib_soft_posted(struct ornic_ib_qp *qp, struct ib_cq *ibcq)
{
	struct ornic_ib_cq *cq = to_ocq(ibcq);

	if (unlikely(READ_ONCE(cq->soft)) && ornic_ib_is_soft(cq, qp))
		queue_work(to_oib(ibcq->device)->wq, &cq->kick);
}

static bool ornic_wq_pending(const struct ornic_ib_wq *wq)
{
	return READ_ONCE(wq->prod) != wq->cons;
}

/**
 * ornic_ib_soft_pending() - is there a completion for ornic_ib_soft_poll() to make?
 * @cq: soft completion queue, its lock held
 */
bool ornic_ib_soft_pending(struct ornic_ib_cq *cq)
{
	struct ornic_ib_qp *qp;
	unsigned long qpn;

	xa_for_each(&cq->qps, qpn, qp) {
		if (!ornic_ib_is_soft(cq, qp))
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq && ornic_wq_pending(&qp->sq))
			return true;
		if (qp->ibqp.recv_cq == &cq->ibcq && ornic_wq_pending(&qp->rq))
			return true;
	}
	return false;
}

static int ornic_flush_wq(struct ornic_ib_qp *qp, struct ornic_ib_wq *wq, enum ib_wc_opcode opcode,
			  int num_entries, struct ib_wc *wc)
{
	u32 prod = smp_load_acquire(&wq->prod); /* before the ids of what is posted */
	int got;

	for (got = 0; got < num_entries && wq->cons != prod; got++) {
		memset(&wc[got], 0, sizeof(*wc));
		wc[got].wr_id = wq->wr_id[wq->cons & (BIT(wq->log) - 1)];
		wc[got].status = IB_WC_WR_FLUSH_ERR;
		wc[got].opcode = opcode;
		wc[got].qp = &qp->ibqp;
		smp_store_release(&wq->cons, wq->cons + 1); /* frees the slot just read */
	}
	return got;
}

/*
 * Completions are due: tell a user that asked to be told. Entries count, too: the device may have
 * died between an entry and its event. A CQ without either is left alone: its user may be ending.
 */
void ornic_ib_soft_kick(struct work_struct *work)
{
	struct ornic_ib_cq *cq = container_of(work, struct ornic_ib_cq, kick);
	bool due;

	spin_lock_irq(&cq->lock);
	due = cq->arm.type != ORNIC_ARM_NONE &&
	      (ornic_ib_cq_ready(cq) || ornic_ib_soft_pending(cq));
	spin_unlock_irq(&cq->lock);
	if (due)
		ornic_ib_cq_call(cq);
}

/**
 * ornic_ib_soft_poll() - make flush completions
 * @cq: soft completion queue, its lock held, whose entries are all polled
 * @num_entries: room
 * @wc: completions
 *
 * Return: how many were made.
 */
int ornic_ib_soft_poll(struct ornic_ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	struct ornic_ib_qp *qp;
	unsigned long qpn;
	int got = 0;

	xa_for_each(&cq->qps, qpn, qp) {
		if (!ornic_ib_is_soft(cq, qp))
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq)
			got += ornic_flush_wq(qp, &qp->sq, IB_WC_SEND, num_entries - got, &wc[got]);
		if (qp->ibqp.recv_cq == &cq->ibcq)
			got += ornic_flush_wq(qp, &qp->rq, IB_WC_RECV, num_entries - got, &wc[got]);
		if (got == num_entries)
			break;
	}
	return got;
}
