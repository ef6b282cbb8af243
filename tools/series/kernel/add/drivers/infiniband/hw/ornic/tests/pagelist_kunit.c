// SPDX-License-Identifier: GPL-2.0
/* Page lists: description of process and kernel memory for the device. */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <rdma/ib_umem.h>

#include <linux/ornic/hw/ring.h>

#include "../buf.h"
#include "../ornic_ib.h"
#include "../pagelist.h"

#define DMA_BASE	0x40000000ull
#define DMA_STEP	0x3000		/* pages of the kernel are not adjacent */
#define MAX_PAGES	(2 * ORNIC_PAGES_LEAF_ENTRIES)

/* A device that only maps memory. */
static struct ornic_ib_dev *ornic_test_dev(struct kunit *test)
{
	struct ornic_ib_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct ornic_dev *odev = kunit_kzalloc(test, sizeof(*odev), GFP_KERNEL);
	struct pci_dev *pdev = kunit_kzalloc(test, sizeof(*pdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, odev);
	KUNIT_ASSERT_NOT_NULL(test, pdev);
	pdev->dma_mask = DMA_BIT_MASK(64);
	pdev->dev.dma_mask = &pdev->dma_mask;
	pdev->dev.coherent_dma_mask = DMA_BIT_MASK(64);
	odev->pdev = pdev;
	dev->odev = odev;
	return dev;
}

static u64 ornic_test_page(u32 i)
{
	return DMA_BASE + (u64)i * DMA_STEP;
}

/* Fill only the DMA addresses, because the tests do not access the pages. */
static void ornic_test_kbuf(struct kunit *test, struct ornic_ib_kbuf *kbuf, u32 pages)
{
	u32 i;

	if (PAGE_SIZE != SZ_4K)
		kunit_skip(test, "PAGE_SIZE is not 4096");
	kbuf->pages = pages;
	kbuf->dma = kunit_kcalloc(test, pages, sizeof(*kbuf->dma), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, kbuf->dma);
	for (i = 0; i < pages; i++)
		kbuf->dma[i] = ornic_test_page(i);
}

static __le64 ornic_test_entry(const struct ornic_ib_pagelist *list, u32 i)
{
	return list->leaf[i / ORNIC_PAGES_LEAF_ENTRIES].entries[i % ORNIC_PAGES_LEAF_ENTRIES];
}

/*
 * Check that the descriptor of a list names its arrays, and that the arrays name the pages from
 * @first on.
 */
static void ornic_test_list(struct kunit *test, const struct ornic_ib_pagelist *list, u32 pages,
			    u64 (*page)(u32 i), u32 first)
{
	u32 leaves = DIV_ROUND_UP(pages, ORNIC_PAGES_LEAF_ENTRIES);
	u32 i;

	KUNIT_ASSERT_EQ(test, list->leaves, leaves);
	KUNIT_EXPECT_EQ(test, list->desc.level, leaves > 1 ? 2 : 1);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(list->desc.addr),
			leaves > 1 ? list->top.dma : list->leaf[0].dma);
	for (i = 0; leaves > 1 && i < leaves; i++)
		KUNIT_EXPECT_EQ(test, le64_to_cpu(list->top.entries[i]), list->leaf[i].dma);
	for (i = 0; i < pages; i++)
		KUNIT_ASSERT_EQ_MSG(test, le64_to_cpu(ornic_test_entry(list, i)), page(first + i),
				    "page %u", i);
}

/* A buffer within one page needs no list, at any offset. */
static void ornic_test_one_page(struct kunit *test)
{
	static const struct {
		size_t offset;
		size_t bytes;
	} cases[] = {
		{ 0, 1 }, { 0, SZ_4K }, { 64, SZ_4K - 64 }, { SZ_4K - 64, 64 }, { SZ_4K, SZ_4K },
		{ SZ_8K + 128, 64 },
	};
	struct ornic_ib_dev *dev = ornic_test_dev(test);
	struct ornic_ib_kbuf kbuf = {};
	int i;

	ornic_test_kbuf(test, &kbuf, 3);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_ib_pagelist list = {};

		KUNIT_ASSERT_EQ(test, ornic_ib_pagelist_kernel(dev, &list, &kbuf, cases[i].offset,
							       cases[i].bytes), 0);
		KUNIT_EXPECT_EQ(test, list.leaves, 0);
		KUNIT_EXPECT_EQ(test, list.desc.level, 0);
		KUNIT_EXPECT_EQ(test, list.desc.page_shift, 0);
		KUNIT_EXPECT_EQ_MSG(test, le64_to_cpu(list.desc.addr),
				    ornic_test_page(cases[i].offset / SZ_4K), "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(list.desc.offset), cases[i].offset % SZ_4K,
				    "case %d", i);
		ornic_ib_pagelist_free(dev, &list);
	}
}

static void ornic_test_kernel_list(struct kunit *test)
{
	static const struct {
		size_t offset;
		size_t bytes;
		u32 pages;
	} cases[] = {
		{ 0, SZ_4K + 1, 2 },
		{ 64, SZ_4K, 2 },
		{ SZ_4K, SZ_8K, 2 },
		{ SZ_4K + 64, SZ_8K, 3 },
		{ 0, ORNIC_PAGES_LEAF_ENTRIES * SZ_4K, ORNIC_PAGES_LEAF_ENTRIES },
		{ 0, ORNIC_PAGES_LEAF_ENTRIES * SZ_4K + 64, ORNIC_PAGES_LEAF_ENTRIES + 1 },
		{ 0, MAX_PAGES * SZ_4K, MAX_PAGES },
	};
	struct ornic_ib_dev *dev = ornic_test_dev(test);
	struct ornic_ib_kbuf kbuf = {};
	int i;

	ornic_test_kbuf(test, &kbuf, MAX_PAGES);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_ib_pagelist list = {};

		KUNIT_ASSERT_EQ(test, ornic_ib_pagelist_kernel(dev, &list, &kbuf, cases[i].offset,
							       cases[i].bytes), 0);
		KUNIT_EXPECT_EQ_MSG(test, list.desc.page_shift, ORNIC_PAGES_MIN_SHIFT,
				    "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(list.desc.offset), cases[i].offset % SZ_4K,
				    "case %d", i);
		ornic_test_list(test, &list, cases[i].pages, ornic_test_page,
				cases[i].offset / SZ_4K);
		ornic_ib_pagelist_free(dev, &list);
	}
}

/* Memory of a process that is contiguous for the device from DMA_BASE on. */
static void ornic_test_umem(struct kunit *test, struct ornic_ib_ubuf *ubuf, u64 address,
			    size_t length, u8 shift)
{
	struct ib_umem *umem = kunit_kzalloc(test, sizeof(*umem), GFP_KERNEL);
	struct scatterlist *sg = kunit_kzalloc(test, sizeof(*sg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, umem);
	KUNIT_ASSERT_NOT_NULL(test, sg);
	sg_init_table(sg, 1);
	sg_dma_address(sg) = DMA_BASE;
	sg_dma_len(sg) = PAGE_ALIGN(offset_in_page(address) + length);
	umem->address = address;
	umem->iova = address;
	umem->length = length;
	umem->sgt_append.sgt.sgl = sg;
	umem->sgt_append.sgt.nents = 1;
	umem->sgt_append.sgt.orig_nents = 1;
	ubuf->umem = umem;
	ubuf->shift = shift;
	ubuf->first = address & (BIT_ULL(shift) - 1);
}

static u64 ornic_test_small_page(u32 i)
{
	return DMA_BASE + (u64)i * SZ_4K;
}

static u64 ornic_test_large_page(u32 i)
{
	return DMA_BASE + (u64)i * SZ_64K;
}

/* Part of a buffer: its list begins with the page of its first byte. */
static void ornic_test_user_list(struct kunit *test)
{
	struct ornic_ib_dev *dev = ornic_test_dev(test);
	struct ornic_ib_pagelist list = {};
	struct ornic_ib_ubuf ubuf = {};

	ornic_test_umem(test, &ubuf, 0x10000040, SZ_1M, 12);
	KUNIT_ASSERT_EQ(test, ornic_ib_pagelist_build(dev, &list, &ubuf, SZ_8K, SZ_64K), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(list.desc.offset), 0x40);
	KUNIT_EXPECT_EQ(test, list.desc.page_shift, 12);
	ornic_test_list(test, &list, 17, ornic_test_small_page, 2);
	ornic_ib_pagelist_free(dev, &list);
}

static void ornic_test_large_user_pages(struct kunit *test)
{
	struct ornic_ib_dev *dev = ornic_test_dev(test);
	struct ornic_ib_pagelist list = {};
	struct ornic_ib_ubuf ubuf = {};
	__le64 addr;

	ornic_test_umem(test, &ubuf, 0x10000000, SZ_1M, 16);
	KUNIT_ASSERT_EQ(test, ornic_ib_pagelist_build(dev, &list, &ubuf, 0, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(list.desc.offset), 0);
	KUNIT_EXPECT_EQ(test, list.desc.page_shift, 16);
	ornic_test_list(test, &list, 16, ornic_test_large_page, 0);
	ornic_ib_pagelist_free(dev, &list);

	KUNIT_ASSERT_EQ(test, ornic_ib_ubuf_addr(&ubuf, 3 * SZ_64K + 192, &addr), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(addr), DMA_BASE + 3 * SZ_64K + 192);
	KUNIT_EXPECT_EQ(test, ornic_ib_ubuf_addr(&ubuf, SZ_1M, &addr), -EFAULT);
}

/* A list is never longer than the memory behind it. */
static void ornic_test_beyond_the_end(struct kunit *test)
{
	struct ornic_ib_dev *dev = ornic_test_dev(test);
	struct ornic_ib_pagelist list = {};
	struct ornic_ib_ubuf ubuf = {};

	ornic_test_umem(test, &ubuf, 0x10000000, SZ_16K, 12);
	KUNIT_EXPECT_EQ(test, ornic_ib_pagelist_build(dev, &list, &ubuf, SZ_4K, SZ_16K), -EFAULT);
	ornic_ib_pagelist_free(dev, &list);
}

static struct kunit_case ornic_pagelist_cases[] = {
	KUNIT_CASE(ornic_test_one_page),
	KUNIT_CASE(ornic_test_kernel_list),
	KUNIT_CASE(ornic_test_user_list),
	KUNIT_CASE(ornic_test_large_user_pages),
	KUNIT_CASE(ornic_test_beyond_the_end),
	{}
};

static struct kunit_suite ornic_pagelist_suite = {
	.name = "ornic_pagelist",
	.test_cases = ornic_pagelist_cases,
};

kunit_test_suite(ornic_pagelist_suite);
