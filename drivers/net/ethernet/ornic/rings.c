// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the rings of event queues and of the network interface: coherent pieces, because a host
 * with fragmented memory has no large contiguous block. Single pages suffice. A page list describes
 * them to the device.
 */
#include <linux/dma-mapping.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ornic.h"

/* log2 bytes of the largest piece */
#define ORNIC_RING_MAX_SHIFT	18

static size_t ornic_ring_bytes(const struct ornic_ring *ring)
{
	return (size_t)1 << (ring->log + ring->stride);
}

static size_t ornic_piece_bytes(const struct ornic_ring *ring, u32 piece)
{
	return piece == ornic_ring_bytes(ring) >> ring->shift ? PAGE_SIZE : BIT(ring->shift);
}

/* Return: the DMA address of a byte of the ring, or of the record behind it. */
static u64 ornic_ring_dma(const struct ornic_ring *ring, size_t at)
{
	return ring->dma[at >> ring->shift] + (at & (BIT(ring->shift) - 1));
}

/* Write the page list. Its pages have 4096 bytes on every CPU; a ring of one page needs none. */
static int ornic_ring_list(struct device *dev, struct ornic_ring *ring)
{
	size_t at, bytes = ornic_ring_bytes(ring);

	if (bytes <= SZ_4K)
		return 0;
	ring->list = dma_alloc_coherent(dev, bytes / SZ_4K * sizeof(*ring->list), &ring->list_dma,
					GFP_KERNEL);
	if (!ring->list)
		return -ENOMEM;
	for (at = 0; at < bytes; at += SZ_4K)
		ring->list[at / SZ_4K] = cpu_to_le64(ornic_ring_dma(ring, at));
	return 0;
}

static void ornic_ring_free_pieces(struct device *dev, struct ornic_ring *ring)
{
	while (ring->pieces) {
		ring->pieces--;
		dma_free_coherent(dev, ornic_piece_bytes(ring, ring->pieces),
				  ring->cpu[ring->pieces], ring->dma[ring->pieces]);
	}
	kvfree(ring->cpu);
	kvfree(ring->dma);
	ring->cpu = NULL;
	ring->dma = NULL;
}

/* Allocate pieces of this size, to be freed also after an error. */
static int ornic_ring_pieces(struct device *dev, struct ornic_ring *ring, u8 shift)
{
	/* the record is in the last piece */
	u32 pieces = (ornic_ring_bytes(ring) >> shift) + 1;
	gfp_t gfp = GFP_KERNEL;

	if (shift > PAGE_SHIFT)
		gfp |= __GFP_NORETRY | __GFP_NOWARN;	/* smaller ones will do */
	ring->shift = shift;
	ring->cpu = kvzalloc_objs(*ring->cpu, pieces);
	ring->dma = kvzalloc_objs(*ring->dma, pieces);
	if (!ring->cpu || !ring->dma)
		return -ENOMEM;
	for (; ring->pieces < pieces; ring->pieces++) {
		ring->cpu[ring->pieces] = dma_alloc_coherent(dev,
							     ornic_piece_bytes(ring, ring->pieces),
							     &ring->dma[ring->pieces], gfp);
		if (!ring->cpu[ring->pieces])
			return -ENOMEM;
	}
	return 0;
}

/**
 * ornic_ring_alloc() - allocate a zeroed ring and its initialised record
 * @core: device
 * @ring: zeroed by the caller, who frees it also after an error
 * @log: log2 entries
 * @stride: log2 bytes of an entry
 *
 * Return: 0 or -ENOMEM.
 */
int ornic_ring_alloc(struct ornic_core *core, struct ornic_ring *ring, u8 log, u8 stride)
{
	struct device *dev = ornic_dma_dev(core);
	u8 shift = clamp_t(u8, log + stride, PAGE_SHIFT, ORNIC_RING_MAX_SHIFT);
	size_t bytes;
	int err;

	ring->log = log;
	ring->stride = stride;
	err = ornic_ring_pieces(dev, ring, shift);
	while (err && shift > PAGE_SHIFT) {
		ornic_ring_free_pieces(dev, ring);
		err = ornic_ring_pieces(dev, ring, --shift);
	}
	if (err)
		return err;
	bytes = ornic_ring_bytes(ring);
	ring->rec = ring->cpu[bytes >> shift] + (bytes & (BIT(shift) - 1));
	ornic_rec_init(ring->rec);
	return ornic_ring_list(dev, ring);
}

/* ornic_ring_free() - free a ring, also one that is partly allocated or zeroed. */
void ornic_ring_free(struct ornic_core *core, struct ornic_ring *ring)
{
	struct device *dev = ornic_dma_dev(core);

	if (ring->list)
		dma_free_coherent(dev, ornic_ring_bytes(ring) / SZ_4K * sizeof(*ring->list),
				  ring->list, ring->list_dma);
	ornic_ring_free_pieces(dev, ring);
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
