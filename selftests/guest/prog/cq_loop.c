// SPDX-License-Identifier: GPL-2.0
/*
 * A connection of the process with itself.
 */
#include "cq.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH	512

static void connect_to(struct conn *c, struct conn *other)
{
	int err;

	c->there = other->here;
	err = conn_to_rtr(c);
	if (!err)
		err = conn_to_rts(c);
	if (err)
		bail("cannot connect a queue pair: %s", strerror(err));
}

void loop_open(struct loop *l, struct dev *d, struct queue *send, struct queue *recv)
{
	struct conn_attr a;

	*l = (struct loop){ .dev = d };
	if (!recv)
		queue_create(&l->recv, d, DEPTH, false);
	recv = recv ? recv : &l->recv;
	conn_attr_default(&a, d);
	a.cap.max_send_wr = DEPTH;
	a.cap.max_recv_wr = DEPTH;
	conn_create(&l->from, d, &a, send, recv);
	conn_create(&l->to, d, &a, recv, recv);
	connect_to(&l->from, &l->to);
	connect_to(&l->to, &l->from);
	l->mem = aligned_alloc(4096, 4096);
	l->mr = ibv_reg_mr(d->pd, l->mem, 4096, ALL_RIGHTS);
	if (!l->mr)
		bail("cannot register memory: %s", strerror(errno));
}

void loop_close(struct loop *l)
{
	conn_destroy(&l->from);
	conn_destroy(&l->to);
	if (l->recv.cq)
		queue_destroy(&l->recv);
	if (ibv_dereg_mr(l->mr))
		bail("cannot deregister memory");
	free(l->mem);
}

static void post(struct loop *l, struct ibv_send_wr *wr)
{
	struct ibv_sge sge = { (uintptr_t)l->mem, 8, l->mr->lkey };
	struct ibv_send_wr *bad;
	int err;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	err = ibv_post_send(l->from.qp, wr, &bad);
	if (err)
		bail("ibv_post_send: %s", strerror(err));
}

void loop_write(struct loop *l, uint64_t id)
{
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)l->mem + 64, l->mr->rkey },
	};

	post(l, &wr);
}

void loop_send(struct loop *l, uint64_t id, bool solicited)
{
	struct ibv_sge sge = { (uintptr_t)l->mem + 128, 8, l->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(id),
		.send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0),
	};
	int err = ibv_post_recv(l->to.qp, &recv, &bad);

	if (err)
		bail("ibv_post_recv: %s", strerror(err));
	post(l, &wr);
}

struct ibv_cq *channel_event(struct ibv_comp_channel *channel, double seconds)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, (int)(seconds * 1000)) <= 0)
		return NULL;
	if (ibv_get_cq_event(channel, &cq, &context))
		bail("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	return cq;
}

void expect_ids(struct verdict *v, struct ibv_cq *cq, uint64_t first, int n)
{
	double end = now() + SOON;
	struct ibv_wc wc;

	for (int i = 0; i < n && now() < end;) {
		int got = ibv_poll_cq(cq, 1, &wc);

		EXPECT(v, got >= 0, "ibv_poll_cq gave %d", got);
		if (!got)
			sched_yield();
		EXPECT(v, !got || wc.status == IBV_WC_SUCCESS, "completion %lu: %s", wc.wr_id,
		       ibv_wc_status_str(wc.status));
		EXPECT(v, !got || wc.wr_id == first + i, "completion %lu instead of %lu",
		       wc.wr_id, first + i);
		i += got;
		if (i == n)
			return;
	}
	EXPECT(v, !n, "%d completions from %lu on did not all come", n, first);
}
