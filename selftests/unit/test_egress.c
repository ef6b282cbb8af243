// SPDX-License-Identifier: GPL-2.0
/*
 * net/egress.c: rate, queue limit and marks of a rate-limited link, by a clock that only the test
 * advances; packet/ecn.c; packet/frames.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/failing.h"
#include "lib/numbers.h"
#include "net/egress.h"
#include "net/switch.h"
#include "packet/bth.h"
#include "packet/csum.h"
#include "packet/ecn.h"
#include "packet/frames.h"
#include "packet/ip.h"
#include "packet/wire.h"

#define FRAME		1500
#define SEEN_MAX	4096

/**
 * struct fixture - a link and what came out of it
 * @seen:	frames, in all
 * @when, @len, @salt, @ecn: of the last SEEN_MAX of them; @salt is byte 20
 * @last:	the last one
 * @bytes:	its frame
 * @note:	its note
 * @lost:	frames that did not arrive; @lost_salt, @why: of the last
 */
struct fixture {
	struct timers timers;
	uint64_t now;
	struct egress *q;
	uint32_t seen;
	uint64_t when[SEEN_MAX];
	uint32_t len[SEEN_MAX];
	uint8_t salt[SEEN_MAX];
	uint8_t ecn[SEEN_MAX];
	struct packet last;
	uint8_t bytes[FRAMES_MAX_BYTES];
	const char *note;
	uint32_t lost;
	uint8_t lost_salt;
	const char *why;
};

static void got(void *arg, const struct packet *p)
{
	struct fixture *f = arg;
	uint32_t i = f->seen++ % SEEN_MAX;

	f->when[i] = f->now;
	f->len[i] = p->frame.len;
	f->salt[i] = p->frame.ptr[20];
	f->ecn[i] = p->tclass & ECN_MASK;
	f->last = *p;
	memcpy(f->bytes, p->frame.ptr, p->frame.len);
}

static void arrived(void *arg, const struct packet *p, const char *note)
{
	struct fixture *f = arg;

	got(arg, p);
	f->note = note;
}

static void lost(void *arg, uint8_t *frame, uint32_t len, const struct frames_kept *kept,
		 const char *why)
{
	struct fixture *f = arg;

	assert_true(len > 20);
	assert_false(kept->roce);
	f->why = why;
	f->lost++;
	f->lost_salt = frame[20];
}

static const struct egress_ops egress_ops = { .arrived = arrived, .lost = lost };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	timers_init(&f->timers);
	f->now = 1000000000;
	f->q = egress_new(&f->timers, &f->now, &egress_ops, f);
	assert_non_null(f->q);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	egress_free(f->q);
	assert_int_equal(f->timers.n, 0);
	assert_int_equal(f->timers.cap, 0);
	timers_fini(&f->timers);
	free(f);
	return 0;
}

static void set(struct fixture *f, uint32_t kbps, uint32_t queue)
{
	struct egress_param p = { .kbps = kbps, .queue = queue, .kmin = queue, .kmax = queue };

	assert_null(egress_check(&p));
	egress_set(f->q, &p);
}

/* Advance from timer to timer until none is armed, or to @until */
static void run(struct fixture *f, uint64_t until)
{
	int64_t next;

	while ((next = timers_next(&f->timers, f->now)) >= 0 && f->now + next <= until) {
		f->now += next;
		timers_run(&f->timers, f->now);
	}
	if (until != UINT64_MAX)
		f->now = until;
}

static const char *salt_note(uint8_t salt)
{
	return salt & 1 ? "odd" : NULL;
}

static void put_from(struct fixture *f, struct switch_port *from, uint32_t len, uint8_t salt)
{
	static uint8_t bytes[FRAMES_MAX_BYTES + 8];
	struct packet p = { .kind = PACKET_ETHERNET, .from = from, .len = len, .nseg = 2 };

	memset(bytes, salt, sizeof(bytes));
	be16_put(bytes + 12, 0x88b5);
	p.seg[0] = (struct seg) { bytes, 14 };
	p.seg[1] = (struct seg) { bytes + 14, len - 14 };
	p.csum_ok = salt & 1;
	egress_put(f->q, &p, salt_note(salt));
	memset(bytes, 0xff, sizeof(bytes));	/* the queue holds a copy */
}

static void put_plain(struct fixture *f, uint32_t len, uint8_t salt)
{
	put_from(f, NULL, len, salt);
}

static uint8_t payload[PACKET_MAX_PAYLOAD];

static struct packet roce(uint32_t len, uint8_t tclass, bool v6)
{
	struct packet p = {
		.kind = PACKET_ROCE, .tclass = tclass, .opcode = BTH_RC_SEND_ONLY, .mtu = 1024,
		.npsn = len > 1024 ? (len + 1023) / 1024 : 1, .len = len, .nseg = 1,
		.udp_sport = 0xc000, .pkey = 0xffff, .hop_limit = 64, .psn = 0xfffffe,
		.ackreq = true, .sqpn = 0x77,
	};

	for (uint32_t i = 0; i < len; i++)
		payload[i] = i * 7;
	ip_v4_gid(p.sgid, (uint8_t[]) { 10, 0, 0, 1 });
	ip_v4_gid(p.dgid, (uint8_t[]) { 10, 0, 0, 2 });
	if (v6)
		memcpy(p.dgid, (uint8_t[16]) { 0xfe, 0x80, [15] = 2 }, 16);
	p.seg[0] = (struct seg) { payload, len };
	return p;
}

static void put_roce(struct fixture *f, uint32_t len, uint8_t tclass, bool v6)
{
	struct packet p = roce(len, tclass, v6);

	egress_put(f->q, &p, NULL);
	memset(payload, 0xff, sizeof(payload));
}

/* Without memory for the link or for its timer there is neither. */
static void test_no_memory(void **state)
{
	struct fixture *f = *state;
	struct egress *q = NULL;
	struct timers timers;
	uint32_t left = 0;

	timers_init(&timers);
	for (; !q; left++) {
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		q = egress_new(&timers, &f->now, &egress_ops, f);
		assert_int_equal(failing_end(), !q);
		assert_int_equal(timers.cap, q ? 1 : 0);
	}
	assert_int_equal(left, 3);
	egress_free(q);
	egress_free(NULL);
	assert_int_equal(timers.cap, 0);
	timers_fini(&timers);
}

/* A link that is freed with frames in its queue leaves no timer; see teardown(). */
static void test_freed(void **state)
{
	const struct egress_param want = { 1000, 20000, 20000, 20000, 0 };
	struct fixture *f = *state;

	set(f, 1000, 20000);
	put_plain(f, FRAME, 0);
	assert_int_equal(f->timers.n, 1);
	assert_memory_equal(egress_param(f->q), &want, sizeof(want));
}

/* Frames leave in order, each after the transmission time of its bytes. */
static void test_rate(void **state)
{
	static const uint32_t kbps[] = { EGRESS_MIN_KBPS, 333, 100000, 10000000, EGRESS_MAX_KBPS };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(kbps) / sizeof(kbps[0]); i++) {
		uint64_t begin = f->now + 12345, bytes = 0, before = egress_stats(f->q)->bytes;
		uint32_t first = f->seen;

		f->now = begin;
		set(f, kbps[i], EGRESS_MAX_QUEUE);
		for (int n = 0; n < 1000; n++)
			put_plain(f, 60 + n * 9, n);
		assert_int_equal(f->seen, first);	/* none has arrived yet */
		run(f, UINT64_MAX);
		assert_int_equal(f->seen, first + 1000);
		for (uint32_t n = 0; n < 1000; n++) {
			double want = (bytes += 60 + n * 9) * 8e6 / kbps[i];
			double took = f->when[(first + n) % SEEN_MAX] - begin;

			assert_true(took > want * 0.9999 - 1 && took < want * 1.0002 + 1);
			assert_int_equal(f->len[(first + n) % SEEN_MAX], 60 + n * 9);
			assert_int_equal(f->salt[(first + n) % SEEN_MAX], (uint8_t)n);
		}
		assert_int_equal(egress_stats(f->q)->bytes - before, bytes);
		assert_int_equal(egress_depth(f->q), 0);
	}
	assert_int_equal(egress_stats(f->q)->frames, 5000);
	assert_int_equal(egress_stats(f->q)->dropped, 0);
}

/* The fractions of a ns of frames in a row add up; that of an earlier frame is forgotten. */
static void test_fraction(void **state)
{
	const uint64_t took = 70 * 8000000ull / 333;	/* ns, and 0.68 more */
	struct fixture *f = *state;
	uint64_t begin;

	set(f, 333, EGRESS_MAX_QUEUE);
	for (int i = 0; i < 2; i++) {
		begin = f->now;
		put_plain(f, 70, 0);
		run(f, UINT64_MAX);
		assert_int_equal(f->when[i] - begin, took);
		f->now++;
	}
	begin = f->now;
	put_plain(f, 70, 0);
	put_plain(f, 70, 0);
	run(f, UINT64_MAX);
	assert_int_equal(f->when[3] - begin, 2 * took + 1);
	/* a whole number of ns per byte has no fraction that could add up */
	set(f, 1000000, EGRESS_MAX_QUEUE);
	begin = f->now;
	for (int i = 0; i < 800; i++)
		put_plain(f, FRAME, 0);
	run(f, UINT64_MAX);
	assert_int_equal(f->now - begin, 800 * FRAME * 8);
}

/* Frames that wait when the link is removed are reported as lost, and none arrives later. */
static void test_drop(void **state)
{
	struct fixture *f = *state;
	uint64_t begin;

	set(f, 100000, 20000);
	egress_drop(f->q, "nothing");
	put_plain(f, FRAMES_MAX_BYTES + 1, 0);	/* which is no frame */
	assert_int_equal(f->timers.n, 0);
	assert_int_equal(f->lost, 0);
	for (int round = 1; round <= 5; round++) {	/* the ring wraps */
		for (int n = 0; n < 9; n++)
			put_plain(f, FRAME, n);
		run(f, f->now + 3 * FRAME * 80);
		egress_drop(f->q, "gone");
		assert_string_equal(f->why, "gone");
		assert_int_equal(f->lost, round * 6);
		assert_int_equal(f->lost_salt, 8);
		assert_int_equal(egress_depth(f->q), 0);
		assert_int_equal(f->timers.n, 0);
		run(f, f->now + 1000000000);
		assert_int_equal(f->seen, round * 3);
	}
	/* the next frame does not wait for those that were dropped */
	begin = f->now;
	put_plain(f, FRAME, 0);
	put_plain(f, FRAME, 0);
	egress_drop(f->q, "gone");
	put_plain(f, FRAME, 0);
	run(f, UINT64_MAX);
	assert_in_range(f->when[(f->seen - 1) % SEEN_MAX] - begin, FRAME * 80 - 1, FRAME * 80 + 1);
	assert_int_equal(egress_stats(f->q)->dropped, 0);
}

/*
 * Frames that wait and came from a port are dropped, wherever they are in the queue. The others
 * keep their order, and leave without a gap at the rate of the link.
 */
static void test_drop_from(void **state)
{
	struct fixture *f = *state;
	struct switch_port *a = (void *)&f->bytes[0], *b = (void *)&f->bytes[1];
	const uint64_t frame = FRAME * 80;

	set(f, 100000, 20000);
	egress_drop_from(f->q, a, "nothing");
	for (int round = 0; round < 50; round++) {	/* the ring wraps */
		uint64_t begin = f->now, first = f->seen, lost = f->lost;

		for (int n = 0; n < 12; n++)
			put_from(f, n % 3 ? a : b, FRAME, n);
		run(f, begin + frame / 2);		/* the first one is on the wire */
		egress_drop_from(f->q, NULL, "nothing");
		assert_int_equal(egress_depth(f->q), 12 * FRAME);
		egress_drop_from(f->q, a, "gone");
		assert_string_equal(f->why, "gone");
		assert_int_equal(f->lost - lost, 8);
		assert_int_equal(f->lost_salt, 11);
		assert_int_equal(egress_depth(f->q), 4 * FRAME);
		run(f, begin + frame / 2 + round % 30 * frame / 10);
		egress_drop_from(f->q, a, "nothing");
		put_from(f, a, FRAME, 12);
		run(f, UINT64_MAX);
		assert_int_equal(f->seen - first, 5);
		for (int n = 0; n < 5; n++) {
			assert_int_equal(f->salt[(first + n) % SEEN_MAX], n * 3);
			assert_in_range(f->when[(first + n) % SEEN_MAX],
					begin + (n + 1) * frame - 5, begin + (n + 1) * frame + 1);
		}
		put_from(f, a, FRAME, 1);
		egress_drop_from(f->q, a, "gone");
		assert_int_equal(egress_depth(f->q), 0);
		assert_int_equal(f->timers.n, 0);
	}
}

/* More frames wait than the queue has had room for since it became shorter. */
static void test_drop_from_shorter(void **state)
{
	struct switch_port *a = (void *)state, *b = (void *)&a;
	struct fixture *f = *state;

	set(f, 100000, EGRESS_MAX_QUEUE);
	for (int n = 0; n < 100; n++)
		put_from(f, a, FRAME, n);
	set(f, 100000, EGRESS_MIN_QUEUE);
	egress_drop_from(f->q, b, "nothing");
	assert_int_equal(egress_depth(f->q), 100 * FRAME);
	run(f, UINT64_MAX);
	assert_int_equal(f->lost, 0);
	assert_int_equal(f->seen, 100);
	for (int n = 0; n < 100; n++)
		assert_int_equal(f->salt[n], n);
}

/* Some frames are dropped by port, with any sizes and changes of the queue; the others arrive. */
static void test_drop_from_random(void **state)
{
	struct fixture *f = *state;
	struct switch_port *ports[2] = { (void *)&f->bytes[0], (void *)&f->bytes[1] };
	uint8_t expect[SEEN_MAX];

	srand(2);
	for (int round = 0; round < 300; round++) {
		uint32_t first = f->seen, n = 0, frames = rand() % 1000;
		bool gone = rand() % 2;

		set(f, 1000000, rand() % 2 ? 10000u + rand() % 90000 : EGRESS_MAX_QUEUE);
		for (uint32_t i = 0; i < frames; i++) {
			uint64_t dropped = egress_stats(f->q)->dropped;
			bool port = i < frames / 2 ? !gone : rand() % 2;

			if (i == frames / 2)	/* the ring may wrap */
				run(f, f->now + rand() % 1000000);
			put_from(f, ports[port], 21 + rand() % (rand() % 2 ? 200 : 9190), i);
			if (egress_stats(f->q)->dropped == dropped && port != gone)
				expect[n++] = i;
		}
		set(f, 1000000, 10000);
		egress_drop_from(f->q, ports[gone], "gone");
		run(f, UINT64_MAX);
		assert_int_equal(f->seen - first, n);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(f->salt[(first + i) % SEEN_MAX], expect[i]);
	}
}

/* The queue never exceeds its limit; all accepted frames arrive, and no other. */
static void test_room(void **state)
{
	struct fixture *f = *state;

	set(f, 100000, 20000);
	for (int n = 0; n < 100; n++)
		put_plain(f, FRAME, n);
	assert_int_equal(egress_depth(f->q), 13 * FRAME);
	assert_int_equal(egress_stats(f->q)->dropped, 87);
	assert_int_equal(f->lost, 87);
	assert_int_equal(f->lost_salt, 99);
	assert_string_equal(f->why, "dropped: queue full");
	put_plain(f, 500, 200);		/* there is room for this one */
	run(f, UINT64_MAX);
	assert_int_equal(f->seen, 14);
	for (int n = 0; n < 13; n++)
		assert_int_equal(f->salt[n], n);
	assert_int_equal(f->salt[13], 200);
	assert_int_equal(egress_stats(f->q)->peak, 20000);
	/* frames at the link's rate get through without limit */
	for (int n = 0; n < 500; n++) {
		put_plain(f, FRAME, n);
		run(f, f->now + FRAME * 80);
	}
	assert_int_equal(egress_stats(f->q)->dropped, 87);
	/* short frames are charged a minimum size, so that their number is bounded too */
	for (int n = 0; n < 1000; n++)
		put_plain(f, 21, n);
	assert_int_equal(egress_depth(f->q), 20000 / EGRESS_MIN_FRAME * EGRESS_MIN_FRAME);
	/* as many of the shortest whole frames, which need most of the ring */
	run(f, UINT64_MAX);
	for (int n = 0; n < 20000 / EGRESS_MIN_FRAME; n++)
		put_plain(f, EGRESS_MIN_FRAME, n);
	assert_int_equal(egress_depth(f->q), 20000 / EGRESS_MIN_FRAME * EGRESS_MIN_FRAME);
	/* longer than any frame: dropped, not truncated */
	put_plain(f, FRAMES_MAX_BYTES + 1, 0);
	run(f, UINT64_MAX);
	assert_int_equal(f->seen, 14 + 500 + 2 * (20000 / EGRESS_MIN_FRAME));
}

/* Random sizes, pauses and parameters: order and bytes stay. */
static void test_random(void **state)
{
	struct fixture *f = *state;
	uint8_t expect[SEEN_MAX];
	uint32_t taken = 0, checked = 0;

	srand(1);
	set(f, 1000000, 50000);
	for (int n = 0; n < 100000; n++) {
		uint32_t len = rand() % 3 ? 21 + rand() % 200 : 21 + rand() % 9190, room;
		uint64_t dropped = egress_stats(f->q)->dropped;

		if (!(rand() % 1000))
			set(f, 500000 + rand() % 1000000, 10000 + rand() % 90000);
		room = egress_param(f->q)->queue - egress_depth(f->q);
		expect[taken % SEEN_MAX] = n;
		put_plain(f, len, n);
		if (egress_stats(f->q)->dropped == dropped)
			taken++;
		else	/* the queue may have become shorter than what waits */
			assert_true((int32_t)room < (int32_t)(len < 60 ? 60 : len));
		if (rand() % 2)
			run(f, f->now + rand() % 30000);
		for (; checked < f->seen; checked++)
			assert_int_equal(f->salt[checked % SEEN_MAX], expect[checked % SEEN_MAX]);
		assert_true(egress_depth(f->q) <= 100000);
	}
	run(f, UINT64_MAX);
	assert_int_equal(f->seen, taken);
	assert_true(taken > 50000 && egress_stats(f->q)->dropped > 1000);
	for (uint32_t i = 0; i < f->last.frame.len; i++)
		if (i != 12 && i != 13)
			assert_int_equal(f->bytes[i], f->salt[(f->seen - 1) % SEEN_MAX]);
	assert_int_equal(f->last.csum_ok, f->bytes[20] & 1);
	assert_ptr_equal(f->note, salt_note(f->bytes[20]));
}

/*
 * A packet that stands for several packets of the wire is split, with right headers up to the
 * last one.
 */
static void test_cut(void **state)
{
	struct fixture *f = *state;

	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t first = f->seen;

		set(f, 1000000, 100000);
		put_roce(f, 5000, ECN_ECT0, v6);
		run(f, UINT64_MAX);
		assert_int_equal(f->seen - first, 5);
		assert_true(f->when[first] < f->when[first + 1]);
		assert_int_equal(f->last.kind, PACKET_ROCE);
		assert_int_equal(f->last.opcode, BTH_RC_SEND_LAST);
		assert_int_equal(f->last.psn, 2);
		assert_int_equal(f->last.npsn, 1);
		assert_true(f->last.ackreq);
		assert_int_equal(f->last.sqpn, 0x77);	/* which is not in its frame */
		assert_null(f->last.from);
		assert_int_equal(f->last.len, 5000 - 4096);
		for (uint32_t i = 0; i < f->last.len; i++)
			assert_int_equal(f->bytes[f->last.seg[0].ptr - f->last.frame.ptr + i],
					 (uint8_t)((4096 + i) * 7));
	}
}

/* Queue @len bytes as a packet of @kind; check that they arrive as such. */
static void expect_kind(struct fixture *f, enum packet_kind kind, uint8_t *bytes, uint32_t len)
{
	struct packet p = { .kind = kind, .frame = { bytes, len }, .len = len, .nseg = 1 };
	uint32_t seen = f->seen;

	p.seg[0] = p.frame;
	egress_put(f->q, &p, NULL);
	run(f, UINT64_MAX);
	assert_int_equal(f->seen, seen + 1);
	assert_int_equal(f->last.kind, kind);
	assert_int_equal(f->last.frame.len, len);
	assert_memory_equal(f->bytes, bytes, len);
	if (kind != PACKET_ETHERNET)
		return;
	assert_int_equal(f->last.len, len);
	assert_ptr_equal(f->last.seg[0].ptr, f->last.frame.ptr);
}

/*
 * A packet stays what it is: a frame of a RAW queue pair that looks like RoCEv2 is Ethernet
 * (ORN-PORT-19), with a wrong ICRC or lengths that contradict each other, too.
 */
static void test_kind(void **state)
{
	struct fixture *f = *state;
	struct packet p = roce(33, 0, false);
	uint8_t bytes[FRAMES_MAX_BYTES];
	struct frames cut;
	uint32_t len;

	set(f, 1000000, 100000);
	frames_begin(&cut, &p);
	len = frames_next(&cut, bytes);
	expect_kind(f, PACKET_ROCE, bytes, len);
	expect_kind(f, PACKET_ETHERNET, bytes, len);
	bytes[len - 1] ^= 1;
	expect_kind(f, PACKET_BAD_ICRC, bytes, len);
	expect_kind(f, PACKET_ETHERNET, bytes, len);
	bytes[ETH_BYTES + IPV4_BYTES + 5] ^= 1;
	expect_kind(f, PACKET_ETHERNET, bytes, len);
	assert_int_equal(f->last.psn, 0);	/* not that of an earlier packet */
	assert_int_equal(f->lost, 0);
}

/* A late engine delivers late, a bounded number at a time, and catches up with the rate. */
static void test_late(void **state)
{
	struct fixture *f = *state;

	set(f, 1000000, EGRESS_MAX_QUEUE);
	for (int n = 0; n < 5000; n++)
		put_plain(f, 60, n);
	f->now += 1000000000;
	timers_run(&f->timers, f->now);
	assert_in_range(f->seen, 1, 1000);
	assert_true(timers_next(&f->timers, f->now) <= 1);
	for (int turn = 0; turn < 100; turn++, f->now++)
		timers_run(&f->timers, f->now);
	assert_int_equal(f->seen, 5000);
	put_plain(f, 1250, 1);
	run(f, UINT64_MAX);
	assert_int_equal(f->when[5000 % SEEN_MAX], f->now);
	assert_true(f->when[5000 % SEEN_MAX] - f->when[4999 % SEEN_MAX] >= 10000);
}

/* Return how many of @tries frames get a mark with @depth bytes in the queue. */
static uint32_t marks(struct fixture *f, const struct egress_param *param, uint32_t depth,
		      uint32_t tries, uint8_t tclass)
{
	struct egress_param still = *param;
	uint64_t before = egress_stats(f->q)->marked;

	still.kbps = EGRESS_MIN_KBPS;
	egress_set(f->q, &still);
	for (uint32_t i = 0; i < tries; i++) {
		while (egress_depth(f->q) < depth) {
			uint32_t left = depth - egress_depth(f->q);

			put_plain(f, left >= 2 * FRAME ? FRAME : left > FRAME ? left / 2 : left, 0);
		}
		assert_int_equal(egress_depth(f->q), depth);
		put_roce(f, 40, tclass, i & 1);
		run(f, UINT64_MAX);
	}
	return egress_stats(f->q)->marked - before;
}

/*
 * The curve: no marks up to kmin, a straight line to pmax, all frames beyond kmax. The same traffic
 * gets the @same marks in every run, so these numbers are exact.
 */
static void test_curve(void **state)
{
	static const uint32_t same[] = { 180, 412, 620, 799 };
	const struct egress_param p = { .kbps = 100000, .queue = 60000, .kmin = 10000,
					.kmax = 40000, .pmax = 40 };
	const struct egress_param step = { .kbps = 100000, .queue = 60000, .kmin = 10000,
					   .kmax = 10000, .pmax = 0 };
	const struct egress_param none = { .kbps = 100000, .queue = 60000, .kmin = 10000,
					   .kmax = 10001, .pmax = 0 };
	struct fixture *f = *state;
	const uint32_t n = 2000;

	assert_int_equal(marks(f, &p, 0, n, ECN_ECT0), 0);
	assert_int_equal(marks(f, &p, 10000, n, ECN_ECT0), 0);
	for (int i = 0; i < 4; i++) {
		const uint32_t got = marks(f, &p, 10000 + (i + 1) * 7500, n, ECN_ECT0);
		const uint32_t want = (i + 1) * 200, deviation = (uint32_t[]) { 13, 18, 20, 22 }[i];

		assert_in_range(got, want - 4 * deviation, want + 4 * deviation);
		assert_int_equal(got, same[i]);
	}
	assert_int_equal(marks(f, &p, 40001, n, ECN_ECT0), n);
	assert_int_equal(marks(f, &p, 50000, 100, 1), 100);
	assert_int_equal(marks(f, &p, 50000, 100, ECN_NOT_ECT), 0);
	assert_int_equal(marks(f, &step, 10000, n, ECN_ECT0), 0);
	assert_int_equal(marks(f, &step, 10001, 100, ECN_ECT0), 100);
	assert_int_equal(marks(f, &none, 10001, n, ECN_ECT0), 0);
	assert_int_equal(egress_stats(f->q)->dropped, 0);
}

/* A marked frame stays valid: checksum of IPv4, ICRC; its other bits stay. */
static void test_mark(void **state)
{
	struct fixture *f = *state;
	struct egress_param p = { .kbps = 1000, .queue = 60000, .kmin = 1, .kmax = 1 };

	egress_set(f->q, &p);
	for (int v6 = 0; v6 < 2; v6++) {
		for (int tclass = 0; tclass < 256; tclass++) {
			uint32_t first = f->seen;

			put_plain(f, 60, 0);
			put_roce(f, 33, tclass, v6);
			run(f, UINT64_MAX);
			assert_int_equal(f->seen, first + 2);
			assert_int_equal(f->last.kind, PACKET_ROCE);
			assert_int_equal(f->last.tclass,
					 tclass & ECN_MASK ? tclass | ECN_CE : tclass);
		}
	}
}

/* Frames of all kinds, cut off at every length: no access beyond the frame. */
static void test_mark_frames(void **state)
{
	static const struct {
		uint16_t type[2];
		uint32_t ip;
	} kinds[] = {
		{ { ETHERTYPE_IPV4 }, 14 }, { { ETHERTYPE_IPV6 }, 14 },
		{ { ETHERTYPE_VLAN, ETHERTYPE_IPV4 }, 18 },
		{ { ETHERTYPE_VLAN, ETHERTYPE_IPV6 }, 18 },
	};

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		bool v6 = k & 1;
		uint32_t whole = kinds[k].ip + (v6 ? IPV6_BYTES : IPV4_BYTES);

		for (uint32_t len = 0; len <= whole; len++) {
			uint8_t *frame = malloc(len + !len), all[64] = { 0 };

			be16_put(all + 12, kinds[k].type[0]);
			be16_put(all + 16, kinds[k].type[1]);
			all[kinds[k].ip] = v6 ? 0x60 : 0x45;
			all[kinds[k].ip + 1] = v6 ? ECN_ECT0 << 4 : ECN_ECT0;
			memcpy(frame, all, len);
			assert_int_equal(ecn_mark(frame, len), len == whole);
			if (len == whole) {
				assert_true(ecn_mark(frame, len));	/* idempotent */
				frame[kinds[k].ip] ^= 0x10;
				assert_false(ecn_mark(frame, len));	/* another version */
			} else {
				assert_memory_equal(frame, all, len);
			}
			free(frame);
		}
	}
}

/* Each traffic class, with and without a tag: only two bits and the checksum change. */
static void test_mark_classes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 256 * 8; i++) {
		bool v6 = i & 0x100, vlan = i & 0x200, any = i & 0x400;
		bool marks = any || i & ECN_MASK;
		uint8_t frame[ETH_BYTES + VLAN_BYTES + IPV6_BYTES] = { 0 }, want[sizeof(frame)];
		uint8_t *ip = frame + ETH_BYTES + (vlan ? VLAN_BYTES : 0);
		uint8_t *marked = want + (ip - frame), class = i;
		uint16_t csum;

		if (vlan)
			be16_put(frame + 12, ETHERTYPE_VLAN);
		be16_put(ip - 2, v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
		for (int k = 0; k < (v6 ? IPV6_BYTES : IPV4_BYTES); k++)
			ip[k] = i + k * 37;
		ip[0] = v6 ? 0x60 | class >> 4 : 0x45;
		ip[1] = v6 ? (class & 0xf) << 4 | 5 : class;
		if (!v6) {
			memset(ip + 10, 0, 2);
			csum = csum_fold(csum_add(0, ip, IPV4_BYTES, false));
			memcpy(ip + 10, &csum, 2);
		}
		memcpy(want, frame, sizeof(frame));
		marked[1] |= !marks ? 0 : v6 ? ECN_CE << 4 : ECN_CE;
		if (!v6 && marks) {
			memset(marked + 10, 0, 2);
			csum = csum_fold(csum_add(0, marked, IPV4_BYTES, false));
			memcpy(marked + 10, &csum, 2);
		}
		assert_int_equal(any ? ecn_mark_any(frame, sizeof(frame)) :
				       ecn_mark(frame, sizeof(frame)), marks);
		assert_memory_equal(frame, want, sizeof(frame));
	}
}

/* Every possible checksum, also the value with two representations in ones' complement. */
static void test_mark_checksum(void **state)
{
	uint8_t frame[ETH_BYTES + IPV4_BYTES] = { 0 }, *ip = frame + ETH_BYTES;

	(void)state;
	be16_put(frame + 12, ETHERTYPE_IPV4);
	for (uint32_t id = 0; id < 0x10000; id++) {
		uint16_t csum;

		memset(ip, 0, IPV4_BYTES);
		ip[0] = 0x45;
		ip[1] = 0xfc | (id & 1 ? 1 : ECN_ECT0);
		be16_put(ip + 4, id);
		csum = csum_fold(csum_add(0, ip, IPV4_BYTES, false));
		memcpy(ip + 10, &csum, 2);
		assert_true(ecn_mark(frame, sizeof(frame)));
		assert_int_equal(ip[1], 0xff);
		assert_true(csum_ipv4_ok(ip, IPV4_BYTES));
	}
}

/* Both sides of each limit, and the message of each error */
static void test_check(void **state)
{
	static const struct egress_param good = { 1000, 20000, 10, 20, 20 };
	static const char rate[] = "rate must be from 8K to 400G bit/s";
	static const char queue[] = "queue must be from 10000 to 16M bytes";
	static const char kmax[] = "kmax must not be less than kmin";
	static const char pmax[] = "pmax must not be more than 100 per cent";
	static const struct {
		size_t at;
		uint32_t value;
		const char *why;
	} cases[] = {
		{ offsetof(struct egress_param, kbps), 7, rate },
		{ offsetof(struct egress_param, kbps), 8, NULL },
		{ offsetof(struct egress_param, kbps), 400000000, NULL },
		{ offsetof(struct egress_param, kbps), 400000001, rate },
		{ offsetof(struct egress_param, queue), 9999, queue },
		{ offsetof(struct egress_param, queue), 10000, NULL },
		{ offsetof(struct egress_param, queue), 16 << 20, NULL },
		{ offsetof(struct egress_param, queue), (16 << 20) + 1, queue },
		{ offsetof(struct egress_param, kmax), 9, kmax },
		{ offsetof(struct egress_param, kmax), 10, NULL },
		{ offsetof(struct egress_param, pmax), 0, NULL },
		{ offsetof(struct egress_param, pmax), 100, NULL },
		{ offsetof(struct egress_param, pmax), 101, pmax },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct egress_param p = good;

		memcpy((uint8_t *)&p + cases[i].at, &cases[i].value, sizeof(uint32_t));
		if (cases[i].why)
			assert_string_equal(egress_check(&p), cases[i].why);
		else
			assert_null(egress_check(&p));
	}
}

/* Defaults of the keys that are not given: times at the rate, within limits */
static void test_default(void **state)
{
	static const struct {
		uint32_t given;
		struct egress_param is, want;
	} cases[] = {
		{ 0, { .kbps = 100000 }, { 100000, 524288, 3000, 20000, 20 } },
		{ 0, { .kbps = 8 }, { 8, 524288, 3000, 12000, 20 } },
		{ 0, { .kbps = 1000000 }, { 1000000, 524288, 5000, 200000, 20 } },
		{ 0, { .kbps = 2000000 }, { 2000000, 524288, 10000, 400000, 20 } },
		{ 0, { .kbps = 400000000 }, { 400000000, 524288, 65536, 524288, 20 } },
		{ EGRESS_KEY_QUEUE, { .kbps = 1000000, .queue = 10000 },
		  { 1000000, 10000, 1250, 10000, 20 } },
		{ EGRESS_KEY_QUEUE | EGRESS_KEY_KMIN, { 100000, 20000, 15000, 0, 0 },
		  { 100000, 20000, 15000, 20000, 20 } },
		{ EGRESS_KEY_KMIN, { .kbps = 100000, .kmin = 0 },
		  { 100000, 524288, 0, 20000, 20 } },
		{ EGRESS_KEY_KMIN, { .kbps = 100000, .kmin = 0x50000000 },
		  { 100000, 524288, 0x50000000, 524288, 20 } },
		{ EGRESS_KEY_KMAX, { .kbps = 1000000, .kmax = 7 },
		  { 1000000, 524288, 5000, 7, 20 } },
		{ EGRESS_KEY_PMAX, { .kbps = 1000000, .pmax = 0 },
		  { 1000000, 524288, 5000, 200000, 0 } },
		{ EGRESS_KEY_QUEUE | EGRESS_KEY_KMIN | EGRESS_KEY_KMAX | EGRESS_KEY_PMAX,
		  { 1, 2, 3, 4, 5 }, { 1, 2, 3, 4, 5 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct egress_param p = cases[i].is;

		egress_default(&p, cases[i].given);
		assert_memory_equal(&p, &cases[i].want, sizeof(p));
	}
}

static void note_drop(void *arg, const struct switch_port *port, enum switch_way way,
		      const struct packet *p, const char *note)
{
	struct fixture *f = arg;

	if (!note)
		return;
	assert_string_equal(switch_port_name(port), "b");
	assert_int_equal(way, SWITCH_OUT);
	assert_int_equal(p->frame.len, 100);
	assert_int_equal(p->psn, 0);		/* which such a frame does not have */
	f->lost++;
	f->why = note;
}

/* Send 100 bytes to the address of port "b". */
static void send_bytes(struct packet_pool *pool, struct switch_port *from, uint8_t *bytes)
{
	struct packet *p = packet_get(pool);

	memcpy(p->dmac, bytes, 6);
	p->len = 100;
	p->nseg = 1;
	p->seg[0] = (struct seg) { bytes, 100 };
	p->frame = p->seg[0];
	if (!strcmp(switch_port_name(from), "b"))
		switch_loopback(from, p);
	else
		switch_send(from, p);
}

/*
 * Two devices on a switch, a rate-limited link to the second one; its traffic to itself is not
 * limited.
 */
static void test_switch(void **state)
{
	static const struct switch_port_ops ops = { .deliver = got };
	const struct egress_param slow = { .kbps = 1000, .queue = 20000, .kmin = 20000,
					   .kmax = 20000 };
	struct fixture *f = *state;
	const struct switch_observer observer = { .observe = note_drop, .arg = f };
	struct packet known = { .kind = PACKET_ROCE }, other = known;
	struct packet_pool pool;
	struct net_switch *sw;
	struct switch_port *a, *b;
	uint8_t bytes[100] = { 2, [5] = 2, [12] = 0x88, 0xb5 };

	assert_int_equal(packet_pool_init(&pool, 8), 0);
	sw = switch_new(&pool);
	switch_set_time(sw, &f->timers, &f->now);
	a = switch_port_add(sw, "a", &ops, f);
	b = switch_port_add(sw, "b", &ops, f);
	switch_port_set_up(a, true);
	switch_port_set_up(b, true);
	assert_int_equal(switch_port_set_mac(b, bytes), 0);
	memcpy(known.dmac, bytes, 6);
	switch_find(a, &known);
	assert_ptr_equal(known.to, b);
	assert_false(known.remote);
	other.dmac[0] = 2;
	switch_find(a, &other);
	assert_null(other.to);
	assert_true(other.remote);
	assert_int_equal(switch_port_limit(b, NULL), 0);	/* there is none */
	assert_null(switch_port_egress(b));
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	assert_int_equal(switch_port_limit(b, &slow), -ENOMEM);
	assert_true(failing_end());
	assert_null(switch_port_egress(b));
	assert_int_equal(switch_port_limit(b, &slow), 0);
	switch_find(a, &known);
	assert_ptr_equal(known.to, b);
	assert_true(known.remote);
	send_bytes(&pool, a, bytes);
	send_bytes(&pool, a, bytes);
	send_bytes(&pool, b, bytes);
	switch_drain(sw);
	assert_int_equal(f->seen, 1);
	assert_int_equal(egress_depth(switch_port_egress(b)), 200);
	run(f, f->now + 800000);
	assert_int_equal(f->seen, 2);
	switch_set_observer(sw, &observer);
	switch_port_set_up(b, false);		/* these frames find an empty queue */
	run(f, f->now + 900000);
	assert_int_equal(f->seen, 2);
	assert_int_equal(f->lost, 1);
	assert_string_equal(f->why, "dropped: link down");
	f->lost = 0;
	assert_int_equal(egress_stats(switch_port_egress(b))->frames, 2);
	switch_port_set_up(b, true);
	for (int i = 0; i < 2; i++) {
		send_bytes(&pool, a, bytes);
		switch_drain(sw);
		if (!i)
			assert_int_equal(switch_port_limit(b, NULL), 0);
	}
	assert_int_equal(f->lost, 1);
	assert_string_equal(f->why, "dropped: rate limit removed");
	assert_int_equal(f->seen, 3);
	assert_null(switch_port_egress(b));
	assert_int_equal(switch_port_limit(b, &slow), 0);
	send_bytes(&pool, a, bytes);
	switch_drain(sw);
	switch_port_del(a);
	assert_int_equal(f->lost, 2);
	assert_string_equal(f->why, "dropped: port deleted");
	switch_port_del(b);
	assert_int_equal(pool.nfree, 8);
	switch_free(sw);
	packet_pool_fini(&pool);
}

/* Numbers of ornicd.8 */
static void test_documented(void **state)
{
	static const struct number numbers[] = {
		NUMBER(EGRESS_MIN_KBPS, 8), NUMBER(EGRESS_MAX_KBPS, 400000000),
		NUMBER(EGRESS_MIN_QUEUE, 10000), NUMBER(EGRESS_MAX_QUEUE, 16u << 20),
		NUMBER(EGRESS_QUEUE, 512u << 10), NUMBER(EGRESS_KMIN_NS, 40000ull),
		NUMBER(EGRESS_KMIN, 3000), NUMBER(EGRESS_KMAX_NS, 1600000ull),
		NUMBER(EGRESS_PMAX, 20), NUMBER(EGRESS_MIN_FRAME, 60),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented),
		TEST(test_no_memory),
		TEST(test_rate), TEST(test_fraction), TEST(test_room), TEST(test_drop),
		TEST(test_drop_from), TEST(test_drop_from_random),
		TEST(test_drop_from_shorter), TEST(test_random),
		TEST(test_cut), TEST(test_kind),
		TEST(test_late), TEST(test_curve), TEST(test_mark), TEST(test_mark_frames),
		TEST(test_mark_classes), TEST(test_mark_checksum), TEST(test_check),
		TEST(test_default), TEST(test_freed), TEST(test_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
