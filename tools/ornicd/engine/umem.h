/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block of guest memory described by a page descriptor (ORN-MEM-1, 2): rings
 * and memory regions. The page list is read once, at create.
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

/* umem_ptr() - pointer to @len bytes that lie in one page, or NULL. */
static inline void *umem_ptr(const struct umem *m, uint64_t off, uint64_t len, bool write)
{
	void *ptr;

	return umem_span(m, off, len, write, &ptr) == len ? ptr : NULL;
}

#endif /* ORNICD_ENGINE_UMEM_H */
