// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of single pages, which are not contiguous, or of one block, and patterns in it.
 */
#include <linux/highmem.h>
#include <linux/slab.h>

#include "ktest.h"

/**
 * ktest_mem_alloc() - allocate pages for a transfer
 * @mem: table to fill
 * @offset: offset of the first byte in the first page
 * @len: length in bytes
 */
int ktest_mem_alloc(struct sg_table *mem, u32 offset, u32 len)
{
	u32 i, pages = DIV_ROUND_UP(offset + len, PAGE_SIZE);
	struct scatterlist *sg;
	int ret;

	ret = sg_alloc_table(mem, pages, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_sg(mem, sg, i) {
		u32 part = min_t(u32, len, PAGE_SIZE - offset);
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		if (!page) {
			ktest_mem_free(mem);
			return -ENOMEM;
		}
		sg_set_page(sg, page, part, offset);
		len -= part;
		offset = 0;
	}
	return 0;
}

/**
 * ktest_mem_alloc_block() - allocate contiguous pages
 * @mem: table to fill; gets one element
 * @len: length in bytes
 */
int ktest_mem_alloc_block(struct sg_table *mem, u32 len)
{
	struct page *block = alloc_pages(GFP_KERNEL | __GFP_ZERO, get_order(len));
	int ret;

	if (!block)
		return -ENOMEM;
	ret = sg_alloc_table(mem, 1, GFP_KERNEL);
	if (ret) {
		__free_pages(block, get_order(len));
		return ret;
	}
	sg_set_page(mem->sgl, block, len, 0);
	return 0;
}

void ktest_mem_free(struct sg_table *mem)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sgtable_sg(mem, sg, i)
		if (sg_page(sg))
			__free_pages(sg_page(sg), get_order(sg->length));
	sg_free_table(mem);
}

static u8 pattern(u32 at, u32 seed)
{
	return at * 7 + (at >> 8) * 13 + seed * 31 + 1;
}

void ktest_mem_fill(struct sg_table *mem, u32 seed)
{
	struct scatterlist *sg;
	u32 i, k, at = 0;

	for_each_sgtable_sg(mem, sg, i) {
		u8 *p = sg_virt(sg);

		for (k = 0; k < sg->length; k++)
			p[k] = pattern(at++, seed);
	}
}

static bool holds(const u8 *p, u32 len, u32 at, u32 seed)
{
	u32 k;

	for (k = 0; k < len; k++)
		if (p[k] != pattern(at + k, seed))
			return false;
	return true;
}

bool ktest_mem_check(struct sg_table *mem, u32 seed)
{
	struct scatterlist *sg;
	u32 i, at = 0;

	for_each_sgtable_sg(mem, sg, i) {
		if (!holds(sg_virt(sg), sg->length, at, seed))
			return false;
		at += sg->length;
	}
	return true;
}

/* Check @len bytes of a block, which begin at @offset. */
bool ktest_block_check(struct sg_table *mem, u32 offset, u32 len, u32 seed)
{
	return holds(sg_virt(mem->sgl) + offset, len, 0, seed);
}
