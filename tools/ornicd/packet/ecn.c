// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion marks in IP headers.
 */
#include "ecn.h"

#include "wire.h"

/* Update the checksum of a header in which the 16 bits @from became @to (RFC 1624, equation 3). */
static uint16_t csum_update(uint16_t csum, uint16_t from, uint16_t to)
{
	uint32_t sum = (uint16_t)~csum + (uint16_t)~from + to;

	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static bool mark_ipv4(uint8_t *ip, bool all)
{
	uint16_t was = be16_get(ip);

	if (!all && (ip[1] & ECN_MASK) == ECN_NOT_ECT)
		return false;
	ip[1] |= ECN_CE;
	be16_put(ip + 10, csum_update(be16_get(ip + 10), was, be16_get(ip)));
	return true;
}

/* The traffic class follows the version, four bits from the start of the header. */
static bool mark_ipv6(uint8_t *ip, bool all)
{
	if (!all && (ip[1] >> 4 & ECN_MASK) == ECN_NOT_ECT)
		return false;
	ip[1] |= ECN_CE << 4;
	return true;
}

static bool mark(uint8_t *frame, uint32_t len, bool all)
{
	uint32_t at = ETH_BYTES;
	uint16_t type;

	if (len < ETH_BYTES)
		return false;
	type = be16_get(frame + at - 2);
	if (type == ETHERTYPE_VLAN) {
		at += VLAN_BYTES;
		if (len < at)
			return false;
		type = be16_get(frame + at - 2);
	}
	if (type == ETHERTYPE_IPV4 && len >= at + IPV4_BYTES && frame[at] >> 4 == 4)
		return mark_ipv4(frame + at, all);
	if (type == ETHERTYPE_IPV6 && len >= at + IPV6_BYTES && frame[at] >> 4 == 6)
		return mark_ipv6(frame + at, all);
	return false;
}

bool ecn_mark(uint8_t *frame, uint32_t len)
{
	return mark(frame, len, false);
}

bool ecn_mark_any(uint8_t *frame, uint32_t len)
{
	return mark(frame, len, true);
}
