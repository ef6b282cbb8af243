// SPDX-License-Identifier: GPL-2.0
/*
 * Patterned data, guards and checksums.
 */
#include "pattern.h"

#include <string.h>

#define GUARD_SEED	0x6a09e667f3bcc908ull

/*
 * Compute word n of a stream. Cheap, because a gigabyte of it is generated and compared
 * under emulation.
 */
static inline uint64_t word(uint64_t seed, uint64_t n)
{
	uint64_t x = (seed + n) * 0x9e3779b97f4a7c15ull;

	return x ^ (x >> 29);
}

static inline uint8_t byte(uint64_t seed, uint64_t i)
{
	return word(seed, i >> 3) >> ((i & 7) * 8);
}

void pattern_fill(uint8_t *to, size_t len, uint64_t seed, uint64_t start)
{
	size_t i = 0;

	for (; i < len && ((start + i) & 7); i++)
		to[i] = byte(seed, start + i);
	for (; i + 8 <= len; i += 8) {
		uint64_t w = word(seed, (start + i) >> 3);

		memcpy(to + i, &w, 8);
	}
	for (; i < len; i++)
		to[i] = byte(seed, start + i);
}

size_t pattern_check(const uint8_t *at, size_t len, uint64_t seed, uint64_t start)
{
	size_t i = 0;

	for (; i < len && ((start + i) & 7); i++)
		if (at[i] != byte(seed, start + i))
			return i;
	for (; i + 8 <= len; i += 8) {
		uint64_t w;

		memcpy(&w, at + i, 8);
		if (w != word(seed, (start + i) >> 3))
			break;
	}
	for (; i < len; i++)
		if (at[i] != byte(seed, start + i))
			return i;
	return len;
}

uint64_t pattern_word(uint64_t seed)
{
	return word(seed, 0);
}

uint8_t guard_byte(size_t offset)
{
	return byte(GUARD_SEED, offset);
}

void guard_fill(uint8_t *area, size_t from, size_t to)
{
	pattern_fill(area + from, to - from, GUARD_SEED, from);
}

size_t guard_check(const uint8_t *area, size_t from, size_t to)
{
	return from + pattern_check(area + from, to - from, GUARD_SEED, from);
}

uint64_t checksum(uint64_t sum, const uint8_t *at, size_t len)
{
	size_t i = 0;
	uint64_t w;

	for (; i + 8 <= len; i += 8) {
		memcpy(&w, at + i, 8);
		sum = (sum ^ w) * 0x100000001b3ull;
		sum ^= sum >> 32;
	}
	w = 0;
	memcpy(&w, at + i, len - i);
	return (sum ^ w) * 0x100000001b3ull;
}
