/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block of guest memory with a page descriptor (ORN-MEM-1, 2): rings and memory regions. The page
 * list is read once, at create. A long list is read in steps, so that other functions wait for one
 * step only (ORN-SEC-14).
 */
#ifndef ORNICD_ENGINE_UMEM_H
#define ORNICD_ENGINE_UMEM_H

#include "pagelist.h"
#include "../mem/gpa.h"
#include "../packet/packet.h"

#include <ornic/ring.h>
#include <stdint.h>

/** UMEM_PAGE_SIZES - allowed page sizes of a list, as in Identify: 4 KiB to 2 PiB */
#define UMEM_PAGE_SIZES		((1ull << 52) - (1ull << ORNIC_PAGES_MIN_SHIFT))

/**
 * struct umem - the block
 * @gpa:	DMA table of the function
 * @length:	bytes
 * @offset:	first byte within the first page
 * @shift:	page size, log2; 63 for a contiguous block (level 0)
 * @npages:	entries of @page
 * @page:	DMA addresses of the pages
 */
struct umem {
	struct gpa *gpa;
	uint64_t length;
	uint32_t offset;
	uint8_t shift;
	uint64_t npages;
	uint64_t *page;
};

/**
 * struct ring_place - memory of a ring, for a resize
 * @log:	log2 entries
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 */
struct ring_place {
	uint8_t log;
	struct umem mem;
	uint64_t rec;
};

/** UMEM_MORE - result: the end of the list is not reached; no enum ornic_status */
#define UMEM_MORE	(-1)

/**
 * struct umem_load - a block whose page list is being copied
 * @mem:	the block
 * @level:	level of its descriptor
 * @list:	address of the array that the descriptor names
 * @leaf:	level 2: address of the array being read
 * @done:	entries copied
 */
struct umem_load {
	struct umem mem;
	uint8_t level;
	uint64_t list;
	uint64_t leaf;
	uint64_t done;
};

/**
 * umem_begin() - check a page descriptor and allocate memory for its list
 * @l:		filled in
 * @gpa:	DMA table of the function
 * @desc:	the daemon's copy of the descriptor
 * @bytes:	size of the block, > 0
 * @page_sizes:	allowed page sizes, as in Identify
 * @lists:	budget of page lists; reduced by the entries of the list, by one for a contiguous block
 *
 * Return: enum ornic_status, or UMEM_MORE if the budget suffices later, because freed lists of the
 * function still use memory; on failure nothing is allocated.
 */
int umem_begin(struct umem_load *l, struct gpa *gpa, const struct ornic_pages *desc,
	       uint64_t bytes, uint64_t page_sizes, struct page_lists *lists);

/*
 * umem_step() - copy and check at most *@work more entries; reduce *@work by those copied
 * Return: UMEM_MORE if *@work is used up and entries are left, or enum ornic_status. With
 * ORNIC_ST_OK @l->mem is loaded. Otherwise, or to give up, the caller passes @l->mem to
 * umem_free().
 */
int umem_step(struct umem_load *l, uint64_t *work);

/*
 * umem_load() - copy and check a page descriptor at once; arguments as for umem_begin()
 * For lists of bounded length. It does not check that the pages can be reached, because that can
 * change. Rings have to check that @m->offset is a multiple of 64.
 * Return: enum ornic_status; on failure nothing is allocated.
 */
int umem_load(struct umem *m, struct gpa *gpa, const struct ornic_pages *desc, uint64_t bytes,
	      uint64_t page_sizes, struct page_lists *lists);
/* umem_free() - free a block and its page list; a zeroed block is ignored */
void umem_free(struct umem *m, struct page_lists *lists);

/*
 * umem_span() - find the host memory at byte @off of a block, for @len > 0 bytes
 * Pages with adjacent DMA addresses are one span. @write: the caller is going to store.
 * Return: bytes usable at *@ptr, at most @len; 0 if the first byte cannot be reached or the range
 * is outside of the block.
 */
uint64_t umem_span(const struct umem *m, uint64_t off, uint64_t len, bool write, void **ptr);

/*
 * umem_durable() - continue the search for the one file that backs the whole block
 * @off:	bytes searched so far; updated
 * @work:	look-ups that may be made; reduced by those made
 * @file:	file so far, NULL at the start; no reference is taken or dropped
 *
 * Return: UMEM_MORE, ORNIC_ST_OK, or ORNIC_ST_BAD_PARAM if not all memory is in one file that can
 * be written to disk.
 */
int umem_durable(const struct umem *m, uint64_t *off, uint64_t *work, struct durable **file);

/* umem_ptr() - return a pointer to @len bytes without a break in host memory, or NULL */
static inline void *umem_ptr(const struct umem *m, uint64_t off, uint64_t len, bool write)
{
	void *ptr;

	return umem_span(m, off, len, write, &ptr) == len ? ptr : NULL;
}

#endif /* ORNICD_ENGINE_UMEM_H */
