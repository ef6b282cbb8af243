// SPDX-License-Identifier: GPL-2.0
/*
 * The RC requester against a scripted peer: its packets, and its reaction to answers, losses and
 * timeouts (IBTA volume 1, 9.7; ORN-WQE, ORN-QP).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/peer.h"
#include "packet/roce.h"

#define PSN0	0xfffff0u
#define P(n)	((PSN0 + (n)) & BTH_PSN_MASK)
#define ACK	(AETH_ACK | AETH_NO_CREDITS)
#define NAK(c)	(AETH_NAK | (c))
#define TIMEOUT	(4096ull << 14)
#define BUF	(10u << 20)
#define MTU	1024
#define LONG	(2 * MTU + 10)

static int setup(void **state)
{
	struct script *t = script_new(NULL, PSN0, 0x100);

	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, BUF, ORNIC_ACCESS_LOCAL_WRITE);
	fill(dut_at(t->c.d, t->buf, BUF), BUF, 1);
	fill(t->data, sizeof(t->data), 2);
	*state = t;
	return 0;
}

/* Post a signaled operation on @len bytes. */
static void post(struct script *t, uint8_t opcode, uint32_t len, uint8_t flags)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED | flags, .raddr = 0x5000,
			 .rkey = 0x1234, .swap_add = 5, .imm = htobe32(9) };

	if (opcode == ORNIC_WR_COMP_SWAP)
		wr.compare = 6;
	if (len)
		wr_sge(&wr, t->buf, len, t->key);
	conn_send(&t->c, &wr);
	world_run(&t->w);
}

static void read_resp(struct script *t, uint8_t opcode, uint32_t psn, uint32_t npsn, uint32_t off,
		      uint32_t len)
{
	struct packet *p = peer_packet(&t->peer, &t->c, opcode, psn);

	p->npsn = npsn;
	peer_send(&t->peer, p, t->data + off, len);
}

static void atomic_resp(struct script *t, uint32_t psn, uint64_t value)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_ATOMIC_ACK, psn);

	p->atomic_ack = value;
	peer_send(&t->peer, p, NULL, 0);
}

static void expect(struct script *t, uint32_t index, uint8_t opcode, uint8_t status)
{
	conn_expect(&t->c, &t->c.hscq, index, opcode, status);
}

/* The requester waits for no answer, so its limit of READs and atomics is free. */
static void expect_no_reads(struct script *t)
{
	assert_int_equal(t->c.qp.req.reads, 0);
	assert_int_equal(t->c.qp.req.unread, 0);
}

static uint64_t count(struct script *t, enum counter c)
{
	return t->c.d->dev.cnt[c];
}

/* Segmentation, headers and PSNs across the wrap; completion at the ACK, not before (ORN-CQ-9). */
static void test_segments(void **state)
{
	struct script *t = *state;
	struct ornic_cqe cqe;
	struct seen *s;

	post(t, ORNIC_WR_RDMA_WRITE_IMM, 65536 + 2 * MTU + 1, ORNIC_WQE_SOLICITED);
	s = peer_expect(&t->peer, BTH_RC_WRITE_FIRST, PSN0, 64);
	assert_int_equal(s->p.len, 65536);
	assert_int_equal(s->p.va, 0x5000);
	assert_int_equal(s->p.rkey, 0x1234);
	assert_int_equal(s->p.dmalen, 65536 + 2 * MTU + 1);
	assert_false(s->p.solicited);
	check(s->data, 65536, 1);
	s = peer_expect(&t->peer, BTH_RC_WRITE_LAST_IMM, P(64), 3);
	assert_int_equal(s->p.len, 2 * MTU + 1);
	assert_true(s->p.ackreq);
	assert_true(s->p.solicited);
	assert_int_equal(be32toh(s->p.imm), 9);
	assert_memory_equal(s->data, dut_at(t->c.d, t->buf + 65536, 2 * MTU + 1), 2 * MTU + 1);
	post(t, ORNIC_WR_SEND, 0, 0);
	s = peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(67), 1);
	assert_int_equal(s->p.len, 0);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(66), ACK);
	assert_true(conn_poll(&t->c, &t->c.hscq, &cqe));
	assert_int_equal(cqe.opcode, ORNIC_WC_RDMA_WRITE);
	assert_int_equal(cqe.status | cqe.wqe_id | cqe.byte_len | cqe.syndrome, 0);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(67), ACK);
	expect(t, 1, ORNIC_WC_SEND, 0);
}

/* Receive a message of @len bytes in frames of @mtu at the peer; return the number of frames. */
static uint32_t expect_frames(struct script *t, const uint8_t opcode[4], uint32_t psn, uint32_t len,
			      uint32_t mtu)
{
	uint32_t n = (len + mtu - 1) / mtu, done = 0;
	struct seen *s = peer_expect(&t->peer, opcode[3], psn, n);
	struct roce_frame f;
	struct roce_cut c;
	uint8_t got[4096];

	assert_int_equal(s->p.len, len);
	assert_int_equal(s->p.mtu, mtu);
	roce_cut(&c, &s->p);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(roce_next(&c, &f));
		assert_int_equal(roce_opcode(&s->p, i),
				 n == 1 ? opcode[3] : opcode[i ? 1 + (i == n - 1) : 0]);
		assert_int_equal(f.len, i < n - 1 ? mtu : len - done);
		seg_copy_out(got, f.seg, f.nseg, 0, f.len);
		assert_memory_equal(got, dut_at(t->c.d, t->buf + done, f.len), f.len);
		done += f.len;
	}
	assert_false(roce_next(&c, &f));
	assert_int_equal(done, len);
	return n;
}

/* Messages around each path MTU: number, length and bytes of packets; and READs. */
static void test_path_mtus(void **state)
{
	static const uint8_t send[] = { BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE, BTH_RC_SEND_LAST,
					BTH_RC_SEND_ONLY };
	static const uint8_t write[] = { BTH_RC_WRITE_FIRST, BTH_RC_WRITE_MIDDLE,
					 BTH_RC_WRITE_LAST, BTH_RC_WRITE_ONLY };
	struct script *t = *state;
	uint32_t n, psn = 0, index = 0;

	for (uint8_t code = ORNIC_MTU_256; code <= ORNIC_MTU_4096; code++) {
		uint32_t mtu = 128u << code;
		const uint32_t len[] = { 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 7 * mtu + 3 };

		t->c.qp.mtu_code = code;
		for (uint32_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			post(t, ORNIC_WR_SEND, len[i], 0);
			psn += expect_frames(t, send, P(psn), len[i], mtu);
			post(t, ORNIC_WR_RDMA_WRITE, len[i], 0);
			psn += expect_frames(t, write, P(psn), len[i], mtu);
			peer_ack(&t->peer, &t->c, P(psn - 1), ACK);
			expect(t, index++, ORNIC_WC_SEND, 0);
			expect(t, index++, ORNIC_WC_RDMA_WRITE, 0);
			post(t, ORNIC_WR_RDMA_READ, len[i], 0);
			n = (len[i] + mtu - 1) / mtu;
			peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(psn), 1);
			memset(dut_at(t->c.d, t->buf, len[i]), 0, len[i]);
			for (uint32_t k = 0; k < n; k++)
				read_resp(t, n == 1 ? BTH_RC_READ_RESP_ONLY :
					  k == 0 ? BTH_RC_READ_RESP_FIRST :
					  k < n - 1 ? BTH_RC_READ_RESP_MIDDLE :
					  BTH_RC_READ_RESP_LAST, P(psn + k), 1, k * mtu,
					  k < n - 1 ? mtu : len[i] - k * mtu);
			expect(t, index++, ORNIC_WC_RDMA_READ, 0);
			assert_memory_equal(dut_at(t->c.d, t->buf, len[i]), t->data, len[i]);
			psn += n;
		}
	}
	peer_quiet(&t->peer);
}

/*
 * One ACK for many; a partial one completes the requests it covers; strays are dropped
 * (ORN-QP-25).
 */
static void test_acks(void **state)
{
	struct script *t = *state;

	for (int i = 0; i < 4; i++)
		post(t, ORNIC_WR_SEND, 3 * MTU, 0);
	peer_ack(&t->peer, &t->c, P(-1), ACK);		/* before the oldest unacknowledged PSN */
	peer_ack(&t->peer, &t->c, P(12), ACK);		/* beyond the newest PSN that was sent */
	peer_ack(&t->peer, &t->c, P(12), NAK(NAK_REMOTE_ACCESS));
	peer_ack(&t->peer, &t->c, P(1 << 23), ACK);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(7), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	expect(t, 1, ORNIC_WC_SEND, 0);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(4), ACK);		/* old */
	peer_ack(&t->peer, &t->c, P(4), NAK(NAK_PSN_SEQUENCE));
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(11), ACK);
	expect(t, 2, ORNIC_WC_SEND, 0);
	expect(t, 3, ORNIC_WC_SEND, 0);
	for (int i = 0; i < 4; i++)
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(3 * i), 3);
	peer_quiet(&t->peer);
}

/* NAK sequence error: retransmit all from its PSN on, from the middle of a message. */
static void test_nak_sequence(void **state)
{
	struct script *t = *state;
	struct seen *s;

	post(t, ORNIC_WR_SEND, 3 * MTU, 0);
	post(t, ORNIC_WR_SEND, 2 * MTU, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 3);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(3), 2);
	peer_ack(&t->peer, &t->c, P(1), NAK(NAK_PSN_SEQUENCE));
	s = peer_expect(&t->peer, BTH_RC_SEND_LAST, P(1), 2);
	assert_memory_equal(s->data, dut_at(t->c.d, t->buf + MTU, 2 * MTU), 2 * MTU);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(3), 2);
	/* A second report of this loss uses no other retry. */
	peer_ack(&t->peer, &t->c, P(1), NAK(NAK_PSN_SEQUENCE));
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt - 1);
	peer_ack(&t->peer, &t->c, P(4), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	expect(t, 1, ORNIC_WC_SEND, 0);
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt);
	assert_int_equal(count(t, CNT_seq_naks_received), 2);
}

/* An ACK that arrives after the requester went back, but before it retransmits, is not ignored. */
static void test_late_ack(void **state)
{
	struct script *t = *state;
	struct packet *nak, *ack;

	post(t, ORNIC_WR_SEND, 2 * MTU, 0);
	post(t, ORNIC_WR_SEND, 2 * MTU, 0);
	t->peer.next = t->peer.nin;
	nak = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(0));
	nak->aeth = NAK(NAK_PSN_SEQUENCE);
	ack = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(2));
	switch_send(t->peer.port, nak);
	peer_send(&t->peer, ack, NULL, 0);
	expect(t, 0, ORNIC_WC_SEND, 0);
	peer_expect(&t->peer, BTH_RC_SEND_LAST, P(3), 1);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(3), ACK);
	expect(t, 1, ORNIC_WC_SEND, 0);
}

/* RNR NAK: no packet for the time in the table; an error after rnr_retry of them (ORN-WQE-4). */
static void test_rnr(void **state)
{
	struct script *t = *state;

	t->c.qp.rnr_retry = 2;
	t->c.qp.req.rnr_left = 2;
	post(t, ORNIC_WR_SEND, 2 * MTU, 0);
	post(t, ORNIC_WR_SEND, 10, 0);
	for (int i = 0; i < 2; i++) {
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 2);
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(2), 1);
		peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 14);	/* 1.28 ms */
		world_pass(&t->w, 1279999);
		peer_quiet(&t->peer);
		world_pass(&t->w, 1);
	}
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 2);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(2), 1);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 14);
	expect(t, 0, ORNIC_WC_SEND, ORNIC_WC_RNR_RETRY_EXC_ERR);
	expect(t, 1, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | ORNIC_SYN_WIRE_RNR);
	assert_int_equal(count(t, CNT_rnr_naks_received), 3);
	world_finish(&t->w, 10 * TIMEOUT);
	peer_quiet(&t->peer);		/* ORN-QP-20 */
}

/* rnr_retry 7: without limit; code 0 is the longest wait. */
static void test_rnr_infinite(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 10, 0);
	for (int i = 0; i < 20; i++) {
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
		peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK);
		world_pass(&t->w, 655359999);
		peer_quiet(&t->peer);
		world_pass(&t->w, 1);
	}
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
}

/* Each code of an RNR NAK causes the wait that IBTA defines (volume 1, 9.7.5.2.8). */
static void test_rnr_table(void **state)
{
	static const char *const ms[32] = {
		"655.36", "0.01", "0.02", "0.03", "0.04", "0.06", "0.08", "0.12",
		"0.16", "0.24", "0.32", "0.48", "0.64", "0.96", "1.28", "1.92",
		"2.56", "3.84", "5.12", "7.68", "10.24", "15.36", "20.48", "30.72",
		"40.96", "61.44", "81.92", "122.88", "163.84", "245.76", "327.68", "491.52",
	};
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 10, 0);
	for (uint8_t code = 0; code < 32; code++) {
		uint64_t ns = (uint64_t)(strtod(ms[code], NULL) * 100 + 0.5) * 10000;

		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
		peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | code);
		world_pass(&t->w, ns - 1);
		if (t->peer.next < t->peer.nin)
			fail_msg("code %u: sent again before %s ms", code, ms[code]);
		world_pass(&t->w, 1);
		if (t->peer.next == t->peer.nin)
			fail_msg("code %u: not sent again after %s ms", code, ms[code]);
	}
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	peer_quiet(&t->peer);
}

/* ORN-QP-25: no answer, retry_cnt times, then RETRY_EXC_ERR. */
static void test_timeout(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 10, 0);
	post(t, ORNIC_WR_SEND, 11, 0);
	for (int i = 0; i <= 7; i++) {
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
		world_pass(&t->w, TIMEOUT - 1);
		peer_quiet(&t->peer);
		conn_quiet(&t->c);
		world_pass(&t->w, 1);
	}
	expect(t, 0, ORNIC_WC_SEND, ORNIC_WC_RETRY_EXC_ERR);
	expect(t, 1, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	peer_quiet(&t->peer);
	assert_int_equal(count(t, CNT_ack_timeouts), 8);
	assert_int_equal(count(t, CNT_retransmits), 7 * 2);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | ORNIC_SYN_WIRE_TIMEOUT);
}

/* Progress restores all retries, and a full timeout. */
static void test_timeout_progress(void **state)
{
	struct script *t = *state;

	t->c.qp.retry_cnt = 1;
	t->c.qp.req.retry_left = 1;
	for (int i = 0; i < 3; i++)
		post(t, ORNIC_WR_SEND, 10, 0);
	world_pass(&t->w, TIMEOUT);
	world_pass(&t->w, TIMEOUT / 2);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	t->peer.next = t->peer.nin;
	world_pass(&t->w, TIMEOUT - 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(2), ACK);
	expect(t, 1, ORNIC_WC_SEND, 0);
	expect(t, 2, ORNIC_WC_SEND, 0);
}

/* A request sent late in the life of a lazy timer has its full timeout. */
static void test_timeout_fresh(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 10, 0);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	world_pass(&t->w, TIMEOUT - 10);
	post(t, ORNIC_WR_SEND, 10, 0);
	t->peer.next = t->peer.nin;
	world_pass(&t->w, TIMEOUT - 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(1), ACK);
}

/* A retransmission has its full timeout, too, from its own start and not from the loss. */
static void test_timeout_sent_again(void **state)
{
	struct script *t = *state;
	struct packet *nak;

	post(t, ORNIC_WR_SEND, 10, 0);
	t->peer.next = t->peer.nin;
	nak = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(0));
	nak->aeth = NAK(NAK_PSN_SEQUENCE);
	switch_send(t->peer.port, nak);
	engine_drain(&t->w.e);
	world_pass(&t->w, 1000);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	world_pass(&t->w, TIMEOUT / 2);
	post(t, ORNIC_WR_SEND, 10, 0);		/* does not extend it */
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	world_pass(&t->w, TIMEOUT / 2 - 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(1), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	expect(t, 1, ORNIC_WC_SEND, 0);
}

/* While the function may not do DMA, no timeout completes anything (ORN-PCI-4). */
static void test_timeout_paused(void **state)
{
	struct script *t = *state;

	t->c.qp.retry_cnt = 0;
	t->c.qp.req.retry_left = 0;
	post(t, ORNIC_WR_SEND, 10, 0);
	t->c.d->dev.running = false;
	world_pass(&t->w, 3 * TIMEOUT);
	conn_quiet(&t->c);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	t->c.d->dev.running = true;
	world_finish(&t->w, 3 * TIMEOUT);
	expect(t, 0, ORNIC_WC_SEND, ORNIC_WC_RETRY_EXC_ERR);
}

/* timeout 0 waits without limit. */
static void test_timeout_none(void **state)
{
	struct script *t = *state;

	t->c.qp.timeout = 0;
	post(t, ORNIC_WR_SEND, 10, 0);
	assert_int_equal(world_run(&t->w), -1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
}

/* READ: one request; responses in order; lost ones are requested again from there. */
static void test_read_loss(void **state)
{
	struct script *t = *state;
	struct seen *s;

	memset(dut_at(t->c.d, t->buf, BUF), 0, BUF);
	post(t, ORNIC_WR_RDMA_READ, 4 * MTU + 7, 0);
	s = peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(0), 1);
	assert_int_equal(s->p.dmalen, 4 * MTU + 7);
	assert_int_equal(s->p.va, 0x5000);
	assert_int_equal(s->p.rkey, 0x1234);
	assert_true(s->p.ackreq);
	read_resp(t, BTH_RC_READ_RESP_FIRST, P(0), 1, 0, MTU);
	read_resp(t, BTH_RC_READ_RESP_MIDDLE, P(2), 1, 2 * MTU, MTU);	/* P(1) is lost */
	s = peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(1), 1);
	assert_int_equal(s->p.dmalen, 3 * MTU + 7);
	assert_int_equal(s->p.va, 0x5000 + MTU);
	conn_quiet(&t->c);
	read_resp(t, BTH_RC_READ_RESP_FIRST, P(1), 2, MTU, 2 * MTU);
	world_pass(&t->w, TIMEOUT);
	s = peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(3), 1);
	assert_int_equal(s->p.dmalen, MTU + 7);
	read_resp(t, BTH_RC_READ_RESP_FIRST, P(3), 1, 3 * MTU, MTU);
	read_resp(t, BTH_RC_READ_RESP_LAST, P(4), 1, 4 * MTU, 7);
	expect(t, 0, ORNIC_WC_RDMA_READ, 0);
	check(dut_at(t->c.d, t->buf, 4 * MTU + 7), 4 * MTU + 7, 2);
	assert_int_equal(*dut_at(t->c.d, t->buf + 4 * MTU + 7, 1), 0);
	assert_int_equal(count(t, CNT_implied_nak), 1);
	assert_int_equal(count(t, CNT_ack_timeouts), 1);
	expect_no_reads(t);
}

/*
 * ACKs for later requests than a READ whose answer was lost are implied NAKs. Many of them count
 * as one loss, and none of them may complete the READ.
 */
static void test_implied_nak(void **state)
{
	struct script *t = *state;

	t->c.qp.retry_cnt = 1;
	t->c.qp.req.retry_left = 1;
	post(t, ORNIC_WR_SEND, 5, 0);
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	for (int i = 0; i < 5; i++)
		post(t, ORNIC_WR_SEND, 10, 0);
	t->peer.next = t->peer.nin;
	for (int i = 0; i < 5; i++) {
		struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_ACK, P(2 + i));

		switch_send(t->peer.port, p);
	}
	engine_drain(&t->w.e);
	world_run(&t->w);
	expect(t, 0, ORNIC_WC_SEND, 0);
	conn_quiet(&t->c);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(1), 1);
	for (int i = 0; i < 5; i++)
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(2 + i), 1);
	peer_quiet(&t->peer);
	read_resp(t, BTH_RC_READ_RESP_ONLY, P(1), 1, 0, 10);
	expect(t, 1, ORNIC_WC_RDMA_READ, 0);
	peer_ack(&t->peer, &t->c, P(6), ACK);
	for (int i = 0; i < 5; i++)
		expect(t, 2 + i, ORNIC_WC_SEND, 0);
}

/* Without a retry left, an implied NAK fails the request, and the syndrome tells why. */
static void test_implied_nak_is_the_last(void **state)
{
	struct script *t = *state;

	t->c.qp.retry_cnt = 0;
	t->c.qp.req.retry_left = 0;
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	post(t, ORNIC_WR_SEND, 10, 0);
	peer_ack(&t->peer, &t->c, P(1), ACK);
	expect(t, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_RETRY_EXC_ERR);
	expect(t, 1, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | NAK_PSN_SEQUENCE);
	assert_int_equal(count(t, CNT_implied_nak), 1);
}

static void late_response(struct script *t, uint32_t psn)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_READ_RESP_ONLY, psn);

	p->len = 10;
	p->nseg = 1;
	p->seg[0] = (struct seg) { t->data, 10 };
	switch_send(t->peer.port, p);
	engine_drain(&t->w.e);
}

/* 16 READs, of which the first is lost; half of them are retransmitted. */
static void send_half_again(struct script *t)
{
	t->c.qp.max_rd_atomic = 16;
	for (int i = 0; i < 16; i++)
		post(t, ORNIC_WR_RDMA_READ, 10, 0);
	for (int i = 0; i < 16; i++)
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
	late_response(t, P(1));
	assert_true(qp_run(&t->c.qp));		/* too short for all of them */
	engine_drain(&t->w.e);
	for (int i = 0; i < 8; i++)
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
	peer_quiet(&t->peer);
}

/*
 * A report of a loss uses no retry while the retransmission of the lost request is pending. A
 * second loss does.
 */
static void test_implied_nak_of_the_unsent(void **state)
{
	struct script *t = *state;

	send_half_again(t);
	for (int i = 0; i < 12; i++)		/* answers to the first requests, late */
		late_response(t, P(i));
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt);
	world_run(&t->w);
	for (int i = 8; i < 16; i++)
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
	late_response(t, P(9));			/* P(8) is lost again */
	world_run(&t->w);
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt - 1);
	for (int i = 8; i < 16; i++)
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
	for (int i = 8; i < 16; i++)
		late_response(t, P(i));
	world_run(&t->w);
	for (int i = 0; i < 16; i++)
		expect(t, i, ORNIC_WC_RDMA_READ, 0);
	peer_quiet(&t->peer);
}

/* A late answer to a request not yet retransmitted reports no loss of retransmitted ones. */
static void test_answer_to_the_unsent(void **state)
{
	struct script *t = *state;

	send_half_again(t);
	late_response(t, P(0));
	late_response(t, P(9));
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt);
	expect(t, 0, ORNIC_WC_RDMA_READ, 0);
	conn_quiet(&t->c);
	world_run(&t->w);
	for (int i = 8; i < 16; i++)
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
	peer_quiet(&t->peer);
	for (int i = 1; i < 16; i++)
		late_response(t, P(i));
	world_run(&t->w);
	for (int i = 1; i < 16; i++)
		expect(t, i, ORNIC_WC_RDMA_READ, 0);
	peer_quiet(&t->peer);
}

/* The same for a SEND that waits after an RNR NAK. */
static void test_nak_of_the_unsent(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 5, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 12);
	peer_ack(&t->peer, &t->c, P(0), NAK(NAK_PSN_SEQUENCE));
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt);
	world_pass(&t->w, 640000);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), NAK(NAK_PSN_SEQUENCE));
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	assert_int_equal(t->c.qp.req.retry_left, t->c.qp.retry_cnt - 1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
}

/* A late answer acknowledges the requests before the oldest READ, although none is in flight. */
static void test_answer_acks(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 5, 0);
	for (int i = 0; i < 2; i++)
		post(t, ORNIC_WR_RDMA_READ, 10, 0);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 12);
	late_response(t, P(2));
	expect(t, 0, ORNIC_WC_SEND, 0);
	conn_quiet(&t->c);
	assert_int_equal(count(t, CNT_implied_nak), 0);
	t->peer.next = t->peer.nin;
	world_pass(&t->w, 640000);
	for (int i = 1; i < 3; i++) {
		peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(i), 1);
		late_response(t, P(i));
		expect(t, i, ORNIC_WC_RDMA_READ, 0);
	}
	peer_quiet(&t->peer);
	expect_no_reads(t);
}

static void late_ack(struct script *t, uint32_t psn, uint8_t aeth)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_ACK, psn);

	p->aeth = aeth;
	switch_send(t->peer.port, p);
	engine_drain(&t->w.e);
}

/* A lost request that gets an RNR NAK waits for the RNR timer before its retransmission. */
static void test_rnr_after_nak(void **state)
{
	struct script *t = *state;

	t->c.qp.rnr_retry = 2;
	t->c.qp.req.rnr_left = 2;
	post(t, ORNIC_WR_SEND, 5, 0);
	post(t, ORNIC_WR_SEND, 6, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	late_ack(t, P(0), NAK(NAK_PSN_SEQUENCE));
	late_ack(t, P(0), AETH_RNR_NAK | 12);
	late_ack(t, P(0), AETH_RNR_NAK | 12);
	assert_int_equal(t->c.qp.req.rnr_left, 1);
	world_pass(&t->w, 639000);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1000);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(1), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	expect(t, 1, ORNIC_WC_SEND, 0);
}

/* Reports of a loss in the middle of a message, whose retransmission has not begun: counted once */
static void test_rnr_in_message(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_SEND, 3 * MTU, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 3);
	late_ack(t, P(1), NAK(NAK_PSN_SEQUENCE));
	late_ack(t, P(1), AETH_RNR_NAK | 12);
	assert_int_equal(count(t, CNT_retransmits), 2);
	assert_int_equal(count(t, CNT_seq_naks_received), 1);
	assert_int_equal(count(t, CNT_rnr_naks_received), 1);
	world_pass(&t->w, 640000);
	peer_expect(&t->peer, BTH_RC_SEND_LAST, P(1), 2);
	peer_ack(&t->peer, &t->c, P(2), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	assert_int_equal(count(t, CNT_retransmits), 2);
}

/* The rejected message arrived twice, the second time with a receive; the next one is rejected. */
static void test_rnr_of_the_next(void **state)
{
	struct script *t = *state;

	t->c.qp.rnr_retry = 1;			/* for each of them */
	t->c.qp.req.rnr_left = 1;
	post(t, ORNIC_WR_SEND, 5, 0);
	post(t, ORNIC_WR_SEND, 6, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	peer_ack(&t->peer, &t->c, P(1), AETH_RNR_NAK | 12);
	world_pass(&t->w, 639000);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1000);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_ack(&t->peer, &t->c, P(1), ACK);
	expect(t, 1, ORNIC_WC_SEND, 0);
}

/* A duplicate RNR NAK neither counts nor prolongs the wait. */
static void test_rnr_doubled(void **state)
{
	struct script *t = *state;

	t->c.qp.rnr_retry = 1;
	t->c.qp.req.rnr_left = 1;
	post(t, ORNIC_WR_SEND, 5, 0);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 12);
	world_pass(&t->w, 600000);
	peer_ack(&t->peer, &t->c, P(0), AETH_RNR_NAK | 12);
	conn_quiet(&t->c);
	world_pass(&t->w, 40000);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
}

/* ORN-WQE-16 */
static void test_atomics(void **state)
{
	struct script *t = *state;
	struct seen *s;

	post(t, ORNIC_WR_COMP_SWAP, 8, 0);
	post(t, ORNIC_WR_FETCH_ADD, 8, 0);
	s = peer_expect(&t->peer, BTH_RC_COMPARE_SWAP, P(0), 1);
	assert_int_equal(s->p.swap_add, 5);
	assert_int_equal(s->p.compare, 6);
	assert_int_equal(s->p.va, 0x5000);
	assert_int_equal(s->p.rkey, 0x1234);
	assert_true(s->p.ackreq);
	s = peer_expect(&t->peer, BTH_RC_FETCH_ADD, P(1), 1);
	assert_int_equal(s->p.swap_add, 5);
	atomic_resp(t, P(1), 1);		/* the first answer is lost */
	conn_quiet(&t->c);
	peer_expect(&t->peer, BTH_RC_COMPARE_SWAP, P(0), 1);
	peer_expect(&t->peer, BTH_RC_FETCH_ADD, P(1), 1);
	atomic_resp(t, P(0), 0x1122334455667788);
	expect(t, 0, ORNIC_WC_COMP_SWAP, 0);
	assert_int_equal(le64toh(*(uint64_t *)dut_at(t->c.d, t->buf, 8)), 0x1122334455667788);
	atomic_resp(t, P(1), 99);
	expect(t, 1, ORNIC_WC_FETCH_ADD, 0);
	assert_int_equal(le64toh(*(uint64_t *)dut_at(t->c.d, t->buf, 8)), 99);
	assert_int_equal(count(t, CNT_implied_nak), 1);
	expect_no_reads(t);
}

/* ORN-WQE-4: malformed responses */
static void test_bad_response(void **state)
{
	static const struct {
		uint8_t request, opcode;
		uint32_t npsn, len, mtu;
	} bad[] = {
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_ONLY, 1, MTU, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_FIRST, 1, MTU - 1, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_FIRST, 1, MTU + 1, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_FIRST, 2, 2 * MTU, MTU / 2 },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 3, LONG, 2 * MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 3, LONG + 1, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 3, LONG - 1, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 1, LONG, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_MIDDLE, 3, 3 * MTU, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_MIDDLE, 3, LONG, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_MIDDLE, 4, 4 * MTU, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 4, 3 * MTU + 10, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_READ_RESP_LAST, 4, LONG, MTU },
		{ ORNIC_WR_RDMA_READ, BTH_RC_ATOMIC_ACK, 1, 0, MTU },
		{ ORNIC_WR_COMP_SWAP, BTH_RC_READ_RESP_ONLY, 1, LONG, MTU },
		{ ORNIC_WR_FETCH_ADD, BTH_RC_READ_RESP_ONLY, 1, 8, MTU },
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		post(t, bad[i].request, bad[i].request == ORNIC_WR_RDMA_READ ? LONG : 8, 0);
		p = peer_packet(&t->peer, &t->c, bad[i].opcode, P(0));
		p->npsn = bad[i].npsn;
		p->mtu = bad[i].mtu;
		peer_send(&t->peer, p, t->data, bad[i].len);
		expect(t, 0, bad[i].request == ORNIC_WR_RDMA_READ ? ORNIC_WC_RDMA_READ :
			     bad[i].request == ORNIC_WR_COMP_SWAP ? ORNIC_WC_COMP_SWAP :
			     ORNIC_WC_FETCH_ADD, ORNIC_WC_BAD_RESP_ERR);
		assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | bad[i].opcode);
		script_teardown(state);
	}
}

/* ORN-WQE-4, ORN-QP-4: the status of each NAK; the failed work request first, then the rest */
static void test_nak_status(void **state)
{
	static const struct {
		uint8_t code, status;
		uint32_t invalid, access;
	} nak[] = {
		{ NAK_INVALID_REQUEST, ORNIC_WC_REM_INV_REQ_ERR, 1, 0 },
		{ NAK_REMOTE_ACCESS, ORNIC_WC_REM_ACCESS_ERR, 0, 1 },
		{ NAK_REMOTE_OPERATIONAL, ORNIC_WC_REM_OP_ERR, 0, 0 },
	};

	for (uint32_t i = 0; i < 3; i++) {
		struct ornic_eqe e;
		struct script *t;

		setup(state);
		t = *state;
		for (int j = 0; j < 4; j++)
			post(t, ORNIC_WR_SEND, 10, 0);
		peer_ack(&t->peer, &t->c, P(1), NAK(nak[i].code));
		expect(t, 0, ORNIC_WC_SEND, 0);
		expect(t, 1, ORNIC_WC_SEND, nak[i].status);
		expect(t, 2, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
		expect(t, 3, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | nak[i].code);
		assert_int_equal(count(t, CNT_remote_invalid_requests), nak[i].invalid);
		assert_int_equal(count(t, CNT_remote_access_errors), nak[i].access);
		post(t, ORNIC_WR_RDMA_WRITE, 0, 0);	/* the drain work request */
		expect(t, 4, ORNIC_WC_RDMA_WRITE, ORNIC_WC_WR_FLUSH_ERR);
		assert_false(dut_event(t->c.d, &e));
		script_teardown(state);
	}
}

/* Without a free packet, requests wait; none is taken for sent. */
static void test_no_packets(void **state)
{
	const struct wr write = { .opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED };
	struct script *t = *state;

	conn_send(&t->c, &write);
	assert_int_equal(world_starve(&t->w), 0);
	peer_quiet(&t->peer);
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	peer_expect(&t->peer, BTH_RC_WRITE_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(1), 1);
	peer_quiet(&t->peer);
}

/* ORN-WQE-8 */
static void test_fence(void **state)
{
	struct script *t = *state;

	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	post(t, ORNIC_WR_SEND, 10, 0);
	post(t, ORNIC_WR_SEND, 10, ORNIC_WQE_FENCE);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
	peer_quiet(&t->peer);
	read_resp(t, BTH_RC_READ_RESP_ONLY, P(0), 1, 0, 10);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(2), 1);
}

/* ORN-QP-27 */
static void test_max_rd_atomic(void **state)
{
	struct script *t = *state;

	t->c.qp.max_rd_atomic = 2;
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	post(t, ORNIC_WR_FETCH_ADD, 8, 0);
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	post(t, ORNIC_WR_SEND, 10, 0);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(0), 1);
	peer_expect(&t->peer, BTH_RC_FETCH_ADD, P(1), 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, TIMEOUT);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(0), 1);
	peer_expect(&t->peer, BTH_RC_FETCH_ADD, P(1), 1);
	peer_quiet(&t->peer);
	read_resp(t, BTH_RC_READ_RESP_ONLY, P(0), 1, 0, 10);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(2), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(3), 1);
}

/* A READ that could never start fails instead of waiting without limit (ORN-WQE-24). */
static void test_no_rd_atomic(void **state)
{
	struct script *t = *state;

	t->c.qp.max_rd_atomic = 0;
	post(t, ORNIC_WR_RDMA_READ, 10, 0);
	peer_quiet(&t->peer);
	conn_expect(&t->c, &t->c.hscq, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_LOC_QP_OP_ERR);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
}

/* ORN-WQE-3, ORN-WQE-9, ORN-WQE-11, ORN-WQE-19: unsignaled, SIG_ALL, inline, NOP */
static void test_signaling(void **state)
{
	struct script *t = *state;
	uint8_t text[100];
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_INLINE, .inl = text,
			 .inl_len = sizeof(text) };
	struct wr nop = { .opcode = ORNIC_WR_NOP, .flags = ORNIC_WQE_SIGNALED };
	struct seen *s;
	uint8_t *slot;

	fill(text, sizeof(text), 5);
	slot = conn_write_wr(&t->c, &wr);
	conn_publish(&t->c, &t->c.sq, 1);
	conn_send(&t->c, &nop);
	world_run(&t->w);
	s = peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	assert_int_equal(s->p.nseg, 1);
	check(s->data, sizeof(text), 5);
	memset(slot, 0, 200);
	world_pass(&t->w, TIMEOUT);
	s = peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	check(s->data, sizeof(text), 5);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 1, ORNIC_WC_NOP, 0);
	conn_quiet(&t->c);
	t->c.qp.flags |= ORNIC_QP_F_SIG_ALL;
	nop.flags = 0;
	conn_send(&t->c, &nop);
	world_run(&t->w);
	expect(t, 2, ORNIC_WC_NOP, 0);
	peer_quiet(&t->peer);
}

/* ORN-SEC-5: a ring full of NOPs takes more than one turn. */
static void test_nop_budget(void **state)
{
	struct script *t = *state;
	struct wr nop = { .opcode = ORNIC_WR_NOP };

	for (int i = 0; i < 200; i++) {
		conn_write_wr(&t->c, &nop);
		t->c.sq.index++;
	}
	conn_publish(&t->c, &t->c.sq, 200);
	assert_true(qp_run(&t->c.qp));
	assert_true(t->c.qp.sq.cons < 100);
	world_run(&t->w);
	assert_int_equal(t->c.qp.sq.done, 200);
}

/* Data segments of any number and size (ORN-WQE-14: of length 0 too) */
static void test_sges(void **state)
{
	struct script *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	uint32_t off = 0;
	struct seen *s;

	for (int i = 0; i < 29; i++) {
		wr_sge(&wr, t->buf + off, i * 3, t->key);
		off += i * 3;
	}
	wr_sge(&wr, 0xdead, 0, 0xbad);
	conn_send(&t->c, &wr);
	world_run(&t->w);
	s = peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 2);
	assert_int_equal(s->p.len, off);
	check(s->data, off, 1);
}

/* ORN-WQE-7: a request with a bad key waits for earlier ones, then completes, then the flush */
static void test_local_error_order(void **state)
{
	struct script *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND };

	post(t, ORNIC_WR_SEND, 10, 0);
	wr_sge(&wr, t->buf, 10, 0xbad);
	conn_send(&t->c, &wr);
	post(t, ORNIC_WR_SEND, 10, 0);
	conn_quiet(&t->c);
	world_pass(&t->w, TIMEOUT);
	conn_quiet(&t->c);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	expect(t, 1, ORNIC_WC_SEND, ORNIC_WC_LOC_PROT_ERR);
	expect(t, 2, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_quiet(&t->peer);
}

/*
 * A key that fails in the middle of a message; a READ into memory that is not writable (ORN-WQE-10)
 */
static void test_local_error_late(void **state)
{
	struct script *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	static const uint8_t reads[][2] = {
		{ ORNIC_WR_RDMA_READ, ORNIC_WC_RDMA_READ },
		{ ORNIC_WR_FETCH_ADD, ORNIC_WC_FETCH_ADD },
	};

	wr_sge(&wr, t->buf, 65536, t->key);
	wr_sge(&wr, t->buf, 10, 0xbad);
	conn_send(&t->c, &wr);
	world_run(&t->w);
	peer_expect(&t->peer, BTH_RC_SEND_FIRST, P(0), 64);
	expect(t, 0, ORNIC_WC_SEND, ORNIC_WC_LOC_PROT_ERR);
	for (int i = 0; i < 2; i++) {
		struct wr rd = { .opcode = reads[i][0], .rkey = 1 };

		script_teardown(state);
		setup(state);
		t = *state;
		wr_sge(&rd, t->buf, 8, dut_key(t->c.d, NULL, t->buf, 8, 0));
		conn_send(&t->c, &rd);
		world_run(&t->w);
		if (i)
			atomic_resp(t, P(0), 1);
		else
			read_resp(t, BTH_RC_READ_RESP_ONLY, P(0), 1, 0, 8);
		expect(t, 0, reads[i][1], ORNIC_WC_LOC_PROT_ERR);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_KEY_ACCESS);
	}
}

/* A flushed work request tells nothing about itself, also if it is malformed. */
static void test_flushed_malformed(void **state)
{
	struct script *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	struct ornic_cqe cqe;

	wr_sge(&wr, t->buf, 1, 0xbad);
	conn_send(&t->c, &wr);
	wr = (struct wr) { .opcode = 0xee };
	conn_send(&t->c, &wr);
	world_run(&t->w);
	expect(t, 0, ORNIC_WC_SEND, ORNIC_WC_LOC_PROT_ERR);
	assert_true(conn_poll(&t->c, &t->c.hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(cqe.syndrome, 0);
}

/* ORN-QP-16: SQD finishes started requests, reports it once, starts no other; RTS continues */
static void test_sqd(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	post(t, ORNIC_WR_SEND, 10, 0);
	t->c.qp.sqd_notify = true;
	qp_set_state(&t->c.qp, ORNIC_QPS_SQD);
	post(t, ORNIC_WR_SEND, 10, 0);
	assert_false(dut_event(t->c.d, &e));
	world_pass(&t->w, TIMEOUT);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(0), 1);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	expect(t, 0, ORNIC_WC_SEND, 0);
	assert_true(dut_event(t->c.d, &e));
	assert_int_equal(e.type, ORNIC_EV_SQ_DRAINED);
	assert_int_equal(le32toh(e.number), t->c.qp.handle);
	assert_int_equal(le32toh(e.owner), 7);
	qp_set_state(&t->c.qp, ORNIC_QPS_SQD);
	world_run(&t->w);
	assert_false(dut_event(t->c.d, &e));
	peer_quiet(&t->peer);
	qp_set_state(&t->c.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(1), 1);
}

/* More than the window: the rest follows as the window moves (ORN-WQE-2). */
static void test_window(void **state)
{
	struct script *t = *state;

	for (int i = 0; i < 100; i++)
		post(t, ORNIC_WR_SEND, 10, 0);
	for (int i = 0; i < 64; i++)
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(i), 1);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(9), ACK);
	for (int i = 64; i < 74; i++)
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(i), 1);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(73), ACK);
	peer_ack(&t->peer, &t->c, P(99), ACK);
	for (int i = 0; i < 100; i++)
		expect(t, i, ORNIC_WC_SEND, 0);
}

/* A connection inherits nothing from the one before. */
static void test_reconnect(void **state)
{
	struct script *t = *state;
	struct requester *r = &t->c.qp.req, first = *r;

	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	r->una++;
	r->sent_psn++;
	r->reads++;
	r->unread++;
	r->remote = true;
	r->rewound = true;
	r->rnr_nak = true;
	r->went_back = true;
	r->limited = true;
	r->retry_left--;
	r->rnr_left--;
	r->ssn++;
	r->rtt_sent++;
	r->rtt++;
	r->retransmits++;
	peer_connect(&t->peer, &t->c, PSN0, 0x100);
	assert_memory_equal(r, &first, sizeof(first));
}

/* The ACK arrives while the rate limit delays the next message. */
static void test_acked_while_limited(void **state)
{
	struct script *t = *state;

	qp_set_rate(&t->c.qp, 8000, 1, 1);	/* a byte takes 1 us */
	for (int i = 0; i < 3; i++)
		post(t, ORNIC_WR_SEND, 10, 0);
	for (int i = 0; i < 3; i++) {
		peer_expect(&t->peer, BTH_RC_SEND_ONLY, P(i), 1);
		peer_quiet(&t->peer);
		peer_ack(&t->peer, &t->c, P(i), ACK);
		expect(t, i, ORNIC_WC_SEND, 0);
		world_pass(&t->w, 10000000);
	}
	peer_quiet(&t->peer);
	conn_quiet(&t->c);
}

/* Move the peer behind a network. */
static void move_away(struct script *t)
{
	static const uint8_t elsewhere[6] = { 2, 0xee };

	switch_port_set_mac(t->peer.port, elsewhere);
	switch_port_set_promisc(t->peer.port, true);
	assert_int_equal(cc_set(&t->w.e.cc, "rp_max_rate", 0), 0);
}

/* The answer to a READ is lost while a long message waits for its window. */
static void test_implied_nak_in_message(void **state)
{
	struct script *t = *state;

	move_away(t);
	for (int i = 0; i < 2; i++)
		post(t, ORNIC_WR_RDMA_READ, 10, 0);
	post(t, ORNIC_WR_RDMA_WRITE, 5 * 65536, 0);
	t->peer.next = t->peer.nin;
	late_response(t, P(1));
	world_run(&t->w);
	assert_int_equal(count(t, CNT_implied_nak), 1);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(0), 1);
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, P(1), 1);
	peer_expect(&t->peer, BTH_RC_WRITE_FIRST, P(2), 32);
}

/* A long message that waits for its window is retransmitted after a NAK and after a timeout. */
static void test_loss_in_message(void **state)
{
	struct script *t = *state;

	move_away(t);
	post(t, ORNIC_WR_RDMA_WRITE, 5 * 65536, 0);
	t->peer.next = t->peer.nin;
	peer_ack(&t->peer, &t->c, P(40), NAK(NAK_PSN_SEQUENCE));
	for (int i = 0; i < 4; i++)
		peer_expect(&t->peer, BTH_RC_WRITE_MIDDLE, P(40 + 32 * i), 32);
	peer_quiet(&t->peer);
	assert_int_equal(count(t, CNT_retransmits), 128 - 40);
	assert_int_equal(t->c.qp.req.retransmits, 128 - 40);
	world_pass(&t->w, TIMEOUT - 1);
	peer_quiet(&t->peer);
	world_pass(&t->w, 1);
	for (int i = 0; i < 4; i++)
		peer_expect(&t->peer, BTH_RC_WRITE_MIDDLE, P(40 + 32 * i), 32);
	peer_quiet(&t->peer);
	assert_int_equal(count(t, CNT_ack_timeouts), 1);
	assert_int_equal(count(t, CNT_retransmits), 128 - 40 + 128);
	assert_int_equal(t->c.qp.req.retransmits, 128 - 40 + 128);
}

/* A peer behind a network gets at most as many bytes at once as its buffers may hold. */
static void test_remote_window(void **state)
{
	struct script *t = *state;

	move_away(t);
	post(t, ORNIC_WR_RDMA_WRITE, 5 * 65536, 0);
	peer_expect(&t->peer, BTH_RC_WRITE_FIRST, P(0), 32);
	for (int i = 1; i < 4; i++)
		peer_expect(&t->peer, BTH_RC_WRITE_MIDDLE, P(i * 32), 32);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(0), ACK);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(31), ACK);
	peer_expect(&t->peer, BTH_RC_WRITE_MIDDLE, P(128), 32);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(159), ACK);
	for (int i = 5; i < 9; i++)
		peer_expect(&t->peer, BTH_RC_WRITE_MIDDLE, P(i * 32), 32);
	peer_quiet(&t->peer);
	peer_ack(&t->peer, &t->c, P(191), ACK);
	peer_expect(&t->peer, BTH_RC_WRITE_LAST, P(288), 32);
	peer_ack(&t->peer, &t->c, P(319), ACK);
	expect(t, 0, ORNIC_WC_RDMA_WRITE, 0);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		T(test_segments), T(test_path_mtus), T(test_acks), T(test_nak_sequence),
		T(test_late_ack),
		T(test_rnr), T(test_rnr_infinite), T(test_rnr_table), T(test_rnr_after_nak),
		T(test_rnr_in_message), T(test_rnr_of_the_next), T(test_rnr_doubled),
		T(test_timeout), T(test_timeout_progress), T(test_timeout_fresh), T(test_timeout_sent_again),
		T(test_timeout_paused), T(test_timeout_none),
		T(test_read_loss), T(test_implied_nak), T(test_implied_nak_is_the_last),
		T(test_implied_nak_of_the_unsent),
		T(test_nak_of_the_unsent), T(test_answer_to_the_unsent), T(test_answer_acks),
		T(test_atomics),
		cmocka_unit_test(test_bad_response),
		cmocka_unit_test(test_nak_status), T(test_fence), T(test_max_rd_atomic),
		T(test_no_rd_atomic), T(test_no_packets),
		T(test_signaling), T(test_nop_budget), T(test_sges), T(test_local_error_order),
		T(test_local_error_late), T(test_flushed_malformed), T(test_sqd),
		T(test_window),
		T(test_reconnect), T(test_acked_while_limited), T(test_implied_nak_in_message),
		T(test_loss_in_message), T(test_remote_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
