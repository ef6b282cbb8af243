// SPDX-License-Identifier: GPL-2.0
/* net/offload.c: frames built from their description, and wrong offload descriptions. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/offload.h"

#define UDP_L4		5		/* VIRTIO_NET_HDR_GSO_UDP_L4 of newer headers */
#define ECN		VIRTIO_NET_HDR_GSO_ECN
#define NEEDS_CSUM	VIRTIO_NET_HDR_F_NEEDS_CSUM
#define CUTS_MAX	8192
#define FIN		0x01
#define PSH		0x08
#define CWR		0x80

/**
 * struct what - contents of a frame
 * @tags:	VLAN tags
 * @options:	words of four bytes in the IPv4 header behind the first five; of eight in each of
 *   the two IPv6 options, if there are any
 * @tcp_options: words behind TCP's first five
 * @sum:	there is a checksum
 */
struct what {
	bool ipv6;
	uint8_t proto;
	uint32_t tags;
	uint32_t options;
	uint32_t tcp_options;
	uint16_t id;
	uint32_t seq;
	uint8_t flags;
	bool sum;
	const uint8_t *payload;
	uint32_t len;
};

/**
 * struct where - positions in a frame
 * @l4:	byte of the transport's header
 * @head:	bytes of all headers
 * @len:	bytes of the frame
 */
struct where {
	uint32_t l3;
	uint32_t l4;
	uint32_t head;
	uint32_t len;
};

static uint8_t payload[65536];

/* One byte at a time, in network order. */
static uint32_t slow(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* One bit at a time. */
static uint32_t slow_crc32c(const uint8_t *p, uint32_t len)
{
	uint32_t crc = 0xffffffff;

	for (uint32_t i = 0; i < len * 8; i++) {
		bool out = (crc ^ p[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (out ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static uint32_t csum_at(uint8_t proto)
{
	return proto == IPPROTO_TCP ? 16 : proto == IPPROTO_UDP ? 6 : 8;
}

static uint32_t l4_bytes(const struct what *w)
{
	return w->proto == IPPROTO_TCP ? 20 + w->tcp_options * 4 :
	       w->proto == IPPROTO_UDP ? 8 : 12;
}

/* Return the sum of the pseudo header, for @len bytes of transport header and payload. */
static uint32_t pseudo(const struct what *w, const uint8_t *l3, uint32_t len)
{
	const uint8_t rest[4] = { 0, w->proto, len >> 8, len };
	uint32_t sum = slow(0, l3 + (w->ipv6 ? 8 : 12), w->ipv6 ? 32 : 8);

	return slow(sum, rest, sizeof(rest));
}

static uint32_t build_l3(const struct what *w, uint8_t *ip, uint32_t rest)
{
	uint32_t bytes = 20 + w->options * 4;

	if (w->ipv6) {
		bytes = w->options ? 2 * 8 * w->options : 0;
		memcpy(ip, (uint8_t [8]) { 0x6a, 0xbc, 0xde, 0xf0, 0, 0, w->proto, 64 }, 8);
		be16_put(ip + 4, bytes + rest);
		memset(ip + 8, 0x2b, 16);
		memset(ip + 24, 0xe7, 16);
		memset(ip + 40, 0x11, bytes);
		if (bytes) {
			ip[6] = IPPROTO_HOPOPTS;
			ip[40] = IPPROTO_DSTOPTS;
			ip[40 + bytes / 2] = w->proto;
			ip[41] = w->options - 1;
			ip[41 + bytes / 2] = w->options - 1;
		}
		return 40 + bytes;
	}
	memset(ip, 0x01, bytes);
	ip[0] = 0x40 | bytes / 4;
	ip[1] = 2;
	be16_put(ip + 2, bytes + rest);
	be16_put(ip + 4, w->id);
	be16_put(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = w->proto;
	be16_put(ip + 10, 0);
	memcpy(ip + 12, "\x0a\x58\xff\x01\x0a\x58\x00\xfe", 8);
	be16_put(ip + 10, ~slow(0, ip, bytes));
	return bytes;
}

/* Build the frame with all checksums, as sent on the wire. */
static struct where build(const struct what *w, uint8_t *to)
{
	struct where at = { 0 };
	uint32_t field, l4 = l4_bytes(w);
	uint16_t csum;

	memset(to, 0x22, 12);
	at.l3 = 12;
	for (uint32_t i = 0; i < w->tags; i++, at.l3 += 4)
		memcpy(to + at.l3, i ? "\x81\x00\x60\x05" : "\x88\xa8\x00\x07", 4);
	be16_put(to + at.l3, w->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	at.l3 += 2;
	at.l4 = at.l3 + build_l3(w, to + at.l3, l4 + w->len);
	at.head = at.l4 + l4;
	at.len = at.head + w->len;
	memset(to + at.l4, 0x37, l4);
	memcpy(to + at.head, w->payload, w->len);
	if (w->proto == IPPROTO_TCP) {
		be32_put(to + at.l4 + 4, w->seq);
		to[at.l4 + 12] = l4 / 4 << 4;
		to[at.l4 + 13] = w->flags;
	} else if (w->proto == IPPROTO_UDP) {
		be16_put(to + at.l4 + 4, l4 + w->len);
	}
	field = at.l4 + csum_at(w->proto);
	be16_put(to + field, 0);
	if (!w->sum)
		return at;
	csum = ~slow(pseudo(w, to + at.l3, l4 + w->len), to + at.l4, l4 + w->len);
	be16_put(to + field, csum ? csum : 0xffff);
	return at;
}

/* The network stack leaves the sum of the pseudo header in the checksum field. */
static void leave_sum(const struct what *w, const struct where *at, uint8_t *frame)
{
	be16_put(frame + at->l4 + csum_at(w->proto),
		 pseudo(w, frame + at->l3, at->len - at->l4));
}

static struct what some(uint32_t len)
{
	struct what w = {
		.ipv6 = rand() & 1,
		.proto = rand() & 1 ? IPPROTO_TCP : IPPROTO_UDP,
		.tags = rand() % 3,
		.tcp_options = rand() % 11,
		.id = rand(),
		.seq = rand() ^ (uint32_t)rand() << 16,
		.flags = rand(),
		.sum = true,
		.payload = payload + rand() % 64,
		.len = len,
	};

	w.options = w.ipv6 ? rand() % 3 : rand() % 11;
	return w;
}

static struct virtio_net_hdr cut_of(const struct what *w, const struct where *at, uint16_t size)
{
	struct virtio_net_hdr vh = {
		.flags = NEEDS_CSUM,
		.gso_type = w->proto == IPPROTO_UDP ? UDP_L4 :
			    w->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = rand(),
		.gso_size = size,
		.csum_start = at->l4,
		.csum_offset = csum_at(w->proto),
	};

	return vh;
}

static void check_cuts(struct offload *o, const struct what *w, uint32_t size, bool ecn)
{
	static uint8_t want[OFFLOAD_MAX_BYTES], got[FRAMES_MAX_BYTES];
	struct what piece = *w;
	struct where at;
	uint32_t i = 0;

	do {
		bool last = size * (i + 1) >= w->len;

		piece.id = w->id + i;
		piece.seq = w->seq + size * i;
		piece.payload = w->payload + size * i;
		piece.len = last ? w->len - size * i : size;
		piece.flags = w->flags & ~((i && ecn ? CWR : 0) | (last ? 0 : FIN | PSH));
		at = build(&piece, want);
		assert_int_equal(offload_next(o, got), at.len);
		assert_memory_equal(got, want, at.len);
		i++;
	} while (size * i < w->len);
	assert_int_equal(offload_next(o, got), 0);
	assert_int_equal(offload_next(o, got), 0);
}

/* ---- valid requests ---------------------------------------------------------- */

static void test_cut(void **state)
{
	static uint8_t frame[OFFLOAD_MAX_BYTES + 64];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		uint32_t len = round % 3 ? rand() % 65000 : rand() % 200;
		uint32_t size = round % 2 ? 1 + rand() % 9000 : 8 + rand() % 1500;
		struct what w = some(len);
		struct where at = build(&w, frame);
		struct virtio_net_hdr vh = cut_of(&w, &at, size);
		struct offload o;

		if (at.len - at.l3 > 65535 || at.head + size > FRAMES_MAX_BYTES ||
		    len / size >= CUTS_MAX)
			continue;
		if (rand() & 1) {
			leave_sum(&w, &at, frame);
		} else {
			vh.flags = rand() & 1 ? VIRTIO_NET_HDR_F_DATA_VALID : 0;
			vh.csum_start = rand();
			vh.csum_offset = rand();
		}
		if (w.proto == IPPROTO_TCP && rand() & 1)
			vh.gso_type |= ECN;
		assert_int_equal(offload_begin(&o, &vh, frame, at.len + round % 5), OFFLOAD_CUT);
		check_cuts(&o, &w, size, vh.gso_type & ECN);
	}
}

/* UDP without a checksum gets none. */
static void test_cut_plain(void **state)
{
	static uint8_t frame[4096];

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct what w = { .ipv6 = ipv6, .proto = IPPROTO_UDP, .payload = payload,
				  .len = 3001 };
		struct where at = build(&w, frame);
		struct virtio_net_hdr vh = cut_of(&w, &at, 1000);
		struct offload o;

		assert_int_equal(offload_begin(&o, &vh, frame, at.len), OFFLOAD_CUT);
		check_cuts(&o, &w, 1000, vh.gso_type & ECN);
	}
}

static void check_whole(const struct what *w)
{
	static uint8_t frame[OFFLOAD_MAX_BYTES + 64], want[OFFLOAD_MAX_BYTES + 64];
	struct where at = build(w, want);
	struct virtio_net_hdr vh = {
		.flags = NEEDS_CSUM,
		.gso_size = rand(),
		.csum_start = at.l4,
		.csum_offset = csum_at(w->proto),
	};
	uint8_t got[FRAMES_MAX_BYTES];
	struct offload o;

	memcpy(frame, want, at.len);
	leave_sum(w, &at, frame);
	assert_int_equal(offload_begin(&o, &vh, frame, at.len), OFFLOAD_WHOLE);
	assert_memory_equal(frame, want, at.len);
	assert_int_equal(offload_next(&o, got), 0);
}

static void test_checksum(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct what w = some(rand() % 3000);

		check_whole(&w);
	}
}

/* UDP: a sum of zero is written as 0xffff, because zero means no checksum. */
static void test_zero(void **state)
{
	uint8_t bytes[2];
	struct what w = { .proto = IPPROTO_UDP, .sum = true, .payload = bytes, .len = 2 };

	(void)state;
	for (uint32_t v = 0; v < 0x10000; v++) {
		be16_put(bytes, v);
		check_whole(&w);
	}
}

/* Nothing is requested, and nothing changes. */
static void test_nothing(void **state)
{
	static const uint8_t flags[] = { 0, VIRTIO_NET_HDR_F_DATA_VALID };
	uint8_t frame[100], want[100];
	struct offload o;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct virtio_net_hdr vh = { .flags = flags[i & 1], .csum_start = rand(),
					     .csum_offset = rand(), .gso_size = rand() };
		uint32_t len = i / 2;

		memcpy(want, payload, sizeof(want));
		memcpy(frame, payload, sizeof(frame));
		assert_int_equal(offload_begin(&o, &vh, frame, len), OFFLOAD_WHOLE);
		assert_memory_equal(frame, want, sizeof(want));
	}
}

/* SCTP has a CRC, but the request has the form of a checksum request. */
static void test_sctp(void **state)
{
	(void)state;
	assert_int_equal(slow_crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
	for (int round = 0; round < 100; round++) {
		struct what w = some(rand() % 200);
		uint8_t frame[1000], want[1000];
		struct virtio_net_hdr vh = { .flags = NEEDS_CSUM, .csum_offset = 8 };
		struct offload o;
		struct where at;
		uint32_t crc;

		w.proto = IPPROTO_SCTP;
		at = build(&w, frame);
		vh.csum_start = at.l4;
		memset(frame + at.l4 + 8, 0, 4);
		memcpy(want, frame, at.len);
		memcpy(frame + at.l4 + 8, payload + round, 4);	/* not part of the CRC */
		crc = slow_crc32c(want + at.l4, at.len - at.l4);
		for (int i = 0; i < 4; i++)
			want[at.l4 + 8 + i] = crc >> i * 8;
		assert_int_equal(offload_begin(&o, &vh, frame, at.len), OFFLOAD_WHOLE);
		assert_memory_equal(frame, want, at.len);
	}
}

/* An SCTP header has 12 bytes: a shorter packet has none, even if the frame continues. */
static void test_short_sctp(void **state)
{
	struct virtio_net_hdr vh = { .flags = NEEDS_CSUM, .csum_offset = 8 };
	struct offload o;

	(void)state;
	for (uint32_t i = 0; i < 2 * 13; i++) {
		const bool ipv6 = i & 1;
		const uint32_t n = i / 2;
		const struct what w = { .ipv6 = ipv6, .options = ipv6, .proto = IPPROTO_SCTP,
					.sum = true, .payload = payload, .len = 20 };
		uint8_t frame[150], copy[150];
		struct where at = build(&w, frame);

		vh.csum_start = at.l4;
		be16_put(frame + at.l3 + (ipv6 ? 4 : 2), (ipv6 ? at.l4 - at.l3 - 40 : 20) + n);
		memcpy(copy, frame, at.len);
		assert_int_equal(offload_begin(&o, &vh, frame, at.len),
				 n < 12 ? OFFLOAD_BAD : OFFLOAD_WHOLE);
		assert_int_equal(!memcmp(copy, frame, at.len), n < 12);
	}
}

/* Options that end behind the packet: it has no SCTP header, and gets the sum that is requested. */
static void test_options_before_sctp(void **state)
{
	const struct what w = { .ipv6 = true, .options = 2, .proto = IPPROTO_SCTP, .sum = true,
				.payload = payload, .len = 20 };
	uint8_t frame[150], copy[150];
	struct where at = build(&w, frame);
	struct virtio_net_hdr vh = { .flags = NEEDS_CSUM, .csum_start = at.l4, .csum_offset = 8 };
	struct offload o;

	(void)state;
	for (uint32_t n = 0; n < at.l4 - at.l3 - 40; n++) {
		be16_put(frame + at.l3 + 4, n);
		memcpy(copy, frame, at.len);
		assert_int_equal(offload_begin(&o, &vh, copy, at.len), OFFLOAD_WHOLE);
		memcpy(copy + at.l4 + 8, frame + at.l4 + 8, 2);
		assert_memory_equal(copy, frame, at.len);
	}
}

/* A sum at the place of SCTP's checksum, in packets of other protocols */
static void test_sum_in_place_of_sctp(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct what w = { .ipv6 = i & 1, .proto = i & 2 ? IPPROTO_TCP : IPPROTO_UDP,
					.sum = true, .payload = payload, .len = 20 };
		uint8_t frame[150], copy[150];
		struct where at = build(&w, frame);
		struct virtio_net_hdr vh = { .flags = NEEDS_CSUM, .csum_start = at.l4,
					     .csum_offset = 8 };
		struct offload o;

		memcpy(copy, frame, at.len);
		assert_int_equal(offload_begin(&o, &vh, copy, at.len), OFFLOAD_WHOLE);
		memcpy(copy + at.l4 + 8, frame + at.l4 + 8, 2);
		assert_memory_equal(copy, frame, at.len);
	}
}

/* ---- invalid requests -------------------------------------------------------- */

/* The length in the IP header is 0x1010. */
static struct what plain_tcp(bool ipv6)
{
	return (struct what) { .ipv6 = ipv6, .proto = IPPROTO_TCP, .sum = true, .flags = 0x10,
			       .payload = payload, .len = 0x1010 - (ipv6 ? 20 : 40) };
}

static void refused(const uint8_t *frame, const struct virtio_net_hdr *vh, uint32_t len)
{
	uint8_t *copy = malloc(len), got[FRAMES_MAX_BYTES];
	struct offload o;

	memcpy(copy, frame, len);
	assert_int_equal(offload_begin(&o, vh, copy, len), OFFLOAD_BAD);
	assert_memory_equal(copy, frame, len);
	assert_int_equal(offload_next(&o, got), 0);
	free(copy);
}

static void test_bad_description(void **state)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_UDP, 2, 6, 0x7f, ECN, ECN | UDP_L4,
					 UDP_L4, ECN | VIRTIO_NET_HDR_GSO_UDP, 0xff,
					 VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6 };
	static uint8_t frame[5000];

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct what w = plain_tcp(ipv6);
		struct where at = build(&w, frame);
		const struct virtio_net_hdr good = cut_of(&w, &at, 1000);
		struct virtio_net_hdr vh = good;

		for (size_t i = 0; i < 2 * sizeof(types); i++) {
			vh.gso_type = types[i / 2];
			vh.flags = i & 1 ? good.flags : 0;
			if (vh.gso_type != good.gso_type)
				refused(frame, &vh, at.len);
		}
		vh = good;
		vh.gso_size = 0;
		refused(frame, &vh, at.len);
		vh.gso_size = FRAMES_MAX_BYTES - at.head + 1;
		refused(frame, &vh, at.len);
		vh = good;
		vh.csum_start++;
		refused(frame, &vh, at.len);
		vh = good;
		vh.csum_offset = 6;
		refused(frame, &vh, at.len);
	}
}

/* Limit of segments: a long frame could be cut into more segments of a few bytes. */
static void test_too_many(void **state)
{
	static uint8_t frame[OFFLOAD_MAX_BYTES];
	struct what w = plain_tcp(false);
	struct virtio_net_hdr vh;
	struct where at;

	(void)state;
	w.len = 2 * CUTS_MAX;
	at = build(&w, frame);
	vh = cut_of(&w, &at, 2);
	refused(frame, &vh, at.len);
	vh.gso_size = 1;
	refused(frame, &vh, at.len);
	w.len--;
	at = build(&w, frame);
	vh.gso_size = 2;
	assert_int_equal(offload_begin(&(struct offload) {}, &vh, frame, at.len), OFFLOAD_CUT);
	vh.gso_size = 3;
	assert_int_equal(offload_begin(&(struct offload) {}, &vh, frame, at.len), OFFLOAD_CUT);
}

/* Set byte @at of the IP or TCP header to @value */
static void check_bad_header(bool ipv6, bool l4, uint32_t at, uint8_t value)
{
	static uint8_t frame[5000];
	struct what w = plain_tcp(ipv6);
	struct where where = build(&w, frame);
	struct virtio_net_hdr vh = cut_of(&w, &where, 1000);

	frame[(l4 ? where.l4 : where.l3) + at] = value;
	refused(frame, &vh, where.len);
	vh.flags = 0;
	if (value != 0x46)
		refused(frame, &vh, where.len);
}

static void test_bad_headers(void **state)
{
	(void)state;
	check_bad_header(false, false, 0, 0x65);
	check_bad_header(false, false, 0, 0x44);
	check_bad_header(false, false, 0, 0x46);	/* then TCP starts elsewhere */
	check_bad_header(false, false, 2, 0xff);
	check_bad_header(false, false, 2, 0);
	check_bad_header(false, false, 6, 0x20);	/* fragments */
	check_bad_header(false, false, 7, 0x01);
	check_bad_header(false, false, 9, IPPROTO_UDP);
	check_bad_header(true, false, 0, 0x45);
	check_bad_header(true, false, 4, 0xff);
	check_bad_header(true, false, 6, IPPROTO_ROUTING);
	check_bad_header(true, false, 6, IPPROTO_FRAGMENT);
	check_bad_header(true, false, 6, IPPROTO_HOPOPTS);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		check_bad_header(ipv6, true, 12, 0x40);
		check_bad_header(ipv6, false, ipv6 ? 4 : 2, 0);
		check_bad_header(ipv6, false, ipv6 ? -1 : -2, 0x01);
	}
}

/* Every prefix of a frame: no access beyond its end. */
static void test_cut_off(void **state)
{
	static uint8_t frame[5000];

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct what w = some(300);
		struct where at = build(&w, frame);
		struct virtio_net_hdr vh = cut_of(&w, &at, 100);
		struct offload o;

		leave_sum(&w, &at, frame);
		for (uint32_t len = 0; len < at.len; len++)
			refused(frame, &vh, len);
		vh.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		for (uint32_t len = 0; len < at.l4 + vh.csum_offset + 2; len++)
			refused(frame, &vh, len);
		vh.csum_start = ETH_BYTES - 1;
		refused(frame, &vh, at.len);
		vh.csum_start = ETH_BYTES;	/* any data may have a checksum */
		assert_int_equal(offload_begin(&o, &vh, frame, at.len), OFFLOAD_WHOLE);
		vh.csum_start = 0xffff;
		vh.csum_offset = 0xffff;
		refused(frame, &vh, at.len);
		vh.csum_start = at.len - 2;
		vh.csum_offset = 1;
		refused(frame, &vh, at.len);
		vh.csum_offset = 0;
		assert_int_equal(offload_begin(&o, &vh, frame, at.len), OFFLOAD_WHOLE);
	}
}

/*
 * The IP header says @n bytes, in memory that ends there; the length of the IP header limits the
 * cuts.
 */
static void check_ip_length(const struct what *w, uint32_t n)
{
	static uint8_t frame[5000], got[FRAMES_MAX_BYTES];
	const struct where at = build(w, frame);
	struct virtio_net_hdr vh = cut_of(w, &at, 100);
	const uint32_t ip = w->ipv6 ? 40 : 0, len = at.l3 + ip + n;
	uint32_t bytes = 0, piece;
	uint8_t *copy;
	struct offload o;

	be16_put(frame + at.l3 + (w->ipv6 ? 4 : 2), n);
	copy = malloc(len);
	memcpy(copy, frame, len);
	if (len < at.head) {
		refused(copy, &vh, len);
	} else {
		assert_int_equal(offload_begin(&o, &vh, copy, len), OFFLOAD_CUT);
		while ((piece = offload_next(&o, got))) {
			assert_memory_equal(got, frame, at.l3);
			bytes += piece - at.head;
		}
		assert_int_equal(bytes, len - at.head);
	}
	free(copy);
}

/* Each length: of IPv4 with and without options, of IPv6 with and without extension headers */
static void test_every_ip_length(void **state)
{
	(void)state;
	for (int round = 0; round < 60; round++) {
		struct what w = some(150);
		const uint32_t whole = build(&w, (uint8_t [5000]) { 0 }).len;

		for (uint32_t n = w.ipv6 ? 0 : 20 + 4 * w.options; ; n++) {
			const uint32_t l3 = 14 + 4 * w.tags + (w.ipv6 ? 40 : 0);

			if (l3 + n > whole)
				break;
			check_ip_length(&w, n);
		}
	}
}

/* A hop-by-hop header needs 8 bytes: a shorter rest of the packet is no header. */
static void test_short_options(void **state)
{
	static uint8_t frame[5000];
	struct what w = plain_tcp(true);
	struct where at;

	(void)state;
	w.options = 1;
	at = build(&w, frame);
	for (uint16_t n = 0; n < 16; n++) {
		struct virtio_net_hdr vh = cut_of(&w, &at, 1000);

		be16_put(frame + at.l3 + 4, n);
		refused(frame, &vh, at.l3 + 40 + n);
		refused(frame, &vh, at.len);
	}
}

static uint16_t anything(uint16_t good)
{
	switch (rand() % 4) {
	case 0:
		return rand();
	case 1:
		return good + rand() % 5 - 2;
	default:
		return good;
	}
}

/* Random descriptions of random frames: no access beyond the memory, and an end in finite time. */
static void test_hostile(void **state)
{
	static uint8_t frame[OFFLOAD_MAX_BYTES + 64];
	static const uint8_t types[] = { 0, 1, 4, 5, 0x81, 0x84 };
	uint8_t *to = malloc(FRAMES_MAX_BYTES);
	uint32_t kinds[3] = { 0 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct what w = some(round % 50 ? rand() % 500 : rand() % 60000);
		struct where at = build(&w, frame);
		struct virtio_net_hdr vh = cut_of(&w, &at, 1 + rand() % 500);
		uint32_t len = rand() % 4 ? at.len : rand() % (at.len + 1), n, total = 0;
		uint8_t *copy;
		struct offload o;

		vh.flags = anything(vh.flags);
		vh.gso_type = rand() % 4 ? vh.gso_type : types[rand() % sizeof(types)];
		vh.gso_size = anything(vh.gso_size);
		vh.csum_start = anything(vh.csum_start);
		vh.csum_offset = anything(vh.csum_offset);
		for (int i = rand() % 4; i; i--)
			frame[rand() % at.head] = rand();
		copy = malloc(len);
		memcpy(copy, frame, len);
		kinds[offload_begin(&o, &vh, copy, len)]++;
		for (uint32_t i = 0; (n = offload_next(&o, to)); i++) {
			assert_true(n <= FRAMES_MAX_BYTES && i < CUTS_MAX);
			total += n - o.head;
		}
		assert_true(total <= len);
		free(copy);
	}
	for (int i = 0; i < 3; i++)
		assert_true(kinds[i] > 100);
	free(to);
}

static int fill(void **state)
{
	(void)state;
	srand(7);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = rand();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_plain),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_sctp),
		cmocka_unit_test(test_short_sctp),
		cmocka_unit_test(test_sum_in_place_of_sctp),
		cmocka_unit_test(test_options_before_sctp),
		cmocka_unit_test(test_bad_description),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_every_ip_length),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
