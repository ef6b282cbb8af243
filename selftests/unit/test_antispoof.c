// SPDX-License-Identifier: GPL-2.0
/*
 * packet/antispoof.c: the frames that a station may send, those that it may not, and both cut off
 * at every length (ORN-ETH-1, ORN-ETH-16); texts of addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/antispoof.h"
#include "packet/wire.h"

#define MOST	512

/* A frame of the station 02:00:00:aa:bb:cc */
struct bytes {
	uint32_t len;
	uint8_t b[MOST];
};

static const uint8_t mac[6] = { 2, 0, 0, 0xaa, 0xbb, 0xcc };
static const uint8_t other_mac[6] = { 2, 0, 0, 0xaa, 0xbb, 0xcd };

/*
 * Addresses by the letters of the tables below: m and n are in prefixes that the station has.
 * Each of x, y and z differs in a bit from an address that it has; l is the link-local address.
 */
static const struct {
	char name;
	uint8_t v4[4];
	const char *v6;
} addresses[] = {
	{ 'a', { 10, 0, 0, 1 }, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1" },
	{ 'm', { 10, 1, 0x97, 7 }, "\x20\x01\x0d\xb8\0\1\0\x7f\x12\x34\0\0\0\0\0\7" },
	{ 'l', { 169, 254, 1, 1 }, "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\xaa\xbb\xcc" },
	{ 'x', { 10, 0, 0, 3 }, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\3" },
	{ 'y', { 10, 1, 0x98, 7 }, "\x20\x01\x0d\xb8\0\1\0\x80\x12\x34\0\0\0\0\0\7" },
	{ 'z', { 255, 255, 255, 255 }, "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\xaa\xbb\xcd" },
	/* the form of the IPv4 address 10.0.0.1 in a GID */
	{ '4', { 10, 0, 0, 1 }, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1" },
	{ '0', { 0, 0, 0, 0 }, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" },
};

static const uint8_t *v4(char name)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		if (addresses[i].name == name)
			return addresses[i].v4;
	fail();
	return NULL;
}

static const uint8_t *v6(char name)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		if (addresses[i].name == name)
			return (const uint8_t *)addresses[i].v6;
	fail();
	return NULL;
}

static void add(struct bytes *f, const void *data, uint32_t len)
{
	assert_true(f->len + len <= MOST);
	memcpy(f->b + f->len, data, len);
	f->len += len;
}

#define ADD(f, ...) do {							\
	const uint8_t bytes_[] = { __VA_ARGS__ };				\
										\
	add(f, bytes_, sizeof(bytes_));						\
} while (0)

/* Begin a frame of @type; with @tags VLAN tags in front of it. */
static void eth(struct bytes *f, uint16_t type, unsigned int tags)
{
	f->len = 0;
	ADD(f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	add(f, mac, sizeof(mac));
	while (tags--)
		ADD(f, 0x81, 0, 0x20, 5);
	ADD(f, type >> 8, type);
}

static struct antispoof station(void)
{
	static const char *const texts[] = {
		"10.0.0.1", "10.1.144.0/21", "2001:db8::1", "2001:db8:1::/57",
	};
	struct antispoof a = { .ip = true };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(antispoof_parse(&a.prefix[a.n++], texts[i]));
	antispoof_link_local(&a, mac);
	return a;
}

/*
 * Check the first @at_hand bytes of a frame of @len bytes, in memory that ends with them for the
 * sanitizer.
 */
static const char *check_part(const struct bytes *f, uint32_t at_hand, uint32_t len)
{
	const struct antispoof a = station();
	uint8_t *exact = malloc(at_hand + 1);
	const char *why;

	assert_non_null(exact);
	memcpy(exact + 1, f->b, at_hand);
	why = antispoof_frame(&a, mac, exact + 1, at_hand, len);
	free(exact);
	return why;
}

static const char *check(const struct bytes *f)
{
	return check_part(f, f->len < ANTISPOOF_BYTES ? f->len : ANTISPOOF_BYTES, f->len);
}

/*
 * Check a frame that is cut off at each length. It must not pass because its end is missing. A
 * whole frame passes if its first @needs bytes are at hand.
 */
static void check_cuts(const struct bytes *f, bool allowed, uint32_t needs)
{
	for (uint32_t len = 0; len <= f->len; len++) {
		assert_int_equal(!check_part(f, len, len), allowed && len == f->len);
		assert_int_equal(!check_part(f, len, f->len), allowed && len >= needs);
	}
}

static void arp(struct bytes *f, uint16_t op, const uint8_t hw[6], char sender, char target)
{
	eth(f, 0x0806, 0);
	ADD(f, 0, 1, 8, 0, 6, 4, op >> 8, op);
	add(f, hw, 6);
	add(f, v4(sender), 4);
	add(f, other_mac, 6);
	add(f, v4(target), 4);
}

static void test_arp(void **state)
{
	static const struct {
		uint16_t op;
		const uint8_t *hw;
		char sender;
		char target;
		bool allowed;
	} cases[] = {
		{ 1, mac, 'a', 'x', true },
		{ 1, mac, 'm', 'x', true },
		{ 2, mac, 'a', 'x', true },
		/* gratuitous */
		{ 1, mac, 'a', 'a', true },
		{ 2, mac, 'a', 'a', true },
		{ 1, mac, 'x', 'x', false },
		{ 2, mac, 'x', 'x', false },
		/* the neighbor's address, or its MAC address */
		{ 1, mac, 'x', 'a', false },
		{ 2, mac, 'x', 'a', false },
		{ 2, mac, 'y', 'a', false },
		{ 2, mac, 'l', 'a', false },
		{ 1, other_mac, 'a', 'x', false },
		{ 2, other_mac, 'a', 'x', false },
		/* a probe: for an own address only, and no reply */
		{ 1, mac, '0', 'a', true },
		{ 1, mac, '0', 'm', true },
		{ 1, mac, '0', 'x', false },
		{ 1, other_mac, '0', 'a', false },
		{ 2, mac, '0', 'a', false },
		/* RARP and others by the type of ARP */
		{ 0, mac, 'a', 'x', false },
		{ 3, mac, 'a', 'a', false },
		{ 4, mac, 'a', 'a', false },
		{ 0x101, mac, 'a', 'a', false },
	};
	struct bytes f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		arp(&f, cases[i].op, cases[i].hw, cases[i].sender, cases[i].target);
		check_cuts(&f, cases[i].allowed, 42);
	}
	/* other kinds of addresses, or lengths that move the fields */
	for (uint32_t at = 14; at < 20; at++) {
		arp(&f, 2, mac, 'a', 'x');
		f.b[at] ^= 1;
		assert_non_null(check(&f));
	}
}

/* The MAC address is checked also where IP addresses are not, and nothing else is then. */
static void test_mac(void **state)
{
	const struct antispoof mac_only = { 0 };
	struct bytes f;

	(void)state;
	arp(&f, 2, other_mac, 'x', 'a');
	assert_null(antispoof_frame(&mac_only, mac, f.b, 14, f.len));
	assert_non_null(antispoof_frame(&mac_only, mac, f.b, 13, 13));
	for (uint32_t at = 6; at < 12; at++) {
		arp(&f, 2, mac, 'a', 'x');
		assert_null(check(&f));
		f.b[at] ^= 2;
		assert_non_null(check(&f));
		assert_non_null(antispoof_frame(&mac_only, mac, f.b, f.len, f.len));
	}
}

static void test_types(void **state)
{
	static const uint16_t types[] = {
		0, 38 /* a length, of LLC and SNAP */, 0x0801, 0x0807, 0x8035 /* RARP */,
		0x86dc, 0x8847, 0x8864 /* PPPoE */, 0x88a8, 0x8915 /* RoCE v1 */, 0x9100, 0xffff,
	};
	struct bytes f;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (unsigned int tags = 0; tags < 2; tags++) {
			arp(&f, 2, mac, 'a', 'x');
			eth(&f, types[i], tags);
			f.len = 64;
			assert_non_null(check(&f));
		}
	}
}

static void ipv4(struct bytes *f, char src, char dst, uint8_t words, uint16_t frag, uint8_t proto,
		 uint32_t payload)
{
	uint32_t total = words * 4 + payload;

	ADD(f, 0x40 | words, 0, total >> 8, total, 0, 0, frag >> 8, frag, 64, proto, 0, 0);
	add(f, v4(src), 4);
	add(f, v4(dst), 4);
	for (int i = 5; i < words; i++)
		ADD(f, 1, 1, 1, 1);
}

static void udp(struct bytes *f, uint16_t sport, uint16_t dport)
{
	ADD(f, sport >> 8, sport, dport >> 8, dport, 0, 8, 0, 0);
}

static void test_ipv4(void **state)
{
	static const struct {
		char src;
		char dst;
		uint8_t words;
		uint16_t frag;
		uint8_t proto;
		uint16_t sport;
		uint16_t dport;
		bool allowed;
	} cases[] = {
		{ 'a', 'x', 5, 0, 17, 1000, 2000, true },
		{ 'a', 'x', 15, 0x4000, 17, 1000, 4791, true },
		{ 'm', 'x', 5, 0, 6, 1000, 2000, true },
		{ 'a', 'z', 5, 0, 1, 0, 0, true },
		{ 'x', 'a', 5, 0, 17, 1000, 4791, false },
		{ 'x', 'a', 15, 0, 17, 1000, 4791, false },
		{ 'y', 'a', 5, 0, 6, 1000, 2000, false },
		{ 'x', 'a', 5, 0x2000, 17, 1000, 2000, false },
		{ 'x', 'a', 5, 0x0001, 17, 1000, 2000, false },
		{ 'z', 'a', 5, 0, 17, 1000, 2000, false },
		{ 'l', 'a', 5, 0, 17, 1000, 2000, false },
		/* no address: a DHCP client only */
		{ '0', 'z', 5, 0, 17, 68, 67, true },
		{ '0', 'z', 6, 0x4000, 17, 68, 67, true },
		{ '0', 'x', 5, 0, 17, 68, 67, false },
		{ '0', 'z', 5, 0, 17, 67, 68, false },
		{ '0', 'z', 5, 0, 17, 68, 68, false },
		{ '0', 'z', 5, 0, 17, 67, 67, false },
		{ '0', 'z', 5, 0, 6, 68, 67, false },
		{ '0', 'z', 5, 0x2000, 17, 68, 67, false },
		{ '0', 'z', 5, 0x0001, 17, 68, 67, false },
		{ '0', 'z', 5, 0x1000, 17, 68, 67, false },
		/* a DHCP client that renews, and a server */
		{ 'a', 'z', 5, 0, 17, 68, 67, true },
		{ 'a', 'z', 5, 0, 17, 67, 68, false },
		{ 'a', 'x', 5, 0x2000, 17, 67, 68, false },
		{ 'a', 'x', 5, 0, 17, 67, 67, true },
		{ 'a', 'x', 5, 0, 17, 68, 68, true },
		{ 'a', 'x', 5, 0, 6, 67, 68, true },
		/* a later fragment has no ports */
		{ 'a', 'x', 5, 0x0001, 17, 67, 68, true },
		{ 'a', 'x', 5, 0x3000, 17, 67, 68, true },
	};
	struct bytes f;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int tags = i % 2, n = i / 2;
		bool ports = cases[n].proto == 17 && !(cases[n].frag & 0x1fff);

		eth(&f, 0x0800, tags);
		ipv4(&f, cases[n].src, cases[n].dst, cases[n].words, cases[n].frag, cases[n].proto,
		     8);
		udp(&f, cases[n].sport, cases[n].dport);
		check_cuts(&f, cases[n].allowed,
			   14 + 4 * tags + 4 * cases[n].words + (ports ? 8 : 0));
	}
}

/* A header that says wrong lengths, or another version */
static void test_ipv4_lengths(void **state)
{
	struct bytes f;

	(void)state;
	for (uint32_t first = 0; first < 256; first++) {
		eth(&f, 0x0800, 0);
		ipv4(&f, 'a', 'x', 5, 0, 1, 100);
		f.b[14] = first;
		memset(f.b + f.len, 0, MOST - f.len);
		f.len = 134;
		assert_int_equal(!check(&f), first >> 4 == 4 && (first & 0xf) >= 5);
	}
	/* The frame has a padding behind the packet, but not less than the packet. */
	for (uint32_t total = 0; total < 70; total++) {
		eth(&f, 0x0800, 0);
		ipv4(&f, 'a', 'x', 6, 0, 17, total - 24);
		udp(&f, 1, 2);
		f.len = 60;
		assert_int_equal(!check(&f), total >= 32 && total <= 46);
	}
}

/* Two tags, or a tag of a provider network, are not looked behind. */
static void test_tags(void **state)
{
	struct bytes f;

	(void)state;
	for (unsigned int tags = 0; tags < 4; tags++) {
		eth(&f, 0x0800, tags);
		ipv4(&f, 'a', 'x', 5, 0, 1, 0);
		assert_int_equal(!check(&f), tags < 2);
	}
	eth(&f, 0x0800, 1);
	f.b[12] = 0x88;
	f.b[13] = 0xa8;
	ipv4(&f, 'a', 'x', 5, 0, 1, 0);
	assert_non_null(check(&f));
}

/* Add an IPv6 header; ipv6_end() sets its length. */
static void ipv6(struct bytes *f, uint8_t next, char src)
{
	eth(f, 0x86dd, 0);
	ADD(f, 0x60, 0, 0, 0, 0, 0, next, 255);
	add(f, v6(src), 16);
	add(f, v6('x'), 16);
}

static void ipv6_end(struct bytes *f)
{
	uint32_t payload = f->len - 54;

	f->b[18] = payload >> 8;
	f->b[19] = payload;
}

/* Add an extension header in front of @next, 8 bytes and @more times 8. */
static void extension(struct bytes *f, uint8_t next, uint8_t more)
{
	ADD(f, next, more, 1, 4, 0, 0, 0, 0);
	while (more--)
		ADD(f, 1, 6, 0, 0, 0, 0, 0, 0);
}

static void fragment(struct bytes *f, uint8_t next, uint16_t offset_more)
{
	ADD(f, next, 0, offset_more >> 8, offset_more, 1, 2, 3, 4);
}

/*
 * Behind the headers that @wrap names, in this order: h hop-by-hop, r routing, d destination,
 * D destination of 40 bytes, f atomic fragment, F first fragment, l later fragment.
 */
static void wrapped(struct bytes *f, const char *wrap, uint8_t proto, char src)
{
	static const struct {
		char name;
		uint8_t number;
	} kinds[] = {
		{ 'h', 0 }, { 'r', 43 }, { 'd', 60 }, { 'D', 60 }, { 'f', 44 }, { 'F', 44 },
		{ 'l', 44 },
	};
	uint8_t next[16];
	size_t n = strlen(wrap);

	next[n] = proto;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (kinds[k].name == wrap[i])
				next[i] = kinds[k].number;
	ipv6(f, next[0], src);
	for (size_t i = 0; i < n; i++) {
		if (wrap[i] == 'f' || wrap[i] == 'F' || wrap[i] == 'l')
			fragment(f, next[i + 1], wrap[i] == 'F' ? 1 : wrap[i] == 'l' ? 0x49 : 0);
		else
			extension(f, next[i + 1], wrap[i] == 'D' ? 4 : 0);
	}
}

static void test_ipv6(void **state)
{
	static const struct {
		char src;
		uint8_t next;
		uint16_t sport;
		uint16_t dport;
		bool allowed;
	} cases[] = {
		{ 'a', 17, 1000, 4791, true },
		{ 'm', 6, 1000, 2000, true },
		{ 'l', 17, 546, 547, true },
		{ 'a', 59, 0, 0, true },
		{ 'a', 50, 0, 0, true },
		{ 'a', 51, 0, 0, true },
		{ 'x', 17, 1000, 4791, false },
		{ 'y', 17, 1000, 4791, false },
		{ 'z', 17, 1000, 4791, false },
		{ 'z', 59, 0, 0, false },
		{ 'z', 6, 1, 2, false },
		{ '4', 17, 1000, 4791, false },
		{ '0', 17, 546, 547, false },
		{ '0', 6, 1, 2, false },
		{ '0', 59, 0, 0, false },
		/* a DHCPv6 server */
		{ 'l', 17, 547, 546, false },
		{ 'a', 17, 547, 546, false },
		{ 'a', 17, 547, 547, true },
		{ 'a', 17, 546, 546, true },
		{ 'a', 6, 547, 546, true },
	};
	struct bytes f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ipv6(&f, cases[i].next, cases[i].src);
		udp(&f, cases[i].sport, cases[i].dport);
		ipv6_end(&f);
		check_cuts(&f, cases[i].allowed, cases[i].next == 17 ? 62 : 54);
	}
	/* The frame has a padding, but not less than the packet; nor is the length elsewhere. */
	for (uint32_t more = 0; more < 8; more++) {
		ipv6(&f, 17, 'a');
		udp(&f, 1, 2);
		f.b[19] = 8 + more;
		f.len += 4;
		assert_int_equal(!check(&f), more <= 4);
	}
	wrapped(&f, "h", 17, 'a');
	udp(&f, 1, 2);
	assert_non_null(check(&f));
	for (uint32_t version = 0; version < 16; version++) {
		ipv6(&f, 59, 'a');
		f.b[14] = version << 4;
		assert_int_equal(!check(&f), version == 6);
	}
}

static void option(struct bytes *f, uint8_t kind, const uint8_t hw[6])
{
	ADD(f, kind, 1);
	add(f, hw, 6);
}

/* The letters of @options: s, t link-layer addresses of the station; S, T another's; o other */
static void nd(struct bytes *f, uint8_t type, char target, const char *options)
{
	ADD(f, type, 0, 0, 0, 0, 0, 0, 0);
	if (target != '-')
		add(f, v6(target), 16);
	for (; *options; options++) {
		switch (*options) {
		case 's':
		case 'S':
			option(f, 1, *options == 's' ? mac : other_mac);
			break;
		case 't':
		case 'T':
			option(f, 2, *options == 't' ? mac : other_mac);
			break;
		default:
			ADD(f, 14, 2, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8);
		}
	}
	ipv6_end(f);
}

static void test_nd(void **state)
{
	static const struct {
		char src;
		uint8_t type;
		char target;
		const char *options;
		bool allowed;
	} cases[] = {
		/* resolution */
		{ 'a', 135, 'x', "s", true },
		{ 'l', 135, 'x', "s", true },
		{ 'm', 135, 'x', "", true },
		{ 'a', 135, 'x', "os", true },
		{ 'a', 135, 'x', "S", false },
		{ 'a', 135, 'x', "oS", false },
		{ 'a', 135, 'x', "sS", false },
		{ 'a', 135, 'x', "T", false },
		{ 'x', 135, 'a', "s", false },
		{ 'z', 135, 'a', "s", false },
		/* duplicate address detection, also with a nonce */
		{ '0', 135, 'a', "", true },
		{ '0', 135, 'l', "o", true },
		{ '0', 135, 'm', "", true },
		{ '0', 135, 'x', "", false },
		{ '0', 135, 'z', "o", false },
		{ '0', 135, '4', "", false },
		{ '0', 135, 'a', "S", false },
		/* advertisement */
		{ 'a', 136, 'a', "t", true },
		{ 'l', 136, 'a', "t", true },
		{ 'l', 136, 'm', "", true },
		{ 'a', 136, 'l', "t", true },
		{ 'a', 136, 'x', "t", false },
		{ 'a', 136, 'x', "", false },
		{ 'l', 136, 'z', "t", false },
		{ 'a', 136, '4', "t", false },
		{ 'a', 136, '0', "t", false },
		{ 'a', 136, 'a', "T", false },
		{ 'a', 136, 'a', "oT", false },
		{ 'a', 136, 'a', "S", false },
		{ '0', 136, 'a', "t", false },
		{ 'x', 136, 'a', "t", false },
		/* router solicitation */
		{ 'l', 133, '-', "s", true },
		{ 'l', 133, '-', "", true },
		{ '0', 133, '-', "", true },
		{ 'l', 133, '-', "S", false },
		{ '0', 133, '-', "S", false },
		/* a router's messages */
		{ 'l', 134, 'a', "s", false },
		{ 'l', 137, 'a', "t", false },
		{ '0', 134, 'a', "", false },
		{ '0', 137, 'a', "", false },
	};
	static const char *const wraps[] = { "", "h", "d", "r", "hdrd", "D", "hhhhhhh" };
	static const char *const fragments[] = { "f", "F", "hf", "fd", "dF", "ff", "fD" };
	struct bytes f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t w = 0; w < sizeof(wraps) / sizeof(wraps[0]); w++) {
			wrapped(&f, wraps[w], 58, cases[i].src);
			nd(&f, cases[i].type, cases[i].target, cases[i].options);
			check_cuts(&f, cases[i].allowed, f.len);
		}
		/* RFC 6980 */
		for (size_t w = 0; w < sizeof(fragments) / sizeof(fragments[0]); w++) {
			wrapped(&f, fragments[w], 58, cases[i].src);
			nd(&f, cases[i].type, cases[i].target, cases[i].options);
			check_cuts(&f, false, 0);
		}
	}
}

/* Options with lengths that do not fit */
static void test_nd_options(void **state)
{
	struct bytes f;

	(void)state;
	for (uint32_t units = 0; units < 256; units++) {
		for (uint8_t kind = 0; kind < 4; kind++) {
			/* a link-layer address of an Ethernet station has one unit */
			bool longer = kind == 0 || kind == 3;

			wrapped(&f, "", 58, 'a');
			nd(&f, 136, 'a', "too");
			f.b[f.len - 40] = kind;
			f.b[f.len - 39] = units;
			/* The option is as long as itself or all of them; the others begin with 14, 2. */
			assert_int_equal(!check(&f), units == 1 ||
					 (longer && (units == 3 || units == 5)));
		}
	}
	/* The message ends within an option. */
	for (uint32_t part = 1; part < 8; part++) {
		wrapped(&f, "", 58, 'a');
		nd(&f, 136, 'a', "t");
		f.len -= part;
		ipv6_end(&f);
		assert_non_null(check(&f));
	}
	/* What is behind the end of the packet does not count. */
	wrapped(&f, "", 58, 'a');
	nd(&f, 136, 'a', "t");
	option(&f, 2, other_mac);
	assert_null(check(&f));
}

static void test_icmpv6(void **state)
{
	static const char *const wraps[] = { "", "h", "dr" };
	struct bytes f;

	(void)state;
	for (uint32_t type = 0; type < 256; type++) {
		bool mld = type == 131 || type == 132 || type == 143;

		for (size_t w = 0; w < sizeof(wraps) / sizeof(wraps[0]); w++) {
			wrapped(&f, wraps[w], 58, '0');
			nd(&f, type, type == 133 ? '-' : 'a', "");
			assert_int_equal(!check(&f), mld || type == 135 || type == 133);
			wrapped(&f, wraps[w], 58, 'a');
			nd(&f, type, type == 133 ? '-' : 'a', "");
			assert_int_equal(!check(&f), type != 134 && type != 137);
		}
		/* No fragment without an address; a large echo request with one */
		wrapped(&f, "f", 58, '0');
		nd(&f, type, 'a', "");
		assert_non_null(check(&f));
		wrapped(&f, "F", 58, 'a');
		nd(&f, type, 'a', "");
		assert_int_equal(!check(&f), type < 133 || type > 137);
	}
}

static void test_fragments(void **state)
{
	struct bytes f;

	(void)state;
	/* The first fragment has all headers: neither ports nor the type of a message come later. */
	for (int proto = 17; proto <= 58; proto += 58 - 17) {
		wrapped(&f, "F", proto, 'a');
		ADD(&f, 128, 0, 0);
		ipv6_end(&f);
		assert_non_null(check(&f));
	}
	wrapped(&f, "FD", 58, 'a');
	f.len -= 8;
	ipv6_end(&f);
	assert_non_null(check(&f));
	wrapped(&f, "F", 17, 'l');
	udp(&f, 547, 546);
	ipv6_end(&f);
	check_cuts(&f, false, 0);
	wrapped(&f, "dF", 17, 'l');
	udp(&f, 546, 547);
	ipv6_end(&f);
	check_cuts(&f, true, f.len);
	/* A later one has none. */
	for (int proto = 17; proto <= 58; proto += 58 - 17) {
		wrapped(&f, "l", proto, 'a');
		ipv6_end(&f);
		check_cuts(&f, true, f.len);
		wrapped(&f, "l", proto, 'x');
		ipv6_end(&f);
		check_cuts(&f, false, 0);
		wrapped(&f, "l", proto, '0');
		ipv6_end(&f);
		check_cuts(&f, false, 0);
	}
}

/* A chain of headers that the check cannot see whole does not pass. */
static void test_long_chain(void **state)
{
	struct bytes f;

	(void)state;
	wrapped(&f, "hhhhhhhh", 58, 'a');
	nd(&f, 128, 'a', "");
	assert_non_null(check(&f));
	for (int more = 0; more < 30; more++) {
		ipv6(&f, 60, 'a');
		extension(&f, 58, more);
		nd(&f, 136, 'a', "t");
		assert_int_equal(!check(&f), f.len <= ANTISPOOF_BYTES);
		if (f.len <= ANTISPOOF_BYTES)
			continue;
		/* Only the last option is not at hand, and it is wrong. */
		ipv6(&f, 60, 'a');
		extension(&f, 58, more);
		nd(&f, 136, 'a', "T");
		assert_non_null(check(&f));
	}
	/* Payload is not looked at. */
	eth(&f, 0x0800, 0);
	ipv4(&f, 'a', 'x', 5, 0, 17, 400);
	udp(&f, 1, 2);
	f.len = 434;
	assert_null(check(&f));
}

/* The station may use the rest of its prefixes, and the one link-local address. */
static void test_addresses(void **state)
{
	struct antispoof a = station();

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };

		memcpy(gid + 12, addresses[i].v4, 4);
		assert_int_equal(antispoof_address(&a, gid), !!strchr("am4", addresses[i].name));
		/* the GID of an IPv4 address, with the letter 4, is that of address a */
		memcpy(gid, addresses[i].v6, 16);
		assert_int_equal(antispoof_address(&a, gid), !!strchr("aml4", addresses[i].name));
	}
	assert_int_equal(a.n, 5);
	antispoof_link_local(&a, mac);
	assert_int_equal(a.n, 5);
	antispoof_link_local(&a, other_mac);
	assert_int_equal(a.n, 6);
	/* Each bit of a prefix counts, and no bit behind it. */
	for (uint8_t bits = 0; bits <= 128; bits++) {
		struct antispoof one = { .ip = true, .n = 1, .prefix[0].bits = bits };

		for (int bit = 0; bit < 128; bit++) {
			uint8_t addr[16] = { 0 };

			addr[bit / 8] = 0x80 >> bit % 8;
			assert_int_equal(antispoof_address(&one, addr), bit >= bits);
		}
	}
}

/* All addresses of one family are none of the other. */
static void test_families(void **state)
{
	struct antispoof a = { .ip = true, .n = 1 };
	struct bytes f4, f6;

	(void)state;
	eth(&f4, 0x0800, 0);
	ipv4(&f4, 'x', 'a', 5, 0, 1, 0);
	ipv6(&f6, 59, 'x');
	assert_null(antispoof_parse(&a.prefix[0], "0.0.0.0/0"));
	assert_null(antispoof_frame(&a, mac, f4.b, f4.len, f4.len));
	assert_non_null(antispoof_frame(&a, mac, f6.b, f6.len, f6.len));
	assert_null(antispoof_parse(&a.prefix[0], "::/0"));
	assert_non_null(antispoof_frame(&a, mac, f4.b, f4.len, f4.len));
	assert_null(antispoof_frame(&a, mac, f6.b, f6.len, f6.len));
	ipv6(&f6, 59, '4');
	assert_non_null(antispoof_frame(&a, mac, f6.b, f6.len, f6.len));
	/* The unspecified address belongs to neither. */
	ipv6(&f6, 59, '0');
	assert_non_null(antispoof_frame(&a, mac, f6.b, f6.len, f6.len));
	assert_null(antispoof_parse(&a.prefix[0], "0.0.0.0/0"));
	eth(&f4, 0x0800, 0);
	ipv4(&f4, '0', 'a', 5, 0, 1, 0);
	assert_non_null(antispoof_frame(&a, mac, f4.b, f4.len, f4.len));
}

static void test_texts(void **state)
{
	static const struct {
		const char *in;
		const char *out;
	} good[] = {
		{ "10.0.0.1", "10.0.0.1" },
		{ "10.0.0.1/32", "10.0.0.1" },
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "223.255.255.254/31", "223.255.255.254/31" },
		{ "240.0.0.0", "240.0.0.0" },
		{ "2001:db8::", "2001:db8::" },
		{ "2001:DB8:0:0::1/128", "2001:db8::1" },
		{ "2001:db8:0:8000::/49", "2001:db8:0:8000::/49" },
		{ "::/0", "::/0" },
		{ "::/1", "::/1" },
		{ "fe80::/010", "fe80::/10" },
		{ "fe00::/8", "fe00::/8" },
		{ "1111:2222:3333:4444:5555:6666:255.255.255.254/127",
		  "1111:2222:3333:4444:5555:6666:ffff:fffe/127" },
	};
	static const char not_ip[] =
		"not an IP address or prefix such as 192.0.2.1 or 2001:db8::/64";
	static const char bits4[] = "no IPv4 prefix, whose length is a number from 0 to 32";
	static const char bits6[] = "no IPv6 prefix, whose length is a number from 0 to 128";
	static const char rest[] =
		"neither an address (leave out the length) nor a network (end it with zero bits)";
	static const char group[] = "a multicast address, which is no source of packets";
	static const char nobody[] = "the unspecified address, which no host has";
	static const struct {
		const char *in;
		const char *why;
	} bad[] = {
		{ "", not_ip }, { "/", not_ip }, { "/8", not_ip }, { "host", not_ip },
		{ "10.0.0", not_ip }, { "10.0.0.256", not_ip }, { "10.0.0.1 ", not_ip },
		{ ":::", not_ip }, { "fe80::1%eth0", not_ip },
		{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc", not_ip },
		{ "::ffff:10.0.0.1", "an IPv4 address in IPv6 form; write it as a.b.c.d" },
		{ "::ffff:0:0/96", "an IPv4 address in IPv6 form; write it as a.b.c.d" },
		{ "10.0.0.0/33", bits4 }, { "10.0.0.0/", bits4 }, { "10.0.0.0/-1", bits4 },
		{ "10.0.0.0/8x", bits4 }, { "10.0.0.0/ 8", bits4 }, { "10.0.0.0/0008", bits4 },
		{ "10.0.0.0/8/8", bits4 }, { "10.0.0.0/99999999999999999999", bits4 },
		{ "2001:db8::/129", bits6 }, { "2001:db8::/x", bits6 },
		{ "10.0.0.1/24", rest }, { "10.0.0.1/0", rest }, { "10.0.0.1/31", rest },
		{ "2001:db8::1/64", rest }, { "8000::/0", rest }, { "::1/127", rest },
		{ "224.0.0.1", group }, { "239.255.0.0/16", group }, { "224.0.0.0/4", group },
		{ "ff02::1", group }, { "ff00::/8", group },
		{ "0.0.0.0", nobody }, { "0.0.0.0/32", nobody }, { "::", nobody },
		{ "::/128", nobody },
	};
	struct antispoof_prefix prefix;
	char text[ANTISPOOF_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(antispoof_parse(&prefix, good[i].in));
		antispoof_print(&prefix, text);
		assert_string_equal(text, good[i].out);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_string_equal(antispoof_parse(&prefix, bad[i].in), bad[i].why);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arp),
		cmocka_unit_test(test_mac),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv4_lengths),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_nd),
		cmocka_unit_test(test_nd_options),
		cmocka_unit_test(test_icmpv6),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
