/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate limits of queue pairs.
 */
#ifndef ORNIC_IB_RATE_H
#define ORNIC_IB_RATE_H

#include <linux/types.h>

struct ib_qp_attr;
struct ib_udata;
struct ornic_ib_dev;
struct ornic_ib_qp;
struct ornic_qp_modify_cmd;

u32 ornic_ib_rate_types(const struct ornic_ib_dev *dev);
int ornic_ib_rate_fill(const struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
		       const struct ib_qp_attr *attr, int mask, struct ib_udata *udata,
		       struct ornic_qp_modify_cmd *cmd);

#endif
