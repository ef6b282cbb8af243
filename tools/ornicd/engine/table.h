/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers to objects. Slots are reused in the order they were freed, so that a
 * number comes back as late as possible (ORN-ADM-20).
 */
#ifndef ORNICD_ENGINE_TABLE_H
#define ORNICD_ENGINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct table - numbers @first .. @first + @max - 1
 * @obj:	objects by number - @first; grows up to @max
 * @next_free:	per free slot: next in the FIFO of free slots
 * @head:	oldest free slot, or UINT32_MAX
 * @tail:	youngest free slot
 * @used:	objects in the table
 * @cap:	slots allocated
 * @max:	slots at most
 * @first:	lowest number
 */
struct table {
	void **obj;
	uint32_t *next_free;
	uint32_t head;
	uint32_t tail;
	uint32_t used;
	uint32_t cap;
	uint32_t max;
	uint32_t first;
};

void table_init(struct table *t, uint32_t first, uint32_t max);
void table_fini(struct table *t);

/* table_add() - Return: 0 and the number in *@number; -ENOSPC, -ENOMEM. */
int table_add(struct table *t, void *obj, uint32_t *number);
/* table_add_random() - the same, at an unpredictable free number (ORN-MEM-9). */
int table_add_random(struct table *t, void *obj, uint32_t *number);
void table_del(struct table *t, uint32_t number);

/* table_next() - the first object at or after *@number; NULL at the end. */
void *table_next(const struct table *t, uint32_t *number);

/*
 * table_slot() - @slot, or 0 when the processor only believes it to be below @cap: numbers
 * are the guest's, and a load behind a mispredicted check must not go by them.
 */
static inline uint32_t table_slot(uint32_t slot, uint32_t cap)
{
	int64_t below = slot;

	__asm__ volatile("" : "+r" (below));	/* the compiler has seen the check, too */
	return slot & (uint32_t)((below - cap) >> 63);
}

static inline void *table_get(const struct table *t, uint32_t number)
{
	uint32_t slot = number - t->first;

	return slot < t->cap ? t->obj[table_slot(slot, t->cap)] : NULL;
}

#endif /* ORNICD_ENGINE_TABLE_H */
