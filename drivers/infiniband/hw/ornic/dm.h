/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device memory: blocks of BAR4 for processes.
 */
#ifndef ORNIC_IB_DM_H
#define ORNIC_IB_DM_H

#include <rdma/uverbs_ioctl.h>

extern const struct uapi_definition ornic_ib_dm_defs[];
struct ib_dm *ornic_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
				struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int ornic_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *ornic_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				 struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs);

#endif
