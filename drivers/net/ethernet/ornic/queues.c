// SPDX-License-Identifier: GPL-2.0
/*
 * The interface's queue pair and completion queues: memory, creation in the
 * device, states, destruction. The data path is in tx.c and rx.c.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "cmd.h"
#include "netdev.h"

static size_t ornic_wq_bytes(const struct ornic_wq *wq)
{
	return (size_t)1 << (wq->log + wq->stride);
}

static size_t ornic_cq_bytes(const struct ornic_cq *cq)
{
	return (size_t)ORNIC_ENTRY_BYTES << cq->log;
}

static int ornic_wq_alloc(struct ornic_netdev *nd, struct ornic_wq *wq, u8 log, u8 stride)
{
	wq->log = log;
	wq->stride = stride;
	wq->ring = dma_alloc_coherent(ornic_dma_dev(nd->core),
				      ornic_wq_bytes(wq) + sizeof(*wq->rec), &wq->dma, GFP_KERNEL);
	if (!wq->ring)
		return -ENOMEM;
	wq->rec = wq->ring + ornic_wq_bytes(wq);
	ornic_rec_init(wq->rec);
	wq->head = 0;
	wq->published = 0;
	wq->tail = 0;
	return 0;
}

static void ornic_wq_free(struct ornic_netdev *nd, struct ornic_wq *wq)
{
	if (wq->ring)
		dma_free_coherent(ornic_dma_dev(nd->core),
				  ornic_wq_bytes(wq) + sizeof(*wq->rec), wq->ring, wq->dma);
	wq->ring = NULL;
}

/* Schedule NAPI on an event of a completion queue. Context: hard interrupt. */
static void ornic_cq_event(struct ornic_comp *comp)
{
	struct ornic_cq *cq = container_of(comp, struct ornic_cq, comp);
	unsigned long flags;

	spin_lock_irqsave(&cq->arm_lock, flags);
	ornic_arm_event(&cq->arm);
	spin_unlock_irqrestore(&cq->arm_lock, flags);
	napi_schedule(&cq->queues->nd->napi);
}

static int ornic_cq_create(struct ornic_queues *q, struct ornic_cq *cq, u8 log,
			   const struct ornic_coalesce *coalesce)
{
	struct ornic_core *core = q->nd->core;
	struct ornic_cq_create_cmd in = {
		.log_entries = log,
		.eq = cpu_to_le32(ornic_netdev_eq(core)),
		.mod_count = cpu_to_le16(coalesce->frames),
		.mod_period_us = cpu_to_le16(coalesce->usecs),
	};
	int err;

	cq->queues = q;
	cq->log = log;
	cq->next = 0;
	cq->comp.comp = ornic_cq_event;
	spin_lock_init(&cq->arm_lock);
	ornic_arm_init(&cq->arm);
	cq->ring = dma_alloc_coherent(ornic_dma_dev(core), ornic_cq_bytes(cq) + sizeof(*cq->rec),
				      &cq->dma, GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	cq->rec = cq->ring + ornic_cq_bytes(cq);
	ornic_rec_init(cq->rec);

	in.record = cpu_to_le64(cq->dma + ornic_cq_bytes(cq));
	ornic_pages_contiguous(&in.pages, cq->dma);
	err = ornic_cmd_cq_create(core, &in, &cq->number);
	if (err) {
		cq->number = 0;
		return err;
	}
	down_write(&core->odev.numbers);
	err = ornic_comp_add(&core->odev, cq->number, &cq->comp);
	up_write(&core->odev.numbers);
	if (err == -EBUSY) {
		ornic_device_malformed(&core->odev, "number of a created completion queue in use");
		cq->number = 0;		/* it is another's: do not destroy that one */
	}
	return err;
}

static void ornic_cq_destroy(struct ornic_queues *q, struct ornic_cq *cq)
{
	struct ornic_core *core = q->nd->core;

	if (cq->number) {
		down_read(&core->odev.numbers);
		ornic_cmd_destroy(core, ORNIC_OP_CQ_DESTROY, cq->number);
		ornic_comp_del(&core->odev, cq->number);
		up_read(&core->odev.numbers);
		cq->number = 0;
	}
	if (cq->ring)
		dma_free_coherent(ornic_dma_dev(core),
				  ornic_cq_bytes(cq) + sizeof(*cq->rec), cq->ring, cq->dma);
	cq->ring = NULL;
}

/**
 * ornic_cq_next() - take the next completion, if there is one
 * @cq: completion queue
 * @cqe: a copy, which the device cannot change
 */
bool ornic_cq_next(struct ornic_cq *cq, struct ornic_cqe *cqe)
{
	void *entry = ornic_ring_entry(cq->ring, cq->next, cq->log, 6);

	if (!ornic_entry_ready(entry, cq->next, cq->log))
		return false;
	memcpy(cqe, entry, sizeof(*cqe));
	ornic_rec_keep_up(cq->rec, ++cq->next, cq->log);
	return true;
}

/*
 * ornic_cq_consumed() - publish the consumer index. A completion queue has as many
 * entries as its work queue, so call this before posting new work.
 */
void ornic_cq_consumed(struct ornic_cq *cq)
{
	ornic_rec_consumed(cq->rec, cq->next);
}

/**
 * ornic_cq_arm() - ask for an event, unless one is due anyway
 * @cq: completion queue
 * @next: consumer index at the end of the poll
 *
 * An arm lasts until its event: if there was none since the last arm, the first entry
 * after that arm causes one. So a poll arms only the queue that woke it.
 *
 * Called after napi_complete_done(), so the next poll may already run on another CPU.
 * Therefore @next is an argument. ornic_netdev_quiet() waits for this function.
 *
 * Return: true if a completion is already ready.
 */
bool ornic_cq_arm(struct ornic_cq *cq, u32 next)
{
	unsigned long flags;
	bool armed;

	spin_lock_irqsave(&cq->arm_lock, flags);
	armed = cq->arm.type != ORNIC_ARM_NONE;
	if (!armed)
		ornic_rec_arm(&cq->queues->nd->core->odev, cq->rec, &cq->arm, next, ORNIC_ARM_ANY,
			      ORNIC_DB_CQ_ARM, cq->number);
	spin_unlock_irqrestore(&cq->arm_lock, flags);
	return !armed && ornic_entry_ready(ornic_ring_entry(cq->ring, next, cq->log, 6), next,
					   cq->log);
}

static int ornic_qp_create(struct ornic_queues *q)
{
	struct ornic_netdev *nd = q->nd;
	struct ornic_qp_create_cmd in = {
		.type = ORNIC_QPT_RAW,
		.transport = ORNIC_TP_ETHERNET,
		.port = ORNIC_PORT,
		.pd = cpu_to_le32(q->pd),
		.send_cq = cpu_to_le32(q->tx_cq.number),
		.recv_cq = cpu_to_le32(q->rx_cq.number),
		.srq = cpu_to_le32(ORNIC_NONE),
		.flags = cpu_to_le32(ORNIC_QP_F_DRIVER | ORNIC_QP_F_PRIVILEGED),
		.sq_log = q->sq.log,
		.sq_stride = q->sq.stride,
		.rq_log = q->rq.log,
		.rq_stride = q->rq.stride,
		.max_send_sge = cpu_to_le16(nd->max_sge),
		.max_recv_sge = cpu_to_le16(q->shape.segs),
	};
	int err;

	in.sq_record = cpu_to_le64(q->sq.dma + ornic_wq_bytes(&q->sq));
	in.rq_record = cpu_to_le64(q->rq.dma + ornic_wq_bytes(&q->rq));
	ornic_pages_contiguous(&in.sq_pages, q->sq.dma);
	ornic_pages_contiguous(&in.rq_pages, q->rq.dma);
	err = ornic_cmd_qp_create(nd->core, &in, &q->qpn);
	if (err)
		q->qpn = 0;
	return err;
}

/* ornic_queues_max_log() - limit log2 entries of a work queue by CQ size and ORNIC_MAX_LOG. */
u8 ornic_queues_max_log(const struct ornic_netdev *nd, u8 wq_log)
{
	return min3(wq_log, nd->core->odev.id.log_max_cq, (u8)ORNIC_MAX_LOG);
}

static u8 ornic_stride(u8 most, u8 wanted)
{
	return min(most, wanted);
}

static int ornic_queues_alloc(struct ornic_queues *q)
{
	const struct ornic_identify_device *id = &q->nd->core->odev.id;
	u8 tx_log = min(q->nd->tx_log, ornic_queues_max_log(q->nd, id->log_max_sq));
	u8 rx_log = min(q->nd->rx_log, ornic_queues_max_log(q->nd, id->log_max_rq));
	int err;

	err = ornic_wq_alloc(q->nd, &q->sq, tx_log,
			     ornic_stride(id->max_sq_stride, ORNIC_TX_STRIDE));
	if (err)
		return err;
	err = ornic_wq_alloc(q->nd, &q->rq, rx_log,
			     q->shape.segs > ORNIC_RX_SGES(ORNIC_RX_MIN_STRIDE) ?
			     ORNIC_RX_STRIDE : ORNIC_RX_MIN_STRIDE);
	if (err)
		return err;
	err = ornic_tx_init(q);
	if (err)
		return err;
	return ornic_rx_init(q);
}

static int ornic_queues_objects(struct ornic_queues *q)
{
	struct ornic_core *core = q->nd->core;
	int err;

	err = ornic_cmd_pd_create(core, &q->pd);
	if (err)
		return err;
	err = ornic_cq_create(q, &q->tx_cq, q->sq.log, &q->nd->tx_coalesce);
	if (err)
		return err;
	err = ornic_cq_create(q, &q->rx_cq, q->rq.log, &q->nd->rx_coalesce);
	if (err)
		return err;
	err = ornic_qp_create(q);
	if (err)
		return err;
	return ornic_cmd_qp_state(core, q->qpn, ORNIC_QPS_INIT);
}

static int ornic_queues_start(struct ornic_queues *q)
{
	int err;

	ornic_rx_fill(q);
	err = ornic_cmd_qp_state(q->nd->core, q->qpn, ORNIC_QPS_RTR);
	if (err)
		return err;
	return ornic_cmd_qp_state(q->nd->core, q->qpn, ORNIC_QPS_RTS);
}

/**
 * ornic_queues_create() - allocate and create the queues of both directions
 * @nd: interface; other queues may be in use
 * @mtu: size of the receive buffers' payload, in bytes
 *
 * No frame arrives before receive rules name the queue pair. The caller starts NAPI.
 *
 * Context: process. Return: the queues, or an error pointer.
 */
struct ornic_queues *ornic_queues_create(struct ornic_netdev *nd, int mtu)
{
	struct ornic_queues *q;
	int err;

	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return ERR_PTR(-ENOMEM);
	q->nd = nd;
	q->shape = ornic_rx_shape(nd, mtu);
	err = ornic_queues_alloc(q);
	if (!err)
		err = ornic_queues_objects(q);
	if (!err)
		err = ornic_queues_start(q);
	if (!err)
		return q;
	ornic_queues_destroy(q);
	return ERR_PTR(err);
}

/*
 * ornic_queues_destroy() - destroy complete or partly created queues
 *
 * NAPI must not poll them, and is disabled if it ever has.
 */
void ornic_queues_destroy(struct ornic_queues *q)
{
	struct ornic_core *core = q->nd->core;

	if (q->qpn)
		ornic_cmd_destroy(core, ORNIC_OP_QP_DESTROY, q->qpn);
	ornic_cq_destroy(q, &q->rx_cq);
	ornic_cq_destroy(q, &q->tx_cq);
	if (q->pd)
		ornic_cmd_destroy(core, ORNIC_OP_PD_DESTROY, q->pd);
	ornic_rx_cleanup(q);
	ornic_tx_cleanup(q);
	ornic_wq_free(q->nd, &q->rq);
	ornic_wq_free(q->nd, &q->sq);
	kfree(q);
}
