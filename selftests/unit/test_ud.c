// SPDX-License-Identifier: GPL-2.0
/* Datagrams: UD queue pairs and the GSI, between two functions and within one. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/ud.h"
#include "lib/failing.h"
#include "lib/pair.h"
#include "net/switch.h"
#include "packet/bth.h"

#define QKEY	0x11111111
#define BUF	65536
#define RW	ORNIC_ACCESS_LOCAL_WRITE

static struct ends *open_type(uint8_t type, uint32_t qkey)
{
	struct conn_opt opt = { .type = type };
	struct ends *t = ends_new(&opt, 0);

	t->a.qp.qkey = qkey;
	t->b.qp.qkey = qkey;
	conn_rts(&t->a);
	conn_rts(&t->b);
	ends_buffers(t, BUF, RW);
	fill(dut_at(t->a.d, t->abuf, BUF), BUF, 1);
	return t;
}

static int setup(void **state)
{
	*state = open_type(ORNIC_QPT_UD, QKEY);
	return 0;
}

static int setup_gsi(void **state)
{
	*state = open_type(ORNIC_QPT_GSI, BTH_GSI_QKEY);
	return 0;
}

/* Send a datagram of @len bytes from a to @to, by GIDs of index @gid. */
static struct wr make(struct ends *t, const struct conn *to, int gid, uint32_t len)
{
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED,
			 .imm = htobe32(77) };

	memcpy(wr.path.dmac, to->d->dev.port.mac, 6);
	dut_gid(to->d, gid, wr.path.dgid);
	wr.path.sgid_index = htole16(gid);
	wr.path.dest_qpn = htole32(to->qp.wire_qpn);
	wr.path.qkey = htole32(to->qp.qkey);
	wr.path.hop_limit = 33;
	wr.path.traffic_class = 0x48;
	wr.path.flow_label = htole32(0x12345);
	if (len)
		wr_sge(&wr, t->abuf, len, t->akey);
	return wr;
}

static void post(struct ends *t, const struct wr *wr)
{
	conn_send(&t->a, wr);
	world_run(&t->w);
}

static void sent(struct ends *t, uint32_t index, uint8_t status)
{
	conn_expect(&t->a, &t->a.hscq, index, ORNIC_WC_SEND, status);
}

static uint16_t be16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

/* Compare the completion of a datagram of @len bytes from a to b; @more flags and tag. */
static void check_cqe(const struct ends *t, const struct ornic_cqe *cqe, uint32_t len,
		      uint32_t more, uint16_t tci, uint8_t sl, uint8_t net_type)
{
	struct ornic_cqe want = {
		.timestamp = cqe->timestamp, .qpn = htole32(t->b.qp.handle),
		.wqe_id = cqe->wqe_id, .byte_len = htole32(len + ORNIC_GRH_BYTES),
		.imm = more & ORNIC_CQE_WITH_IMM ? htobe32(77) : 0,
		.src_qp = htole32(t->a.qp.handle), .srqn = htole32(ORNIC_NONE),
		.vlan_tci = htole16(tci), .sl = sl, .net_type = net_type,
		.flags = htole32(ORNIC_CQE_GRH | ORNIC_CQE_SMAC | ORNIC_CQE_NET_TYPE | more),
		.opcode = ORNIC_WC_RECV, .phase = cqe->phase,
	};

	memcpy(want.smac, t->a.d->dev.port.mac, 6);
	assert_memory_equal(cqe, &want, sizeof(want));
}

/* ORN-RQ-9 and the header area: IPv4 in its last 20 bytes, with a right checksum (ORN-CQ-14) */
static void test_ipv4(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 101);
	struct ornic_cqe cqe;
	uint32_t sum = 0;
	uint8_t *m;

	wr.opcode = ORNIC_WR_SEND_IMM;
	wr.flags |= ORNIC_WQE_SOLICITED;
	conn_recv(&t->b, t->bbuf, 200, t->bkey);
	post(t, &wr);
	sent(t, 0, 0);
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	check_cqe(t, &cqe, 101, ORNIC_CQE_WITH_IMM | ORNIC_CQE_SOLICITED, 0, 0, ORNIC_NET_IPV4);
	m = dut_at(t->b.d, t->bbuf, 200);
	for (int i = 0; i < 20; i++)
		assert_int_equal(m[i], 0);
	for (int i = 20; i < 40; i += 2)
		sum += be16(m + i);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	assert_int_equal(m[20], 0x45);
	assert_int_equal(m[21], 0x48);
	assert_int_equal(be16(m + 22), 20 + 8 + 12 + 8 + 4 + 104 + 4);
	assert_int_equal(m[28], 33);
	assert_int_equal(m[29], 17);
	assert_memory_equal(m + 32, ((uint8_t[]){ 10, 0, 0, 1, 10, 0, 0, 2 }), 8);
	check(m + 40, 101, 1);
	assert_int_equal(m[141], 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_tx_send], 1);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_send], 1);
	assert_int_equal(t->b.d->dev.cnt[CNT_rdma_copied_bytes], 141);
}

/* Inline payload of several lengths */
static void test_inline(void **state)
{
	static const uint32_t lens[] = { 0, 1, 63, 64 };
	struct ends *t = *state;
	uint8_t data[64], *m = dut_at(t->b.d, t->bbuf, 200);

	fill(data, sizeof(data), 9);
	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct wr wr = make(t, &t->b, 0, 0);
		struct ornic_cqe cqe;

		wr.flags |= ORNIC_WQE_INLINE;
		wr.inl = data;
		wr.inl_len = lens[i];
		memset(m, 0xee, 200);
		conn_recv(&t->b, t->bbuf, 200, t->bkey);
		post(t, &wr);
		sent(t, i, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		check_cqe(t, &cqe, lens[i], 0, 0, 0, ORNIC_NET_IPV4);
		check(m + ORNIC_GRH_BYTES, lens[i], 9);
		assert_int_equal(m[ORNIC_GRH_BYTES + lens[i]], 0xee);
	}
}

/* ORN-RQ-43: a priority tag has a service level but no VLAN (IEEE 802.1Q). */
static void test_vlan(void **state)
{
	static const uint16_t vlans[] = { 0, 5 };
	struct ends *t = *state;

	for (uint32_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
		struct wr wr = make(t, &t->b, 0, 10);
		struct ornic_cqe cqe;

		for (int j = 0; j < 2; j++) {
			struct ornic_gid_entry *gid = t->w.dut[j].dev.port.gid;

			gid->flags |= htole32(ORNIC_GID_VLAN);
			gid->vlan = htole16(vlans[i]);
		}
		wr.path.sl = 3;
		conn_recv(&t->b, t->bbuf, 50, t->bkey);
		post(t, &wr);
		sent(t, i, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		check_cqe(t, &cqe, 10, vlans[i] ? ORNIC_CQE_VLAN : 0,
			  vlans[i] ? 3 << 13 | vlans[i] : 0, 3, ORNIC_NET_IPV4);
	}
}

/* ORN-PORT-1 */
static void test_ipv6(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 1, 100);
	struct ornic_cqe cqe;
	uint8_t gid[16], *m;

	conn_recv(&t->b, t->bbuf, 140, t->bkey);
	post(t, &wr);
	sent(t, 0, 0);
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	check_cqe(t, &cqe, 100, 0, 0, 0, ORNIC_NET_IPV6);
	m = dut_at(t->b.d, t->bbuf, 140);
	assert_memory_equal(m, ((uint8_t[]){ 0x64, 0x81, 0x23, 0x45 }), 4);
	assert_int_equal(be16(m + 4), 8 + 12 + 8 + 100 + 4);
	assert_int_equal(m[6], 17);
	assert_int_equal(m[7], 33);
	dut_gid(t->a.d, 1, gid);
	assert_memory_equal(m + 8, gid, 16);
	dut_gid(t->b.d, 1, gid);
	assert_memory_equal(m + 24, gid, 16);
	check(m + 40, 100, 1);
}

/* ORN-WQE-18; a wrong Q_Key is dropped and the receive stays */
static void test_qkey(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 10);

	conn_recv(&t->b, t->bbuf, 200, t->bkey);
	wr.path.qkey = htole32(QKEY + 1);
	post(t, &wr);
	sent(t, 0, 0);
	conn_quiet(&t->b);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_qkey], 1);
	wr.path.qkey = htole32(ORNIC_QKEY_OWN | 5);
	post(t, &wr);
	sent(t, 1, 0);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
}

/* ORN-RQ-7, ORN-RQ-11: a datagram waits for a late receive, in order; their number is bounded */
static void test_waits(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 40);
	uint32_t extra = 7;

	wr_sge(&wr, t->abuf + 40, 20, t->akey);
	for (uint32_t i = 0; i < BACKLOG_DATAGRAMS + extra; i++) {
		post(t, &wr);
		sent(t, i, 0);
	}
	conn_quiet(&t->b);
	assert_int_equal(t->b.qp.backlog.count, BACKLOG_DATAGRAMS);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_no_wqe], extra);
	fill(dut_at(t->a.d, t->abuf, 60), 60, 2);	/* the datagrams are copies */
	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	world_run(&t->w);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	check(dut_at(t->b.d, t->bbuf + ORNIC_GRH_BYTES, 60), 60, 1);
	assert_int_equal(t->b.qp.backlog.count, BACKLOG_DATAGRAMS - 1);
	qp_set_state(&t->b.qp, ORNIC_QPS_ERR);
	assert_int_equal(t->b.qp.backlog.count, 0);
	assert_int_equal(t->b.d->dev.backlog_bytes, 0);
}

/* A datagram does not overtake another one that waits, although there are receives for both. */
static void test_waits_in_order(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 60);
	uint8_t data[50] = { 0 };
	struct packet p = {
		.kind = PACKET_ROCE, .opcode = BTH_UD_SEND_ONLY, .npsn = 1, .qkey = QKEY,
		.len = sizeof(data), .nseg = 1, .seg[0] = { data, sizeof(data) },
	};
	struct ornic_cqe cqe;

	dut_gid(t->b.d, 0, p.dgid);
	post(t, &wr);
	sent(t, 0, 0);
	assert_int_equal(t->b.qp.backlog.count, 1);
	for (int i = 0; i < 3; i++)
		conn_recv(&t->b, t->bbuf + i * 200, 200, t->bkey);
	ud_receive(&t->b.qp, &p);
	assert_int_equal(t->b.qp.backlog.count, 2);
	world_run(&t->w);
	ud_receive(&t->b.qp, &p);		/* none waits: it is delivered at once */
	for (int i = 0; i < 3; i++) {
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(le32toh(cqe.wqe_id), i);
		assert_int_equal(le32toh(cqe.byte_len), ORNIC_GRH_BYTES + (i ? 50 : 60));
	}
	assert_int_equal(t->b.qp.backlog.count, 0);
}

/* An iteration delivers 16 of the datagrams that wait, and says if more of them do. */
static void test_catch_up(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 60);
	struct ornic_cqe cqe;

	for (uint32_t n = 16; n <= 17; n++) {
		for (uint32_t i = 0; i < n; i++)
			post(t, &wr);
		for (uint32_t i = 0; i < n; i++)
			conn_recv(&t->b, t->bbuf, 200, t->bkey);
		assert_int_equal(t->b.qp.backlog.count, n);
		assert_int_equal(ud_catch_up(&t->b.qp), n > 16);
		assert_int_equal(t->b.qp.backlog.count, n - 16);
		assert_false(ud_catch_up(&t->b.qp));
		for (uint32_t i = 0; i < n; i++)
			assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	}
	conn_quiet(&t->b);
}

/* ORN-RNG-7: a receive queue asks for a doorbell only while a datagram waits. */
static void test_waits_for_doorbell(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 60);

	world_finish(&t->w, 1000000000);
	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	assert_int_equal(t->b.rq.rang, 0);
	assert_int_equal(t->b.qp.sched, QP_ASLEEP);
	for (int i = 0; i < 2; i++)
		post(t, &wr);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_quiet(&t->b);
	world_finish(&t->w, 1000000000);
	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	assert_int_equal(t->b.rq.rang, 1);
	world_run(&t->w);
	conn_expect(&t->b, &t->b.hrcq, 1, ORNIC_WC_RECV, 0);
}

/* Datagrams that wait are dropped with the state of the queue pair. */
static void test_waits_no_more(void **state)
{
	const struct conn_opt opt = { .type = ORNIC_QPT_UD };
	struct ends *t = *state;
	struct device *dev = &t->b.d->dev;
	struct wr wr = make(t, &t->b, 0, 60);
	struct conn c;

	post(t, &wr);
	assert_int_not_equal(dev->backlog_bytes, 0);
	qp_set_state(&t->b.qp, ORNIC_QPS_RESET);
	assert_int_equal(t->b.qp.backlog.count, 0);
	assert_int_equal(dev->backlog_bytes, 0);
	conn_init(&c, t->b.d, &opt);
	c.qp.qkey = QKEY;
	conn_rts(&c);
	wr.path.dest_qpn = htole32(c.qp.wire_qpn);
	post(t, &wr);
	assert_int_not_equal(dev->backlog_bytes, 0);
	conn_fini(&c);
	assert_int_equal(dev->backlog_bytes, 0);
}

/* A send queue that flushes, and a datagram that waits: both take their turns. */
static void test_waits_in_sqe(void **state)
{
	const struct wr nop = { .opcode = ORNIC_WR_NOP };
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 60);

	post(t, &wr);
	for (int i = 0; i < 100; i++) {
		conn_write_wr(&t->b, &nop);
		t->b.sq.index++;
	}
	conn_rec(&t->b, &t->b.sq)->host_index = htole32(t->b.sq.index);
	conn_rec(&t->b, &t->b.rq)->host_index = 0;
	qp_set_state(&t->b.qp, ORNIC_QPS_SQE);
	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	assert_true(qp_run(&t->b.qp));
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	assert_false(qp_run(&t->b.qp));
	for (int i = 0; i < 100; i++)
		conn_expect(&t->b, &t->b.hscq, i, ORNIC_WC_NOP, ORNIC_WC_WR_FLUSH_ERR);
	conn_quiet(&t->b);
}

/* ORN-RQ-11: the memory of a function is bounded also for datagrams without payload */
static void test_waits_empty(void **state)
{
	const uint32_t many = BACKLOG_BYTES / 64 / BACKLOG_DATAGRAMS + 1;
	struct backlog *b = test_calloc(many, sizeof(*b));
	struct device *dev = &((struct ends *)*state)->b.d->dev;
	struct packet empty = {};	/* longer ones only claim to be */
	uint32_t kept = 0;

	memset(b, 0xff, many * sizeof(*b));
	for (uint32_t i = 0; i < many; i++) {
		backlog_init(&b[i]);
		while (backlog_add(&b[i], dev, &empty))
			kept++;
	}
	assert_in_range(kept, 1, BACKLOG_BYTES / 64);
	for (uint32_t i = 0; i < many; i++)
		backlog_clear(&b[i], dev);
	assert_int_equal(dev->backlog_bytes, 0);
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	assert_false(backlog_add(b, dev, &empty));
	assert_true(failing_end());
	/* all of it for one datagram */
	assert_true(backlog_add(b, dev, &empty));
	empty.len = BACKLOG_BYTES - dev->backlog_bytes;
	backlog_clear(b, dev);
	empty.len++;
	assert_false(backlog_add(b, dev, &empty));
	empty.len--;
	assert_true(backlog_add(b, dev, &empty));
	assert_int_equal(dev->backlog_bytes, BACKLOG_BYTES);
	backlog_clear(b, dev);
	assert_int_equal(dev->backlog_bytes, 0);
	test_free(b);
}

/* Fill the stack that the delivery of a packet uses, so that it finds no zeros by chance. */
static void spoil_stack(void *arg, const struct switch_port *port, enum switch_way way,
			const struct packet *p, const char *note)
{
	volatile uint8_t bytes[32768];

	(void)arg;
	(void)port;
	(void)way;
	(void)p;
	(void)note;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0xa5;
}

/* ORN-RQ-7: too small a receive stays (ORN-RQ-5), and gets a whole header area later */
static void test_drops(void **state)
{
	static const struct switch_observer spoiler = { spoil_stack, NULL };
	static const uint8_t zeros[20];
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 61);

	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	post(t, &wr);
	sent(t, 0, 0);
	conn_quiet(&t->b);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_size], 1);
	wr.sge[0].length = htole32(60);
	switch_set_observer(t->w.e.sw, &spoiler);
	post(t, &wr);
	switch_set_observer(t->w.e.sw, NULL);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	assert_memory_equal(dut_at(t->b.d, t->bbuf, 20), zeros, 20);
}

/* Without a free packet, a datagram waits: it neither completes nor is lost. */
static void test_no_packets(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 61);

	conn_recv(&t->b, t->bbuf, 101, t->bkey);
	conn_send(&t->a, &wr);
	assert_int_equal(world_starve(&t->w), 0);
	conn_quiet(&t->a);
	world_run(&t->w);
	sent(t, 0, 0);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
}

/*
 * Without a free packet, a datagram of the backlog waits, also if its receive has left the ring for
 * earlier datagrams, which were too long.
 */
static void test_no_packets_to_catch_up(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 60);
	const uint32_t one_run = 16;

	for (uint32_t i = 0; i < one_run; i++)
		post(t, &wr);
	wr.sge[0].length = htole32(59);
	post(t, &wr);
	conn_recv(&t->b, t->bbuf, 99, t->bkey);
	qp_run(&t->b.qp);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_size], one_run);
	assert_int_equal(world_starve(&t->w), 0);
	conn_quiet(&t->b);
	world_run(&t->w);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
}

/** struct wire - PSNs of the datagrams that left */
struct wire {
	uint32_t psn[8];
	unsigned int n;
};

static void see(void *arg, const struct switch_port *port, enum switch_way way,
		const struct packet *p, const char *note)
{
	struct wire *w = arg;

	(void)port;
	(void)note;
	assert_true(w->n < 8);
	if (way == SWITCH_IN)
		w->psn[w->n++] = p->psn;
}

/* IBTA volume 1, 9.8.3: PSNs count the datagrams that were sent */
static void test_psn(void **state)
{
	struct ends *t = *state;
	struct wr good = make(t, &t->b, 0, 8), bad = make(t, &t->b, 0, 8);
	struct wire w = { 0 };
	const struct switch_observer o = { see, &w };
	struct ornic_cqe cqe;

	switch_set_observer(t->w.e.sw, &o);
	t->a.qp.req.next_psn = 0xfffffe;
	bad.sge[0].lkey = 0;
	for (int i = 0; i < 3; i++)
		post(t, &good);
	post(t, &bad);
	assert_int_equal(w.n, 3);
	assert_int_equal(w.psn[0], 0xfffffe);
	assert_int_equal(w.psn[1], 0xffffff);
	assert_int_equal(w.psn[2], 0);
	switch_set_observer(t->w.e.sw, NULL);
	while (conn_poll(&t->a, &t->a.hscq, &cqe))
		;
}

/* QPN 1, for any handle (ORN-QP-1) */
static void test_gsi(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 256);
	struct ornic_cqe cqe;

	assert_int_not_equal(t->b.qp.handle, 1);
	wr.path.qkey = htole32(ORNIC_QKEY_OWN);
	conn_recv(&t->b, t->bbuf, 296, t->bkey);
	post(t, &wr);
	sent(t, 0, 0);
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.src_qp), 1);
	wr.path.dest_qpn = htole32(t->b.qp.handle);
	post(t, &wr);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_qpn], 1);
}

/*
 * ORN-WQE-13, ORN-QP-21: a datagram that is too long causes SQE. The SQ flushes, also later
 * posts; receives continue; RTS sends again.
 */
static void test_sqe(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 4096), big = make(t, &t->b, 0, 4097), back;

	conn_recv(&t->a, t->abuf, 5000, t->akey);
	conn_recv(&t->b, t->bbuf, 5000, t->bkey);
	conn_send(&t->a, &wr);
	conn_send(&t->a, &big);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	sent(t, 0, 0);
	sent(t, 1, ORNIC_WC_LOC_LEN_ERR);
	sent(t, 2, ORNIC_WC_WR_FLUSH_ERR);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_SQE);
	assert_int_equal(t->a.qp.syndrome, ORNIC_SYN_WQE_LENGTH);
	post(t, &wr);
	sent(t, 3, ORNIC_WC_WR_FLUSH_ERR);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_quiet(&t->b);
	back = make(t, &t->a, 0, 0);
	conn_send(&t->b, &back);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_recv(&t->b, t->bbuf, 5000, t->bkey);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	post(t, &wr);
	sent(t, 4, 0);
	conn_expect(&t->b, &t->b.hrcq, 1, ORNIC_WC_RECV, 0);
}

/* ORN-QP-21: a host that returns to RTS at once sends no earlier post, and all later ones. */
static void test_sqe_recover(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 10), big = make(t, &t->b, 0, 4097);
	uint32_t cons;

	for (int i = 0; i < 4; i++)
		conn_recv(&t->b, t->bbuf, 100, t->bkey);
	conn_send(&t->a, &big);
	for (int i = 0; i < 200; i++)
		conn_send(&t->a, &wr);
	qp_run(&t->a.qp);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_SQE);
	cons = t->a.qp.sq.cons;
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	assert_int_equal(t->a.qp.sq.cons, cons);	/* the host chose the number: not at once */
	qp_run(&t->a.qp);
	assert_in_range(t->a.qp.sq.cons, cons + 1, cons + 100);
	conn_send(&t->a, &wr);
	qp_set_state(&t->a.qp, ORNIC_QPS_SQD);
	qp_run(&t->a.qp);
	assert_false(t->a.qp.sqd_raised);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	post(t, &wr);
	sent(t, 0, ORNIC_WC_LOC_LEN_ERR);
	for (int i = 1; i <= 200; i++)
		sent(t, i, ORNIC_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 2; i++) {
		sent(t, 201 + i, 0);
		conn_expect(&t->b, &t->b.hrcq, i, ORNIC_WC_RECV, 0);
	}
	conn_quiet(&t->b);
}

/* Bad key, malformed work request, bad or foreign GID entry (ORN-WQE-20): SQE (ORN-PORT-9) */
static void test_send_errors(void **state)
{
	static const uint32_t syndromes[] = { ORNIC_SYN_KEY_INDEX, ORNIC_SYN_WQE_MBZ,
					      ORNIC_SYN_PATH, ORNIC_SYN_PATH, ORNIC_SYN_PATH };

	for (int i = 0; i < 5; i++) {
		uint8_t status = i == 0 ? ORNIC_WC_LOC_PROT_ERR : ORNIC_WC_LOC_QP_OP_ERR;
		struct ends *t;
		struct wr wr;

		setup(state);
		t = *state;
		wr = make(t, &t->b, 0, 10);
		if (i == 0)
			wr.sge[0].lkey = htole32(1);
		else if (i == 1)
			wr.flags |= 0x40;
		else if (i < 4)
			wr.path.sgid_index = htole16(i == 2 ? 5 : 0xffff);
		else
			t->a.d->dev.port.gid[0].owner = htole32(t->a.qp.owner + 1);
		conn_send(&t->a, &wr);
		qp_run(&t->a.qp);		/* it fails when it is tried first */
		sent(t, 0, status);
		assert_int_equal(t->a.qp.state, ORNIC_QPS_SQE);
		assert_int_equal(t->a.qp.syndrome, syndromes[i]);
		assert_int_equal(t->a.d->dev.cnt[CNT_tx_send], 0);
		ends_teardown(state);
	}
}

/* ORN-RQ-2: a bad receive is no error of the send queue: ERR, both queues flush */
static void test_receive_errors(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct ornic_eqe e;
		struct ends *t;
		struct wr wr;

		setup(state);
		t = *state;
		wr = make(t, &t->b, 0, 10);
		conn_recv(&t->b, t->bbuf, 200, i ? 1 : t->bkey);
		conn_recv(&t->b, t->bbuf, 200, t->bkey);
		if (!i)
			((struct ornic_rwqe *)guest_at(&t->b.d->guest, t->b.rq.ring, 16))->mbz0 = 1;
		post(t, &wr);
		conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV,
			    i ? ORNIC_WC_LOC_PROT_ERR : ORNIC_WC_LOC_QP_OP_ERR);
		conn_expect(&t->b, &t->b.hrcq, 1, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR);
		assert_int_equal(t->b.qp.state, ORNIC_QPS_ERR);
		assert_int_equal(t->b.qp.syndrome, i ? ORNIC_SYN_KEY_INDEX : ORNIC_SYN_WQE_MBZ);
		assert_int_equal(t->b.qp.backlog.count, 0);
		assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_no_wqe], 0);
		assert_false(dut_event(t->b.d, &e));
		ends_teardown(state);
	}
}

/* To itself: by its own MAC (ORN-PORT-4) */
static void test_loopback(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->a, 0, 50);
	struct ornic_cqe cqe;

	conn_recv(&t->a, t->abuf + 1000, 90, t->akey);
	post(t, &wr);
	sent(t, 0, 0);
	assert_true(conn_poll(&t->a, &t->a.hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.src_qp), t->a.qp.handle);
	check(dut_at(t->a.d, t->abuf + 1040, 50), 50, 1);
}

/* ORN-QP-16 for datagrams */
static void test_sqd(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 50);
	struct ornic_eqe e;

	t->a.qp.sqd_notify = true;
	qp_set_state(&t->a.qp, ORNIC_QPS_SQD);
	post(t, &wr);
	conn_quiet(&t->a);
	assert_true(dut_event(t->a.d, &e));
	assert_int_equal(e.type, ORNIC_EV_SQ_DRAINED);
	assert_false(dut_event(t->a.d, &e));
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	sent(t, 0, 0);
}

/* An RC packet for a datagram queue pair, or to one not ready: dropped (ORN-PORT-2) */
static void test_not_ready(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 10);

	conn_recv(&t->b, t->bbuf, 200, t->bkey);
	qp_set_state(&t->b.qp, ORNIC_QPS_RESET);
	qp_set_state(&t->b.qp, ORNIC_QPS_INIT);
	post(t, &wr);
	sent(t, 0, 0);
	conn_quiet(&t->b);
	/* nor with a wrong Q_Key: it is not compared */
	wr.path.qkey = htole32(QKEY + 1);
	post(t, &wr);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_qkey], 0);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_opcode], 0);
}

/* An opcode of UD that IBTA does not define is dropped, and the receive stays. */
static void test_unknown_opcode(void **state)
{
	struct ends *t = *state;
	struct packet *p = packet_get(&t->w.e.pool);

	conn_recv(&t->b, t->bbuf, 200, t->bkey);
	p->kind = PACKET_ROCE;
	memcpy(p->dmac, t->b.d->dev.port.mac, 6);
	memcpy(p->smac, t->a.d->dev.port.mac, 6);
	dut_gid(t->a.d, 0, p->sgid);
	dut_gid(t->b.d, 0, p->dgid);
	p->opcode = BTH_UD_SEND_ONLY_IMM + 1;
	p->pkey = BTH_DEFAULT_PKEY;
	p->dqpn = t->b.qp.wire_qpn;
	p->qkey = QKEY;
	p->npsn = 1;
	switch_send(t->a.d->dev.port.sw, p);
	world_run(&t->w);
	conn_quiet(&t->b);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_opcode], 1);
}

/* ORN-RQ-7: a queue pair without a receive queue holds no datagram, and reads no ring */
static void test_no_queue(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, &t->b, 0, 100);

	t->b.qp.rq.present = false;
	t->b.qp.rq.log = ORNIC_NO_RING;
	t->b.qp.rq.rec = 0;
	post(t, &wr);
	sent(t, 0, ORNIC_WC_SUCCESS);
	assert_int_equal(t->b.qp.backlog.count, 0);
	assert_int_equal(t->b.d->dev.cnt[CNT_rx_drop_no_wqe], 1);
	assert_false(qp_has_news(&t->b.qp));
	assert_true(qp_sleep(&t->b.qp));
	conn_quiet(&t->b);
}

/* ORN-CQ-14: the receiver's completion says whether the sender asked for an event. */
static void test_solicited(void **state)
{
	struct ends *t = *state;

	for (int i = 0; i < 2; i++) {
		struct wr wr = make(t, &t->b, 0, 10);
		struct ornic_cqe cqe;

		wr.flags |= i ? ORNIC_WQE_SOLICITED : 0;
		conn_recv(&t->b, t->bbuf, 200, t->bkey);
		post(t, &wr);
		sent(t, i, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(!!(le32toh(cqe.flags) & ORNIC_CQE_SOLICITED), i);
	}
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, ends_teardown)
	const struct CMUnitTest tests[] = {
		T(test_ipv4), T(test_inline), T(test_vlan), T(test_ipv6), T(test_qkey),
		T(test_waits), T(test_waits_in_order), T(test_catch_up), T(test_waits_empty),
		T(test_waits_no_more), T(test_waits_in_sqe), T(test_waits_for_doorbell),
		T(test_drops), T(test_psn),
		cmocka_unit_test_setup_teardown(test_gsi, setup_gsi, ends_teardown),
		T(test_sqe), T(test_sqe_recover), cmocka_unit_test(test_send_errors),
		cmocka_unit_test(test_receive_errors), T(test_loopback), T(test_sqd),
		T(test_not_ready), T(test_unknown_opcode), T(test_no_queue), T(test_solicited),
		T(test_no_packets), T(test_no_packets_to_catch_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
