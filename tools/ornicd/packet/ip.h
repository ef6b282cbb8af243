/* SPDX-License-Identifier: GPL-2.0 */
/*
 * IP headers of RoCEv2 packets (annex A17), and GIDs that represent IPv4 addresses.
 */
#ifndef ORNICD_PACKET_IP_H
#define ORNICD_PACKET_IP_H

#include "packet.h"

/* ip_is_v4() - return true if a GID represents an IPv4 address, ::ffff:a.b.c.d */
bool ip_is_v4(const uint8_t gid[16]);

/* ip_v4_gid() - fill in the GID of an IPv4 address in network byte order */
void ip_v4_gid(uint8_t gid[16], const uint8_t addr[4]);

/*
 * ip_v4_build(), ip_v6_build() - write the IP header of @p for a UDP datagram of @len bytes,
 * including its header, to @at
 */
void ip_v4_build(uint8_t *at, const struct packet *p, uint16_t len);
void ip_v6_build(uint8_t *at, const struct packet *p, uint16_t len);

#endif /* ORNICD_PACKET_IP_H */
