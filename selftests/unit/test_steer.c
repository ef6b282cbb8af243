// SPDX-License-Identifier: GPL-2.0
/*
 * Receive rules: the commands (dev/steer.c) and the receivers of each frame (engine/steer.c). All
 * queue pairs are of one function, which gets its own frames to itself and to groups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/cq.h>
#include <ornic/mr.h>
#include <ornic/qp.h>
#include <ornic/steer.h>
#include <ornic/wqe.h>
#include <endian.h>
#include "engine/qp.h"
#include "engine/rss.h"
#include "engine/steer.h"
#include "lib/inproc.h"
#include "lib/lines.h"

#include "net/switch.h"
#include "packet/bth.h"
#include "packet/frames.h"
#include "packet/ip.h"
#include <ornic/identify.h>
#include <ornic/port.h>

#define FRAME	128
#define BUF	256

/* Queue pairs of the fixture: the network interface, a sender and two users. */
enum who { NETDEV, SENDER, ALICE, BOB, WHO };

struct fixture {
	struct inproc *p;
	struct host_qp qp[WHO];
	uint32_t key;
	uint64_t tx;
	uint64_t rx;
	struct ornic_cqe got[WHO];
	unsigned int frames[WHO];
};

static const uint8_t own_mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t group_mac[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };
static const uint8_t other_mac[6] = { 2, 0, 0, 0, 0, 0x77 };

#define EXEC(f, op, number, cmd)	\
	host_exec(&(f)->p->host, ORNIC_OP_##op, number, &(cmd), sizeof(cmd), NULL, 0)

static void raw_create(struct fixture *f, enum who who, uint32_t flags)
{
	struct ornic_qp_modify_cmd mod = {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_PORT),
		.next_state = ORNIC_QPS_INIT,
		.port = 1,
	};
	struct host_qp *qp = &f->qp[who];
	struct ornic_qp_create_cmd cmd;

	host_qp_template(&f->p->host, qp, ORNIC_QPT_RAW, 4, f->p->pd, f->p->cq.number,
			 f->p->cq.number, &cmd);
	cmd.flags = htole32(flags);
	assert_int_equal(EXEC(f, QP_CREATE, 0, cmd), ORNIC_ST_OK);
	qp->number = host_number(&f->p->host);
	assert_int_equal(host_qp_state(qp, &mod), ORNIC_ST_OK);
	mod.mask = htole32(ORNIC_QPM_STATE);
	for (mod.next_state = ORNIC_QPS_RTR; mod.next_state <= ORNIC_QPS_RTS; mod.next_state++)
		assert_int_equal(host_qp_state(qp, &mod), ORNIC_ST_OK);
	for (int i = 0; i < 8; i++)
		host_recv(qp, f->rx + who * BUF, BUF, f->key);
}

static struct ornic_rule_cmd rule_for(const struct fixture *f, uint8_t kind, enum who who)
{
	return (struct ornic_rule_cmd) {
		.kind = kind,
		.port = 1,
		.target = htole32(f->qp[who].number),
	};
}

static uint32_t add(struct fixture *f, struct ornic_rule_cmd rule)
{
	assert_int_equal(EXEC(f, RULE_CREATE, 0, rule), ORNIC_ST_OK);
	return host_number(&f->p->host);
}

static void del(struct fixture *f, uint32_t rule)
{
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_RULE_DESTROY, rule, NULL, 0, NULL, 0),
			 ORNIC_ST_OK);
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	struct host *h;

	inproc_setup_ready((void **)&f->p);
	h = &f->p->host;
	f->tx = dma_alloc(&h->dma, BUF, 4096);
	f->rx = dma_alloc(&h->dma, WHO * BUF, 4096);
	assert_int_equal(host_key_create(h, f->p->pd, f->tx, f->rx + WHO * BUF - f->tx,
					 ORNIC_ACCESS_LOCAL_WRITE, &f->key), ORNIC_ST_OK);
	assert_int_equal(host_port_up(h, 0), ORNIC_ST_OK);
	raw_create(f, NETDEV, ORNIC_QP_F_DRIVER);
	for (enum who who = SENDER; who < WHO; who++)
		raw_create(f, who, 0);
	add(f, rule_for(f, ORNIC_RULE_UNICAST, NETDEV));
	add(f, rule_for(f, ORNIC_RULE_MULTICAST, NETDEV));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	inproc_teardown((void **)&f->p);
	test_free(f);
	return 0;
}

/* An IPv4 UDP frame from 1.1.1.1:1000 to 2.2.2.2:@dport. */
static uint8_t *frame(struct fixture *f, const uint8_t dmac[6], uint16_t dport)
{
	static const uint8_t headers[] = {
		2, 0, 0, 0, 0, 9, 8, 0,
		0x45, 0, 0, FRAME - 14, 0, 0, 0, 0, 64, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2,
		1000 >> 8, 1000 & 0xff, 0, 0, 0, FRAME - 34, 0, 0,
	};
	uint8_t *p = dma_at(&f->p->host.dma, f->tx);

	memset(p, 0x5a, FRAME);
	memcpy(p, dmac, 6);
	memcpy(p + 6, headers, sizeof(headers));
	p[36] = dport >> 8;
	p[37] = dport;
	return p;
}

/* Count the frames that each queue pair received. Return: true if one was sent. */
static bool collect(struct fixture *f)
{
	struct ornic_cqe cqe;
	bool sent = false;

	memset(f->frames, 0, sizeof(f->frames));
	while (host_next(&f->p->cq, &cqe)) {
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
		if (cqe.opcode == ORNIC_WC_SEND) {
			sent = true;
			continue;
		}
		for (enum who who = NETDEV; who < WHO; who++) {
			if (le32toh(cqe.qpn) != f->qp[who].number)
				continue;
			f->frames[who]++;
			f->got[who] = cqe;
			host_recv(&f->qp[who], f->rx + who * BUF, BUF, f->key);
		}
	}
	return sent;
}

/* Send the frame of frame() from @who; collect its receivers. */
static void send_from(struct fixture *f, enum who from)
{
	struct host_qp *qp = &f->qp[from];
	struct ornic_wqe_ctrl *ctrl = host_sq_slot(qp);
	struct ornic_wqe_eth *eth = (struct ornic_wqe_eth *)(ctrl + 1);
	struct ornic_sge *sge = (struct ornic_sge *)(eth + 1);

	ctrl->opcode = ORNIC_WR_SEND;
	ctrl->flags = ORNIC_WQE_SIGNALED;
	ctrl->count = htole16(1);
	sge->addr = htole64(f->tx);
	sge->length = htole32(FRAME);
	sge->lkey = htole32(f->key);
	host_sq_publish(qp);
	for (int i = 0; i < 20; i++)
		inproc_turn(f->p);
	assert_true(collect(f));
}

/*
 * Check the receivers of @dmac, UDP port 5000, from SENDER: one character each, in order N, A,
 * B.
 */
static void expect(struct fixture *f, const uint8_t dmac[6], const char *who)
{
	uint64_t dropped = inproc_counter(f->p, CNT_rx_drop_rule);
	char got[4] = "", *at = got;

	frame(f, dmac, 5000);
	send_from(f, SENDER);
	if (f->frames[NETDEV])
		*at++ = 'N';
	if (f->frames[ALICE])
		*at++ = 'A';
	if (f->frames[BOB])
		*at++ = 'B';
	assert_string_equal(got, who);
	for (enum who w = NETDEV; w < WHO; w++)
		assert_true(f->frames[w] <= 1);
	assert_int_equal(f->frames[SENDER], 0);
	if (!(dmac[0] & 1) && dmac[5] == own_mac[5])
		assert_int_equal(inproc_counter(f->p, CNT_rx_drop_rule) - dropped, !*who);
}

/* A rule for UDP port 5000. */
static struct ornic_rule_cmd port_rule(struct fixture *f, enum who who, uint16_t priority)
{
	struct ornic_rule_cmd r = rule_for(f, ORNIC_RULE_MATCH, who);

	r.priority = htole16(priority);
	r.fields = htole32(ORNIC_MATCH_DST_PORT | ORNIC_MATCH_PROTOCOL);
	r.value.protocol = 17;
	r.mask.protocol = 0xff;
	r.value.dst_port = htobe16(5000);
	r.mask.dst_port = 0xffff;
	return r;
}

static void refuse(struct fixture *f, const struct ornic_rule_cmd *rule, uint8_t status,
		   size_t off)
{
	assert_int_equal(EXEC(f, RULE_CREATE, 0, *rule), status);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome), ORNIC_SYN_FIELD | off);
}

/* Change @member of a good rule to @val and expect it to be rejected. */
#define REFUSE(f, good, member, val, status) do {				\
	struct ornic_rule_cmd bad_ = (good);					\
										\
	bad_.member = (val);							\
	refuse(f, &bad_, status, (const char *)&bad_.member - (const char *)&bad_);	\
} while (0)

/* Queue pairs that get no frames: one that is not RAW, and one without a receive queue */
static void useless_targets(struct fixture *f, uint32_t number[2])
{
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;

	for (int raw = 0; raw < 2; raw++) {
		host_qp_template(&f->p->host, &qp, raw ? ORNIC_QPT_RAW : ORNIC_QPT_UD, 4, f->p->pd,
				 f->p->cq.number, f->p->cq.number, &cmd);
		if (raw)
			cmd.rq_log = ORNIC_NO_RING;
		assert_int_equal(EXEC(f, QP_CREATE, 0, cmd), ORNIC_ST_OK);
		number[raw] = host_number(&f->p->host);
	}
}

/* ORN-STEER-4, ORN-STEER-6, ORN-STEER-13, ORN-STEER-16, ORN-STEER-19 */
static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd good = port_rule(f, ALICE, 0);
	uint32_t useless[2];

	REFUSE(f, good, kind, ORNIC_RULE_SNIFFER, ORNIC_ST_UNSUPPORTED);
	REFUSE(f, good, kind, 99, ORNIC_ST_UNSUPPORTED);
	REFUSE(f, good, port, 0, ORNIC_ST_BAD_NUMBER);
	REFUSE(f, good, target_type, htole32(99), ORNIC_ST_UNSUPPORTED);
	REFUSE(f, good, target_type, htole32(0x01000000), ORNIC_ST_UNSUPPORTED);
	REFUSE(f, good, target, htole32(f->p->cq.number + 9999), ORNIC_ST_BAD_NUMBER);
	useless_targets(f, useless);
	for (int i = 0; i < 2; i++)
		REFUSE(f, good, target, htole32(useless[i]), ORNIC_ST_BAD_NUMBER);
	REFUSE(f, good, flow_tag, htole32(1 << 24), ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, flags, htole32(1), ORNIC_ST_RESERVED);
	REFUSE(f, good, flags, htole32(1u << 31), ORNIC_ST_RESERVED);
	REFUSE(f, good, counter_set, htole32(1), ORNIC_ST_RESERVED);
	for (int bit = 0; bit < 32; bit++)
		if (bit == 13 || bit == 14 || bit > 15)
			REFUSE(f, good, fields, htole32(1u << bit), ORNIC_ST_UNSUPPORTED);
	REFUSE(f, good, mask.dmac[0], 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, mask.tunnel_id, 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, mask.tcp_flags, 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, mask.mbz[29], 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, value.mbz[0], 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, value.ttl, 1, ORNIC_ST_BAD_PARAM);
	REFUSE(f, good, mbz[0], 1, ORNIC_ST_RESERVED);
	for (uint8_t kind = ORNIC_RULE_UNICAST; kind <= ORNIC_RULE_PROMISC; kind++) {
		struct ornic_rule_cmd r = rule_for(f, kind, ALICE);

		refuse(f, &r, ORNIC_ST_PERMISSION, offsetof(struct ornic_rule_cmd, target));
		REFUSE(f, r, flow_tag, htole32(1), ORNIC_ST_RESERVED);
		REFUSE(f, r, value.dmac[0], 1, ORNIC_ST_RESERVED);
		REFUSE(f, r, mask.dmac[0], 1, ORNIC_ST_RESERVED);
		REFUSE(f, r, target_type, htole32(ORNIC_TARGET_DROP), ORNIC_ST_UNSUPPORTED);
	}
	good = port_rule(f, ALICE, 0);
	good.target_type = htole32(ORNIC_TARGET_DROP);
	refuse(f, &good, ORNIC_ST_RESERVED, offsetof(struct ornic_rule_cmd, target));
}

/* Send a frame of SENDER with source address @smac; return true if the network interface got it. */
static bool heard_from(struct fixture *f, const uint8_t smac[6])
{
	memcpy(frame(f, own_mac, 5000) + 6, smac, 6);
	send_from(f, SENDER);
	return f->frames[NETDEV];
}

static uint32_t port_flags(struct fixture *f)
{
	struct ornic_identify_port page;

	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &page,
				   sizeof(page)), ORNIC_ST_OK);
	return le32toh(page.flags);
}

static int set_mac(struct fixture *f, const uint8_t mac[6])
{
	struct ornic_port_modify_cmd cmd = { .mask = htole32(ORNIC_PORT_M_MAC) };

	memcpy(cmd.mac, mac, sizeof(cmd.mac));
	return EXEC(f, PORT_MODIFY, 1, cmd);
}

/* ORN-ETH-1, ORN-ETH-2, ORN-ETH-14, ORN-PORT-10 */
static void test_anti_spoof(void **state)
{
	struct fixture *f = *state;
	uint64_t dropped = inproc_counter(f->p, CNT_tx_drop);
	const struct antispoof mac_only = { 0 };

	assert_false(port_flags(f) & ORNIC_PORT_F_ANTI_SPOOF);
	assert_true(heard_from(f, other_mac));
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000001, other_mac), ORNIC_ST_OK);
	function_port_policy(f->p->f, &mac_only, true);
	assert_int_equal(port_flags(f), ORNIC_PORT_F_ANTI_SPOOF | ORNIC_PORT_F_PROMISC |
			 ORNIC_PORT_F_SHARED);
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop), dropped);
	assert_false(heard_from(f, other_mac));
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop), dropped + 1);
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop_spoof), 1);
	assert_true(heard_from(f, own_mac));
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000001, other_mac),
			 ORNIC_ST_PERMISSION);
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000001, own_mac), ORNIC_ST_OK);
	assert_int_equal(set_mac(f, other_mac), ORNIC_ST_PERMISSION);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome),
			 ORNIC_SYN_FIELD | offsetof(struct ornic_port_modify_cmd, mac));
	assert_int_equal(set_mac(f, own_mac), ORNIC_ST_OK);
	assert_true(heard_from(f, own_mac));
}

/* Send a frame of SENDER from an IPv4 address; return true if the network interface got it. */
static bool heard_from_ip(struct fixture *f, uint8_t last)
{
	uint8_t *p = frame(f, own_mac, 5000);

	memcpy(p + 6, own_mac, 6);
	memcpy(p + 26, (uint8_t[]) { 10, 0, 0, last }, 4);
	send_from(f, SENDER);
	return f->frames[NETDEV];
}

static int set_gid6(struct fixture *f, const char *gid)
{
	struct ornic_gid_entry cmd = {
		.port = 1,
		.type = ORNIC_GID_ROCEV2,
		.index = htole16(1),
		.flags = htole32(ORNIC_GID_VALID),
	};

	memcpy(cmd.gid, gid, sizeof(cmd.gid));
	memcpy(cmd.smac, own_mac, sizeof(cmd.smac));
	return EXEC(f, SET_GID, 1, cmd);
}

/* ORN-ETH-15, ORN-ETH-16, ORN-ETH-17, ORN-SEC-8: IP addresses, too */
static void test_anti_spoof_ip(void **state)
{
	static const char link_local[] = "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\1";
	static const char other_link_local[] = "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\2";
	struct antispoof source = { .ip = true, .n = 1 };
	struct ornic_gid_entry entry = { 0 };
	struct fixture *f = *state;
	uint64_t dropped = inproc_counter(f->p, CNT_tx_drop);

	assert_null(antispoof_parse(&source.prefix[0], "10.0.0.1"));
	assert_true(heard_from_ip(f, 2));
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000002, own_mac), ORNIC_ST_OK);
	function_port_policy(f->p->f, &source, true);
	assert_int_equal(port_flags(f), ORNIC_PORT_F_ANTI_SPOOF | ORNIC_PORT_F_ANTI_SPOOF_IP |
			 ORNIC_PORT_F_PROMISC | ORNIC_PORT_F_SHARED);
	assert_true(heard_from_ip(f, 1));
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop), dropped);
	assert_false(heard_from_ip(f, 2));
	assert_false(heard_from(f, other_mac));
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop), dropped + 2);
	assert_int_equal(inproc_counter(f->p, CNT_tx_drop_spoof), 2);

	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000002, own_mac), ORNIC_ST_PERMISSION);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome),
			 ORNIC_SYN_FIELD | offsetof(struct ornic_gid_entry, gid));
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000001, other_mac),
			 ORNIC_ST_PERMISSION);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome),
			 ORNIC_SYN_FIELD | offsetof(struct ornic_gid_entry, smac));
	assert_int_equal(host_gid_set(&f->p->host, 0, 0x0a000001, own_mac), ORNIC_ST_OK);
	assert_int_equal(set_gid6(f, other_link_local), ORNIC_ST_PERMISSION);
	assert_int_equal(set_gid6(f, link_local), ORNIC_ST_OK);
	/* An entry with another address can still be deleted. */
	entry.port = 1;
	memcpy(entry.gid, other_link_local, sizeof(entry.gid));
	assert_int_equal(EXEC(f, SET_GID, 1, entry), ORNIC_ST_OK);
	/* Illegal values are the first thing that is rejected. */
	assert_int_equal(set_gid6(f, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1"),
			 ORNIC_ST_BAD_PARAM);
}

/* The log has one line a minute, with the number of frames so far. */
static void test_anti_spoof_log(void **state)
{
	struct antispoof source = { .ip = true };
	struct fixture *f = *state;
	char want[300];

	function_port_policy(f->p->f, &source, true);
	lines_begin();
	for (int i = 0; i < 3; i++)
		assert_false(heard_from_ip(f, 2));
	f->p->f->dev.port.spoof_quiet -= 61 * 1000000000ull;
	for (int i = 0; i < 3; i++)
		assert_false(heard_from(f, other_mac));
	snprintf(want, sizeof(want),
		 "ornicd: warning: %1$s: anti-spoof: frame dropped: source IP address not allowed (tx_drop_spoof: 1; reported once a minute)\n"
		 "ornicd: warning: %1$s: anti-spoof: frame dropped: not the device's MAC address (tx_drop_spoof: 4; reported once a minute)\n",
		 f->p->f->dev.name);
	lines_end(want);
}

static void ignore(void *arg, const struct packet *p)
{
	(void)arg;
	(void)p;
}

/* Send a packet by a port to the outside. */
static void send_packet(struct fixture *f, struct packet *p)
{
	static const struct switch_port_ops ops = { .deliver = ignore };
	struct switch_port *port = switch_port_add(f->p->engine.sw, "peer", &ops, NULL);

	assert_non_null(port);
	switch_port_set_up(port, true);
	switch_send(port, p);
	engine_drain(&f->p->engine);
	switch_port_del(port);
}

/* Send a frame of another station to @dmac, UDP port 5000; return true if Alice got it. */
static bool overheard(struct fixture *f, const uint8_t dmac[6])
{
	struct packet *p = packet_get(&f->p->engine.pool);
	struct ornic_cqe cqe;
	bool got;

	assert_non_null(p);
	p->kind = PACKET_ETHERNET;
	p->len = FRAME;
	p->nseg = 1;
	p->seg[0] = (struct seg){ frame(f, dmac, 5000), FRAME };
	memcpy(p->dmac, dmac, sizeof(p->dmac));
	send_packet(f, p);
	got = host_next(&f->p->cq, &cqe);
	if (got)
		assert_int_equal(le32toh(cqe.qpn), f->qp[ALICE].number);
	return got;
}

/* ORN-STEER-5, ORN-STEER-23 */
static void test_no_promisc(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd promisc = rule_for(f, ORNIC_RULE_PROMISC, NETDEV);
	struct ornic_rule_cmd leftover = port_rule(f, ALICE, 0);
	uint32_t rule = add(f, leftover);
	uint64_t dropped;

	assert_true(port_flags(f) & ORNIC_PORT_F_PROMISC);
	assert_true(overheard(f, other_mac));
	del(f, rule);
	leftover.flags = htole32(ORNIC_RULE_F_LEFTOVER);
	rule = add(f, leftover);
	assert_true(overheard(f, other_mac));
	del(f, rule);
	/* The switch no longer delivers the frame, so there is none to drop. */
	dropped = inproc_counter(f->p, CNT_rx_drop_rule);
	assert_false(overheard(f, other_mac));
	assert_int_equal(inproc_counter(f->p, CNT_rx_drop_rule), dropped);
	function_port_policy(f->p->f, NULL, false);
	assert_int_equal(port_flags(f), ORNIC_PORT_F_MAC_CHANGE | ORNIC_PORT_F_SHARED);
	refuse(f, &promisc, ORNIC_ST_PERMISSION, offsetof(struct ornic_rule_cmd, kind));
	add(f, port_rule(f, ALICE, 0));
	assert_false(overheard(f, other_mac));
	assert_true(overheard(f, own_mac));
	assert_true(overheard(f, group_mac));
}

/* A frame to another address reaches promiscuous mode, unless a rule drops it (ORN-STEER-1). */
static void test_promisc(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd drop = port_rule(f, NETDEV, 0);

	add(f, rule_for(f, ORNIC_RULE_PROMISC, NETDEV));
	for (int dropped = 0; dropped < 2; dropped++) {
		struct packet *p = packet_get(&f->p->engine.pool);

		assert_non_null(p);
		p->kind = PACKET_ETHERNET;
		p->len = FRAME;
		p->nseg = 1;
		p->seg[0] = (struct seg){ frame(f, other_mac, 5000), FRAME };
		memcpy(p->dmac, other_mac, sizeof(p->dmac));
		send_packet(f, p);
		collect(f);
		assert_int_equal(f->frames[NETDEV], !dropped);
		assert_int_equal(inproc_counter(f->p, CNT_rx_drop_rule), dropped);
		drop.target_type = htole32(ORNIC_TARGET_DROP);
		drop.target = 0;
		if (!dropped)
			add(f, drop);
	}
}

/*
 * A RoCE packet of the function that fault injection truncated is a frame that no RAW queue pair
 * sent: the network interface does not receive it, others may (ORN-STEER-11).
 */
static void test_truncated_roce(void **state)
{
	static struct qp ud = { .type = ORNIC_QPT_UD };
	struct fixture *f = *state;
	struct device *dev = &f->p->f->dev;

	for (int i = 0; i < 4; i++) {
		struct packet p = {
			.kind = PACKET_ETHERNET, .from = dev->port.sw, .len = FRAME, .nseg = 1,
			.sender = i % 2 ? &ud : NULL,
		};

		if (i == 2)
			add(f, port_rule(f, ALICE, 0));
		p.seg[0] = (struct seg){ frame(f, own_mac, 5000), FRAME };
		memcpy(p.dmac, own_mac, sizeof(p.dmac));
		steer_receive(dev, &p);
		collect(f);
		assert_int_equal(f->frames[NETDEV], 0);
		assert_int_equal(f->frames[ALICE], i / 2);
	}
	assert_int_equal(inproc_counter(f->p, CNT_rx_drop_rule), 2);
}

/* ORN-STEER-18 */
static void test_not_negotiated(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd rule = port_rule(f, ALICE, 0);

	f->p->f->dev.features &= ~ORNIC_FEATURE(STEER);
	refuse(f, &rule, ORNIC_ST_UNSUPPORTED, 0);
}

/* As many as Identify says, and again after all are destroyed. */
static void test_limit(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd rule = port_rule(f, ALICE, 0);

	for (int round = 0; round < 2; round++) {
		uint32_t n[LIMIT_RULES - 2];

		for (int i = 0; i < LIMIT_RULES - 2; i++)
			n[i] = add(f, rule);
		assert_int_equal(EXEC(f, RULE_CREATE, 0, rule), ORNIC_ST_LIMIT);
		for (int i = 0; i < LIMIT_RULES - 2; i++)
			del(f, n[(i * 7) % (LIMIT_RULES - 2)]);
	}
	expect(f, own_mac, "N");
}

/* ORN-STEER-1, ORN-STEER-7: a MATCH rule is first, and one taker is enough. */
static void test_unicast(void **state)
{
	struct fixture *f = *state;
	uint32_t alice, bob;

	expect(f, own_mac, "N");
	alice = add(f, port_rule(f, ALICE, 1));
	expect(f, own_mac, "A");
	frame(f, own_mac, 5001);
	send_from(f, SENDER);
	assert_int_equal(f->frames[NETDEV], 1);
	bob = add(f, port_rule(f, BOB, 1));
	expect(f, own_mac, "A");
	del(f, bob);
	bob = add(f, port_rule(f, BOB, 0));
	expect(f, own_mac, "B");
	del(f, bob);
	expect(f, own_mac, "A");
	del(f, alice);
	expect(f, own_mac, "N");
}

/* ORN-STEER-1, ORN-STEER-17: all members get a group's frame, each once. */
static void test_multicast(void **state)
{
	struct fixture *f = *state;

	expect(f, group_mac, "N");
	add(f, port_rule(f, ALICE, 1));
	add(f, port_rule(f, ALICE, 2));
	add(f, port_rule(f, BOB, 3));
	add(f, rule_for(f, ORNIC_RULE_MATCH, BOB));
	expect(f, group_mac, "NAB");
	expect(f, own_mac, "B");
}

/* ORN-STEER-2 */
static void test_drop(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd drop = port_rule(f, ALICE, 5);
	uint32_t n;

	drop.target_type = htole32(ORNIC_TARGET_DROP);
	drop.target = 0;
	n = add(f, drop);
	expect(f, own_mac, "");
	expect(f, group_mac, "");
	add(f, port_rule(f, ALICE, 4));
	add(f, port_rule(f, BOB, 6));
	expect(f, own_mac, "A");
	expect(f, group_mac, "A");
	del(f, n);
	expect(f, group_mac, "NAB");
}

/* ORN-STEER-22 */
static void test_copy(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd copy = port_rule(f, ALICE, 0);
	uint32_t bob;

	copy.flags = htole32(ORNIC_RULE_F_COPY);
	add(f, copy);
	expect(f, own_mac, "NA");
	bob = add(f, port_rule(f, BOB, 1));
	expect(f, own_mac, "AB");
	del(f, bob);
	add(f, copy);
	expect(f, own_mac, "NA");
}

/* ORN-STEER-1: the catch-all rules come after the network interface. */
static void test_leftover(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd all = rule_for(f, ORNIC_RULE_MATCH, ALICE);
	struct ornic_rule_cmd mc = rule_for(f, ORNIC_RULE_MATCH, BOB);
	struct ornic_rule_cmd promisc = rule_for(f, ORNIC_RULE_PROMISC, NETDEV);
	uint32_t mac, bob, any;

	all.flags = htole32(ORNIC_RULE_F_LEFTOVER);
	mc.flags = htole32(ORNIC_RULE_F_LEFTOVER);
	mc.fields = htole32(ORNIC_MATCH_DMAC);
	mc.value.dmac[0] = 1;
	mc.mask.dmac[0] = 1;
	add(f, mc);
	expect(f, group_mac, "NB");
	expect(f, own_mac, "N");
	mac = add(f, all);
	expect(f, group_mac, "NAB");
	expect(f, own_mac, "N");
	/* once for a rule of each list, or for a taken frame in promiscuous mode */
	bob = add(f, port_rule(f, BOB, 0));
	any = add(f, promisc);
	expect(f, group_mac, "NAB");
	del(f, bob);
	del(f, any);
	/* without the network interface */
	f->p->f->dev.port.unicast = NULL;
	expect(f, own_mac, "A");
	del(f, mac);
	expect(f, own_mac, "");
	f->p->f->dev.port.unicast = table_get(&f->p->f->dev.qps, f->qp[NETDEV].number);
}

/* Frames from the network interface to a group: users get them, it does not (ORN-STEER-11). */
static void test_echo(void **state)
{
	struct fixture *f = *state;

	frame(f, group_mac, 5000);
	send_from(f, NETDEV);
	assert_int_equal(f->frames[NETDEV] + f->frames[ALICE] + f->frames[BOB], 0);
	add(f, port_rule(f, ALICE, 0));
	add(f, port_rule(f, NETDEV, 1));
	send_from(f, NETDEV);
	assert_int_equal(f->frames[NETDEV], 0);
	assert_int_equal(f->frames[ALICE], 1);
	/* no queue pair gets its own frame; the next rule applies then */
	add(f, port_rule(f, BOB, 2));
	memcpy(frame(f, own_mac, 5000), own_mac, 6);
	send_from(f, ALICE);
	assert_int_equal(f->frames[ALICE], 0);
	assert_int_equal(f->frames[NETDEV], 1);
	assert_int_equal(f->frames[BOB], 0);
}

/*
 * Promiscuous mode is only for rules with a target that a unicast frame to another address may
 * match, in either list, by any bit of the address.
 */
static void test_wants_foreign(void **state)
{
	static const struct {
		uint8_t value[6];
		uint8_t mask[6];
		bool wants;
	} cases[] = {
		{ { 2, 0, 0, 0, 0, 1 }, { 255, 255, 255, 255, 255, 255 }, false },
		{ { 2, 0, 0, 0, 0, 0 }, { 255, 255, 255, 255, 255, 255 }, true },
		{ { 4, 0, 0, 0, 0, 1 }, { 255, 255, 255, 255, 255, 255 }, true },
		{ { 2, 0, 0, 0, 0, 1 }, { 255, 255, 255, 255, 255, 254 }, true },
		{ { 2, 0, 0, 0, 0, 1 }, { 127, 255, 255, 255, 255, 255 }, true },
		{ { 0 }, { 0 }, true },
		{ { 1 }, { 1 }, false },			/* multicast */
		{ { 3, 0, 0, 0, 0, 1 }, { 255, 255, 255, 255, 255, 255 }, false },
	};
	const size_t dmac = offsetof(struct ornic_rule_match, dmac);
	const size_t smac = offsetof(struct ornic_rule_match, smac);

	(void)state;
	for (size_t i = 0; i < 6 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct steer_rule r = { .flags = i & 1 ? ORNIC_RULE_F_LEFTOVER : 0 };
		struct steer_rule drop = { .flags = r.flags };
		struct port port = {};
		static struct qp qp;
		static struct rss rss;

		memcpy(port.mac, own_mac, 6);
		memcpy((uint8_t *)r.value + dmac, cases[i / 6].value, 6);
		memcpy((uint8_t *)r.mask + dmac, cases[i / 6].mask, 6);
		memset((uint8_t *)r.mask + smac, 0xff, 6);	/* does not matter */
		r.qp = i / 2 % 3 == 1 ? &qp : NULL;
		r.rss = i / 2 % 3 == 2 ? &rss : NULL;
		steer_add(&port, &drop);
		steer_add(&port, &r);
		assert_int_equal(steer_wants_foreign(&port),
				 cases[i / 6].wants && (r.qp || r.rss));
	}
}

/* Frames to others leave the function and do not come back, for any rules. */
static void test_foreign(void **state)
{
	struct fixture *f = *state;

	add(f, rule_for(f, ORNIC_RULE_MATCH, ALICE));
	expect(f, other_mac, "");
}

/* ORN-STEER-21 */
static void test_flow_tag(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd rule = port_rule(f, ALICE, 0);

	rule.flow_tag = htole32(0xffffff);		/* the largest one */
	del(f, add(f, rule));
	rule.flow_tag = htole32(0xabcdef);
	add(f, rule);
	expect(f, group_mac, "NA");
	assert_int_equal(le32toh(f->got[ALICE].src_qp), 0xabcdef);
	assert_true(le32toh(f->got[ALICE].flags) & ORNIC_CQE_FLOW_TAG);
	assert_int_equal(f->got[NETDEV].src_qp, 0);
	assert_false(le32toh(f->got[NETDEV].flags) & ORNIC_CQE_FLOW_TAG);
}

/* Every field alone: right value, wrong value, wrong value that the mask hides. */
static void test_fields(void **state)
{
	static const struct {
		uint32_t field;
		size_t off;
		size_t size;
		const char *value;
	} fields[] = {
#define F(bit, member, value)							\
	{ ORNIC_MATCH_##bit, offsetof(struct ornic_rule_match, member),		\
	  sizeof(((struct ornic_rule_match *)0)->member), value }
		F(DMAC, dmac, "\2\0\0\0\0\1"),
		F(SMAC, smac, "\2\0\0\0\0\11"),
		F(ETHERTYPE, ethertype, "\10\0"),
		F(SRC_IP, src_ip, "\0\0\0\0\0\0\0\0\0\0\377\377\1\1\1\1"),
		F(DST_IP, dst_ip, "\0\0\0\0\0\0\0\0\0\0\377\377\2\2\2\2"),
		F(SRC_PORT, src_port, "\3\350"),
		F(DST_PORT, dst_port, "\23\210"),
		F(IP_VERSION, ip_version, "\4"),
		F(PROTOCOL, protocol, "\21"),
		F(TOS, tos, "\0"),
		F(TTL, ttl, "\100"),
		F(IP_FRAG, ip_frag, "\0"),
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct ornic_rule_cmd rule = rule_for(f, ORNIC_RULE_MATCH, ALICE);
		uint8_t *value = (uint8_t *)&rule.value + fields[i].off;
		uint8_t *mask = (uint8_t *)&rule.mask + fields[i].off;
		size_t last = fields[i].size - 1;
		uint32_t n;

		rule.fields = htole32(fields[i].field);
		memcpy(value, fields[i].value, fields[i].size);
		memset(mask, 0xff, fields[i].size);
		n = add(f, rule);
		expect(f, own_mac, "A");
		del(f, n);
		value[last] ^= 0x80;
		n = add(f, rule);
		expect(f, own_mac, "N");
		del(f, n);
		value[last] &= 0x7f;
		mask[last] = 0x7f;
		n = add(f, rule);
		expect(f, own_mac, "A");
		del(f, n);
	}
}

/* A missing field of the frame never matches, even with an empty mask (ORN-STEER-20). */
static void test_absent(void **state)
{
	static const uint32_t absent[] = { ORNIC_MATCH_VLAN, ORNIC_MATCH_FLOW_LABEL };
	struct fixture *f = *state;
	struct ornic_rule_cmd rule = rule_for(f, ORNIC_RULE_MATCH, ALICE);
	uint8_t *p;

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		rule.fields = htole32(absent[i]);
		del(f, add(f, rule));
		add(f, rule);
		expect(f, own_mac, "N");
	}
	rule.fields = htole32(ORNIC_MATCH_SRC_PORT);
	add(f, rule);
	expect(f, own_mac, "A");
	/* ORN-STEER-14: a fragment has none */
	p = frame(f, own_mac, 5000);
	p[20] = 0x20;
	send_from(f, SENDER);
	assert_int_equal(f->frames[NETDEV], 1);
}

/* ORN-STEER-15 */
static void test_roce(void **state)
{
	struct fixture *f = *state;
	struct ornic_rule_cmd left = rule_for(f, ORNIC_RULE_MATCH, BOB);

	left.flags = htole32(ORNIC_RULE_F_LEFTOVER);
	add(f, rule_for(f, ORNIC_RULE_MATCH, ALICE));
	add(f, left);
	frame(f, own_mac, 4791);
	send_from(f, SENDER);
	assert_int_equal(f->frames[ALICE], 1);
	assert_int_equal(host_gid_set(&f->p->host, 3, 0x02020202, own_mac), ORNIC_ST_OK);
	send_from(f, SENDER);
	assert_int_equal(f->frames[ALICE] + f->frames[BOB], 0);
	assert_int_equal(f->frames[NETDEV], 1);
	expect(f, own_mac, "A");
}

/*
 * Receive a RoCE packet to @dmac and IPv4 address @to, with a wrong ICRC if @damaged;
 * collect its receivers. @outside: it came from an uplink; otherwise it was made in this daemon.
 */
static void receive_roce(struct fixture *f, const uint8_t dmac[6], const uint8_t to[4],
			 bool damaged, bool outside)
{
	struct packet *p = packet_get(&f->p->engine.pool), roce = {
		.kind = PACKET_ROCE, .opcode = BTH_UD_SEND_ONLY, .npsn = 1, .mtu = 1024,
		.hop_limit = 64, .pkey = BTH_DEFAULT_PKEY, .dqpn = BTH_MULTICAST_QPN,
	};
	uint8_t bytes[FRAMES_MAX_BYTES];
	struct frames_kept kept;
	struct frames cut;
	uint32_t len;

	assert_non_null(p);
	memcpy(roce.dmac, dmac, sizeof(roce.dmac));
	memcpy(roce.smac, other_mac, sizeof(roce.smac));
	ip_v4_gid(roce.sgid, (uint8_t[]) { 1, 1, 1, 1 });
	ip_v4_gid(roce.dgid, to);
	frames_begin(&cut, &roce);
	len = frames_next(&cut, bytes);
	bytes[len - 1] ^= damaged;
	assert_int_equal(frames_parse(p, bytes, len), damaged ? ROCE_BAD_ICRC : ROCE_PACKET);
	p->outside = outside;
	frames_keep(&kept, p);
	memset(p, 0, offsetof(struct packet, seg));
	frames_restore(p, bytes, len, &kept);		/* as a rate-limited link does */
	send_packet(f, p);
	collect(f);
}

/* Create a queue pair that is a member of the group with IPv4 address @to. */
static void join(struct fixture *f, struct host_qp *ud, const uint8_t to[4])
{
	struct ornic_rule_cmd rule = rule_for(f, ORNIC_RULE_MEMBER, NETDEV);
	uint32_t cq = f->p->cq.number;

	assert_int_equal(host_qp_create(&f->p->host, ud, ORNIC_QPT_UD, 4, f->p->pd, cq, cq), 0);
	rule.target = htole32(ud->number);
	ip_v4_gid((uint8_t *)&rule.value + ORNIC_MEMBER_GID, to);
	add(f, rule);
}

/*
 * ORN-PORT-19: a packet of this daemon that is not for the function reaches no rule, also if a
 * rate-limited link or a fault rule made a frame of it.
 */
static void test_roce_from_inside(void **state)
{
	static const uint8_t own[4] = { 2, 2, 2, 2 }, group[4] = { 224, 0, 0, 9 };
	struct fixture *f = *state;

	receive_roce(f, own_mac, own, false, false);
	assert_int_equal(inproc_counter(f->p, CNT_bad_gid), 1);
	receive_roce(f, group_mac, group, false, false);
	assert_int_equal(inproc_counter(f->p, CNT_bad_gid), 1);
	assert_int_equal(f->frames[NETDEV], 0);
	assert_int_equal(inproc_counter(f->p, CNT_rx_packets), 0);
}

/*
 * ORN-STEER-1, ORN-PORT-2: RoCEv2 from outside is offered to the rules unless it is to a GID of the
 * function, or to a group with members in it; a wrong ICRC changes nothing.
 */
static void test_roce_from_outside(void **state)
{
	static const uint8_t own[4] = { 2, 2, 2, 2 }, group[4] = { 224, 0, 0, 9 };
	struct fixture *f = *state;
	struct host_qp ud;

	for (int damaged = 0; damaged < 2; damaged++) {
		receive_roce(f, own_mac, own, damaged, true);
		assert_int_equal(f->frames[NETDEV], 1);
		assert_int_equal(le32toh(f->got[NETDEV].byte_len), 66);
		receive_roce(f, group_mac, group, damaged, true);
		assert_int_equal(f->frames[NETDEV], 1);
	}
	assert_int_equal(inproc_counter(f->p, CNT_rx_packets), 4);
	add(f, rule_for(f, ORNIC_RULE_MATCH, ALICE));
	receive_roce(f, own_mac, own, false, true);
	assert_int_equal(f->frames[ALICE], 1);
	assert_int_equal(f->frames[NETDEV], 0);
	receive_roce(f, group_mac, group, false, true);
	assert_int_equal(f->frames[ALICE] + f->frames[NETDEV], 2);
	assert_int_equal(inproc_counter(f->p, CNT_bad_gid), 0);
	/* the same packets, after the address and the group became those of the function */
	assert_int_equal(host_gid_set(&f->p->host, 3, 0x02020202, own_mac), ORNIC_ST_OK);
	join(f, &ud, group);
	receive_roce(f, own_mac, own, false, true);
	assert_int_equal(inproc_counter(f->p, CNT_bad_qpn), 1);
	receive_roce(f, own_mac, own, true, true);
	assert_int_equal(inproc_counter(f->p, CNT_icrc_errors), 1);
	receive_roce(f, group_mac, group, false, true);
	assert_int_equal(inproc_counter(f->p, CNT_rdma_rx_multicast), 1);
	assert_int_equal(inproc_counter(f->p, CNT_rx_packets), 6);
}

/* A target lives as long as its rules (ORN-QP-11); a reset removes all of them. */
static void test_lifetime(void **state)
{
	struct fixture *f = *state;
	uint32_t first = add(f, port_rule(f, ALICE, 0)), second = add(f, port_rule(f, ALICE, 0));
	struct host *h = &f->p->host;
	uint32_t qpn = f->qp[ALICE].number;

	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, qpn, NULL, 0, NULL, 0), ORNIC_ST_BUSY);
	del(f, first);
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, qpn, NULL, 0, NULL, 0), ORNIC_ST_BUSY);
	del(f, second);
	assert_int_equal(host_exec(h, ORNIC_OP_RULE_DESTROY, second, NULL, 0, NULL, 0),
			 ORNIC_ST_BAD_NUMBER);
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, qpn, NULL, 0, NULL, 0), ORNIC_ST_OK);
	add(f, port_rule(f, BOB, 0));
	inproc_flr(f->p);
	assert_null(f->p->f->dev.port.match);
	assert_null(f->p->f->dev.port.unicast);
	assert_int_equal(f->p->f->dev.rules.used, 0);
}

static struct ornic_rss_create_cmd group_of(const struct fixture *f)
{
	struct ornic_rss_create_cmd g = {
		.function = ORNIC_RSS_TOEPLITZ,
		.log_size = 1,
		.port = 1,
		.fields = htole32(ORNIC_RSS_SRC_IPV4 | ORNIC_RSS_DST_PORT_UDP),
		.table = { htole32(f->qp[ALICE].number), htole32(f->qp[BOB].number) },
	};

	for (int i = 0; i < ORNIC_RSS_KEY_BYTES; i++)
		g.key[i] = 0x6d + i * 41;
	return g;
}

static void refuse_group(struct fixture *f, const struct ornic_rss_create_cmd *g, uint8_t status,
			 size_t off)
{
	assert_int_equal(EXEC(f, RSS_CREATE, 0, *g), status);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome), ORNIC_SYN_FIELD | off);
}

#define REFUSE_GROUP(f, good, member, val, status) do {				\
	struct ornic_rss_create_cmd bad_ = (good);				\
										\
	bad_.member = (val);							\
	refuse_group(f, &bad_, status,						\
		     (const char *)&bad_.member - (const char *)&bad_);		\
} while (0)

/* ORN-RSS-1, ORN-RSS-2, ORN-RSS-3 */
static void test_group_refused(void **state)
{
	struct fixture *f = *state;
	struct ornic_rss_create_cmd good = group_of(f);
	struct ornic_rule_cmd rule = port_rule(f, ALICE, 0);
	uint32_t useless[2];

	useless_targets(f, useless);
	for (int i = 0; i < 2; i++)
		REFUSE_GROUP(f, good, table[1], htole32(useless[i]), ORNIC_ST_BAD_NUMBER);
	REFUSE_GROUP(f, good, function, 0, ORNIC_ST_UNSUPPORTED);
	REFUSE_GROUP(f, good, function, 2, ORNIC_ST_UNSUPPORTED);
	REFUSE_GROUP(f, good, log_size, ORNIC_RSS_LOG_MAX_TABLE + 1, ORNIC_ST_LIMIT);
	REFUSE_GROUP(f, good, log_size, 255, ORNIC_ST_LIMIT);
	REFUSE_GROUP(f, good, port, 2, ORNIC_ST_BAD_NUMBER);
	REFUSE_GROUP(f, good, fields, htole32(1 << 8), ORNIC_ST_UNSUPPORTED);
	REFUSE_GROUP(f, good, fields, htole32(1u << 31), ORNIC_ST_UNSUPPORTED);
	REFUSE_GROUP(f, good, mbz0, 1, ORNIC_ST_RESERVED);
	REFUSE_GROUP(f, good, mbz1, 1, ORNIC_ST_RESERVED);
	REFUSE_GROUP(f, good, mbz2, 1, ORNIC_ST_RESERVED);
	REFUSE_GROUP(f, good, table[0], 0, ORNIC_ST_BAD_NUMBER);
	REFUSE_GROUP(f, good, table[1], htole32(9999), ORNIC_ST_BAD_NUMBER);
	REFUSE_GROUP(f, good, table[2], good.table[0], ORNIC_ST_RESERVED);
	REFUSE_GROUP(f, good, table[255], good.table[0], ORNIC_ST_RESERVED);
	rule.target_type = htole32(ORNIC_TARGET_RSS);
	refuse(f, &rule, ORNIC_ST_BAD_NUMBER, offsetof(struct ornic_rule_cmd, target));
	f->p->f->dev.features &= ~ORNIC_FEATURE(RSS);
	refuse(f, &rule, ORNIC_ST_UNSUPPORTED, offsetof(struct ornic_rule_cmd, target_type));
	refuse_group(f, &good, ORNIC_ST_UNSUPPORTED, 0);
}

/* ORN-RSS-6, ORN-RSS-7 */
static void test_group_lifetime(void **state)
{
	struct fixture *f = *state;
	struct ornic_rss_create_cmd g = group_of(f);
	struct ornic_rule_cmd rule = port_rule(f, ALICE, 0);
	struct host *h = &f->p->host;
	uint32_t alice = f->qp[ALICE].number, bob = f->qp[BOB].number, group, n;

	assert_int_equal(EXEC(f, RSS_CREATE, 0, g), ORNIC_ST_OK);
	assert_int_equal(h->cpl.out_size, 0);
	group = host_number(h);
	assert_int_equal(group, 0x800000);	/* larger than the number of any queue pair */
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, alice, NULL, 0, NULL, 0), ORNIC_ST_BUSY);
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, bob, NULL, 0, NULL, 0), ORNIC_ST_BUSY);
	n = add(f, port_rule(f, BOB, 0));		/* a second user */
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, bob, NULL, 0, NULL, 0), ORNIC_ST_BUSY);
	del(f, n);
	rule.target_type = htole32(ORNIC_TARGET_RSS);
	rule.target = htole32(group);
	n = add(f, rule);
	assert_int_equal(host_exec(h, ORNIC_OP_RSS_DESTROY, group, NULL, 0, NULL, 0),
			 ORNIC_ST_BUSY);
	del(f, n);
	assert_int_equal(host_exec(h, ORNIC_OP_RSS_DESTROY, group, NULL, 0, NULL, 0), ORNIC_ST_OK);
	assert_int_equal(h->cpl.out_size, 0);
	assert_int_equal(host_exec(h, ORNIC_OP_RSS_DESTROY, group, NULL, 0, NULL, 0),
			 ORNIC_ST_BAD_NUMBER);
	assert_int_equal(host_exec(h, ORNIC_OP_QP_DESTROY, bob, NULL, 0, NULL, 0), ORNIC_ST_OK);
	/* the smallest and the largest table */
	g.log_size = 0;
	g.table[1] = 0;
	assert_int_equal(EXEC(f, RSS_CREATE, 0, g), ORNIC_ST_OK);
	g.log_size = ORNIC_RSS_LOG_MAX_TABLE;
	for (int i = 0; i < ORNIC_RSS_MAX_TABLE; i++)
		g.table[i] = g.table[0];
	assert_int_equal(EXEC(f, RSS_CREATE, 0, g), ORNIC_ST_OK);
	inproc_flr(f->p);
	assert_int_equal(f->p->f->dev.groups.used, 0);
}

/* ORN-RSS-4, ORN-RSS-5, ORN-RSS-8 */
static void test_group_delivery(void **state)
{
	struct fixture *f = *state;
	struct ornic_rss_create_cmd g = group_of(f);
	struct ornic_rule_cmd rule = rule_for(f, ORNIC_RULE_MATCH, ALICE);
	unsigned int got[WHO] = {};
	uint32_t fragment = 0;
	uint8_t *p;

	assert_int_equal(EXEC(f, RSS_CREATE, 0, g), ORNIC_ST_OK);
	rule.target_type = htole32(ORNIC_TARGET_RSS);
	rule.target = htole32(host_number(&f->p->host));
	add(f, rule);
	for (uint16_t port = 1; port < 64; port++) {
		const struct ornic_cqe *cqe;
		enum who who;

		frame(f, own_mac, port);
		send_from(f, SENDER);
		assert_int_equal(f->frames[ALICE] + f->frames[BOB], 1);
		who = f->frames[ALICE] ? ALICE : BOB;
		cqe = &f->got[who];
		got[who]++;
		assert_true(le32toh(cqe->flags) & ORNIC_CQE_HASH);
		assert_int_equal(cqe->rss_type, ORNIC_RSS_TYPE_IPV4 | ORNIC_RSS_TYPE_UDP);
		assert_int_equal(le32toh(cqe->rss_hash) & 1, who == BOB);
		p = frame(f, own_mac, port);
		p[20] = 0x20;
		send_from(f, SENDER);
		cqe = &f->got[f->frames[ALICE] ? ALICE : BOB];
		assert_int_equal(cqe->rss_type, ORNIC_RSS_TYPE_IPV4);
		assert_true(port == 1 || cqe->rss_hash == fragment);
		fragment = cqe->rss_hash;
	}
	assert_true(got[ALICE] > 10 && got[BOB] > 10);
	p = frame(f, own_mac, 1);
	p[12] = 0x99;
	send_from(f, SENDER);
	assert_int_equal(f->frames[ALICE], 1);
	assert_false(le32toh(f->got[ALICE].flags) & ORNIC_CQE_HASH);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_refused), TEST(test_anti_spoof), TEST(test_anti_spoof_ip),
		TEST(test_anti_spoof_log), TEST(test_no_promisc),
		TEST(test_promisc), TEST(test_truncated_roce),
		TEST(test_not_negotiated), TEST(test_limit),
		TEST(test_unicast), TEST(test_multicast), TEST(test_drop), TEST(test_copy),
		TEST(test_leftover), TEST(test_echo), TEST(test_foreign), TEST(test_wants_foreign),
		TEST(test_flow_tag),
		TEST(test_fields), TEST(test_absent), TEST(test_roce),
		TEST(test_roce_from_inside), TEST(test_roce_from_outside), TEST(test_lifetime),
		TEST(test_group_refused), TEST(test_group_lifetime), TEST(test_group_delivery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
