/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues of processes and of the kernel.
 */
#ifndef ORNIC_IB_SRQ_H
#define ORNIC_IB_SRQ_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "buf.h"
#include "event.h"
#include "wq.h"

struct ornic_ib_dev;
struct ornic_ib_ring;

/**
 * struct ornic_ib_srq - shared receive queue
 * @ibsrq: ib_core's part
 * @ref: keeps the SRQ while an event is delivered
 * @srqn: number in the device
 * @max_wr: entries, as reported to the user; under @modify
 * @max_sge: SGEs of an entry, as reported to the user
 * @modify: one modify at a time; process context
 * @ubuf: ring and record of a process
 * @kbuf: ring and record of the kernel; the members that follow are for these only, except
 *	@wq.log and @wq.stride
 * @wq: the ring, whose place changes under its lock; wr is indexed by id
 * @next: by id: next free id, or a mark for posted or spare; under the lock of @wq
 * @ids: size of @next and wr; as many ids as the ring has entries are not spare
 * @free: first free id; under the lock of @wq
 * @coming: new ring during a resize, else NULL; under the lock of @wq
 */
struct ornic_ib_srq {
	struct ib_srq ibsrq;
	struct ornic_ib_ref ref;
	u32 srqn;
	u32 max_wr;
	u32 max_sge;
	struct mutex modify;	/* see above */
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_wq wq;
	u32 *next;
	u32 ids;
	u32 free;
	struct ornic_ib_ring *coming;
};

static inline struct ornic_ib_srq *to_osrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct ornic_ib_srq, ibsrq);
}

/* srq.c */
u8 ornic_ib_srq_log(u32 max_wr);
void ornic_ib_srq_adopt(struct ornic_ib_srq *srq, struct ornic_ib_ring *ring);
int ornic_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
			struct ib_udata *udata);
int ornic_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int ornic_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata);
int ornic_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int ornic_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr);

/* srq_ids.c */
bool ornic_ib_srq_use_ids(struct ornic_ib_srq *srq, u32 entries);
int ornic_ib_srq_make_ids(struct ornic_ib_srq *srq, u32 count);
bool ornic_ib_srq_take_id(struct ornic_ib_srq *srq, const struct ornic_ib_wr *wr, u32 *id);
bool ornic_ib_srq_retire(struct ornic_ib_srq *srq, u32 id, u32 len, u64 *wr_id);

/* srq_resize.c */
int ornic_ib_srq_resize(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
			struct ib_srq_attr *attr, bool limit, struct ib_udata *udata);
void ornic_ib_srq_post_coming(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq, u32 first);

#endif
