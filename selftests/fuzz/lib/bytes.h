/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An input as a sequence of values, and a mutation's random numbers.
 */
#ifndef FUZZ_LIB_BYTES_H
#define FUZZ_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Entry points that libFuzzer calls, and functions that it provides */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
				 uint8_t *out, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/** struct bytes - the rest of an input */
struct bytes {
	const uint8_t *at;
	size_t left;
};

/* Return the next @n bytes of the input, or NULL if there are fewer. */
static inline const uint8_t *bytes_take(struct bytes *b, size_t n)
{
	const uint8_t *p = b->at;

	if (n > b->left)
		return NULL;
	b->at += n;
	b->left -= n;
	return p;
}

static inline uint64_t bytes_le(const uint8_t *p, int n)
{
	uint64_t v = 0;

	for (int i = n - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/** struct dice - random numbers of one mutation */
struct dice {
	uint64_t state;
};

static inline uint32_t dice_below(struct dice *d, uint32_t n)
{
	d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
	return (d->state >> 33) % n;
}

/* Return a number of interest: small, a power of two or next to one, or any */
static inline uint32_t dice_number(struct dice *d)
{
	switch (dice_below(d, 4)) {
	case 0:
		return dice_below(d, 16);
	case 1:
		return 1u << dice_below(d, 32);
	case 2:
		return (1u << dice_below(d, 32)) - 1 - dice_below(d, 2);
	default:
		return dice_below(d, 65536) << 16 | dice_below(d, 65536);
	}
}

#endif /* FUZZ_LIB_BYTES_H */
