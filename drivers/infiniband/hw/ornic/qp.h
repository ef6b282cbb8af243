/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs: create, modify, query and destroy, and their rings. post.h has the verbs that
 * post to them.
 */
#ifndef ORNIC_IB_QP_H
#define ORNIC_IB_QP_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "buf.h"
#include "event.h"
#include "wq.h"

struct ornic_ib_dev;
struct ornic_ib_pagelist;
struct ornic_qp_create_cmd;

/**
 * struct ornic_ib_geom - rings of a queue pair
 * @sq_log: log2 of the send entries, ORNIC_NO_RING without a send queue
 * @sq_stride: log2 bytes of a send entry
 * @rq_log: log2 of the receive entries, ORNIC_NO_RING without a receive queue
 * @rq_stride: log2 bytes of a receive entry
 */
struct ornic_ib_geom {
	u8 sq_log;
	u8 sq_stride;
	u8 rq_log;
	u8 rq_stride;
};

/* Bit of ornic_ib_qp.told: event LAST_WQE */
#define ORNIC_IB_QP_LAST_WQE	0

/**
 * struct ornic_ib_qp - queue pair
 * @ibqp: ib_core's part; its qp_num is the number on the wire
 * @ref: keeps the queue pair while an event is delivered
 * @qpn: handle in the device; differs from qp_num for the GSI
 * @mutex: protects @dest_qpn, @members and the order of transitions
 * @state: state that the last modify requested; in the device it may be SQE or ERR
 * @life_lock: serialises events that change @dead and @told with entry into RESET
 * @before_reset: position of the last event that may precede the last entry into RESET
 * @dead: the device stopped serving it without flushing since RESET (ORN-QP-22)
 * @told: bit ORNIC_IB_QP_LAST_WQE: the event was delivered since RESET
 * @owner: doorbell page of its process, ORNIC_IB_DRIVER for the kernel and for XRC targets
 * @dest_qpn: remote queue pair, of a connected one
 * @members: its multicast groups
 * @cap: capabilities as reported to the user
 * @rss: an RSS group without queues, whose number is @qpn
 * @wq: work queue that it implements, or NULL
 * @sig_all: every send completes with an entry
 * @geom: its rings
 * @ubuf: rings and records of a process
 * @kbuf: rings and records of the kernel
 * @sq: send queue of the kernel
 * @rq: receive queue of the kernel
 */
struct ornic_ib_qp {
	struct ib_qp ibqp;
	struct ornic_ib_ref ref;
	u32 qpn;
	struct mutex mutex;	/* see above */
	enum ib_qp_state state;
	spinlock_t life_lock;	/* see above */
	u64 before_reset;
	bool dead;
	unsigned long told;
	u32 owner;
	u32 dest_qpn;
	struct list_head members;
	struct ib_qp_cap cap;
	bool rss;
	struct ib_wq *wq;
	bool sig_all;
	struct ornic_ib_geom geom;
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_wq sq;
	struct ornic_ib_wq rq;
};

static inline struct ornic_ib_qp *to_oqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct ornic_ib_qp, ibqp);
}

/* Return true for an end of an XRC connection. It has no receive queue; a target has no queue. */
static inline bool ornic_ib_is_xrc(enum ib_qp_type type)
{
	return type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
}

/* Return true for a queue pair with one peer: its work requests contain no address vector. */
static inline bool ornic_ib_connected(enum ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_XRC_INI;
}

/* qp.c */
int ornic_ib_qp_make(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
		     const struct ib_qp_init_attr *attr, struct ib_udata *udata);
void ornic_ib_qp_unmake(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
int ornic_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int ornic_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* qp_queues.c */
void ornic_ib_no_queues(struct ornic_ib_qp *qp);
int ornic_ib_user_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp, struct ib_udata *udata);
int ornic_ib_kernel_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
void ornic_ib_queues_free(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
int ornic_ib_queues_describe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			     struct ornic_qp_create_cmd *cmd, struct ornic_ib_pagelist *lists);

/* qp_modify.c */
int ornic_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata);
int ornic_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *init);

#endif
