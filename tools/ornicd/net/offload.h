/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a network stack leaves for its network card to do: checksums that are not complete, and
 * frames longer than the network has, which the card is to cut.
 */
#ifndef ORNICD_NET_OFFLOAD_H
#define ORNICD_NET_OFFLOAD_H

#include "../packet/frames.h"
#include "../packet/wire.h"

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

/** OFFLOAD_MAX_BYTES - the longest frame that is to be cut: an IP packet, Ethernet, two tags */
#define OFFLOAD_MAX_BYTES	(65535 + ETH_BYTES + 2 * VLAN_BYTES)

/** enum offload_kind - what a frame is */
enum offload_kind {
	OFFLOAD_BAD,	/* to be dropped: contradicts its description, or is none we know */
	OFFLOAD_WHOLE,	/* is now as it belongs on the wire */
	OFFLOAD_CUT,	/* is to be had in pieces from offload_next() */
};

/**
 * struct offload - a long frame on its way into short ones
 * @frame:	the long one
 * @l3:		byte of its IP header
 * @l4:		byte of its TCP or UDP header
 * @field:	byte of the checksum there
 * @head:	bytes of all headers
 * @end:	where the IP packet ends
 * @at:		next byte of the payload
 * @size:	payload of each short frame but the last
 * @number:	of the next short frame, from 0
 * @proto:	IP protocol
 * @ipv6:	or IPv4
 * @plain:	UDP without a checksum
 * @ecn:	TCP's CWR is that of RFC 3168
 * @done:	no more to come
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
 * offload_begin() - do a card's work on a frame
 * @o:		state, for offload_next()
 * @vh:		what is to be done, in this machine's byte order; @vh->hdr_len is a hint and not
 *		looked at
 * @frame:	frame; a checksum is completed in place. It has to live until it is cut
 * @len:	its bytes
 *
 * Return: what it is.
 */
enum offload_kind offload_begin(struct offload *o, const struct virtio_net_hdr *vh,
				uint8_t *frame, uint32_t len);

/**
 * offload_next() - the next short frame of one that is OFFLOAD_CUT
 * @o:	state
 * @to:	room for FRAMES_MAX_BYTES
 *
 * Return: its bytes; 0 if there is none.
 */
uint32_t offload_next(struct offload *o, uint8_t *to);

#endif /* ORNICD_NET_OFFLOAD_H */
