// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that the remote end must reject: keys, ranges, rights, lengths.
 */
#include "errors.h"

#define ATOMIC	IBV_WR_ATOMIC_FETCH_AND_ADD

enum fault { TAG, INDEX, BEFORE, BEHIND, WRAP, OTHER_PD, MR_RIGHT, QP_RIGHT, GONE };

#define ARG(op, fault)	((op) << 8 | (fault))
#define ARG_OP(arg)	((enum ibv_wr_opcode)((arg) >> 8))
#define ARG_FAULT(arg)	((enum fault)((arg) & 0xff))

static unsigned int right_of(enum ibv_wr_opcode op)
{
	if (op == ATOMIC)
		return IBV_ACCESS_REMOTE_ATOMIC;
	return op == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* Set the target of the client's request; the caller releases *mr and *pd. */
static struct place set_trap(struct env *e, struct ibv_mr **mr, struct ibv_pd **pd)
{
	enum ibv_wr_opcode op = ARG_OP(e->arg);
	enum fault fault = ARG_FAULT(e->arg);
	unsigned int access = ALL_RIGHTS;
	struct place p = { .addr = (uintptr_t)e->mem + TARGET };

	if (fault == MR_RIGHT)
		access &= ~right_of(op);
	*pd = fault == OTHER_PD ? ibv_alloc_pd(e->dev->verbs) : NULL;
	*mr = ibv_reg_mr(*pd ? *pd : e->dev->pd, e->mem + TARGET, TARGET_LEN, access);
	if (!*mr)
		bail("cannot register memory: %s", strerror(errno));
	p.rkey = (*mr)->rkey;
	if (fault == TAG)
		p.rkey ^= 0x01;
	else if (fault == INDEX)
		p.rkey ^= 0x00ab0000;
	else if (fault == BEFORE)
		p.addr -= op == ATOMIC ? 8 : 1;
	else if (fault == BEHIND)
		p.addr += TARGET_LEN - (op == ATOMIC ? 0 : 7);
	else if (fault == WRAP)
		p.addr = -(uint64_t)(op == ATOMIC ? 8 : 4);
	else if (fault == GONE && ibv_dereg_mr(*mr))
		bail("cannot deregister memory");
	if (fault == GONE)
		*mr = NULL;
	return p;
}

static void fault_at_client(struct env *e)
{
	struct job faulty = { .opcode = ARG_OP(e->arg), .id = 1, .off = 0, .len = 8 };
	struct job next = { .opcode = IBV_WR_RDMA_WRITE, .id = 2, .off = TARGET, .len = 64,
			    .unsignaled = true };
	struct place none = { 0 };

	oob_swap(e->oob, &none, &faulty.to, sizeof(none));
	env_post(e, &e->main, &faulty);
	env_post(e, &e->main, &next);
	expect_wc(e, &e->send, 1, IBV_WC_REM_ACCESS_ERR);
	expect_wc(e, &e->send, 2, IBV_WC_WR_FLUSH_ERR);
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
}

static void fault_at_server(struct env *e)
{
	struct place p, theirs;
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	p = set_trap(e, &mr, &pd);
	env_post_recv(e, &e->main, 9, TARGET, 64);
	oob_swap(e->oob, &p, &theirs, sizeof(p));
	expect_event(e, IBV_EVENT_QP_ACCESS_ERR, &e->main);
	expect_wc(e, &e->recv, 9, IBV_WC_WR_FLUSH_ERR);
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
	if (mr)
		ibv_dereg_mr(mr);
	if (pd)
		ibv_dealloc_pd(pd);
}

static void run_fault(struct env *e)
{
	if (e->client)
		fault_at_client(e);
	else
		fault_at_server(e);
	expect_untouched(e);
}

static void no_write(struct conn_attr *a, bool client)
{
	a->access &= client ? ~0u : ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
}

static void no_read(struct conn_attr *a, bool client)
{
	a->access &= client ? ~0u : ~(unsigned int)IBV_ACCESS_REMOTE_READ;
}

static void no_atomic(struct conn_attr *a, bool client)
{
	a->access &= client ? ~0u : ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC;
}

/* arg: bytes sent; the receive has room for TARGET_LEN / 4. */
static void message_too_long(struct env *e)
{
	if (!e->client) {
		env_post_recv(e, &e->main, 5, TARGET, TARGET_LEN / 4);
		env_post_recv(e, &e->main, 6, TARGET, TARGET_LEN / 4);
	}
	oob_barrier(e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_SEND, .id = 1, .off = 0, .len = e->arg };

		env_post(e, &e->main, &job);
		expect_wc(e, &e->send, 1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		expect_wc(e, &e->recv, 5, IBV_WC_LOC_LEN_ERR);
		expect_wc(e, &e->recv, 6, IBV_WC_WR_FLUSH_ERR);
	}
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
}

/*
 * The receive names memory that the responder may not write: an error of the responder, not
 * of the sender.
 */
static void receive_bad_lkey(struct env *e)
{
	struct ibv_sge sge = { (uintptr_t)e->mem + TARGET, 64, e->mr->lkey ^ 0x01 };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (!e->client && ibv_post_recv(e->main.qp, &wr, &bad))
		bail("ibv_post_recv failed");
	oob_barrier(e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_SEND, .id = 1, .off = 0, .len = 64 };

		env_post(e, &e->main, &job);
		expect_wc(e, &e->send, 1, IBV_WC_REM_OP_ERR);
	} else {
		expect_wc(e, &e->recv, 5, IBV_WC_LOC_PROT_ERR);
	}
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
	expect_untouched(e);
}

static void misaligned_atomic(struct env *e)
{
	if (e->client) {
		struct job job = { .opcode = ATOMIC, .id = 1, .off = 0, .len = 8,
				   .to = { .addr = e->there.addr + TARGET + 4, .rkey = e->there.rkey } };

		env_post(e, &e->main, &job);
		expect_wc(e, &e->send, 1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		expect_event(e, IBV_EVENT_QP_REQ_ERR, &e->main);
	}
	expect_state(e, &e->main, IBV_QPS_ERR);
	oob_barrier(e->oob);
	expect_untouched(e);
}

/* The requester may have one read outstanding at a time, so all of them succeed. */
static void one_read_at_a_time(struct env *e)
{
	for (unsigned int i = 0; e->client && i < 32; i++) {
		struct job job = { .opcode = IBV_WR_RDMA_READ, .id = i, .off = TARGET + 64 * i, .len = 64 };

		env_post(e, &e->main, &job);
	}
	for (unsigned int i = 0; e->client && i < 32; i++)
		expect_wc(e, &e->send, i, IBV_WC_SUCCESS);
	oob_barrier(e->oob);
	expect_untouched(e);
}

static void one_read(struct conn_attr *a, bool client)
{
	a->max_rd = client ? 1 : a->max_rd;
	a->max_dest_rd = client ? a->max_dest_rd : 1;
}

/*
 * The requester has more reads outstanding than the responder keeps state for. A responder
 * that answers at once may never notice. Otherwise it rejects the request, and the rest is
 * flushed.
 */
static void too_many_reads(struct env *e)
{
	uint32_t failed = 0, theirs;

	for (unsigned int i = 0; e->client && i < 32; i++) {
		struct job job = { .opcode = IBV_WR_RDMA_READ, .id = i, .off = TARGET + 64 * i, .len = 64 };

		env_post(e, &e->main, &job);
	}
	for (unsigned int i = 0; e->client && i < 32; i++) {
		struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
		bool came = queue_wait(&e->send, &wc, PATIENCE);

		EXPECT(e, came && wc.wr_id == i, "completion %u is missing or out of order", i);
		if (failed || wc.status != IBV_WC_SUCCESS)
			EXPECT(e, wc.status == (failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_INV_REQ_ERR),
			       "completion %u: %s", i, ibv_wc_status_str(wc.status));
		failed |= wc.status != IBV_WC_SUCCESS;
	}
	oob_swap(e->oob, &failed, &theirs, sizeof(failed));
	if (failed || theirs)
		expect_state(e, &e->main, IBV_QPS_ERR);
	if (theirs)
		expect_event(e, IBV_EVENT_QP_REQ_ERR, &e->main);
	oob_barrier(e->oob);
	expect_untouched(e);
}

static void more_reads(struct conn_attr *a, bool client)
{
	a->max_dest_rd = client ? a->max_dest_rd : 1;
}

/* After a fault both ends reconnect the same queue pairs. */
static void reset_and_reuse(struct env *e)
{
	for (int round = 0; round < 2; round++) {
		if (e->client) {
			struct job job = { .opcode = IBV_WR_RDMA_WRITE, .id = round, .off = TARGET,
					   .len = 8, .to = { .addr = 8, .rkey = e->there.rkey } };

			env_post(e, &e->main, &job);
			expect_wc(e, &e->send, round, IBV_WC_REM_ACCESS_ERR);
		} else {
			expect_event(e, IBV_EVENT_QP_ACCESS_ERR, &e->main);
		}
		expect_state(e, &e->main, IBV_QPS_ERR);
		env_reconnect(e, &e->main);
		expect_works(e, &e->main, &e->send);
	}
}

#define FAULTS(name, fault, w, r, a) \
	{ name "_write", run_fault, w, ARG(IBV_WR_RDMA_WRITE, fault) }, \
	{ name "_read", run_fault, r, ARG(IBV_WR_RDMA_READ, fault) }, \
	{ name "_atomic", run_fault, a, ARG(ATOMIC, fault) }

const struct error_test remote_tests[] = {
	FAULTS("rkey_tag", TAG, NULL, NULL, NULL),
	FAULTS("rkey_index", INDEX, NULL, NULL, NULL),
	FAULTS("before", BEFORE, NULL, NULL, NULL),
	FAULTS("behind", BEHIND, NULL, NULL, NULL),
	FAULTS("wrap", WRAP, NULL, NULL, NULL),
	FAULTS("other_pd", OTHER_PD, NULL, NULL, NULL),
	FAULTS("mr_right", MR_RIGHT, NULL, NULL, NULL),
	FAULTS("qp_right", QP_RIGHT, no_write, no_read, no_atomic),
	FAULTS("mr_gone", GONE, NULL, NULL, NULL),
	{ "too_long", message_too_long, NULL, TARGET_LEN / 4 + 1 },
	{ "too_long_packets", message_too_long, NULL, 3 * TARGET_LEN },
	{ "receive_bad_lkey", receive_bad_lkey, NULL, 0 },
	{ "misaligned_atomic", misaligned_atomic, NULL, 0 },
	{ "one_read_at_a_time", one_read_at_a_time, one_read, 0 },
	{ "too_many_reads", too_many_reads, more_reads, 0 },
	{ "reset_and_reuse", reset_and_reuse, NULL, 0 },
	{ NULL, NULL, NULL, 0 },
};
