// SPDX-License-Identifier: GPL-2.0
/*
 * Two senders into one rate-limited link, with and without congestion control: from marks in the
 * switch through CNPs to the senders' rates. "test_congestion trace on|off" does not test but
 * prints what happens, for selftests/congestion to draw.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/pair.h"
#include "engine/counters.h"
#include "net/egress.h"

#define MS		1000000ull
#define LEN		65536
#define AHEAD		8	/* work requests that are posted at a time */
#define ALL		(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ)

/**
 * struct flow - a connection with work requests posted at all times
 * @c:		both ends; data goes from the first to the second
 * @wr:		work request that the requester posts repeatedly
 * @read:	true: the second end reads, false: the first end writes
 * @stopped:	no more is posted
 * @done:	work requests completed
 */
struct flow {
	struct conn c[2];
	struct wr wr;
	bool read;
	bool stopped;
	uint32_t done;
};

/** struct net - flows from the first two functions to the third one over a rate-limited link */
struct net {
	struct world w;
	struct flow flow[2];
	const struct egress *q;
	const struct egress_stats *stats;
};

/** struct setting - @mbps: of the link; @queue: its room; @max: rp_max_rate; 0: the defaults */
struct setting {
	uint32_t mbps;
	uint32_t queue;
	uint32_t max;
	bool on;
	bool read;
};

static void flow_init(struct flow *f, struct dut *from, struct dut *to, bool read)
{
	struct dut *asks = read ? to : from, *answers = read ? from : to;
	uint64_t abuf = dut_buf(asks, LEN), bbuf = dut_buf(answers, LEN);
	struct conn *a = &f->c[read], *b = &f->c[!read];

	f->read = read;
	conn_init(a, asks, NULL);
	conn_init(b, answers, NULL);
	conn_pair(a, b, 0, 0);
	f->wr = (struct wr) {
		.opcode = read ? ORNIC_WR_RDMA_READ : ORNIC_WR_RDMA_WRITE,
		.flags = ORNIC_WQE_SIGNALED,
		.raddr = bbuf,
		.rkey = dut_key(answers, NULL, bbuf, LEN, ALL),
	};
	wr_sge(&f->wr, abuf, LEN, dut_key(asks, NULL, abuf, LEN, ALL));
}

static void flow_feed(struct flow *f)
{
	struct conn *c = &f->c[f->read];
	struct ornic_cqe cqe;

	for (; conn_poll(c, &c->hscq, &cqe); f->done++)
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	while (!f->stopped && c->sq.index < f->done + AHEAD)
		conn_send(c, &f->wr);
}

/* Bytes that have arrived in order */
static uint64_t flow_bytes(const struct flow *f)
{
	const struct qp *qp = &f->c[1].qp;

	return (f->read ? qp->req.una : qp->resp.epsn) * 1024ull;
}

static void net_init(struct net *n, const struct setting *s)
{
	struct egress_param link = { .kbps = s->mbps * 1000, .queue = s->queue };
	struct switch_port *port;

	memset(n, 0, sizeof(*n));
	world_init(&n->w, 0);
	n->w.e.cc.on = s->on;
	if (s->max)
		assert_int_equal(cc_set(&n->w.e.cc, "rp_max_rate", s->max), 0);
	port = n->w.dut[2].dev.port.sw;
	egress_default(&link, s->queue ? EGRESS_KEY_QUEUE : 0);
	assert_int_equal(switch_port_limit(port, &link), 0);
	n->q = switch_port_egress(port);
	n->stats = egress_stats(n->q);
	for (int i = 0; i < 2; i++)
		flow_init(&n->flow[i], &n->w.dut[i], &n->w.dut[2], s->read);
}

static void net_fini(struct net *n)
{
	for (int i = 0; i < 2; i++) {
		conn_fini(&n->flow[i].c[0]);
		conn_fini(&n->flow[i].c[1]);
	}
	world_fini(&n->w);
}

/* Advance the clock by @ns. */
static void net_run(struct net *n, uint64_t ns)
{
	uint64_t end = n->w.e.now + ns;

	while (n->w.e.now < end) {
		int64_t next;

		for (int i = 0; i < 2; i++)
			flow_feed(&n->flow[i]);
		next = world_run(&n->w);
		if (next < 0 || n->w.e.now + next > end)
			next = end - n->w.e.now;
		world_pass(&n->w, next);
	}
}

static uint64_t retransmits(const struct net *n)
{
	uint64_t sum = 0;

	for (int i = 0; i < DUTS; i++)
		sum += n->w.dut[i].dev.cnt[CNT_retransmits];
	return sum;
}

/*
 * Both flows get the same share of the link within 20 per cent, nearly all of it together,
 * without any loss from the first packet on.
 */
static void share(const struct setting *s, uint32_t skip_ms, uint32_t ms)
{
	/*
	 * bytes of payload that the link carries, with 58 bytes of headers per packet, more in
	 * few
	 */
	double most = s->mbps * 1e3 / 8 * ms * 1024 / (1024 + 58);
	uint64_t begin[2];
	double got[2];
	struct net n;

	net_init(&n, s);
	net_run(&n, skip_ms * MS);
	for (int i = 0; i < 2; i++)
		begin[i] = flow_bytes(&n.flow[i]);
	net_run(&n, ms * MS);
	for (int i = 0; i < 2; i++)
		got[i] = flow_bytes(&n.flow[i]) - begin[i];
	if (got[0] + got[1] < most * 0.85 || got[0] + got[1] >
	    most * 1.001)
		fail_msg("%u Mbit/s: %.0f + %.0f bytes of %.0f", s->mbps, got[0], got[1], most);
	for (int i = 0; i < 2; i++)
		if (got[i] < (got[0] + got[1]) / 2 * 0.8)
			fail_msg("%u Mbit/s: shared %.0f to %.0f", s->mbps, got[0], got[1]);
	assert_int_equal(n.stats->dropped, 0);
	assert_int_equal(retransmits(&n), 0);
	assert_true(n.stats->marked > 0);
	net_fini(&n);
}

/* The same without congestion control: no CNPs, and continuous packet loss. */
static void lose(const struct setting *s, uint32_t ms)
{
	uint64_t dropped;
	struct net n;

	net_init(&n, s);
	net_run(&n, ms * MS);
	dropped = n.stats->dropped;
	assert_true(dropped > 0);
	net_run(&n, ms * MS);
	assert_true(n.stats->dropped > dropped);
	assert_true(retransmits(&n) > 0);
	assert_int_equal(n.stats->marked, 0);
	assert_int_equal(n.w.dut[2].dev.cnt[CNT_cnp_sent], 0);
	net_fini(&n);
}

#define SMALL_QUEUE	200000	/* less than two senders have in flight */

static void test_write(void **state)
{
	struct setting s = { .mbps = 1000, .queue = SMALL_QUEUE, .max = 1000, .on = true };

	(void)state;
	share(&s, 100, 300);
	s.on = false;
	lose(&s, 100);
}

static void test_read(void **state)
{
	struct setting s = { .mbps = 1000, .queue = SMALL_QUEUE, .max = 1000, .on = true,
			     .read = true };

	(void)state;
	share(&s, 100, 300);
	s.on = false;
	lose(&s, 100);
}

/* Only the rate is set */
static void test_defaults(void **state)
{
	(void)state;
	share(&(struct setting) { .mbps = 100, .on = true }, 300, 700);
	share(&(struct setting) { .mbps = 1000, .on = true }, 100, 300);
	share(&(struct setting) { .mbps = 10000, .on = true }, 100, 100);
}

/* A flow that is alone again gets the whole link, and in the end is not limited at all. */
static void test_leave(void **state)
{
	const struct setting s = { .mbps = 1000, .max = 1000, .on = true };
	uint64_t begin;
	struct net n;

	(void)state;
	net_init(&n, &s);
	net_run(&n, 100 * MS);
	assert_true(n.flow[0].c[0].qp.cc.limiting);
	n.flow[1].stopped = true;
	net_run(&n, 50 * MS);
	begin = flow_bytes(&n.flow[0]);
	net_run(&n, 50 * MS);
	assert_true(flow_bytes(&n.flow[0]) - begin > 1e9 / 8 * 0.05 * 0.93 * 0.95);
	net_fini(&n);
}

/* Print the state of the link every 200 us: with one flow, then both, then the other alone */
static int trace(bool on)
{
	const struct setting s = { .mbps = 1000, .queue = SMALL_QUEUE, .max = 1000, .on = on };
	struct net n;

	net_init(&n, &s);
	n.flow[1].stopped = true;
	printf("us,queue,bytes0,bytes1,dropped,marked,cnps\n");
	for (int us = 0; us <= 400000; us += 200) {
		n.flow[1].stopped = us < 100000;
		n.flow[0].stopped = us >= 300000;
		printf("%d,%u,%llu,%llu,%llu,%llu,%llu\n", us, egress_depth(n.q),
		       (unsigned long long)flow_bytes(&n.flow[0]),
		       (unsigned long long)flow_bytes(&n.flow[1]),
		       (unsigned long long)n.stats->dropped, (unsigned long long)n.stats->marked,
		       (unsigned long long)n.w.dut[2].dev.cnt[CNT_cnp_sent]);
		net_run(&n, MS / 5);
	}
	net_fini(&n);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write), cmocka_unit_test(test_read),
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_leave),
	};

	if (argc == 3 && !strcmp(argv[1], "trace"))
		return trace(!strcmp(argv[2], "on"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
