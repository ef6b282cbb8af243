// SPDX-License-Identifier: GPL-2.0
/*
 * Read the headers of a frame: IPv4 with options, IPv6 with extension headers.
 */
#include "headers.h"

#include "wire.h"

#include <stddef.h>

/* Most headers behind that of IPv6, the one that is no extension included */
#define MAX_HEADERS	8

/* Bytes 2 and 3 of an IPv6 fragment header */
#define IPV6_OFFSET	0xfff8
#define IPV6_MF		0x0001

const uint8_t *headers_take(struct cursor *c, uint32_t bytes)
{
	const uint8_t *p = c->at;

	if (bytes > c->left || bytes > c->len)
		return NULL;
	c->at += bytes;
	c->left -= bytes;
	c->len -= bytes;
	return p;
}

/* Limit the packet to @len bytes, the length in its IP header. */
static void shorten(struct cursor *c, uint32_t len)
{
	if (c->len > len)
		c->len = len;
}

const uint8_t *headers_ipv4(struct cursor *c)
{
	const uint8_t *ip = headers_take(c, IPV4_BYTES);
	uint32_t header, total;

	if (!ip || ip[0] >> 4 != 4)
		return NULL;
	header = (ip[0] & 0xf) * 4;
	total = be16_get(ip + 2);
	if (header < IPV4_BYTES || total < header)
		return NULL;
	shorten(c, total - IPV4_BYTES);
	return headers_take(c, header - IPV4_BYTES) ? ip : NULL;
}

const uint8_t *headers_ipv6(struct cursor *c)
{
	const uint8_t *ip = headers_take(c, IPV6_BYTES);

	if (!ip || ip[0] >> 4 != 6)
		return NULL;
	shorten(c, be16_get(ip + 4));
	return ip;
}

bool headers_extensions(struct cursor *c, uint8_t *next, struct ipv6_fragment *frag)
{
	*frag = (struct ipv6_fragment) { 0 };
	for (int i = 0; i < MAX_HEADERS; i++) {
		const uint8_t *ext;

		switch (*next) {
		case PROTO_HOP_BY_HOP:
		case PROTO_ROUTING:
		case PROTO_DESTINATION:
			ext = headers_take(c, 8);
			if (!ext || !headers_take(c, ext[1] * 8u))
				return false;
			break;
		case PROTO_FRAGMENT:
			ext = headers_take(c, 8);
			if (!ext)
				return false;
			frag->any = true;
			frag->more |= be16_get(ext + 2) & IPV6_MF;
			frag->later = be16_get(ext + 2) & IPV6_OFFSET;
			/* Stop: a later fragment continues with data, not with a header. */
			if (frag->later) {
				*next = ext[0];
				return true;
			}
			break;
		default:
			return true;
		}
		*next = ext[0];
	}
	return false;
}
