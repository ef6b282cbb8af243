/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internet checksums (RFC 1071) over memory and over pieces of memory.
 */
#ifndef ORNICD_PACKET_CSUM_H
#define ORNICD_PACKET_CSUM_H

#include "packet.h"

/*
 * csum_add() - return @sum plus the sum of @len bytes at @data. @odd: an odd number of bytes was
 * added before. Start with 0, end with csum_fold().
 */
uint64_t csum_add(uint64_t sum, const void *data, uint32_t len, bool odd);

/* csum_segs() - return @sum plus the sum of all bytes of @seg except the first @skip */
uint64_t csum_segs(uint64_t sum, const struct seg *seg, uint32_t nseg, uint32_t skip);

/* csum_fold() - return the checksum of a sum, in memory order: store it with memcpy() */
uint16_t csum_fold(uint64_t sum);

/*
 * csum_fold_l4() - the same for TCP and UDP: return 0xffff instead of 0, because 0 in UDP means
 * that there is no checksum. The receiver's sum is the same for both values.
 */
uint16_t csum_fold_l4(uint64_t sum);

/* csum_ipv4_ok() - return true if the @len bytes begin with an IPv4 header with a right checksum */
bool csum_ipv4_ok(const uint8_t *ip, uint32_t len);

/*
 * csum_fill() - fill in the checksums of an Ethernet frame: IPv4 header, and TCP or UDP over
 * IPv4 or IPv6 unless it is a fragment or has extension headers
 * @hdr: first @hdr_len bytes of the frame, with all headers and checksum fields
 * @seg: the other @nseg pieces of the frame
 *
 * Return: true if a TCP or UDP checksum was filled in.
 */
bool csum_fill(uint8_t *hdr, uint32_t hdr_len, const struct seg *seg, uint32_t nseg);

#endif /* ORNICD_PACKET_CSUM_H */
