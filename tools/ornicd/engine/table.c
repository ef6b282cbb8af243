// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of objects by number.
 *
 * Free slots are in a FIFO. The table grows when it is half full, so that a freed number is not
 * used again for at least that many additions. A random addition takes a slot from the middle of
 * the FIFO and leaves its link there; table_add() skips such a link, because the slot is taken. So
 * the link of a slot may be in the FIFO while the slot is in use, but never twice.
 */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Values of next_free that are not slots */
#define SLOT_END	UINT32_MAX
#define SLOT_UNLINKED	(UINT32_MAX - 1)

/* First size of a table with ordered numbers, and with random numbers */
#define TABLE_START		1024
#define TABLE_START_RANDOM	65536

/* Slots of a word of the bitmap */
#define WORD		64

/* Random slots that table_add_random() tries before it searches upwards */
#define TABLE_GUESSES		32

void table_init(struct table *t, uint32_t first, uint32_t max)
{
	*t = (struct table){ .head = SLOT_END, .tail = SLOT_END, .max = max, .first = first };
}

void table_fini(struct table *t)
{
	free(t->obj);
	free(t->next_free);
	free(t->taken);
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

static uint32_t words(uint32_t slots)
{
	return (slots + WORD - 1) / WORD;
}

static int table_grow(struct table *t, uint32_t start)
{
	uint64_t cap = t->cap ? 2ull * t->cap : start;
	uint64_t *taken;
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
	taken = realloc(t->taken, words(cap) * sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	memset(taken + words(t->cap), 0, (words(cap) - words(t->cap)) * sizeof(*taken));
	t->taken = taken;
	for (uint32_t slot = t->cap; slot < cap; slot++) {
		t->obj[slot] = NULL;
		table_link(t, slot);
	}
	t->cap = cap;
	return 0;
}

/* Make room: half of the slots free if possible, one at least. Return: 0, -ENOSPC or -ENOMEM. */
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
	t->taken[slot / WORD] |= 1ull << slot % WORD;
	t->used++;
	*number = t->first + slot;
}

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

void table_del(struct table *t, uint32_t number)
{
	uint32_t slot = number - t->first;

	if (!table_get(t, number))
		return;
	t->obj[slot] = NULL;
	t->taken[slot / WORD] &= ~(1ull << slot % WORD);
	t->used--;
	if (t->next_free[slot] == SLOT_UNLINKED)
		table_link(t, slot);
}

void *table_next(const struct table *t, uint32_t *number)
{
	uint32_t slot = *number < t->first ? 0 : *number - t->first;
	uint64_t mask = UINT64_MAX << slot % WORD;

	if (!t->used)
		return NULL;
	for (uint32_t i = slot / WORD; i < words(t->cap); i++, mask = UINT64_MAX) {
		uint64_t word = t->taken[i] & mask;

		if (word) {
			slot = i * WORD + __builtin_ctzll(word);
			*number = t->first + slot;
			return t->obj[slot];
		}
	}
	return NULL;
}
