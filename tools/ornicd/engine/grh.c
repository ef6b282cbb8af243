// SPDX-License-Identifier: GPL-2.0
/*
 * The GRH area of a datagram, built from a packet's addresses.
 */
#include "grh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool grh_is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, v4_prefix, sizeof(v4_prefix));
}

static uint16_t header_sum(const void *hdr, size_t bytes)
{
	const uint8_t *b = hdr;
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes; i += 2)
		sum += b[i] << 8 | b[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

/* The checksum must be right: the kernel tells IPv4 from IPv6 by it. */
static void build_ipv4(uint8_t *at, const struct packet *p, uint16_t len)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = p->tclass,
		.tot_len = htons(sizeof(ip) + len),
		.frag_off = htons(IP_DF),
		.ttl = p->hop_limit,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, p->sgid + 12, 4);
	memcpy(&ip.daddr, p->dgid + 12, 4);
	ip.check = header_sum(&ip, sizeof(ip));
	memcpy(at, &ip, sizeof(ip));
}

static void build_ipv6(uint8_t *at, const struct packet *p, uint16_t len)
{
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6u << 28 | p->tclass << 20 | (p->flow_label & 0xfffff)),
		.ip6_plen = htons(len),
		.ip6_nxt = IPPROTO_UDP,
		.ip6_hlim = p->hop_limit,
	};

	memcpy(&ip.ip6_src, p->sgid, 16);
	memcpy(&ip.ip6_dst, p->dgid, 16);
	memcpy(at, &ip, sizeof(ip));
}

void grh_build(uint8_t grh[ORNIC_GRH_BYTES], const struct packet *p, uint16_t transport_len)
{
	memset(grh, 0, ORNIC_GRH_BYTES);
	if (grh_is_ipv4(p->dgid))
		build_ipv4(grh + ORNIC_GRH_BYTES - sizeof(struct iphdr), p, transport_len);
	else
		build_ipv6(grh, p, transport_len);
}
