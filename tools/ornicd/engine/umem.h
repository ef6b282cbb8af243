/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block of guest memory described by a page descriptor (ORN-MEM-1, 2): rings
 * and memory regions. The page list is read once, at create; a long one in steps, so that
 * whoever waits meanwhile does not wait for all of it (ORN-SEC-14).
 */
#ifndef ORNICD_ENGINE_UMEM_H
#define ORNICD_ENGINE_UMEM_H

#include "../mem/gpa.h"
#include "../packet/packet.h"

#include <ornic/ring.h>
#include <stdint.h>

/** UMEM_PAGE_SIZES - page sizes that a list may have: 4 KiB to 2 PiB */
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
 * struct ring_place - where a ring lies, for a queue that gets another one
 * @log:	log2 entries
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 */
struct ring_place {
	uint8_t log;
	struct umem mem;
	uint64_t rec;
};

/** UMEM_MORE - the list has not come to its end; no enum ornic_status */
#define UMEM_MORE	(-1)

/**
 * struct umem_load - a block whose page list is being copied
 * @mem:	the block
 * @level:	of its descriptor
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

/*
 * umem_begin() - judge a descriptor, set memory for its list aside; arguments of umem_load()
 * Return: enum ornic_status; nothing is kept unless ORNIC_ST_OK.
 *
 * umem_step() - copy and check at most *@work more entries, by which *@work is reduced
 * Return: UMEM_MORE; ORNIC_ST_OK: @l->mem is the caller's; else an enum ornic_status. Whoever
 * does not want, or does not get, the block gives @l->mem to umem_free().
 */
int umem_begin(struct umem_load *l, struct gpa *gpa, const struct ornic_pages *desc,
	       uint64_t bytes, uint64_t page_sizes, uint64_t *budget);
int umem_step(struct umem_load *l, uint64_t *work);

/*
 * umem_load() - copy and check a page descriptor for a block of @bytes > 0 bytes
 * @budget: page-list entries the function may still have; reduced by those taken
 * (level 0: one). Rings must check themselves that the offset is a multiple of 64.
 *
 * Return: enum ornic_status; nothing is kept unless ORNIC_ST_OK.
 */
int umem_load(struct umem *m, struct gpa *gpa, const struct ornic_pages *desc, uint64_t bytes,
	      uint64_t page_sizes, uint64_t *budget);
void umem_free(struct umem *m, uint64_t *budget);

/*
 * umem_span() - host pointer of byte @off, and how many of @len bytes follow it
 * without a break. Return: 0 if the byte cannot be reached; @off + @len has been
 * checked against @length by the caller.
 */
uint64_t umem_span(const struct umem *m, uint64_t off, uint64_t len, bool write, void **ptr);

/*
 * umem_durable() - go on looking for the one file that all of the block is in
 * @off:	bytes looked at so far; moved on
 * @work:	look-ups that may be made; reduced by those made
 * @file:	file so far, NULL at the start; no reference is taken or given back
 *
 * Return: UMEM_MORE; ORNIC_ST_OK; ORNIC_ST_BAD_PARAM: memory that cannot be made durable, or
 * not by one file.
 */
int umem_durable(const struct umem *m, uint64_t *off, uint64_t *work, struct durable **file);

/* umem_ptr() - pointer to @len bytes that lie in one page, or NULL. */
static inline void *umem_ptr(const struct umem *m, uint64_t off, uint64_t len, bool write)
{
	void *ptr;

	return umem_span(m, off, len, write, &ptr) == len ? ptr : NULL;
}

#endif /* ORNICD_ENGINE_UMEM_H */
