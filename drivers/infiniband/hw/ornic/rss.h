/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs for receive scaling: a hash and a table of work queues (rwq.h).
 */
#ifndef ORNIC_IB_RSS_H
#define ORNIC_IB_RSS_H

struct ib_qp_attr;
struct ib_qp_init_attr;
struct ib_udata;
struct ornic_ib_dev;
struct ornic_ib_qp;

int ornic_ib_rss_create(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			struct ib_qp_init_attr *attr, struct ib_udata *udata);
void ornic_ib_rss_destroy(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
int ornic_ib_rss_modify(struct ornic_ib_qp *qp, const struct ib_qp_attr *attr, int mask);
void ornic_ib_rss_query(const struct ornic_ib_qp *qp, struct ib_qp_attr *attr,
			struct ib_qp_init_attr *init);

#endif
