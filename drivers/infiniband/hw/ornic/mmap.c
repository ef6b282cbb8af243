// SPDX-License-Identifier: GPL-2.0
/*
 * Mapping a doorbell page into its process.
 *
 * The page belongs to the mapping entry, which lives until the context has
 * removed it and the last mapping is gone: only then may another process get
 * the page (ORN-DB-4).
 */
#include "ornic_ib.h"

/**
 * struct db_entry - the doorbell page of a process
 * @rdma_entry: ib_core's part
 * @page: the page
 */
struct db_entry {
	struct rdma_user_mmap_entry rdma_entry;
	struct ornic_dbpage page;
};

static struct db_entry *to_db_entry(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct db_entry, rdma_entry);
}

/**
 * ornic_ib_db_map() - give a process a doorbell page that it can map
 * @uctx: the process
 */
int ornic_ib_db_map(struct ornic_ib_ucontext *uctx)
{
	struct ornic_ib_dev *dev = to_oib(uctx->ibucontext.device);
	struct db_entry *entry;
	int ret;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	ret = ornic_dbpage_alloc(dev->odev, &entry->page);
	if (ret)
		goto err_free;
	ret = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->rdma_entry, entry->page.size);
	if (ret)
		goto err_page;
	uctx->dbpage = entry->page.index;
	uctx->db_entry = &entry->rdma_entry;
	return 0;

err_page:
	ornic_dbpage_free(dev->odev, &entry->page);
err_free:
	kfree(entry);
	return ret;
}

/**
 * ornic_ib_db_describe() - tell the provider how to map its doorbell page
 * @uctx: the process
 * @resp: answer to fill in
 */
void ornic_ib_db_describe(struct ornic_ib_ucontext *uctx, struct ornic_uresp_alloc_ucontext *resp)
{
	resp->db_mmap_offset = rdma_user_mmap_get_offset(uctx->db_entry);
	resp->db_mmap_size = to_db_entry(uctx->db_entry)->page.size;
}

/* A child of the process does not inherit the page: it would ring for its parent. */
int ornic_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct ornic_dbpage *page;
	int ret;

	entry = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!entry)
		return -EINVAL;
	page = &to_db_entry(entry)->page;
	vm_flags_set(vma, VM_DONTCOPY);
	ret = rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(page->phys), page->size,
				pgprot_noncached(vma->vm_page_prot), entry);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

void ornic_ib_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct db_entry *entry = to_db_entry(rdma_entry);
	struct ornic_ib_dev *dev = to_oib(rdma_entry->ucontext->device);

	ornic_dbpage_free(dev->odev, &entry->page);
	kfree(entry);
}
