/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of queues and regions: pinned memory of a process, coherent memory of the kernel.
 * pagelist.h describes it to the device.
 */
#ifndef ORNIC_IB_BUF_H
#define ORNIC_IB_BUF_H

#include <linux/mm.h>
#include <linux/types.h>

struct ib_umem;
struct ornic_ib_dev;

/**
 * struct ornic_ib_ubuf - pinned memory of a process
 * @umem: the memory; NULL if none is pinned
 * @shift: log2 of the page size that the device sees
 * @first: offset of the memory in its first page, in bytes
 */
struct ornic_ib_ubuf {
	struct ib_umem *umem;
	u8 shift;
	u64 first;
};

/**
 * struct ornic_ib_kbuf - coherent memory for the queues of the kernel, page by page
 * @cpu: addresses of the pages; NULL without memory
 * @dma: DMA addresses of the pages
 * @pages: number of pages
 *
 * Entries and records are aligned to their size, so that none crosses a page.
 */
struct ornic_ib_kbuf {
	void **cpu;
	dma_addr_t *dma;
	u32 pages;
};

static inline void *ornic_ib_kbuf_at(const struct ornic_ib_kbuf *kbuf, size_t offset)
{
	return kbuf->cpu[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

static inline u64 ornic_ib_kbuf_dma(const struct ornic_ib_kbuf *kbuf, size_t offset)
{
	return kbuf->dma[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

/* pagelist.c */
int ornic_ib_ubuf_pin(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, u64 addr, u64 size,
		      u64 iova, int access);
int ornic_ib_ubuf_take(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf,
		       struct ib_umem *umem, u64 iova);
void ornic_ib_ubuf_unpin(struct ornic_ib_ubuf *ubuf);
int ornic_ib_ubuf_addr(const struct ornic_ib_ubuf *ubuf, u64 offset, __le64 *addr);
int ornic_ib_kbuf_alloc(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf, size_t size);
void ornic_ib_kbuf_free(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf);

#endif
