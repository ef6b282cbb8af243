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

/* psn_diff() - @a - @b, from -2^23 to 2^23 - 1 */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/*
 * The requester counts with 32 bits, of which the wire carries the low 24: with
 * messages of up to 2^23 packets, what is queued may span more than 24 bits can
 * order, while what is in flight may not.
 */
static inline int32_t seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/* seq_of() - the number near @near whose low 24 bits are @psn */
static inline uint32_t seq_of(uint32_t psn, uint32_t near)
{
	return near + psn_diff(psn, near);
}

/* psn_count() - packets that a message of @len bytes takes; an empty one takes one */
static inline uint32_t psn_count(uint32_t len, uint32_t mtu)
{
	return len ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

#endif /* ORNICD_ENGINE_PSN_H */
