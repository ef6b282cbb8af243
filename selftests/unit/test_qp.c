// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pair states in the data path: reset, flush, doorbells, broken rings
 * (ORN-QP-3 to 7, 14 to 20; ORN-RNG-8; ORN-ERR-7).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/srq.h"
#include "lib/peer.h"
#include "net/switch.h"

#define ACK	(AETH_ACK | AETH_NO_CREDITS)
#define BUF	65536

static int setup(void **state)
{
	struct script *t = script_new(NULL, 5, 100);

	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, BUF, ORNIC_ACCESS_LOCAL_WRITE);
	*state = t;
	return 0;
}

static void post(struct script *t, uint8_t opcode)
{
	struct wr wr = { .opcode = opcode };

	if (opcode != ORNIC_WR_NOP)
		wr_sge(&wr, t->buf, 10, t->key);
	conn_send(&t->c, &wr);
}

static void recv_buf(struct script *t)
{
	conn_recv(&t->c, t->buf, 1000, t->key);
}

static void flushed(struct script *t, struct hostq *q, uint32_t index)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(&t->c, q, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(le32toh(cqe.wqe_id), index);
	assert_int_equal(cqe.opcode >> 7, q == &t->c.hrcq);
}

/* Prepare the rings as a host does between RESET and INIT (ORN-RNG-4) */
static void host_reset(struct script *t)
{
	struct hostq *q[] = { &t->c.sq, &t->c.rq };

	for (int i = 0; i < 2; i++) {
		struct ornic_rec *rec = conn_rec(&t->c, q[i]);

		memset(rec, 0, sizeof(*rec));
		rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
		q[i]->index = 0;
	}
}

/* ORN-QP-3, ORN-QP-14: no state and no event is left, records stay unchanged */
static void test_reset(void **state)
{
	struct script *t = *state;
	uint32_t n;

	post(t, ORNIC_WR_SEND);
	recv_buf(t);
	recv_buf(t);
	world_run(&t->w);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, 5, 1);
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY, 100), NULL, 0);
	n = t->peer.nin;
	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	conn_rec(&t->c, &t->c.sq)->notify = htole32(0x1234);
	conn_rec(&t->c, &t->c.rq)->notify = htole32(0x1234);
	qp_doorbell(&t->c.qp, false);
	qp_doorbell(&t->c.qp, true);
	assert_int_equal(world_run(&t->w), -1);
	assert_int_equal(le32toh(conn_rec(&t->c, &t->c.sq)->notify), 0x1234);
	assert_int_equal(le32toh(conn_rec(&t->c, &t->c.rq)->notify), 0x1234);
	conn_expect(&t->c, &t->c.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_quiet(&t->c);
	assert_int_equal(t->c.qp.sq.cons, 0);
	assert_int_equal(t->c.qp.rq.cons, 0);
	assert_int_equal(t->peer.nin, n);

	host_reset(t);
	t->c.qp.sq_psn = 0x500;
	conn_rts(&t->c);
	recv_buf(t);
	post(t, ORNIC_WR_RDMA_READ);
	world_run(&t->w);
	t->peer.next = n;
	peer_expect(&t->peer, BTH_RC_READ_REQUEST, 0x500, 1);
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY, 100), NULL, 0);
	conn_expect(&t->c, &t->c.hrcq, 0, ORNIC_WC_RECV, 0);
}

/* A modify from INIT to INIT leaves what the queue pair expects from its peer. */
static void test_init_again(void **state)
{
	struct script *t = *state;
	struct qp *qp = &t->c.qp;

	qp_set_state(qp, ORNIC_QPS_RESET);
	qp_set_state(qp, ORNIC_QPS_INIT);
	qp->resp.epsn = 77;
	qp_set_state(qp, ORNIC_QPS_INIT);
	assert_int_equal(qp->resp.epsn, 77);
	qp_set_state(qp, ORNIC_QPS_RTR);
	assert_int_equal(qp->resp.epsn, qp->rq_psn);
}

/*
 * ORN-QP-18, ORN-QP-19, ORN-QP-7: both queues, in order, more than a turn's worth, for any
 * contents
 */
static void test_flush(void **state)
{
	struct script *t = *state;

	for (int i = 0; i < 150; i++)
		recv_buf(t);
	memset(guest_at(&t->c.d->guest, t->c.rq.ring + 256 * 3, 256), 0xff, 256);
	for (int i = 0; i < 100; i++)
		post(t, ORNIC_WR_SEND);
	world_run(&t->w);
	post(t, ORNIC_WR_RDMA_READ);
	memset(guest_at(&t->c.d->guest, t->c.sq.ring + 512 * 100, 512), 0xff, 512);
	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	t->peer.next = t->peer.nin;
	world_run(&t->w);
	for (int i = 0; i < 101; i++)
		flushed(t, &t->c.hscq, i);
	for (int i = 0; i < 150; i++)
		flushed(t, &t->c.hrcq, i);
	conn_quiet(&t->c);
	t->c.sq.rang = 0;
	t->c.rq.rang = 0;
	post(t, ORNIC_WR_SEND);
	recv_buf(t);
	assert_int_equal(t->c.sq.rang, 1);
	assert_int_equal(t->c.rq.rang, 1);
	world_run(&t->w);
	flushed(t, &t->c.hscq, 101);
	flushed(t, &t->c.hrcq, 150);
	conn_quiet(&t->c);
	world_finish(&t->w, 1000000000);
	peer_quiet(&t->peer);
	assert_int_equal(t->c.d->dev.cnt[CNT_flushes], 253);
}

/* The receive into which a message is arriving is flushed with the others. */
static void test_flush_partial(void **state)
{
	struct script *t = *state;
	uint8_t data[1024] = { 0 };

	recv_buf(t);
	recv_buf(t);
	((struct ornic_sge *)guest_at(&t->c.d->guest, t->c.rq.ring + 16, 16))->length =
		htole32(5000);
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_RC_SEND_FIRST, 100), data, 1024);
	conn_quiet(&t->c);
	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	flushed(t, &t->c.hrcq, 0);
	flushed(t, &t->c.hrcq, 1);
	conn_quiet(&t->c);
}

/*
 * Doorbells do no harm in any state, and the device finds the work of ignored ones later
 * (ORN-QP-15).
 */
static void test_doorbells(void **state)
{
	struct script *t = *state;

	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	host_reset(t);
	post(t, ORNIC_WR_NOP);
	recv_buf(t);
	for (uint8_t s = ORNIC_QPS_INIT; s <= ORNIC_QPS_SQD; s++) {
		qp_set_state(&t->c.qp, s);
		qp_doorbell(&t->c.qp, false);
		qp_doorbell(&t->c.qp, true);
		world_run(&t->w);
		assert_int_equal(t->c.qp.sq.done, s >= ORNIC_QPS_RTS);
		conn_quiet(&t->c);
	}
	post(t, ORNIC_WR_NOP);
	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	flushed(t, &t->c.hscq, 1);
	flushed(t, &t->c.hrcq, 0);
	conn_quiet(&t->c);
}

/* Check all fields of the next event of the queue pair; the event of its start may precede it. */
static void expect_event(struct script *t, uint8_t type, uint32_t syndrome, uint32_t index)
{
	struct ornic_eqe e;

	assert_true(dut_event(t->c.d, &e));
	if (e.type == ORNIC_EV_COMM_EST)
		assert_true(dut_event(t->c.d, &e));
	assert_int_equal(e.type, type);
	assert_int_equal(le32toh(e.number), t->c.qp.handle);
	assert_int_equal(le32toh(e.owner), 7);
	assert_int_equal(le32toh(e.syndrome), syndrome);
	assert_int_equal(le32toh(e.info0), t->c.qp.state);
	assert_int_equal(le32toh(e.info1), index);
	assert_int_equal(e.lost, 0);
}

/* Check that the queue pair failed, and the event reports its ring, broken at entry @index. */
static void expect_fatal(struct script *t, uint32_t syndrome, uint32_t index)
{
	struct ornic_eqe e;

	expect_event(t, ORNIC_EV_QP_FATAL, syndrome, index);
	assert_false(dut_event(t->c.d, &e));
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(t->c.d->fatals, 0);
}

/* ORN-RNG-8, ORN-ERR-7: the producer index jumps ahead, or behind. The receives flush. */
static void test_index(void **state)
{
	static const uint32_t jump[] = { 257, 0x80000000, 0xffffffff };

	for (int i = 0; i < 3; i++) {
		struct script *t;

		setup(state);
		t = *state;
		recv_buf(t);
		post(t, ORNIC_WR_NOP);
		world_run(&t->w);
		conn_publish(&t->c, &t->c.sq, 1 + jump[i]);
		world_run(&t->w);
		expect_fatal(t, ORNIC_SYN_RING_INDEX, 1);
		flushed(t, &t->c.hrcq, 0);
		conn_quiet(&t->c);
		world_run(&t->w);
		script_teardown(state);
	}
}

static void test_rq_index(void **state)
{
	struct script *t = *state;

	recv_buf(t);
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY, 100), NULL, 0);
	peer_expect_ack(&t->peer, ACK, 100);
	conn_expect(&t->c, &t->c.hrcq, 0, ORNIC_WC_RECV, 0);
	post(t, ORNIC_WR_SEND);
	world_run(&t->w);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, 5, 1);
	conn_publish(&t->c, &t->c.rq, 300);
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY, 101), NULL, 0);
	peer_expect_ack(&t->peer, AETH_NAK | NAK_REMOTE_OPERATIONAL, 101);
	peer_quiet(&t->peer);
	expect_fatal(t, ORNIC_SYN_RING_INDEX, 1);
	flushed(t, &t->c.hscq, 0);
	conn_quiet(&t->c);
}

/*
 * A ring that breaks while it is flushed is reported too, so that no host waits for a drain in
 * vain (ORN-QP-19).
 */
static void test_index_in_error(void **state)
{
	struct script *t = *state;

	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	conn_publish(&t->c, &t->c.rq, 300);
	world_run(&t->w);
	expect_fatal(t, ORNIC_SYN_RING_INDEX, 0);
	post(t, ORNIC_WR_SEND);
	world_run(&t->w);
	flushed(t, &t->c.hscq, 0);
	conn_quiet(&t->c);
}

/* Record or ring cannot be reached: now, or when the queue pair falls asleep (ORN-ERR-1) */
static void test_unreachable(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct script *t;
		uint64_t rec;

		setup(state);
		t = *state;
		rec = t->c.qp.sq.rec;
		if (i == 0)
			post(t, ORNIC_WR_NOP);
		if (i < 2)
			t->c.qp.sq.rec = 0x40;
		else
			t->c.qp.sq.mem.page[0] = 0;
		if (i == 1)
			qp_doorbell(&t->c.qp, false);
		if (i == 2)
			post(t, ORNIC_WR_NOP);
		world_run(&t->w);
		expect_fatal(t, ORNIC_SYN_RING_MEMORY, 0);
		conn_quiet(&t->c);
		t->c.qp.sq.rec = rec;
		script_teardown(state);
	}
}

/* The record of the RQ cannot be reached: for a message, or for a flush. */
static void test_rq_unreachable(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct script *t;
		uint64_t rec;

		setup(state);
		t = *state;
		rec = t->c.qp.rq.rec;
		t->c.qp.rq.rec = 0x40;
		if (i) {
			qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
			world_run(&t->w);
		} else {
			peer_send(&t->peer,
				  peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY, 100), NULL, 0);
			peer_expect_ack(&t->peer, AETH_NAK | NAK_REMOTE_OPERATIONAL, 100);
		}
		expect_fatal(t, ORNIC_SYN_RING_MEMORY, 0);
		conn_quiet(&t->c);
		t->c.qp.rq.rec = rec;
		script_teardown(state);
	}
}

/* All 2^n slots are usable, and indices run on (ORN-RNG-1, ORN-RNG-18). */
static void test_full_ring(void **state)
{
	struct script *t = *state;
	struct wr nop = { .opcode = ORNIC_WR_NOP };

	for (int lap = 0; lap < 3; lap++) {
		for (int i = 0; i < 256; i++) {
			conn_write_wr(&t->c, &nop);
			t->c.sq.index++;
		}
		conn_publish(&t->c, &t->c.sq, t->c.sq.index);
		world_run(&t->w);
		assert_int_equal(t->c.qp.sq.done, (lap + 1) * 256);
	}
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
}

/*
 * ORN-EQ-13: both rings break, and the event comes once; of failed requests of the peer one event
 * comes as well. Again after the next RESET.
 */
static void test_event_once(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	for (int i = 0; i < 2; i++) {
		conn_rec(&t->c, &t->c.sq)->host_index = htole32(1u << 20);
		conn_rec(&t->c, &t->c.rq)->host_index = htole32(1u << 20);
		qp_doorbell(&t->c.qp, false);
		world_run(&t->w);
		assert_true(dut_event(t->c.d, &e));
		assert_int_equal(e.type, ORNIC_EV_QP_FATAL);
		qp_fail(&t->c.qp, ORNIC_EV_QP_ACCESS_ERR, ORNIC_SYN_WIRE, 0);
		assert_true(dut_event(t->c.d, &e));
		assert_int_equal(e.type, ORNIC_EV_QP_ACCESS_ERR);
		qp_fail(&t->c.qp, ORNIC_EV_QP_REQ_ERR, ORNIC_SYN_WIRE, 0);
		assert_false(dut_event(t->c.d, &e));
		qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
		host_reset(t);
		conn_rts(&t->c);
	}
}

/** struct shown - what the switch showed: packets that came into it, and the reasons of drops */
struct shown {
	uint32_t in;
	uint32_t dropped;
	const char *why;
};

static void show(void *arg, const struct switch_port *port, enum switch_way way,
		 const struct packet *p, const char *note)
{
	struct shown *s = arg;

	(void)port;
	(void)p;
	if (way != SWITCH_IN)
		return;
	s->in += !note;
	s->dropped += !!note;
	s->why = note ? note : s->why;
}

/*
 * ORN-PORT-16: the frame size became smaller than the path MTU: no longer packet leaves. A capture
 * shows it, and the reason.
 */
static void test_frame_size(void **state)
{
	static const struct {
		uint32_t len, frame;
		bool up, sent;
		const char *why;
	} cases[] = {
		{ 10, 106, true, true, NULL },
		{ 10, 105, true, false, "dropped: too long" },
		{ 3000, 1120, true, true, NULL },
		{ 3000, 1119, true, false, "dropped: too long" },
		{ 10, 106, false, false, "dropped: link down" },
	};
	struct script *t = *state;
	struct port *port = &t->c.d->dev.port;
	uint64_t *cnt = t->c.d->dev.cnt;

	t->c.qp.timeout = 0;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wr wr = { .opcode = ORNIC_WR_SEND };
		struct shown shown = {};
		const struct switch_observer o = { show, &shown };
		uint64_t drops = cnt[CNT_tx_drop], packets = cnt[CNT_rdma_tx_packets];
		uint64_t bytes = cnt[CNT_rdma_tx_bytes];
		uint32_t left = t->w.e.pool.nfree;
		struct seen *s;

		port->max_frame = cases[i].frame;
		port->admin_up = cases[i].up;
		switch_set_observer(t->w.e.sw, &o);
		wr_sge(&wr, t->buf, cases[i].len, t->key);
		conn_send(&t->c, &wr);
		world_run(&t->w);
		switch_set_observer(t->w.e.sw, NULL);
		s = peer_next(&t->peer);
		assert_int_equal(!!s, cases[i].sent);
		assert_int_equal(t->w.e.pool.nfree, left);
		assert_int_equal(shown.in, 1);
		assert_int_equal(shown.dropped, !s);
		assert_int_equal(cnt[CNT_tx_drop] - drops, !s);
		assert_string_equal(shown.why ? shown.why : "", s ? "" : cases[i].why);
		if (s) {
			assert_int_equal(cnt[CNT_rdma_tx_packets] - packets, s->p.npsn);
			assert_int_equal(cnt[CNT_rdma_tx_bytes] - bytes, cases[i].len);
		}
	}
	assert_int_equal(cnt[CNT_rdma_tx_multicast], 0);
}

/* ORN-ERR-1: a CQ that overflows takes its queue pair with it, and no more (ORN-CQ-3). */
static void test_cq_overflow(void **state)
{
	struct script *t = *state;
	struct conn_opt opt = { .cq_log = 2, .flags = ORNIC_QP_F_SIG_ALL };
	struct wr nop = { .opcode = ORNIC_WR_NOP };
	struct ornic_eqe e;
	struct conn small;

	conn_init(&small, t->c.d, &opt);
	conn_path(&small, t->peer.mac, t->peer.gid);
	conn_rts(&small);
	for (int i = 0; i < 6; i++)
		conn_send(&small, &nop);
	world_run(&t->w);
	assert_int_equal(small.qp.state, ORNIC_QPS_ERR);
	assert_true(dut_event(t->c.d, &e));
	assert_int_equal(e.type, ORNIC_EV_CQ_ERR);
	assert_int_equal(t->c.qp.state, ORNIC_QPS_RTS);
	conn_fini(&small);
}

/* ORN-QP-16: the event comes once in each SQD, when the last request is finished. */
static void test_drained(void **state)
{
	struct script *t = *state;
	struct ornic_eqe e;

	t->c.qp.sqd_notify = true;
	for (uint32_t i = 0; i < 2; i++) {
		post(t, ORNIC_WR_SEND);
		world_run(&t->w);
		qp_set_state(&t->c.qp, ORNIC_QPS_SQD);
		world_run(&t->w);
		assert_false(dut_event(t->c.d, &e));
		peer_ack(&t->peer, &t->c, 5 + i, ACK);
		expect_event(t, ORNIC_EV_SQ_DRAINED, 0, 0);
		qp_set_state(&t->c.qp, ORNIC_QPS_SQD);
		world_run(&t->w);
		assert_false(dut_event(t->c.d, &e));
		qp_set_state(&t->c.qp, ORNIC_QPS_RTS);
		world_run(&t->w);
	}
	t->c.qp.sqd_notify = false;
	qp_set_state(&t->c.qp, ORNIC_QPS_SQD);
	world_run(&t->w);
	assert_false(dut_event(t->c.d, &e));
	assert_true(t->c.qp.sqd_raised);
}

/* ORN-SRQ-6: with an SRQ, ERR ends with an event. */
static void test_last_wqe(void **state)
{
	struct script *t = *state;
	struct srq srq = { .cq = NULL };
	struct ornic_eqe e;

	t->c.qp.srq = &srq;
	t->c.qp.resp.recv = (struct rwqe) { .valid = true, .index = 3 };
	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	flushed(t, &t->c.hrcq, 3);
	expect_event(t, ORNIC_EV_LAST_WQE, 0, 0);
	qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
	qp_run(&t->c.qp);
	assert_false(dut_event(t->c.d, &e));
	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	conn_quiet(&t->c);		/* the receive was returned once */
	t->c.qp.srq = NULL;
}

/* A destroyed queue pair and its CQs are on no list, and none of their timers is left. */
static void test_destroyed(void **state)
{
	struct script *t = *state;
	struct engine *e = &t->w.e;
	struct timers *timers = &t->c.d->dev.timers;
	uint32_t cap = timers->cap, armed = timers->n;
	struct conn c;

	world_run(&t->w);
	conn_init(&c, t->c.d, &(struct conn_opt) { .cq_log = 2 });
	answer_ack(&c.qp);
	engine_activate(e, &c.qp);
	cq_doorbell(&c.scq);
	timer_arm(timers, &c.qp.req.ack_timer, UINT64_MAX);
	timer_arm(timers, &c.qp.req.rnr_timer, UINT64_MAX);
	timer_arm(timers, &c.scq.mod_timer, UINT64_MAX);
	assert_ptr_equal(TAILQ_FIRST(&e->acks), &c.qp);
	assert_false(TAILQ_EMPTY(&e->busy));
	assert_ptr_equal(TAILQ_FIRST(&c.d->dev.look), &c.scq);
	conn_fini(&c);
	assert_true(TAILQ_EMPTY(&e->acks));
	assert_true(TAILQ_EMPTY(&e->busy));
	assert_true(TAILQ_EMPTY(&c.d->dev.look));
	assert_int_equal(timers->n, armed);
	assert_int_equal(timers->cap, cap);
}

/* ORN-QP-3: a queue pair in RESET is as a new one, whatever happened before. */
static void test_reset_clears(void **state)
{
	static const struct responder fresh;
	struct script *t = *state;
	struct qp *qp = &t->c.qp;
	uint32_t left = t->w.e.pool.nfree;
	struct packet *p;

	recv_buf(t);
	for (int i = 0; i < 3; i++)
		post(t, ORNIC_WR_SEND);
	world_run(&t->w);
	p = peer_packet(&t->peer, &t->c, BTH_RC_SEND_FIRST, 100);
	peer_send(&t->peer, p, t->data, 512);
	conn_publish(&t->c, &t->c.sq, 1000);
	world_run(&t->w);
	conn_publish(&t->c, &t->c.rq, 1000);
	qp_doorbell(qp, true);
	world_run(&t->w);
	assert_true(qp->sq.bad && qp->rq.bad && qp->fatal_raised && qp->syndrome);
	qp->comm_est = true;
	qp->last_wqe = true;
	qp_set_state(qp, ORNIC_QPS_RESET);
	assert_int_equal(qp->req.head | qp->req.cur | qp->req.tail | qp->req.next_psn, 0);
	assert_int_equal(qp->sq.cons | qp->sq.done | qp->rq.cons | qp->rq.done, 0);
	assert_false(qp->sq.bad || qp->rq.bad || qp->flush_sq || qp->flush_rq || qp->last_wqe ||
		     qp->comm_est || qp->fatal_raised || qp->request_raised || qp->syndrome);
	assert_memory_equal(&qp->resp, &fresh, sizeof(fresh));
	assert_int_equal(qp->sched, QP_ASLEEP);
	assert_int_equal(t->w.e.pool.nfree, left);
}

/* Work requests in flight: as many as the ring has, at most 64; one if there is no answer */
static void test_window(void **state)
{
	static const struct {
		uint8_t type, log;
		uint32_t window;
	} cases[] = {
		{ ORNIC_QPT_RC, 1, 2 }, { ORNIC_QPT_RC, 5, 32 }, { ORNIC_QPT_RC, 6, 64 },
		{ ORNIC_QPT_RC, 7, 64 }, { ORNIC_QPT_XRC_INI, 8, 64 }, { ORNIC_QPT_UC, 8, 1 },
		{ ORNIC_QPT_UD, 8, 1 }, { ORNIC_QPT_RAW, 8, 1 },
	};
	struct script *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct conn_opt opt = { .type = cases[i].type, .sq_log = cases[i].log };
		struct conn c;

		conn_init(&c, t->c.d, &opt);
		assert_int_equal(c.qp.req.mask + 1, cases[i].window);
		assert_int_equal(c.qp.state, ORNIC_QPS_RESET);
		assert_int_equal(c.qp.sched, QP_ASLEEP);
		conn_fini(&c);
		assert_null(c.qp.req.win);
	}
}

/* A queue pair asks for another turn while one of its queues has more to flush. */
static void test_flush_in_turns(void **state)
{
	for (int rq = 0; rq < 2; rq++) {
		struct script *t;

		setup(state);
		t = *state;
		for (int i = 0; i < 100; i++) {
			if (rq)
				recv_buf(t);
			else
				conn_write_wr(&t->c, &(struct wr) { .opcode = ORNIC_WR_NOP });
			t->c.sq.index += !rq;
		}
		conn_rec(&t->c, &t->c.sq)->host_index = htole32(t->c.sq.index);
		qp_set_state(&t->c.qp, ORNIC_QPS_ERR);
		assert_true(qp_run(&t->c.qp));
		assert_false(qp_run(&t->c.qp));
		for (int i = 0; i < 100; i++)
			flushed(t, rq ? &t->c.hrcq : &t->c.hscq, i);
		conn_quiet(&t->c);
		script_teardown(state);
	}
}

/* Queue pairs of a failed CQ or SRQ enter ERR with its reason, without an event. */
static void test_failed_queues(void **state)
{
	struct cq other = { .syndrome = 0x13 };
	struct srq srq = { .cq = &other, .syndrome = 0x14 };
	struct ornic_eqe e;

	for (uint32_t i = 0; i < 6; i++) {
		struct script *t;
		struct qp *qp;

		setup(state);
		t = *state;
		qp = &t->c.qp;
		qp->scq->syndrome = 0x11;
		qp->rcq->syndrome = 0x12;
		qp->srq = i == 4 ? NULL : &srq;
		qp->scq->error = i == 1;
		qp->rcq->error = i == 2;
		other.error = i == 3 || i == 4;
		srq.wq.bad = i >= 4;
		qp->dev->failed = true;
		qp_stop_users(qp->dev);
		assert_false(qp->dev->failed);
		assert_int_equal(qp->state, i % 4 || i == 5 ? ORNIC_QPS_ERR : ORNIC_QPS_RTS);
		assert_int_equal(qp->syndrome, i % 4 ? 0x10 + i % 4 + (i == 5 ? 3 : 0) : 0);
		assert_false(dut_event(t->c.d, &e));
		qp->scq->error = false;
		qp->rcq->error = false;
		qp_set_state(qp, ORNIC_QPS_RESET);
		qp->srq = NULL;
		script_teardown(state);
	}
}

/* Only a sending queue pair enters SQE; the first reason of ERR stays. */
static void test_failures_by_state(void **state)
{
	struct script *t = *state;
	struct qp *qp = &t->c.qp;
	struct ornic_eqe e;

	for (uint8_t s = ORNIC_QPS_RESET; s <= ORNIC_QPS_ERR; s++) {
		bool sends = s == ORNIC_QPS_RTS || s == ORNIC_QPS_SQD;

		qp_set_state(qp, ORNIC_QPS_RESET);
		qp->state = s;
		qp_fail_sends(qp, 5);
		assert_int_equal(qp->state, sends ? ORNIC_QPS_SQE : s);
		assert_int_equal(qp->syndrome, sends ? 5 : 0);
		assert_int_equal(qp->flush_sq, sends);
		assert_int_equal(qp->sched == QP_ACTIVE, sends);
	}
	qp_set_state(qp, ORNIC_QPS_RESET);
	qp_fail(qp, ORNIC_EV_QP_FATAL, 6, 7);
	assert_int_equal(qp->state, ORNIC_QPS_RESET);
	assert_false(dut_event(t->c.d, &e));
	qp->state = ORNIC_QPS_RTS;
	qp_fail(qp, ORNIC_EV_QP_FATAL, 6, 7);
	expect_event(t, ORNIC_EV_QP_FATAL, 6, 7);
	qp_fail(qp, ORNIC_EV_QP_FATAL, 8, 9);
	qp_fail(qp, ORNIC_EV_QP_ACCESS_ERR, 8, 9);
	expect_event(t, ORNIC_EV_QP_ACCESS_ERR, 8, 9);
	qp_fail(qp, ORNIC_EV_QP_REQ_ERR, 10, 11);
	qp_fail(qp, 0, 12, 13);
	assert_false(dut_event(t->c.d, &e));
	assert_int_equal(qp->syndrome, 6);
	assert_int_equal(qp->state, ORNIC_QPS_ERR);
}

/* Which queues are polled in which state, and which doorbells wake a queue pair */
static void test_polls(void **state)
{
	struct script *t = *state;
	struct qp *qp = &t->c.qp;

	for (uint8_t s = ORNIC_QPS_INIT; s <= ORNIC_QPS_ERR; s++) {
		bool sends = s == ORNIC_QPS_RTS, flushes = s == ORNIC_QPS_ERR;

		qp_set_state(qp, ORNIC_QPS_RESET);
		host_reset(t);
		qp->state = s;
		qp->flush_sq = flushes;
		qp->flush_rq = flushes;
		assert_int_equal(qp_watchable(qp), sends || flushes);
		assert_false(qp_has_news(qp));
		conn_rec(&t->c, &t->c.sq)->host_index = htole32(1);
		assert_int_equal(qp_has_news(qp), sends || flushes);
		assert_int_equal(qp_sleep(qp), !sends && !flushes);
		qp->sq.bad = true;
		assert_int_equal(qp_watchable(qp), flushes);
		assert_false(qp_has_news(qp));
		assert_true(qp_sleep(qp));
		conn_rec(&t->c, &t->c.rq)->host_index = htole32(1);
		assert_int_equal(qp_has_news(qp), flushes);
		assert_int_equal(qp_sleep(qp), !flushes);
		qp->rq.bad = true;
		assert_false(qp_watchable(qp) || qp_has_news(qp));
		assert_true(qp_sleep(qp));
		qp->sq.bad = false;
		qp->dev->running = false;
		assert_false(qp_watchable(qp));
		qp->dev->running = true;
	}
	for (int i = 0; i < 8; i++) {
		bool rq = i & 1, present = i & 2, reset = i & 4;

		qp_set_state(qp, ORNIC_QPS_RESET);
		qp->state = reset ? ORNIC_QPS_RESET : ORNIC_QPS_INIT;
		qp->sq.present = rq != present;
		qp->rq.present = rq == present;
		qp_doorbell(qp, rq);
		assert_int_equal(qp->sched != QP_ASLEEP, present && !reset);
	}
	qp->sq.present = true;
	qp->rq.present = true;
	qp_set_state(qp, ORNIC_QPS_RESET);
	host_reset(t);
}

/*
 * ORN-RNG-7: in INIT receives ask for no doorbells. Entering a state again changes nothing, and
 * RESET does not touch the record.
 */
static void test_quiet(void **state)
{
	struct script *t = *state;
	struct ornic_rec *rq = conn_rec(&t->c, &t->c.rq);

	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	host_reset(t);
	qp_set_state(&t->c.qp, ORNIC_QPS_RESET);
	assert_int_equal(le32toh(rq->notify), ORNIC_NOTIFY_ALWAYS);
	qp_set_state(&t->c.qp, ORNIC_QPS_INIT);
	assert_int_equal(le32toh(rq->notify), ORNIC_NOTIFY_INDEX);
	rq->notify = htole32(5);
	qp_set_state(&t->c.qp, ORNIC_QPS_INIT);
	assert_int_equal(le32toh(rq->notify), 5);
	qp_set_state(&t->c.qp, ORNIC_QPS_RTR);
	t->c.qp.resp.epsn = 77;
	qp_set_state(&t->c.qp, ORNIC_QPS_RTR);
	assert_int_equal(t->c.qp.resp.epsn, 77);
	qp_set_state(&t->c.qp, ORNIC_QPS_RTS);
	t->c.qp.sqd_raised = true;
	qp_set_state(&t->c.qp, ORNIC_QPS_RTS);
	assert_true(t->c.qp.sqd_raised);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		T(test_reset), T(test_init_again), T(test_flush), T(test_flush_partial), T(test_doorbells),
		cmocka_unit_test(test_index), T(test_rq_index), T(test_index_in_error),
		cmocka_unit_test(test_unreachable), cmocka_unit_test(test_rq_unreachable),
		T(test_full_ring), T(test_cq_overflow), T(test_event_once), T(test_frame_size),
		T(test_drained), T(test_last_wqe), T(test_destroyed),
		T(test_reset_clears), T(test_window),
		cmocka_unit_test(test_flush_in_turns), cmocka_unit_test(test_failed_queues),
		T(test_failures_by_state), T(test_polls), T(test_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
