// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent memory. The device reports whether it can make its writes durable. It cannot know
 * whether the host memory keeps its content after a loss of power. That is the case if the
 * firmware lists the memory as persistent and the page belongs to the memory's own driver. The
 * kernel can also use an NVDIMM as RAM (dax/kmem): no process finds such pages again after a
 * loss of power.
 */
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>

#include "mr.h"
#include "buf.h"

/**
 * ornic_ib_persistent() - check access rights that require persistent memory
 * @ubuf: memory of the region; may be a DMA buffer, or empty
 * @access: IB_ACCESS_*
 *
 * Context: process context, may sleep.
 *
 * Return: 0, or -EINVAL if @access includes FLUSH_PERSISTENT and the memory is not persistent.
 */
int ornic_ib_persistent(const struct ornic_ib_ubuf *ubuf, int access)
{
	struct scatterlist *sg;
	int i;

	if (!(access & IB_ACCESS_FLUSH_PERSISTENT) || !ubuf->umem)
		return 0;
	if (ubuf->umem->is_dmabuf)
		return -EINVAL;
	for_each_sgtable_sg(&ubuf->umem->sgt_append.sgt, sg, i) {
		/* the first page suffices: a segment has none or only such pages (6.2 to 7.2) */
		if (!is_zone_device_page(sg_page(sg)) ||
		    region_intersects(sg_phys(sg), sg->length, IORESOURCE_MEM,
				      IORES_DESC_PERSISTENT_MEMORY) != REGION_INTERSECTS)
			return -EINVAL;
		cond_resched();
	}
	return 0;
}
