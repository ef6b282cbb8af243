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
#define ECN_ECT0	0x2	/* the sender reacts to marks */
#define ECN_CE		0x3	/* congestion was experienced */

/**
 * ecn_mark() - set the congestion mark (CE) of an IP packet whose sender reacts to marks
 * @frame:	an Ethernet frame with at most one VLAN tag, in the daemon's memory
 * @len:	bytes of the frame
 *
 * Updates the checksum of an IPv4 header. The ICRC of RoCEv2 does not cover these bits.
 *
 * Return: true if the frame has the mark now; false if it is not IP, or if its sender does not
 * react to marks.
 */
bool ecn_mark(uint8_t *frame, uint32_t len);

/* ecn_mark_any() - the same, even if the sender does not react. Return: false if it is not IP. */
bool ecn_mark_any(uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_ECN_H */
