/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mappings of BARs into processes: doorbell pages (ucontext.h) and device memory (dm.h).
 */
#ifndef ORNIC_IB_MMAP_H
#define ORNIC_IB_MMAP_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct ornic_ib_dev;
struct ornic_ib_ucontext;
struct ornic_uresp_alloc_ucontext;
struct vm_area_struct;

/**
 * struct ornic_ib_map - part of a BAR that a process can map
 * @rdma_entry: ib_core's part
 * @phys: bus address
 * @size: size in bytes
 * @combine: stores may be merged and reordered (ORN-DM-10)
 * @free: called after the process has removed it and the last mapping is gone
 */
struct ornic_ib_map {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t phys;
	size_t size;
	bool combine;
	void (*free)(struct ornic_ib_dev *dev, struct ornic_ib_map *map);
};

int ornic_ib_db_map(struct ornic_ib_ucontext *uctx);
void ornic_ib_db_describe(struct ornic_ib_ucontext *uctx, struct ornic_uresp_alloc_ucontext *resp);
int ornic_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void ornic_ib_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
