// SPDX-License-Identifier: GPL-2.0
/*
 * packet/packet.c: the pool, trimming, copies and the order of their last bytes.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/packet.h"

#define BYTES	5000

static uint8_t src[BYTES], dst[BYTES + 1];

static void fill(void)
{
	for (int i = 0; i < BYTES; i++)
		src[i] = 1 + i * 7 % 251;
	memset(dst, 0, sizeof(dst));
}

/* Cut @len bytes at @mem into random pieces, empty ones among them. */
static uint32_t cut(uint8_t *mem, uint32_t len, struct seg *seg)
{
	uint32_t n = 0, part;

	for (; len; len -= part, mem += part) {
		part = n == PACKET_SEGS - 1 ? len : (uint32_t)rand() % (len + 1);
		if (rand() % 3 && part > 9)
			part = rand() % 9;
		seg[n++] = (struct seg){ .ptr = mem, .len = part };
		if (n == PACKET_SEGS)
			break;
	}
	return n;
}

static void test_pool(void **state)
{
	static const struct packet zero;
	struct packet_pool pool;
	struct packet *p[3];

	(void)state;
	memset(&pool, 0xff, sizeof(pool));	/* no field is used before it is set */
	assert_int_equal(packet_pool_init(&pool, 3), 0);
	assert_int_equal(pool.nfree, 3);
	for (uint32_t i = 0; i < 3; i++) {
		p[i] = packet_get(&pool);
		assert_non_null(p[i]);
		assert_int_equal(pool.nfree, 2 - i);
		memset(p[i], 0xff, sizeof(*p[i]));
	}
	assert_null(packet_get(&pool));
	assert_int_equal(pool.nfree, 0);
	packet_put(&pool, p[1]);
	assert_int_equal(pool.nfree, 1);
	packet_put(&pool, p[0]);
	assert_int_equal(pool.nfree, 2);
	assert_ptr_equal(packet_get(&pool), p[0]);
	assert_memory_equal(&p[0]->kind, &zero.kind,
			    offsetof(struct packet, seg) - offsetof(struct packet, kind));
	assert_ptr_equal(packet_get(&pool), p[1]);
	packet_put(&pool, p[1]);
	packet_pool_fini(&pool);
	assert_null(pool.all);
	assert_int_equal(pool.nfree, 0);
	assert_null(packet_get(&pool));
}

static void check_payload(const struct packet *p, const uint8_t *want, uint32_t len)
{
	uint32_t total = 0;
	uint8_t got[100];

	for (uint32_t i = 0; i < p->nseg; i++)
		total += p->seg[i].len;
	assert_int_equal(total, len);
	assert_int_equal(p->len, len);
	seg_copy_out(got, p->seg, p->nseg, 0, len);
	assert_memory_equal(got, want, len);
}

static void test_trim(void **state)
{
	(void)state;
	fill();
	for (uint32_t n = 0; n <= 60; n++) {
		struct packet p = {
			.len = 60,
			.nseg = 3,
			.seg = { { src, 20 }, { src + 20, 1 }, { src + 21, 39 } },
		};
		struct packet q = p;

		packet_trim_front(&p, n);
		check_payload(&p, src + n, 60 - n);
		assert_int_equal(p.nseg, n < 20 ? 3 : n < 21 ? 2 : n < 60 ? 1 : 0);
		packet_trim_back(&q, n);
		check_payload(&q, src, 60 - n);
		assert_int_equal(q.nseg, n < 39 ? 3 : n < 40 ? 2 : n < 60 ? 1 : 0);
		assert_true(!q.nseg || q.seg[q.nseg - 1].len);
	}
}

static void test_copy(void **state)
{
	(void)state;
	srand(3);
	for (int round = 0; round < 3000; round++) {
		struct seg from[PACKET_SEGS], to[PACKET_SEGS];
		uint32_t len = rand() % (round % 2 ? 150 : BYTES), room, n;

		fill();
		n = cut(src, len, from);
		room = rand() % 4 ? len : (uint32_t)rand() % BYTES;
		assert_int_equal(seg_copy(to, cut(dst, room, to), from, n),
				 len < room ? len : room);
		if (len > room)
			len = room;
		assert_memory_equal(dst, src, len);
		for (int i = len; i < BYTES; i++)
			assert_int_equal(dst[i], 0);
	}
}

/* Make 25 pieces of up to 199 bytes with gaps between them. Return: the bytes of all. */
static uint32_t cut_with_gaps(uint8_t *mem, struct seg *seg, uint8_t **at)
{
	uint32_t n = 0;

	for (int i = 0; i < 25; i++) {
		seg[i] = (struct seg) { mem + 200 * i, rand() % 3 ? rand() % 200 : 0 };
		for (uint32_t k = 0; k < seg[i].len; k++)
			at[n++] = seg[i].ptr + k;
	}
	return n;
}

/* Nothing between the pieces is read or written. */
static void test_copy_with_gaps(void **state)
{
	static uint8_t *in[BYTES], *out[BYTES], want[BYTES];
	struct seg from[25], to[25];

	(void)state;
	srand(6);
	for (int round = 0; round < 300; round++) {
		uint32_t len, room;

		fill();
		len = cut_with_gaps(src, from, in);
		room = cut_with_gaps(dst, to, out);
		len = len < room ? len : room;
		memset(want, 0, sizeof(want));
		for (uint32_t i = 0; i < len; i++)
			want[out[i] - dst] = *in[i];
		assert_int_equal(seg_copy(to, 25, from, 25), len);
		assert_memory_equal(dst, want, BYTES);
	}
}

static void test_copy_in_and_out(void **state)
{
	struct seg seg[PACKET_SEGS];
	uint8_t back[BYTES];
	uint32_t n;

	(void)state;
	fill();
	n = cut(dst, BYTES, seg);
	assert_int_equal(seg_copy(seg, n, &(struct seg) { src, BYTES }, 1), BYTES);
	assert_memory_equal(dst, src, BYTES);
	for (uint32_t skip = 0; skip < BYTES; skip += 333) {
		seg_copy_out(back, seg, n, skip, BYTES - skip);
		assert_memory_equal(back, src + skip, BYTES - skip);
	}
	seg_copy_out(back, seg, n, BYTES, 0);
}

static void test_every_tail(void **state)
{
	(void)state;
	for (uint32_t len = 0; len < 200; len++) {
		for (uint32_t at = 0; at < 8; at++) {
			struct seg from = { src + at % 3, len }, to = { dst + at, len };

			fill();
			assert_int_equal(seg_copy(&to, 1, &from, 1), len);
			assert_memory_equal(dst + at, src + at % 3, len);
			assert_int_equal(dst[at + len], 0);
			assert_int_equal(at ? dst[at - 1] : 0, 0);
		}
	}
}

static void test_overlap_is_harmless(void **state)
{
	struct seg from = { src, 1000 }, to = { src + 1, 1000 };

	(void)state;
	fill();
	assert_int_equal(seg_copy(&to, 1, &from, 1), 1000);
	assert_int_equal(seg_copy(&from, 1, &to, 1), 1000);
}

/*
 * The last 64 bytes are stored in ascending order. That is visible where the pieces overlap: these
 * bytes are read after the ones before them were written.
 */
static void test_tail_ascends(void **state)
{
	static uint8_t mem[256] __attribute__((aligned(8))), want[sizeof(mem)];

	(void)state;
	for (uint32_t len = 1; len < 200; len++) {
		uint32_t bulk = len > 64 ? len - 64 : 0;

		for (uint32_t i = 0; i < sizeof(mem); i++)
			mem[i] = want[i] = i;
		memmove(want + 8, want, bulk);
		for (uint32_t i = bulk; i < len; i++)
			want[i + 8] = want[i];
		seg_copy(&(struct seg) { mem + 8, len }, 1, &(struct seg) { mem, len }, 1);
		assert_memory_equal(mem, want, sizeof(mem));
	}
}

/* Wait by spinning, because the race needs two CPUs, but yield at times, in case there is one. */
static void spin(unsigned int *spins)
{
	if (++*spins % 1024 == 0)
		sched_yield();
}

/* Poll the end of the buffer as a program does. */
struct poller {
	uint8_t *buf;
	uint32_t len;
	unsigned int rounds;
	unsigned int early;
	uint32_t turn;
};

static void *poll_last_byte(void *arg)
{
	struct poller *p = arg;

	for (unsigned int r = 1; r <= p->rounds; r++) {
		uint8_t mark = r % 255 + 1;
		unsigned int spins = 0;

		while (__atomic_load_n(&p->buf[p->len - 1], __ATOMIC_ACQUIRE) != mark)
			spin(&spins);
		for (uint32_t i = 0; i < p->len; i++)
			if (p->buf[i] != mark)
				p->early++;
		__atomic_store_n(&p->turn, r, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void test_last_byte_is_last(void **state)
{
	static const uint32_t lens[] = { 3, 64, 100, 4099 };

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct poller p = { .buf = dst, .len = lens[k], .rounds = 2000 };
		struct seg from = { src, lens[k] }, to = { dst, lens[k] };
		pthread_t thread;

		memset(dst, 0, sizeof(dst));
		assert_int_equal(pthread_create(&thread, NULL, poll_last_byte, &p), 0);
		for (unsigned int r = 1; r <= p.rounds; r++) {
			unsigned int spins = 0;

			memset(src, r % 255 + 1, lens[k]);
			seg_copy(&to, 1, &from, 1);
			while (__atomic_load_n(&p.turn, __ATOMIC_ACQUIRE) != r)
				spin(&spins);
		}
		pthread_join(thread, NULL);
		assert_int_equal(p.early, 0);
	}
}

/* A program that polls a flag word of 2, 4 or 8 bytes. */
struct word {
	const uint8_t *at;
	uint32_t len;
	bool stop;
	unsigned int looks;
	unsigned int torn;
};

static void *poll_word(void *arg)
{
	struct word *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		uint64_t v;

		if (w->len == 2)
			v = __atomic_load_n((uint16_t *)w->at, __ATOMIC_RELAXED);
		else if (w->len == 4)
			v = __atomic_load_n((uint32_t *)w->at, __ATOMIC_RELAXED);
		else
			v = __atomic_load_n((uint64_t *)w->at, __ATOMIC_RELAXED);
		w->torn += v && v != UINT64_MAX >> (64 - 8 * w->len);
		__atomic_store_n(&w->looks, w->looks + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* An aligned word at the end of a copy is seen with all of its bytes old, or all of them new. */
static void test_words_arrive_whole(void **state)
{
	static const struct {
		uint32_t len, word;
	} cases[] = { { 2, 2 }, { 4, 4 }, { 8, 8 }, { 64, 8 }, { 66, 2 }, { 72, 8 }, { 1000, 8 } };
	static uint8_t to[1024] __attribute__((aligned(64)));

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		const uint32_t len = cases[k].len;
		struct word w = { .at = to + len - cases[k].word, .len = cases[k].word };
		struct seg from = { src + 1, len }, dest = { to, len };
		pthread_t thread;

		memset(to, 0, sizeof(to));
		assert_int_equal(pthread_create(&thread, NULL, poll_word, &w), 0);
		/* Both threads have to run for a while, at the same time if there are two CPUs. */
		for (unsigned int r = 0; r < 500000 ||
		     __atomic_load_n(&w.looks, __ATOMIC_RELAXED) < 500000; r++) {
			memset(src + 1 + len - cases[k].word, r % 2 ? 0xff : 0, cases[k].word);
			seg_copy(&dest, 1, &from, 1);
		}
		__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		assert_int_equal(w.torn, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_copy_with_gaps),
		cmocka_unit_test(test_copy_in_and_out),
		cmocka_unit_test(test_every_tail),
		cmocka_unit_test(test_overlap_is_harmless),
		cmocka_unit_test(test_tail_ascends),
		cmocka_unit_test(test_last_byte_is_last),
		cmocka_unit_test(test_words_arrive_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
