/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tables of objects by number. Slots are reused in the order in which they were freed, so that a
 * number is used again as late as possible (admin.rst).
 */
#ifndef ORNICD_ENGINE_TABLE_H
#define ORNICD_ENGINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct table - objects with numbers @first .. @first + @max - 1
 * @obj:	objects by slot (number - @first); grows up to @max
 * @next_free:	by slot: next slot in the FIFO of free slots
 * @taken:	a bit per slot that has an object, for table_next()
 * @head:	oldest free slot, or UINT32_MAX
 * @tail:	youngest free slot
 * @used:	objects in the table
 * @cap:	slots allocated
 * @max:	most slots
 * @first:	lowest number
 */
struct table {
	void **obj;
	uint32_t *next_free;
	uint64_t *taken;
	uint32_t head;
	uint32_t tail;
	uint32_t used;
	uint32_t cap;
	uint32_t max;
	uint32_t first;
};

/* table_init() - initialise an empty table for at most @max objects with numbers from @first on */
void table_init(struct table *t, uint32_t first, uint32_t max);
/* table_fini() - free the table, not the objects */
void table_fini(struct table *t);

/*
 * table_add() - add @obj, which is not NULL, at the number that has been free for longest
 * Return: 0 with the number in *@number; -ENOSPC if the table is full, or -ENOMEM.
 */
int table_add(struct table *t, void *obj, uint32_t *number);
/*
 * table_add_random() - add @obj, which is not NULL, at an unpredictable free number (ORN-MEM-9)
 * Return: 0 with the number in *@number; -ENOSPC, -ENOMEM, or -EIO without random numbers.
 */
int table_add_random(struct table *t, void *obj, uint32_t *number);
/* table_del() - free @number; a number without object is ignored */
void table_del(struct table *t, uint32_t number);

/*
 * table_next() - find the first object at or after *@number, for a walk
 * Return: the object with its number in *@number, or NULL at the end.
 */
void *table_next(const struct table *t, uint32_t *number);

/*
 * table_slot() - return @slot, or 0 in speculative execution behind a mispredicted check of @slot
 * against @cap
 * Numbers come from the guest. Without this, it could read memory outside of the table by
 * speculation (Spectre v1).
 */
static inline uint32_t table_slot(uint32_t slot, uint32_t cap)
{
	int64_t below = slot;

	/* Hide the value: the compiler knows the check and would remove the mask. */
	__asm__ volatile("" : "+r" (below));
	return slot & (uint32_t)((below - cap) >> 63);
}

/* table_get() - return the object with @number, or NULL */
static inline void *table_get(const struct table *t, uint32_t number)
{
	uint32_t slot = number - t->first;

	return slot < t->cap ? t->obj[table_slot(slot, t->cap)] : NULL;
}

#endif /* ORNICD_ENGINE_TABLE_H */
