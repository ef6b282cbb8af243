// SPDX-License-Identifier: GPL-2.0
/*
 * Receive side scaling: the Toeplitz hash over source address, destination address, source port and
 * destination port, in that order, and the table that it indexes.
 *
 * If a packet has no ports, only its addresses are hashed, so that all fragments of a datagram
 * reach one queue (ORN-RSS-5).
 */
#include "rss.h"

#include "qp.h"
#include "raw.h"

#include <endian.h>
#include <string.h>

#define PROTO_TCP	6
#define PROTO_UDP	17

/* Two IPv6 addresses and two ports */
#define INPUT_BYTES	36

_Static_assert(INPUT_BYTES + 4 <= ORNIC_RSS_KEY_BYTES, "every bit has 32 bits of the key");

/* Compute the hash: bit i of the input selects bits i .. i + 31 of the key. */
static uint32_t toeplitz(const uint8_t *key, const uint8_t *in, uint32_t len)
{
	uint32_t window, hash = 0;

	memcpy(&window, key, sizeof(window));
	window = be32toh(window);
	for (uint32_t i = 0; i < len; i++) {
		for (int bit = 7; bit >= 0; bit--) {
			if (in[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1);
		}
	}
	return hash;
}

/* Append @field to the input at @at if it is @wanted. Return: the length of the input. */
static uint32_t add(uint8_t *in, uint32_t at, bool wanted, const void *field, uint32_t size)
{
	if (wanted)
		memcpy(in + at, field, size);
	return wanted ? at + size : at;
}

static uint32_t add_addresses(const struct rss *rss, const struct frame *f, uint8_t *in)
{
	bool v4 = f->key.ip_version == 4;
	uint32_t src = v4 ? ORNIC_RSS_SRC_IPV4 : ORNIC_RSS_SRC_IPV6;
	uint32_t dst = v4 ? ORNIC_RSS_DST_IPV4 : ORNIC_RSS_DST_IPV6;
	uint32_t skip = v4 ? 12 : 0;	/* an IPv4 address is the end of the 16-byte field */
	uint32_t at;

	at = add(in, 0, rss->fields & src, f->key.src_ip + skip, 16 - skip);
	return add(in, at, rss->fields & dst, f->key.dst_ip + skip, 16 - skip);
}

static uint32_t add_ports(const struct rss *rss, const struct frame *f, uint8_t *in, uint32_t at)
{
	bool tcp = f->key.protocol == PROTO_TCP;
	uint32_t src = tcp ? ORNIC_RSS_SRC_PORT_TCP : ORNIC_RSS_SRC_PORT_UDP;
	uint32_t dst = tcp ? ORNIC_RSS_DST_PORT_TCP : ORNIC_RSS_DST_PORT_UDP;

	if (!(f->fields & ORNIC_MATCH_SRC_PORT))
		return at;
	at = add(in, at, rss->fields & src, &f->key.src_port, sizeof(f->key.src_port));
	return add(in, at, rss->fields & dst, &f->key.dst_port, sizeof(f->key.dst_port));
}

uint32_t rss_hash(const struct rss *rss, const struct frame *f, uint8_t *type)
{
	uint8_t in[INPUT_BYTES];
	uint32_t addresses, len;

	*type = 0;
	if (!(f->fields & ORNIC_MATCH_IP_VERSION))
		return 0;
	addresses = add_addresses(rss, f, in);
	len = add_ports(rss, f, in, addresses);
	if (addresses)
		*type |= f->key.ip_version == 4 ? ORNIC_RSS_TYPE_IPV4 : ORNIC_RSS_TYPE_IPV6;
	if (len > addresses)
		*type |= f->key.protocol == PROTO_TCP ? ORNIC_RSS_TYPE_TCP : ORNIC_RSS_TYPE_UDP;
	return toeplitz(rss->key, in, len);
}

struct qp *rss_pick(const struct rss *rss, const struct frame *f, struct raw_meta *meta)
{
	meta->rss_hash = rss_hash(rss, f, &meta->rss_type);
	return rss->qp[meta->rss_hash & ((1u << rss->log_size) - 1)];
}
