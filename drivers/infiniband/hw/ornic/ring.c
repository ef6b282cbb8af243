// SPDX-License-Identifier: GPL-2.0
/*
 * Ring and doorbell record of a completion or shared receive queue. Both lie in one buffer, the
 * ring first, unless the attributes of a CQ's creation name other memory for the ring. The process
 * or the kernel allocates the buffer.
 */
#include <linux/align.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/ring.h>

#include "ring.h"
#include "buf.h"
#include "ornic_ib.h"
#include "pagelist.h"

/* Describe a ring at the start of pinned memory. */
static int ornic_ib_ring_describe(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring,
				  size_t bytes)
{
	int ret = ornic_ib_pagelist_build(dev, &ring->list, &ring->ubuf, 0, bytes);

	ring->pages = ring->list.desc;
	return ret;
}

/**
 * ornic_ib_ring_pin() - pin ring and record of a process
 * @dev: device
 * @ring: @log and @stride are set, the rest is zero and filled in; the caller frees it by
 *	ornic_ib_ring_free(), also after an error
 * @addr: address of the buffer in the calling process
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_ring_pin(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr)
{
	size_t bytes = ornic_ib_ring_bytes(ring);
	int ret;

	/* the record behind the ring must be aligned */
	if (!PAGE_ALIGNED(addr) || bytes < sizeof(struct ornic_rec))
		return -EINVAL;
	ret = ornic_ib_ubuf_pin(dev, &ring->ubuf, addr, bytes + sizeof(struct ornic_rec), addr,
				IB_ACCESS_LOCAL_WRITE);
	if (!ret)
		ret = ornic_ib_ring_describe(dev, ring, bytes);
	return ret ? ret : ornic_ib_ubuf_addr(&ring->ubuf, bytes, &ring->record);
}

/* Take over the memory of the entries; it begins at a page boundary, as every ring of a process. */
static int ornic_take_entries(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring,
			      struct ib_umem *umem)
{
	int ret = -EINVAL;

	if (!ib_umem_offset(umem))
		ret = ornic_ib_ubuf_take(dev, &ring->ubuf, umem, umem->address);
	if (ret)
		ib_umem_release(umem);
	return ret;
}

static int ornic_pin_record(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr)
{
	int ret;

	if (!IS_ALIGNED(addr, sizeof(struct ornic_rec)))
		return -EINVAL;
	ret = ornic_ib_ubuf_pin(dev, &ring->urec, addr, sizeof(struct ornic_rec), addr,
				IB_ACCESS_LOCAL_WRITE);
	return ret ? ret : ornic_ib_ubuf_addr(&ring->urec, 0, &ring->record);
}

/**
 * ornic_ib_ring_pin_cq() - pin ring and record of a new CQ of a process
 * @dev: device
 * @ring: as for ornic_ib_ring_pin()
 * @addr: address in the calling process: of the record if the attributes name other memory for
 *	the entries, else of the buffer
 * @attrs: attributes of the CQ's creation
 *
 * ib_core may map memory that the attributes name for writes of the device only (after 7.2). The
 * device reads the record, so that lies elsewhere.
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_ring_pin_cq(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
			 const struct uverbs_attr_bundle *attrs)
{
	size_t bytes = ornic_ib_ring_bytes(ring);
	struct ib_umem *umem;
	int ret;

	umem = ib_umem_get_cq_buf(&dev->ibdev, attrs, bytes, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	if (!umem)
		return ornic_ib_ring_pin(dev, ring, addr);
	ret = ornic_take_entries(dev, ring, umem);
	if (!ret)
		ret = ornic_ib_ring_describe(dev, ring, bytes);
	return ret ? ret : ornic_pin_record(dev, ring, addr);
}

/**
 * ornic_ib_ring_alloc() - allocate ring and record for the kernel
 * @dev: device
 * @ring: @log and @stride are set, for at least the bytes of a record; the rest is zero and
 *	filled in. The caller frees it by ornic_ib_ring_free(), also after an error
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_ring_alloc(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring)
{
	size_t bytes = ornic_ib_ring_bytes(ring);
	int ret;

	ret = ornic_ib_kbuf_alloc(dev, &ring->kbuf, bytes + sizeof(struct ornic_rec));
	if (ret)
		return ret;
	ornic_rec_init(ornic_ib_ring_rec(ring));
	ret = ornic_ib_pagelist_kernel(dev, &ring->list, &ring->kbuf, 0, bytes);
	if (ret)
		return ret;
	ring->pages = ring->list.desc;
	ring->record = cpu_to_le64(ornic_ib_kbuf_dma(&ring->kbuf, bytes));
	return 0;
}

/* ornic_ib_ring_free() - free page list and buffers of a ring, also of a partly built one. */
void ornic_ib_ring_free(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring)
{
	ornic_ib_pagelist_free(dev, &ring->list);
	ornic_ib_ubuf_unpin(&ring->ubuf);
	ornic_ib_ubuf_unpin(&ring->urec);
	ornic_ib_kbuf_free(dev, &ring->kbuf);
}
