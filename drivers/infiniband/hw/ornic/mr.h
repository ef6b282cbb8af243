/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions. The verbs that register memory of a process or a DMA buffer are here; fast_reg.h
 * has regions whose memory the kernel sets, dm.h those of device memory.
 */
#ifndef ORNIC_IB_MR_H
#define ORNIC_IB_MR_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "buf.h"

struct ib_dmah;
struct ornic_ib_dev;
struct ornic_key_create_cmd;
struct uverbs_attr_bundle;

/**
 * struct ornic_ib_mr - memory region
 * @ibmr: ib_core's part
 * @ubuf: memory of a process or DMA buffer
 * @access: IB_ACCESS_*, as requested
 * @virt: address of the first byte in work requests, unless IB_ZERO_BASED
 * @list: addresses of the pages to register; kernel regions (fast_reg.c) only
 * @list_dma: DMA address of @list, which is one block of memory
 * @max_pages: size of @list in entries
 * @npages: entries in use
 */
struct ornic_ib_mr {
	struct ib_mr ibmr;
	struct ornic_ib_ubuf ubuf;
	int access;
	u64 virt;
	__le64 *list;
	dma_addr_t list_dma;
	u32 max_pages;
	u32 npages;
};

static inline struct ornic_ib_mr *to_omr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct ornic_ib_mr, ibmr);
}

/* mr.c */
u32 ornic_ib_remote_rights(const struct ornic_ib_dev *dev);
int ornic_ib_access(const struct ornic_ib_dev *dev, int access, __le32 *out);
int ornic_ib_mr_create(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
		       const struct ornic_key_create_cmd *cmd);
struct ib_mr *ornic_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *ornic_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
				   int access, struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *ornic_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt,
					  int fd, int access, struct ib_dmah *dmah,
					  struct uverbs_attr_bundle *attrs);
int ornic_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* rereg.c */
struct ib_mr *ornic_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				     u64 virt, int access, struct ib_pd *pd,
				     struct ib_udata *udata);

/* persist.c */
int ornic_ib_persistent(const struct ornic_ib_ubuf *ubuf, int access);

#endif
