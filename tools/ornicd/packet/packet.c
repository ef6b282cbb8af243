// SPDX-License-Identifier: GPL-2.0
/*
 * The packet pool, and copies between lists of pieces.
 *
 * Copies into guest memory keep a promise (Identify page 2, transport flag 0):
 * data of a message appears in address order, its last byte last, so that a
 * program may poll the end of a buffer instead of a completion queue. memmove()
 * promises no order, neither in the C library nor in the processor's string
 * instructions. So it moves everything but the end; the end follows in ascending
 * stores of up to eight bytes, aligned, so that a flag word arrives whole. Each is
 * a release store: a plain move on x86, and everywhere later than what memmove() did.
 */
#include "packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes at the end of a copy that are stored in order. */
#define TAIL_BYTES	64

/**
 * packet_pool_init() - allocate the packets of an engine
 * @pool:	pool
 * @count:	how many
 *
 * Return: 0 or -ENOMEM.
 */
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

/**
 * packet_pool_fini() - free them all
 * @pool:	pool
 */
void packet_pool_fini(struct packet_pool *pool)
{
	free(pool->all);
	pool->all = NULL;
	pool->nfree = 0;
	STAILQ_INIT(&pool->free);
}

/**
 * packet_get() - take a packet
 * @pool:	pool
 *
 * Return: a packet without payload, header fields zero; NULL if none is left.
 */
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

/**
 * packet_put() - give a packet back
 * @pool:	pool it is from
 * @p:		packet, in no queue
 */
void packet_put(struct packet_pool *pool, struct packet *p)
{
	STAILQ_INSERT_HEAD(&pool->free, p, link);
	pool->nfree++;
}

/**
 * packet_trim_front() - drop the first bytes of the payload
 * @p:		packet
 * @bytes:	how many, at most @p->len
 */
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

/**
 * packet_trim_back() - drop the last bytes of the payload
 * @p:		packet
 * @bytes:	how many, at most @p->len
 */
void packet_trim_back(struct packet *p, uint32_t bytes)
{
	p->len -= bytes;
	while (p->nseg && bytes >= p->seg[p->nseg - 1].len)
		bytes -= p->seg[--p->nseg].len;
	if (bytes)
		p->seg[p->nseg - 1].len -= bytes;
}

/* Copy in ascending address order, by the largest aligned stores. */
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
 * struct seg_walk - a place in a list of pieces
 * @seg:	piece
 * @off:	byte within it
 */
struct seg_walk {
	const struct seg *seg;
	uint32_t off;
};

/* Where to go on, and in *@avail how far; there must be a byte left. */
static uint8_t *walk_at(struct seg_walk *w, uint32_t *avail)
{
	while (w->off == w->seg->len) {
		w->seg++;
		w->off = 0;
	}
	*avail = w->seg->len - w->off;
	return w->seg->ptr + w->off;
}

/**
 * seg_copy() - copy between lists of pieces, in order, the last byte last
 * @dst:	to
 * @ndst:	pieces of @dst
 * @src:	from; may overlap @dst if the guest wants garbage
 * @nsrc:	pieces of @src
 *
 * Return: bytes copied: as many as both have.
 */
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

/**
 * seg_copy_out() - copy from pieces to a buffer of the daemon
 * @dst:	to
 * @src:	from; has @skip + @len bytes
 * @nsrc:	pieces of @src
 * @skip:	bytes to pass over first
 * @len:	bytes
 */
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
