// SPDX-License-Identifier: GPL-2.0
/*
 * Layout of messages in the areas of the two ends, and comparing them.
 */
#include "layout.h"
#include "pattern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE	(2ul << 20)
#define ALIGNMENTS	64

static size_t round_up(size_t x, size_t to)
{
	return (x + to - 1) / to * to;
}

/* Cut a piece into parts of odd lengths, every fourth one empty. */
static void cut(struct piece *p, enum end end, unsigned int parts)
{
	size_t left = p->len;

	p->parts[end] = parts;
	for (unsigned int k = 0; k < parts; k++) {
		size_t share = left / (parts - k) | 1;

		if (k + 1 == parts)
			share = left;
		else if (k % 4 == 2 || share > left)
			share = 0;
		p->part[end][k].len = share;
		left -= share;
	}
}

/* Place the parts of a piece behind the parts that are laid out already. */
static void place(struct layout *l, struct piece *p, enum end end, unsigned int align)
{
	for (unsigned int k = 0; k < p->parts[end]; k++) {
		struct part *part = &p->part[end][k];

		part->off = round_up(l->size[end] + GUARD, ALIGNMENTS) + (align + 11 * k) % ALIGNMENTS;
		l->size[end] = part->off + part->len;
	}
}

static void add(struct layout *l, size_t len, unsigned int client_align, unsigned int server_align,
		const unsigned int parts[2])
{
	struct piece *p = &l->piece[l->pieces];
	unsigned int n = l->pieces++;

	if (n >= PIECES_MAX)
		bail("layout has more than %d pieces", PIECES_MAX);
	*p = (struct piece){ .len = len, .seed = 0x1000000ull * (n + 1) };
	p->after = n % 2 ? p->seed : p->seed + 0x800000;
	cut(p, CLIENT, parts[CLIENT] > 1 ? 2 + n % (parts[CLIENT] - 1) : 1);
	cut(p, SERVER, parts[SERVER] > 1 ? 2 + (n + 1) % (parts[SERVER] - 1) : 1);
	place(l, p, CLIENT, client_align % ALIGNMENTS);
	place(l, p, SERVER, server_align % ALIGNMENTS);
}

static void boundaries(struct layout *l, size_t least, unsigned int mtu, size_t limit,
		       const unsigned int parts[2])
{
	const size_t lengths[] = {
		0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257,
		1023, 1024, 1025, 4095, 4096, 4097, mtu - 1, mtu, mtu + 1,
		2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 65535, 65536, 65537, (1 << 20) + 3,
	};

	for (unsigned int a = 0; a < ALIGNMENTS; a++) {
		size_t len = 65 + a * 5;

		add(l, len < limit ? len : limit, a, a * 37 + 1, parts);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (lengths[i] < least || lengths[i] > limit)
			continue;
		add(l, lengths[i], 0, 0, parts);
		if (lengths[i] <= 65537)
			add(l, lengths[i], 7 * i + 1, 13 * i + 5, parts);
	}
	add(l, limit < 4096 ? limit : 4096, 1, 63, parts);
}

void layout_make(struct layout *l, enum lengths kind, unsigned int mtu, size_t limit,
		 const unsigned int parts[2])
{
	l->pieces = 0;
	l->size[CLIENT] = 0;
	l->size[SERVER] = 0;
	if (kind == LEN_BIG)
		add(l, limit, 3, 5, parts);
	else if (kind == LEN_WORD)
		for (unsigned int a = 0; a < ALIGNMENTS; a++)
			add(l, 8, a, a * 8, parts);
	else
		boundaries(l, kind == LEN_NOT_EMPTY, mtu, limit, parts);
	l->size[CLIENT] += GUARD;
	l->size[SERVER] += GUARD;
}

bool area_create(struct area *a, size_t size, bool huge)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);

	a->size = round_up(size, huge ? HUGE_PAGE : 4096);
	a->base = mmap(NULL, a->size, PROT_READ | PROT_WRITE, flags, -1, 0);
	return a->base != MAP_FAILED;
}

void area_destroy(struct area *a)
{
	munmap(a->base, a->size);
}

void area_fill(struct area *a, const struct layout *l, enum end end, bool data)
{
	size_t at = 0;

	if (!data) {
		guard_fill(a->base, 0, a->size);
		return;
	}
	for (unsigned int i = 0; i < l->pieces; i++) {
		const struct piece *p = &l->piece[i];
		size_t done = 0;

		for (unsigned int k = 0; k < p->parts[end]; k++) {
			const struct part *part = &p->part[end][k];

			guard_fill(a->base, at, part->off);
			pattern_fill(a->base + part->off, part->len, p->seed, done);
			at = part->off + part->len;
			done += part->len;
		}
	}
	guard_fill(a->base, at, a->size);
}

static void check_guard(struct area *a, size_t from, size_t to, int piece, struct verdict *v)
{
	size_t bad = guard_check(a->base, from, to);

	if (bad != to)
		verdict_fail(v, "guard %s piece %d: byte %zu of the area is %02x, was %02x",
			     piece < 0 ? "behind the last" : "before", piece, bad, a->base[bad],
			     guard_byte(bad));
}

/* Compute the checksum of a piece that may lie in several parts. */
static uint64_t piece_sum(struct area *a, const struct piece *p, enum end end, uint64_t sum)
{
	const struct part *part = p->part[end];
	size_t done = 0;
	uint8_t *whole;

	if (p->parts[end] == 1)
		return checksum(sum, a->base + part->off, part->len);
	whole = malloc(p->len + 1);
	if (!whole)
		bail("no memory");
	for (unsigned int k = 0; k < p->parts[end]; k++) {
		memcpy(whole + done, a->base + part[k].off, part[k].len);
		done += part[k].len;
	}
	sum = checksum(sum, whole, p->len);
	free(whole);
	return sum;
}

uint64_t area_check(struct area *a, const struct layout *l, enum end end, bool after,
		    struct verdict *v)
{
	uint64_t sum = CHECKSUM_START;
	size_t at = 0;

	for (unsigned int i = 0; i < l->pieces; i++) {
		const struct piece *p = &l->piece[i];
		size_t done = 0;

		for (unsigned int k = 0; k < p->parts[end]; k++) {
			const struct part *part = &p->part[end][k];
			size_t bad;

			check_guard(a, at, part->off, i, v);
			bad = pattern_check(a->base + part->off, part->len,
					    after ? p->after : p->seed, done);
			if (bad != part->len)
				verdict_fail(v, "piece %u of %zu bytes at alignment %zu, part %u: byte %zu of %zu is wrong (%02x)",
					     i, p->len, part->off % ALIGNMENTS, k, bad, part->len,
					     a->base[part->off + bad]);
			at = part->off + part->len;
			done += part->len;
		}
		sum = piece_sum(a, p, end, sum);
	}
	check_guard(a, at, a->size, -1, v);
	return sum;
}
