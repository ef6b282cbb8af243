/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ring and doorbell record of a completion or shared receive queue.
 */
#ifndef ORNIC_IB_RING_H
#define ORNIC_IB_RING_H

#include <linux/types.h>

#include <linux/ornic/hw/ring.h>

#include "buf.h"
#include "pagelist.h"

struct ornic_ib_dev;
struct uverbs_attr_bundle;

/**
 * struct ornic_ib_ring - ring and record of a queue, for a command
 * @log: log2 of the entries
 * @stride: log2 bytes of an entry
 * @ubuf: memory of both, for a process
 * @urec: memory of the record of a process, if it is not in @ubuf
 * @kbuf: memory of both, for the kernel
 * @list: page list of the ring
 * @pages: descriptor of the ring
 * @record: DMA address of the record
 */
struct ornic_ib_ring {
	u8 log;
	u8 stride;
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_ubuf urec;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_pagelist list;
	struct ornic_pages pages;
	__le64 record;
};

static inline size_t ornic_ib_ring_bytes(const struct ornic_ib_ring *ring)
{
	return (size_t)1 << (ring->log + ring->stride);
}

/* Return the record of a ring of the kernel. */
static inline struct ornic_rec *ornic_ib_ring_rec(const struct ornic_ib_ring *ring)
{
	return ornic_ib_kbuf_at(&ring->kbuf, ornic_ib_ring_bytes(ring));
}

int ornic_ib_ring_pin(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr);
int ornic_ib_ring_pin_cq(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
			 const struct uverbs_attr_bundle *attrs);
int ornic_ib_ring_alloc(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring);
void ornic_ib_ring_free(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring);

#endif
