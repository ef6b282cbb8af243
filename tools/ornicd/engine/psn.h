/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet sequence numbers: 24-bit serial arithmetic (IBTA volume 1, 9.7.2).
 */
#ifndef ORNICD_ENGINE_PSN_H
#define ORNICD_ENGINE_PSN_H

#include "../packet/bth.h"

#include <stdint.h>

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & BTH_PSN_MASK;
}

/* psn_diff() - return @a - @b, from -2^23 to 2^23 - 1 */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/*
 * seq_diff() - return @a - @b of sequence numbers of the requester
 * The requester counts with 32 bits; packets carry the low 24. Messages have up to 2^23 packets, so
 * queued messages may span more than 24 bits can order. Packets in flight span less.
 */
static inline int32_t seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/* seq_of() - return the sequence number closest to @base whose low 24 bits are @psn */
static inline uint32_t seq_of(uint32_t psn, uint32_t base)
{
	return base + psn_diff(psn, base);
}

/* psn_count() - return the packets of a message of @len bytes, at least one */
static inline uint32_t psn_count(uint32_t len, uint32_t mtu)
{
	return len ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

#endif /* ORNICD_ENGINE_PSN_H */
