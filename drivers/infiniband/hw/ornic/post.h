/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Post work requests of the kernel to a queue pair. srq.h has the verb of a shared receive
 * queue.
 */
#ifndef ORNIC_IB_POST_H
#define ORNIC_IB_POST_H

#include <linux/types.h>

struct ib_qp;
struct ib_recv_wr;
struct ib_send_wr;
struct ib_sge;
struct ornic_ib_wq;
struct ornic_sge;

/* post_send.c */
int ornic_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr);
void ornic_ib_put_sges(struct ornic_sge *sge, const struct ib_sge *list, int count);

/* post_recv.c */
int ornic_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
void ornic_ib_put_rwqe(struct ornic_ib_wq *wq, u32 index, u32 id, const struct ib_recv_wr *wr);
u32 ornic_ib_recv_room(const struct ib_recv_wr *wr);

#endif
