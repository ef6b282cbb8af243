// SPDX-License-Identifier: GPL-2.0
/*
 * The RC responder against scripted requests: valid, invalid, old and early ones (IBTA volume 1,
 * 9.7; ORN-QP, ORN-RQ, ORN-ERR).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/identify.h>

#include "engine/message.h"
#include "lib/peer.h"

#define PSN0	0xfffffeu
#define P(n)	((PSN0 + (n)) & BTH_PSN_MASK)
#define ACK	(AETH_ACK | AETH_NO_CREDITS)
#define NAK(c)	(AETH_NAK | (c))
#define RNR(t)	(AETH_RNR_NAK | (t))
#define MTU	1024
#define BUF	(1u << 20)
#define LEN	(300000u)	/* bytes under the key */
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)

static int setup(void **state)
{
	struct script *t = script_new(NULL, 0x100, PSN0);

	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, LEN, ALL);
	fill(t->data, sizeof(t->data), 2);
	*state = t;
	return 0;
}

static uint8_t *mem(struct script *t, uint64_t off)
{
	return dut_at(t->c.d, t->buf + off, 1);
}

/* Build a request for @dmalen bytes at the beginning of the key. */
static struct packet *request(struct script *t, uint8_t opcode, uint32_t psn, uint32_t npsn,
			      uint32_t dmalen)
{
	struct packet *p = peer_packet(&t->peer, &t->c, opcode, psn);

	p->npsn = npsn;
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = dmalen;
	p->imm = htobe32(42);
	p->swap_add = 5;
	p->compare = 6;
	return p;
}

static void send(struct script *t, struct packet *p, uint32_t off, uint32_t len)
{
	peer_send(&t->peer, p, t->data + off, len);
}

/* Send a SEND ONLY of @len bytes. */
static void send_only(struct script *t, uint32_t psn, uint32_t len)
{
	send(t, request(t, BTH_RC_SEND_ONLY, psn, len ? (len + MTU - 1) / MTU : 1, 0), 0, len);
}

static void recv_buf(struct script *t, uint32_t len)
{
	conn_recv(&t->c, t->buf, len, t->key);
}

static void expect_recv(struct script *t, uint32_t index, uint8_t status)
{
	conn_expect(&t->c, &t->c.hrcq, index, ORNIC_WC_RECV, status);
}

/* Check the events since the last call: COMM_EST, once, then @type and no other (0: none). */
static void expect_event(struct script *t, uint8_t type)
{
	struct ornic_eqe e;
	bool any = dut_event(t->c.d, &e);

	if (any && e.type == ORNIC_EV_COMM_EST)
		any = dut_event(t->c.d, &e);
	assert_int_equal(any ? e.type : 0, type);
	if (any) {
		assert_int_equal(le32toh(e.number), t->c.qp.handle);
		assert_int_equal(le32toh(e.owner), 7);
		assert_int_equal(le32toh(e.info0), ORNIC_QPS_ERR);
		assert_int_equal(le32toh(e.syndrome), t->c.qp.syndrome);
	}
	assert_false(dut_event(t->c.d, &e));
}

static uint64_t count(struct script *t, enum counter c)
{
	return t->c.d->dev.cnt[c];
}

/* Check a failure: NAK, ERR, event, counters; no later request is executed or answered. */
static void expect_failed(struct script *t, uint8_t code, uint32_t psn, uint8_t event)
{
	uint32_t answers;

	peer_expect_ack(&t->peer, NAK(code), psn);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	assert_int_not_equal(t->c.qp.syndrome, 0);
	expect_event(t, event);
	assert_int_equal(count(t, CNT_remote_access_errors), code == NAK_REMOTE_ACCESS);
	assert_int_equal(count(t, CNT_remote_invalid_requests), code == NAK_INVALID_REQUEST);
	answers = t->peer.nin;
	memset(mem(t, 0), 0, 16);
	send(t, request(t, BTH_RC_WRITE_ONLY, psn, 1, 16), 0, 16);
	assert_int_equal(*mem(t, 1), 0);
	send(t, request(t, BTH_RC_READ_REQUEST, psn, 1, 16), 0, 0);
	assert_int_equal(t->peer.nin, answers);
}

/* SEND in three packets, the PSN wrapping; ORN-RQ-1 (ORN-CQ-14) */
static void test_send(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_SEND_FIRST, P(0), 1, 0);
	struct ornic_cqe cqe;

	recv_buf(t, 4000);
	p->ackreq = false;
	send(t, p, 0, MTU);
	send(t, request(t, BTH_RC_SEND_MIDDLE, P(1), 1, 0), MTU, MTU);
	peer_expect_ack(&t->peer, ACK, P(1));
	conn_quiet(&t->c);
	p = request(t, BTH_RC_SEND_LAST_IMM, P(2), 1, 0);
	p->solicited = true;
	send(t, p, 2 * MTU, 3);
	peer_expect_ack(&t->peer, ACK, P(2));
	assert_int_equal(t->peer.in[t->peer.nin - 1]->p.msn, 1);
	assert_true(conn_poll(&t->c, &t->c.hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.byte_len), 2 * MTU + 3);
	assert_int_equal(be32toh(cqe.imm), 42);
	assert_int_equal(le32toh(cqe.flags), ORNIC_CQE_WITH_IMM | ORNIC_CQE_SOLICITED);
	check(mem(t, 0), 2 * MTU + 3, 2);
	/* without immediate data */
	recv_buf(t, 100);
	send_only(t, P(3), 8);
	peer_expect_ack(&t->peer, ACK, P(3));
	assert_true(conn_poll(&t->c, &t->c.hrcq, &cqe));
	assert_int_equal(cqe.flags | cqe.imm, 0);
	expect_event(t, 0);
}

/* ORN-QP-30: in RTR, once (ORN-EQ-4) */
static void test_comm_est(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e, want;

	t->c.qp.owner = 77;
	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	qp_set_state(&t->c.qp, ORNIC_QPS_INIT);
	qp_set_state(&t->c.qp, ORNIC_QPS_RTR);
	send(t, request(t, BTH_RC_WRITE_ONLY, P(0), 1, 0), 0, 0);
	send(t, request(t, BTH_RC_WRITE_ONLY, P(1), 1, 0), 0, 0);
	assert_true(dut_event(t->c.d, &e));
	want = (struct ornic_eqe) {
		.timestamp = e.timestamp, .number = htole32(t->c.qp.handle),
		.info0 = htole32(ORNIC_QPS_RTR), .owner = htole32(77),
		.type = ORNIC_EV_COMM_EST, .phase = e.phase,
	};
	assert_memory_equal(&e, &want, sizeof(e));
	assert_false(dut_event(t->c.d, &e));
}

/*
 * First, middle and last out of order; lengths that do not add up; reserved opcodes
 * (ORN-ERR-1).
 */
static void test_malformed(void **state)
{
	static const struct {
		uint8_t before;		/* first a packet of this, 0xff: none */
		uint8_t opcode;
		uint32_t npsn, len, dmalen;
	} bad[] = {
		{ 0xff, BTH_RC_SEND_MIDDLE, 1, MTU, 0 },
		{ 0xff, BTH_RC_SEND_LAST, 1, 1, 0 },
		{ 0xff, BTH_RC_SEND_LAST_IMM, 1, 1, 0 },
		{ 0xff, BTH_RC_WRITE_MIDDLE, 1, MTU, 0 },
		{ 0xff, BTH_RC_WRITE_LAST, 1, 1, 0 },
		{ 0xff, BTH_RC_WRITE_LAST_IMM, 1, 1, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_FIRST, 1, MTU, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_ONLY, 1, 1, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_WRITE_MIDDLE, 1, MTU, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_WRITE_ONLY, 1, 1, 1 },
		{ BTH_RC_SEND_FIRST, BTH_RC_READ_REQUEST, 1, 0, 1 },
		{ BTH_RC_SEND_FIRST, BTH_RC_FETCH_ADD, 1, 0, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_LAST, 1, 0, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_LAST_IMM, 1, 0, 0 },
		{ BTH_RC_WRITE_FIRST, BTH_RC_SEND_LAST, 1, 1, 0 },
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_FIRST, 1, MTU, 2 * MTU },
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_LAST, 1, MTU - 1, 0 },	/* 1024 left */
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_LAST, 1, 0, 0 },
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_MIDDLE, 1, MTU, 0 },
		{ 0xff, BTH_RC_SEND_FIRST, 1, MTU - 1, 0 },
		{ 0xff, BTH_RC_SEND_FIRST, 1, MTU + 1, 0 },
		{ 0xff, BTH_RC_SEND_ONLY, 1, MTU + 1, 0 },
		{ 0xff, BTH_RC_SEND_ONLY, 3, 2 * MTU, 0 },
		{ 0xff, BTH_RC_SEND_ONLY, 2, 2 * MTU + 1, 0 },
		{ 0xff, BTH_RC_WRITE_ONLY, 1, 10, 11 },
		{ 0xff, BTH_RC_WRITE_ONLY, 1, 10, 9 },
		{ 0xff, BTH_RC_WRITE_FIRST, 1, MTU, MTU },
		{ 0xff, BTH_RC_WRITE_FIRST, 1, MTU, 0 },
		{ 0xff, BTH_RC_WRITE_FIRST, 1, MTU, 0x80000001 },
		{ 0xff, BTH_RC_READ_REQUEST, 1, 0, 0x80000001 },
		{ 0xff, BTH_RC_READ_REQUEST, 1, 4, 4 },
		{ 0xff, BTH_RC_FETCH_ADD, 1, 8, 0 },
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t psn = P(0);
		struct script *t;

		setup(state);
		t = *state;
		recv_buf(t, 8000);
		if (bad[i].before != 0xff) {
			send(t, request(t, bad[i].before, psn, 1, 2 * MTU), 0, MTU);
			peer_expect_ack(&t->peer, ACK, psn);
			psn = P(1);
		}
		send(t, request(t, bad[i].opcode, psn, bad[i].npsn, bad[i].dmalen), 0, bad[i].len);
		expect_failed(t, NAK_INVALID_REQUEST, psn, ORNIC_EV_QP_REQ_ERR);
		expect_recv(t, 0, ORNIC_WC_WR_FLUSH_ERR);
		conn_quiet(&t->c);
		script_teardown(state);
	}
}

/* A packet of 2 PSNs whose sender has another MTU */
static void test_mtu(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_SEND_ONLY, P(0), 2, 0);

	p->mtu = 2048;
	send(t, p, 0, 2 * MTU);
	expect_failed(t, NAK_INVALID_REQUEST, P(0), ORNIC_EV_QP_REQ_ERR);
}

/* READ @len bytes at the beginning of the key; return the number of responses. */
static uint32_t expect_read(struct script *t, uint32_t psn, uint32_t len, uint32_t mtu)
{
	uint32_t n = (len + mtu - 1) / mtu;
	struct seen *s;

	send(t, request(t, BTH_RC_READ_REQUEST, psn, 1, len), 0, 0);
	s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, psn, n);
	assert_int_equal(s->p.mtu, mtu);
	assert_int_equal(s->p.len, len);
	assert_memory_equal(s->data, mem(t, 0), len);
	return n;
}

/* Messages around each path MTU, packet by packet, and READs of the same lengths. */
static void test_path_mtus(void **state)
{
	struct script *t = *state;
	uint32_t psn = 0, index = 0;

	for (uint8_t code = ORNIC_MTU_256; code <= ORNIC_MTU_4096; code++) {
		uint32_t mtu = 128u << code;
		const uint32_t lens[] = { 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 7 * mtu + 3 };

		t->c.qp.mtu_code = code;
		for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			uint32_t len = lens[i], n = (len + mtu - 1) / mtu;

			memset(mem(t, 0), 0, len + 1);
			recv_buf(t, len);
			for (uint32_t k = 0; k < n; k++) {
				uint8_t opcode = n == 1 ? BTH_RC_SEND_ONLY :
						 k == 0 ? BTH_RC_SEND_FIRST :
						 k < n - 1 ? BTH_RC_SEND_MIDDLE : BTH_RC_SEND_LAST;

				send(t, request(t, opcode, P(psn + k), 1, 0), k * mtu,
				     k < n - 1 ? mtu : len - k * mtu);
				peer_expect_ack(&t->peer, ACK, P(psn + k));
			}
			expect_recv(t, index++, 0);
			assert_memory_equal(mem(t, 0), t->data, len);
			assert_int_equal(*mem(t, len), 0);
			psn += n;
			psn += expect_read(t, P(psn), len, mtu);
		}
	}
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
}

static void test_unknown_opcode(void **state)
{
	static const uint8_t ops[] = { 0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f,
				       BTH_UD_SEND_ONLY };
	struct script *t = *state;

	for (size_t i = 0; i < sizeof(ops); i++)
		send(t, request(t, ops[i], P(0), 1, 0), 0, 0);
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	assert_int_equal(count(t, CNT_bad_opcode), sizeof(ops));
}

/* A WRITE may announce 2^31 bytes, so the key decides; one byte more is an invalid request. */
static void test_longest_write(void **state)
{
	for (uint32_t more = 0; more < 2; more++) {
		struct script *t;

		setup(state);
		t = *state;
		send(t, request(t, BTH_RC_WRITE_FIRST, P(0), 1, ORNIC_MAX_MSG + more), 0, MTU);
		peer_expect_ack(&t->peer, NAK(more ? NAK_INVALID_REQUEST : NAK_REMOTE_ACCESS),
				P(0));
		script_teardown(state);
	}
}

/* Keys, domains, rights, ranges: one NAK, one event (ORN-QP-29, ORN-SEC-9) */
static void test_rights(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
	} op[] = {
		{ BTH_RC_WRITE_ONLY, ORNIC_ACCESS_REMOTE_WRITE },
		{ BTH_RC_READ_REQUEST, ORNIC_ACCESS_REMOTE_READ },
		{ BTH_RC_FETCH_ADD, ORNIC_ACCESS_REMOTE_ATOMIC },
		{ BTH_RC_COMPARE_SWAP, ORNIC_ACCESS_REMOTE_ATOMIC },
	};

	for (uint32_t i = 0; i < 4 * 8; i++) {
		uint32_t len = op[i / 8].opcode == BTH_RC_WRITE_ONLY ? 8 : 0;
		uint32_t right = op[i / 8].right;
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		memset(mem(t, 0), 0x55, 16);
		p = request(t, op[i / 8].opcode, P(0), 1, 8);
		switch (i % 8) {
		case 0:
			t->c.qp.access &= ~right;
			break;
		case 1:
			p->rkey = dut_key(t->c.d, NULL, t->buf, LEN, ALL & ~right);
			break;
		case 2:
			p->rkey = dut_key(t->c.d, &t->c.d->other_pd, t->buf, LEN, ALL);
			break;
		case 3:
			p->rkey ^= 1;
			break;
		case 4:
			p->rkey = 0;
			break;
		case 5:
			p->va = t->buf - 8;
			break;
		case 6:
			p->va = (t->buf + LEN) & ~7ull;
			break;
		case 7:
			p->va = 0xfffffffffffffff8ull;
			break;
		}
		send(t, p, 0, len);
		assert_int_equal(*mem(t, 0), 0x55);
		assert_int_equal(*mem(t, 15), 0x55);
		expect_failed(t, NAK_REMOTE_ACCESS, P(0), ORNIC_EV_QP_ACCESS_ERR);
		if (i % 8 == 0)
			assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_KEY_ACCESS);
		assert_int_equal(count(t, CNT_rx_read), 0);
		assert_int_equal(count(t, CNT_rx_atomic), 0);
		assert_int_equal(count(t, CNT_rx_write), 0);
		script_teardown(state);
	}
}

/* Only privileged queue pairs may use the privileged key (ORN-SEC-3, ORN-ERR-3). */
static void test_phys(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);

	p->rkey = dut_phys(t->c.d, ALL);
	send(t, p, 0, 8);
	expect_failed(t, NAK_REMOTE_ACCESS, P(0), ORNIC_EV_QP_ACCESS_ERR);
}

/* Length 0: the key is not checked (ORN-MEM-14). */
static void test_empty(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 0);
	struct seen *s;

	p->rkey = 0xbad;
	send(t, p, 0, 0);
	peer_expect_ack(&t->peer, ACK, P(0));
	p = request(t, BTH_RC_READ_REQUEST, P(1), 1, 0);
	p->rkey = 0xbad;
	send(t, p, 0, 0);
	s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(1), 1);
	assert_int_equal(s->p.len, 0);
	assert_int_equal(s->p.nseg, 0);
	assert_int_equal(s->p.msn, 2);
	recv_buf(t, 0);
	send_only(t, P(2), 0);
	peer_expect_ack(&t->peer, ACK, P(2));
	expect_recv(t, 0, 0);
}

/* ORN-ERR-2: the completion of the consumed receive reports the error, no event */
static void test_write_imm_access(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_WRITE_ONLY_IMM, P(0), 1, 8);

	recv_buf(t, 0);
	recv_buf(t, 0);
	p->rkey = 0;
	send(t, p, 0, 8);
	expect_recv(t, 0, ORNIC_WC_LOC_ACCESS_ERR);
	expect_recv(t, 1, ORNIC_WC_WR_FLUSH_ERR);
	expect_failed(t, NAK_REMOTE_ACCESS, P(0), 0);
}

/* A WRITE that the queue pair does not permit consumes no receive. */
static void test_write_imm_forbidden(void **state)
{
	struct script *t = *state;

	recv_buf(t, 0);
	t->c.qp.access &= ~ORNIC_ACCESS_REMOTE_WRITE;
	send(t, request(t, BTH_RC_WRITE_ONLY_IMM, P(0), 1, 8), 0, 8);
	expect_recv(t, 0, ORNIC_WC_WR_FLUSH_ERR);
	expect_failed(t, NAK_REMOTE_ACCESS, P(0), ORNIC_EV_QP_ACCESS_ERR);
}

/* ORN-RQ-6: no receive: one RNR NAK; with a receive, the same message is accepted */
static void test_rnr(void **state)
{
	struct script *t = *state;

	send_only(t, P(0), 2000);
	peer_expect_ack(&t->peer, RNR(12), P(0));
	send_only(t, P(2), 10);
	peer_quiet(&t->peer);
	recv_buf(t, 2000);
	send_only(t, P(0), 2000);
	peer_expect_ack(&t->peer, ACK, P(1));
	expect_recv(t, 0, 0);
	send(t, request(t, BTH_RC_WRITE_FIRST, P(2), 1, MTU + 1), 0, MTU);
	peer_expect_ack(&t->peer, ACK, P(2));
	send(t, request(t, BTH_RC_WRITE_LAST_IMM, P(3), 1, 0), MTU, 1);
	peer_expect_ack(&t->peer, RNR(12), P(3));
	recv_buf(t, 0);
	send(t, request(t, BTH_RC_WRITE_LAST_IMM, P(3), 1, 0), MTU, 1);
	peer_expect_ack(&t->peer, ACK, P(3));
	conn_expect(&t->c, &t->c.hrcq, 1, ORNIC_WC_RECV_RDMA_WITH_IMM, 0);
	assert_int_equal(count(t, CNT_rnr_naks_sent), 2);
}

/* ORN-QP-26: a duplicate SEND gets an ACK with the newest PSN, and is not executed again. */
static void test_duplicate_send(void **state)
{
	struct script *t = *state;

	recv_buf(t, 2000);
	recv_buf(t, 2000);
	send_only(t, P(0), 2000);
	send_only(t, P(2), 10);
	expect_recv(t, 0, 0);
	expect_recv(t, 1, 0);
	peer_expect_ack(&t->peer, ACK, P(1));
	peer_expect_ack(&t->peer, ACK, P(2));
	memset(mem(t, 0), 0, 2000);
	send_only(t, P(0), 2000);
	peer_expect_ack(&t->peer, ACK, P(2));
	assert_int_equal(t->peer.in[t->peer.nin - 1]->p.msn, 2);
	conn_quiet(&t->c);
	assert_int_equal(*mem(t, 5), 0);
	assert_int_equal(count(t, CNT_duplicates), 1);
}

/* A duplicate part, then a new one: the new part is executed. */
static void test_overlap(void **state)
{
	struct script *t = *state;

	recv_buf(t, 5000);
	send(t, request(t, BTH_RC_SEND_FIRST, P(0), 1, 0), 0, MTU);
	memset(mem(t, 0), 0, 5000);
	send_only(t, P(0), 2 * MTU + 5);
	expect_recv(t, 0, 0);
	assert_int_equal(*mem(t, 0), 0);
	assert_memory_equal(mem(t, MTU), t->data + MTU, MTU + 5);
	peer_expect_ack(&t->peer, ACK, P(0));
	peer_expect_ack(&t->peer, ACK, P(2));
	send(t, request(t, BTH_RC_WRITE_FIRST, P(3), 2, 4 * MTU), 0, 2 * MTU);
	peer_expect_ack(&t->peer, ACK, P(4));
	send(t, request(t, BTH_RC_WRITE_FIRST, P(3), 3, 4 * MTU), 0, 3 * MTU);
	peer_expect_ack(&t->peer, ACK, P(5));
	send(t, request(t, BTH_RC_WRITE_LAST, P(5), 2, 0), 2 * MTU, 2 * MTU);
	peer_expect_ack(&t->peer, ACK, P(6));
	check(mem(t, 0), 4 * MTU, 2);
}

/* The same for the other kinds of messages, in two packets: the new part is the last packet. */
static void test_overlap_last(void **state)
{
	static const struct {
		uint8_t first, only, wc, status;
	} kinds[] = {
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_ONLY_IMM, ORNIC_WC_RECV, 0 },
		{ BTH_RC_SEND_FIRST, BTH_RC_SEND_ONLY_INV, ORNIC_WC_RECV, ORNIC_WC_LOC_ACCESS_ERR },
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_ONLY_IMM, ORNIC_WC_RECV_RDMA_WITH_IMM, 0 },
		{ BTH_RC_WRITE_FIRST, BTH_RC_WRITE_ONLY, 0, 0 },
	};

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct script *t;
		struct packet *p;

		setup(state);
		t = *state;
		t->c.d->dev.features |= ORNIC_FEATURE(MW2B);
		recv_buf(t, 2 * MTU);
		send(t, request(t, kinds[i].first, P(0), 1, 2 * MTU), 0, MTU);
		peer_expect_ack(&t->peer, ACK, P(0));
		p = request(t, kinds[i].only, P(0), 2, 2 * MTU);
		if (kinds[i].status)
			p->rkey = 0xbad;	/* there is nothing to invalidate */
		send(t, p, 0, 2 * MTU);
		if (!kinds[i].status)
			peer_expect_ack(&t->peer, ACK, P(1));
		peer_quiet(&t->peer);
		if (kinds[i].wc)
			conn_expect(&t->c, &t->c.hrcq, 0, kinds[i].wc, kinds[i].status);
		conn_quiet(&t->c);
		expect_event(t, 0);
		check(mem(t, 0), 2 * MTU, 2);
		script_teardown(state);
	}
}

/*
 * ORN-QP-26: the READ again, from the requested PSN; the atomic by its stored value, at the
 * end of the key
 */
static void test_replay(void **state)
{
	struct script *t = *state;
	uint64_t *counter = (uint64_t *)mem(t, LEN - 8);
	struct packet *p;
	struct seen *s;

	fill(mem(t, 0), 3 * MTU, 3);
	*counter = htole64(100);
	send(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 3 * MTU), 0, 0);
	s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 3);
	assert_int_equal(s->p.len, 3 * MTU);
	check(s->data, 3 * MTU, 3);
	p = request(t, BTH_RC_FETCH_ADD, P(3), 1, 0);
	p->va = t->buf + LEN - 8;
	send(t, p, 0, 0);
	s = peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, P(3), 1);
	assert_int_equal(s->p.atomic_ack, 100);
	assert_int_equal(le64toh(*counter), 105);
	p = request(t, BTH_RC_FETCH_ADD, P(3), 1, 0);
	p->va = t->buf + LEN - 8;
	send(t, p, 0, 0);
	s = peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, P(3), 1);
	assert_int_equal(s->p.atomic_ack, 100);
	assert_int_equal(s->p.msn, 2);
	assert_int_equal(le64toh(*counter), 105);
	p = request(t, BTH_RC_READ_REQUEST, P(1), 1, 2 * MTU);
	p->va += MTU;
	send(t, p, 0, 0);
	s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(1), 2);
	assert_memory_equal(s->data, mem(t, MTU), 2 * MTU);
	assert_int_equal(s->p.msn, 1);
	peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, P(3), 1);
	assert_int_equal(le64toh(*counter), 105);
	peer_quiet(&t->peer);
	assert_int_equal(count(t, CNT_rx_read), 1);
	assert_int_equal(count(t, CNT_rx_atomic), 1);
	assert_int_equal(count(t, CNT_duplicates), 2);
	assert_int_equal(count(t, CNT_out_of_order), 0);
	/* The PSN behind a READ was that of the atomic. */
	send(t, request(t, BTH_RC_READ_REQUEST, P(3), 1, 8), 0, 0);
	peer_quiet(&t->peer);
}

/*
 * A long answer: FIRST, MIDDLE and LAST, in several turns; requested again from the middle too
 * (ORN-SEC-15)
 */
static void test_long_read(void **state)
{
	struct script *t = *state;
	struct packet *p;

	send(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 3 * 65536), 0, 0);
	peer_expect(&t->peer, BTH_RC_READ_RESP_FIRST, P(0), 64);
	peer_expect(&t->peer, BTH_RC_READ_RESP_MIDDLE, P(64), 64);
	peer_expect(&t->peer, BTH_RC_READ_RESP_LAST, P(128), 64);
	p = request(t, BTH_RC_READ_REQUEST, P(64), 1, 2 * 65536);
	p->va += 65536;
	send(t, p, 0, 0);
	peer_expect(&t->peer, BTH_RC_READ_RESP_FIRST, P(64), 64);
	peer_expect(&t->peer, BTH_RC_READ_RESP_LAST, P(128), 64);
	peer_quiet(&t->peer);
}

/* Give packets to the switch without a run of the responder's queue pair in between. */
static void queue(struct script *t, struct packet *p, uint32_t len)
{
	p->len = len;
	p->nseg = len ? 1 : 0;
	p->seg[0] = (struct seg){ t->data, len };
	switch_send(t->peer.port, p);
}

static void run(struct script *t)
{
	engine_drain(&t->w.e);
	world_run(&t->w);
}

/* A gap is reported once, and the next one after progress again. */
static void test_gap(void **state)
{
	struct script *t = *state;

	send(t, request(t, BTH_RC_WRITE_ONLY, P(2), 1, 8), 0, 8);
	send(t, request(t, BTH_RC_WRITE_ONLY, P(3), 1, 8), 0, 8);
	peer_expect_ack(&t->peer, NAK(NAK_PSN_SEQUENCE), P(0));
	peer_quiet(&t->peer);
	assert_int_equal(*mem(t, 1), 0);
	send(t, request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8), 0, 8);
	peer_expect_ack(&t->peer, ACK, P(0));
	send(t, request(t, BTH_RC_WRITE_ONLY, P(2), 1, 8), 0, 8);
	peer_expect_ack(&t->peer, NAK(NAK_PSN_SEQUENCE), P(1));
	assert_int_equal(count(t, CNT_seq_naks_sent), 2);
	assert_int_equal(count(t, CNT_out_of_order), 3);
	assert_int_equal(count(t, CNT_duplicates), 0);
	/* behind the answer to a READ, it is reported once, too */
	queue(t, request(t, BTH_RC_READ_REQUEST, P(1), 1, 8), 0);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(3), 1, 8), 8);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(1), 1);
	peer_expect_ack(&t->peer, NAK(NAK_PSN_SEQUENCE), P(2));
	engine_activate(&t->w.e, &t->c.qp);
	world_run(&t->w);
	peer_quiet(&t->peer);
}

/* Without a free packet, the answers to a READ and an atomic wait. */
static void test_no_packets(void **state)
{
	static const uint8_t opcode[][2] = {
		{ BTH_RC_READ_REQUEST, BTH_RC_READ_RESP_ONLY },
		{ BTH_RC_FETCH_ADD, BTH_RC_ATOMIC_ACK },
	};
	struct script *t = *state;

	for (uint32_t i = 0; i < 2; i++) {
		queue(t, request(t, opcode[i][0], P(i), 1, 8), 0);
		engine_drain(&t->w.e);
		assert_int_equal(world_starve(&t->w), 0);
		peer_quiet(&t->peer);
		world_run(&t->w);
		peer_expect(&t->peer, opcode[i][1], P(i), 1);
		peer_quiet(&t->peer);
	}
}

/* Packets that arrive together get one ACK; an answer or NAK at their end replaces it. */
static void test_coalesced(void **state)
{
	struct script *t = *state;

	for (int i = 0; i < 5; i++)
		queue(t, request(t, BTH_RC_WRITE_ONLY, P(i), 1, 8), 8);
	run(t);
	peer_expect_ack(&t->peer, ACK, P(4));
	peer_quiet(&t->peer);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(4), 1, 8), 8);		/* again */
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(5), 1, 8), 8);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(6), 1, 8), 0);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(6), 1);
	peer_quiet(&t->peer);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(7), 1, 8), 0);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(8), 1, 8), 8);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(9), 1, 8), 8);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(7), 1);
	peer_expect_ack(&t->peer, ACK, P(9));
	peer_quiet(&t->peer);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(10), 1, 8), 8);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(12), 1, 8), 8);
	run(t);
	peer_expect_ack(&t->peer, NAK(NAK_PSN_SEQUENCE), P(11));
	peer_quiet(&t->peer);
}

/* Executed requests are acknowledged, also if the next packet moves the queue pair to ERR. */
static void test_last_words(void **state)
{
	struct script *t = *state;

	queue(t, request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8), 8);
	switch_drain(t->w.e.sw);
	qp_fail(&t->c.qp, 0, 0, 0);
	run(t);
	peer_expect_ack(&t->peer, ACK, P(0));
	peer_quiet(&t->peer);
}

/* While the function may not do DMA, it does not even try to acknowledge. */
static void test_last_words_paused(void **state)
{
	struct script *t = *state;

	queue(t, request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8), 8);
	switch_drain(t->w.e.sw);
	t->c.d->dev.running = false;
	qp_fail(&t->c.qp, 0, 0, 0);
	t->c.d->dev.running = true;
	run(t);
	peer_quiet(&t->peer);
	assert_int_equal(count(t, CNT_tx_drop), 0);
}

/* An ACK or NAK that waits for the answer to a READ is dropped with it in ERR. */
static void test_no_last_words(void **state)
{
	for (uint32_t gap = 0; gap < 2; gap++) {
		struct script *t;

		setup(state);
		t = *state;
		queue(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 8), 0);
		queue(t, request(t, BTH_RC_WRITE_ONLY, P(1 + gap), 1, 8), 8);
		switch_drain(t->w.e.sw);
		assert_int_equal(t->c.qp.resp.nak, gap ? NAK(NAK_PSN_SEQUENCE) : 0);
		assert_int_equal(t->c.qp.resp.ack_due, !gap);
		qp_fail(&t->c.qp, 0, 0, 0);
		assert_false(responder_run(&t->c.qp));	/* the requester failed in the same run */
		run(t);
		peer_quiet(&t->peer);
		script_teardown(state);
	}
}

/* The queue pair is destroyed between the last packet and its ACK. */
static void test_gone(void **state)
{
	struct script *t = *state;

	queue(t, request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8), 8);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(1), 1, 8), 0);
	switch_drain(t->w.e.sw);
	assert_int_equal(t->c.qp.resp.rd_next - t->c.qp.resp.rd_answer, 1);
	qp_fail(&t->c.qp, 0, 0, 0);
	assert_int_equal(t->c.qp.resp.rd_next - t->c.qp.resp.rd_answer, 0);
	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	run(t);
	peer_quiet(&t->peer);
	assert_true(TAILQ_EMPTY(&t->w.e.acks));
}

/* ORN-QP-27 at the responder: more than max_dest_rd_atomic; unanswered ones count, not replays */
static void exceed_rd_atomic(void **state, uint8_t opcode)
{
	struct script *t;

	setup(state);
	t = *state;
	t->c.qp.max_dest_rd_atomic = 2;
	queue(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 8), 0);
	queue(t, request(t, BTH_RC_FETCH_ADD, P(1), 1, 0), 0);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, P(1), 1);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 8), 0);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(2), 1, 8), 0);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, P(1), 1);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(2), 1);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(3), 1, 8), 0);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(4), 1, 8), 0);
	queue(t, request(t, opcode, P(5), 1, opcode == BTH_RC_READ_REQUEST ? 8 : 0), 0);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(3), 1);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(4), 1);
	expect_failed(t, NAK_INVALID_REQUEST, P(5), ORNIC_EV_QP_REQ_ERR);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | opcode);
	script_teardown(state);
}

/*
 * A run sends 16 packets. Requests that arrive while a replay takes more runs count as if it had
 * ended.
 */
static void test_replay_in_runs(void **state)
{
	struct script *t = *state;

	t->c.qp.max_dest_rd_atomic = 2;
	t->c.qp.rate.most = 0;		/* one PSN per packet */
	for (int again = 0; again < 2; again++) {
		queue(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 8), 0);
		if (!again)
			queue(t, request(t, BTH_RC_READ_REQUEST, P(1), 1, 20 * MTU), 0);
		engine_drain(&t->w.e);
		assert_true(qp_run(&t->c.qp));
		engine_drain(&t->w.e);
		peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
		for (int i = 1; i < 16; i++)
			peer_expect(&t->peer, i == 1 ? BTH_RC_READ_RESP_FIRST :
				    BTH_RC_READ_RESP_MIDDLE, P(i), 1);
		peer_quiet(&t->peer);
		for (int i = 0; i < 2 * again; i++)
			queue(t, request(t, BTH_RC_READ_REQUEST, P(21 + i), 1, 8), 0);
		run(t);
		for (int i = 16; i <= 20; i++)
			peer_expect(&t->peer, i == 20 ? BTH_RC_READ_RESP_LAST :
				    BTH_RC_READ_RESP_MIDDLE, P(i), 1);
		for (int i = 0; i < 2 * again; i++)
			peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(21 + i), 1);
		peer_quiet(&t->peer);
	}
}

static void test_max_dest_rd_atomic(void **state)
{
	exceed_rd_atomic(state, BTH_RC_READ_REQUEST);
	exceed_rd_atomic(state, BTH_RC_FETCH_ADD);
}

/* A replay ends when new requests replace its responder resource; no answer is lost. */
static void test_replay_overrun(void **state)
{
	struct script *t = *state;
	uint32_t n = QP_MAX_RD_ATOMIC;

	for (uint32_t i = 0; i < n; i++)
		queue(t, request(t, BTH_RC_READ_REQUEST, P(i), 1, 8), 0);
	run(t);
	t->peer.next = t->peer.nin;
	for (uint32_t oldest = 0; oldest < 2 * n; oldest++) {
		queue(t, request(t, BTH_RC_READ_REQUEST, P(oldest), 1, 8), 0);
		queue(t, request(t, BTH_RC_READ_REQUEST, P(oldest + n), 1, 8), 0);
		run(t);
		for (uint32_t i = 1; i <= n; i++)
			peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(oldest + i), 1);
		peer_quiet(&t->peer);
		assert_int_equal(t->c.qp.resp.rd_next - t->c.qp.resp.rd_first, n);
	}
}

/* ORN-WQE-15 */
static void test_misaligned(void **state)
{
	for (uint32_t by = 1; by < 8; by *= 2) {
		struct script *t;
		struct packet *p;

		setup(state);
		t = *state;
		p = request(t, BTH_RC_FETCH_ADD, P(0), 1, 0);
		p->va += by;
		send(t, p, 0, 0);
		expect_failed(t, NAK_INVALID_REQUEST, P(0), ORNIC_EV_QP_REQ_ERR);
		script_teardown(state);
	}
}

/* An aligned address of memory that is not: the processor could not access it atomically. */
static void test_misaligned_memory(void **state)
{
	for (uint32_t by = 1; by < 8; by++) {
		struct script *t;
		struct packet *p;
		struct mr *mr;

		script_teardown(state);
		setup(state);
		t = *state;
		p = request(t, BTH_RC_FETCH_ADD, P(0), 1, 0);
		p->rkey = dut_key(t->c.d, NULL, t->buf + by, 64, ORNIC_ACCESS_REMOTE_ATOMIC |
				  ORNIC_ACCESS_LOCAL_WRITE);
		mr = table_get(&t->c.d->dev.keys, p->rkey >> ORNIC_KEY_TAG_BITS);
		mr->iova = t->buf;
		send(t, p, 0, 0);
		expect_failed(t, NAK_REMOTE_ACCESS, P(0), ORNIC_EV_QP_ACCESS_ERR);
	}
}

/* ORN-RQ-4: too long for the receive, in its second packet; an earlier receive was longer */
static void test_too_long(void **state)
{
	struct script *t = *state;

	recv_buf(t, MTU + 2);
	recv_buf(t, MTU + 1);
	recv_buf(t, 5000);
	send_only(t, P(0), 1);
	peer_expect_ack(&t->peer, ACK, P(0));
	expect_recv(t, 0, ORNIC_WC_SUCCESS);
	send(t, request(t, BTH_RC_SEND_FIRST, P(1), 1, 0), 0, MTU);
	peer_expect_ack(&t->peer, ACK, P(1));
	send(t, request(t, BTH_RC_SEND_LAST, P(2), 1, 0), 0, 2);
	expect_recv(t, 1, ORNIC_WC_LOC_LEN_ERR);
	expect_recv(t, 2, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(*mem(t, MTU + 1), 0);
	expect_failed(t, NAK_INVALID_REQUEST, P(2), 0);
}

/* ORN-RQ-2, ORN-RQ-10 */
static void test_bad_receive(void **state)
{
	struct script *t = *state;
	const uint16_t most = ((1 << t->c.qp.rq.stride) - sizeof(struct ornic_rwqe)) /
			      sizeof(struct ornic_sge);
	const struct {
		struct ornic_rwqe differ;
		uint16_t max_sge;
		uint32_t syndrome;
	} bad[] = {
		{ { .id = htole32(1) }, most, ORNIC_SYN_WQE_STALE },
		{ { .mbz0 = htole16(1) }, most, ORNIC_SYN_WQE_MBZ },
		{ { .mbz1 = htole64(1ull << 63) }, most, ORNIC_SYN_WQE_MBZ },
		{ { .count = htole16(most + 1) }, UINT16_MAX, ORNIC_SYN_WQE_SEGMENT },
		{ { .count = htole16(UINT16_MAX) }, UINT16_MAX, ORNIC_SYN_WQE_SEGMENT },
		{ { .count = htole16(most) }, most - 1, ORNIC_SYN_WQE_COUNT },
		{ { .count = htole16(2) }, 1, ORNIC_SYN_WQE_COUNT },
		{ { .count = htole16(most) }, most, 0 },
		{ { .count = htole16(1) }, 1, 0 },
	};

	conn_recv(&t->c, t->buf, 100, dut_key(t->c.d, NULL, t->buf, 100, 0));
	recv_buf(t, 100);
	send_only(t, P(0), 10);
	expect_recv(t, 0, ORNIC_WC_LOC_PROT_ERR);
	expect_recv(t, 1, ORNIC_WC_WR_FLUSH_ERR);
	expect_failed(t, NAK_REMOTE_OPERATIONAL, P(0), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ornic_rwqe *r;

		script_teardown(state);
		setup(state);
		t = *state;
		r = guest_at(&t->c.d->guest, t->c.rq.ring, sizeof(*r));
		recv_buf(t, 100);
		recv_buf(t, 100);
		r->id |= bad[i].differ.id;
		r->mbz0 = bad[i].differ.mbz0;
		r->mbz1 = bad[i].differ.mbz1;
		if (bad[i].differ.count)
			r->count = bad[i].differ.count;
		t->c.qp.rq.max_sge = bad[i].max_sge;
		send_only(t, P(0), 10);
		assert_int_equal(t->c.d->dev.cnt[CNT_wqe_errors], !!bad[i].syndrome);
		if (!bad[i].syndrome) {
			expect_recv(t, 0, ORNIC_WC_SUCCESS);
			continue;
		}
		expect_recv(t, 0, ORNIC_WC_LOC_QP_OP_ERR);
		expect_recv(t, 1, ORNIC_WC_WR_FLUSH_ERR);
		assert_int_equal(t->c.qp.syndrome, bad[i].syndrome);
		expect_failed(t, NAK_REMOTE_OPERATIONAL, P(0), 0);
	}
}

/* ACKs and NAKs wait behind READs that are still being answered. */
static void test_order(void **state)
{
	struct script *t = *state;

	queue(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 8), 0);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(1), 1, 8), 8);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
	peer_expect_ack(&t->peer, ACK, P(1));
	queue(t, request(t, BTH_RC_READ_REQUEST, P(2), 1, 8), 0);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(9), 1, 8), 8);		/* a gap */
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(3), 1, 8), 8);		/* and its end */
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(2), 1);
	peer_expect_ack(&t->peer, ACK, P(3));
	peer_quiet(&t->peer);
	queue(t, request(t, BTH_RC_READ_REQUEST, P(4), 1, 8), 0);
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(5), 1, 9), 8);		/* malformed */
	queue(t, request(t, BTH_RC_WRITE_ONLY, P(5), 1, 8), 8);
	run(t);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(4), 1);
	expect_failed(t, NAK_INVALID_REQUEST, P(5), ORNIC_EV_QP_REQ_ERR);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | BTH_RC_WRITE_ONLY);
}

/* A key destroyed before a duplicate of the READ that names it arrives (ORN-MEM-3) */
static void test_key_gone(void **state)
{
	struct script *t = *state;
	struct mr *mr = table_get(&t->c.d->dev.keys, t->key >> ORNIC_KEY_TAG_BITS);

	send(t, request(t, BTH_RC_READ_REQUEST, P(0), 1, 2 * MTU), 0, 0);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 2);
	mr->tag ^= 1;
	send(t, request(t, BTH_RC_READ_REQUEST, P(1), 1, MTU), 0, 0);
	peer_expect_ack(&t->peer, NAK(NAK_REMOTE_ACCESS), P(1));
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	/* its sequence goes on, because the requester has advanced */
	send(t, request(t, BTH_RC_WRITE_ONLY, P(2), 1, 0), 0, 0);
	peer_expect_ack(&t->peer, ACK, P(2));
	send(t, request(t, BTH_RC_READ_REQUEST, P(3), 1, MTU), 0, 0);
	expect_failed(t, NAK_REMOTE_ACCESS, P(3), ORNIC_EV_QP_ACCESS_ERR);
}

/* A priority tag names no VLAN (IEEE 802.1Q). */
static void test_priority_tag(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);

	p->vlan = true;
	p->vlan_tci = 3 << 13;
	send(t, p, 0, 8);
	peer_expect_ack(&t->peer, ACK, P(0));
}

/* ACKs do not wait for the rate limit, and no packet waits for them (ORN-QP-42). */
static void test_acks_cost_no_rate(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED };
	struct script *t = *state;

	qp_set_rate(&t->c.qp, 1000, 0, 0);
	for (uint32_t i = 0; i < 500; i++) {
		send(t, request(t, BTH_RC_WRITE_ONLY, P(i), 1, 8), 0, 8);
		peer_expect_ack(&t->peer, ACK, P(i));
	}
	wr.raddr = t->buf;
	wr.rkey = t->key;
	wr_sge(&wr, t->buf, 8, t->key);
	conn_send(&t->c, &wr);
	world_pass(&t->w, 1000000);
	peer_expect(&t->peer, BTH_RC_WRITE_ONLY, 0x100, 1);
}

/* Without its GID entry the responder cannot answer, and its attempts end (ORN-PORT-5). */
static void test_no_gid(void **state)
{
	struct script *t = *state;
	struct ornic_gid_entry *gid = &t->c.d->dev.port.gid[0];

	for (int i = 0; i < 2; i++) {
		queue(t, request(t, BTH_RC_READ_REQUEST, P(2 * i), 1, 2 * MTU), 0);
		engine_drain(&t->w.e);
		if (i)
			gid->owner = htole32(t->c.qp.owner + 1);
		else
			gid->flags = 0;
		world_run(&t->w);
		peer_quiet(&t->peer);
		gid->flags = htole32(ORNIC_GID_VALID);
		gid->owner = 0;
		send(t, request(t, BTH_RC_READ_REQUEST, P(2 * i), 1, 2 * MTU), 0, 0);
		peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(2 * i), 2);
		peer_quiet(&t->peer);
	}
}

/* Foreign packets: wrong source, P_Key, destination (ORN-PORT-2, ORN-PORT-7) */
static void test_strangers(void **state)
{
	struct script *t = *state;
	struct packet *p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);

	p->sgid[15] ^= 1;
	send(t, p, 0, 8);
	p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);
	p->dgid[15] ^= 0x80;
	send(t, p, 0, 8);
	p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);
	p->pkey = 0x1234;
	send(t, p, 0, 8);
	p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);
	p->dqpn = 0;
	send(t, p, 0, 8);
	p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);
	p->vlan = true;
	p->vlan_tci = 5;
	send(t, p, 0, 8);
	peer_quiet(&t->peer);
	assert_int_equal(*mem(t, 1), 0);
	assert_int_equal(count(t, CNT_bad_gid), 3);
	assert_int_equal(count(t, CNT_bad_pkey), 1);
	assert_int_equal(count(t, CNT_bad_qpn), 1);
	/* a limited member of the same partition is none */
	p = request(t, BTH_RC_WRITE_ONLY, P(0), 1, 8);
	p->pkey = BTH_DEFAULT_PKEY & BTH_PKEY_PARTITION;
	send(t, p, 0, 8);
	peer_expect_ack(&t->peer, ACK, P(0));
}

/* The client unmapped a page of the region: an access that touches it fails as a whole. */
static void test_page_gone(void **state)
{
	static const uint8_t ops[] = { BTH_RC_WRITE_ONLY, BTH_RC_READ_REQUEST, BTH_RC_FETCH_ADD };

	for (size_t i = 0; i < sizeof(ops); i++) {
		struct script *t;
		struct packet *p;
		uint64_t page;

		setup(state);
		t = *state;
		page = (t->buf + GUEST_PAGE) & ~(GUEST_PAGE - 1);
		guest_hide(&t->c.d->guest, page);
		p = request(t, ops[i], P(0), 1, 16);
		p->va = ops[i] == BTH_RC_FETCH_ADD ? page : page - 8;
		send(t, p, 0, ops[i] == BTH_RC_WRITE_ONLY ? 16 : 0);
		peer_expect_ack(&t->peer, NAK(NAK_REMOTE_ACCESS), P(0));
		assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_KEY_PAGE);
		expect_event(t, ORNIC_EV_QP_ACCESS_ERR);
		assert_int_equal(*(uint64_t *)mem(t, page - 8 - t->buf), 0);
		script_teardown(state);
	}
}

/* The client mapped a page of the region for reading only: a READ needs no more. */
static void test_page_read_only(void **state)
{
	struct script *t = *state;
	uint64_t page = (t->buf + GUEST_PAGE) & ~(GUEST_PAGE - 1);
	struct guest *g = &t->c.d->guest;
	struct packet *p;

	fill(mem(t, page - t->buf), 8, 7);
	guest_hide(g, page);
	assert_int_equal(gpa_map(g->gpa, page, GUEST_PAGE, GPA_READ, g->fd, page - GUEST_BASE), 0);
	p = request(t, BTH_RC_READ_REQUEST, P(0), 1, 8);
	p->va = page;
	send(t, p, 0, 0);
	check(peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1)->data, 8, 7);
	p = request(t, BTH_RC_WRITE_ONLY, P(1), 1, 8);
	p->va = page;
	send(t, p, 0, 8);
	peer_expect_ack(&t->peer, NAK(NAK_REMOTE_ACCESS), P(1));
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_KEY_PAGE);
}

/* All opcodes of requests: f first, l last, i immediate data, v key to invalidate */
static void test_opcodes(void **state)
{
	static const struct {
		uint8_t opcode;
		enum request request;
		const char *is;
	} known[] = {
		{ BTH_RC_SEND_FIRST, REQ_SEND, "f" }, { BTH_RC_SEND_MIDDLE, REQ_SEND, "" },
		{ BTH_RC_SEND_LAST, REQ_SEND, "l" }, { BTH_RC_SEND_LAST_IMM, REQ_SEND, "li" },
		{ BTH_RC_SEND_ONLY, REQ_SEND, "fl" }, { BTH_RC_SEND_ONLY_IMM, REQ_SEND, "fli" },
		{ BTH_RC_SEND_LAST_INV, REQ_SEND, "lv" }, { BTH_RC_SEND_ONLY_INV, REQ_SEND, "flv" },
		{ BTH_RC_WRITE_FIRST, REQ_WRITE, "f" }, { BTH_RC_WRITE_MIDDLE, REQ_WRITE, "" },
		{ BTH_RC_WRITE_LAST, REQ_WRITE, "l" }, { BTH_RC_WRITE_LAST_IMM, REQ_WRITE, "li" },
		{ BTH_RC_WRITE_ONLY, REQ_WRITE, "fl" }, { BTH_RC_WRITE_ONLY_IMM, REQ_WRITE, "fli" },
		{ BTH_RC_READ_REQUEST, REQ_READ, "fl" }, { BTH_RC_COMPARE_SWAP, REQ_ATOMIC, "fl" },
		{ BTH_RC_FETCH_ADD, REQ_ATOMIC, "fl" }, { BTH_RC_FLUSH, REQ_FLUSH, "fl" },
		{ BTH_RC_ATOMIC_WRITE, REQ_ATOMIC_WRITE, "fl" },
	};

	(void)state;
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		const struct opcode_info *op = message_opcode(opcode);
		size_t i = 0;

		while (i < sizeof(known) / sizeof(known[0]) &&
		       known[i].opcode != (opcode & ~BTH_TRANSPORT_MASK & 0xff))
			i++;
		if (i == sizeof(known) / sizeof(known[0])) {
			assert_null(op);
			continue;
		}
		assert_non_null(op);
		assert_true(op->known);
		assert_int_equal(op->request, known[i].request);
		assert_int_equal(op->first, !!strchr(known[i].is, 'f'));
		assert_int_equal(op->last, !!strchr(known[i].is, 'l'));
		assert_int_equal(op->imm, !!strchr(known[i].is, 'i'));
		assert_int_equal(op->inv, !!strchr(known[i].is, 'v'));
	}
}

/* Packets that continue a message, by their opcode, lengths and MTU (IBTA 9.7.4.1) */
static void test_continues(void **state)
{
	static const struct {
		uint8_t opcode;
		enum resp_message message;
		uint32_t npsn, mtu, len;
		bool fits;
	} cases[] = {
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 1, MTU, MTU, true },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 1, 512, MTU, true },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 1, MTU, MTU - 1, false },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 1, MTU, MTU + 1, false },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 2, MTU, 2 * MTU, true },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 2, 512, 2 * MTU, false },
		{ BTH_RC_SEND_FIRST, RESP_IDLE, 2, MTU, 2 * MTU - 1, false },
		{ BTH_RC_SEND_FIRST, RESP_SEND, 1, MTU, MTU, false },
		{ BTH_RC_WRITE_FIRST, RESP_WRITE, 1, MTU, MTU, false },
		{ BTH_RC_SEND_MIDDLE, RESP_SEND, 1, MTU, MTU, true },
		{ BTH_RC_SEND_MIDDLE, RESP_WRITE, 1, MTU, MTU, false },
		{ BTH_RC_SEND_MIDDLE, RESP_IDLE, 1, MTU, MTU, false },
		{ BTH_RC_WRITE_MIDDLE, RESP_WRITE, 1, MTU, MTU, true },
		{ BTH_RC_WRITE_MIDDLE, RESP_SEND, 1, MTU, MTU, false },
		{ BTH_RC_WRITE_MIDDLE, RESP_IDLE, 1, MTU, MTU, false },
		{ BTH_RC_SEND_LAST, RESP_SEND, 1, MTU, 0, false },
		{ BTH_RC_SEND_LAST, RESP_SEND, 1, MTU, 1, true },
		{ BTH_RC_SEND_LAST, RESP_SEND, 1, MTU, MTU, true },
		{ BTH_RC_SEND_LAST, RESP_SEND, 1, MTU, MTU + 1, false },
		{ BTH_RC_SEND_LAST, RESP_SEND, 2, MTU, MTU, false },
		{ BTH_RC_SEND_LAST, RESP_SEND, 2, MTU, MTU + 1, true },
		{ BTH_RC_SEND_LAST, RESP_SEND, 2, MTU, 2 * MTU, true },
		{ BTH_RC_SEND_LAST, RESP_SEND, 2, MTU, 2 * MTU + 1, false },
		{ BTH_RC_WRITE_ONLY, RESP_IDLE, 1, MTU, 0, true },
		{ BTH_RC_WRITE_ONLY, RESP_IDLE, 1, MTU, MTU, true },
		{ BTH_RC_WRITE_ONLY, RESP_IDLE, 2, MTU, MTU, false },
		{ BTH_RC_WRITE_ONLY, RESP_IDLE, 2, MTU, MTU + 1, true },
		{ BTH_RC_WRITE_ONLY, RESP_WRITE, 1, MTU, 8, false },
		{ BTH_RC_READ_REQUEST, RESP_IDLE, 1, MTU, 0, true },
		{ BTH_RC_READ_REQUEST, RESP_SEND, 1, MTU, 0, false },
	};
	struct script *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct packet p = { .npsn = cases[i].npsn, .mtu = cases[i].mtu,
					  .len = cases[i].len };

		t->c.qp.resp.message = cases[i].message;
		if (message_continues(&t->c.qp, &p, message_opcode(cases[i].opcode)) !=
		    cases[i].fits)
			fail_msg("case %zu", i);
	}
	t->c.qp.resp.message = RESP_IDLE;
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		T(test_send), T(test_comm_est), cmocka_unit_test(test_malformed), T(test_mtu),
		T(test_path_mtus), T(test_unknown_opcode), cmocka_unit_test(test_rights),
		cmocka_unit_test(test_longest_write),
		T(test_phys),
		T(test_empty), T(test_write_imm_access), T(test_write_imm_forbidden), T(test_rnr),
		T(test_duplicate_send), T(test_overlap), cmocka_unit_test(test_overlap_last),
		T(test_replay),
		T(test_long_read), T(test_gap), cmocka_unit_test(test_max_dest_rd_atomic),
		T(test_replay_overrun), T(test_replay_in_runs), cmocka_unit_test(test_misaligned),
		T(test_misaligned_memory),
		T(test_too_long), T(test_bad_receive), T(test_order), T(test_key_gone),
		T(test_priority_tag), T(test_acks_cost_no_rate),
		T(test_strangers), T(test_no_gid), T(test_no_packets), T(test_coalesced),
		T(test_last_words), T(test_last_words_paused),
		cmocka_unit_test(test_no_last_words), T(test_gone),
		cmocka_unit_test(test_page_gone), T(test_page_read_only), T(test_continues),
		cmocka_unit_test(test_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
