/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory windows of processes.
 */
#ifndef ORNIC_IB_MW_H
#define ORNIC_IB_MW_H

#include <rdma/ib_verbs.h>

/* Memory window. The key in @ibmw is all that the driver needs. */
struct ornic_ib_mw {
	struct ib_mw ibmw;
};

int ornic_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int ornic_ib_dealloc_mw(struct ib_mw *ibmw);

#endif
