// SPDX-License-Identifier: GPL-2.0
/*
 * The interface's queue pair and completion queues: memory, creation in the
 * device, states, destruction. The data path is in tx.c and rx.c.
 */
#include <linux/slab.h>

#include "cmd.h"
#include "netdev.h"

#define ORNIC_CQE_LOG	6	/* log2 bytes of a completion */

static_assert(BIT(ORNIC_CQE_LOG) == ORNIC_ENTRY_BYTES);

/* Schedule NAPI on an event of a completion queue. Context: hard interrupt. */
static void ornic_eth_cq_event(struct ornic_comp *comp)
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
	unsigned int noio;
	int err;

	cq->queues = q;
	cq->next = 0;
	cq->comp.comp = ornic_eth_cq_event;
	spin_lock_init(&cq->arm_lock);
	ornic_arm_init(&cq->arm);
	err = ornic_ring_alloc(core, &cq->ring, log, ORNIC_CQE_LOG);
	if (err)
		return err;
	ornic_ring_describe(&cq->ring, &in.pages, &in.record);
	err = ornic_cmd_cq_create(core, &in, &cq->number);
	if (err) {
		cq->number = 0;
		return err;
	}
	noio = ornic_numbers_lock(&core->odev);
	err = ornic_comp_add(&core->odev, cq->number, &cq->comp);
	ornic_numbers_unlock(&core->odev, noio);
	if (err == -EBUSY) {
		ornic_device_malformed(&core->odev, "number of a created completion queue in use");
		cq->number = 0;		/* another queue has it: do not destroy that one */
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
	ornic_ring_free(core, &cq->ring);
}

/**
 * ornic_cq_next() - take the next completion, if there is one
 * @cq: completion queue
 * @cqe: a copy, which the device cannot change
 */
bool ornic_cq_next(struct ornic_cq *cq, struct ornic_cqe *cqe)
{
	void *entry = ornic_ring_at(&cq->ring, cq->next);

	if (!ornic_entry_ready(entry, cq->next, cq->ring.log))
		return false;
	memcpy(cqe, entry, sizeof(*cqe));
	ornic_rec_keep_up(cq->ring.rec, ++cq->next, cq->ring.log);
	return true;
}

/*
 * ornic_cq_consumed() - publish the consumer index. A completion queue has as many
 * entries as its work queue, so call this before posting new work.
 */
void ornic_cq_consumed(struct ornic_cq *cq)
{
	ornic_rec_consumed(cq->ring.rec, cq->next);
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
		ornic_rec_arm(&cq->queues->nd->core->odev, cq->ring.rec, &cq->arm, next,
			      ORNIC_ARM_ANY, ORNIC_DB_CQ_ARM, cq->number);
	spin_unlock_irqrestore(&cq->arm_lock, flags);
	return !armed && ornic_entry_ready(ornic_ring_at(&cq->ring, next), next, cq->ring.log);
}

static int ornic_qp_create(struct ornic_queues *q)
{
	struct ornic_netdev *nd = q->nd;
	struct ornic_qp_create_cmd in = {
		.type = ORNIC_QPT_RAW,
		.transport = ORNIC_TP_ETHERNET,
		.port = ORNIC_PORT,
		.pd = cpu_to_le32(nd->pd),
		.send_cq = cpu_to_le32(q->tx_cq.number),
		.recv_cq = cpu_to_le32(q->rx_cq.number),
		.srq = cpu_to_le32(ORNIC_NONE),
		.flags = cpu_to_le32(ORNIC_QP_F_DRIVER | ORNIC_QP_F_PRIVILEGED),
		.sq_log = q->sq.ring.log,
		.sq_stride = q->sq.ring.stride,
		.rq_log = q->rq.ring.log,
		.rq_stride = q->rq.ring.stride,
		.max_send_sge = cpu_to_le16(nd->max_sge),
		.max_recv_sge = cpu_to_le16(q->shape.segs),
	};
	int err;

	ornic_ring_describe(&q->sq.ring, &in.sq_pages, &in.sq_record);
	ornic_ring_describe(&q->rq.ring, &in.rq_pages, &in.rq_record);
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

	err = ornic_ring_alloc(q->nd->core, &q->sq.ring, tx_log,
			       ornic_stride(id->max_sq_stride, ORNIC_TX_STRIDE));
	if (err)
		return err;
	err = ornic_ring_alloc(q->nd->core, &q->rq.ring, rx_log,
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

	err = ornic_cq_create(q, &q->tx_cq, q->sq.ring.log, &q->nd->tx_coalesce);
	if (err)
		return err;
	err = ornic_cq_create(q, &q->rx_cq, q->rq.ring.log, &q->nd->rx_coalesce);
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

	q = kzalloc_obj(*q);
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
	ornic_rx_cleanup(q);
	ornic_tx_cleanup(q);
	ornic_ring_free(core, &q->rq.ring);
	ornic_ring_free(core, &q->sq.ring);
	kfree(q);
}
