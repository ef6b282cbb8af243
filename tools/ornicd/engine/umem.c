// SPDX-License-Identifier: GPL-2.0
/*
 * Page descriptors: read the list once, check every entry, use the copy afterwards (ORN-SEC-4).
 *
 * A list of any level becomes an array of the daemon; level 0 is one page of 2^63 bytes. Entries
 * are DMA addresses, not pointers. They are translated at each use, so a change of the guest's
 * memory map needs no action here.
 */
#include "umem.h"

#include <ornic/admin.h>
#include <endian.h>
#include <stdbool.h>

/* Page size of a contiguous block, log2: larger than any block */
#define UMEM_CONTIGUOUS		63

/* Alignment of arrays of addresses, bytes (ORN-MEM-10) */
#define UMEM_LIST_ALIGN		64

/* Check the descriptor without reading the list. Fill in all members of @m except @page. */
static int umem_parse(struct umem *m, const struct ornic_pages *desc, uint64_t bytes,
		      uint64_t page_sizes)
{
	uint64_t end;

	m->length = bytes;
	m->offset = le32toh(desc->offset);
	m->shift = desc->page_shift;
	if (desc->mbz)
		return ORNIC_ST_RESERVED;
	if (desc->level > 2)
		return ORNIC_ST_BAD_PARAM;
	if (!desc->level) {
		if (m->shift)
			return ORNIC_ST_RESERVED;
		if (m->offset >> ORNIC_PAGES_MIN_SHIFT)
			return ORNIC_ST_BAD_PARAM;
		m->shift = UMEM_CONTIGUOUS;
	} else if (m->shift < ORNIC_PAGES_MIN_SHIFT || m->shift > 63 ||
		   !(page_sizes >> m->shift & 1)) {
		return ORNIC_ST_BAD_PARAM;
	}
	if (!bytes || (uint64_t)m->offset >> m->shift ||
	    __builtin_add_overflow(bytes, m->offset, &end))
		return ORNIC_ST_BAD_PARAM;
	m->npages = ((end - 1) >> m->shift) + 1;
	return ORNIC_ST_OK;
}

/* Copy @n addresses, each a multiple of 2^@shift, from the guest's array at @addr. */
static int umem_load_array(struct gpa *gpa, uint64_t addr, uint64_t n, uint8_t shift, uint64_t *to)
{
	uint64_t low = (1ull << shift) - 1;

	if (gpa_read(gpa, addr, to, n * sizeof(*to)))
		return ORNIC_ST_DMA_ERROR;
	for (uint64_t i = 0; i < n; i++) {
		to[i] = le64toh(to[i]);
		if (to[i] & low)
			return ORNIC_ST_BAD_PARAM;
	}
	return ORNIC_ST_OK;
}

/* Copy the next *@n entries of a list of level 2, fewer if the leaf ends. */
static int umem_load_leaf(struct umem_load *l, uint64_t *n)
{
	uint64_t at = l->done % ORNIC_PAGES_LEAF_ENTRIES;
	struct umem *m = &l->mem;
	int st = ORNIC_ST_OK;
	uint64_t addr;

	if (*n > ORNIC_PAGES_LEAF_ENTRIES - at)
		*n = ORNIC_PAGES_LEAF_ENTRIES - at;
	if (!at) {
		uint64_t top = l->done / ORNIC_PAGES_LEAF_ENTRIES * sizeof(addr);

		if (__builtin_add_overflow(l->list, top, &addr))
			return ORNIC_ST_DMA_ERROR;
		st = umem_load_array(m->gpa, addr, 1, ORNIC_PAGES_MIN_SHIFT, &l->leaf);
	}
	return st ?: umem_load_array(m->gpa, l->leaf + at * sizeof(addr), *n, m->shift,
				     m->page + l->done);
}

int umem_step(struct umem_load *l, uint64_t *work)
{
	struct umem *m = &l->mem;

	while (l->done < m->npages) {
		uint64_t n = m->npages - l->done;
		int st;

		if (n > *work)
			n = *work;
		if (!n)
			return UMEM_MORE;
		if (l->level == 2)
			st = umem_load_leaf(l, &n);
		else
			st = umem_load_array(m->gpa, l->list + l->done * sizeof(*m->page), n,
					     m->shift, m->page + l->done);
		if (st)
			return st;
		l->done += n;
		*work -= n;
	}
	return ORNIC_ST_OK;
}

static int umem_check_contiguous(const struct umem_load *l)
{
	const struct umem *m = &l->mem;
	uint64_t end;

	if (l->list & ((1ull << ORNIC_PAGES_MIN_SHIFT) - 1) || m->npages != 1 ||
	    __builtin_add_overflow(l->list, m->offset + (m->length - 1), &end))
		return ORNIC_ST_BAD_PARAM;
	return ORNIC_ST_OK;
}

static int umem_check_list(const struct umem_load *l)
{
	uint64_t end;

	if (l->list % UMEM_LIST_ALIGN)
		return ORNIC_ST_BAD_PARAM;
	if (l->level == 1 &&
	    __builtin_add_overflow(l->list, l->mem.npages * sizeof(*l->mem.page) - 1, &end))
		return ORNIC_ST_DMA_ERROR;
	return ORNIC_ST_OK;
}

int umem_begin(struct umem_load *l, struct gpa *gpa, const struct ornic_pages *desc,
	       uint64_t bytes, uint64_t page_sizes, struct page_lists *lists)
{
	struct umem *m = &l->mem;
	int st;

	*l = (struct umem_load){
		.mem.gpa = gpa, .level = desc->level, .list = le64toh(desc->addr),
	};
	st = umem_parse(m, desc, bytes, page_sizes);
	st = st ?: l->level ? umem_check_list(l) : umem_check_contiguous(l);
	if (st)
		goto fail;
	m->page = pagelist_alloc(lists, m->npages);
	st = lists->waiting ? UMEM_MORE : ORNIC_ST_NO_RESOURCE;
	if (!m->page)
		goto fail;
	if (!l->level) {
		m->page[0] = l->list;
		l->done = 1;
	}
	return ORNIC_ST_OK;
fail:
	*l = (struct umem_load){ 0 };
	return st;
}

int umem_load(struct umem *m, struct gpa *gpa, const struct ornic_pages *desc, uint64_t bytes,
	      uint64_t page_sizes, struct page_lists *lists)
{
	uint64_t work = UINT64_MAX;
	struct umem_load l;
	int st = umem_begin(&l, gpa, desc, bytes, page_sizes, lists);

	if (!st) {
		st = umem_step(&l, &work);
		if (st)
			umem_free(&l.mem, lists);
	}
	*m = l.mem;
	return st == UMEM_MORE ? ORNIC_ST_NO_RESOURCE : st;
}

void umem_free(struct umem *m, struct page_lists *lists)
{
	pagelist_free(lists, m->page, m->npages);
	*m = (struct umem){ 0 };
}

uint64_t umem_span(const struct umem *m, uint64_t off, uint64_t len, bool write, void **ptr)
{
	uint64_t size = 1ull << m->shift;
	uint64_t pos = m->offset + off;
	uint64_t i = pos >> m->shift;
	uint64_t addr, run;

	if (off >= m->length || len > m->length - off)
		return 0;
	addr = m->page[i] + (pos & (size - 1));
	run = size - (pos & (size - 1));
	while (run < len && m->page[i + 1] - m->page[i] == size && m->page[i + 1]) {
		run += size;
		i++;
	}
	if (run > len)
		run = len;
	*ptr = gpa_ptr(m->gpa, addr, run, write);
	return *ptr ? run : gpa_span(m->gpa, addr, run, write, ptr);
}

int umem_durable(const struct umem *m, uint64_t *off, uint64_t *work, struct durable **file)
{
	uint64_t size = 1ull << m->shift;

	for (; *off < m->length; --*work) {
		uint64_t pos = m->offset + *off;
		uint64_t in_page = pos & (size - 1);
		uint64_t want = m->length - *off;
		struct durable *d;
		uint64_t span;

		if (!*work)
			return UMEM_MORE;
		if (want > size - in_page)
			want = size - in_page;
		d = gpa_durable(m->gpa, m->page[pos >> m->shift] + in_page, want, &span);
		if (!d || (*file && d != *file))
			return ORNIC_ST_BAD_PARAM;
		*file = d;
		*off += span;
	}
	return ORNIC_ST_OK;
}
