// SPDX-License-Identifier: GPL-2.0
/*
 * Map a doorbell page or a block of device memory (dm.c) into a process.
 *
 * The mapping entry owns the page or block. It exists until the context has
 * removed it and the last mapping is gone. Only then may another process get the
 * page (ORN-DB-4) or the memory.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/slab.h>

#include <rdma/ornic-abi.h>

#include "mmap.h"
#include "ornic_ib.h"
#include "ucontext.h"

/**
 * struct db_entry - the doorbell page of a process
 * @map: mapping of the page
 * @page: the page
 */
struct db_entry {
	struct ornic_ib_map map;
	struct ornic_dbpage page;
};

static struct ornic_ib_map *ornic_to_map(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct ornic_ib_map, rdma_entry);
}

static void ornic_db_free(struct ornic_ib_dev *dev, struct ornic_ib_map *map)
{
	struct db_entry *entry = container_of(map, struct db_entry, map);

	ornic_dbpage_free(dev->odev, &entry->page);
	kfree(entry);
}

/**
 * ornic_ib_db_map() - allocate a doorbell page that a process can map
 * @uctx: context of the process; @dbpage and @db_entry are filled in
 *
 * Context: process context. Return: 0, -ENOSPC if no page is free, -ENOMEM.
 */
int ornic_ib_db_map(struct ornic_ib_ucontext *uctx)
{
	struct ornic_ib_dev *dev = to_oib(uctx->ibucontext.device);
	struct db_entry *entry;
	int ret;

	entry = kzalloc_obj(*entry);
	if (!entry)
		return -ENOMEM;
	ret = ornic_dbpage_alloc(dev->odev, &entry->page);
	if (ret)
		goto err_free;
	entry->map.phys = entry->page.phys;
	entry->map.size = entry->page.size;
	entry->map.free = ornic_db_free;
	ret = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->map.rdma_entry,
					  entry->map.size);
	if (ret)
		goto err_page;
	uctx->dbpage = entry->page.index;
	uctx->db_entry = &entry->map.rdma_entry;
	return 0;

err_page:
	ornic_dbpage_free(dev->odev, &entry->page);
err_free:
	kfree(entry);
	return ret;
}

/**
 * ornic_ib_db_describe() - fill the mmap offset and size of the doorbell page into a response
 * @uctx: context of the process
 * @resp: response to fill
 */
void ornic_ib_db_describe(struct ornic_ib_ucontext *uctx, struct ornic_uresp_alloc_ucontext *resp)
{
	resp->db_mmap_offset = rdma_user_mmap_get_offset(uctx->db_entry);
	resp->db_mmap_size = ornic_to_map(uctx->db_entry)->size;
}

/* VM_DONTCOPY: with an inherited mapping a child could ring doorbells for its parent. */
int ornic_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct ornic_ib_map *map;
	pgprot_t prot;
	int ret;

	entry = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!entry)
		return -EINVAL;
	map = ornic_to_map(entry);
	vm_flags_set(vma, VM_DONTCOPY);
	prot = map->combine ? pgprot_writecombine(vma->vm_page_prot) :
			      pgprot_noncached(vma->vm_page_prot);
	ret = rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(map->phys), map->size, prot, entry);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

void ornic_ib_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct ornic_ib_map *map = ornic_to_map(rdma_entry);

	map->free(to_oib(rdma_entry->ucontext->device), map);
}
