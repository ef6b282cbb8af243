/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Do the work that a network stack leaves to a network card: complete checksums, and segment
 * frames that are too long for the network.
 */
#ifndef ORNICD_NET_OFFLOAD_H
#define ORNICD_NET_OFFLOAD_H

#include "../packet/frames.h"
#include "../packet/wire.h"

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

/** OFFLOAD_MAX_BYTES - longest frame before segmentation: IP packet, Ethernet header, two tags */
#define OFFLOAD_MAX_BYTES	(65535 + ETH_BYTES + 2 * VLAN_BYTES)

/** enum offload_kind - result of offload_begin() */
enum offload_kind {
	OFFLOAD_BAD,	/* drop it: it contradicts its description, or that is unknown */
	OFFLOAD_WHOLE,	/* the frame is complete */
	OFFLOAD_CUT,	/* get the segments from offload_next() */
};

/**
 * struct offload - state of the segmentation of a frame; offsets are in bytes of the frame
 * @frame:	the long frame
 * @l3:		offset of the IP header
 * @l4:		offset of the TCP or UDP header
 * @field:	offset of the TCP or UDP checksum
 * @head:	bytes of all headers
 * @end:	end of the IP packet
 * @at:		offset of the next byte of payload
 * @size:	bytes of payload per segment, except in the last
 * @number:	number of the next segment, from 0
 * @proto:	IP protocol
 * @ipv6:	IPv6, not IPv4
 * @plain:	UDP without a checksum
 * @ecn:	TCP's CWR flag is that of RFC 3168
 * @done:	all segments were returned
 * @addresses:	sum of the IP addresses
 */
struct offload {
	const uint8_t *frame;
	uint32_t l3;
	uint32_t l4;
	uint32_t field;
	uint32_t head;
	uint32_t end;
	uint32_t at;
	uint32_t size;
	uint32_t number;
	uint8_t proto;
	bool ipv6;
	bool plain;
	bool ecn;
	bool done;
	uint64_t addresses;
};

/**
 * offload_begin() - complete the checksum of a frame, or begin its segmentation
 * @o:		state, for offload_next()
 * @vh:		requested work, in host byte order; @vh->hdr_len is a hint and ignored
 * @frame:	frame; a checksum is completed in place. It must live until the last segment is
 *		made.
 * @len:	bytes of the frame
 *
 * Return: what to do with the frame.
 */
enum offload_kind offload_begin(struct offload *o, const struct virtio_net_hdr *vh,
				uint8_t *frame, uint32_t len);

/**
 * offload_next() - make the next segment of a frame for which offload_begin() returned OFFLOAD_CUT
 * @o:	state
 * @to:	buffer of FRAMES_MAX_BYTES
 *
 * Return: its bytes; 0 if there is none.
 */
uint32_t offload_next(struct offload *o, uint8_t *to);

#endif /* ORNICD_NET_OFFLOAD_H */
