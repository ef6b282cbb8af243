// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that work requests and packets can reach, and addresses that they can use: memory only
 * through the key that they name, and only addresses of their own.
 */
#include <endian.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/inproc.h"
#include "lib/peer.h"
#include "engine/link.h"
#include "net/switch.h"
#include <ornic/pd.h>

#define RO	0u
#define RW	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ | \
		 ORNIC_ACCESS_REMOTE_ATOMIC)
#define SECRET	0xc7
#define ARENA	65536u
/* Of the arena, two regions side by side have keys. */
#define FIRST	16384u
#define REGION	8192u
#define ROUNDS	3000
#define OTHER_VLAN	20

struct fix {
	struct world w;
	struct peer peer;
	struct conn a, b;
	uint64_t arena[2];
	uint32_t key[2][2];
};

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	peer_init(&t->peer, &t->w);
	conn_init(&t->a, &t->w.dut[0], NULL);
	conn_init(&t->b, &t->w.dut[1], NULL);
	for (int i = 0; i < 2; i++) {
		struct dut *d = &t->w.dut[i];

		t->arena[i] = dut_buf(d, ARENA);
		for (int j = 0; j < 2; j++)
			t->key[i][j] = dut_key(d, NULL, t->arena[i] + FIRST + j * REGION, REGION,
					       RW);
	}
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	conn_fini(&t->a);
	conn_fini(&t->b);
	peer_fini(&t->peer);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

static uint8_t *arena(struct fix *t, int i)
{
	return dut_at(&t->w.dut[i], t->arena[i], ARENA);
}

/* Reset and reconnect, as a host does after an error. */
static void again(struct fix *t)
{
	struct conn *c[2] = { &t->a, &t->b };

	for (int i = 0; i < 2; i++) {
		struct hostq *q[2] = { &c[i]->sq, &c[i]->rq };

		qp_set_state(&c[i]->qp, ORNIC_QPS_RESET);
		for (int j = 0; j < 2; j++) {
			q[j]->index = 0;
			memset(conn_rec(c[i], q[j]), 0, sizeof(struct ornic_rec));
			conn_rec(c[i], q[j])->notify = htole32(ORNIC_NOTIFY_ALWAYS);
		}
	}
	world_run(&t->w);
	conn_pair(&t->a, &t->b, 7, 9);
}

static void drain(struct fix *t)
{
	struct ornic_cqe cqe;
	struct ornic_eqe e;

	world_finish(&t->w, 10000000000ull);
	while (conn_poll(&t->a, &t->a.hscq, &cqe) || conn_poll(&t->a, &t->a.hrcq, &cqe) ||
	       conn_poll(&t->b, &t->b.hscq, &cqe) || conn_poll(&t->b, &t->b.hrcq, &cqe) ||
	       dut_event(t->a.d, &e) || dut_event(t->b.d, &e))
		;
}

static uint64_t somewhere(struct fix *t, int i)
{
	return t->arena[i] + random() % ARENA;
}

static uint32_t some_key(struct fix *t, int i, int which)
{
	return random() % 8 ? t->key[i][which] : (uint32_t)random() % 4096;
}

static struct wr some_request(struct fix *t, const int which[2])
{
	static const uint8_t ops[] = { ORNIC_WR_SEND, ORNIC_WR_RDMA_WRITE, ORNIC_WR_RDMA_READ,
				       ORNIC_WR_FETCH_ADD, ORNIC_WR_COMP_SWAP };
	struct wr wr = { .opcode = ops[random() % sizeof(ops)], .flags = ORNIC_WQE_SIGNALED };
	bool atomic = wr.opcode == ORNIC_WR_FETCH_ADD || wr.opcode == ORNIC_WR_COMP_SWAP;

	wr.raddr = somewhere(t, 1) & ~(atomic ? 7ull : 0);
	wr.rkey = some_key(t, 1, which[1]);
	wr.swap_add = 1;
	wr_sge(&wr, somewhere(t, 0), atomic ? 8 : random() % REGION, some_key(t, 0, which[0]));
	return wr;
}

/*
 * ORN-SEC-1, ORN-MEM-22: random requests at random addresses. Memory without a key is never
 * written and never read: its bytes appear nowhere else. Of the regions with keys, only the one
 * whose key was named is written.
 */
static void test_random_addresses(void **state)
{
	static uint8_t before[ARENA];
	struct fix *t = *state;

	for (uint32_t n = 0; n < ROUNDS; n++) {
		int which[2] = { random() % 2, random() % 2 };
		struct wr wr = some_request(t, which);

		for (int i = 0; i < 2; i++) {
			memset(arena(t, i), SECRET, ARENA);
			memset(arena(t, i) + FIRST, i, 2 * REGION);
		}
		again(t);
		conn_recv(&t->b, somewhere(t, 1), random() % REGION, some_key(t, 1, which[1]));
		conn_send(&t->a, &wr);
		drain(t);
		for (int i = 0; i < 2; i++) {
			uint8_t *region = arena(t, i) + FIRST;

			memset(before, SECRET, ARENA);
			memset(before + FIRST + !which[i] * REGION, i, REGION);
			memcpy(before + FIRST + which[i] * REGION, region + which[i] * REGION,
			       REGION);
			assert_memory_equal(before, arena(t, i), ARENA);
			assert_null(memchr(region, SECRET, 2 * REGION));
		}
	}
}

/* Return status and syndrome of a write of @len bytes to @raddr by @rkey */
static uint8_t write_status(struct fix *t, uint64_t raddr, uint32_t len, uint32_t rkey,
			    uint32_t lkey)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED,
			 .raddr = raddr, .rkey = rkey };
	struct ornic_cqe cqe;

	again(t);
	wr_sge(&wr, t->arena[0] + FIRST, len, lkey);
	conn_send(&t->a, &wr);
	world_finish(&t->w, 10000000000ull);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	drain(t);
	return cqe.status;
}

/* ORN-MEM-13: the same failures with and without another key that would allow them */
static void test_other_keys(void **state)
{
	struct fix *t = *state;
	uint64_t far = t->arena[1] + 40000;
	uint32_t own = dut_key(t->b.d, NULL, far, 4096, ORNIC_ACCESS_REMOTE_READ);
	uint32_t lkey = dut_key(t->a.d, NULL, t->arena[0] + FIRST, 100, RO);

	for (int round = 0; round < 2; round++) {
		assert_int_equal(write_status(t, far, 8, own, lkey), ORNIC_WC_REM_ACCESS_ERR);
		assert_int_equal(write_status(t, t->arena[1] + FIRST, 101, t->key[1][0], lkey),
				 ORNIC_WC_LOC_PROT_ERR);
		assert_int_equal(write_status(t, t->arena[1] + FIRST + 2 * REGION - 4, 8,
					      t->key[1][1], lkey), ORNIC_WC_REM_ACCESS_ERR);
		assert_int_equal(write_status(t, t->arena[1] + FIRST + REGION - 4, 8,
					      t->key[1][0], lkey), ORNIC_WC_REM_ACCESS_ERR);
		assert_int_equal(write_status(t, t->arena[1] + FIRST, 100, t->key[1][0], lkey), 0);
		dut_key(t->b.d, NULL, t->arena[1], ARENA, RW);
		dut_key(t->a.d, NULL, t->arena[0], ARENA, RW);
	}
}

/* ORN-QP-24: one port for a connection, from the range, unless the path names another. */
static void test_source_port(void **state)
{
	struct fix *t = *state;
	struct wr write = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 1, .rkey = 1 };
	struct wr read = { .opcode = ORNIC_WR_RDMA_READ, .raddr = 1, .rkey = 1 };
	uint32_t requests = 0;
	struct seen *s;

	for (uint32_t label = 0; label < 3; label++) {
		uint16_t port = 0;

		again(t);
		qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
		t->a.qp.path.flow_label = htole32(label * 0x12345);
		peer_connect(&t->peer, &t->a, 0, 0);
		wr_sge(&write, t->arena[0] + FIRST, 4096, t->key[0][0]);
		write.nsge = 1;
		wr_sge(&read, t->arena[0] + FIRST, 4096, t->key[0][0]);
		read.nsge = 1;
		for (int i = 0; i < 4; i++) {
			conn_send(&t->a, i % 2 ? &read : &write);
			world_pass(&t->w, 1000);
		}
		world_pass(&t->w, 200000000);		/* and retransmissions */
		while ((s = peer_next(&t->peer))) {
			port = port ? port : s->p.udp_sport;
			assert_true(s->p.udp_sport >= ORNIC_UDP_SPORT_MIN);
			assert_int_equal(s->p.udp_sport, port);
			requests++;
		}
	}
	assert_true(requests > 12);
	again(t);
	qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
	t->a.qp.path.udp_sport = htole16(0xd00d);
	peer_connect(&t->peer, &t->a, 0, 0);
	conn_send(&t->a, &write);
	world_run(&t->w);
	s = peer_next(&t->peer);
	assert_non_null(s);
	assert_int_equal(s->p.udp_sport, 0xd00d);
	again(t);
}

/*
 * ORN-SEC-8: for any address vector of a datagram, its source is that of the GID entry and the
 * queue pair.
 */
static void test_source(void **state)
{
	static const struct conn_opt ud = { .type = ORNIC_QPT_UD };
	struct fix *t = *state;
	uint32_t sent = 0;
	struct conn c;

	conn_init(&c, t->a.d, &ud);
	conn_rts(&c);
	for (uint32_t n = 0; n < 500; n++) {
		struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
		uint32_t slot = c.sq.index;
		uint8_t gid[16];
		struct ornic_cqe cqe;
		struct seen *s;

		for (size_t i = 0; i < sizeof(wr.path); i++)
			((uint8_t *)&wr.path)[i] = n % 2 ? random() : 0;
		if (random() % 4)
			wr.path.sgid_index = 0;
		memcpy(wr.path.dmac, t->peer.mac, 6);
		memcpy(wr.path.dgid, t->peer.gid, 16);
		conn_send(&c, &wr);
		world_run(&t->w);
		assert_true(conn_poll(&c, &c.hscq, &cqe));
		if (c.qp.state != ORNIC_QPS_RTS)
			qp_set_state(&c.qp, ORNIC_QPS_RTS);
		world_run(&t->w);
		(void)slot;
		s = peer_next(&t->peer);
		assert_int_equal(!s, cqe.status != ORNIC_WC_SUCCESS);
		if (!s)
			continue;
		sent++;
		dut_gid(c.d, 0, gid);
		assert_memory_equal(s->p.smac, c.d->dev.port.mac, 6);
		assert_memory_equal(s->p.sgid, gid, 16);
		assert_false(s->p.vlan);
		assert_int_equal(s->p.sqpn, c.qp.wire_qpn);
	}
	assert_true(sent >= 250);
	conn_fini(&c);
}

/* Send @p to another GID of a's function, or to the same GID in another VLAN of the function. */
static void send_astray(struct fix *t, struct packet *p, bool vlan)
{
	static const uint8_t data[8] = { SECRET };

	if (vlan) {
		p->vlan = true;
		p->vlan_tci = OTHER_VLAN;
	} else {
		dut_gid(t->a.d, 1, p->dgid);
	}
	peer_send(&t->peer, p, data, p->opcode == BTH_RC_WRITE_ONLY ? sizeof(data) : 0);
}

static struct packet *write_to(struct fix *t, uint32_t psn)
{
	struct packet *p = peer_packet(&t->peer, &t->a, BTH_RC_WRITE_ONLY, psn);

	p->va = t->arena[0] + FIRST;
	p->rkey = t->key[0][0];
	p->dmalen = 8;
	return p;
}

static struct packet *ack_of(struct fix *t, uint8_t aeth)
{
	struct packet *p = peer_packet(&t->peer, &t->a, BTH_RC_ACK, 0);

	p->aeth = aeth;
	return p;
}

/* Connect a with the peer, and give a's function a second VLAN. */
static struct ornic_gid_entry *connect_in_vlans(struct fix *t)
{
	struct ornic_gid_entry *gid = t->a.d->dev.port.gid;

	gid[2] = gid[0];
	gid[2].flags |= htole32(ORNIC_GID_VLAN);
	gid[2].vlan = htole16(OTHER_VLAN);
	peer_connect(&t->peer, &t->a, 0, 0);
	return gid;
}

/* ORN-PORT-20: a connection ignores packets to other GIDs and VLANs of its function. */
static void test_other_gid(void **state)
{
	static const uint8_t aeth[] = { AETH_ACK | AETH_NO_CREDITS, AETH_NAK | NAK_REMOTE_ACCESS,
					AETH_NAK | NAK_PSN_SEQUENCE, AETH_RNR_NAK | 1 };
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct fix *t = *state;
	uint64_t *cnt = t->a.d->dev.cnt;
	uint32_t n = 0;

	connect_in_vlans(t);
	wr_sge(&wr, t->arena[0] + FIRST, 8, t->key[0][0]);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	peer_expect(&t->peer, BTH_RC_SEND_ONLY, 0, 1);
	for (int vlan = 0; vlan < 2; vlan++) {
		send_astray(t, write_to(t, 0), vlan);
		assert_int_equal(cnt[CNT_bad_gid], ++n);
		for (size_t i = 0; i < sizeof(aeth); i++) {
			send_astray(t, ack_of(t, aeth[i]), vlan);
			assert_int_equal(cnt[CNT_bad_gid], ++n);
		}
		send_astray(t, peer_packet(&t->peer, &t->a, BTH_CNP, 0), vlan);
		assert_int_equal(cnt[CNT_bad_gid], ++n);
	}
	assert_int_equal(*(arena(t, 0) + FIRST), 0);
	assert_int_equal(cnt[CNT_rdma_rx_packets], 0);
	assert_int_equal(cnt[CNT_cnp_received], 0);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
	peer_quiet(&t->peer);
	conn_quiet(&t->a);
	/* The same packets to the right address are executed. */
	peer_send(&t->peer, ack_of(t, aeth[0]), NULL, 0);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	peer_send(&t->peer, write_to(t, 0), arena(t, 1), 8);
	peer_expect_ack(&t->peer, aeth[0], 0);
	assert_int_equal(cnt[CNT_bad_gid], n);
}

/* All fields of a packet that come from path, GID entry and queue pair (ORN-PORT-1, ORN-QP-24) */
static void test_path_fields(void **state)
{
	static const struct {
		uint8_t sgid, sl, tclass, rate, hops;
		uint32_t label;
		bool ecn;
		uint16_t tci, sport;
		uint8_t sent_tclass;
	} cases[] = {
		{ .hops = 64, .sport = ORNIC_UDP_SPORT_MIN },
		{ 2, 5, 0xff, ORNIC_RATE_100_GBPS, 17, 0x12345, false, 5 << 13 | OTHER_VLAN,
		  0xe341, 0xff },
		{ 2, 0xf, 0xfd, 0, 255, 0xabcfffff, true, 7 << 13 | OTHER_VLAN, 0xffc0, 0xfe },
	};
	struct fix *t = *state;
	struct ornic_gid_entry *gid = connect_in_vlans(t);
	struct wr wr = { .opcode = ORNIC_WR_SEND };

	gid[2].smac[5] = 0x55;
	wr_sge(&wr, t->arena[0] + FIRST, 8, t->key[0][0]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ornic_path *path = &t->a.qp.path;
		const struct packet *p;

		again(t);
		qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
		t->w.e.cc.on = cases[i].ecn;
		path->sgid_index = htole16(cases[i].sgid);
		path->sl = cases[i].sl;
		path->traffic_class = cases[i].tclass;
		path->static_rate = cases[i].rate;
		path->flow_label = htole32(cases[i].label);
		peer_connect(&t->peer, &t->a, 0, 0);
		path->hop_limit = cases[i].hops;
		conn_send(&t->a, &wr);
		world_run(&t->w);
		p = &peer_expect(&t->peer, BTH_RC_SEND_ONLY, 0, 1)->p;
		assert_int_equal(p->kind, PACKET_ROCE);
		assert_memory_equal(p->dmac, t->peer.mac, 6);
		assert_memory_equal(p->smac, gid[cases[i].sgid].smac, 6);
		assert_memory_equal(p->sgid, gid[cases[i].sgid].gid, 16);
		assert_memory_equal(p->dgid, t->peer.gid, 16);
		assert_int_equal(p->vlan, cases[i].tci != 0);
		assert_int_equal(p->vlan_tci, cases[i].tci);
		assert_int_equal(p->flow_label, cases[i].label);
		assert_int_equal(p->udp_sport, cases[i].sport);
		assert_int_equal(p->tclass, cases[i].sent_tclass);
		assert_int_equal(p->hop_limit, cases[i].hops);
		assert_int_equal(p->static_rate, cases[i].rate);
		assert_int_equal(p->pkey, BTH_DEFAULT_PKEY);
		assert_int_equal(p->sqpn, t->a.qp.wire_qpn);
		assert_false(p->echo);
	}
	t->w.e.cc.on = false;
}

/* ORN-PORT-16: the largest path MTU of which all packets fit the frame size */
static void test_mtu(void **state)
{
	static const uint32_t mtus[][2] = {
		{ 0, 256 }, { 95, 256 }, { 96, 256 }, { 97, 256 }, { 96 + 511, 256 },
		{ 96 + 512, 512 }, { 96 + 1023, 512 }, { 96 + 1024, 1024 }, { 96 + 4095, 2048 },
		{ 96 + 4096, 4096 }, { 65535, 4096 },
	};
	struct fix *t = *state;

	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		t->a.d->dev.port.max_frame = mtus[i][0];
		assert_int_equal(link_mtu(&t->a.d->dev), mtus[i][1]);
	}
}

/* Requests to an initiator, answers to a target, packets of other transports or partitions */
static void test_not_for_this_type(void **state)
{
	static const struct {
		uint8_t type, opcode;
		uint16_t pkey;
		uint32_t counter;
	} cases[] = {
		{ ORNIC_QPT_XRC_INI, BTH_TRANSPORT_XRC | BTH_RC_SEND_ONLY, BTH_DEFAULT_PKEY,
		  CNT_bad_opcode },
		{ ORNIC_QPT_XRC_TGT, BTH_TRANSPORT_XRC | BTH_RC_ACK, BTH_DEFAULT_PKEY,
		  CNT_bad_opcode },
		{ ORNIC_QPT_RC, BTH_TRANSPORT_XRC | BTH_RC_ACK, BTH_DEFAULT_PKEY, CNT_bad_opcode },
		{ ORNIC_QPT_UC, BTH_RC_WRITE_ONLY, BTH_DEFAULT_PKEY, CNT_bad_opcode },
		{ ORNIC_QPT_UD, BTH_RC_SEND_ONLY, BTH_DEFAULT_PKEY, CNT_bad_opcode },
		{ ORNIC_QPT_RAW, BTH_RC_SEND_ONLY, BTH_DEFAULT_PKEY, CNT_bad_qpn },
		{ ORNIC_QPT_RC, BTH_RC_ACK, 0x8001, CNT_bad_pkey },
	};
	struct fix *t = *state;
	uint64_t *cnt = t->a.d->dev.cnt;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct conn_opt opt = { .type = cases[i].type };
		uint64_t want[CNT_COUNT];
		struct packet *p;
		struct conn c;

		conn_init(&c, t->a.d, &opt);
		peer_connect(&t->peer, &c, 0, 0);
		p = peer_packet(&t->peer, &c, cases[i].opcode, 0);
		p->pkey = cases[i].pkey;
		memcpy(want, cnt, sizeof(want));
		want[cases[i].counter]++;
		if (i < 2) {	/* it is for the queue pair, but of no use */
			want[CNT_rdma_rx_packets]++;
			want[CNT_rdma_rx_bytes] += 8;
		}
		peer_send(&t->peer, p, arena(t, 1), 8);
		assert_memory_equal(cnt, want, sizeof(want));
		conn_quiet(&c);
		conn_fini(&c);
	}
	peer_quiet(&t->peer);
}

/* States in which unreliable queue pairs receive: from RTR on, also if the send queue failed */
static void test_receiving_states(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_UC, ORNIC_QPT_UD };
	struct fix *t = *state;
	uint64_t *cnt = t->a.d->dev.cnt;

	for (uint32_t i = 0; i < 2 * (ORNIC_QPS_ERR + 1); i++) {
		const struct conn_opt opt = { .type = types[i & 1] };
		bool takes = i / 2 >= ORNIC_QPS_RTR && i / 2 != ORNIC_QPS_ERR;
		uint64_t want[CNT_COUNT];
		struct packet *p;
		struct conn c;

		conn_init(&c, t->a.d, &opt);
		peer_connect(&t->peer, &c, 0, 0);
		conn_recv(&c, t->arena[0] + FIRST, 100, t->key[0][0]);
		c.qp.state = i / 2;
		p = peer_packet(&t->peer, &c, i & 1 ? BTH_UD_SEND_ONLY :
						      BTH_TRANSPORT_UC | BTH_RC_SEND_ONLY, 0);
		p->qkey = c.qp.qkey;
		memcpy(want, cnt, sizeof(want));
		want[CNT_rdma_rx_packets]++;
		want[CNT_rdma_rx_bytes] += 8;
		if (takes) {
			want[CNT_rx_send]++;
			want[CNT_rdma_copied_bytes] += i & 1 ? 48 : 8;
		}
		peer_send(&t->peer, p, arena(t, 1), 8);
		assert_memory_equal(cnt, want, sizeof(want));
		if (takes)
			conn_expect(&c, &c.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
		conn_quiet(&c);
		qp_set_state(&c.qp, ORNIC_QPS_RESET);
		conn_fini(&c);
	}
}

/* A port is not added if another one has its MAC address, and can be added later. */
static void test_attach(void **state)
{
	struct fix *t = *state;
	struct device *dev = &t->w.dut[2].dev;

	link_detach(dev);
	assert_null(switch_port_find(t->w.e.sw, dev->name));
	dev->port.mac[5] = t->a.d->dev.port.mac[5];
	assert_int_equal(link_attach(dev, 0), -EEXIST);
	assert_null(dev->port.sw);
	assert_null(switch_port_find(t->w.e.sw, dev->name));
	dev->port.mac[5]++;
	assert_int_equal(link_attach(dev, 0), -EEXIST);
	dev->port.mac[5]++;
	assert_int_equal(link_attach(dev, 0), 0);
	assert_ptr_equal(switch_port_find(t->w.e.sw, dev->name), dev->port.sw);
}

/* ORN-PORT-20, for the other types of connections */
static void test_other_gid_types(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_UC, ORNIC_QPT_XRC_INI, ORNIC_QPT_XRC_TGT };
	struct fix *t = *state;
	uint64_t *cnt = t->a.d->dev.cnt;

	connect_in_vlans(t);
	for (uint32_t i = 0; i < sizeof(types); i++) {
		const struct conn_opt opt = { .type = types[i] };
		struct conn c;

		conn_init(&c, t->a.d, &opt);
		peer_connect(&t->peer, &c, 0, 0);
		for (int vlan = 0; vlan < 2; vlan++)
			send_astray(t, peer_packet(&t->peer, &c, BTH_CNP, 0), vlan);
		assert_int_equal(cnt[CNT_bad_gid], 2 * i + 2);
		assert_int_equal(cnt[CNT_cnp_received], i);
		peer_send(&t->peer, peer_packet(&t->peer, &c, BTH_CNP, 0), NULL, 0);
		assert_int_equal(cnt[CNT_cnp_received], i + 1);
		conn_fini(&c);
	}
}

/* ORN-PORT-20: the entry is deleted, while another one holds its GID, and replaced. */
static void test_gid_changes(void **state)
{
	struct fix *t = *state;
	struct ornic_gid_entry *gid = connect_in_vlans(t);
	uint64_t *cnt = t->a.d->dev.cnt;
	struct packet *p;

	gid[5] = gid[0];
	gid[0].flags = 0;
	for (int i = 1; i <= 2; i++) {
		peer_send(&t->peer, write_to(t, 0), arena(t, 1), 8);
		assert_int_equal(cnt[CNT_bad_gid], i);
	}
	gid[0] = gid[5];
	gid[0].gid[15] ^= 0x40;
	p = write_to(t, 0);
	memcpy(p->dgid, gid[5].gid, sizeof(p->dgid));
	peer_send(&t->peer, p, arena(t, 1), 8);
	assert_int_equal(cnt[CNT_bad_gid], 3);
	peer_quiet(&t->peer);
	peer_send(&t->peer, write_to(t, 0), arena(t, 1), 8);
	peer_expect_ack(&t->peer, AETH_ACK | AETH_NO_CREDITS, 0);
	assert_int_equal(cnt[CNT_bad_gid], 3);
}

/* The index of a path may be behind the table; the sanitizers check that it is not read then. */
static void test_gid_index(void **state)
{
	struct fix *t = *state;
	struct device *dev = &t->a.d->dev;

	dev->port.gid[DEVICE_GIDS - 1] = dev->port.gid[0];
	assert_ptr_equal(device_gid(dev, DEVICE_GIDS - 1), &dev->port.gid[DEVICE_GIDS - 1]);
	assert_null(device_gid(dev, DEVICE_GIDS));
	assert_null(device_gid(dev, 0xffff));
	assert_null(device_gid(dev, 5));
}

/* ORN-QP-17: accepted reads are answered, although the limit is lower now. */
static void test_fewer_resources(void **state)
{
	struct fix *t = *state;
	uint32_t psn = 0;

	peer_connect(&t->peer, &t->a, 0, 0);
	for (int i = 0; i < 4; i++) {
		struct packet *p = peer_packet(&t->peer, &t->a, BTH_RC_READ_REQUEST, psn);

		p->va = t->arena[0] + FIRST;
		p->rkey = t->key[0][0];
		p->dmalen = 4096;
		p->len = 0;
		p->nseg = 0;
		switch_send(t->peer.port, p);
		engine_drain(&t->w.e);
		psn += 4;
	}
	assert_null(peer_next(&t->peer));
	t->a.qp.max_dest_rd_atomic = 1;
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	for (uint32_t bytes = 0; bytes < 4 * 4096;) {
		struct seen *s = peer_next(&t->peer);

		assert_non_null(s);
		assert_int_equal(s->p.psn, bytes / 1024);
		bytes += s->p.len;
	}
	peer_quiet(&t->peer);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
}

/* ORN-WQE-21: no event, no flag, no receive; and the next request is not affected. */
static void test_solicited_write(void **state)
{
	struct fix *t = *state;
	struct wr write = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = t->arena[1] + FIRST,
			    .rkey = t->key[1][0],
			    .flags = ORNIC_WQE_SIGNALED | ORNIC_WQE_SOLICITED };
	struct wr read = write, send = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct ornic_cqe cqe;

	read.opcode = ORNIC_WR_RDMA_READ;
	wr_sge(&write, t->arena[0] + FIRST, 64, t->key[0][0]);
	wr_sge(&read, t->arena[0] + FIRST, 64, t->key[0][0]);
	wr_sge(&send, t->arena[0] + FIRST, 64, t->key[0][0]);
	again(t);
	conn_recv(&t->b, t->arena[1] + FIRST, 64, t->key[1][0]);
	conn_send(&t->a, &write);
	conn_send(&t->a, &read);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_RDMA_WRITE, 0);
	conn_expect(&t->a, &t->a.hscq, 1, ORNIC_WC_RDMA_READ, 0);
	conn_quiet(&t->b);
	conn_send(&t->a, &send);
	world_run(&t->w);
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	assert_int_equal(le32toh(cqe.flags) & ORNIC_CQE_SOLICITED, 0);
}

static uint32_t owned_pd(struct inproc *p, uint32_t owner)
{
	struct ornic_pd_create_cmd cmd = { .owner = htole32(owner) };

	assert_int_equal(host_exec(&p->host, ORNIC_OP_PD_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	return host_number(&p->host);
}

static uint32_t owned_key(struct inproc *p, uint32_t pd, uint32_t owner)
{
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_REGION, .pd = htole32(pd), .owner = htole32(owner),
		.access = htole32(RW), .iova = htole64(INPROC_BASE), .length = htole64(4096),
		.pages = host_contiguous(INPROC_BASE),
	};

	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	return host_number(&p->host);
}

/* ORN-SEC-2: several owners share a domain, and a key of another domain is rejected. */
static void test_owner(void **state)
{
	struct inproc *p = *state;
	uint32_t pd = owned_pd(p, 5), other = owned_pd(p, 7);
	uint32_t stranger = owned_key(p, pd, 6), own = owned_key(p, other, 7);
	struct ornic_qp_create_cmd cmd;
	struct ornic_cqe cqe;
	struct host_qp qp;

	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, pd, p->cq.number, p->cq.number, &cmd);
	cmd.owner = htole32(7);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	qp.number = host_number(&p->host);
	inproc_connect_self(p, &qp);
	host_send(&qp, ORNIC_WR_RDMA_WRITE, INPROC_BASE, 8, stranger, INPROC_BASE + 8, stranger);
	assert_true(host_wait(&p->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	host_send(&qp, ORNIC_WR_RDMA_WRITE, INPROC_BASE, 8, own, INPROC_BASE + 8, stranger);
	assert_true(host_wait(&p->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_LOC_PROT_ERR);
}

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ?
	       __sanitizer_get_current_allocated_bytes() : mallinfo2().uordblks;
}

/* Packets of every opcode, to existing and missing queue pairs */
static void flood(struct fix *t, struct conn *ud, uint32_t packets)
{
	static const uint8_t data[64];

	for (uint32_t n = 0; n < packets; n++) {
		struct packet *p = peer_packet(&t->peer, n % 2 ? ud : &t->a, n / 4 % 256, n);

		if (n % 8 == 1)
			p->opcode = BTH_UD_SEND_ONLY;
		if (n % 8 == 3)
			p->dqpn = n;
		p->rkey = t->key[0][0];
		p->va = t->arena[0] + FIRST;
		p->dmalen = 64;
		p->qkey = ud->qp.qkey;
		p->len = sizeof(data);
		p->nseg = 1;
		p->seg[0] = (struct seg){ (uint8_t *)data, sizeof(data) };
		switch_send(t->peer.port, p);
		engine_drain(&t->w.e);
		world_run(&t->w);
		/* The peer's memory of received packets is no memory of the device. */
		for (; t->peer.nin; t->peer.nin--) {
			free(t->peer.in[t->peer.nin - 1]->data);
			free(t->peer.in[t->peer.nin - 1]);
		}
	}
}

/* ORN-ERR-5: the same memory use after many errors as after a few. */
static void test_flood(void **state)
{
	static const struct conn_opt type = { .type = ORNIC_QPT_UD };
	struct fix *t = *state;
	struct conn ud;
	size_t before;

	conn_init(&ud, t->a.d, &type);
	conn_rts(&ud);
	peer_connect(&t->peer, &t->a, 0, 0);
	flood(t, &ud, 20000);
	assert_int_not_equal(t->a.d->dev.backlog_bytes, 0);
	before = allocated();
	flood(t, &ud, 100000);
	assert_true(allocated() <= before);
	conn_fini(&ud);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_random_addresses), TEST(test_other_keys), TEST(test_source_port),
		TEST(test_source), TEST(test_other_gid), TEST(test_other_gid_types),
		TEST(test_gid_changes), TEST(test_gid_index), TEST(test_path_fields), TEST(test_mtu),
		TEST(test_not_for_this_type), TEST(test_receiving_states), TEST(test_attach),
		TEST(test_fewer_resources), TEST(test_solicited_write),
		TEST(test_flood),
		cmocka_unit_test_setup_teardown(test_owner, inproc_setup_ready, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
