/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Source addresses that a station may use, and the check of the frames that it sends (ORN-ETH-1,
 * ORN-ETH-15, ORN-ETH-16).
 */
#ifndef ORNICD_PACKET_ANTISPOOF_H
#define ORNICD_PACKET_ANTISPOOF_H

#include <stdbool.h>
#include <stdint.h>

/** ANTISPOOF_PREFIXES - most prefixes of a station that the operator may list */
#define ANTISPOOF_PREFIXES	32

/**
 * ANTISPOOF_BYTES - bytes at the beginning of a frame that are checked; a frame whose headers are
 * longer is not allowed
 */
#define ANTISPOOF_BYTES		256

/** ANTISPOOF_TEXT - size of a buffer for the text of a prefix */
#define ANTISPOOF_TEXT		52

/**
 * struct antispoof_prefix - IP addresses that begin with the same bits
 * @addr:	address in network byte order; IPv4 as ::ffff:a.b.c.d
 * @bits:	number of bits that are the same, 0 to 128; for IPv4 96 to 128
 */
struct antispoof_prefix {
	uint8_t addr[16];
	uint8_t bits;
};

/**
 * struct antispoof - IP addresses that a station may use
 * @ip:		IP addresses are checked
 * @n:		used entries of @prefix
 * @prefix:	the addresses; the last entry has room for the link-local address
 */
struct antispoof {
	bool ip;
	uint32_t n;
	struct antispoof_prefix prefix[ANTISPOOF_PREFIXES + 1];
};

/**
 * antispoof_parse() - parse "ADDR[/BITS]", an IPv4 or IPv6 address or prefix
 * @prefix:	result
 * @text:	the text
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *antispoof_parse(struct antispoof_prefix *prefix, const char *text);

/* antispoof_print() - write the text of @prefix to @text, ANTISPOOF_TEXT bytes */
void antispoof_print(const struct antispoof_prefix *prefix, char *text);

/*
 * antispoof_link_local() - allow the link-local address that @mac gives (modified EUI-64, RFC 4291),
 * once, in addition to at most ANTISPOOF_PREFIXES others
 */
void antispoof_link_local(struct antispoof *a, const uint8_t mac[6]);

/* antispoof_address() - return true if the station may use the IP address or GID @addr */
bool antispoof_address(const struct antispoof *a, const uint8_t addr[16]);

/**
 * antispoof_frame() - check the source addresses of a frame
 * @a:		addresses of the station
 * @mac:	its MAC address
 * @head:	copy of the beginning of the frame, which nobody else can change
 * @bytes:	bytes of @head: the frame, or ANTISPOOF_BYTES; without @a->ip ETH_BYTES suffice
 * @len:	bytes of the frame
 *
 * Return: NULL if the station may send the frame, or why it may not.
 */
const char *antispoof_frame(const struct antispoof *a, const uint8_t mac[6], const uint8_t *head,
			    uint32_t bytes, uint32_t len);

#endif /* ORNICD_PACKET_ANTISPOOF_H */
