// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent memory. The device knows whether it can make memory durable on its side; what it
 * cannot know is whether this machine finds the memory again after a loss of power. That is
 * so if the firmware lists it as persistent.
 */
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/ib_umem.h>

#include "ornic_ib.h"

/**
 * ornic_ib_persistent() - may a region of this memory have these rights?
 * @ubuf: memory; of another device, or none, included
 * @access: IB_ACCESS_*
 *
 * Return: 0; -EINVAL if they promise persistence and a page of the memory is not persistent.
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
		if (region_intersects(sg_phys(sg), sg->length, IORESOURCE_MEM,
				      IORES_DESC_PERSISTENT_MEMORY) != REGION_INTERSECTS)
			return -EINVAL;
		cond_resched();
	}
	return 0;
}
