/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Multicast groups of datagram queue pairs.
 */
#ifndef ORNIC_IB_MCAST_H
#define ORNIC_IB_MCAST_H

#include <linux/types.h>

struct ib_qp;
union ib_gid;

int ornic_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int ornic_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif
