/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Table from a 24-bit object number to the object: 4096 leaves of 4096 slots. A context has one
 * table of send queues, one of receive queues, which contains work queues too, and one of XRC SRQs.
 *
 * Polling looks up without a lock. Numbers come from the device, so the object may complete to
 * another CQ, and another thread may free it at any time. Therefore a slot names the CQ, and the
 * object is used only if that is the CQ whose lock the thread holds: an object is removed under
 * the lock of its CQ. A leaf exists as long as the table. A slot lies in one cache line.
 *
 * No mutex serialises changes, for the reasons in ornic.h. The kernel gives a number to one object
 * at a time, so a slot has one writer: the thread that creates the object, then the one that
 * destroys it.
 */
#ifndef ORNIC_PROVIDER_QP_TABLE_H
#define ORNIC_PROVIDER_QP_TABLE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <ornic/types.h>

#define ORNIC_QP_LEAF_SHIFT	12
#define ORNIC_QP_LEAF_SIZE	(1u << ORNIC_QP_LEAF_SHIFT)
#define ORNIC_QP_WAIT_MS	1000	/* longest wait for a number that is still in use */

struct ornic_cq;

struct ornic_qp_slot {
	struct ornic_cq *_Atomic cq;	/* CQ of the object; NULL: the slot is free */
	void *obj;			/* valid while @cq is set */
};

struct ornic_qp_leaf {
	struct ornic_qp_slot slot[ORNIC_QP_LEAF_SIZE];
};

struct ornic_qp_table {
	struct ornic_qp_leaf *_Atomic leaf[ORNIC_QP_LEAF_SIZE];
};

static inline void ornic_qp_table_free(struct ornic_qp_table *table)
{
	unsigned int i;

	for (i = 0; i < ORNIC_QP_LEAF_SIZE; i++)
		free(atomic_load_explicit(&table->leaf[i], memory_order_relaxed));
}

/* Return the slot of a number of 24 bits, or NULL if its leaf was never needed. */
static inline struct ornic_qp_slot *ornic_qp_table_slot(struct ornic_qp_table *table,
							uint32_t number)
{
	struct ornic_qp_leaf *leaf;

	leaf = atomic_load_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
				    memory_order_acquire);
	return leaf ? &leaf->slot[number & (ORNIC_QP_LEAF_SIZE - 1)] : NULL;
}

/*
 * Return the object with this number that completes to @cq, or NULL. @number may be any value
 * from the device; the upper 8 bits are ignored. Caller holds the lock of @cq, and may use the
 * object until it releases the lock.
 */
static inline void *ornic_qp_table_find(struct ornic_qp_table *table, uint32_t number,
					const struct ornic_cq *cq)
{
	struct ornic_qp_slot *slot = ornic_qp_table_slot(table, number & ORNIC_NUMBER_MASK);

	if (!slot || atomic_load_explicit(&slot->cq, memory_order_acquire) != cq)
		return NULL;
	return slot->obj;
}

/*
 * Return the object with the lowest number that is at least *@number and that completes to @cq,
 * and store its number there; NULL if there is none. Caller holds the lock of @cq.
 */
static inline void *ornic_qp_table_next(struct ornic_qp_table *table, uint32_t *number,
					const struct ornic_cq *cq)
{
	void *obj;

	while (*number <= ORNIC_MAX_NUMBER) {
		if (!ornic_qp_table_slot(table, *number)) {
			*number = ((*number >> ORNIC_QP_LEAF_SHIFT) + 1) << ORNIC_QP_LEAF_SHIFT;
			continue;
		}
		obj = ornic_qp_table_find(table, *number, cq);
		if (obj)
			return obj;
		++*number;
	}
	return NULL;
}

/*
 * Return the slot of a number of 24 bits, whose leaf is allocated if it is missing; NULL without
 * memory. Of two threads that allocate a leaf, one frees its own.
 */
static inline struct ornic_qp_slot *ornic_qp_table_grow(struct ornic_qp_table *table,
							uint32_t number)
{
	struct ornic_qp_leaf *leaf, *none = NULL;

	if (ornic_qp_table_slot(table, number))
		return ornic_qp_table_slot(table, number);
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		return NULL;
	if (!atomic_compare_exchange_strong_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
						     &none, leaf, memory_order_acq_rel,
						     memory_order_acquire))
		free(leaf);
	return ornic_qp_table_slot(table, number);
}

/*
 * Add an object that completes to @cq.
 *
 * The kernel may reuse the number of an object that another thread is destroying: the command has
 * completed, but the thread has not removed the object. Wait for that, because the completions of
 * the two objects have the same number. Such a reuse is rare (ORN-ADM-20). The wait is limited,
 * because the other thread may wait for the caller: for the lock of a CQ that the caller polls, or
 * for the acknowledgment of an event.
 *
 * Return 0, EINVAL for a number outside 1 to ORNIC_MAX_NUMBER, ENOMEM, or EAGAIN if the number is
 * in use for longer than the limit.
 */
static inline int ornic_qp_table_insert(struct ornic_qp_table *table, uint32_t number,
					struct ornic_cq *cq, void *obj)
{
	struct ornic_qp_slot *slot;
	unsigned int waited = 0;

	if (!number || number > ORNIC_MAX_NUMBER)
		return EINVAL;
	slot = ornic_qp_table_grow(table, number);
	if (!slot)
		return ENOMEM;
	while (atomic_load_explicit(&slot->cq, memory_order_acquire)) {
		if (waited++ == ORNIC_QP_WAIT_MS)
			return EAGAIN;
		usleep(1000);
	}
	slot->obj = obj;
	atomic_store_explicit(&slot->cq, cq, memory_order_release);
	return 0;
}

/* Remove the object with this number, which is in the table. Caller holds the lock of its CQ. */
static inline void ornic_qp_table_remove(struct ornic_qp_table *table, uint32_t number)
{
	atomic_store_explicit(&ornic_qp_table_slot(table, number)->cq, NULL, memory_order_release);
}

#endif
