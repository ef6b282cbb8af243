/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A guest without a virtual machine: a memory file in a DMA table, and an
 * allocator of DMA addresses. Include after <cmocka.h>'s prerequisites.
 */
#ifndef UNIT_LIB_GUEST_H
#define UNIT_LIB_GUEST_H

#include <ornic/ring.h>
#include <stdint.h>
#include "mem/gpa.h"

#define GUEST_PAGE	4096ull
#define GUEST_BASE	0x100000000ull
#define GUEST_BYTES	(64ull << 20)

/**
 * struct guest - memory at [GUEST_BASE, GUEST_BASE + GUEST_BYTES)
 * @gpa:	its DMA table
 * @fd:		its memory
 * @next:	first address not allocated
 */
struct guest {
	struct gpa *gpa;
	int fd;
	uint64_t next;
};

void guest_init(struct guest *g);
void guest_fini(struct guest *g);

/* guest_alloc() - allocate zeroed memory; @align is a power of two */
uint64_t guest_alloc(struct guest *g, uint64_t bytes, uint64_t align);

/* guest_at() - return the pointer to [@addr, @addr + @len), which must be mapped */
void *guest_at(struct guest *g, uint64_t addr, uint64_t len);

/* guest_contiguous() - return the level 0 descriptor of a block */
struct ornic_pages guest_contiguous(uint64_t addr);

/*
 * guest_list() - return the level 1 or 2 descriptor of the @n pages in @page (multiples of
 * 2^@shift) and allocate their lists
 */
struct ornic_pages guest_list(struct guest *g, uint8_t level, uint8_t shift, const uint64_t *page,
			      uint32_t n);

/* guest_hide() - unmap the page that holds @addr, which leaves guest memory in two pieces */
void guest_hide(struct guest *g, uint64_t addr);

#endif /* UNIT_LIB_GUEST_H */
