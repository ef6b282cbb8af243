// SPDX-License-Identifier: GPL-2.0
/*
 * The invariant CRC: Ethernet's CRC 32 over eight bytes of ones, which replace InfiniBand's
 * local route header, and the packet from its IP header on.
 */
#include "icrc.h"

#include "bth.h"
#include "wire.h"

#include <libdeflate.h>
#include <string.h>

#define LRH_BYTES	8
#define HEADERS_MAX	(IPV6_BYTES + UDP_BYTES + BTH_BYTES)

uint32_t icrc_add(uint32_t crc, const void *data, uint32_t len)
{
	return libdeflate_crc32(crc, data, len);
}

static void mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff;			/* type of service */
	ip[8] = 0xff;			/* time to live */
	memset(ip + 10, 0xff, 2);	/* checksum */
}

static void mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f;			/* traffic class, flow label */
	memset(ip + 1, 0xff, 3);
	ip[7] = 0xff;			/* hop limit */
}

uint32_t icrc_headers(const uint8_t *ip, uint32_t ip_bytes)
{
	uint8_t masked[LRH_BYTES + HEADERS_MAX];
	uint8_t *at = masked + LRH_BYTES;

	memset(masked, 0xff, LRH_BYTES);
	memcpy(at, ip, ip_bytes + UDP_BYTES + BTH_BYTES);
	if (ip_bytes == IPV4_BYTES)
		mask_ipv4(at);
	else
		mask_ipv6(at);
	memset(at + ip_bytes + 6, 0xff, 2);		/* UDP checksum */
	at[ip_bytes + UDP_BYTES + 4] = 0xff;		/* FECN, BECN, reserved */
	return icrc_add(0, masked, LRH_BYTES + ip_bytes + UDP_BYTES + BTH_BYTES);
}
