// SPDX-License-Identifier: GPL-2.0
/*
 * One end of a connection: queues, message slots, posting.
 */
#include <linux/slab.h>
#include <rdma/rw.h>

#include "ktest.h"

static struct ib_device *device_of(struct ktest_conn *conn)
{
	return conn->id->device;
}

static int slot_init(struct ktest_conn *conn, struct ktest_slot *slot,
		     void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	slot->conn = conn;
	slot->cqe.done = done;
	slot->msg = kzalloc(sizeof(*slot->msg), GFP_KERNEL);
	if (!slot->msg)
		return -ENOMEM;
	slot->dma = ib_dma_map_single(device_of(conn), slot->msg, sizeof(*slot->msg),
				      DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device_of(conn), slot->dma)) {
		kfree(slot->msg);
		slot->msg = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void slot_fini(struct ktest_conn *conn, struct ktest_slot *slot)
{
	if (!slot->msg)
		return;
	ib_dma_unmap_single(device_of(conn), slot->dma, sizeof(*slot->msg), DMA_BIDIRECTIONAL);
	kfree(slot->msg);
}

static void completed(struct ktest_conn *conn, struct ib_wc *wc)
{
	atomic_inc(&conn->completed);
	if (wc->status == IB_WC_SUCCESS)
		return;
	conn->broken = true;
	complete_all(&conn->reply);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ktest_slot *slot = container_of(wc->wr_cqe, struct ktest_slot, cqe);
	struct ktest_conn *conn = slot->conn;

	completed(conn, wc);
	if (wc->status != IB_WC_SUCCESS)
		return;
	ib_dma_sync_single_for_cpu(device_of(conn), slot->dma, sizeof(*slot->msg),
				   DMA_BIDIRECTIONAL);
	conn->on_recv(slot, wc);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ktest_slot *slot = container_of(wc->wr_cqe, struct ktest_slot, cqe);

	completed(slot->conn, wc);
}

int ktest_post_recv(struct ktest_slot *slot)
{
	struct ib_sge sge = {
		.addr = slot->dma, .length = sizeof(*slot->msg),
		.lkey = slot->conn->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &slot->cqe, .sg_list = &sge, .num_sge = 1 };
	int ret;

	ib_dma_sync_single_for_device(device_of(slot->conn), slot->dma, sizeof(*slot->msg),
				      DMA_BIDIRECTIONAL);
	atomic_inc(&slot->conn->posted);
	if (slot->conn->srq)
		ret = ib_post_srq_recv(slot->conn->srq, &wr, NULL);
	else
		ret = ib_post_recv(slot->conn->id->qp, &wr, NULL);
	if (ret)
		atomic_dec(&slot->conn->posted);
	return ret;
}

/**
 * ktest_send_wr() - prepare a work request that sends a slot's message
 * @slot: slot with the message
 * @wr: work request to fill
 * @sge: SGE of the work request, to fill
 * @invalidate: key that the message invalidates at the peer, or 0
 */
void ktest_send_wr(struct ktest_slot *slot, struct ib_send_wr *wr, struct ib_sge *sge,
		   u32 invalidate)
{
	*sge = (struct ib_sge){
		.addr = slot->dma, .length = sizeof(*slot->msg),
		.lkey = slot->conn->pd->local_dma_lkey,
	};
	*wr = (struct ib_send_wr){
		.wr_cqe = &slot->cqe, .sg_list = sge, .num_sge = 1,
		.opcode = invalidate ? IB_WR_SEND_WITH_INV : IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED, .ex.invalidate_rkey = invalidate,
	};
	ib_dma_sync_single_for_device(device_of(slot->conn), slot->dma, sizeof(*slot->msg),
				      DMA_BIDIRECTIONAL);
}

/* Send a slot's message; if @before is not NULL, post both as one list, @before first. */
int ktest_post_send(struct ktest_slot *slot, struct ib_send_wr *before, u32 invalidate)
{
	struct ib_send_wr wr;
	struct ib_sge sge;
	int ret;

	ktest_send_wr(slot, &wr, &sge, invalidate);
	if (before)
		before->next = &wr;
	atomic_inc(&slot->conn->posted);
	ret = ib_post_send(slot->conn->id->qp, before ?: &wr, NULL);
	if (ret)
		atomic_dec(&slot->conn->posted);
	return ret;
}

static int open_cq(struct ktest_conn *conn)
{
	if (conn->pooled)
		conn->cq = ib_cq_pool_get(device_of(conn), KTEST_CQES, -1, conn->poll);
	else
		conn->cq = ib_alloc_cq(device_of(conn), conn, KTEST_CQES, 0, conn->poll);
	return PTR_ERR_OR_ZERO(conn->cq);
}

static void close_cq(struct ktest_conn *conn)
{
	if (IS_ERR_OR_NULL(conn->cq))
		return;
	if (conn->pooled)
		ib_cq_pool_put(conn->cq, KTEST_CQES);
	else
		ib_free_cq(conn->cq);
}

static void srq_event(struct ib_event *event, void *context)
{
	struct ktest_conn *conn = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		complete(&conn->limit);
}

static int open_srq(struct ktest_conn *conn)
{
	struct ib_srq_init_attr attr = {
		.event_handler = srq_event, .srq_context = conn, .srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = KTEST_DEPTH, .max_sge = 1 },
	};
	struct ib_srq *srq;

	init_completion(&conn->limit);
	srq = ib_create_srq(conn->pd, &attr);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	conn->srq = srq;
	return 0;
}

static void qp_event(struct ib_event *event, void *context)
{
	struct ktest_conn *conn = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete(&conn->last_wqe);
}

static int open_qp(struct ktest_conn *conn)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event, .qp_context = conn,
		.send_cq = conn->cq, .recv_cq = conn->cq, .srq = conn->srq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = KTEST_SENDS, .max_recv_wr = KTEST_DEPTH + 1,
			.max_send_sge = 4, .max_recv_sge = 1, .max_rdma_ctxs = 4,
		},
		.port_num = conn->id->port_num,
	};

	init_completion(&conn->last_wqe);
	return rdma_create_qp(conn->id, conn->pd, &attr);
}

/**
 * ktest_conn_open() - create the queues of a connection and post its receives
 * @conn: connection whose id is bound to a device; the caller closes it, also after an error
 */
int ktest_conn_open(struct ktest_conn *conn)
{
	int i, ret;

	conn->pd = ib_alloc_pd(device_of(conn), 0);
	if (IS_ERR(conn->pd))
		return PTR_ERR(conn->pd);
	ret = open_cq(conn);
	if (!ret && conn->shared)
		ret = open_srq(conn);
	if (!ret)
		ret = open_qp(conn);
	for (i = 0; i < KTEST_DEPTH && !ret; i++) {
		ret = slot_init(conn, &conn->recv[i], recv_done);
		if (!ret)
			ret = slot_init(conn, &conn->send[i], send_done);
		if (!ret)
			ret = ktest_post_recv(&conn->recv[i]);
	}
	return ret;
}

/**
 * ktest_drain() - wait until all posted work requests have completed
 * @conn: connection
 *
 * Drains only once. ib_drain_qp() of a queue pair with an SRQ waits for LAST_WQE, which comes once;
 * a second call would wait for its timeout of 60 s (6.12 and 7.2).
 */
void ktest_drain(struct ktest_conn *conn)
{
	if (!conn->drained)
		ib_drain_qp(conn->id->qp);
	conn->drained = true;
}

void ktest_conn_close(struct ktest_conn *conn)
{
	int i;

	if (conn->id->qp) {
		ktest_drain(conn);
		rdma_destroy_qp(conn->id);
	}
	if (conn->srq)
		ib_destroy_srq(conn->srq);
	close_cq(conn);
	for (i = 0; i < KTEST_DEPTH; i++) {
		slot_fini(conn, &conn->recv[i]);
		slot_fini(conn, &conn->send[i]);
	}
	if (!IS_ERR_OR_NULL(conn->pd))
		ib_dealloc_pd(conn->pd);
}
