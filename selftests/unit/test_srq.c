// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues in the data path: consumers of entries, out-of-order completion, limit,
 * domains, entries after a failure of the queue pair or the ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/pair.h"
#include "engine/srq.h"
#include "packet/bth.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SRQ_LOG		3
#define SRQ_STRIDE	6
#define LEN		256
#define MTU		4096

/**
 * struct shared - two connections from function 0 to function 1, where both have one SRQ
 * @w:		functions
 * @a:		requesters
 * @b:		responders
 * @srq:	the SRQ
 * @h:		its host's side
 * @src, @dst:	buffers, a page per connection or id
 */
struct shared {
	struct world w;
	struct conn a[2];
	struct conn b[2];
	struct srq srq;
	struct hostq h;
	uint64_t src;
	uint64_t dst;
	uint32_t skey;
	uint32_t dkey;
};

static struct ornic_rec *srq_rec(struct shared *s)
{
	return (struct ornic_rec *)guest_at(&s->w.dut[1].guest, s->h.rec, 64);
}

static void make_srq(struct shared *s)
{
	struct dut *d = &s->w.dut[1];

	s->srq.dev = &d->dev;
	s->srq.owner = 9;
	s->srq.pd = &d->pd;
	s->srq.wq.log = SRQ_LOG;
	s->srq.wq.stride = SRQ_STRIDE;
	s->srq.wq.max_sge = 3;
	dut_ring(d, &s->srq.wq.mem, &s->h, 1u << (SRQ_LOG + SRQ_STRIDE));
	s->srq.wq.rec = s->h.rec;
	assert_int_equal(table_add(&d->dev.srqs, &s->srq, &s->srq.number), 0);
	srq_init(&s->srq);
}

static void set_up(struct shared *s, uint8_t type)
{
	struct conn_opt opt = { .type = type };

	memset(s, 0, sizeof(*s));
	world_init(&s->w, 0);
	make_srq(s);
	for (int i = 0; i < 2; i++) {
		conn_init(&s->a[i], &s->w.dut[0], &opt);
		conn_init(&s->b[i], &s->w.dut[1], &opt);
		s->b[i].qp.rq.present = false;
		s->b[i].qp.srq = &s->srq;
		conn_pair(&s->a[i], &s->b[i], 10, 20);
	}
	s->src = dut_buf(&s->w.dut[0], 2 * MTU * 2);
	s->dst = dut_buf(&s->w.dut[1], 16 * MTU);
	s->skey = dut_key(&s->w.dut[0], NULL, s->src, 2 * MTU * 2, 0);
	s->dkey = dut_key(&s->w.dut[1], NULL, s->dst, 16 * MTU, ORNIC_ACCESS_LOCAL_WRITE);
}

static void tear_down(struct shared *s)
{
	for (int i = 0; i < 2; i++) {
		conn_fini(&s->a[i]);
		conn_fini(&s->b[i]);
	}
	table_del(&s->w.dut[1].dev.srqs, s->srq.number);
	umem_free(&s->srq.wq.mem, &s->w.dut[1].dev.lists);
	world_fini(&s->w);
}

static void publish(struct shared *s, uint32_t index)
{
	s->h.index = index;
	__atomic_store_n(&srq_rec(s)->host_index, htole32(index), __ATOMIC_RELEASE);
}

/* Post entry @id of @len bytes at its page. */
static void post_key(struct shared *s, uint32_t id, uint32_t len, uint32_t key)
{
	uint32_t slot = s->h.index & ((1u << SRQ_LOG) - 1);
	struct ornic_rwqe *r = (void *)dut_at(&s->w.dut[1], s->h.ring + (slot << SRQ_STRIDE), 64);
	struct ornic_sge *sge = (void *)(r + 1);

	*r = (struct ornic_rwqe) { .count = htole16(1), .id = htole32(id) };
	sge->addr = htole64(s->dst + (id & 15) * MTU);
	sge->length = htole32(len);
	sge->lkey = htole32(key);
	publish(s, s->h.index + 1);
}

static void post(struct shared *s, uint32_t id, uint32_t len)
{
	post_key(s, id, len, s->dkey);
}

static void send(struct shared *s, int i, uint32_t len)
{
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };

	fill(dut_at(&s->w.dut[0], s->src + i * 2 * MTU, len), len, i + 1);
	wr_sge(&wr, s->src + i * 2 * MTU, len, s->skey);
	conn_send(&s->a[i], &wr);
}

/* Check that the next completion of connection @i is of entry @id. */
static void expect(struct shared *s, int i, uint32_t id, uint8_t status)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(&s->b[i], &s->b[i].hrcq, &cqe));
	assert_int_equal(le32toh(cqe.srqn), s->srq.number);
	assert_int_equal(le32toh(cqe.qpn), s->b[i].qp.handle);
	assert_int_equal(le32toh(cqe.wqe_id), id);
	assert_int_equal(cqe.opcode, ORNIC_WC_RECV);
	assert_int_equal(cqe.status, status);
}

/* Compare the next event about receives: one of the SRQ, or LAST_WQE of a queue pair. */
static void expect_event(struct shared *s, uint8_t type, uint32_t number)
{
	bool last = type == ORNIC_EV_LAST_WQE;
	struct ornic_eqe e, want = {
		.type = type, .number = htole32(number),
		.owner = htole32(last ? s->b[0].qp.owner : 9),
		.syndrome = htole32(type == ORNIC_EV_SRQ_ERR ? s->srq.syndrome : 0),
		.info0 = htole32(last ? ORNIC_QPS_ERR : 0),
	};

	do {
		assert_true(dut_event(&s->w.dut[1], &e));
	} while (e.type == ORNIC_EV_COMPLETION || e.type == ORNIC_EV_COMM_EST);
	want.timestamp = e.timestamp;
	want.phase = e.phase;
	assert_memory_equal(&e, &want, sizeof(e));
}

static void no_event(struct shared *s)
{
	struct ornic_eqe e;

	while (dut_event(&s->w.dut[1], &e))
		assert_true(e.type == ORNIC_EV_COMPLETION || e.type == ORNIC_EV_COMM_EST);
}

/* ORN-SRQ-1: queue pairs take entries as messages arrive; ids are arbitrary and echoed */
static void test_share(void **state)
{
	struct shared *s = *state;

	set_up(s, 0);
	post(s, 0xdeadbee1, LEN);
	post(s, 7, LEN);
	post(s, 0xffffffff, LEN);
	send(s, 1, LEN);
	world_run(&s->w);
	send(s, 0, 100);
	world_run(&s->w);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 0xdeadbee1, ORNIC_WC_SUCCESS);
	expect(s, 0, 7, ORNIC_WC_SUCCESS);
	expect(s, 1, 0xffffffff, ORNIC_WC_SUCCESS);
	check(dut_at(&s->w.dut[1], s->dst + MTU, LEN), LEN, 2);
	check(dut_at(&s->w.dut[1], s->dst + 7 * MTU, 100), 100, 1);
	/* No SRQ needs a doorbell (ORN-RNG-7). */
	assert_int_equal(le32toh(srq_rec(s)->notify), ORNIC_NOTIFY_INDEX);
	tear_down(s);
}

/*
 * ORN-SRQ-1: an unfinished message keeps its entry while others complete before it; the ring
 * wraps over the slot of the incomplete entry.
 */
static void test_out_of_order(void **state)
{
	struct packet p = { .kind = PACKET_ROCE, .opcode = BTH_RC_SEND_FIRST, .npsn = 1 };
	struct shared *s = *state;

	set_up(s, 0);
	post(s, 0, 2 * 1024);
	p.psn = 10;
	p.mtu = qp_mtu(&s->b[0].qp);
	p.len = p.mtu;
	p.nseg = 1;
	p.seg[0] = (struct seg) { calloc(1, p.len), p.len };
	responder_receive(&s->b[0].qp, &p);
	free(p.seg[0].ptr);
	conn_quiet(&s->b[0]);
	for (uint32_t i = 0; i < 3u << SRQ_LOG; i++) {
		post(s, 1 + i % 5, LEN);
		send(s, 1, LEN);
		world_run(&s->w);
		expect(s, 1, 1 + i % 5, ORNIC_WC_SUCCESS);
	}
	/* ORN-SRQ-6: it is flushed when its queue pair fails; then, once, LAST_WQE */
	no_event(s);
	qp_set_state(&s->b[0].qp, ORNIC_QPS_ERR);
	world_run(&s->w);
	expect(s, 0, 0, ORNIC_WC_WR_FLUSH_ERR);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[0].qp.handle);
	world_run(&s->w);
	no_event(s);
	/* posted entries stay for the other queue pairs (ORN-SRQ-6) */
	post(s, 3, LEN);
	world_run(&s->w);
	conn_quiet(&s->b[0]);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 3, ORNIC_WC_SUCCESS);
	/* ERR again after RESET raises the event again. */
	qp_set_state(&s->b[0].qp, ORNIC_QPS_RESET);
	qp_set_state(&s->b[0].qp, ORNIC_QPS_INIT);
	qp_set_state(&s->b[0].qp, ORNIC_QPS_ERR);
	world_run(&s->w);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[0].qp.handle);
	tear_down(s);
}

/* ORN-SRQ-4: RESET completes the entry that the queue pair holds */
static void test_reset_returns(void **state)
{
	struct packet p = { .kind = PACKET_ROCE, .opcode = BTH_RC_SEND_FIRST, .npsn = 1 };
	uint8_t bytes[MTU] = {};
	struct shared *s = *state;

	set_up(s, 0);
	post(s, 5, MTU);
	post(s, 6, MTU);
	p.psn = 10;
	p.mtu = qp_mtu(&s->b[0].qp);
	p.len = p.mtu;
	p.nseg = 1;
	p.seg[0] = (struct seg) { bytes, p.len };
	responder_receive(&s->b[0].qp, &p);
	responder_receive(&s->b[1].qp, &p);
	qp_set_state(&s->b[0].qp, ORNIC_QPS_RESET);
	expect(s, 0, 5, ORNIC_WC_WR_FLUSH_ERR);
	qp_fini(&s->b[1].qp);
	expect(s, 1, 6, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_init(&s->b[1].qp), 0);
	tear_down(s);
}

/* ORN-SRQ-5 */
static void test_limit(void **state)
{
	struct shared *s = *state;

	set_up(s, 0);
	for (uint32_t i = 0; i < 4; i++)
		post(s, i, LEN);
	srq_arm(&s->srq, 3);
	no_event(s);
	send(s, 0, LEN);
	world_run(&s->w);
	no_event(s);
	send(s, 1, LEN);
	world_run(&s->w);
	expect_event(s, ORNIC_EV_SRQ_LIMIT, s->srq.number);
	assert_int_equal(s->srq.limit, 0);
	send(s, 1, LEN);
	world_run(&s->w);
	no_event(s);
	/* below already: the event comes at once */
	srq_arm(&s->srq, 2);
	world_run(&s->w);
	expect_event(s, ORNIC_EV_SRQ_LIMIT, s->srq.number);
	srq_arm(&s->srq, 0);
	send(s, 0, LEN);
	world_run(&s->w);
	no_event(s);
	srq_arm(&s->srq, 1);
	expect_event(s, ORNIC_EV_SRQ_LIMIT, s->srq.number);
	assert_int_equal(s->srq.limit, 0);
	tear_down(s);
}

/* ORN-SRQ-2: an empty SRQ causes RNR NAKs until a receive is posted */
static void test_rnr(void **state)
{
	struct shared *s = *state;

	set_up(s, 0);
	send(s, 0, LEN);
	world_run(&s->w);
	assert_int_equal(s->w.dut[1].dev.cnt[CNT_rnr_naks_sent], 1);
	conn_quiet(&s->b[0]);
	post(s, 2, LEN);
	world_finish(&s->w, 1000000000);
	expect(s, 0, 2, ORNIC_WC_SUCCESS);
	conn_expect(&s->a[0], &s->a[0].hscq, 0, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	tear_down(s);
}

/* ORN-SRQ-3: the domain of the SRQ counts, not that of the queue pair */
static void test_domain(void **state)
{
	struct shared *s = *state;
	struct dut *d;
	uint32_t key;

	set_up(s, 0);
	d = &s->w.dut[1];
	s->srq.pd = &d->other_pd;
	key = dut_key(d, &d->other_pd, s->dst, 16 * MTU, ORNIC_ACCESS_LOCAL_WRITE);
	post_key(s, 1, LEN, key);
	send(s, 0, LEN);
	world_run(&s->w);
	expect(s, 0, 1, ORNIC_WC_SUCCESS);
	post(s, 2, LEN);	/* a key of the queue pair's own domain */
	send(s, 0, LEN);
	world_run(&s->w);
	expect(s, 0, 2, ORNIC_WC_LOC_PROT_ERR);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_ERR);
	assert_int_equal(s->b[1].qp.state, ORNIC_QPS_RTS);
	/* A privileged SRQ may use the key for all memory, a privileged queue pair may not. */
	key = dut_phys(d, ORNIC_ACCESS_LOCAL_WRITE);
	s->srq.privileged = true;
	post_key(s, 3, LEN, key);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 3, ORNIC_WC_SUCCESS);
	s->srq.privileged = false;
	s->b[1].qp.flags |= ORNIC_QP_F_PRIVILEGED;
	post_key(s, 4, LEN, key);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 4, ORNIC_WC_LOC_PROT_ERR);
	tear_down(s);
}

/* ORN-SRQ-8: a malformed entry fails the queue pair that took it, and no other */
static void test_malformed(void **state)
{
	struct shared *s = *state;
	struct ornic_rwqe *r;

	set_up(s, 0);
	post(s, 1, LEN);
	r = (void *)dut_at(&s->w.dut[1], s->h.ring, 64);
	r->count = htole16(4);
	post(s, 2, LEN);
	send(s, 0, LEN);
	world_run(&s->w);
	expect(s, 0, 1, ORNIC_WC_LOC_QP_OP_ERR);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[0].qp.handle);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_ERR);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 2, ORNIC_WC_SUCCESS);
	tear_down(s);
}

/* ORN-SRQ-7, ORN-RNG-8: an impossible index stops the SRQ and all its queue pairs */
static void test_bad_ring(void **state)
{
	uint8_t bytes[1u << SRQ_STRIDE];
	struct shared *s = *state;

	set_up(s, 0);
	publish(s, (1u << SRQ_LOG) + 1);
	send(s, 0, LEN);
	world_run(&s->w);
	expect_event(s, ORNIC_EV_SRQ_ERR, s->srq.number);
	assert_int_equal(s->srq.syndrome, ORNIC_SYN_RING_INDEX);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s->b[i].qp.state, ORNIC_QPS_ERR);
		conn_quiet(&s->b[i]);
	}
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[0].qp.handle);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[1].qp.handle);
	/* nor does it work again if the index is possible */
	publish(s, 0);
	srq_arm(&s->srq, 1);
	post(s, 0, LEN);
	assert_int_equal(srq_take(&s->srq, bytes), -EIO);
	no_event(s);
	tear_down(s);
}

/* A ring that begins inside a page: entries cross page boundaries, and the pages are scattered. */
static void test_entry_crosses_pages(void **state)
{
	enum { AT = 320, BYTES = 1024, ENTRIES = 8 };
	struct shared *s = *state;
	struct dut *d = &s->w.dut[1];
	struct wq wq = { .log = 3, .stride = 10 };
	uint8_t want[BYTES], bytes[BYTES];
	struct ornic_pages desc;
	uint64_t page[3];

	set_up(s, 0);
	wq.rec = s->h.rec;
	page[1] = guest_alloc(&d->guest, 5 * GUEST_PAGE, GUEST_PAGE);
	page[0] = page[1] + 2 * GUEST_PAGE;
	page[2] = page[1] + 4 * GUEST_PAGE;
	desc = guest_list(&d->guest, 1, 12, page, 3);
	desc.offset = htole32(AT);
	assert_int_equal(umem_load(&wq.mem, d->dev.gpa, &desc, ENTRIES * BYTES, 1 << 12,
				   &d->dev.lists), ORNIC_ST_OK);
	for (uint32_t i = 0, at = AT; i < ENTRIES * BYTES; i++, at++)
		*dut_at(d, page[at / GUEST_PAGE] + at % GUEST_PAGE, 1) = i * 7 + i / BYTES;
	publish(s, ENTRIES);
	for (int hidden = 0; hidden < 2; hidden++) {
		for (wq.cons = 0; wq.cons < ENTRIES; wq.cons++) {
			uint32_t at = AT + wq.cons * BYTES;
			int left = ENTRIES - wq.cons;
			bool gone = hidden && at + BYTES > GUEST_PAGE && at < 2 * GUEST_PAGE;

			for (uint32_t i = 0; i < BYTES; i++)
				want[i] = (wq.cons * BYTES + i) * 7 + wq.cons;
			assert_int_equal(wq_copy(&d->dev, &wq, bytes, BYTES),
					 gone ? -EFAULT : left);
			if (!gone)
				assert_memory_equal(bytes, want, BYTES);
		}
		guest_hide(&d->guest, page[1]);
	}
	publish(s, 3);
	wq.cons = 3;		/* nothing to copy, so it does not matter that the entry is gone */
	assert_int_equal(wq_copy(&d->dev, &wq, bytes, BYTES), 0);
	umem_free(&wq.mem, &d->dev.lists);
	publish(s, 0);
	tear_down(s);
}

/* A record that the device could not write to is unusable, although it only reads this one. */
static void test_read_only_record(void **state)
{
	struct shared *s = *state;
	struct ornic_rec *rec;
	struct guest *g;
	uint64_t page;

	set_up(s, 0);
	rec = srq_rec(s);
	rec->notify = 0;
	g = &s->w.dut[1].guest;
	page = s->h.rec & ~(GUEST_PAGE - 1);
	post(s, 0, LEN);
	guest_hide(g, page);
	assert_int_equal(gpa_map(g->gpa, page, GUEST_PAGE, GPA_READ, g->fd, page - GUEST_BASE), 0);
	send(s, 0, LEN);
	world_run(&s->w);
	assert_int_equal(s->srq.syndrome, ORNIC_SYN_RING_MEMORY);
	expect_event(s, ORNIC_EV_SRQ_ERR, s->srq.number);
	srq_init(&s->srq);
	assert_int_equal(rec->notify, 0);
	tear_down(s);
}

/*
 * ORN-SRQ-7: the queue pair that needs an entry of the bad ring fails at once, and the others at
 * the end of the turn, so that many bad SRQs cost one visit of each queue pair.
 */
static void test_bad_ring_in_turn(void **state)
{
	struct packet p = { .kind = PACKET_ROCE, .opcode = BTH_RC_SEND_ONLY, .npsn = 1, .psn = 10 };
	struct shared *s = *state;

	set_up(s, 0);
	publish(s, (1u << SRQ_LOG) + 1);
	responder_receive(&s->b[1].qp, &p);
	assert_int_equal(s->b[1].qp.state, ORNIC_QPS_ERR);
	assert_int_equal(s->b[1].qp.syndrome, ORNIC_SYN_RING_INDEX);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_RTS);
	world_run(&s->w);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_ERR);
	assert_int_equal(s->b[0].qp.syndrome, ORNIC_SYN_RING_INDEX);
	expect_event(s, ORNIC_EV_SRQ_ERR, s->srq.number);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[1].qp.handle);
	expect_event(s, ORNIC_EV_LAST_WQE, s->b[0].qp.handle);
	no_event(s);
	tear_down(s);
}

/* ORN-SRQ-2, ORN-SRQ-9: datagrams */
static void test_datagrams(void **state)
{
	struct shared *s = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct device *dev;

	set_up(s, ORNIC_QPT_UD);
	dev = &s->w.dut[1].dev;
	wr_sge(&wr, s->src, LEN, s->skey);
	wr.path = s->a[0].qp.path;
	wr.path.dest_qpn = htole32(s->b[0].qp.handle);
	wr.path.qkey = htole32(s->b[0].qp.qkey);
	conn_send(&s->a[0], &wr);
	world_run(&s->w);
	assert_int_equal(dev->cnt[CNT_rx_drop_no_wqe], 1);
	post(s, 1, LEN);	/* too short: the header area does not fit */
	post(s, 2, LEN + ORNIC_GRH_BYTES);
	conn_send(&s->a[0], &wr);
	world_run(&s->w);
	expect(s, 0, 1, ORNIC_WC_LOC_LEN_ERR);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_RTS);
	conn_send(&s->a[0], &wr);
	world_run(&s->w);
	expect(s, 0, 2, ORNIC_WC_SUCCESS);
	tear_down(s);
}

/* ORN-SRQ-9, ORN-UC-6: an entry that is too short for its message goes back to the host */
static void test_uc_too_short(void **state)
{
	struct shared *s = *state;

	set_up(s, ORNIC_QPT_UC);
	post(s, 1, LEN - 1);
	post(s, 2, LEN);
	send(s, 0, LEN);
	world_run(&s->w);
	expect(s, 0, 1, ORNIC_WC_LOC_LEN_ERR);
	assert_int_equal(s->b[0].qp.state, ORNIC_QPS_RTS);
	no_event(s);
	send(s, 0, LEN);
	world_run(&s->w);
	expect(s, 0, 2, ORNIC_WC_SUCCESS);
	tear_down(s);
}

/* ORN-UC-9: a WRITE that one connection rejects consumes no entry of the others */
static void test_refused_write(void **state)
{
	struct shared *s = *state;
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE_IMM, .flags = ORNIC_WQE_SIGNALED };

	set_up(s, ORNIC_QPT_UC);
	wr_sge(&wr, s->src, LEN, s->skey);
	wr.raddr = s->dst;
	wr.rkey = s->dkey;	/* gives no remote right */
	post(s, 1, LEN);
	conn_send(&s->a[0], &wr);
	world_run(&s->w);
	assert_int_equal(s->w.dut[1].dev.cnt[CNT_remote_access_errors], 1);
	conn_quiet(&s->b[0]);
	send(s, 1, LEN);
	world_run(&s->w);
	expect(s, 1, 1, ORNIC_WC_SUCCESS);
	tear_down(s);
}

static int setup(void **state)
{
	*state = malloc(sizeof(struct shared));
	return !*state;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset_returns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_entry_crosses_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_only_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rnr, setup, teardown),
		cmocka_unit_test_setup_teardown(test_domain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_ring_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_datagrams, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uc_too_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_write, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
