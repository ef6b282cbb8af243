// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: the receivers of a datagram, between functions and within one, and rejected
 * RULE_CREATE commands with kind MEMBER (ORN-MC).
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/fault.h"
#include "lib/fault_rule.h"
#include "lib/inproc.h"
#include "lib/peer.h"

#include <ornic/steer.h>

#define QKEY	0x11111111
#define BUF	65536
#define ALL	BTH_MULTICAST_QPN

static const uint8_t group4[16] = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 };
static const uint8_t group6[16] = { 0xff, 0x0e, [15] = 9 };

static bool no_random;

/* Replaces the C library's */
ssize_t getrandom(void *bytes, size_t len, unsigned int flags)
{
	if (!no_random)
		return syscall(SYS_getrandom, bytes, len, flags);
	errno = EAGAIN;
	return -1;
}

/* a sends, b and c are on the same function as a, d is on another one */
struct fix {
	struct world w;
	struct conn a, b, c, d;
};

static void open_conn(struct conn *c, struct dut *d, uint32_t flags)
{
	struct conn_opt opt = { .type = ORNIC_QPT_UD, .flags = flags };
	uint64_t buf = dut_buf(d, BUF);

	conn_init(c, d, &opt);
	c->qp.qkey = QKEY;
	conn_rts(c);
	for (int i = 0; i < 4; i++)
		conn_recv(c, buf, BUF, dut_key(d, NULL, buf, BUF, ORNIC_ACCESS_LOCAL_WRITE));
}

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	open_conn(&t->a, &t->w.dut[0], 0);
	open_conn(&t->b, &t->w.dut[0], 0);
	open_conn(&t->c, &t->w.dut[0], ORNIC_QP_F_BLOCK_MC_LOOP);
	open_conn(&t->d, &t->w.dut[1], 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	mcast_fini(&t->w.dut[0].dev.mcast);
	mcast_fini(&t->w.dut[1].dev.mcast);
	conn_fini(&t->a);
	conn_fini(&t->b);
	conn_fini(&t->c);
	conn_fini(&t->d);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

static uint32_t join(struct conn *c, const uint8_t gid[16])
{
	uint32_t number;

	assert_int_equal(mcast_join(&c->d->dev.mcast, gid, &c->qp, &number), 0);
	return number;
}

/* Send a datagram from @from. */
static void send_to(struct fix *t, struct conn *from, const uint8_t mac[6], const uint8_t gid[16],
		    uint32_t qpn)
{
	static const uint8_t data[100] = { 1, 2, 3 };
	struct wr wr = { .opcode = ORNIC_WR_SEND };

	memcpy(wr.path.dmac, mac, 6);
	memcpy(wr.path.dgid, gid, 16);
	wr.path.sgid_index = htole16(gid[0] ? 1 : 0);
	wr.path.dest_qpn = htole32(qpn);
	wr.path.qkey = htole32(QKEY);
	wr.path.hop_limit = 1;
	wr.flags = ORNIC_WQE_INLINE;
	wr.inl = data;
	wr.inl_len = sizeof(data);
	conn_send(from, &wr);
	world_run(&t->w);
}

/* Send a datagram from @from to a group. */
static void send(struct fix *t, struct conn *from, const uint8_t gid[16], uint32_t qpn)
{
	send_to(t, from, (uint8_t[]){ 1, 0, 0x5e, 1, 2, 3 }, gid, qpn);
}

static void heard(struct conn *c, const struct conn *from)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(c, &c->hrcq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(le32toh(cqe.byte_len), 140);
	assert_int_equal(le32toh(cqe.src_qp), from->qp.handle);
	assert_true(le32toh(cqe.flags) & ORNIC_CQE_GRH);
	conn_quiet(c);
}

/* ORN-MC-1, ORN-MC-2: every member of every function, once, also the sender; no other queue pair */
static void test_deliver(void **state)
{
	struct fix *t = *state;

	join(&t->a, group4);
	join(&t->b, group4);
	join(&t->d, group4);
	send(t, &t->a, group4, ALL);
	heard(&t->a, &t->a);
	heard(&t->b, &t->a);
	heard(&t->d, &t->a);
	conn_quiet(&t->c);
	assert_int_equal(t->a.d->dev.cnt[CNT_rdma_tx_multicast], 1);
	assert_int_equal(t->a.d->dev.cnt[CNT_rdma_rx_multicast], 1);
	assert_int_equal(t->d.d->dev.cnt[CNT_rdma_rx_multicast], 1);
	assert_int_equal(t->d.d->dev.cnt[CNT_rdma_rx_packets], 1);
}

/* All counters of a receiver: once for the function, and once for each member (ORN-STAT-15) */
static void test_counters(void **state)
{
	struct fix *t = *state;
	uint64_t want[CNT_COUNT], *cnt = t->a.d->dev.cnt;

	join(&t->a, group4);
	join(&t->b, group4);
	join(&t->c, group6);
	memcpy(want, cnt, sizeof(want));
	send(t, &t->d, group4, ALL);
	want[CNT_rdma_rx_packets]++;
	want[CNT_rdma_rx_bytes] += 100;
	want[CNT_rdma_rx_multicast]++;
	want[CNT_rx_send] += 2;
	want[CNT_rdma_copied_bytes] += 2 * 140;
	assert_memory_equal(cnt, want, sizeof(want));
	assert_int_equal(t->d.d->dev.cnt[CNT_rdma_tx_packets], 1);
	assert_int_equal(t->d.d->dev.cnt[CNT_rdma_tx_bytes], 100);
	assert_int_equal(t->d.d->dev.cnt[CNT_rdma_tx_multicast], 1);
	assert_int_equal(t->d.d->dev.cnt[CNT_tx_send], 1);
}

/* A packet is one of a group only if both of its destination addresses are. */
static void test_half_group(void **state)
{
	static const uint8_t group_mac[6] = { 1, 0, 0x5e, 1, 2, 3 };
	struct fix *t = *state;
	uint8_t gid[16];

	join(&t->a, group4);
	join(&t->d, group4);
	send_to(t, &t->a, t->d.d->dev.port.mac, group4, ALL);
	dut_gid(t->d.d, 0, gid);
	send_to(t, &t->a, group_mac, gid, t->d.qp.handle);
	conn_quiet(&t->a);
	assert_int_equal(t->a.d->dev.cnt[CNT_rdma_tx_multicast], 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_rdma_tx_packets], 2);
}

/* IPv6; groups are separate; a former member gets nothing (ORN-STEER-7) */
static void test_groups(void **state)
{
	struct fix *t = *state;
	uint32_t number = join(&t->b, group6);

	join(&t->b, group4);
	join(&t->d, group6);
	send(t, &t->a, group6, ALL);
	heard(&t->b, &t->a);
	heard(&t->d, &t->a);
	assert_int_equal(mcast_leave(&t->b.d->dev.mcast, number), 0);
	assert_int_equal(mcast_leave(&t->b.d->dev.mcast, number), -ENOENT);
	send(t, &t->a, group6, ALL);
	conn_quiet(&t->b);
	heard(&t->d, &t->a);
	send(t, &t->a, group4, ALL);
	heard(&t->b, &t->a);
	conn_quiet(&t->d);
}

/* ORN-MC-3: BLOCK_MC_LOOP suppresses the sender's own copy, and nothing else */
static void check_block(struct fix *t)
{
	join(&t->c, group4);
	join(&t->b, group4);
	send(t, &t->c, group4, ALL);
	heard(&t->b, &t->c);
	conn_quiet(&t->c);
	send(t, &t->b, group4, ALL);
	heard(&t->c, &t->b);
	heard(&t->b, &t->b);
	send(t, &t->d, group4, ALL);
	heard(&t->c, &t->d);
}

static void test_block(void **state)
{
	check_block(*state);
}

/* Add a fault rule. */
static void rule(struct fix *t, const char *text)
{
	fault_rule(&t->w.e, text);
}

/* The same after fault injection made frames of the packets, and packets of the frames */
static void test_block_faulty(void **state)
{
	struct fix *t = *state;

	rule(t, "truncate to=9000");
	rule(t, "truncate device=vm1 dir=rx to=9000");
	check_block(t);
	fault_clear(&t->w.e);
}

static void see_lost(void *arg, const struct switch_port *port, enum switch_way way,
		     const struct packet *p, const char *note)
{
	unsigned int *lost = arg;

	(void)port;
	(void)way;
	(void)p;
	*lost += note && !strcmp(note, "dropped: sending queue pair destroyed");
}

/*
 * Send a datagram from @dut under a rule that delays it, to b or, if @group, to b and d. Its queue
 * pair @lives or is destroyed meanwhile. Return how often captures saw that it was dropped for
 * that.
 */
static unsigned int send_delayed(struct fix *t, struct conn *from, struct dut *dut,
				 const char *text, bool group, bool lives)
{
	unsigned int lost = 0;
	struct switch_observer eye = { see_lost, &lost };
	uint8_t gid[16];

	rule(t, text);
	open_conn(from, dut, 0);
	dut_gid(t->b.d, 0, gid);
	if (group)
		send(t, from, group4, ALL);
	else
		send_to(t, from, t->b.d->dev.port.mac, gid, t->b.qp.wire_qpn);
	conn_quiet(&t->b);
	if (!lives)
		conn_fini(from);
	switch_set_observer(t->w.e.sw, &eye);
	world_pass(&t->w, 1000000);
	switch_set_observer(t->w.e.sw, NULL);
	if (lives)
		conn_fini(from);
	fault_clear(&t->w.e);
	return lost;
}

/*
 * A delayed datagram whose queue pair was destroyed meanwhile goes to other functions only, because
 * its own function can no longer tell who sent it.
 */
static void test_sender_gone(void **state)
{
	struct fix *t = *state;
	struct dut *own = &t->w.dut[0];
	struct conn e;

	join(&t->b, group4);
	join(&t->d, group4);
	for (int lives = 0; lives < 2; lives++) {
		assert_int_equal(send_delayed(t, &e, own, "delay by=1ms", true, lives), 0);
		heard(&t->d, &e);
		if (lives)
			heard(&t->b, &e);
		conn_quiet(&t->b);
		assert_int_equal(send_delayed(t, &e, own, "delay by=1ms device=vm1 dir=rx", true,
					      lives), !lives);
		heard(&t->d, &e);
		if (lives)
			heard(&t->b, &e);
		conn_quiet(&t->b);
		assert_int_equal(send_delayed(t, &e, own, "delay by=1ms", false, lives), !lives);
		if (lives)
			heard(&t->b, &e);
		conn_quiet(&t->b);
		conn_quiet(&t->d);
	}
}

/* The queue pair that lives may be one of any function. */
static void test_sender_lives(void **state)
{
	struct fix *t = *state;
	struct conn e;

	join(&t->b, group4);
	join(&t->d, group4);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_delayed(t, &e, &t->w.dut[i], "delay by=1ms", true, true), 0);
		heard(&t->b, &e);
		heard(&t->d, &e);
	}
}

/* The same for a datagram that waits until another one has overtaken it */
static void test_overtaken_sender_gone(void **state)
{
	struct fix *t = *state;
	unsigned int lost = 0;
	struct switch_observer eye = { see_lost, &lost };
	struct conn e;

	join(&t->b, group4);
	join(&t->d, group4);
	rule(t, "reorder nth=1 by=1 device=vm1 dir=rx");
	open_conn(&e, &t->w.dut[0], 0);
	send(t, &e, group4, ALL);
	heard(&t->d, &e);
	conn_fini(&e);
	switch_set_observer(t->w.e.sw, &eye);
	send(t, &t->a, group4, ALL);
	switch_set_observer(t->w.e.sw, NULL);
	assert_int_equal(lost, 1);
	heard(&t->b, &t->a);
	heard(&t->d, &t->a);
	fault_clear(&t->w.e);
	world_finish(&t->w, 1000000000);
}

/* ORN-MC-4, ORN-MC-8: Q_Key of each member; QPN 0xffffff and no other; VLAN and link state */
static void test_not_for_us(void **state)
{
	struct fix *t = *state;

	join(&t->b, group4);
	join(&t->d, group4);
	t->b.qp.qkey++;
	send(t, &t->a, group4, ALL);
	heard(&t->d, &t->a);
	conn_quiet(&t->b);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_qkey], 1);
	t->b.qp.qkey--;
	send(t, &t->a, group4, t->d.qp.handle);
	conn_quiet(&t->d);
	assert_int_equal(t->d.d->dev.cnt[CNT_bad_qpn], 1);
	t->a.d->dev.port.gid[0].flags |= htole32(ORNIC_GID_VLAN);
	t->a.d->dev.port.gid[0].vlan = htole16(5);
	send(t, &t->a, group4, ALL);
	heard(&t->b, &t->a);
	conn_quiet(&t->d);
	t->d.d->dev.port.gid[1].flags |= htole32(ORNIC_GID_VLAN);
	t->d.d->dev.port.gid[1].vlan = htole16(5);
	send(t, &t->a, group4, ALL);
	heard(&t->b, &t->a);
	heard(&t->d, &t->a);
}

/* A member without a receive costs the others nothing; one in ERR gets nothing (ORN-RQ-11) */
static void test_slow_member(void **state)
{
	struct fix *t = *state;

	join(&t->b, group4);
	join(&t->d, group4);
	for (int i = 0; i < 6; i++)
		send(t, &t->a, group4, ALL);
	for (int i = 0; i < 4; i++) {
		conn_expect(&t->b, &t->b.hrcq, i, ORNIC_WC_RECV, 0);
		conn_expect(&t->d, &t->d.hrcq, i, ORNIC_WC_RECV, 0);
	}
	assert_int_equal(t->b.qp.backlog.count, 2);
	qp_set_state(&t->b.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	send(t, &t->a, group4, ALL);
	conn_quiet(&t->b);
	assert_int_equal(t->d.qp.backlog.count, 3);
}

/* Packets of connections, to a group: all drop them (ORN-MC-4). */
static void test_hostile(void **state)
{
	struct fix *t = *state;
	struct peer peer;
	struct packet *p;

	peer_init(&peer, &t->w);
	join(&t->b, group4);
	for (uint32_t op = 0; op < 256; op++) {
		p = peer_packet(&peer, &t->b, op, 0);
		memcpy(p->dgid, group4, 16);
		p->dqpn = ALL;
		p->qkey = QKEY;
		peer_send(&peer, p, "x", op == BTH_UD_SEND_ONLY || op == BTH_UD_SEND_ONLY_IMM);
	}
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_opcode], 254);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_expect(&t->b, &t->b.hrcq, 1, ORNIC_WC_RECV, 0);
	p = peer_packet(&peer, &t->b, BTH_UD_SEND_ONLY, 0);
	memcpy(p->dgid, group4, 16);
	p->dqpn = ALL;
	p->pkey = 1;
	peer_send(&peer, p, "x", 1);
	assert_int_equal(t->b.d->dev.cnt[CNT_bad_pkey], 1);
	conn_quiet(&t->b);
	peer_quiet(&peer);
	peer_fini(&peer);
}

/* Addresses of groups: ff00::/8 and 224.0.0.0/4 */
static void test_addresses(void **state)
{
	(void)state;
	for (uint32_t b = 0; b < 256; b++) {
		const uint8_t v4[16] = { [10] = 0xff, 0xff, b, 0xe1, 0xe2, 0xe3 };
		const uint8_t v6[16] = { b, [12] = 0xe0 };

		assert_int_equal(mcast_is_group(v4), b >= 224 && b < 240);
		assert_int_equal(mcast_is_group(v6), b == 0xff);
	}
}

/* A host cannot know the salts, from which the buckets follow: they are random, if possible. */
static void test_salts(void **state)
{
	static struct mcast m[2];

	(void)state;
	memset(m, 0xff, sizeof(m));
	mcast_init(&m[0]);
	assert_int_equal(m[0].groups, 0);
	mcast_init(&m[1]);
	assert_true(m[0].salt[0] != m[1].salt[0]);
	assert_true(m[0].salt[1] != m[1].salt[1]);
	assert_true(m[0].salt[0] != m[0].salt[1]);
	for (int i = 0; i < 2; i++) {
		mcast_fini(&m[i]);
		no_random = true;
		mcast_init(&m[i]);
		no_random = false;
		assert_int_equal(m[i].salt[0], 0x5b5b5b5b5b5b5b5b);
		assert_int_equal(m[i].salt[1], 0x5b5b5b5b5b5b5b5b);
		mcast_fini(&m[i]);
	}
}

/* ORN-MC-6: members of a group, groups, memberships */
static void test_limits(void **state)
{
	static struct qp qp[MCAST_PER_GROUP + 1];
	struct mcast *m = &((struct fix *)*state)->w.dut[0].dev.mcast;
	uint8_t gid[16] = { 0xff };
	uint32_t number;

	for (int i = 0; i < MCAST_PER_GROUP; i++)
		assert_int_equal(mcast_join(m, gid, &qp[i], &number), 0);
	assert_int_equal(mcast_join(m, gid, &qp[3], &number), -EEXIST);
	assert_int_equal(mcast_join(m, gid, &qp[MCAST_PER_GROUP], &number), -ENOSPC);
	assert_int_equal(mcast_leave(m, MCAST_FIRST), 0);
	assert_int_equal(mcast_join(m, gid, &qp[MCAST_PER_GROUP], &number), 0);
	for (int i = 1; i < MCAST_GROUPS; i++) {
		gid[14] = i >> 8;
		gid[15] = i;
		assert_int_equal(mcast_join(m, gid, &qp[0], &number), 0);
	}
	gid[13] = 1;
	assert_int_equal(mcast_join(m, gid, &qp[0], &number), -ENOSPC);
	assert_int_equal(mcast_leave(m, number), 0);
	assert_int_equal(mcast_join(m, gid, &qp[0], &number), 0);
	gid[13] = 0;
	gid[14] = 0;
	for (int i = 0; i < MCAST_TOTAL - MCAST_PER_GROUP - MCAST_GROUPS + 1; i++) {
		gid[15] = 1 + i / 200;
		assert_int_equal(mcast_join(m, gid, &qp[1 + i % 200], &number), 0);
	}
	gid[15] = 200;
	assert_int_equal(mcast_join(m, gid, &qp[1], &number), -ENOSPC);
	mcast_fini(m);
	assert_int_equal(m->groups, 0);
	for (int i = 0; i <= MCAST_PER_GROUP; i++)
		assert_int_equal(qp[i].memberships, 0);
}

static struct ornic_rule_cmd member(const struct host_qp *qp)
{
	struct ornic_rule_cmd cmd = { .kind = ORNIC_RULE_MEMBER, .port = 1 };

	cmd.target = htole32(qp->number);
	memcpy((uint8_t *)&cmd.value + ORNIC_MEMBER_GID, group4, 16);
	return cmd;
}

static int create(struct inproc *p, const struct ornic_rule_cmd *cmd)
{
	return host_exec(&p->host, ORNIC_OP_RULE_CREATE, 0, cmd, sizeof(*cmd), NULL, 0);
}

static int destroy(struct inproc *p, uint16_t opcode, uint32_t number)
{
	return host_exec(&p->host, opcode, number, NULL, 0, NULL, 0);
}

/* Groups of a host's choice do not all fall into one bucket, which all packets would search. */
static void test_spread(void **state)
{
	struct fix *t = *state;
	struct mcast *m = &t->a.d->dev.mcast;
	uint8_t gid[16];

	for (int round = 0; round < 1000; round++) {	/* each with other random numbers */
		int used = 0;

		mcast_fini(m);
		mcast_init(m);
		for (int i = 0; i < 64; i++) {
			/* one half changes, or both alike, or each group has a swapped one */
			const uint64_t halves[4][2] = {
				{ 9, i }, { i, i }, { i, 9 },
				{ i % 2 ? i / 2 : 1000 - i / 2, i % 2 ? 1000 - i / 2 : i / 2 },
			};

			memcpy(gid, halves[round % 4], sizeof(gid));
			join(&t->a, gid);
		}
		for (int i = 0; i < MCAST_BUCKETS; i++)
			used += !TAILQ_EMPTY(&m->bucket[i]);
		assert_in_range(used, 32, 64);
	}
}

/* The fields of the command, except the owner: the error and the byte that it names */
static const struct {
	uint16_t at;
	uint16_t size;
	uint8_t status;
} fields[] = {
#define FIELD(member, status)	\
	{ offsetof(struct ornic_rule_cmd, member),		\
	  sizeof(((struct ornic_rule_cmd *)0)->member), status }
	FIELD(kind, ORNIC_ST_UNSUPPORTED), FIELD(port, ORNIC_ST_BAD_NUMBER),
	FIELD(priority, ORNIC_ST_RESERVED), FIELD(target_type, ORNIC_ST_UNSUPPORTED),
	FIELD(target, ORNIC_ST_BAD_NUMBER), FIELD(flow_tag, ORNIC_ST_RESERVED),
	FIELD(flags, ORNIC_ST_RESERVED), FIELD(counter_set, ORNIC_ST_RESERVED),
	FIELD(fields, ORNIC_ST_RESERVED), FIELD(mask, ORNIC_ST_RESERVED),
	FIELD(mbz, ORNIC_ST_RESERVED), { 0x20, ORNIC_MEMBER_GID, ORNIC_ST_RESERVED },
	{ 0x20 + ORNIC_MEMBER_GID, 13, ORNIC_ST_BAD_PARAM },	/* until the address is a group */
	{ 0x30 + ORNIC_MEMBER_GID, 0x30, ORNIC_ST_RESERVED },
};

static void refused(struct inproc *p, const struct ornic_rule_cmd *cmd, uint8_t status,
		    uint32_t field)
{
	assert_int_equal(create(p, cmd), status);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD | field);
}

/* Every byte of the command */
static void check_fields(struct inproc *p, const struct ornic_rule_cmd *good)
{
	struct ornic_rule_cmd cmd;
	uint8_t *bytes = (uint8_t *)&cmd;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (uint32_t j = 0; j < fields[i].size; j++) {
			cmd = *good;
			bytes[fields[i].at + j] ^= 0x80;
			refused(p, &cmd, fields[i].status, fields[i].at);
		}
	}
	/* Of two errors, the first one is reported. */
	cmd = *good;
	cmd.mbz[0] = 1;
	bytes[0x20 + ORNIC_MEMBER_GID] = 0x20;
	refused(p, &cmd, ORNIC_ST_RESERVED, offsetof(struct ornic_rule_cmd, mbz));
	p->f->dev.features &= ~ORNIC_FEATURE(MCAST);		/* ORN-FEA-2 */
	refused(p, good, ORNIC_ST_UNSUPPORTED, 0);
	p->f->dev.features |= ORNIC_FEATURE(MCAST);
}

/* ORN-MC-5, ORN-STEER-4, ORN-QP-11 */
static void test_command(void **state)
{
	struct inproc *p = *state;
	struct host_qp ud, rc, deaf;
	struct ornic_qp_create_cmd without;
	struct ornic_rule_cmd cmd, good;
	uint8_t *bytes = (uint8_t *)&cmd;
	uint32_t number;

	assert_int_equal(host_qp_create(&p->host, &ud, ORNIC_QPT_UD, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(host_qp_create(&p->host, &rc, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	good = member(&ud);
	check_fields(p, &good);
	cmd = member(&rc);
	refused(p, &cmd, ORNIC_ST_BAD_NUMBER, offsetof(struct ornic_rule_cmd, target));
	/* a queue pair that has no receives */
	host_qp_template(&p->host, &deaf, ORNIC_QPT_UD, 4, p->pd, p->cq.number, p->cq.number,
			 &without);
	without.rq_log = ORNIC_NO_RING;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &without, sizeof(without),
				   NULL, 0), 0);
	deaf.number = host_number(&p->host);
	cmd = member(&deaf);
	refused(p, &cmd, ORNIC_ST_BAD_NUMBER, offsetof(struct ornic_rule_cmd, target));
	assert_int_equal(create(p, &good), ORNIC_ST_OK);
	number = host_number(&p->host);
	refused(p, &good, ORNIC_ST_EXISTS, offsetof(struct ornic_rule_cmd, target));
	assert_int_equal(destroy(p, ORNIC_OP_QP_DESTROY, ud.number), ORNIC_ST_BUSY);
	assert_int_equal(destroy(p, ORNIC_OP_RULE_DESTROY, number + 1), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(destroy(p, ORNIC_OP_RULE_DESTROY, number), ORNIC_ST_OK);
	assert_int_equal(destroy(p, ORNIC_OP_RULE_DESTROY, number), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(create(p, &good), ORNIC_ST_OK);
	cmd = good;
	bytes[0x20 + ORNIC_MEMBER_GID + 15]++;
	for (uint32_t i = 1; i <= MCAST_GROUPS; i++) {		/* ORN-MC-6 */
		bytes[0x20 + ORNIC_MEMBER_GID + 14] = i >> 8;
		bytes[0x20 + ORNIC_MEMBER_GID + 13] = i;
		if (i < MCAST_GROUPS)
			assert_int_equal(create(p, &cmd), ORNIC_ST_OK);
	}
	refused(p, &cmd, ORNIC_ST_LIMIT, 0);
	/* a reset removes members, before their queue pairs */
	inproc_flr(p);
	while (p->f->teardown.active)
		function_work(p->f);
	assert_int_equal(p->f->dev.mcast.number.used, 0);
}

/* BLOCK_MC_LOOP is for UD only (ORN-MC-7). */
static void test_flag(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;

	host_qp_template(&p->host, &qp, ORNIC_QPT_UD, 4, p->pd, p->cq.number, p->cq.number, &cmd);
	cmd.flags |= htole32(ORNIC_QP_F_BLOCK_MC_LOOP);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0), 0);
	p->f->dev.features &= ~ORNIC_FEATURE(MCAST);		/* ORN-FEA-2 */
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_UNSUPPORTED);
	cmd.type = ORNIC_QPT_RC;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_BAD_PARAM);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
#define READY(f) cmocka_unit_test_setup_teardown(f, inproc_setup_ready, inproc_teardown)
	const struct CMUnitTest tests[] = {
		T(test_deliver), T(test_groups), T(test_block), T(test_block_faulty),
		T(test_sender_gone), T(test_sender_lives), T(test_overtaken_sender_gone),
		T(test_not_for_us), T(test_slow_member), T(test_hostile), T(test_limits),
		T(test_spread), T(test_half_group), T(test_counters), T(test_addresses),
		T(test_salts),
		READY(test_command), READY(test_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
