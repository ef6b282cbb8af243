// SPDX-License-Identifier: GPL-2.0
/*
 * Ring and doorbell record of a completion or shared receive queue. Both lie in one buffer, the
 * ring first. The process or the kernel allocates the buffer.
 */
#include <linux/err.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/ring.h>

#include "ring.h"
#include "buf.h"
#include "ornic_ib.h"
#include "pagelist.h"

/**
 * ornic_ib_ring_pin() - pin ring and record of a process
 * @dev: device
 * @ring: @log and @stride are set, the rest is zero and filled in; the caller frees it by
 *	ornic_ib_ring_free(), also after an error
 * @addr: address of the buffer in the calling process
 * @attrs: attributes of a CQ's creation, which may name another buffer; NULL for other commands
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_ring_pin(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
		      const struct uverbs_attr_bundle *attrs)
{
	size_t bytes = ornic_ib_ring_bytes(ring);
	struct ib_umem *umem;
	int ret;

	if (bytes < sizeof(struct ornic_rec))
		return -EINVAL;
	umem = ib_umem_get_cq_buf_or_va(&dev->ibdev, attrs, addr, bytes + sizeof(struct ornic_rec),
					IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = ornic_ib_ubuf_take(dev, &ring->ubuf, umem, umem->address);
	if (ret) {
		ib_umem_release(umem);
		return ret;
	}
	/* the record behind the ring must be aligned */
	if (ib_umem_offset(umem))
		return -EINVAL;
	ret = ornic_ib_pagelist_build(dev, &ring->list, &ring->ubuf, 0, bytes);
	if (ret)
		return ret;
	ring->pages = ring->list.desc;
	return ornic_ib_ubuf_addr(&ring->ubuf, bytes, &ring->record);
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
	ornic_ib_kbuf_free(dev, &ring->kbuf);
}
