// SPDX-License-Identifier: GPL-2.0
/*
 * Flush completions that the driver generates (ORN-QP-22).
 *
 * A kernel consumer drains a queue pair by posting to it in ERR and waiting for
 * the completion. The device writes no completion if it died, if the CQ is in
 * error or if the rings of the queue pair became unusable. In these cases
 * polling generates a completion for every outstanding work request.
 *
 * A CQ with such queue pairs is marked soft. No event arrives for it, so a
 * workqueue calls its completion handler: once when the mark is set, and for
 * each post that reads the mark. Posting stores the index, then reads the mark.
 * Marking sets the mark, then polls. Each side has a full barrier in between
 * (that of posting is in ornic_rec_publish()), so at least one of them sees
 * the store of the other.
 */
#include <linux/bits.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/ornic/hw/ring.h>

#include "soft_flush.h"
#include "cq.h"
#include "ornic_ib.h"
#include "qp.h"
#include "wq.h"

/**
 * ornic_ib_is_soft() - return true if the driver generates the completions of a queue pair
 * @cq: completion queue of the kernel
 * @qp: queue pair that uses @cq
 *
 * Context: any.
 */
bool ornic_ib_is_soft(const struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp)
{
	return READ_ONCE(cq->broken) || READ_ONCE(qp->dead) ||
	       READ_ONCE(to_oib(cq->ibcq.device)->dead);
}

/**
 * ornic_ib_soft_cq() - mark a CQ soft and have its completion handler called
 * @dev: device
 * @cq: completion queue; one of a process is ignored, because the driver generates completions
 *	for queue pairs of the kernel only
 *
 * Context: any.
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
 * ornic_ib_soft_qp() - generate all further completions of a queue pair in the driver
 * @dev: device
 * @qp: queue pair that the device stopped serving
 *
 * Context: any.
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
 * ornic_ib_soft_device() - mark all CQs of a dead device soft
 * @dev: device
 *
 * Context: process context.
 */
void ornic_ib_soft_device(struct ornic_ib_dev *dev)
{
	struct ornic_ib_cq *cq;
	unsigned long cqn;

	WRITE_ONCE(dev->dead, true);
	smp_mb();	/* pairs with ornic_cq_publish(), which enters a CQ in the table */
	xa_lock(&dev->cqs);
	xa_for_each(&dev->cqs, cqn, cq)
		ornic_ib_soft_cq(dev, cq);
	xa_unlock(&dev->cqs);
}

/**
 * ornic_ib_soft_posted() - call the completion handler if posted work requests need a soft flush
 * @qp: queue pair of the kernel to which they were posted
 * @ibcq: CQ of that queue
 *
 * Context: any; the caller has executed a full barrier after it stored the new index.
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
 * ornic_ib_soft_pending() - return true if ornic_ib_soft_poll() would generate a completion
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

/*
 * ib_cm takes a flushed request for one that it has cancelled itself and does not report it (6.12
 * and 7.2), and an NFS mount over RDMA that waits for the report blocks the removal of the device
 * for ever. So sends of the GSI queue pair get another status.
 */
static enum ib_wc_status ornic_flush_status(const struct ornic_ib_qp *qp, enum ib_wc_opcode opcode)
{
	return qp->ibqp.qp_type == IB_QPT_GSI && opcode == IB_WC_SEND ? IB_WC_FATAL_ERR :
									IB_WC_WR_FLUSH_ERR;
}

static int ornic_flush_wq(struct ornic_ib_qp *qp, struct ornic_ib_wq *wq, enum ib_wc_opcode opcode,
			  int num_entries, struct ib_wc *wc)
{
	enum ib_wc_status status = ornic_flush_status(qp, opcode);
	u32 prod = smp_load_acquire(&wq->prod); /* before wr is read */
	int got;

	for (got = 0; got < num_entries && wq->cons != prod; got++) {
		memset(&wc[got], 0, sizeof(*wc));
		wc[got].wr_id = wq->wr[wq->cons & (BIT(wq->log) - 1)].id;
		wc[got].status = status;
		wc[got].opcode = opcode;
		wc[got].qp = &qp->ibqp;
		smp_store_release(&wq->cons, wq->cons + 1); /* frees the slot just read */
	}
	return got;
}

/*
 * Call the completion handler if the consumer waits for it and the CQ has completions. Entries of
 * the device count too, because the device may have died between an entry and its event.
 */
void ornic_ib_soft_kick(struct work_struct *work)
{
	struct ornic_ib_cq *cq = container_of(work, struct ornic_ib_cq, kick);
	bool due;

	spin_lock_irq(&cq->lock);
	due = ornic_ib_cq_awaited(cq) &&
	      (ornic_ib_cq_ready(cq) || ornic_ib_soft_pending(cq));
	spin_unlock_irq(&cq->lock);
	if (due)
		ornic_ib_cq_call(cq);
}

/**
 * ornic_ib_soft_poll() - generate flush completions
 * @cq: soft completion queue without unpolled entries, its lock held
 * @num_entries: size of @wc
 * @wc: array for the completions
 *
 * Return: number of generated completions.
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
