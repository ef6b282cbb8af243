// SPDX-License-Identifier: GPL-2.0
/*
 * The table of DMA addresses: map, unmap, look up.
 *
 * Sums of an address and a length could wrap. Ranges are therefore compared by their offset
 * from a piece's start, or by their last byte after a check that it does not wrap.
 */
#include "gpa.h"
#include "fetch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static uint64_t gpa_last(const struct gpa_entry *e)
{
	return e->addr + (e->size - 1);
}

/* Return the index of the first piece that ends at or behind @addr; n if there is none. */
static uint32_t gpa_lower(const struct gpa *g, uint64_t addr)
{
	uint32_t lo = 0, hi = g->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (gpa_last(&g->entry[mid]) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int gpa_grow(struct gpa *g)
{
	uint32_t cap = g->cap ? g->cap * 2 : 16;
	struct gpa_entry *entry;

	if (g->n < g->cap)
		return 0;
	entry = realloc(g->entry, cap * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	g->entry = entry;
	g->cap = cap;
	return 0;
}

static void gpa_insert(struct gpa *g, const struct gpa_entry *e)
{
	uint32_t at = gpa_lower(g, e->addr);

	memmove(&g->entry[at + 1], &g->entry[at], (g->n - at) * sizeof(*e));
	g->entry[at] = *e;
	g->n++;
}

/* Add the piece whose file @b has been mapped. Return: 0 or -EACCES. */
static int gpa_add(struct gpa *g, uint64_t offset, struct backing *b)
{
	struct gpa_entry *e = &g->adding;

	if ((e->prot & GPA_WRITE) && !b->writable) {
		backing_put(&g->pool, b);
		return -EACCES;
	}
	e->host = b->base + (offset - b->offset);
	e->backing = b;
	gpa_insert(g, e);
	return 0;
}

static void gpa_got(struct backing_pool *pool, int err, struct backing *b)
{
	struct gpa *g = (struct gpa *)((char *)pool - offsetof(struct gpa, pool));

	if (!err)
		err = gpa_add(g, g->offset, b);
	g->mapped(g->arg, err);
}

/**
 * gpa_new() - create an empty table
 * @log:	source of log lines, NULL: none; outlives the table
 *
 * Return: the table or NULL.
 */
struct gpa *gpa_new(struct log_source *log)
{
	struct gpa *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	if (backing_init(&g->pool, log)) {
		free(g);
		return NULL;
	}
	g->pool.got = gpa_got;
	return g;
}

/**
 * gpa_free() - unmap everything and free the table
 * @g:	table; NULL is ignored
 */
void gpa_free(struct gpa *g)
{
	if (!g)
		return;
	gpa_unmap_all(g);
	backing_fini(&g->pool);
	free(g->entry);
	free(g);
}

/**
 * gpa_map() - add a piece
 * @g:		table
 * @addr:	first DMA address
 * @size:	bytes
 * @prot:	set of &enum gpa_prot
 * @fd:		file that contains it, remains the caller's, as in backing_get(); -1: none, so it
 *		cannot be accessed
 * @offset:	offset in the file, bytes
 *
 * Return: 0; -EINPROGRESS if the result comes by @g->mapped(), which gpa_unmap_all() prevents;
 * -EINVAL for an empty or wrapping range; -EEXIST if it overlaps another piece; -ENOSPC if the
 * table is full; -EACCES if @prot has GPA_WRITE and @fd is read-only; -ENOMEM; or an error of
 * backing_get().
 */
int gpa_map(struct gpa *g, uint64_t addr, uint64_t size, unsigned int prot, int fd,
	    uint64_t offset)
{
	struct gpa_entry e = { .addr = addr, .size = size, .prot = prot };
	struct backing *b;
	uint32_t at;
	int err;

	if (!size || addr + (size - 1) < addr)
		return -EINVAL;
	at = gpa_lower(g, addr);
	if (at < g->n && g->entry[at].addr <= gpa_last(&e))
		return -EEXIST;
	if (g->n >= GPA_MAX)
		return -ENOSPC;
	err = gpa_grow(g);
	if (err)
		return err;
	if (fd < 0) {
		gpa_insert(g, &e);
		return 0;
	}
	g->adding = e;
	g->offset = offset;
	err = backing_get(&g->pool, fd, offset, size, &b);
	return err ? err : gpa_add(g, offset, b);
}

/**
 * gpa_unmap() - remove all pieces in a range
 * @g:		table
 * @addr:	first DMA address
 * @size:	bytes
 *
 * The range may contain several pieces, because a VMM with an IOMMU removes a whole domain
 * at once, but must not split one.
 *
 * Return: 0; -EINVAL for an empty or wrapping range or one that splits a piece; -ENOENT if
 * nothing is mapped there. On error nothing changes.
 */
int gpa_unmap(struct gpa *g, uint64_t addr, uint64_t size)
{
	uint64_t last = addr + (size - 1);
	uint32_t from, to;

	if (!size || last < addr)
		return -EINVAL;
	from = gpa_lower(g, addr);
	for (to = from; to < g->n && g->entry[to].addr <= last; to++)
		if (g->entry[to].addr < addr || gpa_last(&g->entry[to]) > last)
			return -EINVAL;
	if (from == to)
		return -ENOENT;
	for (uint32_t i = from; i < to; i++)
		if (g->entry[i].backing)
			backing_put(&g->pool, g->entry[i].backing);
	memmove(&g->entry[from], &g->entry[to], (g->n - to) * sizeof(struct gpa_entry));
	g->n -= to - from;
	g->last = 0;
	return 0;
}

/**
 * gpa_unmap_all() - remove all pieces and unmap the client's files
 * @g:	table
 *
 * It takes the same time for any number of pieces.
 */
void gpa_unmap_all(struct gpa *g)
{
	g->n = 0;
	g->last = 0;
	backing_drain(&g->pool);
}

static bool gpa_usable(const struct gpa_entry *e, unsigned int need)
{
	return e->host && (e->prot & need);
}

/*
 * Return true if @e follows @p without a gap, both in the guest and in host memory. Two mappings
 * may be adjacent by chance, and one of them may end first.
 */
static bool gpa_joins(const struct gpa_entry *p, const struct gpa_entry *e)
{
	return e->addr - p->addr == p->size && e->host == p->host + p->size &&
	       e->backing == p->backing;
}

/**
 * gpa_span() - get the beginning of a range that is contiguous in host memory
 * @g:		table
 * @addr:	DMA address
 * @len:	bytes wanted
 * @write:	the caller stores to the range
 * @ptr:	returns the host address of @addr, if the result is not 0
 *
 * For loops over ranges that consist of several pieces of host memory.
 *
 * Return: bytes usable at @ptr, at most @len; 0 if @addr itself is not usable.
 */
uint64_t gpa_span(struct gpa *g, uint64_t addr, uint64_t len, bool write, void **ptr)
{
	unsigned int need = write ? GPA_WRITE : GPA_READ;
	uint32_t i = gpa_lower(g, addr);
	const struct gpa_entry *e;
	uint64_t span;

	if (i == g->n)
		return 0;
	e = &g->entry[i];
	if (addr < e->addr || !gpa_usable(e, need))
		return 0;
	g->last = i;
	*ptr = e->host + (addr - e->addr);
	span = e->size - (addr - e->addr);
	while (span < len && ++i < g->n && gpa_joins(e, e + 1) && gpa_usable(e + 1, need)) {
		e++;
		span += e->size;
	}
	return span < len ? span : len;
}

/**
 * gpa_loss() - describe the first page that was lost
 * @g:	table for which gpa_lost() is true
 * @at:	returns the offset of the access in its memory file, bytes
 *
 * Return: the reason, for the log.
 */
const char *gpa_loss(const struct gpa *g, size_t *at)
{
	*at = g->pool.lost_at;
	return g->pool.lost == BUS_ADRERR ?
	       "the file was truncated, no huge page was free, or its disk failed" :
	       "the host's memory is broken";
}

/**
 * gpa_durable() - get the file by which memory can be made durable
 * @g:		table
 * @addr:	DMA address
 * @len:	bytes wanted, > 0
 * @span:	returns the bytes from @addr on that are in the file, at most @len
 *
 * Return: the file, without taking a reference, and its @span; NULL if @addr is not in a file or
 * the file cannot be made durable.
 */
struct durable *gpa_durable(struct gpa *g, uint64_t addr, uint64_t len, uint64_t *span)
{
	uint32_t i = gpa_lower(g, addr);
	const struct gpa_entry *e;

	if (i == g->n)
		return NULL;
	e = &g->entry[i];
	if (addr < e->addr || !e->backing)
		return NULL;
	*span = e->size - (addr - e->addr);
	if (*span > len)
		*span = len;
	return e->backing->durable;
}

/**
 * gpa_read() - copy from guest memory, across pieces
 * @g:		table
 * @addr:	DMA address
 * @dst:	destination
 * @len:	bytes
 *
 * Return: 0, or -EFAULT if a byte is not readable; @dst may then be partly written.
 */
int gpa_read(struct gpa *g, uint64_t addr, void *dst, size_t len)
{
	uint8_t *to = dst;
	uint64_t n;
	void *ptr;

	if (len && addr + (len - 1) < addr)
		return -EFAULT;
	while (len) {
		n = gpa_span(g, addr, len, false, &ptr);
		if (!n)
			return -EFAULT;
		fetch(to, ptr, n);
		to += n;
		addr += n;
		len -= n;
	}
	return 0;
}

/**
 * gpa_write() - copy to guest memory, across pieces
 * @g:		table
 * @addr:	DMA address
 * @src:	source
 * @len:	bytes
 *
 * Return: 0, or -EFAULT if a byte is not writable; bytes before it may be written.
 */
int gpa_write(struct gpa *g, uint64_t addr, const void *src, size_t len)
{
	const uint8_t *from = src;
	uint64_t n;
	void *ptr;

	if (len && addr + (len - 1) < addr)
		return -EFAULT;
	while (len) {
		n = gpa_span(g, addr, len, true, &ptr);
		if (!n)
			return -EFAULT;
		memcpy(ptr, from, n);
		from += n;
		addr += n;
		len -= n;
	}
	return 0;
}
