// SPDX-License-Identifier: GPL-2.0
/*
 * Errors at the end that causes them: local keys, flushes, full queues, objects destroyed
 * while in use, rejected calls.
 */
#include "errors.h"

enum local_fault { LKEY_TAG, BEYOND, OTHER_PD, READ_ONLY };

#define ARG(op, fault)	((op) << 8 | (fault))

/* The faulty work request fails here; the remote end is not affected. */
static void run_local_fault(struct env *e)
{
	enum local_fault fault = e->arg & 0xff;
	struct job job = { .opcode = e->arg >> 8, .id = 1, .off = TARGET, .len = 64 };
	struct ibv_pd *pd = NULL;
	struct ibv_mr *mr;

	if (!e->client) {
		env_post_recv(e, &e->main, 5, TARGET, 64);
		oob_barrier(e->oob);
		expect_quiet(e, &e->recv);
		expect_state(e, &e->main, IBV_QPS_RTS);
		expect_untouched(e);
		conn_to(&e->main, IBV_QPS_ERR);
		expect_wc(e, &e->recv, 5, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (fault == OTHER_PD)
		pd = ibv_alloc_pd(e->dev->verbs);
	mr = ibv_reg_mr(pd ? pd : e->dev->pd, e->mem + TARGET, 64,
			fault == READ_ONLY ? 0 : IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("cannot register memory: %s", strerror(errno));
	job.lkey = mr->lkey ^ (fault == LKEY_TAG ? 0x01 : 0);
	job.off += fault == BEYOND ? 1 : 0;
	env_post(e, &e->main, &job);
	expect_wc(e, &e->send, 1, IBV_WC_LOC_PROT_ERR);
	expect_state(e, &e->main, IBV_QPS_ERR);
	expect_untouched(e);
	oob_barrier(e->oob);
	ibv_dereg_mr(mr);
	if (pd)
		ibv_dealloc_pd(pd);
}

/*
 * Sends that the remote end never receives, and receives: ERR flushes them all in order,
 * signaled or not, and also work requests that are posted afterwards.
 */
static void flush_in_order(struct env *e)
{
	const unsigned int before = 12, all = 16;

	for (unsigned int i = 0; e->client && i < all; i++) {
		struct job job = { .opcode = IBV_WR_SEND, .id = i, .off = TARGET, .len = 64,
				   .unsignaled = i % 3 };

		if (i == before && conn_to(&e->main, IBV_QPS_ERR))
			bail("a queue pair does not go to ERR");
		env_post(e, &e->main, &job);
		env_post_recv(e, &e->main, 100 + i, 0, 64);
	}
	for (unsigned int i = 0; e->client && i < all; i++) {
		expect_wc(e, &e->send, i, IBV_WC_WR_FLUSH_ERR);
		expect_wc(e, &e->recv, 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	oob_barrier(e->oob);
	expect_untouched(e);
}

/* The work request at fault has the error's status, the others are flushed, in order. */
static void fault_then_flush(struct env *e)
{
	for (unsigned int i = 0; e->client && i < 40; i++) {
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .id = i, .off = TARGET + i, .len = 1,
				   .unsignaled = i % 2 };

		if (i == 20)
			job.to = (struct place){ .addr = 8, .rkey = e->there.rkey };
		env_post(e, &e->main, &job);
	}
	for (unsigned int i = 0; e->client && i < 20; i += 2)
		expect_wc(e, &e->send, i, IBV_WC_SUCCESS);
	for (unsigned int i = 20; e->client && i < 40; i++)
		expect_wc(e, &e->send, i, i == 20 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
	if (!e->client)
		expect_event(e, IBV_EVENT_QP_ACCESS_ERR, &e->main);
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
}

/* Wait for CQ_ERR; the queue pair's event may come before or after it. */
static void expect_cq_err(struct env *e, struct queue *q, struct conn *c)
{
	bool seen = false, fatal = false;

	while (!seen) {
		struct ibv_async_event event = { .event_type = IBV_EVENT_DEVICE_FATAL };
		double end = now() + PATIENCE;

		while (ibv_get_async_event(e->dev->verbs, &event) && now() < end)
			;
		if (now() >= end) {
			EXPECT(e, false, "no event of a CQ that overflowed within %.0f s", PATIENCE);
			return;
		}
		seen = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == q->cq;
		fatal |= event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == c->qp;
		EXPECT(e, seen || fatal, "event '%s', expected '%s'",
		       ibv_event_type_str(event.event_type), ibv_event_type_str(IBV_EVENT_CQ_ERR));
		ibv_ack_async_event(&event);
	}
	expect_state(e, c, IBV_QPS_ERR);
}

/* arg: the end whose CQ is too small, 0 the client's for sends, 1 the server's for receives. */
static void cq_overflow(struct env *e)
{
	bool small_here = e->client == !e->arg;
	struct queue small, *send = &e->send, *recv = &e->recv;
	struct conn_attr a;
	struct conn c;
	uint32_t room, theirs;

	if (e->no_events)
		return;
	queue_create(&small, e->dev, 4, false);
	room = small.cq->cqe;
	oob_swap(e->oob, &room, &theirs, sizeof(room));
	if (!small_here)
		room = theirs;
	if (small_here && e->arg)
		recv = &small;
	else if (small_here)
		send = &small;
	conn_attr_default(&a, e->dev);
	a.cap.max_send_wr = room + 8;
	a.cap.max_recv_wr = room + 8;
	a.timeout = 12;
	a.retry = 2;
	conn_create(&c, e->dev, &a, send, recv);
	for (unsigned int i = 0; !e->client && e->arg && i < room + 4; i++)
		env_post_recv(e, &c, i, TARGET, 64);
	conn_connect(&c, e->oob);
	for (unsigned int i = 0; e->client && i < room + 4; i++) {
		struct job job = { .opcode = e->arg ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, .id = i,
				   .off = TARGET, .len = 1, .unsignaled = e->arg };

		env_post(e, &c, &job);
	}
	if (small_here)
		expect_cq_err(e, &small, &c);
	oob_barrier(e->oob);
	conn_destroy(&c);
	queue_destroy(&small);
	/* a destroyed queue pair leaves no completions, so the shared CQs are empty again */
	oob_barrier(e->oob);
}

static void destroy_busy(struct env *e)
{
	for (unsigned int i = 0; e->client && i < 32; i++) {
		struct job job = { .opcode = IBV_WR_SEND, .id = i, .off = TARGET, .len = 4096 };

		env_post(e, &e->main, &job);
		env_post_recv(e, &e->main, i, 0, 64);
	}
	if (e->client)
		conn_destroy(&e->main);
	oob_barrier(e->oob);
	expect_quiet(e, &e->send);
	expect_quiet(e, &e->recv);
	if (!e->client)
		expect_state(e, &e->main, IBV_QPS_RTS);
	expect_untouched(e);
}

/* Objects in use by others cannot be destroyed. */
static void destroy_in_use(struct env *e)
{
	int err = ibv_destroy_cq(e->send.cq);

	EXPECT(e, err == EBUSY, "destroying a CQ in use gives %d, expected EBUSY", err);
	err = ibv_dealloc_pd(e->dev->pd);
	EXPECT(e, err == EBUSY, "destroying a PD in use gives %d, expected EBUSY", err);
	expect_works(e, &e->main, &e->send);
}

static void post_refused(struct env *e)
{
	struct ibv_sge sge[2] = { { (uintptr_t)e->mem, 8, e->mr->lkey } };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr rwr = { .wr_id = 1, .sg_list = sge, .num_sge = 1 };
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad = NULL;
	unsigned int n = 0;
	int err;

	for (int max = e->main.attr.cap.max_send_sge; max == 1 && n < 1; n++) {
		err = ibv_post_send(e->main.qp, &wr, &bad);
		EXPECT(e, err && bad == &wr, "more SGEs than the queue pair has are accepted");
	}
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	sge[0].length = 60000;
	EXPECT(e, ibv_post_send(e->main.qp, &wr, &bad), "60000 bytes of inline data are accepted");
	wr.send_flags = 0;
	wr.opcode = 200;
	EXPECT(e, ibv_post_send(e->main.qp, &wr, &bad), "opcode 200 is accepted");
	for (n = 0; n < 100000; n++) {
		err = ibv_post_recv(e->main.qp, &rwr, &bad_recv);
		if (err)
			break;
	}
	EXPECT(e, err == ENOMEM && n >= e->main.attr.cap.max_recv_wr,
	       "%u receives were accepted of %u, then came %d", n, e->main.attr.cap.max_recv_wr, err);
	conn_to(&e->main, IBV_QPS_RESET);
	wr.opcode = IBV_WR_SEND;
	EXPECT(e, ibv_post_send(e->main.qp, &wr, &bad), "a send in RESET is accepted");
	EXPECT(e, ibv_post_recv(e->main.qp, &rwr, &bad_recv), "a receive in RESET is accepted");
	oob_barrier(e->oob);
}

static void reg_refused(struct env *e)
{
	EXPECT(e, !ibv_reg_mr(e->dev->pd, e->mem, 64, IBV_ACCESS_REMOTE_WRITE),
	       "remote write without local write is accepted");
	EXPECT(e, !ibv_reg_mr(e->dev->pd, (void *)64, 64, ALL_RIGHTS),
	       "memory that is not mapped can be registered");
	EXPECT(e, !ibv_reg_mr(e->dev->pd, e->mem, 1ull << 60, ALL_RIGHTS),
	       "more memory than there is can be registered");
}

const struct error_test local_tests[] = {
	{ "lkey_tag_send", run_local_fault, NULL, ARG(IBV_WR_SEND, LKEY_TAG) },
	{ "lkey_tag_write", run_local_fault, NULL, ARG(IBV_WR_RDMA_WRITE, LKEY_TAG) },
	{ "lkey_tag_read", run_local_fault, NULL, ARG(IBV_WR_RDMA_READ, LKEY_TAG) },
	{ "lkey_beyond_send", run_local_fault, NULL, ARG(IBV_WR_SEND, BEYOND) },
	{ "lkey_beyond_read", run_local_fault, NULL, ARG(IBV_WR_RDMA_READ, BEYOND) },
	{ "lkey_other_pd_write", run_local_fault, NULL, ARG(IBV_WR_RDMA_WRITE, OTHER_PD) },
	{ "lkey_read_only_read", run_local_fault, NULL, ARG(IBV_WR_RDMA_READ, READ_ONLY) },
	{ "flush_in_order", flush_in_order, NULL, 0 },
	{ "fault_then_flush", fault_then_flush, NULL, 0 },
	{ "cq_overflow_send", cq_overflow, NULL, 0 },
	{ "cq_overflow_recv", cq_overflow, NULL, 1 },
	{ "destroy_busy", destroy_busy, NULL, 0 },
	{ "destroy_in_use", destroy_in_use, NULL, 0 },
	{ "post_refused", post_refused, NULL, 0 },
	{ "reg_refused", reg_refused, NULL, 0 },
	{ NULL, NULL, NULL, 0 },
};
