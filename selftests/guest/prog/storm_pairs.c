// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs of connected queue pairs that are destroyed with work in flight.
 *
 * Half of them complete in a CQ that all threads share and one polls. After a queue pair is
 * destroyed, none of its completions may come there. Another queue pair may have its number
 * by then, so a wr_id contains the number of the life instead.
 */
#include "storm_kinds.h"

#include <errno.h>
#include <stdlib.h>

#define LONGEST	(NEST_BYTES / 4)

struct pair {
	struct conn c[2];
	struct ibv_srq *srq;		/* of the second one */
	uint32_t life;
	bool shared;
};

static int connect_both(struct pair *p)
{
	int err = 0;

	p->c[0].there = p->c[1].here;
	p->c[1].there = p->c[0].here;
	for (int i = 0; i < 2 && !err; i++) {
		err = conn_to_init(&p->c[i]);
		if (!err)
			err = conn_to_rtr(&p->c[i]);
		if (!err)
			err = conn_to_rts(&p->c[i]);
	}
	return err;
}

/*
 * Queues may be full; a CQ that is not shared may have overrun, which puts its queue pairs
 * into ERR.
 */
static int outcome(bool shared, int err)
{
	return err == ENOMEM || (err == EINVAL && !shared) ? 0 : err;
}

static void destroy_both(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		if (p->c[i].qp)
			ibv_destroy_qp(p->c[i].qp);
	free(p);
}

void *pair_make(struct nest *n)
{
	bool shared = rnd_below(&n->rnd, 2);
	struct queue q = { .cq = nest_any(n, K_CQ) };
	struct conn_attr attr;
	struct pair *p;
	int err;

	if (shared)
		q = n->shared->q;
	if (!q.cq)
		return NULL;
	p = calloc(1, sizeof(*p));
	p->shared = shared;
	p->life = atomic_fetch_add(&n->shared->next, 1);
	conn_attr_default(&attr, &n->s->dev);
	attr.type = rnd_below(&n->rnd, 3) ? IBV_QPT_RC : IBV_QPT_UC;
	attr.pd = nest_pd(n);
	attr.timeout = 14;
	attr.rnr_retry = 1;
	err = conn_make(&p->c[0], &n->s->dev, &attr, &q, &q);
	attr.srq = p->srq = nest_any(n, K_SRQ);
	if (!err)
		err = conn_make(&p->c[1], &n->s->dev, &attr, &q, &q);
	if (!err)
		err = connect_both(p);
	if (!err)
		return p;
	destroy_both(p);
	errno = outcome(shared, err);
	return NULL;
}

/* From RESET on, as for the first connection. */
static int again(struct pair *p)
{
	int err = conn_to(&p->c[0], IBV_QPS_RESET);

	if (!err)
		err = conn_to(&p->c[1], IBV_QPS_RESET);
	return err ? err : connect_both(p);
}

static int post_recv(struct nest *n, struct pair *p)
{
	struct ibv_sge sge = { (uintptr_t)n->mem, LONGEST, n->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = p->life, .sg_list = &sge, .num_sge = 1 };

	if (p->srq)
		return ibv_post_srq_recv(p->srq, &wr, &bad);
	return ibv_post_recv(p->c[1].qp, &wr, &bad);
}

/* Some of it fails: the region is in another domain than some pairs. */
static int post_send(struct nest *n, struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	};
	bool rc = p->c[0].attr.type == IBV_QPT_RC;
	struct ibv_sge sge = {
		(uintptr_t)n->mem + LONGEST, 1 + rnd_below(&n->rnd, LONGEST), n->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = p->life, .opcode = ops[rnd_below(&n->rnd, rc ? 4 : 3)],
		.send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = {
			.remote_addr = (uintptr_t)n->mem + 2 * LONGEST, .rkey = n->mr->rkey,
		},
	};

	return ibv_post_send(p->c[0].qp, &wr, &bad);
}

int pair_use(struct nest *n, void *thing)
{
	struct pair *p = thing;

	switch (rnd_below(&n->rnd, 6)) {
	case 0:
		return outcome(p->shared, again(p));
	case 1:
		return outcome(p->shared, conn_to(&p->c[rnd_below(&n->rnd, 2)], IBV_QPS_ERR));
	case 2:
	case 3:
		return outcome(p->shared, post_recv(n, p));
	default:
		return outcome(p->shared, post_send(n, p));
	}
}

static void mark_gone(struct shared_cq *shared, uint32_t life)
{
	pthread_mutex_lock(&shared->lock);
	if (life < shared->lives)
		shared->gone[life] = true;
	pthread_mutex_unlock(&shared->lock);
}

int pair_drop(struct nest *n, void *thing)
{
	struct pair *p = thing;
	int err = 0;

	for (int i = 0; i < 2; i++) {
		if (p->c[i].qp)
			err = ibv_destroy_qp(p->c[i].qp);
		if (err)
			return err;
		p->c[i].qp = NULL;
	}
	if (p->shared && !p->srq)
		mark_gone(n->shared, p->life);
	free(p);
	return 0;
}

int pair_bind(struct nest *n, void *thing, struct ibv_mw *mw)
{
	struct pair *p = thing;
	struct ibv_mw_bind bind = {
		.wr_id = p->life, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = nest_any(n, K_MR), .mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
		},
	};

	if (!bind.bind_info.mr || mw->type != IBV_MW_TYPE_1 || mw->pd != p->c[0].qp->pd ||
	    bind.bind_info.mr->pd != mw->pd)
		return 0;
	bind.bind_info.addr = (uintptr_t)bind.bind_info.mr->addr;
	bind.bind_info.length = bind.bind_info.mr->length;
	return outcome(p->shared, ibv_bind_mw(p->c[0].qp, mw, &bind));
}
