/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internet checksums (RFC 1071) over memory and over pieces of memory.
 */
#ifndef ORNICD_PACKET_CSUM_H
#define ORNICD_PACKET_CSUM_H

#include "packet.h"

/*
 * csum_add() - add @len bytes to a running sum; @odd: an odd number of bytes
 * came before. Start with 0, end with csum_fold().
 */
uint64_t csum_add(uint64_t sum, const void *data, uint32_t len, bool odd);

/* csum_segs() - the sum of all bytes of @seg but the first @skip */
uint64_t csum_segs(uint64_t sum, const struct seg *seg, uint32_t nseg, uint32_t skip);

/* csum_fold() - the checksum, in memory order: store it as it is */
uint16_t csum_fold(uint64_t sum);

/* csum_fold_l4() - TCP's or UDP's: never 0, which is UDP's for none; to others the two are the same */
uint16_t csum_fold_l4(uint64_t sum);

/* csum_ipv4_ok() - @len bytes start with an IPv4 header, and its checksum is right */
bool csum_ipv4_ok(const uint8_t *ip, uint32_t len);

/*
 * csum_fill() - fill in the checksums of an Ethernet frame: of an IPv4 header,
 * and of TCP or UDP over IPv4 or IPv6 if the frame has no fragments and no
 * extension headers.
 * @hdr: first @hdr_len bytes of the frame; the checksums go here
 * @seg, @nseg: the rest of the frame
 *
 * Return: whether a TCP or UDP checksum was filled in; an IPv4 header may have been
 * without.
 */
bool csum_fill(uint8_t *hdr, uint32_t hdr_len, const struct seg *seg, uint32_t nseg);

#endif /* ORNICD_PACKET_CSUM_H */
