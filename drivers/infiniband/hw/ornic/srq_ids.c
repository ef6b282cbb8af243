// SPDX-License-Identifier: GPL-2.0
/*
 * Ids of the entries of a shared receive queue of the kernel. The device completes entries in
 * any order; the id in a completion leads to the wr_id. Free ids form a list in srq->next.
 */
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "srq.h"

/* Special values in srq->next: end of the free list, posted id, id without a slot in the ring. */
#define ID_END		U32_MAX
#define ID_POSTED	(U32_MAX - 1)
#define ID_SPARE	(U32_MAX - 2)

/**
 * ornic_ib_srq_use_ids() - set the number of usable ids to the entries of a ring
 * @srq: shared receive queue of the kernel, the lock of its queue held
 * @entries: number of entries of the ring
 *
 * Posted ids stay posted; all others become free or spare.
 *
 * Return: false if more than @entries ids are posted; nothing has changed then.
 */
bool ornic_ib_srq_use_ids(struct ornic_ib_srq *srq, u32 entries)
{
	u32 *last = &srq->free;
	u32 id, posted = 0;

	for (id = 0; id < srq->ids; id++)
		posted += srq->next[id] == ID_POSTED;
	if (posted > entries)
		return false;
	entries -= posted;
	for (id = 0; id < srq->ids; id++) {
		if (srq->next[id] == ID_POSTED)
			continue;
		srq->next[id] = ID_SPARE;
		if (!entries)
			continue;
		entries--;
		*last = id;
		last = &srq->next[id];
	}
	*last = ID_END;
	return true;
}

/**
 * ornic_ib_srq_make_ids() - allocate the ids of a new queue
 * @srq: shared receive queue of the kernel
 * @count: number of entries of its ring
 *
 * Return: 0 or -ENOMEM. srq->next and srq->wq.wr are freed with the queue in both cases.
 */
int ornic_ib_srq_make_ids(struct ornic_ib_srq *srq, u32 count)
{
	srq->next = kvzalloc_objs(*srq->next, count);
	srq->wq.wr = kvzalloc_objs(*srq->wq.wr, count);
	if (!srq->next || !srq->wq.wr)
		return -ENOMEM;
	srq->ids = count;
	ornic_ib_srq_use_ids(srq, count);
	return 0;
}

/**
 * ornic_ib_srq_take_id() - allocate an id for an entry
 * @srq: shared receive queue of the kernel, the lock of its queue held
 * @wr: attributes of the work request to store
 * @id: out: the id
 *
 * Return: false if as many entries are posted as the ring holds.
 */
bool ornic_ib_srq_take_id(struct ornic_ib_srq *srq, const struct ornic_ib_wr *wr, u32 *id)
{
	*id = srq->free;
	if (*id == ID_END)
		return false;
	srq->free = srq->next[*id];
	srq->next[*id] = ID_POSTED;
	srq->wq.wr[*id] = *wr;
	return true;
}

/**
 * ornic_ib_srq_retire() - free the id of a completed entry
 * @srq: shared receive queue of the kernel
 * @id: id in the completion
 * @len: bytes that the completion reports
 * @wr_id: out: wr_id of the work request
 *
 * Context: any, takes the lock of the queue.
 *
 * Return: false if no entry with this id and room for @len is posted.
 */
bool ornic_ib_srq_retire(struct ornic_ib_srq *srq, u32 id, u32 len, u64 *wr_id)
{
	unsigned long flags;
	bool posted;

	spin_lock_irqsave(&srq->wq.lock, flags);
	posted = id < srq->ids && srq->next[id] == ID_POSTED && len <= srq->wq.wr[id].room;
	if (posted) {
		*wr_id = srq->wq.wr[id].id;
		srq->next[id] = srq->free;
		srq->free = id;
	}
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return posted;
}
