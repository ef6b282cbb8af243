// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that change under traffic, in a protection domain that threads share.
 *
 * Each thread has a region that it moves between two buffers, out of its protection domain
 * and back, and whose rights it changes. After each change it writes through the region and
 * reads back: the data must be in the region's present buffer, and the other buffer must be
 * unchanged. All threads share the source region.
 */
#include "storm_rereg.h"
#include "pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	16384u
#define THREADS	16u

struct mover {
	struct storm *s;
	struct rnd rnd;
	struct ibv_pd *other;
	struct ibv_mr *source;		/* shared by all threads */
	uint8_t *from, *back;		/* this thread's part of it */
	uint8_t *buf[2];
	uint64_t seed[2];		/* seed of the content of each */
	unsigned int now;		/* index of the buffer of the region */
	unsigned int rounds;
	struct ibv_mr *mr;
	struct queue q;
	struct conn c[2];
	pthread_t thread;
};

static void change(struct mover *m, int flags, struct ibv_pd *pd, unsigned int to, int access)
{
	if (ibv_rereg_mr(m->mr, flags, pd, m->buf[to], BYTES, access))
		storm_fail(m->s, "ibv_rereg_mr with flags %#x: %s", flags, strerror(errno));
	else
		m->now = to;
}

static void change_something(struct mover *m)
{
	unsigned int to = rnd_below(&m->rnd, 2);
	struct ibv_pd *pd = m->s->dev.pd;

	switch (rnd_below(&m->rnd, 4)) {
	case 0:
		change(m, IBV_REREG_MR_CHANGE_TRANSLATION, pd, to, 0);
		break;
	case 1:
		change(m, IBV_REREG_MR_CHANGE_ACCESS, pd, m->now,
		       rnd_below(&m->rnd, 2) ? ALL_RIGHTS : ALL_RIGHTS & ~IBV_ACCESS_REMOTE_ATOMIC);
		break;
	case 2:
		change(m, IBV_REREG_MR_CHANGE_PD, m->other, m->now, 0);
		change(m, IBV_REREG_MR_CHANGE_PD, pd, m->now, 0);
		break;
	default:
		change(m, IBV_REREG_MR_CHANGE_PD, m->other, m->now, 0);
		change(m, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION |
			  IBV_REREG_MR_CHANGE_ACCESS, pd, to, ALL_RIGHTS);
		break;
	}
}

static void rdma(struct mover *m, enum ibv_wr_opcode opcode, uint8_t *local)
{
	struct ibv_sge sge = { (uintptr_t)local, BYTES, m->source->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)m->mr->addr, .rkey = m->mr->rkey },
	};
	struct ibv_wc wc = {};

	if (ibv_post_send(m->c[0].qp, &wr, &bad))
		storm_fail(m->s, "ibv_post_send failed");
	else if (!queue_wait(&m->q, &wc, m->s->patience))
		storm_fail(m->s, "nothing completes");
	else if (wc.status != IBV_WC_SUCCESS)
		storm_fail(m->s, "operation %d through a changed region: %s", opcode,
			   ibv_wc_status_str(wc.status));
}

static void check(struct mover *m, const uint8_t *at, uint64_t seed, const char *what)
{
	size_t wrong = pattern_check(at, BYTES, seed, 0);

	if (wrong < BYTES)
		storm_fail(m->s, "%s: byte %zu is wrong", what, wrong);
}

static void write_and_read(struct mover *m, uint64_t seed)
{
	pattern_fill(m->from, BYTES, seed, 0);
	rdma(m, IBV_WR_RDMA_WRITE, m->from);
	m->seed[m->now] = seed;
	memset(m->back, 0, BYTES);
	rdma(m, IBV_WR_RDMA_READ, m->back);
	check(m, m->back, seed, "what was read");
	check(m, m->buf[m->now], m->seed[m->now], "the region");
	check(m, m->buf[!m->now], m->seed[!m->now], "where the region was");
}

static void *mover(void *arg)
{
	struct mover *m = arg;

	for (unsigned int i = 0; i < m->rounds && !atomic_load(&m->s->over); i++) {
		change_something(m);
		write_and_read(m, m->rnd.state);
	}
	return NULL;
}

static void connect_pair(struct mover *m)
{
	struct conn_attr attr;

	queue_create(&m->q, &m->s->dev, 16, false);
	conn_attr_default(&attr, &m->s->dev);
	conn_create(&m->c[0], &m->s->dev, &attr, &m->q, &m->q);
	conn_create(&m->c[1], &m->s->dev, &attr, &m->q, &m->q);
	m->c[0].there = m->c[1].here;
	m->c[1].there = m->c[0].here;
	for (int i = 0; i < 2; i++)
		if (conn_to_rtr(&m->c[i]) || conn_to_rts(&m->c[i]))
			bail("queue pairs do not connect");
}

static void mover_init(struct mover *m, unsigned int number)
{
	rnd_init(&m->rnd, m->s->seed, number);
	for (int i = 0; i < 2; i++) {
		m->buf[i] = aligned_alloc(4096, BYTES);
		pattern_fill(m->buf[i], BYTES, m->seed[i], 0);
	}
	m->mr = ibv_reg_mr(m->s->dev.pd, m->buf[0], BYTES, ALL_RIGHTS);
	if (!m->mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	connect_pair(m);
}

static void mover_free(struct mover *m)
{
	conn_destroy(&m->c[0]);
	conn_destroy(&m->c[1]);
	queue_destroy(&m->q);
	if (ibv_dereg_mr(m->mr))
		bail("a region does not go");
	free(m->buf[0]);
	free(m->buf[1]);
}

void rereg_run(struct storm *s, unsigned int threads, unsigned int rounds)
{
	uint8_t *memory = aligned_alloc(4096, 2 * threads * BYTES);
	struct ibv_mr *source = ibv_reg_mr(s->dev.pd, memory, 2 * threads * BYTES,
					   IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *other = ibv_alloc_pd(s->dev.verbs);
	struct mover m[THREADS];

	if (!source || !other || threads > THREADS)
		bail("cannot start: %s", strerror(errno));
	for (unsigned int i = 0; i < threads; i++) {
		m[i] = (struct mover){
			.s = s, .rounds = rounds, .other = other, .source = source,
			.from = memory + 2 * i * BYTES, .back = memory + (2 * i + 1) * BYTES,
		};
		mover_init(&m[i], i);
	}
	for (unsigned int i = 0; i < threads; i++)
		m[i].thread = thread_start(mover, &m[i]);
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(m[i].thread, NULL);
	for (unsigned int i = 0; i < threads; i++)
		mover_free(&m[i]);
	if (ibv_dereg_mr(source) || ibv_dealloc_pd(other))
		bail("a region or a domain does not go");
	free(memory);
}
