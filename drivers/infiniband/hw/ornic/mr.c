// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of processes, and the keys of the kernel.
 *
 * The kernel reaches its memory by DMA address under one key for all of it,
 * which ornic.ko created: local_dma_lkey. Only privileged queue pairs can use
 * such a key (ORN-SEC-3), and no queue pair of a process is one.
 */
#include <rdma/ib_umem.h>

#include "ornic_ib.h"

/* Access bits travel as they are. */
static_assert(ORNIC_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert(ORNIC_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert(ORNIC_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert(ORNIC_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert(ORNIC_ACCESS_FLUSH_GLOBAL == IB_ACCESS_FLUSH_GLOBAL);
static_assert(ORNIC_ACCESS_MW_BIND == IB_ACCESS_MW_BIND);
static_assert(ORNIC_ACCESS_ZERO_BASED == IB_ZERO_BASED);
static_assert(ORNIC_ACCESS_RELAXED_ORDERING == IB_ACCESS_RELAXED_ORDERING);

/**
 * ornic_ib_remote_rights() - rights of a peer that the device knows
 * @dev: device
 */
u32 ornic_ib_remote_rights(const struct ornic_ib_dev *dev)
{
	u32 known = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if (ornic_has(dev->odev, ORNIC_FEATURE(ATOMICS)))
		known |= IB_ACCESS_REMOTE_ATOMIC;
	if (ornic_has(dev->odev, ORNIC_FEATURE(FLUSH_GLOBAL)))
		known |= IB_ACCESS_FLUSH_GLOBAL;
	return known;
}

/**
 * ornic_ib_access() - rights as the device takes them
 * @dev: device
 * @access: IB_ACCESS_*
 * @out: to fill
 *
 * Optional ones that it lacks are left out, and so is MW_BIND, which many
 * applications give: without the feature there is no window to bind.
 */
int ornic_ib_access(const struct ornic_ib_dev *dev, int access, __le32 *out)
{
	u32 known = IB_ACCESS_LOCAL_WRITE | ornic_ib_remote_rights(dev);

	if (ornic_has(dev->odev, ORNIC_FEATURE(MW1)) || ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		known |= IB_ACCESS_MW_BIND;
	if (ornic_has(dev->odev, ORNIC_FEATURE(ZERO_BASED)))
		known |= IB_ZERO_BASED;
	if (ornic_has(dev->odev, ORNIC_FEATURE(RELAXED_ORDERING)))
		known |= IB_ACCESS_RELAXED_ORDERING;
	if (access & ~known & ~(IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB | IB_ACCESS_MW_BIND))
		return -EOPNOTSUPP;
	*out = cpu_to_le32(access & known);
	return 0;
}

static void set_key(struct ib_mr *ibmr, u32 key)
{
	ibmr->lkey = key;
	ibmr->rkey = key;
}

/* All DMA addresses, for a protection domain of the kernel. */
struct ib_mr *ornic_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_PHYS_ALL,
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
	};
	struct ornic_ib_mr *mr;
	u32 key;
	int ret;

	ret = ornic_ib_access(dev, access, &cmd.access);
	if (ret)
		return ERR_PTR(ret);
	if ((cmd.access & cpu_to_le32(ORNIC_ACCESS_REMOTE)) &&
	    !ornic_has(dev->odev, ORNIC_FEATURE(GLOBAL_RKEY)))
		return ERR_PTR(-EOPNOTSUPP);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_cmd_key_create(dev, &cmd, &key);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	set_key(&mr->ibmr, key);
	return &mr->ibmr;
}

/* The page list is the device's only during the command. */
static int create_region(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
			 struct ornic_key_create_cmd *cmd)
{
	struct ornic_ib_pagelist list = {};
	u32 key;
	int ret;

	ret = ornic_ib_pagelist_build(dev, &list, &mr->ubuf, 0, le64_to_cpu(cmd->length));
	if (!ret) {
		cmd->pages = list.desc;
		ret = ornic_ib_cmd_key_create(dev, cmd, &key);
	}
	ornic_ib_pagelist_free(dev, &list);
	if (!ret)
		set_key(&mr->ibmr, key);
	return ret;
}

struct ib_mr *ornic_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
				   int access, ORNIC_DMAH_ARG struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_REGION,
		.flags = access & IB_ACCESS_HUGETLB ? ORNIC_KEY_F_HUGETLB : 0,
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
		.iova = cpu_to_le64(access & IB_ZERO_BASED ? 0 : virt),
		.length = cpu_to_le64(length),
		.owner = cpu_to_le32(ornic_ib_caller_page(udata)),
	};
	struct ornic_ib_mr *mr;
	int ret;

	if (ORNIC_DMAH_GIVEN)
		return ERR_PTR(-EOPNOTSUPP);
	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return ERR_PTR(-EOPNOTSUPP);
	ret = ornic_ib_access(dev, access, &cmd.access);
	if (ret)
		return ERR_PTR(ret);
	if (!length || length > le64_to_cpu(dev->odev->id.max_region) || virt + length < virt)
		return ERR_PTR(-EINVAL);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_ubuf_pin(dev, &mr->ubuf, start, length, virt, access);
	if (ret)
		goto err_free;
	ret = create_region(dev, mr, &cmd);
	if (ret)
		goto err_unpin;
	return &mr->ibmr;

err_unpin:
	ornic_ib_ubuf_unpin(&mr->ubuf);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

/* The device answers when it touches the memory no more (ORN-MEM-3). */
int ornic_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibmr->device);
	struct ornic_ib_mr *mr = to_omr(ibmr);
	int ret;

	ret = ornic_ib_cmd_key_destroy(dev, ibmr->lkey);
	if (ret)
		return ret;
	ornic_ib_ubuf_unpin(&mr->ubuf);
	ornic_ib_kbuf_free(dev, &mr->list);
	kfree(mr);
	return 0;
}
