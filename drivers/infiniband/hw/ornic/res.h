/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Resource tracking: driver details of an object in "rdma res show".
 */
#ifndef ORNIC_IB_RES_H
#define ORNIC_IB_RES_H

struct ib_cq;
struct ib_mr;
struct ib_qp;
struct ib_srq;
struct sk_buff;

int ornic_ib_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int ornic_ib_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int ornic_ib_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int ornic_ib_fill_res_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int ornic_ib_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int ornic_ib_fill_res_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int ornic_ib_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);
int ornic_ib_fill_res_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif
