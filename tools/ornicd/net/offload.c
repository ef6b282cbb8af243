// SPDX-License-Identifier: GPL-2.0
/*
 * Checksum and segmentation offload of a network card: complete checksums, segment TCP and UDP.
 *
 * Each segment has the headers of the long frame except for lengths, checksums, the IPv4
 * identification, TCP's sequence number and some of its flags. Checksums of segments are computed
 * from all bytes that they cover, because the checksum field of the long frame need not contain the
 * sum of the pseudo header.
 */
#include "offload.h"

#include "../packet/csum.h"

#include <netinet/in.h>
#include <string.h>

/* Headers before Linux 6.2 do not define it */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5
#endif

/*
 * Most segments per frame. Linux uses at least 8 bytes of payload per segment (TCP_MIN_GSO_SIZE),
 * so a frame with more segments is an attempt to keep the daemon busy.
 */
#define CUTS_MAX	8192

#define TYPE_AT		12	/* offset of the EtherType in a frame */

#define TCP_SEQ		4	/* offset of the sequence number in a TCP header */
#define TCP_OFFSET	12	/* offset of the header's length */
#define TCP_FLAGS	13
#define TCP_CSUM	16
#define TCP_FIN		0x01
#define TCP_PSH		0x08
#define TCP_CWR		0x80

#define UDP_LENGTH	4
#define UDP_CSUM	6

#define SCTP_CSUM	8
#define SCTP_BYTES	12

/* ---- headers --------------------------------------------------------------- */

/* Find the IP header behind any number of tags. Return: its EtherType, 0 if there is none. */
static uint16_t find_l3(struct offload *o, uint32_t len)
{
	uint16_t type = ETHERTYPE_VLAN;
	uint32_t at = TYPE_AT - VLAN_BYTES;

	while (type == ETHERTYPE_VLAN || type == ETHERTYPE_SVLAN) {
		at += VLAN_BYTES;
		if (len < at + 2)
			return 0;
		type = be16_get(o->frame + at);
	}
	o->l3 = at + 2;
	return type;
}

static bool parse_ipv4(struct offload *o, uint32_t len)
{
	const uint8_t *ip = o->frame + o->l3;
	uint32_t bytes, total;

	if (len - o->l3 < IPV4_BYTES || ip[0] >> 4 != 4)
		return false;
	bytes = (ip[0] & 0xf) * 4;
	total = be16_get(ip + 2);
	/* A fragment has no transport header, or not the whole payload. */
	if (bytes < IPV4_BYTES || total < bytes || total > len - o->l3 ||
	    be16_get(ip + 6) & 0x3fff)
		return false;
	o->proto = ip[9];
	o->l4 = o->l3 + bytes;
	o->end = o->l3 + total;
	o->addresses = csum_add(0, ip + 12, 8, false);
	return true;
}

/*
 * Parse an IPv6 header and skip headers with options. Others, such as routing and fragment headers,
 * are returned as the protocol, for which nothing is done.
 */
static bool parse_ipv6(struct offload *o, uint32_t len)
{
	const uint8_t *ip = o->frame + o->l3;

	if (len - o->l3 < IPV6_BYTES || ip[0] >> 4 != 6 ||
	    be16_get(ip + 4) > len - o->l3 - IPV6_BYTES)
		return false;
	o->ipv6 = true;
	o->proto = ip[6];
	o->l4 = o->l3 + IPV6_BYTES;
	o->end = o->l4 + be16_get(ip + 4);
	o->addresses = csum_add(0, ip + 8, 32, false);
	while (o->proto == IPPROTO_HOPOPTS || o->proto == IPPROTO_DSTOPTS) {
		const uint8_t *options = o->frame + o->l4;

		if (o->end - o->l4 < 2 || o->end - o->l4 < (options[1] + 1) * 8u)
			return false;
		o->proto = options[0];
		o->l4 += (options[1] + 1) * 8;
	}
	return true;
}

static bool parse(struct offload *o, uint32_t len)
{
	switch (find_l3(o, len)) {
	case ETHERTYPE_IPV4:
		return parse_ipv4(o, len);
	case ETHERTYPE_IPV6:
		return parse_ipv6(o, len);
	default:
		return false;
	}
}

/* ---- checksums --------------------------------------------------------------- */

/* CRC32C (RFC 3720), four bits at a time: SCTP is rare, so a larger table does not pay. */
static uint32_t crc32c(const uint8_t *p, uint32_t len)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	uint32_t crc = ~0u;

	for (uint32_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 0xf];
		crc = crc >> 4 ^ nibble[crc & 0xf];
	}
	return ~crc;
}

/* Complete SCTP's checksum, a CRC32C, which Linux requests in the same way as a sum. */
static bool complete_sctp(const struct offload *o, uint8_t *frame)
{
	uint8_t *csum = frame + o->l4 + SCTP_CSUM;
	uint32_t crc;

	if (o->end - o->l4 < SCTP_BYTES)
		return false;
	memset(csum, 0, 4);
	crc = crc32c(frame + o->l4, o->end - o->l4);
	for (int i = 0; i < 4; i++)
		csum[i] = crc >> 8 * i;
	return true;
}

/* Complete a checksum. Its field already contains the sum of the pseudo header. */
static bool complete(struct offload *o, uint8_t *frame, uint32_t len, uint32_t start,
		     uint32_t offset)
{
	uint32_t field = start + offset;
	uint16_t csum;

	if (start < ETH_BYTES || field + sizeof(csum) > len)
		return false;
	if (offset == SCTP_CSUM && parse(o, len) && o->proto == IPPROTO_SCTP && o->l4 == start)
		return complete_sctp(o, frame);
	csum = csum_fold_l4(csum_add(0, frame + start, len - start, false));
	memcpy(frame + field, &csum, sizeof(csum));
	return true;
}

/* ---- cutting --------------------------------------------------------------- */

/* Check that the transport is the described one. Fill in the places of its checksum and payload. */
static bool transport(struct offload *o, uint8_t gso_type)
{
	switch (gso_type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN:
	case VIRTIO_NET_HDR_GSO_TCPV6:
	case VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN:
		if (o->ipv6 != !(gso_type & VIRTIO_NET_HDR_GSO_TCPV4) ||
		    o->proto != IPPROTO_TCP || o->end - o->l4 < TCP_BYTES)
			return false;
		o->field = o->l4 + TCP_CSUM;
		o->head = o->l4 + (o->frame[o->l4 + TCP_OFFSET] >> 4) * 4;
		return o->head >= o->l4 + TCP_BYTES && o->head <= o->end;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		if (o->proto != IPPROTO_UDP || o->end - o->l4 < UDP_BYTES)
			return false;
		o->field = o->l4 + UDP_CSUM;
		o->head = o->l4 + UDP_BYTES;
		o->plain = !be16_get(o->frame + o->field);
		return true;
	default:
		return false;
	}
}

static bool cut_begin(struct offload *o, const struct virtio_net_hdr *vh, uint32_t len)
{
	if (!parse(o, len) || !transport(o, vh->gso_type))
		return false;
	if (vh->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
	    (vh->csum_start != o->l4 || vh->csum_offset != o->field - o->l4))
		return false;
	o->at = o->head;
	o->size = vh->gso_size;
	o->ecn = vh->gso_type & VIRTIO_NET_HDR_GSO_ECN;
	return o->size && o->head + o->size <= FRAMES_MAX_BYTES &&
	       (o->end - o->head) / o->size < CUTS_MAX;
}

enum offload_kind offload_begin(struct offload *o, const struct virtio_net_hdr *vh,
				uint8_t *frame, uint32_t len)
{
	*o = (struct offload) { .frame = frame, .done = true };
	if (vh->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		o->done = !cut_begin(o, vh, len);
		return o->done ? OFFLOAD_BAD : OFFLOAD_CUT;
	}
	if (vh->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
	    !complete(o, frame, len, vh->csum_start, vh->csum_offset))
		return OFFLOAD_BAD;
	return OFFLOAD_WHOLE;
}

/* Set length, identification and checksum in the IP header of the segment @to of @len bytes. */
static void number_l3(const struct offload *o, uint8_t *to, uint32_t len)
{
	uint8_t *ip = to + o->l3;
	uint16_t csum;

	if (o->ipv6) {
		be16_put(ip + 4, len - o->l3 - IPV6_BYTES);
		return;
	}
	be16_put(ip + 2, len - o->l3);
	be16_put(ip + 4, be16_get(ip + 4) + o->number);
	memset(ip + 10, 0, sizeof(csum));
	csum = csum_fold(csum_add(0, ip, o->l4 - o->l3, false));
	memcpy(ip + 10, &csum, sizeof(csum));
}

/*
 * Set length or sequence number and flags in the transport header. FIN and PSH belong to the last
 * segment only. CWR belongs to the first one only, except with AccECN, where it is a bit of a
 * counter; Linux then does not set VIRTIO_NET_HDR_GSO_ECN.
 */
static void number_l4(const struct offload *o, uint8_t *to, uint32_t len)
{
	uint8_t *l4 = to + o->l4;

	if (o->proto == IPPROTO_UDP) {
		be16_put(l4 + UDP_LENGTH, len - o->l4);
		return;
	}
	be32_put(l4 + TCP_SEQ, be32_get(l4 + TCP_SEQ) + o->at - o->head);
	if (o->number && o->ecn)
		l4[TCP_FLAGS] &= ~TCP_CWR;
	if (!o->done)
		l4[TCP_FLAGS] &= ~(TCP_FIN | TCP_PSH);
}

/* Compute the TCP or UDP checksum of the segment. */
static void sum_l4(const struct offload *o, uint8_t *to, uint32_t len)
{
	const uint32_t bytes = len - o->l4;
	const uint8_t pseudo[4] = { 0, o->proto, bytes >> 8, bytes };
	uint64_t sum = csum_add(o->addresses, pseudo, sizeof(pseudo), false);
	uint16_t csum;

	if (o->plain)
		return;
	memset(to + o->field, 0, sizeof(csum));
	csum = csum_fold_l4(csum_add(sum, to + o->l4, bytes, false));
	memcpy(to + o->field, &csum, sizeof(csum));
}

uint32_t offload_next(struct offload *o, uint8_t *to)
{
	uint32_t bytes = o->end - o->at, len;

	if (o->done)
		return 0;
	if (bytes > o->size)
		bytes = o->size;
	len = o->head + bytes;
	o->done = bytes == o->end - o->at;
	memcpy(to, o->frame, o->head);
	memcpy(to + o->head, o->frame + o->at, bytes);
	number_l3(o, to, len);
	number_l4(o, to, len);
	sum_l4(o, to, len);
	o->at += bytes;
	o->number++;
	return len;
}
