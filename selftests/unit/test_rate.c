// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: first the arithmetic, then queue pairs of every type that sends, by a clock that only
 * the test advances (ORN-QP-41, 42, 43, 45).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/pair.h"
#include "engine/rate.h"

#define NS	1000000000ull
#define MTU	1024
#define BUF	(1u << 20)
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ)
#define QKEY	0x11111111
#define FRAME	1500

/* Return the bytes that @kbps permits in @ns */
static double allowed(uint64_t kbps, double ns)
{
	return kbps * ns / 8e6;
}

static void no_wake(void *arg)
{
	(void)arg;
}

/* Make a rate without a limit, and the timers in which it waits. */
static void rate_begin(struct rate *r, struct timers *ts)
{
	timers_init(ts);
	assert_int_equal(timers_reserve(ts, 1), 0);
	rate_init(r, no_wake, NULL);
}

/*
 * Send packets of @bytes as early as permitted, for @ns; wakeups are @late. No interval that
 * begins with the first packet may exceed rate and burst. Return: bytes sent.
 */
static uint64_t stream(struct rate *r, struct timers *ts, uint64_t *now, uint32_t bytes,
		       uint64_t ns, uint64_t late, uint64_t kbps, double burst)
{
	uint64_t begin = *now, end = *now + ns, sent = 0;

	while (*now < end) {
		while (rate_open(r, ts, *now)) {
			rate_charge(r, 0, bytes, *now);
			sent += bytes;
			/* the clock is exact to 1 ns */
			assert_true(sent <= allowed(kbps, *now - begin + 1) + burst + bytes);
		}
		assert_true(rate_waits(r));
		assert_true(timers_next(ts, *now) > 0);
		*now += timers_next(ts, *now) + late;
		timers_run(ts, *now);
		assert_false(rate_waits(r));
		assert_true(rate_open(r, ts, *now));
	}
	return sent;
}

/* Each debt may be ahead by the burst that its rate permits, and not by 1 ns more. */
static void test_bursts(void **state)
{
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	for (int over = 0; over < 2; over++) {
		r.net_debt.due = NS + 100000 + over;
		assert_int_equal(rate_open(&r, &ts, NS), !over);
		r.net_debt.due = 0;
		r.path.due = NS + 500000 + over;
		assert_int_equal(rate_open(&r, &ts, NS), !over);
		r.path.due = 0;
		r.limit_debt.due = NS + 500000 + over;
		assert_int_equal(rate_open(&r, &ts, NS), !over);
		r.limit_debt.due = 0;
	}
	rate_stop(&r, &ts);
	timers_fini(&ts);
}

/* Fractions of a ns add up, also those of charges at the time when the debt is due: 0.08 ns each */
static void test_fractions(void **state)
{
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	rate_set(&r, RATE_MAX_KBPS, 0, 0, FRAME, NS);
	for (int i = 0; i < 20; i++)
		rate_charge(&r, 0, 1, NS);
	assert_int_equal(r.limit_debt.due, NS + 1);
	/* A debt that was due earlier leaves no fraction. */
	rate_charge(&r, 0, 12, NS + 3);
	assert_int_equal(r.limit_debt.due, NS + 3);
	timers_fini(&ts);
}

/* ORN-QP-42: the rate is kept, and is reached, over all of its range */
static void test_accuracy(void **state)
{
	static const uint32_t kbps[] = { 1, 7, 1000, 333333, 2500000, 40000000, RATE_MAX_KBPS };
	static const uint32_t bytes[] = { 64, 1518, 65536 };
	uint64_t now = 5 * NS;
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	for (size_t i = 0; i < sizeof(kbps) / sizeof(kbps[0]); i++) {
		for (size_t j = 0; j < sizeof(bytes) / sizeof(bytes[0]); j++) {
			/* the time of 2000 packets, or of 50 bursts if that is longer */
			uint64_t one = 8000000ull * bytes[j] / kbps[i] + 1;
			uint64_t ns = 2000 * one > 50 * RATE_BURST_NS ? 2000 * one :
				      50 * RATE_BURST_NS;
			double want = allowed(kbps[i], ns);
			uint64_t sent;

			rate_set(&r, kbps[i], 0, 0, FRAME, now);
			sent = stream(&r, &ts, &now, bytes[j], ns, 0, kbps[i],
				      allowed(kbps[i], RATE_BURST_NS));
			assert_true(sent > want * 0.98 && sent < want * 1.03);
		}
	}
	timers_fini(&ts);
}

/* ORN-QP-42: the burst is as configured; a late engine catches up within the burst */
static void test_burst(void **state)
{
	uint64_t now = 5 * NS, sent;
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	rate_set(&r, 8000, 100000, FRAME, 0, now);	/* a byte takes 1 us */
	for (sent = 0; rate_open(&r, &ts, now); sent += FRAME)
		rate_charge(&r, 0, FRAME, now);
	assert_in_range(sent, 100000 - FRAME, 100000);
	/* After a long idle time, at most one burst is sent at once. */
	now += 3600 * NS;
	timers_run(&ts, now);
	for (sent = 0; rate_open(&r, &ts, now); sent += FRAME)
		rate_charge(&r, 0, FRAME, now);
	assert_in_range(sent, 100000 - FRAME, 100000);
	rate_stop(&r, &ts);
	assert_false(rate_waits(&r));
	/* 40 ms late each time: within the burst, so the rate is reached nevertheless. */
	rate_set(&r, 8000, 100000, FRAME, 0, now);
	sent = stream(&r, &ts, &now, FRAME, 10 * NS, 40000000, 8000, 100000);
	assert_in_range(sent, 9900000, 10150000);
	/* A burst of less than a packet is one packet. The debt is paid. */
	now += NS;
	rate_set(&r, 8000, 1, FRAME, 0, now);
	sent = stream(&r, &ts, &now, FRAME, 10 * NS, 0, 8000, FRAME);
	assert_in_range(sent, 9990000, 10003000);
	timers_fini(&ts);
}

/*
 * ORN-QP-45; extreme values: no product overflows, and no wait exceeds the time of the sent
 * bytes.
 */
static void test_extremes(void **state)
{
	const uint64_t worst = 8000000ull * RATE_MAX_BYTES;
	uint64_t now = UINT64_MAX / 4;
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	rate_set(&r, RATE_MIN_KBPS, 1, 1, 0, now);
	assert_true(rate_open(&r, &ts, now));
	rate_charge(&r, 0, RATE_MAX_BYTES, now);
	assert_int_equal(r.limit_debt.due, now + worst);
	assert_false(rate_open(&r, &ts, now + worst - 1));
	assert_int_equal(timers_next(&ts, now), worst);
	rate_stop(&r, &ts);
	/* The largest burst at the lowest rate: 4 GiB take 1.09 years. */
	now += worst;
	rate_set(&r, RATE_MIN_KBPS, UINT32_MAX, 0, FRAME, now);
	assert_true(rate_open(&r, &ts, now));
	for (int i = 0; i < 4096; i++) {
		assert_true(rate_open(&r, &ts, now));
		rate_charge(&r, 0, RATE_MAX_BYTES, now);
	}
	assert_false(rate_open(&r, &ts, now));
	assert_in_range(timers_next(&ts, now), 1, worst);
	/* Off: no delay and no charge. */
	rate_set(&r, 0, 0, 0, FRAME, now);
	rate_stop(&r, &ts);
	for (int i = 0; i < 1000; i++) {
		assert_true(rate_open(&r, &ts, now));
		rate_charge(&r, 0, RATE_MAX_BYTES, now);
	}
	/* The lower of two rates counts. */
	rate_charge(&r, ORNIC_RATE_2_5_GBPS, 1000000, now);
	assert_in_range(r.path.due - now, 3200000, 3200010);
	assert_int_equal(r.limit_debt.due, now);
	assert_false(rate_open(&r, &ts, now));
	assert_in_range(timers_next(&ts, now), 2950000, 2950010);
	rate_stop(&r, &ts);
	now += 3200010;
	rate_set(&r, 8000, 0, 0, FRAME, now);
	rate_charge(&r, ORNIC_RATE_2_5_GBPS, 1000, now);
	assert_int_equal(r.limit_debt.due - now, 1000000);
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), 750000);
	rate_stop(&r, &ts);
	timers_fini(&ts);
}

/*
 * Mbit/s of each code of a static rate (IBTA volume 1, 9.11.1 and the Linux kernel); 0 for rates of
 * the port's rate or above, and for invalid codes: they cause no delay.
 */
static const uint32_t static_mbps[256] = {
	[ORNIC_RATE_2_5_GBPS] = 2500, [ORNIC_RATE_5_GBPS] = 5000, [ORNIC_RATE_10_GBPS] = 10000,
	[ORNIC_RATE_20_GBPS] = 20000, [ORNIC_RATE_30_GBPS] = 30000, [ORNIC_RATE_40_GBPS] = 40000,
	[ORNIC_RATE_60_GBPS] = 60000, [ORNIC_RATE_80_GBPS] = 80000, [ORNIC_RATE_14_GBPS] = 14062,
	[ORNIC_RATE_25_GBPS] = 25781, [ORNIC_RATE_28_GBPS] = 28125, [ORNIC_RATE_50_GBPS] = 53125,
	[ORNIC_RATE_56_GBPS] = 56250,
};

/* RATE_MAX_BYTES at a rate take this time, ns, rounded up */
static uint64_t most_ns(uint64_t kbps)
{
	return (8000000ull * RATE_MAX_BYTES + kbps - 1) / kbps;
}

/* ORN-QP-41, 42: what a packet costs at each static rate, and at limits of all sizes */
static void test_costs(void **state)
{
	static const uint32_t kbps[] = { 1, 3, 8000, 1234567, 40000001, RATE_MAX_KBPS };
	const uint64_t now = 5 * NS;
	struct timers ts;
	struct rate r;

	(void)state;
	for (int code = 0; code < 256; code++) {
		uint64_t mbps = static_mbps[code];

		rate_begin(&r, &ts);
		rate_charge(&r, code, RATE_MAX_BYTES, now);
		if (r.path.due - now != (mbps ? most_ns(mbps * 1000) : 0))
			fail_msg("code %d: %llu ns", code, (unsigned long long)(r.path.due - now));
		assert_int_equal(r.limit_debt.due, now);
		assert_int_equal(r.net_debt.due, now);
		timers_fini(&ts);
	}
	for (size_t i = 0; i < sizeof(kbps) / sizeof(kbps[0]); i++) {
		rate_begin(&r, &ts);
		rate_set(&r, kbps[i], 0, 0, FRAME, now);
		rate_pace(&r, kbps[i], now, UINT64_MAX);
		rate_charge(&r, 0, RATE_MAX_BYTES, now);
		assert_int_equal(r.limit_debt.due - now, most_ns(kbps[i]));
		assert_int_equal(r.net_debt.due - now, most_ns(kbps[i]));
		assert_int_equal(r.path.due, now);
		timers_fini(&ts);
	}
}

/* Bytes that take half of the burst to a remote peer, rounded down; 0 with any other limit */
static void test_most(void **state)
{
	static const uint32_t sizes[][2] = {
		{ 0, PACKET_MAX_PAYLOAD }, { 1000, 6 }, { 1000000, 6250 }, { 10000000, 62499 },
		{ 10485000, 65531 }, { 11000000, PACKET_MAX_PAYLOAD },
	};
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	assert_int_equal(r.most, PACKET_MAX_PAYLOAD);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rate_remote(&r, true, sizes[i][0], 0);
		assert_int_equal(r.most, sizes[i][1]);
		rate_pace(&r, RATE_MAX_KBPS, 0, 0);
		assert_int_equal(r.most, 0);
		rate_pace(&r, 0, 0, 0);
		assert_int_equal(r.most, sizes[i][1]);
		rate_set(&r, RATE_MAX_KBPS, 0, 0, FRAME, 0);
		assert_int_equal(r.most, 0);
		rate_set(&r, 0, 0, 0, FRAME, 0);
		assert_int_equal(r.most, sizes[i][1]);
	}
	timers_fini(&ts);
}

/*
 * The burst beyond one packet, as a time, and the wait after 200 ms: until half of that time is
 * available, at most half of RATE_BURST_NS.
 */
static void test_waits(void **state)
{
	static const struct {
		uint32_t burst, packet;
		uint64_t slack, wait;
	} bursts[] = {		/* at 8 Mbit/s a byte takes 1 us */
		{ 0, 0, 500000, 199750000 },
		{ 0, 100, 500000, 199750000 },
		{ FRAME - 1, 0, 0, 200000000 },
		{ FRAME, 0, 0, 200000000 },
		{ FRAME + 2, 0, 2000, 199999000 },
		{ FRAME + 2, 100, 1402000, 198848000 },
		{ 100, 100, 0, 200000000 },
		{ 100000, FRAME, 98500000, 101750000 },
	};
	const uint64_t now = 5 * NS;
	struct timers ts;
	struct rate r;

	(void)state;
	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		uint64_t due = now + 200000000;

		rate_begin(&r, &ts);
		rate_set(&r, 8000, bursts[i].burst, bursts[i].packet, FRAME, now);
		assert_int_equal(r.kbps, 8000);
		assert_int_equal(r.burst, bursts[i].burst);
		assert_int_equal(r.packet, bursts[i].packet);
		assert_int_equal(r.slack, bursts[i].slack);
		rate_charge(&r, 0, 200000, now);
		assert_true(rate_open(&r, &ts, due - bursts[i].slack));
		assert_false(rate_waits(&r));
		assert_false(rate_open(&r, &ts, now));
		assert_int_equal(timers_next(&ts, now), bursts[i].wait);
		rate_stop(&r, &ts);
		/* a smaller burst, and another rate: the next packet may go at once */
		rate_set(&r, 8000, 1, 1, FRAME, now);
		assert_int_equal(r.limit_debt.due, bursts[i].slack ? now : due);
		timers_fini(&ts);
	}
	/* congestion control, a path; the last of all three, but no later than the next change */
	rate_begin(&r, &ts);
	rate_pace(&r, 8000, now, UINT64_MAX);
	rate_charge(&r, 0, 1000, now);
	assert_true(rate_open(&r, &ts, now + 900000));
	assert_false(rate_open(&r, &ts, now + 899999));
	assert_int_equal(timers_next(&ts, now), 950000);
	rate_stop(&r, &ts);
	r.path.due = now + 2000000;
	assert_true(rate_open(&r, &ts, now + 1500000));
	assert_false(rate_open(&r, &ts, now + 1499999));
	assert_int_equal(timers_next(&ts, now), 1750000);
	rate_stop(&r, &ts);
	rate_pace(&r, 8000, now, now + 7);
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), 7);
	/* A wait goes on when another packet is tried. */
	rate_pace(&r, 8000, now, now + 3);
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), 7);
	rate_stop(&r, &ts);
	/* A limit whose time is just over adds nothing to the wait for the others. */
	rate_pace(&r, 0, now, 0);
	r.net_debt.due = now + RATE_PACE_NS;
	r.limit_debt.due = now + r.slack;
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), 1750000);
	rate_stop(&r, &ts);
	r.path.due = now;
	r.net_debt.due = now + RATE_PACE_NS + 10;
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), RATE_PACE_NS / 2 + 10);
	rate_stop(&r, &ts);
	timers_fini(&ts);
}

/* Two queue pairs of two functions. */
struct fix {
	struct world w;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
};

static struct fix *make_fix(uint8_t type)
{
	struct conn_opt opt = { .type = type };
	struct fix *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	conn_init(&t->a, &t->w.dut[0], &opt);
	conn_init(&t->b, &t->w.dut[1], &opt);
	conn_pair(&t->a, &t->b, 0xfffff0, 0x1000);
	t->abuf = dut_buf(t->a.d, BUF);
	t->bbuf = dut_buf(t->b.d, BUF);
	t->akey = dut_key(t->a.d, NULL, t->abuf, BUF, ALL);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, BUF, ALL);
	return t;
}

static void end_fix(struct fix *t)
{
	conn_fini(&t->a);
	conn_fini(&t->b);
	world_fini(&t->w);
	test_free(t);
}

static void post(struct fix *t, struct wr wr, uint32_t len, uint32_t n)
{
	wr.flags = ORNIC_WQE_SIGNALED;
	wr.raddr = t->bbuf;
	wr.rkey = t->bkey;
	wr.nsge = 0;
	wr_sge(&wr, t->abuf, len, t->akey);
	while (n--)
		conn_send(&t->a, &wr);
}

/*
 * Advance from timer to timer until @n sends completed. At each step the bytes sent are within
 * @kbps and @burst; in between the engine sleeps. Return: elapsed ns.
 */
static uint64_t finish(struct fix *t, uint32_t len, uint32_t n, uint64_t kbps, uint64_t burst)
{
	uint64_t begin = t->w.e.now;
	uint32_t done = 0, turns = 0;
	int64_t next = world_run(&t->w);
	struct ornic_cqe cqe;

	for (;;) {
		uint64_t bytes;

		for (; conn_poll(&t->a, &t->a.hscq, &cqe); done++)
			assert_int_equal(cqe.status, 0);
		bytes = (uint64_t)done * len;
		assert_true(bytes <= allowed(kbps, t->w.e.now - begin) + burst + len);
		if (done == n)
			return t->w.e.now - begin;
		assert_true(next > 0);
		assert_true(turns++ < 100 * n);
		next = world_pass(&t->w, next);
	}
}

static void near(uint64_t ns, double want)
{
	if (ns < want * 0.93 || ns > want * 1.12)
		fail_msg("%.3f ms instead of %.3f", ns / 1e6, want / 1e6);
}

/* Congestion control: the debt is paid at the new rate; a waiting queue pair is woken in time. */
static void test_pace(void **state)
{
	const uint64_t ms = 1000000;
	uint64_t now = 5 * NS;
	struct timers ts;
	struct rate r;

	(void)state;
	rate_begin(&r, &ts);
	assert_int_equal(r.most, PACKET_MAX_PAYLOAD);
	rate_pace(&r, 1000, now, now + 7 * ms);
	assert_int_equal(r.most, 0);
	rate_charge(&r, 0, 12500, now);
	assert_int_equal(r.net_debt.due, now + 100 * ms);
	assert_false(rate_open(&r, &ts, now));
	assert_int_equal(timers_next(&ts, now), 7 * ms);
	rate_pace(&r, 2000, now, now + 9 * ms);
	assert_in_range(r.net_debt.due, now + 50 * ms - 2, now + 50 * ms + 2);
	now += 25 * ms;
	rate_pace(&r, 500, now, UINT64_MAX);
	assert_in_range(r.net_debt.due, now + 100 * ms - 10, now + 100 * ms + 10);
	rate_stop(&r, &ts);
	assert_false(rate_open(&r, &ts, now));
	assert_in_range(timers_next(&ts, now), 99 * ms, 100 * ms);
	rate_stop(&r, &ts);
	/* the lower of two: a remote peer; the debt of a limit is another one, and is cancelled */
	now += 101 * ms;
	rate_remote(&r, true, 125, now);
	rate_set(&r, 250, 0, 0, FRAME, now);
	rate_charge(&r, 0, 1250, now);
	assert_in_range(r.net_debt.due, now + 80 * ms - 2, now + 80 * ms + 2);
	assert_in_range(r.limit_debt.due, now + 40 * ms - 2, now + 40 * ms + 2);
	rate_set(&r, 0, 0, 0, FRAME, now);
	rate_pace(&r, 0, now, 0);
	assert_in_range(r.net_debt.due, now + 80 * ms - 4, now + 80 * ms + 4);
	assert_int_equal(r.limit_debt.due, now);
	rate_charge(&r, 0, 1250, now);
	assert_in_range(r.net_debt.due, now + 160 * ms - 6, now + 160 * ms + 6);
	/* A debt that is paid stays so, at any rate. */
	now += 200 * ms;
	rate_remote(&r, true, 1000, now);
	assert_true(r.net_debt.due < now);
	rate_charge(&r, 0, 1250, now);
	assert_int_equal(r.net_debt.due, now + 10 * ms);
	/* no limit: no debt, also if the change is at an earlier time than the one before */
	rate_remote(&r, false, 0, now + 1);
	assert_int_equal(r.net_debt.due, now + 1);
	rate_pace(&r, 1000, now, UINT64_MAX);
	assert_int_equal(r.net_debt.due, now + 1);
	now++;
	rate_pace(&r, 0, now, 0);
	assert_int_equal(r.net_debt.due, now);
	assert_true(rate_open(&r, &ts, now));
	timers_fini(&ts);
}

/* Rate limits to switch between; programs set them without a privilege. */
static const struct {
	uint32_t kbps[2];
	uint32_t burst;
} switched[] = {
	{ { RATE_MAX_KBPS, RATE_MAX_KBPS }, 0 },
	{ { RATE_MAX_KBPS, 0 }, 0 },
	{ { RATE_MAX_KBPS / 2, RATE_MAX_KBPS }, 0 },
	{ { 2, RATE_MIN_KBPS }, 0 },
	{ { RATE_MIN_KBPS, RATE_MAX_KBPS }, 0 },
	{ { RATE_MAX_KBPS, RATE_MAX_KBPS }, UINT32_MAX },
};

#define SWITCHED	(sizeof(switched) / sizeof(switched[0]))

/* No change of the rate limit cancels what congestion control or a remote peer is owed. */
static void test_pace_switched(void **state)
{
	const uint32_t kbps = 1000000;

	(void)state;
	for (size_t i = 0; i < 2 * SWITCHED; i++) {
		uint64_t now = 5 * NS, sent = 0;
		struct timers ts;
		struct rate r;

		rate_begin(&r, &ts);
		if (i & 1)
			rate_pace(&r, kbps, now, UINT64_MAX);
		else
			rate_remote(&r, true, kbps, now);
		for (int n = 0; n < 1000; n++, now += 10000) {
			rate_set(&r, switched[i / 2].kbps[n & 1], switched[i / 2].burst, 0, FRAME,
				 now);
			for (; rate_open(&r, &ts, now); sent += FRAME)
				rate_charge(&r, 0, FRAME, now);
			rate_stop(&r, &ts);
		}
		if (sent > allowed(kbps, 1000 * 10000 + RATE_PACE_NS) + FRAME)
			fail_msg("case %zu: %llu bytes", i, (unsigned long long)sent);
		timers_fini(&ts);
	}
}

/*
 * After a change of the rate limit the next packet leaves as soon as the other rates permit, and
 * the rate is kept from then on (ORN-QP-42, 43). The same limit again changes nothing.
 */
static void test_lowered(void **state)
{
	static const struct {
		uint32_t kbps[2], burst[2];
	} changes[] = {
		{ { 10000000, 1000 }, { 0, 0 } },
		{ { RATE_MAX_KBPS, RATE_MIN_KBPS }, { 0, 0 } },
		{ { RATE_MAX_KBPS, 1000 }, { 0, 1 } },
		{ { RATE_MAX_KBPS, 1000 }, { 1 << 20, 0 } },
		{ { RATE_MAX_KBPS, 1000 }, { 1 << 20, 1 << 20 } },
		{ { 1000, 1000 }, { 1 << 20, 0 } },
		{ { 1000, 1000000 }, { 1 << 20, 0 } },
		{ { RATE_MIN_KBPS, 1000 }, { 0, 0 } },
	};
	const size_t n = sizeof(changes) / sizeof(changes[0]);

	(void)state;
	for (size_t i = 0; i < 3 * n; i++) {
		const uint32_t *kbps = changes[i / 3].kbps, *burst = changes[i / 3].burst;
		uint64_t now = 5 * NS, sent = 0, wait = 0, most;
		struct timers ts;
		struct rate r;

		rate_begin(&r, &ts);
		if (i % 3 == 1)
			rate_pace(&r, 1000000, now, UINT64_MAX);
		if (i % 3 == 2)
			rate_remote(&r, true, RATE_MAX_KBPS, now);
		rate_set(&r, kbps[0], burst[0], 0, FRAME, now);
		while (rate_open(&r, &ts, now))
			rate_charge(&r, 0, FRAME, now);
		rate_stop(&r, &ts);
		rate_set(&r, kbps[1], burst[1], 0, FRAME, now);
		if (!rate_open(&r, &ts, now))
			wait = timers_next(&ts, now);
		if (wait > RATE_BURST_NS)
			fail_msg("case %zu: next packet after %.6f s", i, wait / 1e9);
		rate_stop(&r, &ts);
		now += wait;
		/* No second burst, even if the limit is set repeatedly; other rates leave a part. */
		most = allowed(kbps[1], 1000 * 10000 + RATE_BURST_NS) + FRAME;
		most += i % 3 ? burst[1] : 0;
		for (int k = 0; k < 1000; k++, now += 10000) {
			for (; rate_open(&r, &ts, now); sent += FRAME)
				rate_charge(&r, 0, FRAME, now);
			rate_stop(&r, &ts);
			rate_set(&r, kbps[1], burst[1], 0, FRAME, now);
		}
		if (sent > most)
			fail_msg("case %zu: %llu bytes", i, (unsigned long long)sent);
		timers_fini(&ts);
	}
}

/* ORN-QP-41: no change of the rate limit cancels what the path is owed */
static void test_static_switched(void **state)
{
	const uint32_t len = 65536, n = 200, kbps = 2500000;

	(void)state;
	for (size_t i = 0; i < SWITCHED; i++) {
		struct fix *t = make_fix(ORNIC_QPT_RC);
		struct ornic_cqe cqe;
		uint32_t done = 0;

		t->a.qp.timeout = 0;
		t->a.qp.path.static_rate = ORNIC_RATE_2_5_GBPS;
		post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE }, len, n);
		for (int k = 0; k < 100; k++) {
			uint32_t limit = switched[i].kbps[k & 1];

			qp_set_rate(&t->a.qp, limit, limit ? switched[i].burst : 0, 0);
			world_pass(&t->w, 100000);
			for (; conn_poll(&t->a, &t->a.hscq, &cqe); done++)
				assert_int_equal(cqe.status, 0);
		}
		if ((uint64_t)done * len > allowed(kbps, 11000000))
			fail_msg("case %zu: %u messages", i, done);
		end_fix(t);
	}
}

/* ORN-QP-41: requests of connections on a path with a static rate */
static void static_rate(uint8_t type, uint8_t opcode)
{
	struct fix *t = make_fix(type);
	const uint32_t len = 65536, n = 100;
	uint64_t ns;

	post(t, (struct wr){ .opcode = opcode }, len, n);
	assert_int_equal(finish(t, len, n, UINT32_MAX, n * len), 0);
	t->a.qp.path.static_rate = ORNIC_RATE_2_5_GBPS;
	post(t, (struct wr){ .opcode = opcode }, len, n);
	ns = finish(t, len, n, 2500000, allowed(2500000, 1000000));
	near(ns, 8000000.0 / 2500000 * len * n);
	/* Change the rate while it sleeps, and back to the port's. */
	t->a.qp.path.static_rate = ORNIC_RATE_20_GBPS;
	post(t, (struct wr){ .opcode = opcode }, len, n);
	ns = finish(t, len, n, 20000000, allowed(20000000, 1000000) + allowed(2500000, 1000000));
	near(ns, 8000000.0 / 20000000 * len * n);
	t->a.qp.path.static_rate = ORNIC_RATE_100_GBPS;
	world_pass(&t->w, NS);
	post(t, (struct wr){ .opcode = opcode }, len, n);
	assert_int_equal(finish(t, len, n, UINT32_MAX, n * len), 0);
	end_fix(t);
}

static void test_static_rc(void **state)
{
	(void)state;
	static_rate(ORNIC_QPT_RC, ORNIC_WR_RDMA_WRITE);
}

static void test_static_uc(void **state)
{
	(void)state;
	static_rate(ORNIC_QPT_UC, ORNIC_WR_RDMA_WRITE);
}

/* ORN-QP-41: READ responses go at the rate of the responder's path */
static void test_static_read(void **state)
{
	struct fix *t = make_fix(ORNIC_QPT_RC);
	const uint32_t len = 65536, n = 100;
	uint64_t ns;

	(void)state;
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, len, n);
	assert_int_equal(finish(t, len, n, UINT32_MAX, n * len), 0);
	t->b.qp.path.static_rate = ORNIC_RATE_5_GBPS;
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, len, n);
	ns = finish(t, len, n, 5000000, allowed(5000000, 1000000));
	near(ns, 8000000.0 / 5000000 * len * n);
	end_fix(t);
}

/* ORN-QP-41: each datagram is charged at the rate of its own path */
static void test_static_ud(void **state)
{
	struct fix *t = make_fix(ORNIC_QPT_UD);
	const uint32_t len = 4096, n = 200;
	struct wr wr = { .opcode = ORNIC_WR_SEND, .path = t->a.qp.path };
	uint64_t ns;

	(void)state;
	t->a.qp.qkey = QKEY;
	t->b.qp.qkey = QKEY;
	wr.path.dest_qpn = htole32(t->b.qp.wire_qpn);
	wr.path.qkey = htole32(QKEY);
	post(t, wr, len, n);
	assert_int_equal(finish(t, len, n, UINT32_MAX, n * len), 0);
	wr.path.static_rate = ORNIC_RATE_2_5_GBPS;
	post(t, wr, len, n);
	ns = finish(t, len, n, 2500000, allowed(2500000, 1000000));
	near(ns, 3.2 * len * n - RATE_BURST_NS);
	/* Later datagrams on a faster path wait for the earlier ones, but no longer. */
	wr.path.static_rate = 0xff;
	post(t, wr, len, n);
	ns = finish(t, len, n, UINT32_MAX, n * len);
	assert_true(ns <= RATE_BURST_NS);
	end_fix(t);
}

/* Frames: the payload buffer begins with a unicast address that no station has. */
static struct fix *make_raw(void)
{
	struct fix *t = make_fix(ORNIC_QPT_RAW);

	dut_at(t->a.d, t->abuf, BUF)[0] = 2;
	return t;
}

/* ORN-QP-41: the bytes that are charged: payload, and headers of each packet of a connection */
static void test_charge(void **state)
{
	const uint64_t us = 1000;
	struct fix *t;

	(void)state;
	t = make_fix(ORNIC_QPT_RC);
	qp_set_rate(&t->a.qp, 8000, 0, 0);	/* a byte takes 1 us */
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE }, 100, 1);
	world_run(&t->w);
	assert_int_equal(t->a.qp.rate.limit_debt.due - t->w.e.now, (100 + 96) * us);
	world_pass(&t->w, NS);
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, 3000, 1);
	world_run(&t->w);
	assert_int_equal(t->a.qp.rate.limit_debt.due - t->w.e.now, 96 * us);
	qp_set_rate(&t->b.qp, 8000, 0, 0);
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, 900, 1);
	world_run(&t->w);
	assert_int_equal(t->b.qp.rate.limit_debt.due - t->w.e.now, (900 + 96) * us);
	/* several packets at once, on a path of 3.2 ns a byte */
	qp_set_rate(&t->a.qp, 0, 0, 0);
	t->a.qp.path.static_rate = ORNIC_RATE_2_5_GBPS;
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE }, 3000, 1);
	world_run(&t->w);
	assert_in_range(t->a.qp.rate.path.due - t->w.e.now, 10316, 10317);
	end_fix(t);
	/* a peer that moves behind an uplink, and back */
	t = make_fix(ORNIC_QPT_UC);
	for (int remote = 1; remote >= 0; remote--) {
		t->a.qp.path.dmac[5] ^= 0x80;
		post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE }, 100, 1);
		world_pass(&t->w, NS);
		assert_int_equal(t->a.qp.rate.remote, remote);
		assert_int_equal(t->a.qp.rate.remote_cost != 0, remote);
	}
	end_fix(t);
	t = make_raw();
	qp_set_rate(&t->a.qp, 8000, 0, 0);
	post(t, (struct wr){ .opcode = ORNIC_WR_SEND }, FRAME, 1);
	world_run(&t->w);
	assert_int_equal(t->a.qp.rate.limit_debt.due - t->w.e.now, FRAME * us);
	end_fix(t);
}

/* ORN-QP-42, ORN-QP-43: a limit, another one while it waits, none */
static void test_limit_raw(void **state)
{
	const struct wr send = { .opcode = ORNIC_WR_SEND };
	struct fix *t = make_raw();
	const uint32_t n = 200;
	uint64_t ns;

	(void)state;
	post(t, send, FRAME, n);
	assert_int_equal(finish(t, FRAME, n, UINT32_MAX, n * FRAME), 0);
	qp_set_rate(&t->a.qp, 100000, 15000, FRAME);
	post(t, send, FRAME, n);
	ns = finish(t, FRAME, n, 100000, 15000);
	near(ns, 8000000.0 / 100000 * (FRAME * n - 15000));

	/* 12 s per frame, of which the first leaves at once; then full speed. */
	qp_set_rate(&t->a.qp, 1, 0, 0);
	post(t, send, FRAME, n);
	assert_true(world_run(&t->w) > (int64_t)NS);
	assert_true(world_pass(&t->w, NS) > (int64_t)NS);
	conn_expect(&t->a, &t->a.hscq, 2 * n, ORNIC_WC_SEND, 0);
	conn_quiet(&t->a);
	qp_set_rate(&t->a.qp, 0, 0, 0);
	assert_int_equal(finish(t, FRAME, n - 1, UINT32_MAX, n * FRAME), 0);
	/* Nothing of the wait is left: the queue is watched again. */
	post(t, send, FRAME, 1);
	assert_int_equal(finish(t, FRAME, 1, UINT32_MAX, FRAME), 0);
	end_fix(t);
}

/* ORN-QP-42: the same for a connection, in both directions, in packets of the wire */
static void test_limit_rc(void **state)
{
	struct fix *t = make_fix(ORNIC_QPT_RC);
	const uint32_t len = 16384, n = 20;
	uint64_t ns;

	(void)state;
	t->a.qp.timeout = 0;
	qp_set_rate(&t->a.qp, 50000, 0, 0);
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_WRITE }, len, n);
	ns = finish(t, len, n, 50000, allowed(50000, RATE_BURST_NS));
	near(ns, 8000000.0 / 50000 * len * n);
	qp_set_rate(&t->a.qp, 0, 0, 0);
	qp_set_rate(&t->b.qp, 50000, 0, 0);
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, len, n);
	ns = finish(t, len, n, 50000, allowed(50000, RATE_BURST_NS));
	near(ns, 8000000.0 / 50000 * len * n);
	end_fix(t);
}

/*
 * b's requests and its answers to READs share its rate. A stream of long ones, which takes more
 * than a second, does not starve a few short ones. Return: long ones completed meanwhile.
 */
static uint32_t share_rate(bool reads)
{
	struct wr send = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	const uint32_t lengths[2] = { 1000, 65536 }, counts[2] = { 5, 100 };
	struct fix *t = make_fix(ORNIC_QPT_RC);
	struct conn *few = reads ? &t->b : &t->a, *many = reads ? &t->a : &t->b;
	struct ornic_cqe cqe;
	uint32_t done = 0;

	t->a.qp.timeout = 0;
	t->b.qp.timeout = 0;
	qp_set_rate(&t->b.qp, 50000, 0, 0);
	post(t, (struct wr){ .opcode = ORNIC_WR_RDMA_READ }, lengths[reads], counts[reads]);
	wr_sge(&send, t->bbuf, lengths[!reads], t->bkey);
	for (uint32_t i = 0; i < counts[!reads]; i++) {
		conn_recv(&t->a, t->abuf, lengths[!reads], t->akey);
		conn_send(&t->b, &send);
	}
	world_finish(&t->w, NS / 10);
	for (uint32_t i = 0; i < counts[0]; i++) {
		if (!conn_poll(few, &few->hscq, &cqe))
			fail_msg("%u of %u", i, counts[0]);
		assert_int_equal(cqe.status, 0);
	}
	for (; conn_poll(many, &many->hscq, &cqe); done++)
		assert_int_equal(cqe.status, 0);
	end_fix(t);
	return done;
}

/* ORN-QP-42: 100 ms at 50 Mbit/s are nine messages of 64 KiB. */
static void test_shared(void **state)
{
	(void)state;
	assert_in_range(share_rate(true), 8, 10);
	assert_in_range(share_rate(false), 8, 10);
}

/* A queue pair that waits delays no other, costs no turns, and can be destroyed at any time. */
static void test_alone(void **state)
{
	const struct wr send = { .opcode = ORNIC_WR_SEND };
	struct conn_opt opt = { .type = ORNIC_QPT_RAW };
	struct fix *t = make_raw();
	struct wr wr = send;
	struct conn other;

	(void)state;
	conn_init(&other, t->a.d, &opt);
	conn_rts(&other);
	qp_set_rate(&t->a.qp, 1, 0, 0);
	post(t, send, FRAME, 10);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_SEND, 0);
	/* Doorbells do not end the wait. */
	for (int i = 0; i < 100; i++) {
		post(t, send, FRAME, 1);
		qp_doorbell(&t->a.qp, false);
		assert_true(world_run(&t->w) > (int64_t)NS);
	}
	conn_quiet(&t->a);
	wr.flags = ORNIC_WQE_SIGNALED;
	wr_sge(&wr, t->abuf, FRAME, t->akey);
	conn_send(&other, &wr);
	world_pass(&t->w, 0);
	conn_expect(&other, &other.hscq, 0, ORNIC_WC_SEND, 0);
	conn_fini(&other);

	qp_set_state(&t->a.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	for (int i = 1; i < 110; i++)
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR);
	conn_quiet(&t->a);
	end_fix(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accuracy), cmocka_unit_test(test_burst),
		cmocka_unit_test(test_extremes), cmocka_unit_test(test_costs),
		cmocka_unit_test(test_most), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_pace_switched), cmocka_unit_test(test_lowered),
		cmocka_unit_test(test_static_switched), cmocka_unit_test(test_static_rc),
		cmocka_unit_test(test_static_uc), cmocka_unit_test(test_static_read),
		cmocka_unit_test(test_static_ud), cmocka_unit_test(test_limit_raw),
		cmocka_unit_test(test_charge),
		cmocka_unit_test(test_limit_rc), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_alone), cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_fractions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
