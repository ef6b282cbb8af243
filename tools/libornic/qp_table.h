/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Number to object, queue pair or XRC SRQ: an array of 4096 leaves of 4096 pointers.
 *
 * Polling looks up without a lock. That is safe because a leaf lives as long as
 * the table, and because a queue pair is taken out under the locks of its two
 * CQs: a poller of these either finds it alive or does not find it. Changes
 * are serialised by @mutex, which destroy holds from before the number is free
 * for reuse until the old completions are gone.
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

/* NULL if no object has this number; @number may be any 32-bit value. */
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

/* Find the first object with a number from *@number on and store its number there; NULL if none. */
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

/* Caller holds the mutex. Zero or an errno. */
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

/* Caller holds the mutex and inserted @number. */
static inline void ornic_qp_table_remove(struct ornic_qp_table *table, uint32_t number)
{
	struct ornic_qp_leaf *leaf;

	leaf = atomic_load_explicit(&table->leaf[number >> ORNIC_QP_LEAF_SHIFT],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf->obj[number & (ORNIC_QP_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

#endif
