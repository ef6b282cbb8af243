// SPDX-License-Identifier: GPL-2.0
/*
 * Mutations of sequences of records.
 */
#include "records.h"

#include <stdlib.h>

#define RECORDS_MAX	256

/** struct row - places of the records of an input; @at[@n] is the end of the last */
struct row {
	size_t at[RECORDS_MAX + 1];
	uint32_t n;
};

static void row_read(const struct record_kind *k, const uint8_t *data, size_t size,
		     struct row *row)
{
	size_t at = 0, len;

	row->n = 0;
	while (row->n < RECORDS_MAX && at < size) {
		len = k->length(data + at, size - at);
		if (!len)
			break;
		row->at[row->n++] = at;
		at += len;
	}
	row->at[row->n] = at;
}

/* Replace @gone bytes at @at by @len bytes, if there is room. Return: bytes of the input. */
static size_t replace(uint8_t *data, size_t size, size_t max, size_t at, size_t gone,
		      const uint8_t *rec, size_t len)
{
	if (size - gone + len > max)
		return size;
	memmove(data + at + len, data + at + gone, size - at - gone);
	memcpy(data + at, rec, len);
	return size - gone + len;
}

static size_t mutate_once(const struct record_kind *k, struct dice *d, uint8_t *data, size_t size,
			  size_t max)
{
	static uint8_t rec[65536];
	struct row row;
	uint32_t i, j;
	size_t len, n;

	row_read(k, data, size, &row);
	size = row.at[row.n];
	i = row.n ? dice_below(d, row.n) : 0;
	j = dice_below(d, row.n + 1);
	len = row.n ? row.at[i + 1] - row.at[i] : 0;
	if (len > sizeof(rec) / 2)
		return size;
	memcpy(rec, data + row.at[i], len);
	switch (row.n ? dice_below(d, 16) : 0) {
	case 0:
	case 1:
	case 2:
		n = k->make(d, rec, sizeof(rec));
		return replace(data, size, max, row.at[j], 0, rec, n);
	case 3:				/* copy it to some place */
		return replace(data, size, max, row.at[j], 0, rec, len);
	case 4:
		return replace(data, size, max, row.at[i], len, rec, 0);
	case 5:				/* move it elsewhere */
		size = replace(data, size, max, row.at[i], len, rec, 0);
		row_read(k, data, size, &row);
		return replace(data, size, max, row.at[dice_below(d, row.n + 1)], 0, rec, len);
	case 6:				/* change arbitrary bytes */
		return LLVMFuzzerMutate(data, size, max);
	case 7:				/* duplicate it with a small change */
		n = k->change(d, rec, len, sizeof(rec));
		return replace(data, size, max, row.at[i + 1], 0, rec, n);
	default:
		n = k->change(d, rec, len, sizeof(rec));
		return replace(data, size, max, row.at[i], len, rec, n);
	}
}

size_t records_mutate(const struct record_kind *k, uint8_t *data, size_t size, size_t max,
		      unsigned int seed)
{
	struct dice d = { seed };

	for (uint32_t n = 1 + dice_below(&d, 4); n; n--)
		size = mutate_once(k, &d, data, size, max);
	return size;
}

size_t records_cross(const struct record_kind *k, const uint8_t *a, size_t na, const uint8_t *b,
		     size_t nb, uint8_t *out, size_t max, unsigned int seed)
{
	struct dice d = { seed };
	struct row ra, rb;
	size_t head, tail;

	row_read(k, a, na, &ra);
	row_read(k, b, nb, &rb);
	head = ra.at[dice_below(&d, ra.n + 1)];
	tail = rb.at[dice_below(&d, rb.n + 1)];
	if (head > max)
		return 0;
	memcpy(out, a, head);
	tail = rb.at[rb.n] - tail;
	if (tail > max - head)
		tail = max - head;
	memcpy(out + head, b + rb.at[rb.n] - tail, tail);
	return head + tail;
}
