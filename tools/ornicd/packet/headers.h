/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read the headers of a frame that is not trusted, one after the other.
 *
 * Each header is checked against the bytes at hand and against the length in the header before it.
 */
#ifndef ORNICD_PACKET_HEADERS_H
#define ORNICD_PACKET_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#define PROTO_HOP_BY_HOP	0
#define PROTO_TCP		6
#define PROTO_UDP		17
#define PROTO_ROUTING		43
#define PROTO_FRAGMENT		44
#define PROTO_ICMPV6		58
#define PROTO_DESTINATION	60

/* Bytes 6 and 7 of an IPv4 header */
#define IPV4_DF		0x4000
#define IPV4_MF		0x2000
#define IPV4_OFFSET	0x1fff

/**
 * struct cursor - the part of a frame that is not yet read
 * @at:		next byte
 * @left:	bytes at hand from @at on; the rest of the frame is elsewhere
 * @len:	bytes of the packet from @at on, according to frame and IP header
 */
struct cursor {
	const uint8_t *at;
	uint32_t left;
	uint32_t len;
};

/**
 * struct ipv6_fragment - fragment headers of an IPv6 packet
 * @any:	there is one
 * @more:	more fragments follow
 * @later:	not the first fragment: no header is behind the fragment header
 */
struct ipv6_fragment {
	bool any;
	bool more;
	bool later;
};

/* headers_take() - return the next @bytes and move behind them; NULL if the packet is shorter */
const uint8_t *headers_take(struct cursor *c, uint32_t bytes);

/*
 * headers_ipv4(), headers_ipv6() - return the IP header and move behind it, with IPv4 behind its
 * options; the packet ends where the header says. NULL: truncated or inconsistent, the position is
 * undefined.
 */
const uint8_t *headers_ipv4(struct cursor *c);
const uint8_t *headers_ipv6(struct cursor *c);

/**
 * headers_extensions() - move behind IPv6 extension headers
 * @c:		position behind the IPv6 header
 * @next:	next header of the IPv6 header; after success the protocol behind the extensions
 * @frag:	what the fragment headers say; valid after failure, too
 *
 * Return: false if one is truncated or there are more than 7.
 */
bool headers_extensions(struct cursor *c, uint8_t *next, struct ipv6_fragment *frag);

#endif /* ORNICD_PACKET_HEADERS_H */
