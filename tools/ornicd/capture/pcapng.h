/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng), always little-endian.
 *
 * Debian has no library that writes them with comments: libpcap writes the older format, and
 * libwiretap is all of Wireshark. It takes four kinds of block.
 *
 * Each function writes a whole block to memory that the caller knows to be large enough.
 */
#ifndef ORNICD_CAPTURE_PCAPNG_H
#define ORNICD_CAPTURE_PCAPNG_H

#include "../packet/packet.h"

#include <stddef.h>
#include <stdint.h>

/** PCAPNG_TEXT - most bytes of a text that are written */
#define PCAPNG_TEXT		256
/** PCAPNG_FIXED - no block is longer but for its texts and the data of its packet */
#define PCAPNG_FIXED		128
/** PCAPNG_STATISTICS - bytes of a block of statistics */
#define PCAPNG_STATISTICS	80

/* Flags of a packet: direction and kind of destination */
#define PCAPNG_INBOUND		0x1
#define PCAPNG_OUTBOUND		0x2
#define PCAPNG_UNICAST		(1 << 2)
#define PCAPNG_MULTICAST	(2 << 2)
#define PCAPNG_BROADCAST	(3 << 2)

/**
 * struct pcapng_interface - where packets are seen
 * @name:	of the interface
 * @description: what kind of interface
 * @snaplen:	most bytes of a packet that are kept
 */
struct pcapng_interface {
	const char *name;
	const char *description;
	uint32_t snaplen;
};

/**
 * struct pcapng_packet - an Ethernet frame
 * @interface:	number of the interface block, from 0
 * @ns:		when, in ns since 1970
 * @flags:	PCAPNG_*
 * @len:	bytes of the frame
 * @keep:	how many of them are kept, from the first on
 * @piece:	the frame, @npieces pieces
 * @npieces:	number of @piece
 * @comment:	UTF-8, or NULL
 */
struct pcapng_packet {
	uint32_t interface;
	uint64_t ns;
	uint32_t flags;
	uint32_t len;
	uint32_t keep;
	const struct seg *piece;
	uint32_t npieces;
	const char *comment;
};

/**
 * struct pcapng_statistics - what became of an interface's packets
 * @interface:	number of the interface block
 * @ns:		when these numbers held
 * @start_ns:	when the capture started
 * @end_ns:	when it ended
 * @received:	packets that the capture was meant to have
 * @dropped:	of these, packets for which there was no room
 */
struct pcapng_statistics {
	uint32_t interface;
	uint64_t ns;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t received;
	uint64_t dropped;
};

/* Each returns the bytes of the block at @to. */
uint32_t pcapng_put_section(uint8_t *to, const char *application);
uint32_t pcapng_put_interface(uint8_t *to, const struct pcapng_interface *i);
uint32_t pcapng_put_packet(uint8_t *to, const struct pcapng_packet *p);
uint32_t pcapng_put_statistics(uint8_t *to, const struct pcapng_statistics *s);

/* pcapng_packet_room() - memory that pcapng_put_packet() may need for @p */
uint32_t pcapng_packet_room(const struct pcapng_packet *p);

/* pcapng_whole() - bytes of the blocks that lie wholly in the @len bytes at @at */
size_t pcapng_whole(const uint8_t *at, size_t len);

#endif /* ORNICD_CAPTURE_PCAPNG_H */
