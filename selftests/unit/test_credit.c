// SPDX-License-Identifier: GPL-2.0
/*
 * engine/credit.c: credits that a responder advertises, and how a requester uses them (IBTA
 * volume 1, 9.7.7.2).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/credit.h"
#include "engine/engine.h"
#include "lib/peer.h"

#define PSN0	0xfffffcu
#define P(n)	((PSN0 + (n)) & BTH_PSN_MASK)
#define RQ_PSN	0x100
#define MTU	1024
#define BUF	(1u << 20)
#define NONE	AETH_NO_CREDITS

static int setup(void **state)
{
	struct script *t = script_new(NULL, PSN0, RQ_PSN);

	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, BUF,
			 ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |
			 ORNIC_ACCESS_REMOTE_READ);
	*state = t;
	return 0;
}

static void post(struct script *t, uint8_t opcode, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = 0x5000,
			 .rkey = 0x1234 };

	wr_sge(&wr, t->buf, len, t->key);
	conn_send(&t->c, &wr);
	world_run(&t->w);
}

/* The peer acknowledges all up to PSN @n, @msn messages, with credit code @code. */
static void ack(struct script *t, int n, uint32_t msn, uint8_t code)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(n));

	p->aeth = AETH_ACK | code;
	p->msn = msn;
	peer_send(&t->peer, p, NULL, 0);
}

static void expect_send(struct script *t, uint8_t opcode, int n, uint32_t npsn)
{
	assert_true(peer_expect(&t->peer, opcode, P(n), npsn)->p.ackreq);
}

/* Send a request of the peer; return the AETH syndrome and @msn of its ACK. */
static uint8_t asked(struct script *t, uint8_t opcode, uint32_t n, uint32_t *msn)
{
	static const uint8_t data[MTU];
	struct packet *p = peer_packet(&t->peer, &t->c, opcode, RQ_PSN + n);
	bool first = opcode == BTH_RC_SEND_FIRST;
	struct seen *s;

	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = opcode == BTH_RC_WRITE_ONLY ? 8 : 0;
	peer_send(&t->peer, p, data, first ? MTU : 8);
	s = peer_expect(&t->peer, BTH_RC_ACK, RQ_PSN + n, 1);
	*msn = s->p.msn;
	return s->p.aeth;
}

/* Every code, and the values between them */
static void test_codes(void **state)
{
	static const uint32_t credits[] = {
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	};
	uint8_t code = 0;

	(void)state;
	for (uint8_t i = 0; i < 31; i++)
		assert_int_equal(credit_decode(i), credits[i]);
	for (uint32_t n = 0; n < 70000; n++) {
		if (code < 30 && n == credits[code + 1])
			code++;
		assert_int_equal(credit_encode(n), code);
	}
	assert_int_equal(credit_encode(UINT32_MAX), 30);
}

/* The limit never goes back, and the sender continues only if it rose or ended. */
static void test_reports(void **state)
{
	static const struct {
		uint8_t credits;
		uint32_t msn, limit;
		bool limited, continues;
	} reports[] = {
		{ AETH_NO_CREDITS, 1, 0, false, false },
		{ 4, 0xfffffe, 2, true, false },
		{ 4, 0xfffffe, 2, true, false },
		{ 3, 0xfffffe, 2, true, false },
		{ 4, 0xffffff, 3, true, true },
		{ AETH_NO_CREDITS, 5, 3, false, true },
		{ AETH_NO_CREDITS, 6, 3, false, false },
		{ 0, 1, 1, true, false },
	};
	struct requester r = {};

	(void)state;
	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		assert_int_equal(credit_receive(&r, reports[i].credits, reports[i].msn),
				 reports[i].continues);
		assert_int_equal(r.limited, reports[i].limited);
		assert_int_equal(r.limit, reports[i].limit);
	}
}

/* Messages with a credit go at once, the next message probes with its first packet. */
static void test_limit(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, MTU);
	expect_send(t, BTH_RC_SEND_ONLY, 0, 1);
	ack(t, 0, 1, 2);
	for (int i = 0; i < 4; i++)
		post(t, ORNIC_WR_SEND, 3 * MTU);
	expect_send(t, BTH_RC_SEND_ONLY, 1, 3);
	expect_send(t, BTH_RC_SEND_ONLY, 4, 3);
	peer_quiet(&t->peer);
	ack(t, 3, 2, 1);
	peer_quiet(&t->peer);	/* not the only one yet */
	ack(t, 6, 3, 0);
	expect_send(t, BTH_RC_SEND_FIRST, 7, 1);
	peer_quiet(&t->peer);
	ack(t, 7, 3, 1);	/* its receive counts until it is finished */
	expect_send(t, BTH_RC_SEND_LAST, 8, 2);
	peer_quiet(&t->peer);
	ack(t, 9, 4, NONE);
	expect_send(t, BTH_RC_SEND_ONLY, 10, 3);
	ack(t, 12, 5, NONE);
	for (int i = 0; i < 5; i++)
		conn_expect(&t->c, &t->c.hscq, i, ORNIC_WC_SEND, 0);
}

/* Only messages that consume a receive are limited; all messages count in the MSN. */
static void test_kinds(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_RDMA_WRITE, 8);
	expect_send(t, BTH_RC_WRITE_ONLY, 0, 1);
	ack(t, 0, 1, 1);
	post(t, ORNIC_WR_RDMA_WRITE, 8);
	post(t, ORNIC_WR_RDMA_WRITE, 2 * MTU);
	expect_send(t, BTH_RC_WRITE_ONLY, 1, 1);
	expect_send(t, BTH_RC_WRITE_ONLY, 2, 2);
	post(t, ORNIC_WR_RDMA_WRITE_IMM, 2 * MTU);
	peer_quiet(&t->peer);
	ack(t, 1, 2, 1);
	peer_quiet(&t->peer);	/* message 3 of 3, but the write has that number */
	ack(t, 3, 3, 1);
	expect_send(t, BTH_RC_WRITE_ONLY_IMM, 4, 2);
}

/* More credits come without a new acknowledgement; a smaller limit than before is outdated. */
static void test_unsolicited(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 8);
	expect_send(t, BTH_RC_SEND_ONLY, 0, 1);
	ack(t, 0, 1, 0);
	post(t, ORNIC_WR_RDMA_READ, 8);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(1), 1);
	post(t, ORNIC_WR_SEND, 8);
	post(t, ORNIC_WR_SEND, 8);
	post(t, ORNIC_WR_SEND, 8);
	peer_quiet(&t->peer);
	ack(t, 0, 1, 3);
	expect_send(t, BTH_RC_SEND_ONLY, 2, 1);
	expect_send(t, BTH_RC_SEND_ONLY, 3, 1);
	peer_quiet(&t->peer);
	ack(t, 0, 1, 1);
	ack(t, -1, 1, 30);	/* the MSN of no message that was sent last */
	peer_quiet(&t->peer);
	ack(t, 0, 1, NONE);
	expect_send(t, BTH_RC_SEND_ONLY, 4, 1);
}

/*
 * The first packet of a message beyond the limit finds no receive or is lost: retransmit it
 * alone.
 */
static void test_alone_again(void **state)
{
	struct script *t = *state;
	struct packet *p;

	post(t, ORNIC_WR_SEND, 8);
	expect_send(t, BTH_RC_SEND_ONLY, 0, 1);
	ack(t, 0, 1, 0);
	post(t, ORNIC_WR_SEND, 2 * MTU);
	post(t, ORNIC_WR_RDMA_WRITE, 8);
	expect_send(t, BTH_RC_SEND_FIRST, 1, 1);
	peer_quiet(&t->peer);
	p = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(1));
	p->aeth = AETH_RNR_NAK | 12;
	peer_send(&t->peer, p, NULL, 0);
	peer_quiet(&t->peer);
	world_pass(&t->w, 640000);
	expect_send(t, BTH_RC_SEND_FIRST, 1, 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, 4096ull << t->c.qp.timeout);
	expect_send(t, BTH_RC_SEND_FIRST, 1, 1);
	peer_quiet(&t->peer);
	ack(t, 1, 1, 1);
	expect_send(t, BTH_RC_SEND_LAST, 2, 1);
	expect_send(t, BTH_RC_WRITE_ONLY, 3, 1);
}

/* Impossible MSNs of a peer delay the requester, but do not stop it. */
static void test_nonsense(void **state)
{
	struct script *t = *state;
	static const uint32_t msn[] = { 0x800000, 0x7fffff, 0xffffff, 5, 0x400000 };
	int n = 0;

	for (int i = 0; i < 50; i++) {
		post(t, ORNIC_WR_SEND, 8);
		expect_send(t, BTH_RC_SEND_ONLY, n, 1);
		ack(t, n++, msn[i % 5], i % 31);
	}
	for (int i = 0; i < 50; i++)
		conn_expect(&t->c, &t->c.hscq, i, ORNIC_WC_SEND, 0);
}

/* The responder: MSN and credits together name the last message that has a receive. */
static void test_said(void **state)
{
	struct script *t = *state;
	uint32_t msn;

	assert_int_equal(asked(t, BTH_RC_WRITE_ONLY, 0, &msn), AETH_ACK);
	assert_int_equal(msn, 1);
	for (int i = 0; i < 7; i++)
		conn_recv(&t->c, t->buf, 2 * MTU, t->key);
	assert_int_equal(asked(t, BTH_RC_WRITE_ONLY, 1, &msn), credit_encode(6));
	assert_int_equal(asked(t, BTH_RC_SEND_ONLY, 2, &msn), credit_encode(6));
	assert_int_equal(asked(t, BTH_RC_SEND_ONLY, 3, &msn), credit_encode(4));
	for (int i = 0; i < 3; i++)
		asked(t, BTH_RC_SEND_ONLY, 4 + i, &msn);
	assert_int_equal(msn, 7);
	/* two left, the next message takes one of them */
	assert_int_equal(asked(t, BTH_RC_SEND_FIRST, 7, &msn), credit_encode(2));
	assert_int_equal(msn, 7);
	assert_int_equal(asked(t, BTH_RC_SEND_LAST, 8, &msn), credit_encode(1));
	assert_int_equal(msn, 8);
	assert_int_equal(asked(t, BTH_RC_SEND_ONLY, 9, &msn), credit_encode(0));
}

/* A shared receive queue advertises no credits, because others consume its receives, too. */
static void test_none_said(void **state)
{
	struct script *t = *state;
	uint32_t msn;

	conn_recv(&t->c, t->buf, MTU, t->key);
	t->c.qp.rq.present = false;
	assert_int_equal(asked(t, BTH_RC_WRITE_ONLY, 0, &msn), NONE);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes), cmocka_unit_test(test_reports), T(test_limit),
		T(test_kinds), T(test_unsolicited),
		T(test_alone_again), T(test_nonsense), T(test_said), T(test_none_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
