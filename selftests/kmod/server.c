// SPDX-License-Identifier: GPL-2.0
/*
 * The server: like a storage target, it moves data between its memory and the
 * client's by rdma_rw contexts.
 */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/rw.h>

#include "ktest.h"

static struct rdma_cm_id *listener;
static struct workqueue_struct *server_wq;
static struct workqueue_struct *bye_wq;	/* its work waits for work on server_wq */
static LIST_HEAD(conns);
static DEFINE_MUTEX(conns_lock);	/* protects conns */

/* Completion of an rdma_rw context */
struct transfer {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void transfer_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct transfer *t = container_of(wc->wr_cqe, struct transfer, cqe);

	t->status = wc->status;
	complete(&t->done);
}

static int move(struct ktest_conn *conn, const struct ktest_msg *msg, struct sg_table *mem,
		enum dma_data_direction dir)
{
	struct ib_qp *qp = conn->id->qp;
	u32 port = conn->id->port_num;
	struct transfer t = { .cqe.done = transfer_done };
	struct rdma_rw_ctx ctx;
	int ret;

	init_completion(&t.done);
	ret = rdma_rw_ctx_init(&ctx, qp, port, mem->sgl, mem->orig_nents, 0, msg->addr, msg->rkey,
			       dir);
	if (ret < 0)
		return ret;
	ret = rdma_rw_ctx_post(&ctx, qp, port, &t.cqe, NULL);
	if (!ret)
		wait_for_completion(&t.done);	/* no timeout: at the latest it is flushed */
	rdma_rw_ctx_destroy(&ctx, qp, port, mem->sgl, mem->orig_nents, dir);
	if (!ret && t.status != IB_WC_SUCCESS)
		ret = -EIO;
	return ret;
}

static int transfer(struct ktest_conn *conn, const struct ktest_msg *msg)
{
	bool push = (msg->op & 0xff) == KTEST_PUSH;
	struct sg_table mem;
	int ret;

	ret = ktest_mem_alloc(&mem, 8, msg->len);
	if (ret)
		return ret;
	if (push)
		ktest_mem_fill(&mem, msg->seed);
	ret = move(conn, msg, &mem, push ? DMA_TO_DEVICE : DMA_FROM_DEVICE);
	if (!ret && !push && !ktest_mem_check(&mem, msg->seed))
		ret = -EBADMSG;
	ktest_mem_free(&mem);
	return ret;
}

static void serve(struct work_struct *work)
{
	struct ktest_slot *slot = container_of(work, struct ktest_slot, work);
	struct ktest_conn *conn = slot->conn;
	struct ktest_slot *out = &conn->send[slot - conn->recv];
	struct ktest_msg msg = *slot->msg;
	u32 inv = msg.op & KTEST_F_INVALIDATE ? msg.rkey : 0;

	msg.status = 0;
	if ((msg.op & 0xff) != KTEST_ECHO)
		msg.status = transfer(conn, &msg);
	*out->msg = msg;
	if (!ktest_post_recv(slot))
		ktest_post_send(out, NULL, inv);
}

static void request(struct ktest_slot *slot, struct ib_wc *wc)
{
	queue_work(server_wq, &slot->work);
}

static void conn_bye(struct work_struct *work)
{
	struct ktest_conn *conn = container_of(work, struct ktest_conn, bye);
	int i;

	if (conn->id->qp)
		ib_drain_qp(conn->id->qp);
	for (i = 0; i < KTEST_DEPTH; i++)
		cancel_work_sync(&conn->recv[i].work);
	ktest_conn_close(conn);
	rdma_destroy_id(conn->id);
	kfree(conn);
}

/* Tear a connection down once, either when the peer disconnects or when the module unloads. */
static void conn_drop(struct ktest_conn *conn)
{
	mutex_lock(&conns_lock);
	if (!list_empty(&conn->list)) {
		list_del_init(&conn->list);
		queue_work(bye_wq, &conn->bye);
	}
	mutex_unlock(&conns_lock);
}

static int accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8,
					 .rnr_retry_count = 7 };
	struct ktest_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int i, ret;

	if (!conn)
		return -ENOMEM;
	conn->id = id;
	conn->poll = IB_POLL_WORKQUEUE;
	conn->on_recv = request;
	init_completion(&conn->reply);
	INIT_WORK(&conn->bye, conn_bye);
	for (i = 0; i < KTEST_DEPTH; i++)
		INIT_WORK(&conn->recv[i].work, serve);
	id->context = conn;
	mutex_lock(&conns_lock);
	list_add(&conn->list, &conns);
	mutex_unlock(&conns_lock);
	ret = ktest_conn_open(conn);
	if (!ret)
		ret = rdma_accept(id, &param);
	if (!ret)
		return 0;
	mutex_lock(&conns_lock);
	list_del_init(&conn->list);
	mutex_unlock(&conns_lock);
	ktest_conn_close(conn);
	kfree(conn);
	return ret;	/* an error makes the connection manager destroy the id */
}

static int server_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept(id);
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (id != listener)
			conn_drop(id->context);
		return 0;
	default:
		return 0;
	}
}

int ktest_server_start(struct sockaddr *addr)
{
	int ret;

	server_wq = alloc_workqueue("ornic_ktest", WQ_UNBOUND, 0);
	if (!server_wq)
		return -ENOMEM;
	ret = -ENOMEM;
	bye_wq = alloc_workqueue("ornic_ktest_bye", WQ_UNBOUND, 0);
	if (!bye_wq)
		goto err_wq;
	listener = rdma_create_id(&init_net, server_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		ret = PTR_ERR(listener);
		goto err_bye;
	}
	ret = rdma_bind_addr(listener, addr);
	if (!ret)
		ret = rdma_listen(listener, KTEST_DEPTH);
	if (!ret)
		return 0;
	rdma_destroy_id(listener);
err_bye:
	destroy_workqueue(bye_wq);
err_wq:
	destroy_workqueue(server_wq);
	return ret;
}

void ktest_server_stop(void)
{
	struct ktest_conn *conn, *next;

	rdma_destroy_id(listener);
	mutex_lock(&conns_lock);
	list_for_each_entry_safe(conn, next, &conns, list) {
		list_del_init(&conn->list);
		queue_work(bye_wq, &conn->bye);
	}
	mutex_unlock(&conns_lock);
	destroy_workqueue(bye_wq);
	destroy_workqueue(server_wq);
}
