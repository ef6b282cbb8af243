/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flush completions that the driver generates because the device writes none.
 */
#ifndef ORNIC_IB_SOFT_FLUSH_H
#define ORNIC_IB_SOFT_FLUSH_H

#include <linux/types.h>

struct ib_cq;
struct ib_wc;
struct ornic_ib_cq;
struct ornic_ib_dev;
struct ornic_ib_qp;
struct work_struct;

bool ornic_ib_is_soft(const struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);
void ornic_ib_soft_device(struct ornic_ib_dev *dev);
void ornic_ib_soft_cq(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq);
void ornic_ib_soft_qp(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
void ornic_ib_soft_posted(struct ornic_ib_qp *qp, struct ib_cq *ibcq);
bool ornic_ib_soft_pending(struct ornic_ib_cq *cq);
int ornic_ib_soft_poll(struct ornic_ib_cq *cq, int num_entries, struct ib_wc *wc);
void ornic_ib_soft_kick(struct work_struct *work);

#endif
