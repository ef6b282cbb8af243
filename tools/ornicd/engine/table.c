// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers to objects.
 *
 * Free slots wait in a FIFO. The table grows while it is half full, long before
 * it must, so that a number rests for at least that many additions. A random
 * addition takes a slot from the middle of the FIFO and leaves its link where it
 * is: whoever meets the link later sees that the slot is taken and skips it.
 * Hence a slot's link may be in the FIFO while the slot is in use, but never twice.
 */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* Values of next_free that are not slots. */
#define SLOT_END	UINT32_MAX
#define SLOT_UNLINKED	(UINT32_MAX - 1)

/* Slots that a table starts with: numbers given in order, numbers given at random. */
#define TABLE_START		1024
#define TABLE_START_RANDOM	65536

/* Guesses before a random addition searches upwards instead. */
#define TABLE_GUESSES		32

/**
 * table_init() - make an empty table
 * @t:		table
 * @first:	lowest number
 * @max:	most objects
 */
void table_init(struct table *t, uint32_t first, uint32_t max)
{
	*t = (struct table){ .head = SLOT_END, .tail = SLOT_END, .max = max, .first = first };
}

/**
 * table_fini() - free the table; the objects are the caller's
 * @t:	table
 */
void table_fini(struct table *t)
{
	free(t->obj);
	free(t->next_free);
	table_init(t, t->first, t->max);
}

static void table_link(struct table *t, uint32_t slot)
{
	t->next_free[slot] = SLOT_END;
	if (t->head == SLOT_END)
		t->head = slot;
	else
		t->next_free[t->tail] = slot;
	t->tail = slot;
}

static int table_grow(struct table *t, uint32_t start)
{
	uint64_t cap = t->cap ? 2ull * t->cap : start;
	uint32_t *next;
	void **obj;

	if (cap > t->max)
		cap = t->max;
	if (cap == t->cap)
		return -ENOSPC;
	obj = realloc(t->obj, cap * sizeof(*obj));
	if (!obj)
		return -ENOMEM;
	t->obj = obj;
	next = realloc(t->next_free, cap * sizeof(*next));
	if (!next)
		return -ENOMEM;
	t->next_free = next;
	for (uint32_t slot = t->cap; slot < cap; slot++) {
		t->obj[slot] = NULL;
		table_link(t, slot);
	}
	t->cap = cap;
	return 0;
}

/* See that there is a free slot, and if possible that half of them are. */
static int table_room(struct table *t, uint32_t start)
{
	int err = 0;

	if (t->used >= t->cap / 2)
		err = table_grow(t, start);
	return t->used < t->cap ? 0 : err;
}

static void table_put(struct table *t, uint32_t slot, void *obj, uint32_t *number)
{
	t->obj[slot] = obj;
	t->used++;
	*number = t->first + slot;
}

/**
 * table_add() - give an object the number that has been free for longest
 * @t:		table
 * @obj:	not NULL
 * @number:	set to its number
 *
 * Return: 0, -ENOSPC if the table is full, -ENOMEM.
 */
int table_add(struct table *t, void *obj, uint32_t *number)
{
	int err = table_room(t, TABLE_START);
	uint32_t slot;

	if (err)
		return err;
	do {
		slot = t->head;
		t->head = t->next_free[slot];
		t->next_free[slot] = SLOT_UNLINKED;
	} while (t->obj[slot]);
	table_put(t, slot, obj, number);
	return 0;
}

/**
 * table_add_random() - give an object an unpredictable number
 * @t:		table
 * @obj:	not NULL
 * @number:	set to its number
 *
 * Return: 0, -ENOSPC if the table is full, -ENOMEM, -EIO without random numbers.
 */
int table_add_random(struct table *t, void *obj, uint32_t *number)
{
	uint32_t guess[TABLE_GUESSES];
	int err = table_room(t, TABLE_START_RANDOM);
	uint32_t slot = 0;

	if (err)
		return err;
	if (getrandom(guess, sizeof(guess), 0) != sizeof(guess))
		return -EIO;
	for (uint32_t i = 0; i < TABLE_GUESSES; i++) {
		slot = guess[i] % t->cap;
		if (!t->obj[slot])
			break;
	}
	while (t->obj[slot])
		slot = slot + 1 < t->cap ? slot + 1 : 0;
	table_put(t, slot, obj, number);
	return 0;
}

/**
 * table_del() - free a number
 * @t:		table
 * @number:	of an object in the table; anything else is ignored
 */
void table_del(struct table *t, uint32_t number)
{
	uint32_t slot = number - t->first;

	if (!table_get(t, number))
		return;
	t->obj[slot] = NULL;
	t->used--;
	if (t->next_free[slot] == SLOT_UNLINKED)
		table_link(t, slot);
}

/**
 * table_next() - walk the table
 * @t:		table
 * @number:	where to start; set to the number of the object found
 *
 * Return: the first object at or after *@number, or NULL.
 */
void *table_next(const struct table *t, uint32_t *number)
{
	uint32_t slot = *number < t->first ? 0 : *number - t->first;

	for (; slot < t->cap; slot++) {
		if (t->obj[slot]) {
			*number = t->first + slot;
			return t->obj[slot];
		}
	}
	return NULL;
}
