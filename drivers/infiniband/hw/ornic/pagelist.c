// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers and their page lists, which describe them to the device (ORN-MEM-1, 2).
 *
 * ib_core pins memory of a process. The page list of this memory has pages of one
 * size, the largest that the device supports and the memory allows, so that a contiguous
 * buffer or a huge page is one entry. One entry needs no list (level 0), up to 512
 * fit one array (level 1), more need an array of arrays (level 2). Several rings
 * may lie in one buffer; each gets a list of its own part. The lists are accounted
 * as memory of the process: 2 GiB for 1 TiB of small pages.
 *
 * Buffers of the kernel consist of single coherent pages, so that a large ring needs no large block
 * of contiguous memory.
 */
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include <linux/ornic/hw/ring.h>

#include "pagelist.h"
#include "buf.h"
#include "ornic_ib.h"

/**
 * ornic_ib_ubuf_take() - choose the page size of pinned memory and take it over
 * @dev: device
 * @ubuf: to fill; owns @umem afterwards
 * @umem: pinned memory
 * @iova: address that the device will use for the first byte
 *
 * Return: 0, or -EINVAL if no page size fits; the caller then still owns @umem.
 */
int ornic_ib_ubuf_take(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf,
		       struct ib_umem *umem, u64 iova)
{
	unsigned long page = ib_umem_find_best_pgsz(umem, dev->lim.page_sizes, iova);

	if (!page)
		return -EINVAL;
	ubuf->umem = umem;
	ubuf->shift = __ffs(page);
	ubuf->first = iova & (page - 1);
	return 0;
}

/**
 * ornic_ib_ubuf_pin() - pin memory of the calling process
 * @dev: device
 * @ubuf: to fill
 * @addr: address in the process
 * @size: size in bytes
 * @iova: address that the device will use for the first byte
 * @access: IB_ACCESS_*; determines whether the pages must be writable
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_ubuf_pin(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, u64 addr, u64 size,
		      u64 iova, int access)
{
	struct ib_umem *umem;
	int ret;

	umem = ib_umem_get_va(&dev->ibdev, addr, size, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = ornic_ib_ubuf_take(dev, ubuf, umem, iova);
	if (ret)
		ib_umem_release(umem);
	return ret;
}

/* ornic_ib_ubuf_unpin() - unpin a buffer; does nothing if none is pinned. */
void ornic_ib_ubuf_unpin(struct ornic_ib_ubuf *ubuf)
{
	ib_umem_release(ubuf->umem);
	ubuf->umem = NULL;
}

static int ornic_leaf_alloc(struct ornic_ib_leaf *leaf, size_t bytes)
{
	leaf->dma = DMA_MAPPING_ERROR;
	leaf->entries = alloc_pages_exact(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	return leaf->entries ? 0 : -ENOMEM;
}

/* Map an array for the device. It must be complete, since the CPU may not write it afterwards. */
static int ornic_leaf_map(struct device *dma, struct ornic_ib_leaf *leaf, size_t bytes)
{
	leaf->dma = dma_map_single(dma, leaf->entries, bytes, DMA_TO_DEVICE);
	return dma_mapping_error(dma, leaf->dma);
}

static void ornic_leaf_free(struct device *dma, struct ornic_ib_leaf *leaf, size_t bytes)
{
	if (!leaf->entries)
		return;
	if (leaf->dma != DMA_MAPPING_ERROR)
		dma_unmap_single(dma, leaf->dma, bytes, DMA_TO_DEVICE);
	free_pages_exact(leaf->entries, bytes);
}

static size_t ornic_top_bytes(const struct ornic_ib_pagelist *list)
{
	return list->leaves * sizeof(__le64);
}

/* Return the entry of the list's i-th page. */
static __le64 *ornic_list_entry_of(struct ornic_ib_pagelist *list, u64 i)
{
	return &list->leaf[i / ORNIC_PAGES_LEAF_ENTRIES].entries[i % ORNIC_PAGES_LEAF_ENTRIES];
}

static int ornic_pagelist_list_alloc(struct ornic_ib_pagelist *list, u64 pages)
{
	u64 leaves = DIV_ROUND_UP_ULL(pages, ORNIC_PAGES_LEAF_ENTRIES);
	u32 i;

	if (leaves > U32_MAX / sizeof(__le64))
		return -EINVAL;
	list->leaf = kvzalloc_objs(*list->leaf, leaves, GFP_KERNEL_ACCOUNT);
	if (!list->leaf)
		return -ENOMEM;
	list->leaves = leaves;
	for (i = 0; i < list->leaves; i++) {
		if (ornic_leaf_alloc(&list->leaf[i], ORNIC_PAGES_LEAF_BYTES))
			return -ENOMEM;
		cond_resched();
	}
	if (list->leaves > 1)
		return ornic_leaf_alloc(&list->top, ornic_top_bytes(list));
	return 0;
}

/* Copy the addresses of @pages pages, beginning with page @skip. */
static int ornic_list_fill(struct ornic_ib_pagelist *list, const struct ornic_ib_ubuf *ubuf,
			   u64 skip, u64 pages)
{
	struct ib_block_iter biter;
	u64 i = 0;

	rdma_umem_for_each_dma_block(ubuf->umem, &biter, BIT(ubuf->shift)) {
		if (i == skip + pages)
			break;
		if (i >= skip)
			*ornic_list_entry_of(list, i - skip) =
				cpu_to_le64(rdma_block_iter_dma_address(&biter));
		if (!(++i % ORNIC_PAGES_LEAF_ENTRIES))
			cond_resched();
	}
	return i == skip + pages ? 0 : -EFAULT;
}

static int ornic_list_map(struct device *dma, struct ornic_ib_pagelist *list)
{
	u32 i;
	int ret;

	for (i = 0; i < list->leaves; i++) {
		ret = ornic_leaf_map(dma, &list->leaf[i], ORNIC_PAGES_LEAF_BYTES);
		if (ret)
			return ret;
		if (list->leaves > 1)
			list->top.entries[i] = cpu_to_le64(list->leaf[i].dma);
		cond_resched();
	}
	if (list->leaves > 1)
		return ornic_leaf_map(dma, &list->top, ornic_top_bytes(list));
	return 0;
}

/* Fill a descriptor of level 0: address of a 4096-byte page and offset in it. */
static void ornic_describe_contiguous(struct ornic_pages *desc, u64 addr)
{
	memset(desc, 0, sizeof(*desc));
	desc->addr = cpu_to_le64(addr & ~(u64)(SZ_4K - 1));
	desc->offset = cpu_to_le32(addr & (SZ_4K - 1));
}

/* Fill the descriptor of a list, which is complete and mapped. */
static void ornic_describe_list(struct ornic_ib_pagelist *list, u32 offset, u8 shift)
{
	list->desc.level = list->leaves > 1 ? 2 : 1;
	list->desc.addr = cpu_to_le64(list->leaves > 1 ? list->top.dma : list->leaf[0].dma);
	list->desc.offset = cpu_to_le32(offset);
	list->desc.page_shift = shift;
}

static int ornic_page_addr(const struct ornic_ib_ubuf *ubuf, u64 page, u64 *addr)
{
	struct ib_block_iter biter;

	rdma_umem_for_each_dma_block(ubuf->umem, &biter, BIT(ubuf->shift)) {
		if (!page--) {
			*addr = rdma_block_iter_dma_address(&biter);
			return 0;
		}
	}
	return -EFAULT;
}

static int ornic_ubuf_addr(const struct ornic_ib_ubuf *ubuf, u64 offset, u64 *addr)
{
	u64 at = ubuf->first + offset;
	int ret;

	ret = ornic_page_addr(ubuf, at >> ubuf->shift, addr);
	if (!ret)
		*addr += at & (BIT(ubuf->shift) - 1);
	return ret;
}

/**
 * ornic_ib_ubuf_addr() - find the DMA address of a byte of a buffer
 * @ubuf: buffer
 * @offset: offset of the byte
 * @addr: set to the DMA address, little-endian
 *
 * Return: 0, or -EFAULT if the page of the byte is not pinned.
 */
int ornic_ib_ubuf_addr(const struct ornic_ib_ubuf *ubuf, u64 offset, __le64 *addr)
{
	u64 at;
	int ret;

	ret = ornic_ubuf_addr(ubuf, offset, &at);
	if (!ret)
		*addr = cpu_to_le64(at);
	return ret;
}

/**
 * ornic_ib_pagelist_build() - describe part of a buffer to the device
 * @dev: device
 * @list: to fill; zeroed by the caller, who frees it also after an error
 * @ubuf: buffer
 * @offset: offset of the part in bytes
 * @bytes: length of the part in bytes, not 0
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_pagelist_build(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			    const struct ornic_ib_ubuf *ubuf, u64 offset, u64 bytes)
{
	u64 size = BIT_ULL(ubuf->shift);
	u64 at = ubuf->first + offset;
	u64 skip = at >> ubuf->shift;
	u64 pages = ((at + bytes - 1) >> ubuf->shift) - skip + 1;
	u64 addr;
	int ret;

	if (pages == 1) {
		ret = ornic_ubuf_addr(ubuf, offset, &addr);
		if (!ret)
			ornic_describe_contiguous(&list->desc, addr);
		return ret;
	}

	ret = ornic_pagelist_list_alloc(list, pages);
	if (!ret)
		ret = ornic_list_fill(list, ubuf, skip, pages);
	if (!ret)
		ret = ornic_list_map(ornic_ib_dma(dev), list);
	if (ret)
		return ret;

	ornic_describe_list(list, at & (size - 1), ubuf->shift);
	return 0;
}

/**
 * ornic_ib_pagelist_kernel() - describe part of a buffer of the kernel to the device
 * @dev: device
 * @list: to fill; zeroed by the caller, who frees it also after an error
 * @kbuf: buffer
 * @offset: offset of the part in bytes
 * @bytes: length of the part in bytes, not 0
 *
 * The list has pages of 4096 bytes, which every device supports, for any page size of the CPU.
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_pagelist_kernel(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			     const struct ornic_ib_kbuf *kbuf, size_t offset, size_t bytes)
{
	size_t first = ALIGN_DOWN(offset, SZ_4K);
	u32 pages = DIV_ROUND_UP(offset - first + bytes, SZ_4K);
	u32 i;
	int ret;

	if (pages == 1) {
		ornic_describe_contiguous(&list->desc, ornic_ib_kbuf_dma(kbuf, offset));
		return 0;
	}
	ret = ornic_pagelist_list_alloc(list, pages);
	if (ret)
		return ret;
	for (i = 0; i < pages; i++)
		*ornic_list_entry_of(list, i) =
			cpu_to_le64(ornic_ib_kbuf_dma(kbuf, first + (size_t)i * SZ_4K));
	ret = ornic_list_map(ornic_ib_dma(dev), list);
	if (!ret)
		ornic_describe_list(list, offset - first, ORNIC_PAGES_MIN_SHIFT);
	return ret;
}

/* ornic_ib_pagelist_free() - unmap and free a page list, also a partly built or zeroed one. */
void ornic_ib_pagelist_free(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list)
{
	struct device *dma = ornic_ib_dma(dev);
	u32 i;

	ornic_leaf_free(dma, &list->top, ornic_top_bytes(list));
	for (i = 0; i < list->leaves; i++) {
		ornic_leaf_free(dma, &list->leaf[i], ORNIC_PAGES_LEAF_BYTES);
		cond_resched();
	}
	kvfree(list->leaf);
}

static int ornic_kbuf_add_page(struct device *dma, struct ornic_ib_kbuf *kbuf)
{
	void *page = dma_alloc_coherent(dma, PAGE_SIZE, &kbuf->dma[kbuf->pages], GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	kbuf->cpu[kbuf->pages++] = page;
	return 0;
}

/**
 * ornic_ib_kbuf_alloc() - allocate zeroed memory for queues of the kernel
 * @dev: device
 * @kbuf: to fill; zeroed by the caller
 * @size: size in bytes
 *
 * Context: process context, may sleep. Return: 0, or -ENOMEM with @kbuf empty.
 */
int ornic_ib_kbuf_alloc(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf, size_t size)
{
	size_t pages = DIV_ROUND_UP(size, PAGE_SIZE);

	kbuf->cpu = kvzalloc_objs(*kbuf->cpu, pages);
	kbuf->dma = kvzalloc_objs(*kbuf->dma, pages);
	if (!kbuf->cpu || !kbuf->dma)
		goto err;
	while (kbuf->pages < pages) {
		if (ornic_kbuf_add_page(ornic_ib_dma(dev), kbuf))
			goto err;
		cond_resched();
	}
	return 0;

err:
	ornic_ib_kbuf_free(dev, kbuf);
	return -ENOMEM;
}

/* ornic_ib_kbuf_free() - free a buffer of the kernel; does nothing if it is empty. */
void ornic_ib_kbuf_free(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf)
{
	while (kbuf->pages) {
		kbuf->pages--;
		dma_free_coherent(ornic_ib_dma(dev), PAGE_SIZE, kbuf->cpu[kbuf->pages],
				  kbuf->dma[kbuf->pages]);
	}
	kvfree(kbuf->cpu);
	kvfree(kbuf->dma);
	kbuf->cpu = NULL;
	kbuf->dma = NULL;
}
