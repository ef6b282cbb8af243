// SPDX-License-Identifier: GPL-2.0
/*
 * Parse the headers of an Ethernet frame: one VLAN tag, IPv4 with options or IPv6 with
 * extension headers, TCP or UDP.
 *
 * The frame is not trusted. Its beginning is copied once, and each header is checked against
 * the rest of the copy and against the length in the header before it. Fragments have no
 * ports, also not the first one, so that all fragments of a datagram match the same rules
 * (ORN-STEER-14).
 */
#include "frame.h"

#include "headers.h"
#include "ip.h"
#include "wire.h"

#include <string.h>

/* Bytes of a frame that are parsed */
#define HEAD_BYTES	256

static void parse_ports(struct cursor *c, struct frame *f)
{
	const uint8_t *l4 = NULL;

	if (f->key.ip_frag & ORNIC_FRAG_ANY)
		return;
	if (f->key.protocol == PROTO_TCP)
		l4 = headers_take(c, TCP_BYTES);
	else if (f->key.protocol == PROTO_UDP)
		l4 = headers_take(c, UDP_BYTES);
	if (!l4)
		return;
	memcpy(&f->key.src_port, l4, 2);
	memcpy(&f->key.dst_port, l4 + 2, 2);
	f->fields |= ORNIC_MATCH_SRC_PORT | ORNIC_MATCH_DST_PORT;
}

static void parse_ipv4(struct cursor *c, struct frame *f)
{
	const uint8_t *ip = headers_ipv4(c);
	uint32_t frag;

	if (!ip)
		return;
	frag = be16_get(ip + 6);
	if (frag & (IPV4_OFFSET | IPV4_MF))
		f->key.ip_frag |= ORNIC_FRAG_ANY;
	if (frag & IPV4_DF)
		f->key.ip_frag |= ORNIC_FRAG_DF;
	if (frag & IPV4_MF)
		f->key.ip_frag |= ORNIC_FRAG_MF;
	f->key.ip_version = 4;
	f->key.tos = ip[1];
	f->key.ttl = ip[8];
	f->key.protocol = ip[9];
	ip_v4_gid(f->key.src_ip, ip + 12);
	ip_v4_gid(f->key.dst_ip, ip + 16);
	f->fields |= ORNIC_MATCH_IP_VERSION | ORNIC_MATCH_TOS | ORNIC_MATCH_TTL |
		     ORNIC_MATCH_PROTOCOL | ORNIC_MATCH_SRC_IP | ORNIC_MATCH_DST_IP |
		     ORNIC_MATCH_IP_FRAG;
	parse_ports(c, f);
}

static void parse_ipv6(struct cursor *c, struct frame *f)
{
	const uint8_t *ip = headers_ipv6(c);
	struct ipv6_fragment frag;
	uint8_t next;
	bool whole;

	if (!ip)
		return;
	f->key.ip_version = 6;
	f->key.tos = ip[0] << 4 | ip[1] >> 4;
	f->key.ttl = ip[7];
	memcpy(&f->key.flow_label, ip, 4);
	((uint8_t *)&f->key.flow_label)[0] = 0;
	((uint8_t *)&f->key.flow_label)[1] &= 0xf;
	memcpy(f->key.src_ip, ip + 8, 16);
	memcpy(f->key.dst_ip, ip + 24, 16);
	f->fields |= ORNIC_MATCH_IP_VERSION | ORNIC_MATCH_TOS | ORNIC_MATCH_TTL |
		     ORNIC_MATCH_FLOW_LABEL | ORNIC_MATCH_SRC_IP | ORNIC_MATCH_DST_IP |
		     ORNIC_MATCH_IP_FRAG;
	next = ip[6];
	whole = headers_extensions(c, &next, &frag);
	if (frag.any)
		f->key.ip_frag |= ORNIC_FRAG_ANY;
	if (frag.more)
		f->key.ip_frag |= ORNIC_FRAG_MF;
	if (!whole)
		return;
	f->key.protocol = next;
	f->fields |= ORNIC_MATCH_PROTOCOL;
	parse_ports(c, f);
}

void frame_parse(const struct packet *p, struct frame *f)
{
	uint8_t head[HEAD_BYTES];
	struct cursor c = { .at = head, .len = p->len };
	const uint8_t *eth, *tag;
	uint16_t type;

	memset(f, 0, sizeof(*f));
	c.left = p->len < sizeof(head) ? p->len : sizeof(head);
	seg_copy_out(head, p->seg, p->nseg, 0, c.left);
	eth = headers_take(&c, ETH_BYTES);
	if (!eth)
		return;
	memcpy(f->key.dmac, eth, 6);
	memcpy(f->key.smac, eth + 6, 6);
	memcpy(&f->key.ethertype, eth + 12, 2);
	f->fields = ORNIC_MATCH_DMAC | ORNIC_MATCH_SMAC | ORNIC_MATCH_ETHERTYPE;
	type = be16_get(eth + 12);
	if (type == ETHERTYPE_VLAN) {
		tag = headers_take(&c, VLAN_BYTES);
		if (!tag)
			return;
		memcpy(&f->key.vlan_tci, tag, 2);
		memcpy(&f->key.ethertype, tag + 2, 2);
		f->fields |= ORNIC_MATCH_VLAN;
		type = be16_get(tag + 2);
	}
	if (type == ETHERTYPE_IPV4)
		parse_ipv4(&c, f);
	else if (type == ETHERTYPE_IPV6)
		parse_ipv6(&c, f);
}
