// SPDX-License-Identifier: GPL-2.0
/*
 * Build IP headers from a packet's addresses.
 */
#include "ip.h"

#include "csum.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool ip_is_v4(const uint8_t gid[16])
{
	return !memcmp(gid, v4_prefix, sizeof(v4_prefix));
}

void ip_v4_gid(uint8_t gid[16], const uint8_t addr[4])
{
	memcpy(gid, v4_prefix, sizeof(v4_prefix));
	memcpy(gid + sizeof(v4_prefix), addr, 4);
}

void ip_v4_build(uint8_t *at, const struct packet *p, uint16_t len)
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

	memcpy(&ip.saddr, p->sgid + sizeof(v4_prefix), 4);
	memcpy(&ip.daddr, p->dgid + sizeof(v4_prefix), 4);
	ip.check = csum_fold(csum_add(0, &ip, sizeof(ip), false));
	memcpy(at, &ip, sizeof(ip));
}

void ip_v6_build(uint8_t *at, const struct packet *p, uint16_t len)
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
