/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC of RoCEv2 packets (IBTA volume 1, 7.8.1; annex A17.3.3).
 */
#ifndef ORNICD_PACKET_ICRC_H
#define ORNICD_PACKET_ICRC_H

#include "packet.h"

/*
 * icrc_headers() - begin: the sum over IP, UDP and BTH, what routers may change taken as ones
 * @ip: @ip_bytes of IP header, then UDP and BTH
 */
uint32_t icrc_headers(const uint8_t *ip, uint32_t ip_bytes);

/* icrc_add() - go on: extension headers, payload, pad */
uint32_t icrc_add(uint32_t crc, const void *data, uint32_t len);

#endif /* ORNICD_PACKET_ICRC_H */
