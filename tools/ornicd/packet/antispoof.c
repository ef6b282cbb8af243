// SPDX-License-Identifier: GPL-2.0
/*
 * Check the source addresses of frames that a station sends.
 *
 * Only what was checked may pass: Ethernet frames of another type than IPv4, IPv6 and ARP are
 * dropped, and so are frames whose headers are truncated, inconsistent or too long to be seen.
 *
 * Beside the source address of IP, these name the sender: the sender's addresses of ARP, the target
 * and the link-layer address options of neighbor discovery (ND). Duplicate address detection asks
 * for an address, and a host that wants it gives it up, so it is limited to the station's own
 * addresses. A station is neither a router nor a DHCP server: router advertisements, redirects
 * and DHCP answers would make others send to it.
 *
 * A fragment has no ports and no ND message unless it is the first one. The headers of a first
 * fragment must be in it (RFC 7112), so that later fragments cannot supply them, and ND messages
 * must not be fragmented (RFC 6980). Behind an ESP or AH header no message is looked for: their
 * receivers accept it only from the holder of a key.
 */
#include "antispoof.h"

#include "headers.h"
#include "ip.h"
#include "wire.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IPV4_MAPPED	96	/* bits in front of an IPv4 address in a GID */

#define ARP_BYTES	28
#define ARP_REQUEST	1
#define ARP_REPLY	2

#define DHCP_SERVER	67
#define DHCP_CLIENT	68
#define DHCPV6_CLIENT	546
#define DHCPV6_SERVER	547

#define ICMPV6_BYTES	4
#define MLD_REPORT	131
#define MLD_DONE	132
#define ND_RS		133
#define ND_RA		134
#define ND_NS		135
#define ND_NA		136
#define ND_REDIRECT	137
#define MLD2_REPORT	143

/* Bytes of an ND message behind type, code and checksum: reserved, and the target of NS and NA */
#define ND_RESERVED	4
#define ND_TARGET	16
#define ND_OPT_BYTES	8	/* unit of the length of an option */
#define ND_OPT_SOURCE	1	/* source link-layer address */
#define ND_OPT_TARGET	2	/* target link-layer address */

static const char bad_mac[] = "dropped: not the device's MAC address";
static const char bad_type[] = "dropped: neither IP nor ARP";
static const char bad_headers[] = "dropped: headers truncated or too long";
static const char bad_source[] = "dropped: source IP address not allowed";
static const char bad_arp[] = "dropped: ARP sender not allowed";
static const char bad_nd[] = "dropped: address of neighbor discovery not allowed";
static const char bad_router[] = "dropped: message of a router";
static const char bad_dhcp[] = "dropped: message of a DHCP server";

static const uint8_t zero[16];

/* Clear the bits of @addr from bit @bits on. Return: true if one was set. */
static bool clear_rest(uint8_t addr[16], uint8_t bits)
{
	bool set = false;

	for (uint32_t i = bits / 8; i < 16; i++) {
		uint8_t keep = i == bits / 8 ? 0xff00 >> bits % 8 : 0;

		set |= addr[i] & (uint8_t)~keep;
		addr[i] &= keep;
	}
	return set;
}

static const char *parse_address(uint8_t addr[16], const char *text)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		ip_v4_gid(addr, v4);
	else if (inet_pton(AF_INET6, text, addr) != 1)
		return "not an IP address or prefix such as 192.0.2.1 or 2001:db8::/64";
	else if (ip_is_v4(addr))
		return "an IPv4 address in IPv6 form; write it as a.b.c.d";
	return NULL;
}

/* Parse the digits of @text, 1 to 3 and nothing else. Return: the number, or -1. */
static int parse_bits(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return len && len < 4 && !text[len] ? atoi(text) : -1;
}

/* Return NULL, or why @prefix allows less or more than its author may mean. */
static const char *prefix_fault(struct antispoof_prefix *prefix, bool v4)
{
	static const char both[] =
		"neither an address (leave out the length) nor a network (end it with zero bits)";

	/* 10.0.0.5/24 could be the address 10.0.0.5, or all of 10.0.0.0/24. */
	if (clear_rest(prefix->addr, prefix->bits))
		return both;
	if (v4 ? prefix->addr[12] >> 4 == 0xe : prefix->addr[0] == 0xff)
		return "a multicast address, which is no source of packets";
	if (prefix->bits == 128 && !memcmp(prefix->addr + (v4 ? 12 : 0), zero, v4 ? 4 : 16))
		return "the unspecified address, which no host has";
	return NULL;
}

const char *antispoof_parse(struct antispoof_prefix *prefix, const char *text)
{
	const char *slash = strchr(text, '/'), *why;
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET6_ADDRSTRLEN] = "";
	int most, bits;
	bool v4;

	if (len < sizeof(addr))
		memcpy(addr, text, len);
	why = parse_address(prefix->addr, addr);
	if (why)
		return why;
	v4 = ip_is_v4(prefix->addr);
	most = v4 ? 32 : 128;
	bits = slash ? parse_bits(slash + 1) : most;
	if (bits < 0 || bits > most)
		return v4 ? "no IPv4 prefix, whose length is a number from 0 to 32" :
			    "no IPv6 prefix, whose length is a number from 0 to 128";
	prefix->bits = bits + 128 - most;
	return prefix_fault(prefix, v4);
}

void antispoof_print(const struct antispoof_prefix *prefix, char *text)
{
	bool v4 = ip_is_v4(prefix->addr);
	char addr[INET6_ADDRSTRLEN];
	int bits = prefix->bits - (v4 ? IPV4_MAPPED : 0);

	inet_ntop(v4 ? AF_INET : AF_INET6, prefix->addr + (v4 ? 12 : 0), addr, sizeof(addr));
	if (prefix->bits == 128)
		snprintf(text, ANTISPOOF_TEXT, "%s", addr);
	else
		snprintf(text, ANTISPOOF_TEXT, "%s/%d", addr, bits);
}

void antispoof_link_local(struct antispoof *a, const uint8_t mac[6])
{
	const struct antispoof_prefix own = {
		.addr = {
			0xfe, 0x80, 0, 0, 0, 0, 0, 0,
			mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
		},
		.bits = 128,
	};

	if (!antispoof_address(a, own.addr))
		a->prefix[a->n++] = own;
}

/* ::/0 has no IPv4 addresses, although their form in a GID begins with ::ffff. */
static bool prefix_has(const struct antispoof_prefix *p, const uint8_t addr[16])
{
	uint8_t start[16];

	memcpy(start, addr, sizeof(start));
	clear_rest(start, p->bits);
	return !memcmp(start, p->addr, sizeof(start)) && ip_is_v4(addr) == ip_is_v4(p->addr);
}

bool antispoof_address(const struct antispoof *a, const uint8_t addr[16])
{
	for (uint32_t i = 0; i < a->n; i++)
		if (prefix_has(&a->prefix[i], addr))
			return true;
	return false;
}

static bool allows_v4(const struct antispoof *a, const uint8_t addr[4])
{
	uint8_t gid[16];

	ip_v4_gid(gid, addr);
	return antispoof_address(a, gid);
}

/* An IPv6 header with the form of an IPv4 address would be the GID of the IPv4 address. */
static bool allows_v6(const struct antispoof *a, const uint8_t addr[16])
{
	return !ip_is_v4(addr) && antispoof_address(a, addr);
}

/* A request without the sender's IP address asks whether another host has it (RFC 5227). */
static const char *check_arp(const struct antispoof *a, const uint8_t mac[6], struct cursor *c)
{
	static const uint8_t ethernet_ipv4[] = { 0, 1, 8, 0, 6, 4 };
	const uint8_t *arp = headers_take(c, ARP_BYTES), *address;
	uint16_t op;

	if (!arp)
		return bad_headers;
	op = be16_get(arp + 6);
	if (memcmp(arp, ethernet_ipv4, sizeof(ethernet_ipv4)) ||
	    (op != ARP_REQUEST && op != ARP_REPLY) || memcmp(arp + 8, mac, 6))
		return bad_arp;
	address = arp + 14;
	if (op == ARP_REQUEST && !memcmp(address, zero, 4))
		address = arp + 24;
	return allows_v4(a, address) ? NULL : bad_arp;
}

/* Check a UDP header: its ports must not be those of a server's answers. */
static const char *check_udp(struct cursor *c, uint16_t server, uint16_t client)
{
	const uint8_t *udp = headers_take(c, UDP_BYTES);

	if (!udp)
		return bad_headers;
	return be16_get(udp) == server && be16_get(udp + 2) == client ? bad_dhcp : NULL;
}

/* Return true if a packet without a source address is from a DHCP client. */
static bool is_dhcp_client(const uint8_t *ip, uint16_t frag, struct cursor *c)
{
	static const uint8_t broadcast[4] = { 255, 255, 255, 255 };
	const uint8_t *udp;

	if (ip[9] != PROTO_UDP || frag || memcmp(ip + 16, broadcast, sizeof(broadcast)))
		return false;
	udp = headers_take(c, UDP_BYTES);
	return udp && be16_get(udp) == DHCP_CLIENT && be16_get(udp + 2) == DHCP_SERVER;
}

static const char *check_ipv4(const struct antispoof *a, struct cursor *c)
{
	const uint8_t *ip = headers_ipv4(c);
	uint16_t frag;

	if (!ip || c->len < be16_get(ip + 2) - (ip[0] & 0xfu) * 4)
		return bad_headers;
	frag = be16_get(ip + 6) & (IPV4_MF | IPV4_OFFSET);
	if (!memcmp(ip + 12, zero, 4))
		return is_dhcp_client(ip, frag, c) ? NULL : bad_source;
	if (!allows_v4(a, ip + 12))
		return bad_source;
	if (ip[9] == PROTO_UDP && !(frag & IPV4_OFFSET))
		return check_udp(c, DHCP_SERVER, DHCP_CLIENT);
	return NULL;
}

/* Check the options of an ND message up to its end. */
static const char *check_nd_options(const uint8_t mac[6], struct cursor *c)
{
	while (c->len) {
		const uint8_t *opt = headers_take(c, ND_OPT_BYTES);

		if (!opt || !opt[1])
			return bad_headers;
		if ((opt[0] == ND_OPT_SOURCE || opt[0] == ND_OPT_TARGET) &&
		    (opt[1] != 1 || memcmp(opt + 2, mac, 6)))
			return bad_nd;
		if (!headers_take(c, (opt[1] - 1u) * ND_OPT_BYTES))
			return bad_headers;
	}
	return NULL;
}

/*
 * Check an ND message. The target of an advertisement is the sender's address. So is that of a
 * solicitation from @nowhere, the unspecified address.
 */
static const char *check_nd(const struct antispoof *a, const uint8_t mac[6], uint8_t type,
			    bool nowhere, struct cursor *c)
{
	const uint8_t *target = NULL;

	if (type == ND_RA || type == ND_REDIRECT)
		return bad_router;
	if (!headers_take(c, ND_RESERVED))
		return bad_headers;
	if (type != ND_RS) {
		target = headers_take(c, ND_TARGET);
		if (!target)
			return bad_headers;
	}
	if (target && (type == ND_NA || nowhere) && !allows_v6(a, target))
		return bad_nd;
	return check_nd_options(mac, c);
}

/* Return true if a host may send a message of this type before it has an address. */
static bool needs_no_address(uint8_t type)
{
	return type == ND_RS || type == ND_NS || type == MLD_REPORT || type == MLD_DONE ||
	       type == MLD2_REPORT;
}

static const char *check_icmpv6(const struct antispoof *a, const uint8_t mac[6], bool nowhere,
				bool fragment, struct cursor *c)
{
	const uint8_t *icmp = headers_take(c, ICMPV6_BYTES);

	if (!icmp)
		return bad_headers;
	if (nowhere && !needs_no_address(icmp[0]))
		return bad_source;
	if (icmp[0] < ND_RS || icmp[0] > ND_REDIRECT)
		return NULL;
	return fragment ? bad_nd : check_nd(a, mac, icmp[0], nowhere, c);
}

static const char *check_ipv6(const struct antispoof *a, const uint8_t mac[6], struct cursor *c)
{
	const uint8_t *ip = headers_ipv6(c);
	struct ipv6_fragment frag;
	bool nowhere;
	uint8_t next;

	if (!ip || c->len < be16_get(ip + 4))
		return bad_headers;
	nowhere = !memcmp(ip + 8, zero, sizeof(zero));
	if (!nowhere && !allows_v6(a, ip + 8))
		return bad_source;
	next = ip[6];
	if (!headers_extensions(c, &next, &frag))
		return bad_headers;
	if (nowhere && (next != PROTO_ICMPV6 || frag.any))
		return bad_source;
	if (frag.later)
		return NULL;
	if (next == PROTO_ICMPV6)
		return check_icmpv6(a, mac, nowhere, frag.any, c);
	return next == PROTO_UDP ? check_udp(c, DHCPV6_SERVER, DHCPV6_CLIENT) : NULL;
}

const char *antispoof_frame(const struct antispoof *a, const uint8_t mac[6], const uint8_t *head,
			    uint32_t bytes, uint32_t len)
{
	struct cursor c = { .at = head, .left = bytes, .len = len };
	const uint8_t *eth = headers_take(&c, ETH_BYTES);
	uint16_t type;

	if (!eth || memcmp(eth + 6, mac, 6))
		return bad_mac;
	if (!a->ip)
		return NULL;
	type = be16_get(eth + 12);
	if (type == ETHERTYPE_VLAN) {
		const uint8_t *tag = headers_take(&c, VLAN_BYTES);

		if (!tag)
			return bad_headers;
		type = be16_get(tag + 2);
	}
	switch (type) {
	case ETHERTYPE_ARP:
		return check_arp(a, mac, &c);
	case ETHERTYPE_IPV4:
		return check_ipv4(a, &c);
	case ETHERTYPE_IPV6:
		return check_ipv6(a, mac, &c);
	default:
		return bad_type;
	}
}
