/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Explicit congestion notification: the two low bits of the IPv4 type of service and of the
 * IPv6 traffic class (RFC 3168).
 */
#ifndef ORNICD_PACKET_ECN_H
#define ORNICD_PACKET_ECN_H

#include <stdbool.h>
#include <stdint.h>

#define ECN_MASK	0x3
#define ECN_NOT_ECT	0x0	/* the sender does not react to marks */
#define ECN_ECT0	0x2	/* it does */
#define ECN_CE		0x3	/* congestion was experienced */

/**
 * ecn_mark() - mark a frame as having met congestion
 * @frame:	an Ethernet frame with at most one VLAN tag, in the daemon's memory
 * @len:	its bytes
 *
 * Of IPv4 the header's checksum is kept right; the ICRC of RoCEv2 leaves these bits out.
 *
 * Return: whether it has the mark now; one whose sender does not react to marks, or that is
 * not IP, stays as it is.
 */
bool ecn_mark(uint8_t *frame, uint32_t len);

/* ecn_mark_any() - the same, whatever the sender said. Return: false if it is not IP. */
bool ecn_mark_any(uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_ECN_H */
