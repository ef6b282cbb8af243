/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes that identify their place.
 *
 * Data is an endless stream made from a seed; byte i of a message is byte i of its
 * stream, whatever memory it lies in. Guards depend on the address offset in their
 * area, so that a copy of one guard over another one is detected.
 */
#ifndef GUEST_PATTERN_H
#define GUEST_PATTERN_H

#include <stddef.h>
#include <stdint.h>

void pattern_fill(uint8_t *to, size_t len, uint64_t seed, uint64_t start);
/* Return the offset of the first wrong byte, or len. */
size_t pattern_check(const uint8_t *at, size_t len, uint64_t seed, uint64_t start);
/* Return the first eight bytes of a stream, as a number in memory order. */
uint64_t pattern_word(uint64_t seed);

void guard_fill(uint8_t *area, size_t from, size_t to);
size_t guard_check(const uint8_t *area, size_t from, size_t to);
uint8_t guard_byte(size_t offset);

#define CHECKSUM_START	0xcbf29ce484222325ull
/* FNV-1a over 64-bit words, the last one padded with zeros. */
uint64_t checksum(uint64_t sum, const uint8_t *at, size_t len);

#endif
