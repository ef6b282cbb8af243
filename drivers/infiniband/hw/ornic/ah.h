/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address handles, and the address vector that they share with connections.
 */
#ifndef ORNIC_IB_AH_H
#define ORNIC_IB_AH_H

#include <rdma/ib_verbs.h>

#include <linux/ornic/hw/qp.h>

/* Address handle: the address vector as a work request carries it. */
struct ornic_ib_ah {
	struct ib_ah ibah;
	struct ornic_path path;
};

static inline struct ornic_ib_ah *to_oah(struct ib_ah *ibah)
{
	return container_of(ibah, struct ornic_ib_ah, ibah);
}

int ornic_ib_path_fill(struct ornic_path *path, const struct rdma_ah_attr *attr);
int ornic_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int ornic_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif
