// SPDX-License-Identifier: GPL-2.0
/*
 * Environment and expectations of the error tests.
 */
#include "errors.h"
#include "pattern.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

void env_post(struct env *e, struct conn *c, const struct job *job)
{
	struct ibv_sge sge = { (uintptr_t)e->mem + job->off, job->len,
			       job->lkey ? job->lkey : e->mr->lkey };
	struct place to = job->to;
	struct ibv_send_wr wr = {
		.wr_id = job->id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = job->opcode,
		.send_flags = job->unsignaled ? 0 : IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	if (!to.addr)
		to = (struct place){ .addr = e->there.addr + job->off, .rkey = e->there.rkey };
	if (job->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to.addr;
		wr.wr.atomic.rkey = to.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = to.addr;
		wr.wr.rdma.rkey = to.rkey;
	}
	err = ibv_post_send(c->qp, &wr, &bad);
	EXPECT(e, !err, "ibv_post_send of %llu: %s", (unsigned long long)job->id, strerror(err));
}

void env_post_recv(struct env *e, struct conn *c, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->mem + off, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(c->qp, &wr, &bad);

	EXPECT(e, !err, "ibv_post_recv of %llu: %s", (unsigned long long)id, strerror(err));
}

void expect_wc(struct env *e, struct queue *q, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!queue_wait(q, &wc, PATIENCE)) {
		EXPECT(e, false, "no completion of %llu (%s) within %.0f s", (unsigned long long)id,
		       ibv_wc_status_str(status), PATIENCE);
		return;
	}
	EXPECT(e, wc.wr_id == id && wc.status == status,
	       "completion of %llu: %s (%#x); expected %llu: %s", (unsigned long long)wc.wr_id,
	       ibv_wc_status_str(wc.status), wc.vendor_err, (unsigned long long)id,
	       ibv_wc_status_str(status));
}

void expect_quiet(struct env *e, struct queue *q)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(q->cq, 1, &wc) > 0)
		EXPECT(e, false, "unexpected completion of %llu: %s",
		       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

static bool next_event(struct env *e, struct ibv_async_event *event, int milliseconds)
{
	struct pollfd fd = { .fd = e->dev->verbs->async_fd, .events = POLLIN };

	if (poll(&fd, 1, milliseconds) <= 0 || ibv_get_async_event(e->dev->verbs, event))
		return false;
	ibv_ack_async_event(event);
	return true;
}

void expect_event(struct env *e, enum ibv_event_type type, struct conn *c)
{
	struct ibv_async_event event;

	if (e->no_events)
		return;
	if (!next_event(e, &event, PATIENCE * 1000)) {
		EXPECT(e, false, "no event '%s' within %.0f s", ibv_event_type_str(type), PATIENCE);
		return;
	}
	EXPECT(e, event.event_type == type, "event '%s', expected '%s'",
	       ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	EXPECT(e, !c || event.element.qp == c->qp, "event of another queue pair");
}

void expect_state(struct env *e, struct conn *c, enum ibv_qp_state state)
{
	static const char * const name[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "?" };
	double end = now() + PATIENCE;
	enum ibv_qp_state is;

	do {
		is = conn_state(c);
	} while (is != state && now() < end);
	EXPECT(e, is == state, "queue pair is in %s, expected %s", name[is], name[state]);
}

void expect_works(struct env *e, struct conn *c, struct queue *q)
{
	size_t bad, len = 3000;

	if (e->client)
		pattern_fill(e->mem + CALM, len, c->there.qpn, 0);
	else
		memset(e->mem + CALM, 0, len);
	oob_barrier(e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .id = 77, .off = CALM, .len = len };

		env_post(e, c, &job);
		expect_wc(e, q, 77, IBV_WC_SUCCESS);
	}
	oob_barrier(e->oob);
	bad = pattern_check(e->mem + CALM, len, e->client ? c->there.qpn : c->here.qpn, 0);
	EXPECT(e, bad == len, "byte %zu of the data is wrong afterwards", bad);
}

void expect_untouched(struct env *e)
{
	size_t bad = guard_check(e->mem, 0, CALM);

	EXPECT(e, bad == CALM, "byte %zu of the area is %02x, was %02x", bad, e->mem[bad],
	       guard_byte(bad));
}

void env_reconnect(struct env *e, struct conn *c)
{
	int err = conn_to(c, IBV_QPS_RESET);

	if (!err)
		err = conn_to_init(c);
	EXPECT(e, !err, "a queue pair does not go from ERR to RESET to INIT: %s", strerror(err));
	conn_connect(c, e->oob);
}

void env_open(struct env *e, const struct error_test *t)
{
	struct place here = { 0 };
	struct conn_attr a;

	e->mem = aligned_alloc(4096, AREA);
	if (!e->mem)
		bail("no memory");
	guard_fill(e->mem, 0, AREA);
	e->mr = ibv_reg_mr(e->dev->pd, e->mem, AREA, ALL_RIGHTS);
	if (!e->mr)
		bail("cannot register memory: %s", strerror(errno));
	here.addr = (uintptr_t)e->mem;
	here.rkey = e->mr->rkey;
	oob_swap(e->oob, &here, &e->there, sizeof(here));
	e->arg = t->arg;
	fcntl(e->dev->verbs->async_fd, F_SETFL, O_NONBLOCK);
	queue_create(&e->send, e->dev, 128, false);
	queue_create(&e->recv, e->dev, 128, false);
	queue_create(&e->calm, e->dev, 16, false);
	conn_attr_default(&a, e->dev);
	conn_create(&e->innocent, e->dev, &a, &e->calm, &e->calm);
	conn_connect(&e->innocent, e->oob);
	if (t->attr)
		t->attr(&a, e->client);
	conn_create(&e->main, e->dev, &a, &e->send, &e->recv);
	conn_connect(&e->main, e->oob);
}

void env_close(struct env *e)
{
	struct ibv_async_event event;

	expect_works(e, &e->innocent, &e->calm);
	expect_quiet(e, &e->send);
	expect_quiet(e, &e->recv);
	expect_quiet(e, &e->calm);
	while (!e->no_events && next_event(e, &event, 0))
		EXPECT(e, false, "unexpected event '%s'", ibv_event_type_str(event.event_type));
	conn_destroy(&e->main);
	conn_destroy(&e->innocent);
	queue_destroy(&e->send);
	queue_destroy(&e->recv);
	queue_destroy(&e->calm);
	if (ibv_dereg_mr(e->mr))
		bail("cannot deregister memory: %s", strerror(errno));
	free(e->mem);
}
