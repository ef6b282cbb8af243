// SPDX-License-Identifier: GPL-2.0
/*
 * The packet pool, and copies between lists of pieces.
 *
 * The device reports ORNIC_TP_F_DATA_IN_ORDER: data of a message becomes visible in address
 * order, its last byte last, so that a program may poll the end of a buffer instead of a
 * completion queue. memmove() guarantees no order, neither in the C library nor in the
 * processor's string instructions. Therefore memmove() copies all but the last bytes; these
 * follow in ascending, aligned stores of up to eight bytes, so that a flag word arrives
 * whole. Each is a release store, so on every processor it becomes visible after the stores of
 * memmove(); on x86 it is a plain move.
 */
#include "packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes at the end of a copy that are stored in order */
#define TAIL_BYTES	64

int packet_pool_init(struct packet_pool *pool, uint32_t count)
{
	STAILQ_INIT(&pool->free);
	pool->nfree = 0;
	pool->all = calloc(count, sizeof(*pool->all));
	if (!pool->all)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		packet_put(pool, &pool->all[i]);
	return 0;
}

void packet_pool_fini(struct packet_pool *pool)
{
	free(pool->all);
	pool->all = NULL;
	pool->nfree = 0;
	STAILQ_INIT(&pool->free);
}

struct packet *packet_get(struct packet_pool *pool)
{
	struct packet *p = STAILQ_FIRST(&pool->free);

	if (!p)
		return NULL;
	STAILQ_REMOVE_HEAD(&pool->free, link);
	pool->nfree--;
	memset(p, 0, offsetof(struct packet, seg));
	return p;
}

void packet_put(struct packet_pool *pool, struct packet *p)
{
	STAILQ_INSERT_HEAD(&pool->free, p, link);
	pool->nfree++;
}

void packet_trim_front(struct packet *p, uint32_t bytes)
{
	uint32_t gone = 0;

	p->len -= bytes;
	while (gone < p->nseg && bytes >= p->seg[gone].len)
		bytes -= p->seg[gone++].len;
	if (gone) {
		p->nseg -= gone;
		memmove(p->seg, p->seg + gone, p->nseg * sizeof(p->seg[0]));
	}
	if (bytes) {
		p->seg[0].ptr += bytes;
		p->seg[0].len -= bytes;
	}
}

void packet_trim_back(struct packet *p, uint32_t bytes)
{
	p->len -= bytes;
	while (p->nseg && bytes >= p->seg[p->nseg - 1].len)
		bytes -= p->seg[--p->nseg].len;
	if (bytes)
		p->seg[p->nseg - 1].len -= bytes;
}

/* Copy in ascending address order, with the largest aligned stores. */
static void copy_ascending(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint32_t n;

	for (; len; dst += n, src += n, len -= n) {
		uintptr_t at = (uintptr_t)dst;

		n = at % 2 || len < 2 ? 1 : at % 4 || len < 4 ? 2 : at % 8 || len < 8 ? 4 : 8;
		if (n == 8) {
			uint64_t v;

			memcpy(&v, src, sizeof(v));
			__atomic_store_n((uint64_t *)dst, v, __ATOMIC_RELEASE);
		} else if (n == 4) {
			uint32_t v;

			memcpy(&v, src, sizeof(v));
			__atomic_store_n((uint32_t *)dst, v, __ATOMIC_RELEASE);
		} else if (n == 2) {
			uint16_t v;

			memcpy(&v, src, sizeof(v));
			__atomic_store_n((uint16_t *)dst, v, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(dst, *src, __ATOMIC_RELEASE);
		}
	}
}

static uint64_t seg_total(const struct seg *seg, uint32_t n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += seg[i].len;
	return total;
}

/**
 * struct seg_walk - a position in a list of pieces
 * @seg:	piece
 * @off:	offset in the piece, bytes
 */
struct seg_walk {
	const struct seg *seg;
	uint32_t off;
};

/* Return the address at the position, and in *@avail the bytes left of the piece, at least 1. */
static uint8_t *walk_at(struct seg_walk *w, uint32_t *avail)
{
	while (w->off == w->seg->len) {
		w->seg++;
		w->off = 0;
	}
	*avail = w->seg->len - w->off;
	return w->seg->ptr + w->off;
}

uint32_t seg_copy(const struct seg *dst, uint32_t ndst, const struct seg *src, uint32_t nsrc)
{
	uint64_t room = seg_total(dst, ndst), total = seg_total(src, nsrc);
	struct seg_walk to = { .seg = dst }, from = { .seg = src };
	uint64_t bulk, pos;
	uint32_t n;

	if (total > room)
		total = room;
	bulk = total > TAIL_BYTES ? total - TAIL_BYTES : 0;
	for (pos = 0; pos < total; pos += n) {
		uint64_t left = pos < bulk ? bulk - pos : total - pos;
		uint32_t navail, mavail;
		uint8_t *d = walk_at(&to, &navail), *s = walk_at(&from, &mavail);

		n = navail < mavail ? navail : mavail;
		if (n > left)
			n = left;
		if (pos < bulk)
			memmove(d, s, n);
		else
			copy_ascending(d, s, n);
		to.off += n;
		from.off += n;
	}
	return total;
}

void seg_copy_out(void *dst, const struct seg *src, uint32_t nsrc, uint32_t skip, uint32_t len)
{
	uint8_t *to = dst;

	for (uint32_t i = 0; i < nsrc && len; i++) {
		uint32_t n = src[i].len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > len)
			n = len;
		memcpy(to, src[i].ptr + skip, n);
		skip = 0;
		to += n;
		len -= n;
	}
}
