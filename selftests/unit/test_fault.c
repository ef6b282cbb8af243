// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection between two functions: each fault hits the packets that the rule selects, as
 * often as it says, and RC recovers.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/fault_rule.h"
#include "lib/lines.h"
#include "lib/pair.h"
#include "engine/link.h"
#include "engine/steer.h"
#include "log.h"
#include "net/egress.h"
#include "net/switch.h"
#include "packet/bth.h"
#include "packet/ecn.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)
#define MTU	1024
#define BUF	(256u << 10)
#define SECOND	1000000000ull
#define LONG	(1000 * SECOND)

/** SEEN - packets that a test may see */
#define SEEN	8192

/** struct seen - a packet that passed a port */
struct seen {
	const struct switch_port *port;
	enum switch_way way;
	uint8_t opcode;
	uint32_t psn;
	uint32_t npsn;
	uint8_t tclass;
	uint32_t len;
	char note[300];
};

struct fix {
	struct world w;
	struct conn a, other, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
	struct switch_observer eye;
	struct seen seen[SEEN];
	unsigned int nseen;
	unsigned int nlost;
};

static void see(void *arg, const struct switch_port *port, enum switch_way way,
		const struct packet *p, const char *note)
{
	struct fix *t = arg;
	struct seen *s = &t->seen[t->nseen++];

	assert_true(t->nseen <= SEEN);
	*s = (struct seen) { port, way, p->opcode, p->psn, p->npsn, p->tclass, p->len, "" };
	snprintf(s->note, sizeof(s->note), "%s", note ? note : "");
}

/* Count the packets that are lost because too many wait. */
static void see_lost(void *arg, const struct switch_port *port, enum switch_way way,
		     const struct packet *p, const char *note)
{
	static const char lost[] = "dropped, too many frames wait, by fault rule ";
	struct fix *t = arg;

	(void)port;
	(void)way;
	(void)p;
	t->nlost += note && !strncmp(note, lost, strlen(lost));
}

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	conn_init(&t->a, &t->w.dut[0], NULL);
	conn_init(&t->other, &t->w.dut[1], NULL);	/* so that numbers at both ends differ */
	conn_init(&t->b, &t->w.dut[1], NULL);
	conn_pair(&t->a, &t->b, 100, 200);
	t->abuf = dut_buf(t->a.d, BUF);
	t->bbuf = dut_buf(t->b.d, BUF);
	t->akey = dut_key(t->a.d, NULL, t->abuf, BUF, ALL);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, BUF, ALL);
	t->eye = (struct switch_observer) { see, t };
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	fault_clear(&t->w.e);
	world_finish(&t->w, LONG);
	fault_no_frames(&t->w.e);
	switch_set_observer(t->w.e.sw, NULL);
	conn_fini(&t->a);
	conn_fini(&t->b);
	conn_fini(&t->other);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

static uint32_t rule(struct fix *t, const char *text)
{
	return fault_rule(&t->w.e, text);
}

static struct fault_info info(struct fix *t, uint32_t id)
{
	struct fault_info i;

	assert_true(fault_next(&t->w.e, id - 1, &i));
	assert_int_equal(i.id, id);
	return i;
}

static void expect(struct fix *t, uint32_t id, uint64_t matched, uint64_t acted)
{
	struct fault_info i = info(t, id);

	assert_int_equal(i.matched, matched);
	assert_int_equal(i.acted, acted);
}

static uint64_t count(struct conn *c, enum counter cnt)
{
	return c->d->dev.cnt[cnt];
}

static void post(struct fix *t, uint8_t opcode, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = t->bbuf,
			 .rkey = t->bkey, .swap_add = 1 };

	wr_sge(&wr, t->abuf, len, t->akey);
	conn_send(&t->a, &wr);
}

static void finish(struct fix *t, uint8_t status)
{
	struct ornic_cqe cqe;

	world_finish(&t->w, LONG);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, status);
}

/* WRITE @len bytes of a new pattern from a to b. */
static void write_some(struct fix *t, uint32_t len)
{
	static uint32_t seed;

	seed++;
	fill(dut_at(t->a.d, t->abuf, len), len, seed);
	post(t, ORNIC_WR_RDMA_WRITE, len);
	finish(t, ORNIC_WC_SUCCESS);
	check(dut_at(t->b.d, t->bbuf, len), len, seed);
}

static void read_some(struct fix *t, uint32_t len)
{
	fill(dut_at(t->b.d, t->bbuf, len), len, 9);
	memset(dut_at(t->a.d, t->abuf, len), 0, len);
	post(t, ORNIC_WR_RDMA_READ, len);
	finish(t, ORNIC_WC_SUCCESS);
	check(dut_at(t->a.d, t->abuf, len), len, 9);
}

/* Restore devices and queue pairs after a fault. */
static void again(struct fix *t)
{
	struct conn *c[] = { &t->a, &t->b };

	for (int i = 0; i < 2; i++) {
		c[i]->d->dev.running = true;
		link_update(&c[i]->d->dev);
		qp_set_state(&c[i]->qp, ORNIC_QPS_ERR);
	}
	world_finish(&t->w, LONG);
	for (int i = 0; i < 2; i++) {
		struct ornic_cqe cqe;

		while (conn_poll(c[i], &c[i]->hscq, &cqe))
			;
		qp_set_state(&c[i]->qp, ORNIC_QPS_RESET);
		conn_publish(c[i], &c[i]->sq, 0);
		conn_rts(c[i]);
	}
}

static void watch(struct fix *t)
{
	t->nseen = 0;
	switch_set_observer(t->w.e.sw, &t->eye);
}

/* WRITE 10 packets; they pass the ports of both devices as one. */
static void write_whole(struct fix *t)
{
	watch(t);
	write_some(t, 10 * MTU);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(t->seen[i].way, i ? SWITCH_OUT : SWITCH_IN);
		assert_int_equal(t->seen[i].npsn, 10);
	}
}

/* Without rules no packet is split, and the switch calls no fault code. */
static void test_none(void **state)
{
	struct fix *t = *state;
	uint32_t id;

	write_whole(t);
	assert_false(switch_is_faulty(t->w.e.sw));
	id = rule(t, "drop psn=5000");
	assert_true(switch_is_faulty(t->w.e.sw));
	write_whole(t);		/* no frame of it can match */
	expect(t, id, 0, 0);
	assert_int_equal(fault_del(&t->w.e, id), 0);
	assert_int_equal(fault_del(&t->w.e, id), -ENOENT);
	assert_false(switch_is_faulty(t->w.e.sw));
}

/*
 * A packet is cut into frames only if one of its PSNs is in the range of a rule, also where PSNs
 * wrap, and if one of its frames has an opcode of a rule.
 */
static void test_cut(void **state)
{
	static const struct {
		const char *rule;
		unsigned int matched;
	} cases[] = {
		{ "psn=0xfffffa", 0 }, { "psn=0xfffffb", 1 }, { "psn=0xfffffa-0xfffffb", 1 },
		{ "psn=4", 1 }, { "psn=5", 0 }, { "psn=5-0xfffffa", 0 }, { "psn=4-5", 1 },
		{ "psn=0xffffff-0", 2 }, { "psn=0-0xffffff", 10 },
		{ "opcode=WRITE_FIRST", 1 }, { "opcode=WRITE_MIDDLE", 8 },
		{ "opcode=WRITE_LAST", 1 }, { "opcode=WRITE_LAST_IMM,WRITE_ONLY,SEND_LAST", 0 },
	};
	struct fix *t = *state;
	char text[80];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id;

		qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
		qp_set_state(&t->b.qp, ORNIC_QPS_RESET);
		conn_publish(&t->a, &t->a.sq, 0);
		conn_pair(&t->a, &t->b, 0xfffffb, 200);
		snprintf(text, sizeof(text), "truncate to=9000 dqp=%u %s", t->b.qp.wire_qpn,
			 cases[i].rule);
		id = rule(t, text);
		watch(t);
		write_some(t, 10 * MTU);
		if (info(t, id).matched != cases[i].matched)
			fail_msg("%s: %u matches", cases[i].rule, (int)info(t, id).matched);
		assert_int_equal(t->seen[0].npsn, 10);
		if (t->seen[1].npsn != (cases[i].matched ? 1 : 10))
			fail_msg("%s: a packet of %u", cases[i].rule, t->seen[1].npsn);
		fault_clear(&t->w.e);
	}
}

/* "Drop every third READ response": packets of the wire, for every way they are built. */
static void test_drop(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "drop device=vm1 dir=rx opcode=READ_RESPONSE* every=3");
	struct fault_info i;

	watch(t);
	read_some(t, 30 * MTU);
	i = info(t, id);
	assert_true(i.matched >= 30);
	assert_int_equal(i.acted, i.matched / 3);
	assert_true(count(&t->a, CNT_implied_nak) + count(&t->a, CNT_ack_timeouts) > 0);
	assert_int_equal(count(&t->a, CNT_rdma_copied_bytes), 30 * MTU);
	write_some(t, 30 * MTU);
	assert_int_equal(info(t, id).matched, i.matched);
}

static void test_nth(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "drop opcode=WRITE_* nth=5");

	write_some(t, 8 * MTU);
	assert_int_equal(count(&t->b, CNT_seq_naks_sent), 1);
	assert_int_equal(count(&t->a, CNT_retransmits), 4);	/* 5 to 8 */
	expect(t, id, 5, 1);
	assert_true(info(t, id).spent);
}

static void test_duplicate(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "duplicate opcode=WRITE_*");

	write_some(t, 8 * MTU);
	assert_int_equal(count(&t->b, CNT_duplicates), 8);
	expect(t, id, 8, 8);
	fault_clear(&t->w.e);
	rule(t, "duplicate opcode=FETCH_ADD by=1ms");
	memset(dut_at(t->b.d, t->bbuf, 8), 0, 8);
	post(t, ORNIC_WR_FETCH_ADD, 8);
	finish(t, ORNIC_WC_SUCCESS);
	assert_int_equal(*dut_at(t->b.d, t->bbuf, 8), 1);
	assert_int_equal(count(&t->b, CNT_duplicates), 9);
	/* the copies grow linearly with the rules, not exponentially */
	fault_clear(&t->w.e);
	for (int i = 0; i < 30; i++)
		rule(t, "duplicate opcode=WRITE_*");
	write_some(t, MTU);
	assert_int_equal(count(&t->b, CNT_duplicates), 9 + 30);
}

static void test_reorder(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "reorder opcode=WRITE_* nth=3 by=2");
	uint32_t psn[8], n = 0;

	watch(t);
	write_some(t, 8 * MTU);
	for (unsigned int i = 0; i < t->nseen && n < 8; i++)
		if (t->seen[i].port == t->b.d->dev.port.sw && t->seen[i].way == SWITCH_OUT)
			psn[n++] = t->seen[i].psn;
	assert_int_equal(n, 8);
	assert_int_equal(psn[2], 103);
	assert_int_equal(psn[3], 104);
	assert_int_equal(psn[4], 102);
	assert_int_equal(psn[5], 105);
	assert_int_equal(info(t, id).acted, 1);
	assert_true(count(&t->b, CNT_out_of_order) > 0);
	/* nothing overtakes the last packet of a message; it continues after a time limit */
	rule(t, "reorder opcode=WRITE_LAST count=1 by=5");
	t->nseen = 0;
	write_some(t, 3 * MTU);
	assert_int_equal(count(&t->a, CNT_ack_timeouts), 0);
}

static void test_delay(void **state)
{
	struct fix *t = *state;
	struct ornic_cqe cqe;

	rule(t, "delay by=2ms device=vm2 dir=rx");
	rule(t, "delay by=1ms device=vm1 dir=rx");
	post(t, ORNIC_WR_RDMA_WRITE, 8 * MTU);
	world_run(&t->w);
	world_pass(&t->w, 1999999);
	assert_int_equal(count(&t->b, CNT_rx_write), 0);
	world_pass(&t->w, 1);
	assert_int_equal(count(&t->b, CNT_rx_write), 1);
	world_pass(&t->w, 999999);
	assert_false(conn_poll(&t->a, &t->a.hscq, &cqe));
	world_pass(&t->w, 1);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(count(&t->b, CNT_out_of_order), 0);
}

/*
 * Return how often captures saw a WRITE leave the port of the second device, and the last note; a
 * rule delays it there.
 */
static unsigned int delayed_sights(struct fix *t, const char **note)
{
	unsigned int n = 0;

	watch(t);
	write_some(t, 100);
	for (unsigned int i = 0; i < t->nseen; i++) {
		struct seen *s = &t->seen[i];

		if (s->port == t->b.d->dev.port.sw && s->way == SWITCH_OUT &&
		    s->opcode == BTH_RC_WRITE_ONLY) {
			*note = s->note;
			n++;
		}
	}
	return n;
}

/* A frame that a rule acted on is recorded as forwarded, also if its port is rate-limited. */
static void test_forwarded(void **state)
{
	struct egress_param link = { .kbps = 1000000 };
	struct fix *t = *state;
	const char *note;

	rule(t, "delay by=2ms device=vm2 dir=rx");
	assert_int_equal(delayed_sights(t, &note), 2);
	assert_string_equal(note, "forwarded");
	egress_default(&link, 0);
	assert_int_equal(switch_port_limit(t->b.d->dev.port.sw, &link), 0);
	assert_int_equal(delayed_sights(t, &note), 2);
	assert_string_equal(note, "forwarded");
	fault_clear(&t->w.e);
	assert_int_equal(delayed_sights(t, &note), 1);
	assert_string_equal(note, "");
}

/* Return how often captures saw @note. */
static unsigned int sights(struct fix *t, const char *note)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->nseen; i++)
		n += !strcmp(t->seen[i].note, note);
	return n;
}

/* A rule of the longest text */
#define SEVEN	"WRITE_ONLY,WRITE_ONLY,WRITE_ONLY,WRITE_ONLY,WRITE_ONLY,WRITE_ONLY,WRITE_ONLY,"
#define LONGEST	"drop count=1 opcode=" SEVEN SEVEN SEVEN "0x1f"

/* Captures show each fault once, with the rule. */
static void test_notes(void **state)
{
	static const char *const cases[][2] = {
		{ "drop count=1", "dropped" },
		{ "duplicate count=1", "duplicated" },
		{ "reorder count=1 by=5", "held back" },
		{ "delay by=1ms count=1", "delayed" },
		{ "corrupt count=1", "corrupted" },
		{ "truncate count=1 to=60", "truncated" },
		{ "ecn count=1", "marked" },
		{ "flap device=vm2 for=1ms opcode=WRITE_ONLY count=1", "matched" },
		{ LONGEST, "dropped" },
	};
	struct fix *t = *state;

	assert_int_equal(strlen(LONGEST), RULE_TEXT - 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id = rule(t, cases[i][0]);
		char note[300];

		watch(t);
		write_some(t, 100);
		snprintf(note, sizeof(note), "%s by fault rule %u: %s", cases[i][1], id,
			 info(t, id).text);
		if (sights(t, note) != 1)
			fail_msg("\"%s\" was seen %u times", note, sights(t, note));
		fault_clear(&t->w.e);
	}
}

/* The receiver counts a bad ICRC and no other error, for every position of the bit. */
static void test_corrupt(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "corrupt p=0.3");
	uint64_t errors;

	t->a.qp.retry_cnt = 7;
	for (int i = 0; i < 50; i++) {
		write_some(t, 1 + i * 50);
		read_some(t, 1 + i * 50);
	}
	errors = count(&t->a, CNT_icrc_errors) + count(&t->b, CNT_icrc_errors);
	assert_true(errors > 20);
	assert_int_equal(info(t, id).acted, errors);
	for (int i = 0; i < 2; i++) {
		const uint64_t *cnt = t->w.dut[i].dev.cnt;

		assert_int_equal(cnt[CNT_bad_qpn] + cnt[CNT_bad_gid] + cnt[CNT_bad_opcode] +
				 cnt[CNT_bad_pkey] + cnt[CNT_rx_drop_rule], 0);
	}
}

/* Let a frame other than RoCEv2 enter the switch at @port. */
static void send_frame(struct fix *t, struct switch_port *port, uint8_t *frame, uint32_t len)
{
	struct packet *p = packet_get(&t->w.e.pool);

	assert_non_null(p);
	p->kind = PACKET_ETHERNET;
	p->csum_ok = true;
	memcpy(p->dmac, frame, 6);
	memcpy(p->smac, frame + 6, 6);
	p->len = len;
	p->nseg = 1;
	p->seg[0] = (struct seg) { frame, len };
	switch_send(port, p);
	engine_drain(&t->w.e);
}

static void copy_frame(void *arg, const struct packet *p)
{
	assert_int_equal(p->len, 15);
	seg_copy_out(arg, p->seg, p->nseg, 0, p->len);
}

/* Frames other than RoCEv2 change behind the Ethernet header, here in the only byte. */
static void test_corrupt_ethernet(void **state)
{
	static const struct switch_port_ops ops = { .deliver = copy_frame };
	static uint8_t frame[15] = { [0 ... 5] = 0xff, 2, 9, 9, 9, 9, 9, 0x88, 0xb5, 0 };
	struct fix *t = *state;
	uint8_t got[15], bits = 0;
	struct switch_port *port[2] = {
		switch_port_add(t->w.e.sw, "in", &ops, got),
		switch_port_add(t->w.e.sw, "out", &ops, got),
	};

	rule(t, "corrupt port=in dir=rx packet=any");
	for (int i = 0; i < 2; i++)
		switch_port_set_up(port[i], true);
	for (int i = 0; i < 50; i++) {
		memset(got, 0, sizeof(got));
		send_frame(t, port[0], frame, sizeof(frame));
		assert_memory_equal(got, frame, 14);
		assert_int_equal(__builtin_popcount(got[14] ^ frame[14]), 1);
		bits |= got[14] ^ frame[14];
	}
	assert_int_equal(bits, 0xff);
	for (int i = 0; i < 2; i++)
		switch_port_del(port[i]);
}

static void test_truncate(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "truncate opcode=WRITE_* nth=2 to=60");

	watch(t);
	write_some(t, 4 * MTU);
	expect(t, id, 2, 1);
	for (unsigned int i = 0; i < t->nseen; i++)
		if (t->seen[i].way == SWITCH_OUT && t->seen[i].len == 60)
			return;
	fail_msg("no frame of 60 bytes was seen");
}

static void see_checksum(void *arg, const struct packet *p)
{
	*(int *)arg = p->csum_ok;
}

/* The sender's word that checksums are right does not hold for a frame that was changed. */
static void test_checksum(void **state)
{
	static const struct switch_port_ops ops = { .deliver = see_checksum };
	static const struct {
		const char *rule;
		bool ok;
	} cases[] = {
		{ "ecn packet=any", true }, { "truncate packet=any to=60", false },
		{ "corrupt packet=any", false },
	};
	static uint8_t frame[61] = { [0 ... 5] = 0xff, 2, 9, 9, 9, 9, 9, 0x88, 0xb5 };
	struct fix *t = *state;
	int ok;
	struct switch_port *port[2] = {
		switch_port_add(t->w.e.sw, "in", &ops, &ok),
		switch_port_add(t->w.e.sw, "out", &ops, &ok),
	};

	for (int i = 0; i < 2; i++)
		switch_port_set_up(port[i], true);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rule(t, cases[i].rule);
		ok = -1;
		send_frame(t, port[0], frame, sizeof(frame));
		assert_int_equal(ok, cases[i].ok);
		fault_clear(&t->w.e);
	}
	for (int i = 0; i < 2; i++)
		switch_port_del(port[i]);
}

static void count_frame(void *arg, const struct packet *p)
{
	(void)p;
	++*(unsigned int *)arg;
}

/* A frame without a whole Ethernet header is dropped. */
static void test_short(void **state)
{
	static const struct switch_port_ops ops = { .deliver = count_frame };
	static uint8_t frame[14] = { [0 ... 5] = 0xff, 2, 9, 9, 9, 9, 9, 0x88, 0xb5 };
	struct fix *t = *state;
	unsigned int got = 0;
	struct switch_port *port[2] = {
		switch_port_add(t->w.e.sw, "in", &ops, &got),
		switch_port_add(t->w.e.sw, "out", &ops, &got),
	};

	for (int i = 0; i < 2; i++)
		switch_port_set_up(port[i], true);
	rule(t, "ecn packet=any");
	for (uint32_t len = 12; len <= 14; len++) {
		watch(t);
		send_frame(t, port[0], frame, len);
		assert_int_equal(sights(t, "dropped: too short"), len < 14);
		assert_int_equal(got, len == 14);
	}
	for (int i = 0; i < 2; i++)
		switch_port_del(port[i]);
}

/* No bit is left to corrupt of a frame that ends where they begin: Ethernet header, BTH. */
static void test_corrupt_nothing(void **state)
{
	struct fix *t = *state;

	for (int i = 0; i < 2; i++) {
		uint32_t id;

		rule(t, i ? "truncate count=1 to=54" : "truncate count=1 to=14");
		id = rule(t, "corrupt packet=any count=1");
		write_some(t, 100);
		expect(t, id, 1, 1);
		fault_clear(&t->w.e);
	}
}

/* Send a message from @c, whose first packet is truncated to @to bytes. */
static void send_truncated(struct fix *t, struct conn *c, uint32_t to)
{
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct ornic_cqe cqe;
	char text[40];

	snprintf(text, sizeof(text), "truncate count=1 to=%u", to);
	rule(t, text);
	wr_sge(&wr, t->abuf, 100, t->akey);
	wr.path = c->qp.path;
	wr.path.dest_qpn = htole32(c->qp.dest_qpn);
	conn_send(c, &wr);
	world_finish(&t->w, LONG);
	assert_true(conn_poll(c, &c->hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	fault_clear(&t->w.e);
}

/*
 * Truncate packets from @c to another queue pair of its function to several lengths. @raw receives
 * the frames, if @match, by a rule that takes all but RoCE of this function (ORN-STEER-15).
 */
static void truncate_own(struct fix *t, struct conn *c, struct conn *raw, bool match)
{
	static const uint32_t to[] = { 60, 40, 20 };

	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		uint64_t dropped = count(&t->a, CNT_rx_drop_rule);
		bool takes = match && to[i] < 42;	/* no UDP header */
		struct ornic_cqe cqe;

		conn_recv(raw, t->abuf + 2048, 2048, t->akey);
		send_truncated(t, c, to[i]);
		assert_int_equal(conn_poll(raw, &raw->hrcq, &cqe), takes);
		if (takes)
			assert_int_equal(le32toh(cqe.byte_len), to[i]);
		assert_int_equal(count(&t->a, CNT_rx_drop_rule) - dropped, !takes);
	}
}

/*
 * A packet between two queue pairs of a function that is truncated to an Ethernet frame is offered
 * to the receive rules. The network interface, which did not send it, does not receive it.
 */
static void test_truncate_own(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UC, ORNIC_QPT_UD };
	const struct conn_opt driver = { .type = ORNIC_QPT_RAW, .flags = ORNIC_QP_F_DRIVER };
	const struct conn_opt user = { .type = ORNIC_QPT_RAW };
	struct fix *t = *state;
	struct port *port = &t->a.d->dev.port;
	struct conn net, raw, c, d;
	struct steer_rule match = { .kind = ORNIC_RULE_MATCH, .qp = &raw.qp };

	conn_init(&net, t->a.d, &driver);
	conn_init(&raw, t->a.d, &user);
	conn_rts(&net);
	conn_rts(&raw);
	conn_recv(&net, t->abuf, 2048, t->akey);
	port->unicast = &net.qp;
	port->promisc = &net.qp;
	for (size_t i = 0; i < sizeof(types); i++) {
		const struct conn_opt opt = { .type = types[i] };

		conn_init(&c, t->a.d, &opt);
		conn_init(&d, t->a.d, &opt);
		conn_pair(&c, &d, 100, 200);
		for (int j = 0; j < 6; j++)
			conn_recv(&d, t->abuf, 2048, t->akey);
		truncate_own(t, &c, &raw, false);
		steer_add(port, &match);
		truncate_own(t, &c, &raw, true);
		steer_del(port, &match);
		conn_fini(&c);
		conn_fini(&d);
	}
	conn_quiet(&net);
	port->unicast = NULL;
	port->promisc = NULL;
	conn_fini(&raw);
	conn_fini(&net);
}

/* The same for a packet to a group, which its own function gets too. */
static void test_truncate_own_group(void **state)
{
	static const uint8_t mac[6] = { 1, 0, 0x5e, 0, 0, 5 };
	static const uint8_t group[16] = { [10] = 0xff, 0xff, 224, 0, 0, 5 };
	const struct conn_opt driver = { .type = ORNIC_QPT_RAW, .flags = ORNIC_QP_F_DRIVER };
	const struct conn_opt uc = { .type = ORNIC_QPT_UC };
	struct fix *t = *state;
	struct conn net, c;

	conn_init(&net, t->a.d, &driver);
	conn_init(&c, t->a.d, &uc);
	conn_path(&c, mac, group);
	conn_rts(&net);
	conn_rts(&c);
	conn_recv(&net, t->abuf, 2048, t->akey);
	t->a.d->dev.port.multicast = &net.qp;
	send_truncated(t, &c, 40);
	assert_int_equal(count(&t->a, CNT_rx_drop_rule), 1);
	conn_quiet(&net);
	t->a.d->dev.port.multicast = NULL;
	conn_fini(&c);
	conn_fini(&net);
}

static void test_ecn(void **state)
{
	struct fix *t = *state;
	unsigned int marked = 0;

	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t id = rule(t, "ecn opcode=WRITE_* every=2");

		watch(t);
		if (v6) {
			dut_gid(t->b.d, 1, t->a.qp.path.dgid);
			dut_gid(t->a.d, 1, t->b.qp.path.dgid);
			t->a.qp.path.sgid_index = htole16(1);
			t->b.qp.path.sgid_index = htole16(1);
		}
		write_some(t, 8 * MTU);
		expect(t, id, 8, 4);
		for (unsigned int i = 0; i < t->nseen; i++)
			marked += t->seen[i].way == SWITCH_OUT &&
				  (t->seen[i].tclass & ECN_MASK) == ECN_CE;
		assert_int_equal(marked, 4 + v6 * 4);
		assert_int_equal(count(&t->b, CNT_icrc_errors), 0);
		fault_clear(&t->w.e);
	}
}

/* A CNP has a source queue pair too: the one that received the mark. */
static void test_cnp(void **state)
{
	struct fix *t = *state;
	char text[80];
	uint32_t id;

	snprintf(text, sizeof(text), "drop opcode=CNP device=vm2 qp=%u sqp=%u", t->b.qp.wire_qpn,
		 t->b.qp.wire_qpn);
	id = rule(t, text);
	rule(t, "ecn opcode=WRITE_*");
	write_some(t, MTU);
	assert_int_equal(count(&t->b, CNT_cnp_sent), 1);
	assert_int_equal(count(&t->a, CNT_cnp_received), 0);
	expect(t, id, 1, 1);
}

/* Device, direction, queue pair, PSN and size select packets. */
static void test_conditions(void **state)
{
	struct fix *t = *state;
	char text[100];
	uint32_t id[17];

	snprintf(text, sizeof(text), "truncate to=9000 device=vm1 qp=%u", t->a.qp.handle);
	id[0] = rule(t, "truncate to=9000");
	id[1] = rule(t, "truncate to=9000 device=vm1");
	id[2] = rule(t, "truncate to=9000 device=vm1 dir=tx");
	id[3] = rule(t, "truncate to=9000 device=vm1 dir=rx");
	id[4] = rule(t, "truncate to=9000 dir=rx");
	id[5] = rule(t, text);
	id[6] = rule(t, "truncate to=9000 psn=101-102");
	id[7] = rule(t, "truncate to=9000 psn=0xfffff0-100 opcode=WRITE_*");
	id[8] = rule(t, "truncate to=9000 size=1000-");
	id[9] = rule(t, "truncate to=9000 opcode=ACK");
	id[10] = rule(t, "truncate to=9000 packet=other");
	snprintf(text, sizeof(text), "truncate to=9000 sqp=%u dir=tx", t->a.qp.handle);
	id[11] = rule(t, text);
	snprintf(text, sizeof(text), "truncate to=9000 dqp=%u dir=tx device=vm2", t->a.qp.handle);
	id[12] = rule(t, text);
	id[13] = rule(t, "truncate to=9000 qp=0x999");
	/* without a device, qp= is either end */
	snprintf(text, sizeof(text), "truncate to=9000 device=vm1 qp=%u", t->b.qp.handle);
	id[14] = rule(t, text);
	snprintf(text, sizeof(text), "truncate to=9000 qp=%u", t->b.qp.handle);
	id[15] = rule(t, text);
	snprintf(text, sizeof(text), "truncate to=9000 qp=%u", t->a.qp.handle);
	id[16] = rule(t, text);
	assert_int_not_equal(t->a.qp.handle, t->b.qp.handle);
	write_some(t, 4 * MTU);		/* 4 packets, 1 ACK */
	expect(t, id[0], 5, 5);
	expect(t, id[1], 5, 5);
	expect(t, id[2], 4, 4);
	expect(t, id[3], 1, 1);
	expect(t, id[4], 5, 5);
	expect(t, id[5], 5, 5);
	expect(t, id[6], 2, 2);
	expect(t, id[7], 1, 1);
	expect(t, id[8], 4, 4);
	expect(t, id[9], 1, 1);
	expect(t, id[10], 0, 0);
	expect(t, id[11], 4, 4);
	expect(t, id[12], 1, 1);
	expect(t, id[13], 0, 0);
	expect(t, id[14], 0, 0);
	expect(t, id[15], 5, 5);
	expect(t, id[16], 5, 5);
}

/* Rules apply in order: a rule sees the packets that the earlier rules left. */
static void test_row(void **state)
{
	struct fix *t = *state;
	uint32_t a = rule(t, "drop opcode=WRITE_* every=3");
	uint32_t b = rule(t, "delay opcode=WRITE_* by=1ms");
	uint32_t c = rule(t, "duplicate opcode=WRITE_*");

	write_some(t, 4 * MTU);
	assert_true(info(t, a).acted >= 1);
	assert_int_equal(info(t, b).matched, info(t, a).matched - info(t, a).acted);
	assert_int_equal(info(t, c).matched, info(t, b).matched);
	assert_true(count(&t->b, CNT_duplicates) > 0);
}

static void same_fate(const struct seen *a, const struct seen *b)
{
	assert_string_equal(a->note, b->note);
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->psn, b->psn);
	assert_int_equal(a->len, b->len);
}

/* The same rules and the same packets give the same faults, packet by packet. */
static void test_again(void **state)
{
	struct fix *t = *state;
	static struct seen first[SEEN];
	unsigned int n = 0;

	for (int round = 0; round < 2; round++) {
		uint32_t base = 0;
		unsigned int m = 0;

		rule(t, "drop p=0.05 seed=4");
		rule(t, "corrupt p=0.05");
		rule(t, "reorder p=0.05 by=2");
		rule(t, "duplicate p=0.05");
		base = t->a.qp.req.next_psn;
		watch(t);
		for (int i = 0; i < 20; i++)
			write_some(t, 20 * MTU);
		for (unsigned int i = 0; i < t->nseen; i++) {
			char *by = strstr(t->seen[i].note, " by fault rule");

			if (!by)
				continue;
			*by = 0;
			t->seen[i].psn -= base;
			if (round)
				same_fate(&first[m], &t->seen[i]);
			else
				first[m] = t->seen[i];
			m++;
		}
		assert_true(m > 40);
		assert_true(!round || m == n);
		n = m;
		fault_clear(&t->w.e);
		world_finish(&t->w, LONG);
	}
}

/* Packets beyond the limit of held packets are lost, counted, and retransmitted later. */
static void test_room(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "delay by=10ms opcode=WRITE_* count=6000");

	t->a.qp.mtu_code = ORNIC_MTU_256;
	t->b.qp.mtu_code = ORNIC_MTU_256;
	t->a.qp.timeout = 8;	/* 1 ms: retransmits repeatedly without an answer */
	t->a.qp.retry_cnt = 7;
	for (int i = 0; i < 16; i++)
		post(t, ORNIC_WR_RDMA_WRITE, 128 << 10);
	world_pass(&t->w, 0);
	for (int i = 0; i < 9; i++)
		world_pass(&t->w, 1048576);
	t->a.qp.timeout = 14;
	world_finish(&t->w, LONG);
	assert_true(info(t, id).acted > 900);
	t->a.qp.timeout = 14;
}

/*
 * Send 40 messages of 200 packets each at once, more than the limit, under a rule that holds
 * packets. Captures show the packets that are lost; a copy that is not made is none.
 */
static void fill_up(struct fix *t, const char *text, bool lost)
{
	struct switch_observer eye = { see_lost, t };
	struct conn c[40], d[40];
	struct ornic_cqe cqe;
	uint32_t other, id, last;

	for (int i = 0; i < 40; i++) {
		conn_init(&c[i], t->a.d, NULL);
		conn_init(&d[i], t->b.d, NULL);
		conn_pair(&c[i], &d[i], 1, 1);
	}
	other = rule(t, "ecn opcode=READ_REQUEST");
	id = rule(t, text);
	last = rule(t, "ecn device=vm2 dir=rx opcode=READ_REQUEST");
	for (int i = 0; i < 40; i++) {
		struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED,
				 .raddr = t->bbuf, .rkey = t->bkey };

		wr_sge(&wr, t->abuf, 200 * MTU, t->akey);
		conn_send(&c[i], &wr);
	}
	t->nlost = 0;
	switch_set_observer(t->w.e.sw, &eye);
	world_run(&t->w);
	switch_set_observer(t->w.e.sw, NULL);
	assert_true(info(t, id).matched > 4500);
	assert_int_equal(info(t, id).acted, info(t, id).matched);
	assert_int_equal(info(t, id).no_room, info(t, id).acted - 4096);
	assert_int_equal(t->nlost, lost ? info(t, id).no_room : 0);
	/* packets that no rule holds need no room, even under rules at entry and exit */
	post(t, ORNIC_WR_RDMA_READ, 4 * MTU);
	world_run(&t->w);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	expect(t, other, 1, 1);
	expect(t, last, 1, 1);
	assert_int_equal(info(t, other).no_room, 0);
	assert_int_equal(info(t, last).no_room, 0);
	world_finish(&t->w, LONG);
	for (int i = 0; i < 40; i++) {
		conn_expect(&c[i], &c[i].hscq, 0, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
		conn_fini(&c[i]);
		conn_fini(&d[i]);
	}
	fault_clear(&t->w.e);
}

/* The rule that wanted to hold a packet counts its loss. */
static void test_full(void **state)
{
	struct fix *t = *state;

	fill_up(t, "delay by=1ms opcode=WRITE_*", true);
	fill_up(t, "reorder within=1ms opcode=WRITE_*", true);
	fill_up(t, "duplicate by=1ms opcode=WRITE_*", false);
}

/* Packets held by a rule that is deleted, or at a port that is removed. */
static void test_gone(void **state)
{
	static const struct switch_port_ops ops;
	struct fix *t = *state;
	struct switch_port *port = switch_port_add(t->w.e.sw, "lan", &ops, NULL);
	uint32_t id = rule(t, "reorder by=5 within=1s opcode=WRITE_LAST");
	static uint8_t frame[60] = { 2, 0, 0, 0, 0, 1, 2, 9, 9, 9, 9, 9, 8, 0 };

	post(t, ORNIC_WR_RDMA_WRITE, 2 * MTU);
	world_run(&t->w);
	expect(t, id, 1, 1);
	assert_int_equal(fault_del(&t->w.e, id), 0);
	assert_true(switch_is_faulty(t->w.e.sw));
	finish(t, ORNIC_WC_SUCCESS);
	assert_false(switch_is_faulty(t->w.e.sw));
	id = rule(t, "delay port=lan dir=rx packet=any by=1s");
	switch_port_set_up(port, true);
	send_frame(t, port, frame, sizeof(frame));
	expect(t, id, 1, 1);
	watch(t);
	switch_port_del(port);
	assert_int_equal(t->w.e.timers.n, 0);
	assert_int_equal(t->nseen, 1);
	assert_string_equal(t->seen[0].note, "dropped: port deleted");
	assert_int_equal(t->seen[0].way, SWITCH_IN);
	assert_int_equal(t->seen[0].len, sizeof(frame));
}

/* A list of ports that is too long for a message is cut off after 255 bytes. */
static void many_ports(struct fix *t)
{
	static const struct switch_port_ops ops;
	char name[64], all[600] = "vm1, vm2, vm3", want[FAULT_ERROR], err[FAULT_ERROR];
	struct switch_port *port[8];
	uint32_t id;

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%060d", i);
		port[i] = switch_port_add(t->w.e.sw, name, &ops, NULL);
		strcat(strcat(all, ", "), name);
	}
	all[255] = '\0';
	snprintf(want, sizeof(want), "there is no port x; there are %s", all);
	assert_int_equal(fault_add(&t->w.e, "drop port=x", &id, err), -ENOENT);
	assert_string_equal(err, want);
	for (int i = 0; i < 8; i++)
		switch_port_del(port[i]);
}

static void test_refused(void **state)
{
	static const struct switch_port_ops ops;
	struct fix *t = *state;
	struct switch_port *port;
	struct fault_info i;
	char err[FAULT_ERROR];
	uint32_t id;

	assert_int_equal(fault_add(&t->w.e, "drop device=nobody", &id, err), -ENOENT);
	assert_string_equal(err, "there is no device nobody; there are vm1, vm2, vm3");
	port = switch_port_add(t->w.e.sw, "lan", &ops, NULL);
	assert_int_equal(fault_add(&t->w.e, "drop device=lan", &id, err), -ENOENT);
	assert_string_equal(err, "there is no device lan; there are vm1, vm2, vm3");
	assert_int_equal(fault_add(&t->w.e, "drop port=nobody", &id, err), -ENOENT);
	assert_string_equal(err, "there is no port nobody; there are vm1, vm2, vm3, lan");
	switch_port_del(port);
	many_ports(t);
	assert_int_equal(fault_add(&t->w.e, "drop device=x", &id, err), -ENOENT);
	assert_int_equal(fault_add(&t->w.e, "drop often", &id, err), -EINVAL);
	assert_int_equal(fault_add(&t->w.e, "qp-error device=vm1 qp=999", &id, err), -ENOENT);
	assert_string_equal(err, "device vm1 has no queue pair 999");
	assert_false(fault_next(&t->w.e, 0, &i));
	for (int round = 0; round < 2; round++) {
		/* a rejected rule takes neither number nor room */
		for (int n = 1; n <= FAULT_RULES; n++)
			assert_int_equal(rule(t, "drop psn=77"), round * FAULT_RULES + n);
		assert_int_equal(fault_add(&t->w.e, "drop psn=77", &id, err), -ENOSPC);
		assert_string_equal(err, "there are 256 rules, the most possible; delete some");
		fault_clear(&t->w.e);
		assert_false(fault_next(&t->w.e, 0, &i));
	}
}

/*
 * Rules take room for a timer each and, if they are for packets, memory for frames. The room
 * returns when they are deleted, and the rest when the engine ends.
 */
static void test_released(void **state)
{
	struct fix *t = *state;
	struct engine *e = &t->w.e;
	const uint32_t cap = e->timers.cap, armed = e->timers.n;
	uint32_t id[2];

	id[0] = rule(t, "fatal device=vm1 in=1s");
	assert_int_equal(e->timers.cap, cap + 2);
	assert_int_equal(e->timers.n, armed + 1);
	assert_null(faults_of(e)->frames);
	assert_false(switch_is_faulty(e->sw));
	id[1] = rule(t, "delay by=1s");
	assert_int_equal(e->timers.cap, cap + 3);
	assert_non_null(faults_of(e)->frames);
	assert_int_equal(fault_del(e, id[0]), 0);
	assert_int_equal(e->timers.cap, cap + 2);
	assert_int_equal(e->timers.n, armed);
	assert_int_equal(fault_del(e, id[1]), 0);
	assert_int_equal(e->timers.cap, cap + 1);
	id[1] = rule(t, "delay by=1s");
	post(t, ORNIC_WR_RDMA_WRITE, 8);
	world_run(&t->w);
	expect(t, id[1], 1, 1);
	assert_int_equal(fault_del(e, id[1]), 0);
	assert_true(switch_is_faulty(e->sw));
	assert_true(timer_armed(&faults_of(e)->timer));
	rule(t, "fatal device=vm1 in=1s");
	e->faults->fini(e);
	assert_null(e->faults);
	assert_false(switch_is_faulty(e->sw));
	assert_int_equal(e->timers.cap, cap);
	finish(t, ORNIC_WC_SUCCESS);
}

static void write_file(char *path, const char *text, size_t len)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static char load_said[256];

static int load(struct fix *t, const char *text, size_t len)
{
	char path[] = "/tmp/ornic-fault-XXXXXX";
	int ret;

	write_file(path, text, len);
	log_keep(load_said, sizeof(load_said));
	ret = fault_file(&t->w.e, path);
	log_keep(NULL, 0);
	unlink(path);
	return ret;
}

/* Check that a file is rejected because of line @number, with a message that begins with @want. */
static void reject(struct fix *t, const char *text, size_t len, unsigned int number,
		   const char *want)
{
	char where[32];
	const char *said;

	snprintf(where, sizeof(where), ":%u: ", number);
	assert_int_equal(load(t, text, len), -EINVAL);
	said = strstr(load_said, where);
	assert_non_null(said);
	assert_int_equal(strncmp(said + strlen(where), want, strlen(want)), 0);
}

static void test_file(void **state)
{
	static const char too_long[] =
		"the line is longer than 1022 characters, or has a zero byte";
	static const char zero[] = "drop\n\ndrop p=0.1\0 foo\ndrop\n";
	static char longest[4000];
	struct fix *t = *state;
	struct fault_info i;

	assert_int_equal(load(t, "# nothing\n\n  \t\n", 15), 0);
	assert_false(fault_next(&t->w.e, 0, &i));
	assert_int_equal(load(t, "drop nth=3 # the third\n\n  ecn   every=2", 39), 0);
	assert_true(fault_next(&t->w.e, 0, &i));
	assert_string_equal(i.text, "drop nth=3");
	assert_true(fault_next(&t->w.e, i.id, &i));
	assert_string_equal(i.text, "ecn every=2");
	assert_false(fault_next(&t->w.e, i.id, &i));
	reject(t, "drop\ndrip\ndrop\n", 15, 2, "\"drip\" is not an action");
	reject(t, zero, sizeof(zero) - 1, 3, too_long);
	memset(longest, 'x', sizeof(longest));
	reject(t, longest, sizeof(longest), 1, too_long);
	longest[1022] = '\n';
	reject(t, longest, 1023, 1, "the rule is longer than 255 characters");
	reject(t, longest, 1022, 1, "the rule is longer than 255 characters");
	longest[1022] = 'x';
	longest[1023] = '\n';
	reject(t, longest, 1024, 1, too_long);
	log_keep(load_said, sizeof(load_said));
	assert_int_equal(fault_file(&t->w.e, "/nonexistent/rules"), -ENOENT);
	assert_string_equal(load_said, "cannot read /nonexistent/rules: No such file or directory");
	log_keep(load_said, sizeof(load_said));
	assert_int_equal(fault_file(&t->w.e, "/"), -EISDIR);
	assert_string_equal(load_said, "cannot read /: Is a directory");
	log_keep(NULL, 0);
}

/* Return true if a line of the guide looks like a rule. */
static bool is_rule(const char *line)
{
	static const char *const actions[] = {
		"drop ", "duplicate ", "reorder ", "delay ", "corrupt ", "truncate ", "ecn ",
		"flap ", "qp-error ", "fatal ", "cqe ", "admin ",
	};

	if (*line != '\t')
		return false;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strncmp(line + 1, actions[i], strlen(actions[i])))
			return true;
	return false;
}

/*
 * Every recipe of the chapter on fault injection is a rule, and those for packets have an effect.
 */
static void test_recipes(void **state)
{
	FILE *guide = fopen("Documentation/guide/fault-injection.rst", "r");
	struct fix *t = *state;
	unsigned int n = 0;
	char line[300];

	assert_non_null(guide);
	t->a.qp.timeout = 10;
	t->b.qp.timeout = 10;
	while (fgets(line, sizeof(line), guide)) {
		uint32_t id;

		line[strcspn(line, "\n")] = 0;
		if (!is_rule(line))
			continue;
		n++;
		id = rule(t, line + 1);
		if (strncmp(line + 1, "admin", 5)) {
			for (int i = 0; i < 120; i++) {
				post(t, i & 1 ? ORNIC_WR_FETCH_ADD : ORNIC_WR_RDMA_READ,
				     i & 1 ? 8 : 5 * MTU);
				post(t, ORNIC_WR_RDMA_WRITE, 5 * MTU);
			}
			world_finish(&t->w, LONG);
			if (strncmp(line + 1, "drop opcode=NAK", 15) && !info(t, id).acted)
				fail_msg("\"%s\" did nothing", line + 1);
		}
		fault_clear(&t->w.e);
		world_finish(&t->w, LONG);
		again(t);
	}
	fclose(guide);
	assert_in_range(n, 15, 50);
}

static void test_flap(void **state)
{
	struct fix *t = *state;
	struct ornic_eqe e;
	uint32_t id = rule(t, "flap device=vm2 for=20ms");

	expect(t, id, 1, 1);
	assert_true(info(t, id).spent);
	assert_true(dut_event(t->b.d, &e));
	assert_int_equal(e.type, ORNIC_EV_PORT_ERR);
	assert_int_equal(le32toh(e.number), 1);
	assert_int_equal(e.owner | e.syndrome | e.info0 | e.info1, 0);
	assert_int_equal(t->b.d->changes, 1);
	assert_false(switch_port_is_up(t->b.d->dev.port.sw));
	post(t, ORNIC_WR_RDMA_WRITE, 4 * MTU);
	world_run(&t->w);
	assert_false(dut_event(t->b.d, &e));
	assert_int_equal(count(&t->b, CNT_rx_write), 0);
	finish(t, ORNIC_WC_SUCCESS);
	assert_true(dut_event(t->b.d, &e));
	assert_int_equal(e.type, ORNIC_EV_PORT_ACTIVE);
	assert_int_equal(le32toh(e.info0), 1);
	assert_int_equal(e.owner | e.syndrome | e.info1, 0);
	assert_int_equal(t->b.d->changes, 2);
	assert_true(switch_port_is_up(t->b.d->dev.port.sw));
	assert_int_equal(count(&t->a, CNT_ack_timeouts), 1);
	/* at a packet; a deleted rule restores the link */
	id = rule(t, "flap device=vm2 for=1s opcode=WRITE_* nth=3");
	post(t, ORNIC_WR_RDMA_WRITE, 4 * MTU);
	world_run(&t->w);
	expect(t, id, 3, 1);
	assert_true(t->b.d->dev.port.unplugged);
	fault_del(&t->w.e, id);
	assert_false(t->b.d->dev.port.unplugged);
	finish(t, ORNIC_WC_SUCCESS);
	/* by the clock */
	id = rule(t, "flap device=vm1 in=1s for=1s again=3s count=3");
	expect(t, id, 0, 0);
	for (int i = 0; i < 12; i++) {
		bool down = i == 1 || i == 4 || i == 7;

		assert_int_equal(t->a.d->dev.port.unplugged, down);
		world_pass(&t->w, SECOND);
	}
	expect(t, id, 3, 3);
	assert_true(info(t, id).spent);
}

/* A port is up again when the last of its rules ends, by itself or by deletion. */
static void test_flaps_together(void **state)
{
	struct fix *t = *state;
	const struct port *one = &t->a.d->dev.port, *two = &t->b.d->dev.port;
	uint32_t id;

	rule(t, "flap device=vm2 for=1s");
	rule(t, "flap device=vm2 for=2s");
	rule(t, "flap device=vm1 for=3s");
	world_pass(&t->w, SECOND);
	assert_true(two->unplugged);
	world_pass(&t->w, SECOND);
	assert_false(two->unplugged);
	assert_true(one->unplugged);
	id = rule(t, "flap device=vm1 for=9s");
	fault_del(&t->w.e, id);
	assert_true(one->unplugged);
	world_pass(&t->w, SECOND);
	assert_false(one->unplugged);
}

/* While the port is down its rule matches packets on their way, but does not act on them. */
static void test_flap_by_packets(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "flap device=vm2 for=1s opcode=WRITE_*");

	post(t, ORNIC_WR_RDMA_WRITE, 4 * MTU);
	world_run(&t->w);
	expect(t, id, 4, 1);
	fault_del(&t->w.e, id);
	finish(t, ORNIC_WC_SUCCESS);
	/* a rule that may act again waits for a packet, not for a time */
	id = rule(t, "flap device=vm2 for=100ms opcode=WRITE_ONLY every=2");
	write_some(t, 8);
	write_some(t, 8);
	world_pass(&t->w, LONG);
	expect(t, id, 3, 1);
	assert_false(t->b.d->dev.port.unplugged);
}

/* The link of a port to the outside; a port that is added meanwhile is down, too. */
static void test_flap_port(void **state)
{
	static const struct switch_port_ops ops;
	struct fix *t = *state;
	struct net_switch *sw = t->w.e.sw;
	struct switch_port *lan = switch_port_add(sw, "lan", &ops, NULL);
	struct switch_port *other = switch_port_add(sw, "other", &ops, NULL);

	switch_port_set_up(lan, true);
	switch_port_set_up(other, true);
	rule(t, "flap port=lan for=1s");
	assert_false(switch_port_is_up(lan));
	switch_port_del(lan);
	world_pass(&t->w, SECOND / 2);
	lan = switch_port_add(sw, "lan", &ops, NULL);
	switch_port_set_up(lan, true);
	fault_port_added(&t->w.e, "other");
	assert_true(switch_port_is_up(lan));
	fault_port_added(&t->w.e, "lan");
	assert_false(switch_port_is_up(lan));
	assert_true(switch_port_is_up(other));
	world_pass(&t->w, SECOND / 2);
	assert_true(switch_port_is_up(lan));
	/* the rule that has ended does not set a port up */
	switch_port_set_up(lan, false);
	fault_port_added(&t->w.e, "lan");
	assert_false(switch_port_is_up(lan));
	switch_port_del(lan);
	switch_port_del(other);
}

static void test_qp_error(void **state)
{
	struct fix *t = *state;
	struct ornic_eqe e;
	char text[100];

	rule(t, "qp-error device=vm2 opcode=WRITE_* dir=rx nth=3");
	t->a.qp.retry_cnt = 1;
	post(t, ORNIC_WR_RDMA_WRITE, 4 * MTU);
	finish(t, ORNIC_WC_RETRY_EXC_ERR);
	assert_int_equal(t->b.qp.state, ORNIC_QPS_ERR);
	assert_int_equal(t->b.qp.syndrome, FAULT_SYNDROME);
	while (dut_event(t->b.d, &e) && e.type != ORNIC_EV_QP_FATAL)
		;
	assert_int_equal(e.type, ORNIC_EV_QP_FATAL);
	assert_int_equal(le32toh(e.syndrome), FAULT_SYNDROME);
	assert_int_equal(le32toh(e.info1), 0);
	qp_set_state(&t->a.qp, ORNIC_QPS_RESET);
	snprintf(text, sizeof(text), "qp-error device=vm1 qp=%u in=1s", t->a.qp.handle);
	rule(t, text);
	conn_rts(&t->a);
	world_pass(&t->w, SECOND);
	assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
}

#define NO_QP	"ornicd: warning: fault rule 1: qp-error device=vm2 opcode=WRITE_* dir=rx count=1: " \
		"device vm2 has no queue pair 999\n"

/* A fault that could not be injected does not count, but is in the log. */
static void test_nothing_to_act_on(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "qp-error device=vm2 opcode=WRITE_* dir=rx count=1");
	uint32_t peer = t->a.qp.dest_qpn;

	t->a.qp.dest_qpn = 999;
	post(t, ORNIC_WR_RDMA_WRITE, 2 * MTU);
	lines_begin();
	world_run(&t->w);
	lines_end(NO_QP NO_QP);
	expect(t, id, 2, 0);
	assert_false(info(t, id).spent);
	fault_clear(&t->w.e);
	t->a.qp.dest_qpn = peer;
	finish(t, ORNIC_WC_SUCCESS);
}

/* The queue pair that fails is that of the rule's device, for packets of both directions. */
static void test_qp_error_ends(void **state)
{
	static const char *const rules[] = {
		"qp-error device=vm1 opcode=WRITE_ONLY dir=tx",
		"qp-error device=vm1 opcode=ACK dir=rx",
	};
	struct fix *t = *state;

	for (int i = 0; i < 2; i++) {
		uint32_t id = rule(t, rules[i]);

		post(t, ORNIC_WR_RDMA_WRITE, 8);
		world_run(&t->w);
		expect(t, id, 1, 1);
		assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
		assert_int_equal(t->other.qp.state, ORNIC_QPS_RESET);
		assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
		fault_clear(&t->w.e);
		again(t);
	}
}

/* A rule of another kind behind a packet rule does not hide it, in either order of creation. */
static void test_kinds_together(void **state)
{
	struct fix *t = *state;
	uint32_t first = rule(t, "drop opcode=WRITE_* nth=5");
	uint32_t other = rule(t, "cqe device=vm1 queue=send nth=9 status=RETRY_EXC_ERR");
	uint32_t last;

	write_some(t, 8 * MTU);
	expect(t, first, 5, 1);
	last = rule(t, "drop opcode=WRITE_* nth=2");
	write_some(t, 8 * MTU);
	expect(t, last, 2, 1);
	expect(t, other, 2, 0);
}

/* Captures contain packets that a device sends while its link is down, with a comment. */
static void test_flap_is_seen(void **state)
{
	struct fix *t = *state;

	rule(t, "flap device=vm1 for=1s");
	switch_set_observer(t->w.e.sw, &t->eye);
	post(t, ORNIC_WR_RDMA_WRITE, 1);
	world_run(&t->w);
	assert_int_equal(t->nseen, 2);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(t->seen[i].port, t->a.d->dev.port.sw);
		assert_int_equal(t->seen[i].way, SWITCH_IN);
		assert_int_equal(t->seen[i].opcode, BTH_RC_WRITE_ONLY);
	}
	assert_string_equal(t->seen[0].note, "");
	assert_string_equal(t->seen[1].note, "dropped: link down");
	fault_clear(&t->w.e);
	finish(t, ORNIC_WC_SUCCESS);
}

static void test_fatal(void **state)
{
	struct fix *t = *state;
	struct fault_info i;
	char err[FAULT_ERROR];
	uint32_t id;

	t->a.qp.retry_cnt = 1;
	rule(t, "fatal device=vm2 opcode=WRITE_LAST");
	post(t, ORNIC_WR_RDMA_WRITE, 4 * MTU);
	finish(t, ORNIC_WC_RETRY_EXC_ERR);
	assert_int_equal(t->b.d->fatals, 1);
	fault_clear(&t->w.e);
	assert_int_equal(fault_add(&t->w.e, "fatal device=vm2", &id, err), -ENODEV);
	assert_false(fault_next(&t->w.e, 0, &i));
	t->b.d->dev.running = true;
	rule(t, "fatal device=vm2");
	assert_int_equal(t->b.d->fatals, 2);
	t->b.d->dev.running = true;
}

static void test_cqe_send(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "cqe device=vm1 queue=send nth=2 status=RETRY_EXC_ERR");
	struct ornic_cqe cqe;
	struct ornic_eqe e;

	for (int i = 0; i < 4; i++)
		post(t, ORNIC_WR_RDMA_WRITE, 8);
	finish(t, ORNIC_WC_SUCCESS);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_RETRY_EXC_ERR);
	assert_int_equal(le32toh(cqe.syndrome), FAULT_SYNDROME);
	for (int i = 0; i < 2; i++) {
		assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
		assert_int_equal(cqe.status, ORNIC_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(t->a.qp.state, ORNIC_QPS_ERR);
	assert_false(dut_event(t->a.d, &e));
	expect(t, id, 2, 1);
}

/* A rule for another device, queue pair or queue does not match; one for any queue does. */
static void test_cqe_others(void **state)
{
	static const char *const others[] = {
		"device=vm2", "device=vm1 qp=0xffffff", "device=vm1 queue=recv",
		"device=vm2 queue=send",
	};
	struct fix *t = *state;
	uint32_t id[4], last;
	char text[80];

	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "cqe status=LOC_PROT_ERR %s", others[i]);
		id[i] = rule(t, text);
	}
	snprintf(text, sizeof(text), "cqe status=GENERAL_ERR device=vm1 qp=%u nth=2",
		 t->a.qp.handle);
	last = rule(t, text);
	post(t, ORNIC_WR_RDMA_WRITE, 8);
	finish(t, ORNIC_WC_SUCCESS);
	post(t, ORNIC_WR_RDMA_WRITE, 8);
	finish(t, ORNIC_WC_GENERAL_ERR);
	for (int i = 0; i < 4; i++)
		expect(t, id[i], 0, 0);
	expect(t, last, 2, 1);
}

static void test_cqe_recv(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "cqe device=vm2 queue=recv status=LOC_PROT_ERR");
	struct ornic_cqe cqe;
	struct ornic_eqe e;

	conn_recv(&t->b, t->bbuf, 100, t->bkey);
	post(t, ORNIC_WR_SEND, 100);
	finish(t, ORNIC_WC_REM_OP_ERR);
	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_LOC_PROT_ERR);
	assert_int_equal(t->b.qp.state, ORNIC_QPS_ERR);
	while (dut_event(t->b.d, &e))
		assert_int_equal(e.type, ORNIC_EV_COMM_EST);
	expect(t, id, 1, 1);
}

/*
 * A datagram whose completion is replaced by an error puts its queue pair into SQE, as other
 * failures do.
 */
static void test_cqe_ud(void **state)
{
	const struct conn_opt ud = { .type = ORNIC_QPT_UD };
	struct fix *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct ornic_eqe e;
	struct conn c, d;

	conn_init(&c, t->a.d, &ud);
	conn_init(&d, t->b.d, &ud);
	conn_rts(&c);
	conn_rts(&d);
	wr_sge(&wr, t->abuf, 10, t->akey);
	memcpy(wr.path.dmac, t->b.d->dev.port.mac, 6);
	dut_gid(t->b.d, 0, wr.path.dgid);
	wr.path.hop_limit = 64;
	wr.path.dest_qpn = htole32(d.qp.wire_qpn);
	conn_recv(&d, t->bbuf, 100, t->bkey);
	rule(t, "cqe status=GENERAL_ERR queue=send");
	conn_send(&c, &wr);
	world_finish(&t->w, LONG);
	conn_expect(&c, &c.hscq, 0, ORNIC_WC_SEND, ORNIC_WC_GENERAL_ERR);
	assert_int_equal(c.qp.state, ORNIC_QPS_SQE);
	conn_expect(&d, &d.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	fault_clear(&t->w.e);
	rule(t, "cqe status=GENERAL_ERR queue=recv");
	qp_set_state(&c.qp, ORNIC_QPS_RTS);
	conn_recv(&d, t->bbuf, 100, t->bkey);
	conn_recv(&d, t->bbuf, 100, t->bkey);
	conn_send(&c, &wr);
	world_finish(&t->w, LONG);
	conn_expect(&c, &c.hscq, 1, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	conn_expect(&d, &d.hrcq, 1, ORNIC_WC_RECV, ORNIC_WC_GENERAL_ERR);
	conn_expect(&d, &d.hrcq, 2, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR);
	assert_false(dut_event(t->a.d, &e));
	assert_false(dut_event(t->b.d, &e));	/* the completion reports it (ORN-ERR-2) */
	conn_fini(&c);
	conn_fini(&d);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_none),
		TEST(test_cut),
		TEST(test_drop),
		TEST(test_nth),
		TEST(test_duplicate),
		TEST(test_reorder),
		TEST(test_delay),
		TEST(test_forwarded),
		TEST(test_notes),
		TEST(test_corrupt),
		TEST(test_corrupt_ethernet),
		TEST(test_corrupt_nothing),
		TEST(test_checksum),
		TEST(test_short),
		TEST(test_truncate),
		TEST(test_truncate_own),
		TEST(test_truncate_own_group),
		TEST(test_ecn),
		TEST(test_cnp),
		TEST(test_conditions),
		TEST(test_row),
		TEST(test_again),
		TEST(test_room),
		TEST(test_full),
		TEST(test_gone),
		TEST(test_refused),
		TEST(test_released),
		TEST(test_file),
		TEST(test_recipes),
		TEST(test_flap),
		TEST(test_flaps_together),
		TEST(test_flap_by_packets),
		TEST(test_flap_port),
		TEST(test_qp_error),
		TEST(test_qp_error_ends),
		TEST(test_nothing_to_act_on),
		TEST(test_kinds_together),
		TEST(test_flap_is_seen),
		TEST(test_fatal),
		TEST(test_cqe_send),
		TEST(test_cqe_others),
		TEST(test_cqe_recv),
		TEST(test_cqe_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
