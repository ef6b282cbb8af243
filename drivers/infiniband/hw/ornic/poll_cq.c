// SPDX-License-Identifier: GPL-2.0
/*
 * Poll and arm completion queues of the kernel.
 *
 * Each entry is copied once and then validated, because the driver does not trust
 * an index from the device (ORN-SEC-7). Each CQ has its own table of queue pairs,
 * so an entry cannot name a queue pair that uses another CQ. A queue pair that is
 * being destroyed exists until ornic_ib_cq_forget() has held the lock of the CQ.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/ornic/ring.h>
#include <linux/ornic/hw/cq.h>

#include "cq.h"
#include "ornic_ib.h"
#include "qp.h"
#include "soft_flush.h"
#include "srq.h"
#include "wq.h"

/* Statuses, flags and most opcodes have the kernel's numbers. */
static_assert((int)ORNIC_WC_GENERAL_ERR == IB_WC_GENERAL_ERR);
static_assert((int)ORNIC_WC_RNR_RETRY_EXC_ERR == IB_WC_RNR_RETRY_EXC_ERR);
static_assert((int)ORNIC_WC_WR_FLUSH_ERR == IB_WC_WR_FLUSH_ERR);
static_assert((int)ORNIC_WC_FETCH_ADD == IB_WC_FETCH_ADD);
static_assert((int)ORNIC_WC_RECV == IB_WC_RECV);
static_assert((int)ORNIC_WC_RECV_RDMA_WITH_IMM == IB_WC_RECV_RDMA_WITH_IMM);
static_assert(ORNIC_CQE_GRH == IB_WC_GRH);
static_assert(ORNIC_CQE_WITH_IMM == IB_WC_WITH_IMM);
static_assert(ORNIC_CQE_WITH_INV == IB_WC_WITH_INVALIDATE);
static_assert((int)ORNIC_WC_LOCAL_INV == IB_WC_LOCAL_INV);
static_assert(ORNIC_CQE_SMAC == IB_WC_WITH_SMAC);
static_assert(ORNIC_CQE_VLAN == IB_WC_WITH_VLAN);
static_assert(ORNIC_CQE_NET_TYPE == IB_WC_WITH_NETWORK_HDR_TYPE);
static_assert((int)ORNIC_NET_IPV6 == RDMA_NETWORK_IPV6);

#define WC_FLAGS	(ORNIC_CQE_GRH | ORNIC_CQE_WITH_IMM | ORNIC_CQE_WITH_INV | \
			 ORNIC_CQE_SMAC | ORNIC_CQE_VLAN | ORNIC_CQE_NET_TYPE)

/**
 * ornic_ib_cq_ready() - return true if the device has written an unpolled entry
 * @cq: completion queue of the kernel, its lock held
 */
bool ornic_ib_cq_ready(const struct ornic_ib_cq *cq)
{
	return ornic_entry_ready(ornic_ib_cqe(cq, cq->index), cq->index, cq->log_entries);
}

static bool ornic_opcode_known(u8 opcode)
{
	switch (opcode) {
	case ORNIC_WC_SEND:
	case ORNIC_WC_RDMA_WRITE:
	case ORNIC_WC_RDMA_READ:
	case ORNIC_WC_COMP_SWAP:
	case ORNIC_WC_FETCH_ADD:
	case ORNIC_WC_FLUSH:
	case ORNIC_WC_ATOMIC_WRITE:
	case ORNIC_WC_LOCAL_INV:
	case ORNIC_WC_FAST_REG:
	case ORNIC_WC_RECV:
	case ORNIC_WC_RECV_RDMA_WITH_IMM:
		return true;
	default:
		return false;
	}
}

static bool ornic_malformed(struct ornic_ib_cq *cq, const char *what)
{
	ornic_device_malformed(to_oib(cq->ibcq.device)->odev, what);
	return false;
}

/*
 * Return: the bytes that a completion reports for the buffers of a receive. Consumers rely on it,
 * so it must not exceed them. That of RDMA_WITH_IMM is about other memory.
 */
static u32 ornic_received(const struct ornic_cqe *cqe)
{
	bool recv = cqe->status == ORNIC_WC_SUCCESS && cqe->opcode == ORNIC_WC_RECV;

	return recv ? le32_to_cpu(cqe->byte_len) : 0;
}

/* Return true if no entry was written for a work request before @index that must have one. */
static bool ornic_poll_cq_skips(const struct ornic_ib_wq *wq, u32 index)
{
	u32 i;

	for (i = wq->cons; i != index; i++)
		if (wq->wr[i & (BIT(wq->log) - 1)].reported)
			return true;
	return false;
}

/*
 * Retire a work request and all earlier ones of its queue (ORN-CQ-8). Entries come in order
 * (ORN-CQ-1), so the earlier ones are sends without an entry of their own: a consumer that
 * misses a completion may wait for it for ever. Drop a late entry of a work request that the
 * driver has already flushed.
 *
 * Return: false if the entry is dropped or malformed.
 */
static bool ornic_poll_cq_retire(struct ornic_ib_cq *cq, struct ornic_ib_qp *qp, bool recv,
				 const struct ornic_cqe *cqe, u64 *wr_id)
{
	struct ornic_ib_wq *wq = recv ? &qp->rq : &qp->sq;
	u32 posted = smp_load_acquire(&wq->prod) - wq->cons;	/* before wr is read */
	u32 index = le32_to_cpu(cqe->wqe_id);
	const struct ornic_ib_wr *wr;

	if (index - wq->cons >= posted)
		return !ornic_ib_is_soft(cq, qp) &&
		       ornic_malformed(cq, "completion of a work request that is not posted");
	if (ornic_poll_cq_skips(wq, index))
		return ornic_malformed(cq, "no completion of an earlier work request");
	wr = &wq->wr[index & (BIT(wq->log) - 1)];
	if (recv && ornic_received(cqe) > wr->room)
		return ornic_malformed(cq, "completion of more bytes than a receive has room for");
	*wr_id = wr->id;
	smp_store_release(&wq->cons, index + 1); /* frees the slot, so after wr is read */
	return true;
}

/* Retire a receive of an SRQ. These complete in any order, so the entry contains its id. */
static bool ornic_retire_shared(struct ornic_ib_cq *cq, struct ib_srq *ibsrq,
				const struct ornic_cqe *cqe, u64 *wr_id)
{
	struct ornic_ib_srq *srq = to_osrq(ibsrq);

	if (le32_to_cpu(cqe->srqn) != srq->srqn ||
	    !ornic_ib_srq_retire(srq, le32_to_cpu(cqe->wqe_id), ornic_received(cqe), wr_id))
		return ornic_malformed(cq, "completion of a shared receive unposted or too short");
	return true;
}

static bool ornic_retire_any(struct ornic_ib_cq *cq, struct ornic_ib_qp *qp,
			     const struct ornic_cqe *cqe, u64 *wr_id)
{
	bool recv = cqe->opcode & ORNIC_WC_RECV_BIT;

	if (recv && qp->ibqp.srq)
		return ornic_retire_shared(cq, qp->ibqp.srq, cqe, wr_id);
	return ornic_poll_cq_retire(cq, qp, recv, cqe, wr_id);
}

static void ornic_fill_address(struct ib_wc *wc, const struct ornic_cqe *cqe, u32 flags)
{
	wc->wc_flags = flags & WC_FLAGS;
	wc->src_qp = le32_to_cpu(cqe->src_qp) & ORNIC_NUMBER_MASK;
	wc->pkey_index = le16_to_cpu(cqe->pkey_index);
	wc->sl = cqe->sl & 0xf;
	wc->port_num = ORNIC_IB_PORT;
	if (flags & ORNIC_CQE_SMAC)
		ether_addr_copy(wc->smac, cqe->smac);
	if (flags & ORNIC_CQE_VLAN)
		wc->vlan_id = le16_to_cpu(cqe->vlan_tci) & VLAN_VID_MASK;
	if (cqe->net_type <= ORNIC_NET_IPV6)
		wc->network_hdr_type = cqe->net_type;
	else
		wc->wc_flags &= ~IB_WC_WITH_NETWORK_HDR_TYPE;
}

/* Find the queue pair of an entry; it exists while the caller holds the lock of the CQ. */
static struct ornic_ib_qp *ornic_poll_cq_find_qp(struct ornic_ib_cq *cq, u32 qpn)
{
	if (!cq->last || cq->last->qpn != qpn)
		cq->last = xa_load(&cq->qps, qpn);
	return cq->last;
}

/* Convert an entry. Return: false if it is dropped or malformed, so the user gets nothing. */
static bool ornic_fill_wc(struct ornic_ib_cq *cq, const struct ornic_cqe *cqe, struct ib_wc *wc)
{
	struct ornic_ib_qp *qp =
		ornic_poll_cq_find_qp(cq, le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK);
	bool recv = cqe->opcode & ORNIC_WC_RECV_BIT;

	if (!qp)
		return false;
	if ((recv ? qp->ibqp.recv_cq : qp->ibqp.send_cq) != &cq->ibcq)
		return ornic_malformed(cq, "completion in the other CQ of a queue pair");
	if (cqe->status > ORNIC_WC_GENERAL_ERR ||
	    (cqe->status == ORNIC_WC_SUCCESS && !ornic_opcode_known(cqe->opcode)))
		return ornic_malformed(cq, "completion with unknown opcode or status");

	memset(wc, 0, sizeof(*wc));
	if (!ornic_retire_any(cq, qp, cqe, &wc->wr_id))
		return false;
	wc->qp = &qp->ibqp;
	wc->status = cqe->status;
	wc->vendor_err = le32_to_cpu(cqe->syndrome);
	wc->opcode = recv ? IB_WC_RECV : IB_WC_SEND;
	if (cqe->status != ORNIC_WC_SUCCESS)
		return true;

	wc->opcode = cqe->opcode == ORNIC_WC_FAST_REG ? IB_WC_REG_MR : cqe->opcode;
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (cqe->flags & cpu_to_le32(ORNIC_CQE_WITH_INV))
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_key);
	else
		wc->ex.imm_data = cqe->imm;
	ornic_fill_address(wc, cqe, le32_to_cpu(cqe->flags));
	return true;
}

/* Poll at most as many entries as the ring has, so that a faulty device cannot hold the CPU. */
static int ornic_poll_ring(struct ornic_ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	u32 first = cq->index;
	struct ornic_cqe cqe;
	int got = 0;

	while (got < num_entries && cq->index - first < BIT(cq->log_entries)) {
		if (!ornic_ib_cq_ready(cq))
			break;
		cqe = *ornic_ib_cqe(cq, cq->index++);
		ornic_rec_keep_up(cq->rec, cq->index, cq->log_entries);
		if (ornic_fill_wc(cq, &cqe, &wc[got]))
			got++;
	}
	if (cq->index != first)
		ornic_rec_consumed(cq->rec, cq->index);
	return got;
}

int ornic_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct ornic_ib_cq *cq = to_ocq(ibcq);
	unsigned long flags;
	int got;

	spin_lock_irqsave(&cq->lock, flags);
	got = ornic_poll_ring(cq, num_entries, wc);
	if (got < num_entries && READ_ONCE(cq->soft))
		got += ornic_ib_soft_poll(cq, num_entries - got, &wc[got]);
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

int ornic_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	enum ornic_arm_type type = ORNIC_ARM_ANY;
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_ib_cq *cq = to_ocq(ibcq);
	unsigned long irq;
	bool missed = false, soft = false;

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED)
		type = ORNIC_ARM_SOLICITED;

	spin_lock_irqsave(&cq->lock, irq);
	if (!cq->closed) {
		ornic_rec_arm(dev->odev, cq->rec, &cq->arm, cq->index, type, ORNIC_DB_CQ_ARM,
			      cq->cqn);
		missed = ornic_ib_cq_ready(cq);
		soft = READ_ONCE(cq->soft) && ornic_ib_soft_pending(cq);
	}
	spin_unlock_irqrestore(&cq->lock, irq);

	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		return missed || soft;
	if (soft)
		queue_work(dev->wq, &cq->kick);
	return 0;
}
