/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fast registration: regions whose memory the kernel sets by work requests.
 */
#ifndef ORNIC_IB_FAST_REG_H
#define ORNIC_IB_FAST_REG_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct ornic_ib_dev;
struct ornic_ib_mr;
struct ornic_wqe_fast_reg;

struct ib_mr *ornic_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int ornic_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset);
void ornic_ib_fast_reg_free(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr);
int ornic_ib_put_fast_reg(const struct ornic_ib_dev *dev, struct ornic_wqe_fast_reg *seg,
			  const struct ib_reg_wr *wr);

#endif
