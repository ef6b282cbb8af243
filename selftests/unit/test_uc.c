// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable connections: between two functions, and the receiver against scripted
 * packets with gaps, faults and hostile ones (IBTA volume 1, 9.8.2; ORN-UC).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/peer.h"

#define UC(op)	(BTH_TRANSPORT_UC | BTH_RC_##op)
#define PSN0	0xfffffeu
#define P(n)	((PSN0 + (n)) & BTH_PSN_MASK)
#define MTU	1024
#define BUF	(1u << 20)
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ)

static int setup(void **state)
{
	struct conn_opt opt = { .type = ORNIC_QPT_UC };
	struct ends *t = ends_new(&opt, 0);

	conn_pair(&t->a, &t->b, PSN0, 0x1000);
	ends_buffers(t, BUF, ALL);
	fill(dut_at(t->a.d, t->abuf, BUF), BUF, 1);
	*state = t;
	return 0;
}

static struct wr make(struct ends *t, uint8_t opcode, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .imm = htobe32(77),
			 .raddr = t->bbuf, .rkey = t->bkey };

	if (len)
		wr_sge(&wr, t->abuf, len, t->akey);
	return wr;
}

static void post(struct ends *t, const struct wr *wr)
{
	conn_send(&t->a, wr);
	world_run(&t->w);
}

static void sent(struct ends *t, uint32_t index, uint8_t opcode, uint8_t status)
{
	conn_expect(&t->a, &t->a.hscq, index, opcode, status);
}

/* ORN-UC-1, ORN-UC-2: messages of all lengths, in order, done when sent */
static void test_send(void **state)
{
	static const uint32_t len[] = { 0, 1, MTU, MTU + 1, 65536, 65537, 500000, BUF };
	struct ends *t = *state;
	struct ornic_cqe cqe;

	for (uint32_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		struct wr wr = make(t, i & 1 ? ORNIC_WR_SEND_IMM : ORNIC_WR_SEND, len[i]);

		wr.flags |= ORNIC_WQE_SOLICITED;
		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		conn_recv(&t->b, t->bbuf, len[i], t->bkey);
		post(t, &wr);
		sent(t, i, ORNIC_WC_SEND, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.opcode, ORNIC_WC_RECV);
		assert_int_equal(le32toh(cqe.byte_len), len[i]);
		assert_int_equal(le32toh(cqe.flags),
				 ORNIC_CQE_SOLICITED | (i & 1 ? ORNIC_CQE_WITH_IMM : 0));
		check(dut_at(t->b.d, t->bbuf, BUF), len[i], 1);
	}
	conn_quiet(&t->a);
	conn_quiet(&t->b);
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_send], sizeof(len) / sizeof(len[0]));
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_write], 0);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_send], sizeof(len) / sizeof(len[0]));
	assert_int_equal(t->b.d->dev.cnt[CNT_out_of_order], 0);
	assert_int_equal(t->b.d->dev.cnt[CNT_rdma_tx_packets], 0);
}

/* All counters of both ends, for a SEND and a WRITE of three packets */
static void test_counters(void **state)
{
	const uint32_t len = 2 * MTU + 1;
	struct ends *t = *state;
	uint64_t *cnt[2] = { t->a.d->dev.cnt, t->b.d->dev.cnt };

	for (int write = 0; write < 2; write++) {
		struct wr wr = make(t, write ? ORNIC_WR_RDMA_WRITE : ORNIC_WR_SEND, len);
		uint64_t want[2][CNT_COUNT];

		conn_recv(&t->b, t->bbuf, len, t->bkey);
		for (int i = 0; i < 2; i++)
			memcpy(want[i], cnt[i], sizeof(want[i]));
		post(t, &wr);
		want[0][write ? CNT_tx_write : CNT_tx_send]++;
		want[0][CNT_rdma_tx_packets] += 3;
		want[0][CNT_rdma_tx_bytes] += len;
		want[1][write ? CNT_rx_write : CNT_rx_send]++;
		want[1][CNT_rdma_rx_packets] += 3;
		want[1][CNT_rdma_rx_bytes] += len;
		want[1][CNT_rdma_copied_bytes] += len;
		want[0][CNT_doorbells] = cnt[0][CNT_doorbells];
		for (int i = 0; i < 2; i++)
			assert_memory_equal(cnt[i], want[i], sizeof(want[i]));
	}
}

/* Without a free packet, a message waits: it neither completes nor is lost. */
static void test_no_packets(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_SEND, 2 * MTU);

	conn_recv(&t->b, t->bbuf, BUF, t->bkey);
	conn_send(&t->a, &wr);
	assert_int_equal(world_starve(&t->w), 0);
	conn_quiet(&t->a);
	world_run(&t->w);
	sent(t, 0, ORNIC_WC_SEND, 0);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
}

/* ORN-UC-1, ORN-RQ-8 */
static void test_write(void **state)
{
	static const uint32_t len[] = { 0, 5, 65537, BUF };
	struct ends *t = *state;
	struct ornic_cqe cqe;

	for (uint32_t i = 0; i < 4; i++) {
		struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, len[i]);

		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		post(t, &wr);
		sent(t, 2 * i, ORNIC_WC_RDMA_WRITE, 0);
		conn_quiet(&t->b);
		check(dut_at(t->b.d, t->bbuf, BUF), len[i], 1);
		wr.opcode = ORNIC_WR_RDMA_WRITE_IMM;
		conn_recv(&t->b, 0, 0, 0);
		post(t, &wr);
		sent(t, 2 * i + 1, ORNIC_WC_RDMA_WRITE, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(cqe.opcode, ORNIC_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(le32toh(cqe.byte_len), len[i]);
		assert_int_equal(be32toh(cqe.imm), 77);
	}
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_write], 8);
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_send], 0);
}

/* Inline data, NOP in order, FENCE without a meaning; ORN-WQE-3 */
static void test_small(void **state)
{
	struct ends *t = *state;
	struct wr nop = { .opcode = ORNIC_WR_NOP, .flags = ORNIC_WQE_SIGNALED };
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 0);

	wr.inl = "inline";
	wr.inl_len = 6;
	wr.flags = ORNIC_WQE_INLINE | ORNIC_WQE_FENCE;
	conn_send(&t->a, &wr);
	conn_send(&t->a, &nop);
	world_run(&t->w);
	sent(t, 1, ORNIC_WC_NOP, 0);
	assert_memory_equal(dut_at(t->b.d, t->bbuf, 6), "inline", 6);
	conn_quiet(&t->a);
}

/* ORN-UC-3: no receiver exists, and the sender does not know */
static void test_no_peer(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_SEND, 3000);

	post(t, &wr);
	sent(t, 0, ORNIC_WC_SEND, 0);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_no_wqe], 1);
	qp_set_state(&t->b.qp, ORNIC_QPS_RESET);
	post(t, &wr);
	sent(t, 1, ORNIC_WC_SEND, 0);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
}

/* ORN-UC-4, ORN-QP-21: SQE with the fault first, then flushes; receives go on; RTS sends again */
static void test_sqe(void **state)
{
	struct ends *t = *state;
	struct wr good = make(t, ORNIC_WR_SEND, 100), bad = make(t, ORNIC_WR_SEND, 100000);
	struct wr back = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };

	bad.nsge = 1;
	bad.sge[0].length = htole32(70000);
	wr_sge(&bad, t->abuf, 70000, t->akey + 1);
	for (int i = 0; i < 3; i++)
		conn_recv(&t->b, t->bbuf, BUF, t->bkey);
	conn_recv(&t->a, t->abuf, 100, t->akey);
	conn_send(&t->a, &good);
	conn_send(&t->a, &bad);
	conn_send(&t->a, &good);
	world_run(&t->w);
	sent(t, 0, ORNIC_WC_SEND, 0);
	sent(t, 1, ORNIC_WC_SEND, ORNIC_WC_LOC_PROT_ERR);
	sent(t, 2, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_SQE);
	conn_send(&t->b, &back);
	world_run(&t->w);
	conn_expect(&t->b, &t->b.hscq, 0, ORNIC_WC_SEND, 0);
	conn_expect(&t->a, &t->a.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	/* a single one that is posted before RTS is flushed, too */
	conn_send(&t->a, &good);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	sent(t, 3, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	post(t, &good);
	sent(t, 4, ORNIC_WC_SEND, 0);
	/* the receive that the broken message had begun to fill */
	conn_expect(&t->b, &t->b.hrcq, 1, ORNIC_WC_RECV, 0);
	conn_quiet(&t->b);
}

/* The work request fails when it is tried first: SQE, not ERR (ORN-UC-4). */
static void send_fails(struct ends *t, const struct wr *wr, uint32_t index, uint8_t opcode,
		       uint8_t status, uint32_t syndrome)
{
	conn_send(&t->a, wr);
	qp_run(&t->a.qp);
	sent(t, index, opcode, status);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_SQE);
	assert_int_equal(t->a.qp.syndrome, syndrome);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
}

/* A malformed work request, a bad key and a deleted GID entry */
static void test_send_errors(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_READ, 8);

	send_fails(t, &wr, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_OPCODE);
	wr = make(t, ORNIC_WR_SEND, 8);
	wr.sge[0].lkey ^= htole32(1);
	send_fails(t, &wr, 1, ORNIC_WC_SEND, ORNIC_WC_LOC_PROT_ERR, ORNIC_SYN_KEY_INDEX);
	t->a.d->dev.port.gid[0].flags = 0;
	send_fails(t, &wr, 2, ORNIC_WC_SEND, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_PATH);
}

/* A run sends 16 packets and asks for another one only if there is more to send. */
static void test_budget(void **state)
{
	struct ends *t = *state;
	struct qp *qp = &t->a.qp;
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 8);

	for (int i = 0; i < 17; i++)
		conn_send(&t->a, &wr);
	assert_true(qp_run(qp));
	assert_int_equal(qp->sq.done, 16);
	assert_false(qp_run(qp));
	assert_int_equal(qp->sq.done, 17);
	for (int i = 0; i < 16; i++)
		conn_send(&t->a, &wr);
	assert_false(qp_run(qp));
	assert_int_equal(qp->sq.done, 33);
	wr.sge[0].lkey ^= htole32(1);
	conn_send(&t->a, &wr);
	assert_false(qp_run(qp));	/* the next run flushes */
	assert_int_equal(qp->state, ORNIC_QPS_SQE);
}

/* ORN-QP-16: a long message finishes in SQD, the next one waits */
static void test_sqd(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, BUF);
	struct ornic_eqe e;

	wr.flags = ORNIC_WQE_SIGNALED;
	wr.nsge = 0;
	for (int i = 0; i < 20; i++)
		wr_sge(&wr, t->abuf, 60000, t->akey);
	wr.raddr = t->bbuf;
	wr.rkey = dut_key(t->b.d, NULL, t->bbuf, BUF, ALL);
	conn_send(&t->a, &wr);
	conn_send(&t->a, &wr);
	qp_run(&t->a.qp);
	conn_quiet(&t->a);
	t->a.qp.sqd_notify = true;
	qp_set_state(&t->a.qp, ORNIC_QPS_SQD);
	assert_false(dut_event(t->a.d, &e));
	world_run(&t->w);
	sent(t, 0, ORNIC_WC_RDMA_WRITE, 0);
	conn_quiet(&t->a);
	assert_true(dut_event(t->a.d, &e));
	assert_int_equal(e.type, ORNIC_EV_SQ_DRAINED);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	sent(t, 1, ORNIC_WC_RDMA_WRITE, 0);
}

/* Connected to itself, its own packet puts it into ERR in the middle of a message. */
static void test_self(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_SEND, BUF);

	qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
	conn_path(&t->a, t->a.d->dev.port.mac, t->a.d->dev.port.gid[0].gid);
	conn_attr(&t->a, t->a.qp.wire_qpn, 5, 5);
	conn_rts(&t->a);
	t->a.sq.index = 0;
	conn_rec(&t->a, &t->a.sq)->host_index = 0;
	conn_recv(&t->a, t->abuf, BUF, t->akey + 1);
	post(t, &wr);
	conn_expect(&t->a, &t->a.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_LOC_PROT_ERR);
	sent(t, 0, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
}

static int setup_peer(void **state)
{
	struct conn_opt opt = { .type = ORNIC_QPT_UC };
	struct script *t = script_new(&opt, 0x100, PSN0);

	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, BUF, ALL);
	fill(t->data, sizeof(t->data), 2);
	*state = t;
	return 0;
}

/* Send @npsn packets of @len bytes, for @dmalen bytes at the beginning of the key */
static void packet(struct script *t, uint8_t opcode, uint32_t psn, uint32_t npsn, uint32_t len,
		   uint32_t dmalen)
{
	struct packet *p = peer_packet(&t->peer, &t->c, opcode, psn);

	p->npsn = npsn;
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = dmalen;
	p->imm = htobe32(42);
	peer_send(&t->peer, p, t->data, len);
}

static uint64_t count(struct script *t, enum counter c)
{
	return t->c.d->dev.cnt[c];
}

static void expect(struct script *t, uint32_t index, uint8_t status)
{
	conn_expect(&t->c, &t->c.hrcq, index, ORNIC_WC_RECV, status);
}

static void post_receives(struct script *t, int n)
{
	while (n--)
		conn_recv(&t->c, t->buf, 4 * MTU, t->key);
}

/* ORN-UC-1: the sender's packets, opcode by opcode; none requests an answer */
static void test_packets(void **state)
{
	struct script *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND_IMM };
	struct seen *s;

	for (int i = 0; i < 3; i++)
		wr_sge(&wr, t->buf, 60000, t->key);
	conn_send(&t->c, &wr);
	world_run(&t->w);
	s = peer_expect(&t->peer, UC(SEND_FIRST), 0x100, 64);
	assert_false(s->p.ackreq);
	peer_expect(&t->peer, UC(SEND_MIDDLE), 0x140, 64);
	peer_expect(&t->peer, UC(SEND_LAST_IMM), 0x180, 176 - 128);
	wr = (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x1234, .rkey = 9 };
	wr_sge(&wr, t->buf, 100, t->key);
	conn_send(&t->c, &wr);
	world_run(&t->w);
	s = peer_expect(&t->peer, UC(WRITE_ONLY), 0x1b0, 1);
	assert_int_equal(s->p.va, 0x1234);
	assert_int_equal(s->p.dmalen, 100);
	peer_quiet(&t->peer);
}

/* ORN-UC-5: a gap drops the message silently; the next first packet is accepted */
static void test_gap(void **state)
{
	struct script *t = *state;

	post_receives(t, 3);
	packet(t, UC(SEND_FIRST), P(0), 1, MTU, 0);
	packet(t, UC(SEND_LAST), P(2), 1, MTU, 0);
	packet(t, UC(SEND_LAST), P(3), 1, MTU, 0);
	conn_quiet(&t->c);
	assert_int_equal(count(t, CNT_out_of_order), 1);
	packet(t, UC(SEND_ONLY), P(9), 1, 100, 0);
	expect(t, 0, 0);
	assert_int_equal(count(t, CNT_out_of_order), 2);
	packet(t, UC(SEND_FIRST), P(10), 2, 2 * MTU, 0);
	packet(t, UC(SEND_LAST), P(12), 1, 1, 0);
	expect(t, 1, 0);
	/* an old first packet is a new message: UC has no duplicates */
	packet(t, UC(SEND_ONLY), P(12), 1, 100, 0);
	expect(t, 2, 0);
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
}

/* ORN-UC-5, ORN-UC-8: a first packet within a message starts a new one, with the same receive */
static void test_restart(void **state)
{
	struct script *t = *state;

	post_receives(t, 2);
	packet(t, UC(SEND_FIRST), P(0), 1, MTU, 0);
	packet(t, UC(SEND_FIRST), P(1), 1, MTU, 0);
	packet(t, UC(SEND_LAST), P(2), 1, 7, 0);
	expect(t, 0, 0);
	packet(t, UC(SEND_FIRST), P(3), 1, MTU, 0);
	packet(t, UC(WRITE_LAST), P(4), 1, 5, 0);
	packet(t, UC(SEND_LAST), P(5), 1, 5, 0);
	conn_quiet(&t->c);
	packet(t, UC(WRITE_ONLY_IMM), P(6), 1, 5, 5);
	conn_expect(&t->c, &t->c.hrcq, 1, ORNIC_WC_RECV_RDMA_WITH_IMM, 0);
}

/* ORN-UC-6: no receive, one too short, a wrong key, no right, wrong lengths: dropped */
static void test_peer_faults(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	packet(t, UC(SEND_FIRST), P(0), 1, MTU, 0);
	packet(t, UC(SEND_LAST), P(1), 1, 5, 0);
	assert_int_equal(count(t, CNT_rx_drop_no_wqe), 1);
	post_receives(t, 1);
	packet(t, UC(SEND_ONLY), P(2), 5, 4 * MTU + 1, 0);
	assert_int_equal(count(t, CNT_rx_drop_size), 1);
	t->key++;
	packet(t, UC(WRITE_ONLY), P(7), 1, 5, 5);
	t->key--;
	assert_int_equal(count(t, CNT_remote_access_errors), 1);
	packet(t, UC(WRITE_FIRST), P(8), 1, MTU, MTU + 5);
	packet(t, UC(WRITE_LAST), P(9), 1, 6, 0);
	packet(t, UC(WRITE_ONLY), P(10), 1, 5, 6);
	packet(t, UC(SEND_FIRST), P(11), 1, MTU - 1, 0);
	packet(t, UC(SEND_ONLY), P(12), 1, MTU + 1, 0);
	assert_int_equal(count(t, CNT_remote_invalid_requests), 4);
	t->c.qp.access = 0;
	packet(t, UC(WRITE_ONLY), P(13), 1, 5, 5);
	assert_int_equal(count(t, CNT_remote_access_errors), 2);
	assert_int_equal(count(t, CNT_out_of_order), 0);
	conn_quiet(&t->c);
	peer_quiet(&t->peer);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	packet(t, UC(SEND_ONLY), P(14), 1, 5, 0);
	expect(t, 0, 0);
	assert_false(dut_event(t->c.d, &e));
}

/* A WRITE with immediate without a receive has written data and is dropped (ORN-UC-6). */
static void test_write_imm_late(void **state)
{
	struct script *t = *state;

	packet(t, UC(WRITE_ONLY_IMM), P(0), 1, 5, 5);
	assert_int_equal(count(t, CNT_rx_drop_no_wqe), 1);
	post_receives(t, 1);
	packet(t, UC(WRITE_ONLY_IMM), P(1), 1, 5, 5);
	conn_expect(&t->c, &t->c.hrcq, 0, ORNIC_WC_RECV_RDMA_WITH_IMM, 0);
}

/* ORN-UC-9: a WRITE with immediate rejected by the key or the queue pair takes no receive */
static void test_write_imm_refused(void **state)
{
	struct script *t = *state;

	post_receives(t, 1);
	t->key++;
	packet(t, UC(WRITE_ONLY_IMM), P(0), 1, 5, 5);
	packet(t, UC(WRITE_FIRST), P(1), 1, MTU, MTU + 5);
	packet(t, UC(WRITE_LAST_IMM), P(2), 1, 5, 0);
	t->key--;
	t->c.qp.access = 0;
	packet(t, UC(WRITE_ONLY_IMM), P(3), 1, 5, 5);
	assert_int_equal(count(t, CNT_remote_access_errors), 3);
	assert_int_equal(t->c.qp.rq.cons, 0);
	assert_false(t->c.qp.resp.recv.valid);
	conn_quiet(&t->c);
	peer_quiet(&t->peer);
	packet(t, UC(SEND_ONLY), P(4), 1, 5, 0);
	expect(t, 0, 0);
	t->c.qp.access = ALL;
	packet(t, UC(WRITE_ONLY_IMM), P(5), 1, 0, 0);
	assert_int_equal(count(t, CNT_rx_drop_no_wqe), 1);
}

/*
 * ORN-UC-7, ORN-RQ-2: an invalid receive: it completes with an error, and the queue pair is in
 * ERR
 */
static void test_bad_receive(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	conn_recv(&t->c, t->buf, 100, t->key + 1);
	post_receives(t, 1);
	packet(t, UC(SEND_ONLY), P(0), 1, 5, 0);
	expect(t, 0, ORNIC_WC_LOC_PROT_ERR);
	expect(t, 1, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_KEY_INDEX);
	assert_int_equal(count(t, CNT_remote_access_errors), 0);
	assert_false(dut_event(t->c.d, &e));
	packet(t, UC(SEND_ONLY), P(1), 1, 5, 0);
	conn_quiet(&t->c);
	peer_quiet(&t->peer);
}

/* Malformed: LOC_QP_OP_ERR (ORN-UC-7) */
static void test_malformed_receive(void **state)
{
	struct script *t = *state;

	post_receives(t, 1);
	((struct ornic_rwqe *)guest_at(&t->c.d->guest, t->c.rq.ring, 16))->mbz0 = 1;
	packet(t, UC(SEND_ONLY), P(0), 1, 5, 0);
	expect(t, 0, ORNIC_WC_LOC_QP_OP_ERR);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(count(t, CNT_rx_drop_size), 0);
}

/* Operations that UC lacks, packets of other transports and sources (ORN-UC-1, ORN-PORT-2) */
static void test_hostile(void **state)
{
	struct script *t = *state;
	struct packet *p;

	post_receives(t, 1);
	for (uint32_t op = 0; op < 0x20; op++)
		if (op > BTH_RC_WRITE_ONLY_IMM)
			packet(t, BTH_TRANSPORT_UC | op, P(0), 1, 0, 8);
	assert_int_equal(count(t, CNT_bad_opcode), 0x20 - BTH_RC_WRITE_ONLY_IMM - 1);
	packet(t, BTH_RC_SEND_ONLY, P(0), 1, 5, 0);
	packet(t, BTH_UD_SEND_ONLY, P(0), 1, 5, 0);
	packet(t, 0xff, P(0), 1, 5, 0);
	assert_int_equal(count(t, CNT_bad_opcode), 0x20 - BTH_RC_WRITE_ONLY_IMM - 1 + 3);
	p = peer_packet(&t->peer, &t->c, UC(SEND_ONLY), P(0));
	p->sgid[15] ^= 1;
	peer_send(&t->peer, p, t->data, 5);
	assert_int_equal(count(t, CNT_bad_gid), 1);
	conn_quiet(&t->c);
	packet(t, UC(SEND_ONLY), P(0), 1, 5, 0);
	expect(t, 0, 0);
}

/* Any opcode, PSN and length: no byte outside the key changes, no answer is sent (ORN-ERR-1) */
static void test_fuzz(void **state)
{
	struct script *t = *state;
	uint64_t seed = 7;
	uint8_t *after;

	t->key = dut_key(t->c.d, NULL, t->buf, 16 * MTU, ALL);
	after = dut_at(t->c.d, t->buf + 16 * MTU, BUF - 16 * MTU);
	for (int i = 0; i < 20000; i++) {
		uint32_t r = (seed = seed * 6364136223846793005ull + 1442695040888963407ull) >> 33;

		if (!(r & 7)) {
			conn_recv(&t->c, t->buf, (r >> 3) % (8 * MTU), t->key);
			if (t->c.rq.index - t->c.qp.rq.cons >= 200)
				t->c.rq.index--;
		}
		packet(t, BTH_TRANSPORT_UC | (r >> 8) % 14, t->c.qp.resp.epsn + !(r & 15),
		       1 + (r >> 12) % 3, (r >> 14) % (3 * MTU), (r >> 14) % (3 * MTU));
		while (conn_poll(&t->c, &t->c.hrcq, &(struct ornic_cqe){}))
			;
		assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	}
	for (uint32_t i = 0; i < BUF - 16 * MTU; i++)
		assert_int_equal(after[i], 0);
	peer_quiet(&t->peer);
	assert_true(count(t, CNT_rx_write) > 100);
}

/* ORN-QP-30: COMM_EST once, in RTR */
static void test_established(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	qp_set_state(&t->c.qp, ORNIC_QPS_INIT);
	packet(t, UC(WRITE_ONLY), P(0), 1, 5, 5);
	assert_false(dut_event(t->c.d, &e));
	qp_set_state(&t->c.qp, ORNIC_QPS_RTR);
	packet(t, UC(WRITE_ONLY), P(0), 1, 5, 5);
	packet(t, UC(WRITE_ONLY), P(1), 1, 5, 5);
	assert_true(dut_event(t->c.d, &e));
	assert_int_equal(e.type, ORNIC_EV_COMM_EST);
	assert_false(dut_event(t->c.d, &e));
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, ends_teardown)
#define S(f)	cmocka_unit_test_setup_teardown(f, setup_peer, script_teardown)
	const struct CMUnitTest tests[] = {
		T(test_send), T(test_counters), T(test_no_packets), T(test_write), T(test_small),
		T(test_no_peer), T(test_sqe),
		T(test_send_errors), T(test_budget), T(test_sqd), T(test_self), S(test_packets),
		S(test_gap), S(test_restart), S(test_peer_faults), S(test_write_imm_late),
		S(test_write_imm_refused),
		S(test_bad_receive), S(test_malformed_receive), S(test_hostile), S(test_fuzz),
		S(test_established),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
