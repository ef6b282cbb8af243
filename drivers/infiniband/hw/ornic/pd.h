/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Protection domains.
 */
#ifndef ORNIC_IB_PD_H
#define ORNIC_IB_PD_H

#include <linux/rwsem.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/**
 * struct ornic_ib_pd - protection domain
 * @ibpd: ib_core's part
 * @pdn: number in the device
 * @windows_lock: held for writing to change @windows; for reading while a region is deregistered
 * @windows: number of memory windows; each may be bound to a region of the domain
 */
struct ornic_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
	struct rw_semaphore windows_lock;	/* see above */
	u32 windows;
};

static inline struct ornic_ib_pd *to_opd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct ornic_ib_pd, ibpd);
}

int ornic_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int ornic_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

#endif
