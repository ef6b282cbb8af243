// SPDX-License-Identifier: GPL-2.0
/*
 * The client: connects and sends one request at a time.
 */
#include <linux/slab.h>

#include "ktest.h"

static void answered(struct ktest_slot *slot, struct ib_wc *wc)
{
	struct ktest_conn *conn = slot->conn;

	conn->answer = *slot->msg;
	conn->wc = *wc;
	ktest_post_recv(slot);
	complete(&conn->reply);
}

static int client_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ktest_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		conn->cm_status = 0;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn->broken = true;
		complete_all(&conn->reply);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		complete(&conn->removal);
		return 0;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		conn->cm_status = event->status ?: -ECONNREFUSED;
		break;
	}
	complete(&conn->cm);
	return 0;
}

static int cm_wait(struct ktest_conn *conn)
{
	if (!wait_for_completion_timeout(&conn->cm, KTEST_TIMEOUT))
		return -ETIMEDOUT;
	return conn->cm_status;
}

static int establish(struct ktest_conn *conn, struct sockaddr *addr)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8,
					 .retry_count = 7, .rnr_retry_count = 7 };
	int ret;

	ret = rdma_resolve_addr(conn->id, NULL, addr, 5000);
	ret = ret ?: cm_wait(conn);
	ret = ret ?: rdma_resolve_route(conn->id, 5000);
	ret = ret ?: cm_wait(conn);
	ret = ret ?: ktest_conn_open(conn);
	ret = ret ?: rdma_connect(conn->id, &param);
	return ret ?: cm_wait(conn);
}

/**
 * ktest_connect() - connect to a server
 * @addr: address of the server
 * @poll: polling context of the CQ
 * @pooled: use a CQ of ib_core's pool, shared with other users
 * @shared: use a shared receive queue
 *
 * Return: connection or ERR_PTR().
 */
struct ktest_conn *ktest_connect(struct sockaddr *addr, enum ib_poll_context poll, bool pooled,
				 bool shared)
{
	struct ktest_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int ret;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->poll = poll;
	conn->pooled = pooled;
	conn->shared = shared;
	conn->on_recv = answered;
	init_completion(&conn->cm);
	init_completion(&conn->reply);
	init_completion(&conn->removal);
	conn->id = rdma_create_id(&init_net, client_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(conn->id)) {
		ret = PTR_ERR(conn->id);
		kfree(conn);
		return ERR_PTR(ret);
	}
	ret = establish(conn, addr);
	if (!ret)
		return conn;
	ktest_disconnect(conn);
	return ERR_PTR(ret);
}

void ktest_disconnect(struct ktest_conn *conn)
{
	if (conn->id->qp)
		rdma_disconnect(conn->id);
	ktest_conn_close(conn);
	rdma_destroy_id(conn->id);
	kfree(conn);
}

static int await_reply(struct ktest_conn *conn)
{
	unsigned long end = jiffies + KTEST_TIMEOUT;

	if (conn->poll != IB_POLL_DIRECT) {
		if (!wait_for_completion_timeout(&conn->reply, KTEST_TIMEOUT))
			return -ETIMEDOUT;
		return conn->broken ? -ECONNRESET : 0;
	}
	while (!try_wait_for_completion(&conn->reply)) {
		ib_process_cq_direct(conn->cq, 16);
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return conn->broken ? -ECONNRESET : 0;
}

/**
 * ktest_call() - send a request and wait for the answer
 * @conn: connection
 * @msg: request
 * @before: work request to post before the request, or NULL
 *
 * Return: status of the answer, or negative errno of the connection.
 */
int ktest_call(struct ktest_conn *conn, struct ktest_msg *msg, struct ib_send_wr *before)
{
	int ret;

	*conn->send[0].msg = *msg;
	ret = ktest_post_send(&conn->send[0], before, 0);
	ret = ret ?: await_reply(conn);
	return ret ?: conn->answer.status;
}

/* A work request and the completion for its waiter */
struct single {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void single_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct single *s = container_of(wc->wr_cqe, struct single, cqe);

	s->status = wc->status;
	complete(&s->done);
}

/**
 * ktest_run_wr() - post a work request and wait for its completion
 * @conn: connection
 * @wr: work request
 *
 * Return: status of the completion (enum ib_wc_status), or a negative errno if posting failed.
 */
int ktest_run_wr(struct ktest_conn *conn, struct ib_send_wr *wr)
{
	struct single s = { .cqe.done = single_done };
	int ret;

	init_completion(&s.done);
	wr->wr_cqe = &s.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(conn->id->qp, wr, NULL);
	if (ret)
		return ret;
	wait_for_completion(&s.done);	/* no timeout: at the latest it is flushed */
	return s.status;
}
