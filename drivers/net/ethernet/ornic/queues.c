// SPDX-License-Identifier: GPL-2.0
/*
 * The interface's queue pair and completion queues: memory, creation in the
 * device, states, destruction. What flows through them is in tx.c and rx.c.
 */
#include <linux/dma-mapping.h>

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

/* The completion queue has an event: poll. Context: hard interrupt. */
static void ornic_cq_event(struct ornic_comp *comp)
{
	struct ornic_cq *cq = container_of(comp, struct ornic_cq, comp);
	unsigned long flags;

	spin_lock_irqsave(&cq->arm_lock, flags);
	ornic_arm_event(&cq->arm);
	spin_unlock_irqrestore(&cq->arm_lock, flags);
	napi_schedule(&cq->nd->napi);
}

static int ornic_cq_create(struct ornic_netdev *nd, struct ornic_cq *cq, u8 log)
{
	struct ornic_core *core = nd->core;
	struct ornic_cq_create_cmd in = {
		.log_entries = log,
		.eq = cpu_to_le32(ornic_comp_vector_eq(&core->odev, 0)),
	};
	int err;

	cq->nd = nd;
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
	return err;
}

static void ornic_cq_destroy(struct ornic_netdev *nd, struct ornic_cq *cq)
{
	if (cq->number) {
		down_read(&nd->core->odev.numbers);
		ornic_cmd_destroy(nd->core, ORNIC_OP_CQ_DESTROY, cq->number);
		ornic_comp_del(&nd->core->odev, cq->number);
		up_read(&nd->core->odev.numbers);
		cq->number = 0;
	}
	if (cq->ring)
		dma_free_coherent(ornic_dma_dev(nd->core),
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
 * ornic_cq_consumed() - tell the device what was taken. A completion queue has
 * as many entries as its ring, so this comes before new work is posted there.
 */
void ornic_cq_consumed(struct ornic_cq *cq)
{
	ornic_rec_consumed(cq->rec, cq->next);
}

/* ornic_cq_arm() - ask for an event. Return: true if a completion is there already. */
bool ornic_cq_arm(struct ornic_cq *cq)
{
	struct ornic_dev *odev = &cq->nd->core->odev;
	unsigned long flags;

	spin_lock_irqsave(&cq->arm_lock, flags);
	ornic_rec_arm(odev, cq->rec, &cq->arm, cq->next, ORNIC_ARM_ANY, ORNIC_DB_CQ_ARM,
		      cq->number);
	spin_unlock_irqrestore(&cq->arm_lock, flags);
	return ornic_entry_ready(ornic_ring_entry(cq->ring, cq->next, cq->log, 6), cq->next,
				 cq->log);
}

static int ornic_qp_create(struct ornic_netdev *nd)
{
	struct ornic_qp_create_cmd in = {
		.type = ORNIC_QPT_RAW,
		.transport = ORNIC_TP_ETHERNET,
		.port = ORNIC_PORT,
		.pd = cpu_to_le32(nd->pd),
		.send_cq = cpu_to_le32(nd->tx_cq.number),
		.recv_cq = cpu_to_le32(nd->rx_cq.number),
		.srq = cpu_to_le32(ORNIC_NONE),
		.flags = cpu_to_le32(ORNIC_QP_F_DRIVER | ORNIC_QP_F_PRIVILEGED),
		.sq_log = nd->sq.log,
		.sq_stride = nd->sq.stride,
		.rq_log = nd->rq.log,
		.rq_stride = nd->rq.stride,
		.max_send_sge = cpu_to_le16(nd->max_sge),
		.max_recv_sge = cpu_to_le16(1),
	};
	int err;

	in.sq_record = cpu_to_le64(nd->sq.dma + ornic_wq_bytes(&nd->sq));
	in.rq_record = cpu_to_le64(nd->rq.dma + ornic_wq_bytes(&nd->rq));
	ornic_pages_contiguous(&in.sq_pages, nd->sq.dma);
	ornic_pages_contiguous(&in.rq_pages, nd->rq.dma);
	err = ornic_cmd_qp_create(nd->core, &in, &nd->qpn);
	if (err)
		nd->qpn = 0;
	return err;
}

/**
 * ornic_queues_create() - memory and objects of both directions, queue pair in INIT
 * @nd: interface
 *
 * Return: 0, or an error after which ornic_queues_destroy() cleans up.
 */
int ornic_queues_create(struct ornic_netdev *nd)
{
	struct ornic_core *core = nd->core;
	const struct ornic_identify_device *id = &core->odev.id;
	int err;

	err = ornic_wq_alloc(nd, &nd->sq, clamp_t(u8, id->log_max_sq, ORNIC_MIN_LOG, ORNIC_TX_LOG),
			     ORNIC_TX_STRIDE);
	if (err)
		return err;
	err = ornic_wq_alloc(nd, &nd->rq, clamp_t(u8, id->log_max_rq, ORNIC_MIN_LOG, ORNIC_RX_LOG),
			     ORNIC_RX_STRIDE);
	if (err)
		return err;
	err = ornic_cmd_pd_create(core, &nd->pd);
	if (err)
		return err;
	err = ornic_cq_create(nd, &nd->tx_cq, nd->sq.log);
	if (err)
		return err;
	err = ornic_cq_create(nd, &nd->rx_cq, nd->rq.log);
	if (err)
		return err;
	err = ornic_qp_create(nd);
	if (err)
		return err;
	return ornic_cmd_qp_state(core, nd->qpn, ORNIC_QPS_INIT);
}

/* ornic_queues_start() - buffers are posted: let frames in and out. */
int ornic_queues_start(struct ornic_netdev *nd)
{
	int err;

	err = ornic_cmd_qp_state(nd->core, nd->qpn, ORNIC_QPS_RTR);
	if (err)
		return err;
	return ornic_cmd_qp_state(nd->core, nd->qpn, ORNIC_QPS_RTS);
}

/* ornic_queues_destroy() - whatever ornic_queues_create() got to. NAPI is off. */
void ornic_queues_destroy(struct ornic_netdev *nd)
{
	if (nd->qpn)
		ornic_cmd_destroy(nd->core, ORNIC_OP_QP_DESTROY, nd->qpn);
	nd->qpn = 0;
	ornic_cq_destroy(nd, &nd->rx_cq);
	ornic_cq_destroy(nd, &nd->tx_cq);
	if (nd->pd)
		ornic_cmd_destroy(nd->core, ORNIC_OP_PD_DESTROY, nd->pd);
	nd->pd = 0;
	ornic_wq_free(nd, &nd->rq);
	ornic_wq_free(nd, &nd->sq);
}
