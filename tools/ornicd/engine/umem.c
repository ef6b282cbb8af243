// SPDX-License-Identifier: GPL-2.0
/*
 * Page descriptors: read the list once, check every entry, walk it afterwards.
 *
 * The list becomes an array of our own, whatever its form in the guest: level 0
 * is one page of 2^63 bytes. Entries are addresses, not pointers; they are looked
 * up at each use, so a change of the guest's memory map needs no action here.
 */
#include "umem.h"

#include <ornic/admin.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>

/* Page size of a contiguous block, log2: larger than any block. */
#define UMEM_CONTIGUOUS		63

/* Arrays of addresses start at a multiple of this (ORN-MEM-10). */
#define UMEM_LIST_ALIGN		64

/* Check what can be told from the descriptor alone. Fills all of @m but @page. */
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

static int umem_load_contiguous(struct umem *m, uint64_t addr)
{
	uint64_t end;

	if (addr & ((1ull << ORNIC_PAGES_MIN_SHIFT) - 1) || m->npages != 1 ||
	    __builtin_add_overflow(addr, m->offset + (m->length - 1), &end))
		return ORNIC_ST_BAD_PARAM;
	m->page[0] = addr;
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

static int umem_load_leaves(struct umem *m, uint64_t addr)
{
	uint64_t top[ORNIC_PAGES_LEAF_ENTRIES];
	uint64_t done = 0;

	while (done < m->npages) {
		uint64_t left = (m->npages - done - 1) / ORNIC_PAGES_LEAF_ENTRIES + 1;
		uint64_t ntop = left < ORNIC_PAGES_LEAF_ENTRIES ? left : ORNIC_PAGES_LEAF_ENTRIES;
		int st = umem_load_array(m->gpa, addr, ntop, ORNIC_PAGES_MIN_SHIFT, top);

		for (uint64_t i = 0; i < ntop && st == ORNIC_ST_OK; i++) {
			uint64_t n = m->npages - done;

			if (n > ORNIC_PAGES_LEAF_ENTRIES)
				n = ORNIC_PAGES_LEAF_ENTRIES;
			st = umem_load_array(m->gpa, top[i], n, m->shift, m->page + done);
			done += n;
		}
		if (st != ORNIC_ST_OK)
			return st;
		if (__builtin_add_overflow(addr, sizeof(top), &addr) && done < m->npages)
			return ORNIC_ST_DMA_ERROR;
	}
	return ORNIC_ST_OK;
}

static int umem_load_list(struct umem *m, uint64_t addr, uint8_t level)
{
	if (!level)
		return umem_load_contiguous(m, addr);
	if (addr % UMEM_LIST_ALIGN)
		return ORNIC_ST_BAD_PARAM;
	if (level == 1)
		return umem_load_array(m->gpa, addr, m->npages, m->shift, m->page);
	return umem_load_leaves(m, addr);
}

/**
 * umem_load() - copy and check a page descriptor
 * @m:		filled in; untouched memory before
 * @gpa:	DMA table of the function
 * @desc:	the daemon's own copy of the descriptor
 * @bytes:	size of the block
 * @page_sizes:	as in Identify
 * @budget:	entries that the function may still have; a contiguous block takes one
 *
 * Whether the pages can be reached is not asked here: it can change. An @offset that
 * a ring may not have is the caller's to refuse.
 *
 * Return: enum ornic_status; nothing is kept unless ORNIC_ST_OK.
 */
int umem_load(struct umem *m, struct gpa *gpa, const struct ornic_pages *desc, uint64_t bytes,
	      uint64_t page_sizes, uint64_t *budget)
{
	int st;

	*m = (struct umem){ .gpa = gpa };
	st = umem_parse(m, desc, bytes, page_sizes);
	if (st != ORNIC_ST_OK)
		goto fail;
	st = ORNIC_ST_NO_RESOURCE;
	if (m->npages > *budget || m->npages > SIZE_MAX / sizeof(*m->page))
		goto fail;
	m->page = malloc(m->npages * sizeof(*m->page));
	if (!m->page)
		goto fail;
	st = umem_load_list(m, le64toh(desc->addr), desc->level);
	if (st != ORNIC_ST_OK)
		goto fail;
	*budget -= m->npages;
	return ORNIC_ST_OK;
fail:
	free(m->page);
	*m = (struct umem){ 0 };
	return st;
}

/**
 * umem_free() - forget a block
 * @m:		block; one that was never loaded is ignored
 * @budget:	gets back what umem_load() took
 */
void umem_free(struct umem *m, uint64_t *budget)
{
	free(m->page);
	*budget += m->npages;
	*m = (struct umem){ 0 };
}

/**
 * umem_span() - host pointer of a byte, and how far it is good
 * @m:		block
 * @off:	byte within the block
 * @len:	bytes wanted, > 0
 * @write:	the caller is going to store
 * @ptr:	set if the result is not 0
 *
 * Pages that follow each other in DMA addresses are one span.
 *
 * Return: bytes usable at @ptr, at most @len; 0 if the first cannot be reached.
 */
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
