// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of processes, and the keys of the kernel.
 *
 * The kernel uses one key for all DMA addresses, local_dma_lkey, which ornic.ko
 * created. Only privileged queue pairs can use this key (ORN-SEC-3), and those of
 * processes are not privileged.
 */
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/mr.h>

#include "mr.h"
#include "buf.h"
#include "cmd.h"
#include "dmabuf.h"
#include "fast_reg.h"
#include "ornic_ib.h"
#include "pagelist.h"
#include "pd.h"
#include "ucontext.h"

/* The device's access bits are those of ib_core. */
static_assert(ORNIC_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert(ORNIC_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert(ORNIC_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert(ORNIC_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert(ORNIC_ACCESS_FLUSH_GLOBAL == IB_ACCESS_FLUSH_GLOBAL);
static_assert(ORNIC_ACCESS_FLUSH_PERSISTENT == IB_ACCESS_FLUSH_PERSISTENT);
static_assert(ORNIC_ACCESS_MW_BIND == IB_ACCESS_MW_BIND);
static_assert(ORNIC_ACCESS_ZERO_BASED == IB_ZERO_BASED);
static_assert(ORNIC_ACCESS_RELAXED_ORDERING == IB_ACCESS_RELAXED_ORDERING);

/**
 * ornic_ib_remote_rights() - return the remote access rights that the device supports
 * @dev: device
 *
 * Return: IB_ACCESS_*.
 */
u32 ornic_ib_remote_rights(const struct ornic_ib_dev *dev)
{
	u32 known = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if (ornic_has(dev->odev, ORNIC_FEATURE(ATOMICS)))
		known |= IB_ACCESS_REMOTE_ATOMIC;
	if (ornic_has(dev->odev, ORNIC_FEATURE(FLUSH_GLOBAL)))
		known |= IB_ACCESS_FLUSH_GLOBAL;
	if (ornic_has(dev->odev, ORNIC_FEATURE(FLUSH_PERSISTENT)))
		known |= IB_ACCESS_FLUSH_PERSISTENT;
	return known;
}

/**
 * ornic_ib_access() - convert access rights to those of a command
 * @dev: device
 * @access: IB_ACCESS_*
 * @out: to fill
 *
 * Optional rights that the device does not support are left out. So is MW_BIND,
 * which many applications set: without the feature no window can be created.
 *
 * Return: 0, or -EOPNOTSUPP for another right that the device does not support.
 */
int ornic_ib_access(const struct ornic_ib_dev *dev, int access, __le32 *out)
{
	u32 known = IB_ACCESS_LOCAL_WRITE | ornic_ib_remote_rights(dev);

	if (ornic_has(dev->odev, ORNIC_FEATURE(MW1)) || ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		known |= IB_ACCESS_MW_BIND;
	if (ornic_has(dev->odev, ORNIC_FEATURE(RELAXED_ORDERING)))
		known |= IB_ACCESS_RELAXED_ORDERING;
	if (ornic_has(dev->odev, ORNIC_FEATURE(ZERO_BASED)))
		known |= IB_ZERO_BASED;
	if (access & ~known & ~(IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB | IB_ACCESS_MW_BIND)) {
		ibdev_dbg(&dev->ibdev, "rights %#x, known are %#x\n", access, known);
		return -EOPNOTSUPP;
	}
	*out = cpu_to_le32(access & known);
	return 0;
}

/**
 * ornic_ib_mr_create() - create the key of a region, which is both lkey and rkey
 * @dev: device
 * @mr: region; its keys are filled in
 * @cmd: description of the region
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_mr_create(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
		       const struct ornic_key_create_cmd *cmd)
{
	u32 key;
	int ret;

	ret = ornic_ib_cmd_key_create(dev, cmd, &key);
	if (ret)
		return ret;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	return 0;
}

/* Create a key for all DMA addresses, for a protection domain of the kernel. */
struct ib_mr *ornic_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_PHYS_ALL,
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
	};
	struct ornic_ib_mr *mr;
	int ret;

	ret = ornic_ib_access(dev, access, &cmd.access);
	if (ret)
		return ERR_PTR(ret);
	if ((cmd.access & cpu_to_le32(ORNIC_ACCESS_REMOTE)) &&
	    !ornic_has(dev->odev, ORNIC_FEATURE(GLOBAL_RKEY)))
		return ERR_PTR(-EOPNOTSUPP);

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_mr_create(dev, mr, &cmd);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

/* Create the key. The device reads the page list only during the command. */
static int ornic_create_region(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
			       struct ornic_key_create_cmd *cmd)
{
	struct ornic_ib_pagelist list = {};
	int ret = 0;

	if (cmd->length)
		ret = ornic_ib_pagelist_build(dev, &list, &mr->ubuf, 0,
					      le64_to_cpu(cmd->length));
	if (!ret) {
		cmd->pages = list.desc;
		ret = ornic_ib_mr_create(dev, mr, cmd);
	}
	ornic_ib_pagelist_free(dev, &list);
	return ret;
}

/**
 * struct source - memory to register
 * @fd: file descriptor of a DMA buffer, or -1 for memory of the process
 * @start: offset in the DMA buffer, or address in the process
 * @length: length in bytes
 * @virt: address of the first byte in work requests; 0 is used with IB_ZERO_BASED
 * @access: IB_ACCESS_*
 */
struct source {
	int fd;
	u64 start;
	u64 length;
	u64 virt;
	int access;
};

static int ornic_mr_pin(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, const struct source *from)
{
	if (from->fd >= 0)
		return ornic_ib_dmabuf_pin_and_lock(dev, &mr->ubuf, from->fd, from->start,
						    from->length, from->virt, from->access);
	if (!from->length)
		return 0;
	return ornic_ib_ubuf_pin(dev, &mr->ubuf, from->start, from->length, from->virt,
				 from->access);
}

static u8 ornic_key_flags(const struct source *from)
{
	return (from->access & IB_ACCESS_HUGETLB ? ORNIC_KEY_F_HUGETLB : 0) |
	       (from->fd >= 0 ? ORNIC_KEY_F_PEER : 0);
}

static struct ib_mr *ornic_reg_mr(struct ib_pd *ibpd, const struct source *from, u32 owner)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_REGION,
		.flags = ornic_key_flags(from),
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
		.iova = cpu_to_le64(from->access & IB_ZERO_BASED ? 0 : from->virt),
		.length = cpu_to_le64(from->length),
		.owner = cpu_to_le32(owner),
	};
	struct ornic_ib_mr *mr;
	int ret;

	ret = ornic_ib_access(dev, from->access, &cmd.access);
	if (ret)
		return ERR_PTR(ret);
	if (from->length > le64_to_cpu(dev->odev->id.max_region) ||
	    from->virt + from->length < from->virt || (from->fd >= 0 && !from->length)) {
		ibdev_dbg(&dev->ibdev, "region of %llu bytes at %#llx, limit is %llu\n",
			  from->length, from->virt, le64_to_cpu(dev->odev->id.max_region));
		return ERR_PTR(-EINVAL);
	}

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = from->access;
	mr->virt = from->virt;
	ret = ornic_mr_pin(dev, mr, from);
	if (ret)
		goto err_free;
	ret = ornic_ib_persistent(&mr->ubuf, from->access);
	if (!ret)
		ret = ornic_create_region(dev, mr, &cmd);
	if (from->fd >= 0)
		ornic_ib_dmabuf_unlock(dev, mr, !ret);
	if (ret)
		goto err_unpin;
	return &mr->ibmr;

err_unpin:
	ornic_ib_ubuf_unpin(&mr->ubuf);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

struct ib_mr *ornic_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
				   int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	const struct source from = {
		.fd = -1, .start = start, .length = length, .virt = virt, .access = access,
	};
	int ret;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ERR_PTR(ret);
	return ornic_reg_mr(ibpd, &from, ornic_ib_caller_page(udata));
}

struct ib_mr *ornic_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt,
					  int fd, int access, struct ib_dmah *dmah,
					  struct uverbs_attr_bundle *attrs)
{
	const struct source from = {
		.fd = fd, .start = offset, .length = length, .virt = virt, .access = access,
	};

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	if (fd < 0)
		return ERR_PTR(-EBADF);
	return ornic_reg_mr(ibpd, &from, ornic_ib_caller_page(&attrs->driver_udata));
}

/*
 * Destroy the key of a region. This is the only destroy command that a correct device may reject:
 * while a window is bound. uverbs (6.1 to 7.2) retries at the latest when the process exits and its
 * windows are freed. If the protection domain has no window, a rejection means that the device is
 * faulty.
 */
static int ornic_region_destroy(struct ornic_ib_dev *dev, struct ornic_ib_pd *pd, u32 key)
{
	int ret = 0;

	down_read(&pd->windows_lock);
	if (pd->windows)
		ret = ornic_ib_cmd_region_destroy(dev, key);
	else
		ornic_ib_cmd_key_destroy(dev, key);
	up_read(&pd->windows_lock);
	return ret;
}

/* The destroy command completes after the device's last access to the memory (ORN-MEM-3). */
int ornic_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibmr->device);
	struct ornic_ib_mr *mr = to_omr(ibmr);
	int ret = 0;

	if (mr->ubuf.umem && mr->ubuf.umem->is_dmabuf)
		ornic_ib_dmabuf_key_destroy(dev, mr);
	else
		ret = ornic_region_destroy(dev, to_opd(ibmr->pd), ibmr->lkey);
	if (ret)
		return ret;
	ornic_ib_ubuf_unpin(&mr->ubuf);
	ornic_ib_fast_reg_free(dev, mr);
	kfree(mr);
	return 0;
}
