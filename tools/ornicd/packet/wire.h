/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers in network byte order, and sizes and types of Ethernet, IP, UDP and TCP headers.
 */
#ifndef ORNICD_PACKET_WIRE_H
#define ORNICD_PACKET_WIRE_H

#include <stdint.h>

#define ETH_BYTES	14
#define ETH_MIN_FRAME	60	/* without FCS */
#define VLAN_BYTES	4
#define IPV4_BYTES	20
#define IPV6_BYTES	40
#define IPV4_FRAGMENT	0x3fff	/* in bytes 6 and 7: more fragments, or a fragment offset */
#define UDP_BYTES	8
#define TCP_BYTES	20

#define ETHERTYPE_VLAN	0x8100
#define ETHERTYPE_SVLAN	0x88a8
#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_ARP	0x0806
#define ETHERTYPE_IPV6	0x86dd

static inline uint16_t be16_get(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static inline uint32_t be24_get(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | be16_get(at + 1);
}

static inline uint32_t be32_get(const uint8_t *at)
{
	return (uint32_t)be16_get(at) << 16 | be16_get(at + 2);
}

static inline uint64_t be64_get(const uint8_t *at)
{
	return (uint64_t)be32_get(at) << 32 | be32_get(at + 4);
}

static inline void be16_put(uint8_t *at, uint16_t v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static inline void be24_put(uint8_t *at, uint32_t v)
{
	at[0] = v >> 16;
	be16_put(at + 1, v);
}

static inline void be32_put(uint8_t *at, uint32_t v)
{
	be16_put(at, v >> 16);
	be16_put(at + 2, v);
}

static inline void be64_put(uint8_t *at, uint64_t v)
{
	be32_put(at, v >> 32);
	be32_put(at + 4, v);
}

#endif /* ORNICD_PACKET_WIRE_H */
