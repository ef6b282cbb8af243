// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion control of a queue pair. engine/dcqcn.c: comparison with the paper's rules in
 * floating point, step by step. engine/cnp.c: the notification packet, byte for byte, and when it
 * is sent.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/peer.h"
#include "engine/cc.h"
#include "engine/counters.h"
#include "packet/ecn.h"
#include "packet/frames.h"
#include "packet/wire.h"

#define US	1000ull
#define BUF	65536
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ)

/* ---- the reaction point ----------------------------------------------------- */

/**
 * struct model - DCQCN as in the paper (section 3.1, equations 1 to 4, figure 7); rates in
 * kbit/s, times in ns; timers expire one by one
 */
struct model {
	const struct cc_param *p;
	double rate, target, alpha;
	uint64_t timer, estimate, cut;
	uint64_t bytes;
	uint32_t t, bc;
	bool limiting;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double apart(double a, double b)
{
	return a > b ? a - b : b - a;
}

static double max_rate(const struct cc_param *p)
{
	return p->v[CC_rp_max_rate] * 1e3;
}

static void model_increase(struct model *m)
{
	uint32_t f = m->p->v[CC_rp_threshold];
	uint32_t most = m->t > m->bc ? m->t : m->bc, least = m->t < m->bc ? m->t : m->bc;

	if (least > f)
		m->target += m->p->v[CC_rp_hai_rate] * 1e3;	/* hyper increase */
	else if (most >= f)
		m->target += m->p->v[CC_rp_ai_rate] * 1e3;	/* additive increase */
	if (m->target > max_rate(m->p))
		m->target = max_rate(m->p);
	m->rate = (m->rate + m->target) / 2;
}

static void model_time(struct model *m, uint64_t now)
{
	uint64_t t = m->p->v[CC_rp_time_reset] * US, k = m->p->v[CC_rp_dce_tcp_rtt] * US;

	while (m->limiting && m->timer + t <= now) {
		m->timer += t;
		model_increase(m);
		m->t++;
	}
	for (; m->limiting && m->estimate + k <= now; m->estimate += k)
		m->alpha *= 1 - m->p->v[CC_rp_dce_tcp_g] / 1024.0;
}

static void model_sent(struct model *m, uint32_t bytes, uint64_t now)
{
	model_time(m, now);
	m->bytes += bytes;
	while (m->p->v[CC_rp_byte_reset] && m->bytes >= m->p->v[CC_rp_byte_reset]) {
		m->bytes -= m->p->v[CC_rp_byte_reset];
		model_increase(m);
		m->bc++;
	}
}

static void model_cnp(struct model *m, uint64_t now)
{
	double g = m->p->v[CC_rp_dce_tcp_g] / 1024.0;

	if (!m->limiting) {
		m->limiting = true;
		m->rate = max_rate(m->p);
		m->alpha = m->p->v[CC_rp_initial_alpha_value] / 1024.0;
		m->timer = now;
		m->estimate = now;
	}
	model_time(m, now);
	m->target = m->rate;
	m->rate = larger(m->rate * (1 - m->alpha / 2), m->rate * m->p->v[CC_rp_min_dec_fac] / 100.0);
	m->rate = larger(m->rate, m->p->v[CC_rp_min_rate] * 1e3);
	m->alpha = (1 - g) * m->alpha + g;
	m->timer = now;
	m->estimate = now;
	m->bytes = 0;
	m->t = 0;
	m->bc = 0;
}

static void agree(const struct cc *c, const struct model *m)
{
	if (apart(c->rate, m->rate) > 10 + m->rate * 1e-3 ||
	    apart(c->target, m->target) > 10 + m->target * 1e-3)
		fail_msg("rate %u, target %u instead of %.0f, %.0f", c->rate, c->target, m->rate,
			 m->target);
}

/* Run @n random events: bursts of CNPs, and packets between them. */
static void follow(const struct cc_param *p, uint32_t n, uint32_t calm)
{
	struct cc c = {};
	struct model m = { .p = p };
	uint64_t now = 1000000000;
	uint32_t freed = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!c.limiting || !(rand() % calm)) {
			assert_true(dcqcn_cnp(&c, p, now));
			model_cnp(&m, now);
			assert_int_equal(c.rate >= p->v[CC_rp_min_rate] * 1000, 1);
		} else {
			uint32_t bytes = rand() % 9000;

			dcqcn_advance(&c, p, bytes, now);
			model_sent(&m, bytes, now);
		}
		agree(&c, &m);
		if (c.limiting)
			assert_true(apart(c.alpha / (double)CC_ONE, m.alpha) < 0.001 ||
				    c.alpha_at != m.estimate);
		/* at the very end rounding decides the order */
		if (!c.limiting || m.rate >= max_rate(p) - 1) {
			freed++;
			c.limiting = false;
			m.limiting = false;
		}
		now += rand() % (p->v[CC_rp_time_reset] * 3000) + 51 * US;
	}
	if (calm > 1000)
		assert_true(freed);
}

static void test_model(void **state)
{
	struct cc_param p;

	(void)state;
	srand(1);
	cc_defaults(&p);
	follow(&p, 20000, 10);
	follow(&p, 20000, 100);
	assert_int_equal(cc_set(&p, "rp_max_rate", 1000), 0);
	follow(&p, 200000, 5000);
	/* the paper's numbers, for 40 Gbit/s */
	assert_int_equal(cc_set(&p, "rp_max_rate", 40000), 0);
	assert_int_equal(cc_set(&p, "rp_time_reset", 55), 0);
	assert_int_equal(cc_set(&p, "rp_ai_rate", 40), 0);
	assert_int_equal(cc_set(&p, "rp_hai_rate", 200), 0);
	assert_int_equal(cc_set(&p, "rp_byte_reset", 10000000), 0);
	follow(&p, 50000, 20);
	follow(&p, 50000, 3000);
	/* extremes: the estimate jumps; bytes count more than time, or not at all */
	assert_int_equal(cc_set(&p, "rp_dce_tcp_g", 1024), 0);
	assert_int_equal(cc_set(&p, "rp_byte_reset", 1000), 0);
	assert_int_equal(cc_set(&p, "rp_min_dec_fac", 90), 0);
	assert_int_equal(cc_set(&p, "rp_min_rate", 100), 0);
	follow(&p, 20000, 30);
	assert_int_equal(cc_set(&p, "rp_byte_reset", 0), 0);
	assert_int_equal(cc_set(&p, "rp_initial_alpha_value", 0), 0);
	assert_int_equal(cc_set(&p, "rp_threshold", 1), 0);
	follow(&p, 20000, 30);
}

/* The first CNP sets the rate to @first; more of them lower it to @least. */
static void check_cnps(struct cc *c, const struct cc_param *p, uint64_t now, uint32_t first,
		       uint32_t least)
{
	assert_true(dcqcn_cnp(c, p, now));
	assert_int_equal(c->rate, first);
	assert_int_equal(c->target, 1000000);
	for (int i = 1; i < 20; i++)
		assert_true(dcqcn_cnp(c, p, now + i * 50 * US));
	assert_int_equal(c->rate, least);
}

/* The first steps, calculated by hand. */
static void test_steps(void **state)
{
	struct cc_param p;
	struct cc c = {};
	uint64_t now = 5000000000ull;

	(void)state;
	cc_defaults(&p);
	assert_int_equal(cc_set(&p, "rp_max_rate", 1000), 0);
	assert_int_equal(cc_set(&p, "rp_dce_tcp_rtt", 1000000), 0);
	assert_int_equal(cc_set(&p, "rp_time_reset", 100), 0);
	assert_true(dcqcn_cnp(&c, &p, now));
	assert_int_equal(c.rate, 500000);		/* the estimate begins with 1 */
	assert_int_equal(c.target, 1000000);
	assert_false(dcqcn_cnp(&c, &p, now + 49 * US));	/* too soon */
	assert_int_equal(c.rate, 500000);
	assert_int_equal(dcqcn_next(&c, &p), now + 100 * US);
	assert_false(dcqcn_advance(&c, &p, 1000, now + 99 * US));
	assert_true(dcqcn_advance(&c, &p, 1000, now + 100 * US));
	assert_int_equal(c.rate, 750000);		/* fast recovery */
	assert_true(dcqcn_cnp(&c, &p, now + 150 * US));
	assert_int_equal(c.rate, 375000);
	assert_int_equal(c.target, 750000);
	now += 150 * US;
	for (int i = 1; i <= 5; i++)
		assert_true(dcqcn_advance(&c, &p, 0, now + i * 100 * US));
	assert_int_equal(c.target, 750000);
	assert_in_range(c.rate, 738000, 738500);	/* 750 - 375 / 32 */
	assert_true(dcqcn_advance(&c, &p, 0, now + 600 * US));
	assert_int_equal(c.target, 755000);		/* additive */
	for (int i = 0; i < 6; i++)
		assert_true(dcqcn_advance(&c, &p, 1 << 20, now + 600 * US));
	assert_int_equal(c.target, 755000 + 6 * 5000);
	assert_true(dcqcn_advance(&c, &p, 1 << 20, now + 600 * US));
	assert_int_equal(c.target, 785000 + 50000);	/* hyper */
	/* One hour later no limit is left. */
	assert_true(c.limiting);
	assert_true(dcqcn_advance(&c, &p, 0, now + 3600000000000ull));
	assert_false(c.limiting);
	/* The first CNP sets the configured initial rate. */
	assert_int_equal(cc_set(&p, "rp_rate_to_set_on_first_cnp", 30), 0);
	check_cnps(&c, &p, now, 30000, 1000);		/* rp_min_rate */
}

/* The rate reaches its target and does not exceed it, and a CNP begins from the present. */
static void test_edges(void **state)
{
	static const uint32_t first[][2] = { { 1000, 500000 }, { 999, 999000 }, { 0, 500000 } };
	const uint64_t now = 5000000000ull;
	struct cc_param p;
	uint64_t period;

	(void)state;
	cc_defaults(&p);
	assert_int_equal(cc_set(&p, "rp_max_rate", 1000), 0);
	period = p.v[CC_rp_time_reset] * US;
	for (uint32_t below = 0; below <= 4; below++) {
		for (uint32_t target = 700000; target <= 700001; target++) {
			struct cc c = {
				.limiting = true, .rate = target - below, .target = target,
				.timer_at = now,
			};

			assert_true(dcqcn_advance(&c, &p, 0, now + period + 7));
			assert_int_equal(c.rate, target - below / 2);
			assert_int_equal(c.target, target);
			assert_int_equal(c.time_stage, 1);
			assert_int_equal(dcqcn_next(&c, &p), now + 2 * period);
		}
	}
	/* The rate for the first CNP applies if it is below the highest one. */
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		struct cc c = { .bytes = 5, .time_stage = 6, .byte_stage = 7, .cut_at = now };

		assert_int_equal(cc_set(&p, "rp_rate_to_set_on_first_cnp", first[i][0]), 0);
		assert_true(dcqcn_cnp(&c, &p, now + 1));
		assert_int_equal(c.rate, first[i][1]);
		assert_int_equal(c.target, 1000000);
		assert_int_equal(c.alpha, CC_ONE);
		assert_int_equal(c.bytes + c.time_stage + c.byte_stage, 0);
		assert_int_equal(c.alpha_at, now + 1);
		assert_int_equal(c.timer_at, now + 1);
		assert_int_equal(c.cut_at, now + 1);
	}
}

/* One packet causes a bounded number of steps, and none if the byte counter is off. */
static void test_counter_bound(void **state)
{
	struct cc_param p;
	struct cc c = {};

	(void)state;
	cc_defaults(&p);
	assert_int_equal(cc_set(&p, "rp_byte_reset", 1000), 0);
	assert_true(dcqcn_cnp(&c, &p, 1));
	assert_false(dcqcn_advance(&c, &p, 999, 1));
	assert_int_equal(c.bytes, 999);
	assert_true(dcqcn_advance(&c, &p, 1002, 1));
	assert_int_equal(c.byte_stage, 2);
	assert_int_equal(c.bytes, 1);
	for (int i = 0; i < 20; i++)
		assert_true(dcqcn_cnp(&c, &p, i * 50 * US + 50 * US + 1));
	assert_true(dcqcn_advance(&c, &p, 100000, 1000 * US + 1));
	assert_int_equal(c.byte_stage, 64);
	assert_int_equal(c.bytes, 0);
	assert_true(dcqcn_advance(&c, &p, 65 * 1000, 1000 * US + 1));
	assert_int_equal(c.byte_stage, 128);
	assert_int_equal(c.bytes, 0);
	c.limiting = false;
	assert_int_equal(cc_set(&p, "rp_byte_reset", 0), 0);
	assert_true(dcqcn_cnp(&c, &p, 2000 * US));
	assert_false(dcqcn_advance(&c, &p, 100000, 2000 * US));
	assert_int_equal(c.byte_stage, 0);
}

/* No rate is below rp_min_rate, neither after the first CNP nor after the parameter was raised. */
static void test_min_rate(void **state)
{
	struct cc_param p;
	struct cc c = {};
	uint64_t now = 5000000000ull;

	(void)state;
	cc_defaults(&p);
	assert_int_equal(cc_set(&p, "rp_max_rate", 1000), 0);
	assert_int_equal(cc_set(&p, "rp_rate_to_set_on_first_cnp", 1), 0);
	assert_int_equal(cc_set(&p, "rp_min_rate", 100), 0);
	check_cnps(&c, &p, now, 100000, 100000);
	assert_int_equal(cc_set(&p, "rp_min_rate", 300), 0);
	now += 20 * 50 * US;
	assert_true(dcqcn_cnp(&c, &p, now));
	assert_int_equal(c.rate, 300000);
	/* The timer must not lower the rate, so the target is not below it. */
	assert_true(dcqcn_advance(&c, &p, 0, now + p.v[CC_rp_time_reset] * US));
	assert_int_equal(c.rate, 300000);
}

/* The target after a pause does not depend on how often the timer was evaluated in it. */
static void test_pause(void **state)
{
	uint64_t now = 5000000000ull, period;
	struct cc_param p;
	struct cc c = {}, d;

	(void)state;
	cc_defaults(&p);
	period = p.v[CC_rp_time_reset] * US;
	for (int i = 0; i < 30; i++)
		assert_true(dcqcn_cnp(&c, &p, now += 50 * US));
	/* The byte counter passes the threshold, so the timer makes hyper increases later. */
	assert_true(dcqcn_advance(&c, &p, (p.v[CC_rp_threshold] + 1) * p.v[CC_rp_byte_reset], now));
	d = c;
	assert_true(dcqcn_advance(&c, &p, 0, now + 100 * period));
	for (int i = 1; i <= 100; i++)
		assert_true(dcqcn_advance(&d, &p, 0, now + i * period));
	assert_true(d.limiting);
	assert_int_equal(c.target, d.target);
	assert_in_range(c.rate, d.rate - 10, d.rate + 10);
}

/* as in ornicd(8) */
static const struct cc_range documented[] = {
	{ "np_min_time_between_cnps", 50, 0, 1000000 },
	{ "np_cnp_dscp", 48, 0, 63 },
	{ "rp_time_reset", 200, 1, 1000000 },
	{ "rp_byte_reset", 1048576, 0, 1073741824 },
	{ "rp_threshold", 5, 1, 31 },
	{ "rp_ai_rate", 5, 1, 100000 },
	{ "rp_hai_rate", 50, 1, 100000 },
	{ "rp_max_rate", 10000, 0, 100000 },
	{ "rp_min_rate", 1, 1, 100000 },
	{ "rp_min_dec_fac", 50, 1, 100 },
	{ "rp_rate_to_set_on_first_cnp", 0, 0, 100000 },
	{ "rp_dce_tcp_g", 4, 1, 1024 },
	{ "rp_dce_tcp_rtt", 55, 1, 1000000 },
	{ "rp_rate_reduce_monitor_period", 50, 0, 1000000 },
	{ "rp_initial_alpha_value", 1024, 0, 1024 },
};

static void test_params(void **state)
{
	struct cc_param p;

	(void)state;
	cc_defaults(&p);
	assert_true(p.on);
	assert_int_equal(sizeof(documented) / sizeof(documented[0]), CC_PARAM_COUNT);
	for (int i = 0; i < CC_PARAM_COUNT; i++) {
		const struct cc_range *r = &documented[i];

		assert_string_equal(cc_ranges[i].name, r->name);
		assert_int_equal(cc_ranges[i].value, r->value);
		assert_int_equal(cc_ranges[i].least, r->least);
		assert_int_equal(cc_ranges[i].most, r->most);
		assert_int_equal(p.v[i], r->value);
		assert_in_range(r->value, r->least, r->most);
		assert_int_equal(cc_set(&p, r->name, r->least), 0);
		assert_int_equal(p.v[i], r->least);
		assert_int_equal(cc_set(&p, r->name, r->most), 0);
		assert_int_equal(cc_set(&p, r->name, r->most + 1ull), -ERANGE);
		if (r->least)
			assert_int_equal(cc_set(&p, r->name, r->least - 1), -ERANGE);
		assert_int_equal(cc_set(&p, r->name, UINT64_MAX), -ERANGE);
		assert_int_equal(p.v[i], r->most);
	}
	assert_int_equal(cc_set(&p, "rp_speed", 1), -ENOENT);
	/* no combination of extreme values overflows */
	for (int round = 0; round < 2000; round++) {
		struct cc c = {};
		uint64_t now = 1;

		for (int i = 0; i < CC_PARAM_COUNT; i++)
			p.v[i] = rand() % 2 ? cc_ranges[i].least : cc_ranges[i].most;
		for (int i = 0; i < 50; i++) {
			if (!c.limiting || rand() % 2)
				dcqcn_cnp(&c, &p, now);
			else
				dcqcn_advance(&c, &p, rand() % 70000, now);
			assert_true(c.rate > 0 && c.rate <= cc_max_kbps(&p));
			assert_true(c.target <= cc_max_kbps(&p) && c.alpha <= CC_ONE);
			now += rand() % 2 ? (uint64_t)rand() : 1ull << rand() % 60;
			if (now >> 62)
				break;
		}
	}
}

/* ---- the notification point -------------------------------------------------- */

/**
 * struct fix - a queue pair and a scripted peer
 * @buf, @key:	memory it may read and write
 */
struct fix {
	struct world w;
	struct conn c;
	struct peer peer;
	uint64_t buf;
	uint32_t key;
};

static void fix_init(struct fix *t, uint8_t type)
{
	const struct conn_opt opt = { .type = type };

	memset(t, 0, sizeof(*t));
	world_init(&t->w, 0);
	peer_init(&t->peer, &t->w);
	conn_init(&t->c, &t->w.dut[0], &opt);
	t->buf = dut_buf(&t->w.dut[0], BUF);
	t->key = dut_key(&t->w.dut[0], NULL, t->buf, BUF, ALL);
	if (type != ORNIC_QPT_UD)
		peer_connect(&t->peer, &t->c, 100, 200);
}

static void fix_fini(struct fix *t)
{
	conn_fini(&t->c);
	peer_fini(&t->peer);
	world_fini(&t->w);
}

static uint64_t count(struct fix *t, enum counter c)
{
	return t->w.dut[0].dev.cnt[c];
}

static const uint8_t written[8] = { 1 };

/* A WRITE of a few bytes, with or without a congestion mark; see written. */
static struct packet *write_packet(struct fix *t, uint32_t psn, uint8_t ecn)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_WRITE_ONLY, psn);

	p->opcode |= t->c.qp.type == ORNIC_QPT_UC ? BTH_TRANSPORT_UC : BTH_TRANSPORT_RC;
	p->tclass = ecn;
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = sizeof(written);
	return p;
}

static void marked_write(struct fix *t, uint32_t psn, uint8_t ecn)
{
	peer_send(&t->peer, write_packet(t, psn, ecn), written, sizeof(written));
}

static void cnp_in(struct fix *t)
{
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, BTH_CNP, 0), NULL, 0);
}

/* Format of annex A17.9.3 and of adapters, over IPv4 with a VLAN tag and over IPv6. */
static void test_format(void **state)
{
	static const uint8_t bth[] = { 0x81, 0, 0xff, 0xff, 0x40, 0, 0, PEER_QPN, 0, 0, 0, 0 };
	static const uint8_t reserved[16];
	uint8_t bytes[FRAMES_MAX_BYTES];
	struct frames f;
	struct packet q = {};
	struct seen *s;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	t.c.qp.path.traffic_class = 0x83;
	t.c.qp.path.udp_sport = htole16(0xd123);
	t.c.qp.path.hop_limit = 17;
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t ip = v6 ? ETH_BYTES : ETH_BYTES + VLAN_BYTES;
		uint32_t udp = ip + (v6 ? IPV6_BYTES : IPV4_BYTES);
		uint32_t len = udp + UDP_BYTES + sizeof(bth) + sizeof(reserved) + ICRC_BYTES;

		marked_write(&t, 200 + v6, ECN_CE);
		s = peer_expect(&t.peer, BTH_CNP, 0, 1);
		if (v6) {
			memcpy(s->p.sgid, (uint8_t[16]) { 0xfe, 0x80, [15] = 1 }, 16);
			memcpy(s->p.dgid, (uint8_t[16]) { 0xfe, 0x80, [15] = 2 }, 16);
		} else {
			s->p.vlan = true;
			s->p.vlan_tci = 5;
		}
		frames_begin(&f, &s->p);
		assert_int_equal(frames_next(&f, bytes), len);
		if (!v6) {
			assert_int_equal(bytes[ip + 1], 48 << 2 | ECN_NOT_ECT);
			assert_int_equal(bytes[ip + 8], 17);
			assert_int_equal(be16_get(bytes + ip + 2), len - ip);
		} else {
			assert_int_equal(be16_get(bytes + ip), 0x6000 | 48 << 6);
		}
		assert_int_equal(be16_get(bytes + udp), 0xd123);
		assert_int_equal(be16_get(bytes + udp + 2), 4791);
		assert_memory_equal(bytes + udp + UDP_BYTES, bth, sizeof(bth));
		assert_memory_equal(bytes + udp + UDP_BYTES + sizeof(bth), reserved,
				    sizeof(reserved));
		/* parse it again; reserved fields may have any value */
		assert_int_equal(frames_parse(&q, bytes, len), ROCE_PACKET);
		assert_int_equal(q.opcode, BTH_CNP);
		assert_int_equal(q.len, 0);
		/* cut off, or with trailing bytes */
		assert_int_equal(frames_parse(&q, bytes, len - 4), ROCE_NONE);
		be16_put(bytes + udp + 4, be16_get(bytes + udp + 4) - 4);
		if (!v6) {
			bytes[ip + 3] -= 4;
			be16_put(bytes + ip + 10, be16_get(bytes + ip + 10) + 4);
		} else {
			bytes[ip + 5] -= 4;
		}
		assert_int_equal(frames_parse(&q, bytes, len - 4), ROCE_MALFORMED);
		peer_expect_ack(&t.peer, AETH_ACK | AETH_NO_CREDITS, 200 + v6);
		t.c.qp.cc.cnp_at = 0;
	}
	fix_fini(&t);
}

/* One CNP per interval, for any number of marks; none without marks. */
static void test_spacing(void **state)
{
	struct fix t;
	uint32_t psn = 200;

	(void)state;
	for (int type = ORNIC_QPT_RC; type <= ORNIC_QPT_UC; type++) {
		fix_init(&t, type);
		psn = 200;
		for (uint8_t ecn = 0; ecn < ECN_CE; ecn++)
			marked_write(&t, psn++, ecn);
		assert_int_equal(count(&t, CNT_ecn_marked), 0);
		assert_int_equal(count(&t, CNT_cnp_sent), 0);
		for (int i = 0; i < 100; i++) {
			marked_write(&t, psn++, 0xb8 | ECN_CE);
			assert_int_equal(count(&t, CNT_cnp_sent), i / 5 + 1);
			world_pass(&t.w, 10 * US);
		}
		assert_int_equal(count(&t, CNT_ecn_marked), 100);
		assert_int_equal(cc_set(&t.w.e.cc, "np_min_time_between_cnps", 0), 0);
		for (int i = 0; i < 10; i++)
			marked_write(&t, psn++, ECN_CE);
		assert_int_equal(count(&t, CNT_cnp_sent), 30);
		/* the interval begins when the CNP was sent, not at the start of the turn */
		cc_set(&t.w.e.cc, "np_min_time_between_cnps", 50);
		world_pass(&t.w, 100 * US);
		world_spend(30 * US);
		marked_write(&t, psn++, ECN_CE);
		assert_int_equal(count(&t, CNT_cnp_sent), 31);
		world_pass(&t.w, 50 * US - 1);
		marked_write(&t, psn++, ECN_CE);
		assert_int_equal(count(&t, CNT_cnp_sent), 31);
		world_pass(&t.w, 1);
		marked_write(&t, psn++, ECN_CE);
		assert_int_equal(count(&t, CNT_cnp_sent), 32);
		t.w.e.cc.on = false;
		world_pass(&t.w, 100 * US);
		marked_write(&t, psn++, ECN_CE);
		assert_int_equal(count(&t, CNT_ecn_marked), 114);
		assert_int_equal(count(&t, CNT_cnp_sent), 32);
		/* the writes were executed nevertheless */
		assert_int_equal(t.c.qp.resp.epsn, psn);
		fix_fini(&t);
	}
}

/* If no packet is free for a CNP, the next mark causes one. Only connections in use send CNPs. */
static void test_not_sent(void **state)
{
	struct packet *p;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_UC);
	p = write_packet(&t, 200, ECN_CE);
	p->len = sizeof(written);
	p->nseg = 1;
	p->seg[0] = (struct seg){ (uint8_t *)written, sizeof(written) };
	switch_send(t.peer.port, p);
	world_starve(&t.w);
	assert_int_equal(count(&t, CNT_ecn_marked), 1);
	assert_int_equal(count(&t, CNT_cnp_sent), 0);
	marked_write(&t, 201, ECN_CE);
	assert_int_equal(count(&t, CNT_cnp_sent), 1);
	peer_expect(&t.peer, BTH_CNP, 0, 1);
	world_pass(&t.w, 50 * US);
	qp_set_state(&t.c.qp, ORNIC_QPS_ERR);
	marked_write(&t, 202, ECN_CE);
	assert_int_equal(count(&t, CNT_ecn_marked), 3);
	assert_int_equal(count(&t, CNT_cnp_sent), 1);
	fix_fini(&t);

	fix_init(&t, ORNIC_QPT_UD);
	conn_rts(&t.c);
	p = peer_packet(&t.peer, &t.c, BTH_UD_SEND_ONLY, 0);
	p->tclass = ECN_CE;
	peer_send(&t.peer, p, NULL, 0);
	assert_int_equal(count(&t, CNT_ecn_marked), 1);
	assert_int_equal(count(&t, CNT_cnp_sent), 0);
	peer_quiet(&t.peer);
	fix_fini(&t);
}

/* Packets are sent as ECN-capable if congestion control is on, except answers without data. */
static void test_ect(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x5000, .rkey = 1 };
	struct packet *p;
	struct seen *s;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	wr_sge(&wr, t.buf, 100, t.key);
	for (int on = 1; on >= 0; on--) {
		t.w.e.cc.on = on;
		t.c.qp.path.traffic_class = 0xb8 | ECN_CE;
		conn_send(&t.c, &wr);
		world_run(&t.w);
		s = peer_next(&t.peer);
		assert_int_equal(s->p.tclass, 0xb8 | (on ? ECN_ECT0 : ECN_CE));
		peer_ack(&t.peer, &t.c, s->p.psn, AETH_ACK);
		p = peer_packet(&t.peer, &t.c, BTH_RC_READ_REQUEST, 200 + 2 * !on);
		p->va = t.buf;
		p->rkey = t.key;
		p->dmalen = 100;
		peer_send(&t.peer, p, NULL, 0);
		s = peer_expect(&t.peer, BTH_RC_READ_RESP_ONLY, 200 + 2 * !on, 1);
		assert_int_equal(s->p.tclass, 0xb8 | (on ? ECN_ECT0 : ECN_CE));
		marked_write(&t, 201 + 2 * !on, 0);
		s = peer_expect(&t.peer, BTH_RC_ACK, 201 + 2 * !on, 1);
		assert_int_equal(s->p.tclass, 0xb8 | (on ? ECN_NOT_ECT : ECN_CE));
	}
	fix_fini(&t);
}

/* A CNP slows its queue pair and no other; it changes nothing else. */
static void test_receive(void **state)
{
	struct packet *p;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	cnp_in(&t);
	assert_int_equal(count(&t, CNT_cnp_received), 1);
	assert_int_equal(count(&t, CNT_cnp_ignored), 0);
	assert_true(t.c.qp.cc.limiting);
	assert_int_equal(t.c.qp.cc.rate, 5000000);
	cnp_in(&t);
	assert_int_equal(count(&t, CNT_cnp_ignored), 1);
	assert_int_equal(t.c.qp.cc.rate, 5000000);
	/* not from the queue pair's peer */
	world_pass(&t.w, 60 * US);
	p = peer_packet(&t.peer, &t.c, BTH_CNP, 0);
	p->sgid[15] ^= 1;
	peer_send(&t.peer, p, NULL, 0);
	assert_int_equal(count(&t, CNT_cnp_received), 2);
	assert_int_equal(count(&t, CNT_bad_gid), 1);
	/* a marked CNP causes no other CNP */
	p = peer_packet(&t.peer, &t.c, BTH_CNP, 0);
	p->tclass = ECN_CE;
	peer_send(&t.peer, p, NULL, 0);
	assert_int_equal(count(&t, CNT_cnp_received), 3);
	assert_int_equal(count(&t, CNT_ecn_marked), 0);
	assert_int_equal(count(&t, CNT_cnp_sent), 0);
	assert_true(t.c.qp.cc.rate < 5000000);
	/* a CNP has no place in the sequence of PSNs */
	marked_write(&t, 200, 0);
	assert_int_equal(t.c.qp.resp.epsn, 201);
	/* switched off, in error, reset */
	t.w.e.cc.on = false;
	cnp_in(&t);
	assert_int_equal(count(&t, CNT_cnp_ignored), 2);
	t.w.e.cc.on = true;
	qp_set_state(&t.c.qp, ORNIC_QPS_ERR);
	world_pass(&t.w, 60 * US);
	cnp_in(&t);
	assert_int_equal(count(&t, CNT_cnp_ignored), 3);
	qp_set_state(&t.c.qp, ORNIC_QPS_RESET);
	assert_false(t.c.qp.cc.limiting);
	assert_int_equal(t.c.qp.rate.net_cost, 0);
	fix_fini(&t);

	fix_init(&t, ORNIC_QPT_UD);
	conn_rts(&t.c);
	cnp_in(&t);
	assert_int_equal(count(&t, CNT_cnp_ignored), 1);
	assert_int_equal(count(&t, CNT_bad_opcode), 0);
	fix_fini(&t);
}

/* CNPs are sent and obeyed from RTR on, except in ERR. Each packet of the wire is a mark. */
static void test_qp_states(void **state)
{
	const struct packet marked = { .npsn = 3 };
	struct fix t;

	(void)state;
	for (int s = ORNIC_QPS_RESET; s <= ORNIC_QPS_ERR; s++) {
		bool alive = s >= ORNIC_QPS_RTR && s != ORNIC_QPS_ERR;

		fix_init(&t, ORNIC_QPT_RC);
		t.c.qp.state = s;
		cnp_receive(&t.c.qp);
		assert_int_equal(count(&t, CNT_cnp_received), 1);
		assert_int_equal(count(&t, CNT_cnp_ignored), !alive);
		assert_int_equal(t.c.qp.cc.limiting, alive);
		assert_int_equal(t.c.qp.rate.pace > 0, alive);
		assert_int_equal(t.c.qp.rate.again, alive ? dcqcn_next(&t.c.qp.cc, &t.w.e.cc) : 0);
		cnp_notify(&t.c.qp, &marked);
		assert_int_equal(count(&t, CNT_ecn_marked), 3);
		assert_int_equal(count(&t, CNT_cnp_sent), alive);
		assert_int_equal(t.c.qp.cc.cnp_at, alive ? t.w.e.now : 0);
		t.c.qp.state = ORNIC_QPS_RTR;
		world_run(&t.w);
		fix_fini(&t);
	}
}

/* A reset forgets everything, and changed parameters do not limit a peer of this daemon. */
static void test_reset(void **state)
{
	static const struct cc none;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	cnp_in(&t);
	marked_write(&t, 200, ECN_CE);
	assert_int_equal(count(&t, CNT_cnp_sent), 1);
	rate_pace(&t.c.qp.rate, 0, t.w.e.now, 7);
	rate_remote(&t.c.qp.rate, true, 1000, t.w.e.now);
	rate_charge(&t.c.qp.rate, 0, 100000, t.w.e.now);	/* 800 ms */
	world_spend(50 * US);
	assert_int_equal(cc_set(&t.w.e.cc, "rp_max_rate", 2), 0);
	cc_changed(&t.w.e);
	assert_int_equal(t.c.qp.rate.net_debt.due, t.w.e.now + 50 * US + (800000 - 50) * US / 2);
	cc_reset(&t.c.qp);
	assert_memory_equal(&t.c.qp.cc, &none, sizeof(none));
	assert_false(t.c.qp.rate.remote);
	assert_int_equal(t.c.qp.rate.pace, 0);
	assert_int_equal(t.c.qp.rate.again, 0);
	assert_int_equal(t.c.qp.rate.remote_cost, 0);
	assert_int_equal(t.c.qp.rate.net_cost, 0);
	assert_int_equal(t.c.qp.rate.net_debt.due, t.w.e.now + 50 * US);
	cc_changed(&t.w.e);
	assert_int_equal(t.c.qp.rate.net_cost, 0);
	fix_fini(&t);
}

/* Return the bytes of payload that the peer got since packet @from. */
static uint64_t got(const struct fix *t, uint32_t from)
{
	uint64_t bytes = 0;

	for (uint32_t i = from; i < t->peer.nin; i++)
		bytes += t->peer.in[i]->p.len;
	return bytes;
}

/* The rate that CNPs set also holds for READ responses, not only for requests. */
static void test_pace(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x5000, .rkey = 1 };
	struct fix t;

	(void)state;
	for (int read = 0; read < 2; read++) {
		uint64_t wire = 50000 * 1024 / (1024 + 96);	/* bytes of payload in 10 ms */

		fix_init(&t, ORNIC_QPT_RC);
		t.c.qp.timeout = 0;
		/* 40 Mbit/s, and it stays there */
		assert_int_equal(cc_set(&t.w.e.cc, "rp_rate_to_set_on_first_cnp", 40), 0);
		assert_int_equal(cc_set(&t.w.e.cc, "rp_time_reset", 1000000), 0);
		assert_int_equal(cc_set(&t.w.e.cc, "rp_byte_reset", 0), 0);
		cnp_in(&t);
		wr_sge(&wr, t.buf, BUF, t.key);
		if (read) {
			struct packet *p = peer_packet(&t.peer, &t.c, BTH_RC_READ_REQUEST, 200);

			p->va = t.buf;
			p->rkey = t.key;
			p->dmalen = BUF;
			peer_send(&t.peer, p, NULL, 0);
		} else {
			conn_send(&t.c, &wr);
		}
		world_finish(&t.w, 10000 * US);
		assert_in_range(got(&t, 0), wire * 97 / 100, wire * 105 / 100);
		for (uint32_t i = 0; i < t.peer.nin; i++)
			assert_int_equal(t.peer.in[i]->p.npsn, 1);
		fix_fini(&t);
	}
}

/* Sent bytes, with headers, also raise the rate. */
static void test_bytes(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x5000, .rkey = 1 };
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	t.c.qp.timeout = 0;
	assert_int_equal(cc_set(&t.w.e.cc, "rp_time_reset", 1000000), 0);
	assert_int_equal(cc_set(&t.w.e.cc, "rp_byte_reset", 10000), 0);
	cnp_in(&t);
	assert_int_equal(t.c.qp.cc.byte_stage, 0);
	wr_sge(&wr, t.buf, 32768, t.key);
	conn_send(&t.c, &wr);
	world_finish(&t.w, 1000 * US);
	assert_int_equal(t.c.qp.cc.byte_stage, 32 * (1024 + 96) / 10000);
	assert_int_equal(t.c.qp.cc.time_stage, 0);
	assert_int_equal(t.c.qp.cc.rate, 10000000 - (5000000 >> t.c.qp.cc.byte_stage));
	assert_true(t.c.qp.rate.pace > 0);
	fix_fini(&t);
}

static void set_param(struct fix *t, const char *name, uint32_t value)
{
	assert_int_equal(cc_set(&t->w.e.cc, name, value), 0);
	cc_changed(&t->w.e);
}

/*
 * rp_max_rate is lowered below the rate that CNPs left, then raised: the limit ends, and everything
 * leaves at once.
 */
static void test_max_rate_changes(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x5000, .rkey = 1 };
	struct fix t;

	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		fix_init(&t, ORNIC_QPT_RC);
		t.c.qp.timeout = 0;
		wr_sge(&wr, t.buf, BUF, t.key);
		wr.nsge = 1;
		set_param(&t, "rp_max_rate", 1000);
		cnp_in(&t);
		if (waits)
			conn_send(&t.c, &wr);
		world_run(&t.w);
		assert_int_equal(rate_waits(&t.c.qp.rate), waits);
		set_param(&t, "rp_max_rate", 100);
		conn_send(&t.c, &wr);
		world_finish(&t.w, 100 * US);
		assert_false(t.c.qp.cc.limiting);
		assert_int_equal(t.c.qp.rate.pace, 0);
		set_param(&t, "rp_max_rate", 10000);
		world_run(&t.w);
		assert_int_equal(got(&t, 0), (1 + waits) * BUF);
		fix_fini(&t);
	}
}

/* rp_time_reset is raised while a queue pair waits: it waits on, and causes no turns. */
static void test_time_reset_raised(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_RDMA_WRITE, .raddr = 0x5000, .rkey = 1 };
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	t.c.qp.timeout = 0;
	wr_sge(&wr, t.buf, BUF, t.key);
	set_param(&t, "rp_rate_to_set_on_first_cnp", 1);
	cnp_in(&t);
	conn_send(&t.c, &wr);
	world_run(&t.w);
	assert_true(rate_waits(&t.c.qp.rate));
	set_param(&t, "rp_time_reset", 1000000);
	assert_true(world_pass(&t.w, 200 * US) > 1000 * (int64_t)US);
	assert_int_equal(got(&t, 0), 1024);
	fix_fini(&t);
}

/* To a peer outside this daemon, READ responses go no faster than rp_max_rate. */
static void test_remote(void **state)
{
	struct packet *p;
	struct fix t;

	(void)state;
	fix_init(&t, ORNIC_QPT_RC);
	for (int mbps = 100; mbps <= 10000; mbps *= 10) {
		/* at that rate, and the burst */
		uint64_t bytes = mbps * 1000ull / 8 * 1024 / (1024 + 64);
		uint64_t burst = mbps * 100ull / 8 + 2 * PACKET_MAX_PAYLOAD;
		uint32_t from, psn;

		assert_int_equal(cc_set(&t.w.e.cc, "rp_max_rate", mbps), 0);
		qp_set_state(&t.c.qp, ORNIC_QPS_RESET);
		peer_connect(&t.peer, &t.c, 100, 200);
		switch_port_set_promisc(t.peer.port, true);
		memcpy(t.c.qp.path.dmac, (uint8_t[]) { 6, 6, 6, 6, 6, 6 }, 6);
		from = t.peer.nin;
		psn = 200;
		for (int i = 0; i < 8; i++, psn += BUF / 1024) {
			p = peer_packet(&t.peer, &t.c, BTH_RC_READ_REQUEST, psn);
			p->va = t.buf;
			p->rkey = t.key;
			p->dmalen = BUF;
			peer_send(&t.peer, p, NULL, 0);
		}
		assert_true(got(&t, from) <= burst);
		world_finish(&t.w, 1000 * US);
		assert_true(got(&t, from) <= bytes + burst);
		if (bytes < 8 * BUF)
			assert_true(got(&t, from) >= bytes * 9 / 10);
		world_finish(&t.w, 1000000 * US);
		assert_int_equal(got(&t, from), 8 * BUF);
	}
	/* Another one limits the connection from now on, in ns << 20 per byte. */
	assert_int_equal(t.c.qp.rate.net_cost, (8ull << 20) / 10 + 1);
	for (uint32_t mbps = 1; mbps <= 1000; mbps *= 10) {
		set_param(&t, "rp_max_rate", mbps);
		assert_int_equal(t.c.qp.rate.net_cost, (8000ull << 20) / mbps);
	}
	fix_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model), cmocka_unit_test(test_steps),
		cmocka_unit_test(test_edges), cmocka_unit_test(test_counter_bound),
		cmocka_unit_test(test_min_rate), cmocka_unit_test(test_pause),
		cmocka_unit_test(test_params), cmocka_unit_test(test_format),
		cmocka_unit_test(test_spacing), cmocka_unit_test(test_not_sent),
		cmocka_unit_test(test_ect),
		cmocka_unit_test(test_receive), cmocka_unit_test(test_qp_states),
		cmocka_unit_test(test_reset), cmocka_unit_test(test_pace),
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_remote),
		cmocka_unit_test(test_max_rate_changes), cmocka_unit_test(test_time_reset_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
