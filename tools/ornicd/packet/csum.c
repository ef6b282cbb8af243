// SPDX-License-Identifier: GPL-2.0
/*
 * Internet checksums.
 *
 * Words are added in host byte order. In the other byte order the one's complement sum has its two
 * bytes swapped (RFC 1071, section 2), so a sum that is stored in host byte order is right on the
 * wire. The sum of a piece that begins at an odd byte of the whole is swapped, too.
 */
#include "csum.h"

#include "wire.h"

#include <netinet/in.h>
#include <string.h>

static uint32_t fold16(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

uint64_t csum_add(uint64_t sum, const void *data, uint32_t len, bool odd)
{
	const uint8_t *p = data;
	uint64_t part = 0;
	uint32_t word;
	uint16_t last;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		part += word;
	}
	for (; len; len -= len > 1 ? 2 : 1, p += 2) {
		last = 0;
		memcpy(&last, p, len > 1 ? 2 : 1);
		part += last;
	}
	part = fold16(part);
	if (odd)
		part = (part & 0xff) << 8 | part >> 8;
	return sum + part;
}

uint64_t csum_segs(uint64_t sum, const struct seg *seg, uint32_t nseg, uint32_t skip)
{
	bool odd = false;

	for (uint32_t i = 0; i < nseg; i++) {
		uint32_t off = skip < seg[i].len ? skip : seg[i].len;

		sum = csum_add(sum, seg[i].ptr + off, seg[i].len - off, odd);
		odd ^= (seg[i].len - off) & 1;
		skip -= off;
	}
	return sum;
}

uint16_t csum_fold(uint64_t sum)
{
	return ~fold16(sum);
}

uint16_t csum_fold_l4(uint64_t sum)
{
	return csum_fold(sum) ?: 0xffff;
}

/* Return the bytes of the IPv4 header at @ip, 0 if there is none. */
static uint32_t ipv4_header(const uint8_t *ip, uint32_t len)
{
	uint32_t bytes;

	if (len < IPV4_BYTES || ip[0] >> 4 != 4)
		return 0;
	bytes = (ip[0] & 0xf) * 4;
	return bytes >= IPV4_BYTES && bytes <= len ? bytes : 0;
}

bool csum_ipv4_ok(const uint8_t *ip, uint32_t len)
{
	uint32_t bytes = ipv4_header(ip, len);

	return bytes && !csum_fold(csum_add(0, ip, bytes, false));
}

/**
 * struct l4 - a transport header whose checksum is to be filled in
 * @at:		offset in the frame, bytes
 * @len:	bytes of header and payload, according to the IP header
 * @proto:	IP protocol
 * @sum:	sum of the IP addresses
 */
struct l4 {
	uint32_t at;
	uint32_t len;
	uint8_t proto;
	uint64_t sum;
};

static bool parse_ipv4(uint8_t *ip, uint32_t len, struct l4 *l4)
{
	uint32_t bytes = ipv4_header(ip, len), total;
	uint16_t csum;

	if (!bytes)
		return false;
	memset(ip + 10, 0, 2);
	csum = csum_fold(csum_add(0, ip, bytes, false));
	memcpy(ip + 10, &csum, sizeof(csum));
	total = be16_get(ip + 2);
	l4->at += bytes;
	l4->len = total > bytes ? total - bytes : 0;
	l4->proto = be16_get(ip + 6) & IPV4_FRAGMENT ? IPPROTO_NONE : ip[9];
	l4->sum = csum_add(0, ip + 12, 8, false);
	return true;
}

static bool parse_ipv6(const uint8_t *ip, uint32_t len, struct l4 *l4)
{
	if (len < IPV6_BYTES || ip[0] >> 4 != 6)
		return false;
	l4->at += IPV6_BYTES;
	l4->len = be16_get(ip + 4);
	l4->proto = ip[6];
	l4->sum = csum_add(0, ip + 8, 32, false);
	return true;
}

static bool fill_l4(uint8_t *hdr, uint32_t hdr_len, const struct seg *seg, uint32_t nseg,
		    const struct l4 *l4)
{
	uint32_t field = l4->at + (l4->proto == IPPROTO_UDP ? 6 : 16);
	uint8_t pseudo[4] = { 0, l4->proto, l4->len >> 8, l4->len };
	uint64_t sum = l4->sum, rest = 0;
	struct seg all[PACKET_SEGS + 1];
	uint32_t n = 1, left;
	uint16_t csum;

	if (l4->proto != IPPROTO_TCP && l4->proto != IPPROTO_UDP)
		return false;
	for (uint32_t i = 0; i < nseg; i++)
		rest += seg[i].len;
	if (field + 2 > hdr_len || l4->at + (uint64_t)l4->len > hdr_len + rest ||
	    field + 2 > l4->at + l4->len || nseg > PACKET_SEGS)
		return false;
	memset(hdr + field, 0, 2);
	left = l4->at + l4->len;
	all[0] = (struct seg){ .ptr = hdr, .len = left < hdr_len ? left : hdr_len };
	left -= all[0].len;
	for (uint32_t i = 0; i < nseg && left; i++) {
		all[n] = seg[i];
		if (all[n].len > left)
			all[n].len = left;
		left -= all[n++].len;
	}
	sum = csum_add(sum, pseudo, sizeof(pseudo), false);
	csum = csum_fold_l4(csum_segs(sum, all, n, l4->at));
	memcpy(hdr + field, &csum, sizeof(csum));
	return true;
}

bool csum_fill(uint8_t *hdr, uint32_t hdr_len, const struct seg *seg, uint32_t nseg)
{
	struct l4 l4 = { .at = ETH_BYTES };
	uint32_t type;
	bool ip;

	if (hdr_len < ETH_BYTES)
		return false;
	type = be16_get(hdr + 12);
	if (type == ETHERTYPE_VLAN && hdr_len >= ETH_BYTES + VLAN_BYTES) {
		type = be16_get(hdr + 16);
		l4.at += VLAN_BYTES;
	}
	if (type == ETHERTYPE_IPV4)
		ip = parse_ipv4(hdr + l4.at, hdr_len - l4.at, &l4);
	else
		ip = type == ETHERTYPE_IPV6 && parse_ipv6(hdr + l4.at, hdr_len - l4.at, &l4);
	return ip && fill_l4(hdr, hdr_len, seg, nseg, &l4);
}
