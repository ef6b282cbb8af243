/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Table from a 24-bit object number to the object: 4096 leaves of 4096 pointers. A context
 * has one table of queue pairs, which contains work queues too, and one of XRC SRQs.
 *
 * Polling looks up without a lock. That is safe because a leaf exists as long as the table,
 * and because an object is removed under the locks of its CQs: the two of a queue pair, the
 * one of an SRQ. A thread that polls one of them finds a valid object or none.
 *
 * The mutex of the table serialises changes. Destroy holds it from before the number is free
 * for reuse until the old completions have been dropped.
 */
#ifndef ORNIC_PROVIDER_QP_TABLE_H
#define ORNIC_PROVIDER_QP_TABLE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <ornic/types.h>

#define ORNIC_QP_LEAF_SHIFT	12
#define ORNIC_QP_LEAF_SIZE	(1u << ORNIC_QP_LEAF_SHIFT)

struct ornic_qp_leaf {
	void *_Atomic obj[ORNIC_QP_LEAF_SIZE];
};

struct ornic_qp_table {
	struct ornic_qp_leaf *_Atomic leaf[ORNIC_QP_LEAF_SIZE];
	pthread_mutex_t mutex;
};

static inline void ornic_qp_table_init(struct ornic_qp_table *table)
{
	pthread_mutex_init(&table->mutex, NULL);
}

static inline void ornic_qp_table_free(struct ornic_qp_table *table)
{
	unsigned int i;

	for (i = 0; i < ORNIC_QP_LEAF_SIZE; i++)
		free(atomic_load_explicit(&table->leaf[i], memory_order_relaxed));
	pthread_mutex_destroy(&table->mutex);
}

/*
 * Return the object with this number, or NULL. @number may be any value from the device; the
 * upper 8 bits are ignored.
 */
static inline void *ornic_qp_table_find(struct ornic_qp_table *table, uint32_t number)
{
	struct ornic_qp_leaf *leaf;

	number &= ORNIC_NUMBER_MASK;
	leaf = atomic_load_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf->obj[number & (ORNIC_QP_LEAF_SIZE - 1)],
				    memory_order_acquire);
}

/*
 * Return the object with the lowest number that is at least *@number, and store its number
 * there; NULL if there is none. Caller holds the mutex.
 */
static inline void *ornic_qp_table_next(struct ornic_qp_table *table, uint32_t *number)
{
	void *obj;

	while (*number <= ORNIC_MAX_NUMBER) {
		if (!atomic_load_explicit(&table->leaf[*number >> ORNIC_QP_LEAF_SHIFT],
					  memory_order_acquire)) {
			*number = ((*number >> ORNIC_QP_LEAF_SHIFT) + 1) << ORNIC_QP_LEAF_SHIFT;
			continue;
		}
		obj = ornic_qp_table_find(table, *number);
		if (obj)
			return obj;
		++*number;
	}
	return NULL;
}

/*
 * Add an object. Caller holds the mutex. An object that already has this number is replaced
 * without an error; the kernel does not return the number of an existing object. Return 0,
 * EINVAL for a number outside 1 to ORNIC_MAX_NUMBER, or ENOMEM.
 */
static inline int ornic_qp_table_insert(struct ornic_qp_table *table, uint32_t number,
					void *obj)
{
	struct ornic_qp_leaf *leaf;

	if (!number || number > ORNIC_MAX_NUMBER)
		return EINVAL;
	leaf = atomic_load_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
				    memory_order_relaxed);
	if (!leaf) {
		leaf = calloc(1, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		atomic_store_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT], leaf,
				      memory_order_release);
	}
	atomic_store_explicit(&leaf->obj[number & (ORNIC_QP_LEAF_SIZE - 1)], obj,
			      memory_order_release);
	return 0;
}

/* Remove the object with this number, which must be in the table. Caller holds the mutex. */
static inline void ornic_qp_table_remove(struct ornic_qp_table *table, uint32_t number)
{
	struct ornic_qp_leaf *leaf;

	leaf = atomic_load_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf->obj[number & (ORNIC_QP_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

#endif
