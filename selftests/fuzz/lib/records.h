/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An input as a sequence of records, and a mutator's operations on it: it inserts, repeats,
 * moves and deletes whole records; the target changes single ones.
 */
#ifndef FUZZ_LIB_RECORDS_H
#define FUZZ_LIB_RECORDS_H

#include "bytes.h"

/**
 * struct record_kind - what a target says of its records
 * @length:	bytes of the record at @p, of which @left are there; 0 if it is cut off
 * @make:	write a new one of at most @max bytes. Return: its bytes, 0 if there is no room.
 * @change:	change the record of @len bytes, which may grow to @max. Return: its bytes.
 */
struct record_kind {
	size_t (*length)(const uint8_t *p, size_t left);
	size_t (*make)(struct dice *d, uint8_t *p, size_t max);
	size_t (*change)(struct dice *d, uint8_t *p, size_t len, size_t max);
};

size_t records_mutate(const struct record_kind *k, uint8_t *data, size_t size, size_t max,
		      unsigned int seed);
size_t records_cross(const struct record_kind *k, const uint8_t *a, size_t na, const uint8_t *b,
		     size_t nb, uint8_t *out, size_t max, unsigned int seed);

#endif /* FUZZ_LIB_RECORDS_H */
