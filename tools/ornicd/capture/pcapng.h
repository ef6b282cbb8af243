/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng), always little-endian.
 *
 * Written here because no library in Debian 12 and 13 suits: libpcap writes the older format,
 * which has no comments, and libwiretap pulls in Wireshark. Four kinds of block suffice.
 *
 * Each function writes a whole block to memory that the caller has checked to be large enough.
 */
#ifndef ORNICD_CAPTURE_PCAPNG_H
#define ORNICD_CAPTURE_PCAPNG_H

#include "../packet/packet.h"

#include <stddef.h>
#include <stdint.h>

/** PCAPNG_TEXT - bytes after which a text is cut */
#define PCAPNG_TEXT		256
/** PCAPNG_FIXED - most bytes of a block without its texts and packet data */
#define PCAPNG_FIXED		128
/** PCAPNG_STATISTICS - bytes of a statistics block */
#define PCAPNG_STATISTICS	76

/* Flags of a packet: direction and kind of destination */
#define PCAPNG_INBOUND		0x1
#define PCAPNG_OUTBOUND		0x2
#define PCAPNG_UNICAST		(1 << 2)
#define PCAPNG_MULTICAST	(2 << 2)
#define PCAPNG_BROADCAST	(3 << 2)

/**
 * struct pcapng_interface - a port of the switch
 * @name:	name of the port
 * @description: kind of port
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
 * @ns:		time, ns since 1970
 * @flags:	PCAPNG_*
 * @len:	bytes of the frame
 * @keep:	number of bytes to write, from the first on
 * @piece:	@npieces pieces of the frame
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
 * struct pcapng_statistics - counters of an interface; times are in ns since 1970
 * @interface:	number of the interface block
 * @ns:		time of these counters
 * @start_ns:	start of the capture
 * @end_ns:	end of the capture
 * @received:	packets that match the capture
 * @dropped:	of these, packets that were not written
 */
struct pcapng_statistics {
	uint32_t interface;
	uint64_t ns;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t received;
	uint64_t dropped;
};

/* Write a block to @to. Return: its bytes. */
uint32_t pcapng_put_section(uint8_t *to, const char *application);
uint32_t pcapng_put_interface(uint8_t *to, const struct pcapng_interface *i);
uint32_t pcapng_put_packet(uint8_t *to, const struct pcapng_packet *p);
uint32_t pcapng_put_statistics(uint8_t *to, const struct pcapng_statistics *s);

/* pcapng_packet_room() - return the most bytes that pcapng_put_packet() writes for @p */
uint32_t pcapng_packet_room(const struct pcapng_packet *p);

/* pcapng_whole() - return the bytes of the complete blocks in the @len bytes at @at */
size_t pcapng_whole(const uint8_t *at, size_t len);

#endif /* ORNICD_CAPTURE_PCAPNG_H */
