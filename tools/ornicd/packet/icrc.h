/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC of RoCEv2 packets (IBTA volume 1, 7.8.1; annex A17.3.3).
 */
#ifndef ORNICD_PACKET_ICRC_H
#define ORNICD_PACKET_ICRC_H

#include "packet.h"

/*
 * icrc_headers() - start an ICRC with IP, UDP and BTH; fields that routers may change count as ones
 * @ip:		IP header without options, followed by UDP header and BTH
 * @ip_bytes:	IPV4_BYTES or IPV6_BYTES
 *
 * Return: the CRC, to be continued by icrc_add().
 */
uint32_t icrc_headers(const uint8_t *ip, uint32_t ip_bytes);

/* icrc_add() - return @crc continued over @len bytes of extension headers, payload or pad */
uint32_t icrc_add(uint32_t crc, const void *data, uint32_t len);

#endif /* ORNICD_PACKET_ICRC_H */
