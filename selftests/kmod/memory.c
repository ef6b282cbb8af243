// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of single pages, which are not contiguous, and patterns in it.
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

void ktest_mem_free(struct sg_table *mem)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sgtable_sg(mem, sg, i)
		if (sg_page(sg))
			__free_page(sg_page(sg));
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

bool ktest_mem_check(struct sg_table *mem, u32 seed)
{
	struct scatterlist *sg;
	u32 i, k, at = 0;

	for_each_sgtable_sg(mem, sg, i) {
		u8 *p = sg_virt(sg);

		for (k = 0; k < sg->length; k++)
			if (p[k] != pattern(at++, seed))
				return false;
	}
	return true;
}
