/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flow steering: receive rules of raw packet queue pairs.
 */
#ifndef ORNIC_IB_FLOW_H
#define ORNIC_IB_FLOW_H

struct ib_flow;
struct ib_flow_attr;
struct ib_qp;
struct ib_udata;

struct ib_flow *ornic_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				     struct ib_udata *udata);
int ornic_ib_destroy_flow(struct ib_flow *ibflow);

#endif
