// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast groups of datagram queue pairs. The kernel keeps the memberships. */
#include "ornic.h"

int ornic_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(qp, gid, lid);
}

int ornic_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(qp, gid, lid);
}
