// SPDX-License-Identifier: GPL-2.0
/*
 * Change the memory, protection domain or access rights of a region in place. The key keeps its
 * value, also if the device rejects the change.
 */
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/mr.h>

#include "mr.h"
#include "buf.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "pagelist.h"
#include "pd.h"

static_assert(ORNIC_KEYM_TRANSLATION == IB_MR_REREG_TRANS);
static_assert(ORNIC_KEYM_PD == IB_MR_REREG_PD);
static_assert(ORNIC_KEYM_ACCESS == IB_MR_REREG_ACCESS);

/* Modify the key in the device. @ubuf is the new memory, already pinned; empty if unchanged. */
static int ornic_rereg_modify(struct ornic_ib_dev *dev, u32 key, const struct ornic_ib_ubuf *ubuf,
			      struct ornic_key_modify_cmd *cmd)
{
	struct ornic_ib_pagelist list = {};
	int ret = 0;

	if (ubuf->umem)
		ret = ornic_ib_pagelist_build(dev, &list, ubuf, 0,
					      le64_to_cpu(cmd->attr.length));
	if (!ret) {
		cmd->attr.pages = list.desc;
		ret = ornic_ib_cmd_key_modify(dev, key, cmd);
	}
	ornic_ib_pagelist_free(dev, &list);
	return ret;
}

/**
 * struct change - new attributes of a region
 * @flags: IB_MR_REREG_*
 * @access: IB_ACCESS_*; the current rights if they do not change
 * @start: address in the process
 * @length: length in bytes
 * @virt: address of the first byte in work requests
 */
struct change {
	int flags;
	int access;
	u64 start;
	u64 length;
	u64 virt;
};

/*
 * Register the same memory again if new rights require it: write access needs pages that are pinned
 * for writing, and ZERO_BASED changes the address of the region. Only the process whose memory it
 * is can do that: at this address, a child or an importer of the region has other memory.
 */
static int ornic_move_for_rights(const struct ornic_ib_mr *mr, struct change *to)
{
	const struct ib_umem *umem = mr->ubuf.umem;

	if (to->flags & IB_MR_REREG_TRANS || !umem)
		return 0;
	if ((umem->writable || !ib_access_writable(to->access)) &&
	    !((to->access ^ mr->access) & IB_ZERO_BASED))
		return 0;
	if (umem->is_dmabuf)
		return -EOPNOTSUPP;
	if (umem->owning_mm != current->mm)
		return -EACCES;
	to->flags |= IB_MR_REREG_TRANS;
	to->start = umem->address;
	to->length = umem->length;
	to->virt = mr->virt;
	return 0;
}

static int ornic_rereg_apply(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
			     const struct change *to, struct ib_pd *pd)
{
	u64 iova = to->access & IB_ZERO_BASED ? 0 : to->virt;
	struct ornic_key_modify_cmd cmd = {
		.mask = cpu_to_le32(to->flags),
		.attr.flags = to->access & IB_ACCESS_HUGETLB ? ORNIC_KEY_F_HUGETLB : 0,
		.attr.pd = cpu_to_le32(to_opd(pd)->pdn),
		.attr.iova = cpu_to_le64(iova),
		.attr.length = cpu_to_le64(to->length),
	};
	bool moves = to->flags & IB_MR_REREG_TRANS;
	struct ornic_ib_ubuf ubuf = {};
	int ret;

	ret = ornic_ib_access(dev, to->access, &cmd.attr.access);
	if (!ret && moves && to->length)
		ret = ornic_ib_ubuf_pin(dev, &ubuf, to->start, to->length, to->virt, to->access);
	if (ret)
		return ret;
	ret = ornic_ib_persistent(moves ? &ubuf : &mr->ubuf, to->access);
	if (!ret)
		ret = ornic_rereg_modify(dev, mr->ibmr.lkey, &ubuf, &cmd);
	if (ret) {
		ornic_ib_ubuf_unpin(&ubuf);
		return ret;
	}
	mr->access = to->access;
	if (moves) {
		ornic_ib_ubuf_unpin(&mr->ubuf);
		mr->ubuf = ubuf;
		mr->virt = to->virt;
	}
	return 0;
}

struct ib_mr *ornic_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				     u64 virt, int access, struct ib_pd *pd,
				     struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibmr->device);
	struct ornic_ib_mr *mr = to_omr(ibmr);
	struct change to = {
		.flags = flags, .start = start, .length = length, .virt = virt,
		.access = flags & IB_MR_REREG_ACCESS ? access : mr->access,
	};
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ERR_PTR(ret);
	if (flags & ~(IB_MR_REREG_TRANS | IB_MR_REREG_PD | IB_MR_REREG_ACCESS))
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_TRANS &&
	    (length > le64_to_cpu(dev->odev->id.max_region) || virt + length < virt))
		return ERR_PTR(-EINVAL);
	/*
	 * uverbs (6.1 to 7.2) removes IB_MR_REREG_PD if the protection domain stays the same, and
	 * the command needs a change
	 */
	if (!flags)
		return NULL;
	/* a region of a DMA buffer keeps the memory that was pinned when it was registered */
	if (mr->ubuf.umem && mr->ubuf.umem->is_dmabuf && flags & IB_MR_REREG_TRANS)
		return ERR_PTR(-EOPNOTSUPP);
	ret = ornic_move_for_rights(mr, &to);
	if (ret)
		return ERR_PTR(ret);
	return ERR_PTR(ornic_rereg_apply(dev, mr, &to, flags & IB_MR_REREG_PD ? pd : ibmr->pd));
}
