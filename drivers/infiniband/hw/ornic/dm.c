// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: blocks of BAR4 for processes, and their keys.
 *
 * The mapping entry owns a block (mmap.c): the block stays allocated until its process
 * has freed it and all processes, including importers, have unmapped it. Blocks are
 * whole pages, so that no process can map a byte of a block of another process.
 */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/dm.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/regs.h>
#include <rdma/ornic-abi.h>
#include <rdma/ornic-ioctl.h>

#include "dm.h"
#include "cmd.h"
#include "mmap.h"
#include "mr.h"
#include "ornic_ib.h"
#include "pd.h"
#include "ucontext.h"

#define UVERBS_MODULE_NAME ornic_ib
#include <rdma/uverbs_named_ioctl.h>

/**
 * struct block - device memory; exists until it is freed and no mapping is left
 * @map: mapping
 * @number: number in the device
 */
struct block {
	struct ornic_ib_map map;
	u32 number;
};

/**
 * struct ornic_ib_dm - device memory object of verbs; exists until the process frees it
 * @ibdm: ib_core's part
 * @block: the memory
 */
struct ornic_ib_dm {
	struct ib_dm ibdm;
	struct block *block;
};

static struct ornic_ib_dm *to_odm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct ornic_ib_dm, ibdm);
}

static void ornic_block_free(struct ornic_ib_dev *dev, struct ornic_ib_map *map)
{
	struct block *block = container_of(map, struct block, map);

	ornic_ib_cmd_dm_destroy(dev, block->number);
	kfree(block);
}

/* Check the place that the device chose: it must be whole pages within the BAR (ORN-SEC-7). */
static int ornic_block_place(struct ornic_ib_dev *dev, struct block *block,
			     const struct ornic_dm_create_rsp *rsp)
{
	u64 size = pci_resource_len(dev->odev->pdev, ORNIC_BAR_DM);
	u64 offset = le64_to_cpu(rsp->offset);

	if (!block->number || block->number > ORNIC_MAX_NUMBER || offset > size ||
	    block->map.size > size - offset || !PAGE_ALIGNED(offset)) {
		ornic_device_malformed(dev->odev, "device memory outside its BAR");
		return -EIO;
	}
	block->map.phys = pci_resource_start(dev->odev->pdev, ORNIC_BAR_DM) + offset;
	return 0;
}

static int ornic_block_create(struct ornic_ib_dev *dev, struct block *block, u32 owner,
			      u8 log_align)
{
	struct ornic_dm_create_cmd cmd = {
		.bytes = cpu_to_le64(block->map.size),
		.log_align = max_t(u8, log_align, PAGE_SHIFT),
		.owner = cpu_to_le32(owner),
	};
	struct ornic_dm_create_rsp rsp = {};
	int ret;

	ret = ornic_ib_cmd_dm_create(dev, &cmd, &rsp, &block->number);
	return ret ? ret : ornic_block_place(dev, block, &rsp);
}

/* Create a block and its mapping entry, and return the mmap offset to the provider. */
static struct block *ornic_block_new(struct ornic_ib_dev *dev, struct ib_ucontext *ibucontext,
				     const struct ib_dm_alloc_attr *attr,
				     struct uverbs_attr_bundle *attrs)
{
	struct block *block;
	u64 offset;
	int ret;

	block = kzalloc_obj(*block);
	if (!block)
		return ERR_PTR(-ENOMEM);
	block->map.size = PAGE_ALIGN(attr->length);
	block->map.combine = to_oucontext(ibucontext)->caps & ORNIC_UCONTEXT_CAP_DM_COMBINE;
	block->map.free = ornic_block_free;
	ret = ornic_block_create(dev, block, to_oucontext(ibucontext)->dbpage, attr->alignment);
	if (ret)
		goto err_free;
	ret = rdma_user_mmap_entry_insert(ibucontext, &block->map.rdma_entry, block->map.size);
	if (ret)
		goto err_block;
	offset = rdma_user_mmap_get_offset(&block->map.rdma_entry);
	ret = uverbs_copy_to(attrs, ORNIC_ATTR_DM_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (!ret)
		return block;

	rdma_user_mmap_entry_remove(&block->map.rdma_entry);
	return ERR_PTR(ret);
err_block:
	ornic_ib_cmd_dm_destroy(dev, block->number);
err_free:
	kfree(block);
	return ERR_PTR(ret);
}

/* @attr->alignment is log2 of the alignment in bytes. */
struct ib_dm *ornic_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
				struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct ornic_ib_dev *dev = to_oib(ibdev);
	struct ornic_ib_dm *dm;
	struct block *block;

	if (!attr->length || attr->length > dev->lim.dm_bytes ||
	    attr->alignment > 63 || attr->flags) {
		ibdev_dbg(ibdev, "device memory of %llu bytes, limit is %llu\n", attr->length,
			  dev->lim.dm_bytes);
		return ERR_PTR(-EINVAL);
	}
	dm = kzalloc_obj(*dm);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	block = ornic_block_new(dev, ibucontext, attr, attrs);
	if (IS_ERR(block)) {
		kfree(dm);
		return ERR_CAST(block);
	}
	dm->block = block;
	return &dm->ibdm;
}

int ornic_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct ornic_ib_dm *dm = to_odm(ibdm);

	rdma_user_mmap_entry_remove(&dm->block->map.rdma_entry);
	kfree(dm);
	return 0;
}

struct ib_mr *ornic_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				 struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct ornic_ib_dm *dm = to_odm(ibdm);
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_DM,
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
		.length = cpu_to_le64(attr->length),
		.dm = cpu_to_le32(dm->block->number),
		.dm_offset = cpu_to_le64(attr->offset),
		.owner = cpu_to_le32(ornic_ib_caller_page(&attrs->driver_udata)),
	};
	struct ornic_ib_mr *mr;
	int ret;

	ret = ornic_ib_access(dev, attr->access_flags, &cmd.access);
	if (ret)
		return ERR_PTR(ret);
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_mr_create(dev, mr, &cmd);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	mr->access = attr->access_flags;
	return &mr->ibmr;
}

/* Return the mmap offset and length to a process that imports device memory. */
static int UVERBS_HANDLER(ORNIC_IB_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ORNIC_IB_ATTR_DM_QUERY_HANDLE);
	struct rdma_user_mmap_entry *entry = &to_odm(ibdm)->block->map.rdma_entry;
	struct ornic_uresp_query_dm resp = {
		.mmap_offset = rdma_user_mmap_get_offset(entry),
		.length = ibdm->length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, ORNIC_IB_ATTR_DM_QUERY_RESP, &resp,
					     sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(ornic_ib_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(ORNIC_ATTR_DM_ALLOC_MMAP_OFFSET,
						 UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(ORNIC_IB_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(ORNIC_IB_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(ORNIC_IB_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct ornic_uresp_query_dm,
								   length),
						UA_MANDATORY));

ADD_UVERBS_METHODS(ornic_ib_dm_query, UVERBS_OBJECT_DM, &UVERBS_METHOD(ORNIC_IB_METHOD_DM_QUERY));

const struct uapi_definition ornic_ib_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &ornic_ib_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &ornic_ib_dm_query),
	{},
};
