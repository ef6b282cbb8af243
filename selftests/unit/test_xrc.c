// SPDX-License-Identifier: GPL-2.0
/*
 * Extended reliable connections in the data path: the SRQ that a request names provides receives,
 * completion queue and domain; requests with an invalid SRQ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/pair.h"
#include "engine/memop.h"
#include "engine/responder.h"
#include "engine/srq.h"
#include "engine/xrc.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define SRQ_LOG		3
#define SRQ_STRIDE	6
#define LEN		700

/**
 * struct xrc - an initiator on function 0, its target on function 1 with two SRQs
 * @ini, @tgt:	the connection; the CQ of @tgt is that of the SRQs
 * @srq:	SRQs; the second one is in the second PD
 */
struct xrc {
	struct world w;
	struct conn ini;
	struct conn tgt;
	struct xrcd xrcd;
	struct xrcd other;
	struct srq srq[2];
	struct hostq h[2];
	uint64_t src;
	uint64_t dst;
	uint32_t skey;
	uint32_t dkey[2];
};

static void make_srq(struct xrc *x, int i)
{
	struct dut *d = &x->w.dut[1];
	struct srq *srq = &x->srq[i];

	srq->dev = &d->dev;
	srq->type = ORNIC_SRQT_XRC;
	srq->pd = i ? &d->other_pd : &d->pd;
	srq->xrcd = &x->xrcd;
	srq->cq = &x->tgt.rcq;
	srq->wq.log = SRQ_LOG;
	srq->wq.stride = SRQ_STRIDE;
	srq->wq.max_sge = 3;
	dut_ring(d, &srq->wq.mem, &x->h[i], 1u << (SRQ_LOG + SRQ_STRIDE));
	srq->wq.rec = x->h[i].rec;
	assert_int_equal(table_add(&d->dev.srqs, srq, &srq->number), 0);
	srq_init(srq);
}

static int setup(void **state)
{
	const struct conn_opt ini = { .type = ORNIC_QPT_XRC_INI };
	const struct conn_opt tgt = { .type = ORNIC_QPT_XRC_TGT };
	const uint32_t rights = ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |
				ORNIC_ACCESS_REMOTE_READ;
	struct xrc *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	world_init(&x->w, 0);
	conn_init(&x->ini, &x->w.dut[0], &ini);
	conn_init(&x->tgt, &x->w.dut[1], &tgt);
	x->ini.qp.rq.present = false;
	x->tgt.qp.rq.present = false;
	x->tgt.qp.sq.present = false;
	x->tgt.qp.pd = NULL;
	x->tgt.qp.scq = NULL;
	x->tgt.qp.rcq = NULL;
	x->tgt.qp.xrcd = &x->xrcd;
	make_srq(x, 0);
	make_srq(x, 1);
	conn_pair(&x->ini, &x->tgt, 10, 20);
	x->src = dut_buf(&x->w.dut[0], 4096);
	x->skey = dut_key(&x->w.dut[0], NULL, x->src, 4096, ORNIC_ACCESS_LOCAL_WRITE);
	x->dst = dut_buf(&x->w.dut[1], 8192);
	x->dkey[0] = dut_key(&x->w.dut[1], NULL, x->dst, 4096, rights);
	x->dkey[1] = dut_key(&x->w.dut[1], &x->w.dut[1].other_pd, x->dst + 4096, 4096, rights);
	fill(dut_at(&x->w.dut[0], x->src, LEN), LEN, 1);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct xrc *x = *state;

	conn_fini(&x->ini);
	conn_fini(&x->tgt);
	for (int i = 0; i < 2; i++) {
		table_del(&x->w.dut[1].dev.srqs, x->srq[i].number);
		umem_free(&x->srq[i].wq.mem, &x->w.dut[1].dev.lists);
	}
	world_fini(&x->w);
	free(x);
	return 0;
}

static void post(struct xrc *x, int i, uint32_t id)
{
	uint32_t slot = x->h[i].index++ & ((1u << SRQ_LOG) - 1);
	struct ornic_rwqe *r = (void *)dut_at(&x->w.dut[1],
					      x->h[i].ring + (slot << SRQ_STRIDE), 64);
	struct ornic_rec *rec = (void *)guest_at(&x->w.dut[1].guest, x->h[i].rec, 64);
	struct ornic_sge *sge = (void *)(r + 1);

	*r = (struct ornic_rwqe) { .count = htole16(1), .id = htole32(id) };
	sge->addr = htole64(x->dst + i * 4096);
	sge->length = htole32(LEN);
	sge->lkey = htole32(x->dkey[i]);
	__atomic_store_n(&rec->host_index, htole32(x->h[i].index), __ATOMIC_RELEASE);
}

/* Send a request of LEN bytes that names SRQ number @srqn. */
static void request(struct xrc *x, uint8_t opcode, uint32_t srqn, uint64_t raddr, uint32_t rkey)
{
	uint32_t slot = x->ini.sq.index & ((1u << x->ini.qp.sq.log) - 1);
	uint8_t *at = dut_at(&x->w.dut[0], x->ini.sq.ring + (slot << x->ini.qp.sq.stride), 64);
	struct ornic_wqe_ctrl *c = (void *)at;
	struct ornic_wqe_remote *r = (void *)(c + 1);
	struct ornic_sge *sge = (void *)(r + 1);

	*c = (struct ornic_wqe_ctrl) {
		.opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .count = htole16(1),
		.qpn = htole32(x->ini.qp.handle), .index = htole32(x->ini.sq.index),
	};
	*r = (struct ornic_wqe_remote) {
		.addr = htole64(raddr), .rkey = htole32(rkey), .xrc_srqn = htole32(srqn),
	};
	*sge = (struct ornic_sge) { htole64(x->src), htole32(LEN), htole32(x->skey) };
	conn_publish(&x->ini, &x->ini.sq, x->ini.sq.index + 1);
	world_finish(&x->w, 100000000);
}

static void sent(struct xrc *x, uint8_t opcode, uint8_t status)
{
	conn_expect(&x->ini, &x->ini.hscq, x->ini.sq.index - 1, opcode, status);
}

static void received(struct xrc *x, int i, uint32_t id, uint8_t status)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(&x->tgt, &x->tgt.hrcq, &cqe));
	assert_int_equal(le32toh(cqe.srqn), x->srq[i].number);
	assert_int_equal(le32toh(cqe.qpn), x->tgt.qp.handle);
	assert_int_equal(le32toh(cqe.wqe_id), id);
	assert_int_equal(cqe.status, status);
}

/* ORN-XRC-5: one connection, two SRQs, in any order */
static void test_send(void **state)
{
	struct xrc *x = *state;

	post(x, 0, 100);
	post(x, 1, 200);
	post(x, 1, 201);
	request(x, ORNIC_WR_SEND, x->srq[1].number, 0, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	received(x, 1, 200, ORNIC_WC_SUCCESS);
	check(dut_at(&x->w.dut[1], x->dst + 4096, LEN), LEN, 1);
	request(x, ORNIC_WR_SEND, x->srq[0].number, 0, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	received(x, 0, 100, ORNIC_WC_SUCCESS);
	request(x, ORNIC_WR_RDMA_WRITE_IMM, x->srq[1].number, x->dst + 4096, x->dkey[1]);
	sent(x, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
	received(x, 1, 201, ORNIC_WC_SUCCESS);
}

/* ORN-XRC-7 */
static void test_domain(void **state)
{
	struct xrc *x = *state;

	request(x, ORNIC_WR_RDMA_WRITE, x->srq[0].number, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
	check(dut_at(&x->w.dut[1], x->dst, LEN), LEN, 1);
	request(x, ORNIC_WR_RDMA_READ, x->srq[1].number, x->dst + 4096, x->dkey[1]);
	sent(x, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	request(x, ORNIC_WR_RDMA_WRITE, x->srq[1].number, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_WRITE, ORNIC_WC_REM_ACCESS_ERR);
	assert_int_equal(x->tgt.qp.state, ORNIC_QPS_ERR);
}

/* An answer in several packets */
static void test_long_read(void **state)
{
	struct xrc *x = *state;

	x->ini.qp.mtu_code = ORNIC_MTU_256;
	x->tgt.qp.mtu_code = ORNIC_MTU_256;
	qp_set_rate(&x->tgt.qp, 1000000, 0, 0);		/* one by one */
	fill(dut_at(&x->w.dut[1], x->dst, LEN), LEN, 3);
	request(x, ORNIC_WR_RDMA_READ, x->srq[0].number, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	check(dut_at(&x->w.dut[0], x->src, LEN), LEN, 3);
	assert_int_equal(x->w.dut[1].dev.cnt[CNT_rdma_tx_packets], 3);
}

/* ORN-XRC-6: an unused number */
static void test_no_srq(void **state)
{
	struct xrc *x = *state;

	request(x, ORNIC_WR_SEND, x->srq[1].number + 1, 0, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_REM_INV_REQ_ERR);
	assert_int_equal(x->tgt.qp.state, ORNIC_QPS_ERR);
}

/* ORN-XRC-6: of another XRC domain, or not of XRC at all */
static void test_other_domain(void **state)
{
	struct xrc *x = *state;

	x->srq[0].xrcd = &x->other;
	post(x, 0, 1);
	request(x, ORNIC_WR_RDMA_READ, x->srq[0].number, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_READ, ORNIC_WC_REM_INV_REQ_ERR);
	assert_int_equal(x->srq[0].wq.cons, 0);
}

static void test_basic_srq(void **state)
{
	struct xrc *x = *state;

	x->srq[0].type = ORNIC_SRQT_BASIC;
	post(x, 0, 1);
	request(x, ORNIC_WR_SEND, x->srq[0].number, 0, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_REM_INV_REQ_ERR);
	assert_int_equal(x->srq[0].wq.cons, 0);
}

/* ORN-XRC-8 */
static void test_empty(void **state)
{
	struct xrc *x = *state;

	x->ini.qp.rnr_retry = 7;
	x->ini.qp.req.rnr_left = 7;
	request(x, ORNIC_WR_SEND, x->srq[0].number, 0, 0);
	assert_true(x->w.dut[1].dev.cnt[CNT_rnr_naks_sent] > 0);
	conn_quiet(&x->ini);
	post(x, 0, 5);
	world_finish(&x->w, 1000000000);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	received(x, 0, 5, ORNIC_WC_SUCCESS);
}

/* ORN-XRC-4 */
static void test_malformed(void **state)
{
	struct xrc *x = *state;

	request(x, ORNIC_WR_SEND, x->srq[0].number, 8, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_LOC_QP_OP_ERR);
}

static void test_malformed_number(void **state)
{
	struct xrc *x = *state;

	request(x, ORNIC_WR_RDMA_WRITE, 1u << 24, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_WRITE, ORNIC_WC_LOC_QP_OP_ERR);
}

/* ORN-XRC-10: requests that XRC does not have, for any accepted features; none takes a receive */
static void test_not_of_xrc(void **state)
{
	static const uint8_t operations[] = {
		BTH_RC_FLUSH, BTH_RC_ATOMIC_WRITE, BTH_RC_SEND_ONLY_INV, BTH_RC_SEND_LAST_INV,
	};
	uint64_t value = 7;

	teardown(state);
	for (uint32_t i = 0; i < sizeof(operations); i++) {
		struct packet p = { .kind = PACKET_ROCE, .npsn = 1, .psn = 10, .nseg = 1 };
		struct xrc *x;

		setup(state);
		x = *state;
		x->w.dut[1].dev.features = UINT64_MAX;
		x->tgt.qp.access = ORNIC_ACCESS_REMOTE;
		post(x, 0, 1);
		p.opcode = BTH_TRANSPORT_XRC | operations[i];
		p.srqn = x->srq[0].number;
		p.feth = ORNIC_FLUSH_GLOBAL;
		p.va = x->dst;
		p.rkey = x->dkey[0];
		p.dmalen = sizeof(value);
		p.len = i ? sizeof(value) : 0;
		p.mtu = qp_mtu(&x->tgt.qp);
		p.seg[0] = (struct seg) { (uint8_t *)&value, p.len };
		responder_receive(&x->tgt.qp, &p);
		world_run(&x->w);
		assert_int_equal(x->tgt.qp.state, ORNIC_QPS_ERR);
		assert_int_equal(x->tgt.qp.syndrome, ORNIC_SYN_WIRE | p.opcode);
		assert_int_equal(x->w.dut[1].dev.cnt[CNT_remote_invalid_requests], 1);
		assert_int_equal(x->srq[0].wq.cons, 0);
		conn_quiet(&x->tgt);
		if (i + 1 < sizeof(operations))
			teardown(state);
	}
}

/* A target without an SRQ has no domain, so no key is valid. */
static void test_no_domain(void **state)
{
	struct xrc *x = *state;
	struct dut *d = &x->w.dut[1];
	uint32_t blank = dut_blank(d, NULL, ORNIC_KEY_FAST_REG, 4);
	struct mr_access who = responder_access(&x->tgt.qp, responder_pd(&x->tgt.qp),
						ORNIC_ACCESS_REMOTE_READ);
	uint32_t syndrome = 0;

	assert_null(x->tgt.qp.srq);
	assert_int_equal(responder_pd(&x->tgt.qp), 0);
	assert_false(memop_invalidate(&x->tgt.qp, blank, &syndrome));
	assert_int_equal(syndrome, ORNIC_SYN_KEY_INDEX);
	assert_null(mr_check(&d->dev, &who, x->dkey[0], x->dst, 1, &syndrome));
	assert_int_equal(syndrome, ORNIC_SYN_KEY_INDEX);
}

/* Post receive 5, of 4096 bytes, to SRQ 0. Return: the first packet of a SEND to it. */
static struct packet first_packet(struct xrc *x, uint32_t psn, uint8_t *bytes)
{
	uint16_t mtu = qp_mtu(&x->tgt.qp);
	struct ornic_sge *sge;

	post(x, 0, 5);
	sge = (void *)(dut_at(&x->w.dut[1], x->h[0].ring, 64) + 16);
	sge->length = htole32(4096);
	return (struct packet) {
		.kind = PACKET_ROCE,
		.opcode = BTH_TRANSPORT_XRC | BTH_RC_SEND_FIRST,
		.psn = psn,
		.npsn = 1,
		.ackreq = true,
		.srqn = x->srq[0].number,
		.mtu = mtu,
		.len = mtu,
		.nseg = 1,
		.seg[0] = { bytes, mtu },
	};
}

/* ORN-XRC-9: the SRQ is destroyed during its message, and while a READ may be requested again */
static void test_srq_gone(void **state)
{
	struct xrc *x = *state;
	uint8_t bytes[4096] = {};
	struct packet p, again;
	uint64_t answers;

	request(x, ORNIC_WR_RDMA_READ, x->srq[0].number, x->dst, x->dkey[0]);
	sent(x, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	p = first_packet(x, 11, bytes);
	responder_receive(&x->tgt.qp, &p);
	assert_true(x->tgt.qp.resp.recv.valid);
	/* in pieces, and no request names it meanwhile */
	assert_true(xrc_select(&x->tgt.qp, &p, true));
	assert_false(xrc_forget(&x->srq[0], 0));
	assert_ptr_equal(x->tgt.qp.srq, &x->srq[0]);
	assert_false(xrc_select(&x->tgt.qp, &p, true));
	assert_true(xrc_forget(&x->srq[0], 1000));
	assert_null(x->tgt.qp.srq);
	assert_false(x->tgt.qp.resp.recv.valid);
	assert_int_equal(x->tgt.qp.resp.message, RESP_IDLE);
	for (uint32_t i = x->tgt.qp.resp.rd_first; i != x->tgt.qp.resp.rd_next; i++)
		assert_int_equal(x->tgt.qp.resp.rd[i % QP_MAX_RD_ATOMIC].pd, 0);
	again = p;
	again.opcode = BTH_TRANSPORT_XRC | BTH_RC_READ_REQUEST;
	again.psn = 10;
	world_run(&x->w);
	answers = x->w.dut[1].dev.cnt[CNT_rdma_tx_packets];
	responder_receive(&x->tgt.qp, &again);
	world_run(&x->w);		/* a NAK, of XRC */
	assert_int_equal(x->w.dut[1].dev.cnt[CNT_rdma_tx_packets], answers + 1);
	assert_int_equal(x->w.dut[0].dev.cnt[CNT_bad_opcode], 0);
	p.opcode = BTH_TRANSPORT_XRC | BTH_RC_SEND_LAST;
	p.psn = 12;
	responder_receive(&x->tgt.qp, &p);
	world_run(&x->w);
	assert_int_equal(x->tgt.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(x->w.dut[1].dev.cnt[CNT_remote_invalid_requests], 1);
	conn_quiet(&x->tgt);
}

/* ORN-XRC-6: the CQ of the SRQ has failed. */
static void test_cq_failed(void **state)
{
	struct xrc *x = *state;

	post(x, 0, 1);
	x->tgt.rcq.error = true;
	request(x, ORNIC_WR_SEND, x->srq[0].number, 0, 0);
	sent(x, ORNIC_WC_SEND, ORNIC_WC_REM_INV_REQ_ERR);
	assert_int_equal(x->srq[0].wq.cons, 0);
	assert_int_equal(x->w.dut[1].dev.cnt[CNT_remote_invalid_requests], 1);
	x->tgt.rcq.error = false;
}

/* All packets of a message name the same SRQ. */
static void test_srq_changes(void **state)
{
	for (int i = 0; i < 2; i++) {
		uint8_t bytes[4096] = {};
		struct packet p;
		struct xrc *x;

		setup(state);
		x = *state;
		p = first_packet(x, 10, bytes);
		responder_receive(&x->tgt.qp, &p);
		p.opcode = BTH_TRANSPORT_XRC | BTH_RC_SEND_LAST;
		p.psn = 11;
		p.srqn = x->srq[i].number;
		responder_receive(&x->tgt.qp, &p);
		world_run(&x->w);
		assert_int_equal(x->tgt.qp.state, i ? ORNIC_QPS_ERR : ORNIC_QPS_RTS);
		assert_int_equal(x->w.dut[1].dev.cnt[CNT_remote_invalid_requests], i);
		received(x, 0, 5, i ? ORNIC_WC_WR_FLUSH_ERR : ORNIC_WC_SUCCESS);
		assert_int_equal(x->srq[1].wq.cons, 0);
		teardown(state);
	}
}

/* Request the READ at @psn again. Return: payload bytes that the target sent. */
static uint64_t read_again(struct xrc *x, uint32_t psn)
{
	struct packet p = { .kind = PACKET_ROCE, .npsn = 1, .psn = psn };
	const uint64_t *sent = &x->w.dut[1].dev.cnt[CNT_rdma_tx_bytes], before = *sent;

	p.opcode = BTH_TRANSPORT_XRC | BTH_RC_READ_REQUEST;
	responder_receive(&x->tgt.qp, &p);
	world_run(&x->w);
	return *sent - before;
}

/* ORN-XRC-9: requests that named another SRQ of the same domain are still answered. */
static void test_same_domain(void **state)
{
	struct xrc *x = *state;

	x->srq[1].pd = x->srq[0].pd;
	for (int i = 0; i < 2; i++) {
		request(x, ORNIC_WR_RDMA_READ, x->srq[i].number, x->dst, x->dkey[0]);
		sent(x, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	}
	assert_true(xrc_forget(&x->srq[0], 1000));
	assert_int_equal(read_again(x, 11), LEN);
	assert_int_equal(read_again(x, 10), 0);
	assert_int_equal(x->tgt.qp.state, ORNIC_QPS_RTS);
}

#define XRC_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		XRC_TEST(test_send), XRC_TEST(test_domain), XRC_TEST(test_no_srq),
		XRC_TEST(test_long_read),
		XRC_TEST(test_other_domain), XRC_TEST(test_basic_srq), XRC_TEST(test_empty),
		XRC_TEST(test_malformed), XRC_TEST(test_malformed_number),
		XRC_TEST(test_srq_gone), XRC_TEST(test_same_domain), XRC_TEST(test_not_of_xrc),
		XRC_TEST(test_no_domain), XRC_TEST(test_cq_failed),
		cmocka_unit_test(test_srq_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
