// SPDX-License-Identifier: GPL-2.0
/*
 * The GRH area of a datagram, built from a packet's addresses.
 */
#include "grh.h"

#include "../packet/ip.h"
#include "../packet/wire.h"

#include <string.h>

void grh_build(uint8_t grh[ORNIC_GRH_BYTES], const struct packet *p, uint16_t transport_len)
{
	memset(grh, 0, ORNIC_GRH_BYTES);
	/* The IPv4 checksum must be right: the kernel tells IPv4 from IPv6 by it. */
	if (ip_is_v4(p->dgid))
		ip_v4_build(grh + ORNIC_GRH_BYTES - IPV4_BYTES, p, transport_len);
	else
		ip_v6_build(grh, p, transport_len);
}
