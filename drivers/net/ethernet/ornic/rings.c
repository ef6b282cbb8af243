// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the interface's rings: single coherent pages, because a host with fragmented
 * memory has no large contiguous block. A page list describes them to the device.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "netdev.h"

/* The longest ring fits one array of a page list. */
static_assert(ORNIC_MAX_LOG + ORNIC_TX_STRIDE - ORNIC_PAGES_MIN_SHIFT <=
	      ilog2(ORNIC_PAGES_LEAF_ENTRIES));

static size_t ornic_ring_bytes(const struct ornic_ring *ring)
{
	return (size_t)1 << (ring->log + ring->stride);
}

/* Return: the DMA address of a byte of the ring, or of the record behind it. */
static u64 ornic_ring_dma(const struct ornic_ring *ring, size_t at)
{
	return ring->dma[at >> PAGE_SHIFT] + offset_in_page(at);
}

/* Write the page list. Its pages have 4096 bytes on every CPU; a ring of one page needs none. */
static int ornic_ring_list(struct device *dev, struct ornic_ring *ring)
{
	size_t at, bytes = ornic_ring_bytes(ring);

	if (bytes <= SZ_4K)
		return 0;
	ring->list = dma_alloc_coherent(dev, ORNIC_PAGES_LEAF_BYTES, &ring->list_dma, GFP_KERNEL);
	if (!ring->list)
		return -ENOMEM;
	for (at = 0; at < bytes; at += SZ_4K)
		ring->list[at / SZ_4K] = cpu_to_le64(ornic_ring_dma(ring, at));
	return 0;
}

static int ornic_ring_pages(struct device *dev, struct ornic_ring *ring)
{
	u32 pages = DIV_ROUND_UP(ornic_ring_bytes(ring) + sizeof(*ring->rec), PAGE_SIZE);

	ring->cpu = kzalloc_objs(*ring->cpu, pages);
	ring->dma = kzalloc_objs(*ring->dma, pages);
	if (!ring->cpu || !ring->dma)
		return -ENOMEM;
	for (; ring->pages < pages; ring->pages++) {
		ring->cpu[ring->pages] = dma_alloc_coherent(dev, PAGE_SIZE,
							    &ring->dma[ring->pages], GFP_KERNEL);
		if (!ring->cpu[ring->pages])
			return -ENOMEM;
	}
	return 0;
}

/**
 * ornic_ring_alloc() - allocate a zeroed ring and its initialised record
 * @nd: interface
 * @ring: zeroed by the caller, who frees it also after an error
 * @log: log2 entries, at most ORNIC_MAX_LOG
 * @stride: log2 bytes of an entry, at most ORNIC_TX_STRIDE
 *
 * Return: 0 or -ENOMEM.
 */
int ornic_ring_alloc(struct ornic_netdev *nd, struct ornic_ring *ring, u8 log, u8 stride)
{
	struct device *dev = ornic_dma_dev(nd->core);
	size_t bytes;
	int err;

	ring->log = log;
	ring->stride = stride;
	err = ornic_ring_pages(dev, ring);
	if (err)
		return err;
	bytes = ornic_ring_bytes(ring);
	ring->rec = ring->cpu[bytes >> PAGE_SHIFT] + offset_in_page(bytes);
	ornic_rec_init(ring->rec);
	return ornic_ring_list(dev, ring);
}

/* ornic_ring_free() - free a ring, also one that is partly allocated or zeroed. */
void ornic_ring_free(struct ornic_netdev *nd, struct ornic_ring *ring)
{
	struct device *dev = ornic_dma_dev(nd->core);

	if (ring->list)
		dma_free_coherent(dev, ORNIC_PAGES_LEAF_BYTES, ring->list, ring->list_dma);
	while (ring->pages) {
		ring->pages--;
		dma_free_coherent(dev, PAGE_SIZE, ring->cpu[ring->pages], ring->dma[ring->pages]);
	}
	kfree(ring->cpu);
	kfree(ring->dma);
}

/**
 * ornic_ring_describe() - describe a ring in a create command
 * @ring: ring, allocated
 * @pages: descriptor of the entries
 * @record: DMA address of the record
 */
void ornic_ring_describe(const struct ornic_ring *ring, struct ornic_pages *pages, __le64 *record)
{
	*record = cpu_to_le64(ornic_ring_dma(ring, ornic_ring_bytes(ring)));
	ornic_pages_contiguous(pages, ring->list ? ring->list_dma : ring->dma[0]);
	if (!ring->list)
		return;
	pages->level = 1;
	pages->page_shift = ORNIC_PAGES_MIN_SHIFT;
}
