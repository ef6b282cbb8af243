/* SPDX-License-Identifier: GPL-2.0 */
/*
 * IP headers of RoCEv2 packets (annex A17), and GIDs that stand for IPv4 addresses.
 */
#ifndef ORNICD_PACKET_IP_H
#define ORNICD_PACKET_IP_H

#include "packet.h"

/* ip_is_v4() - a GID that stands for an IPv4 address, ::ffff:a.b.c.d */
bool ip_is_v4(const uint8_t gid[16]);

/* ip_v4_gid() - the GID of an IPv4 address, in memory order */
void ip_v4_gid(uint8_t gid[16], const uint8_t addr[4]);

/*
 * ip_v4_build(), ip_v6_build() - the header of @p, which announces @len bytes of UDP
 * @at: as large as the header
 */
void ip_v4_build(uint8_t *at, const struct packet *p, uint16_t len);
void ip_v6_build(uint8_t *at, const struct packet *p, uint16_t len);

#endif /* ORNICD_PACKET_IP_H */
