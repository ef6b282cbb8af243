/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XRC domains.
 */
#ifndef ORNIC_IB_XRCD_H
#define ORNIC_IB_XRCD_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* XRC domain. */
struct ornic_ib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

int ornic_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int ornic_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

#endif
