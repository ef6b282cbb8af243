/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive work queues of processes and tables of them, for receive scaling (rss.h).
 */
#ifndef ORNIC_IB_RWQ_H
#define ORNIC_IB_RWQ_H

#include <linux/types.h>

struct ib_pd;
struct ib_rwq_ind_table;
struct ib_rwq_ind_table_init_attr;
struct ib_udata;
struct ib_wq;
struct ib_wq_attr;
struct ib_wq_init_attr;

u32 ornic_ib_wq_handle(struct ib_wq *ibwq);
struct ib_wq *ornic_ib_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
				 struct ib_udata *udata);
int ornic_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int ornic_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		       struct ib_udata *udata);
int ornic_ib_create_rwq_table(struct ib_rwq_ind_table *table,
			      struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata);
int ornic_ib_destroy_rwq_table(struct ib_rwq_ind_table *table);

#endif
