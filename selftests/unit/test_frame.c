// SPDX-License-Identifier: GPL-2.0
/*
 * packet/frame.c: fields that are read from headers which are whole, cut off or wrong
 * (ORN-STEER-20, ORN-STEER-14).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include "packet/frame.h"
#include "packet/wire.h"

#define L2	(ORNIC_MATCH_DMAC | ORNIC_MATCH_SMAC | ORNIC_MATCH_ETHERTYPE)
#define ADDRS	(ORNIC_MATCH_SRC_IP | ORNIC_MATCH_DST_IP)
#define L3	(ORNIC_MATCH_IP_VERSION | ORNIC_MATCH_TOS | ORNIC_MATCH_TTL | ADDRS |	\
		 ORNIC_MATCH_IP_FRAG)
#define PORTS	(ORNIC_MATCH_SRC_PORT | ORNIC_MATCH_DST_PORT)

/* A frame under construction; the buffer ends with the frame, for the sanitizer. */
struct bytes {
	uint32_t len;
	uint8_t b[512];
};

static void add(struct bytes *f, const void *data, uint32_t len)
{
	memcpy(f->b + f->len, data, len);
	f->len += len;
}

#define ADD(f, ...) do {							\
	const uint8_t bytes_[] = { __VA_ARGS__ };				\
										\
	add(f, bytes_, sizeof(bytes_));						\
} while (0)

static void eth(struct bytes *f)
{
	f->len = 0;
	ADD(f, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2);
}

/* Write a header with total length @total; addresses 1.2.3.4 and 5.6.7.8 */
static void ipv4(struct bytes *f, uint8_t ihl, uint16_t total, uint16_t frag, uint8_t proto)
{
	ADD(f, 8, 0, 0x40 | ihl, 0x2c, total >> 8, total, 0, 0, frag >> 8, frag, 9, proto, 0, 0,
	    1, 2, 3, 4, 5, 6, 7, 8);
	for (int i = 5; i < ihl; i++)
		ADD(f, 1, 1, 1, 1);
}

static void ipv6(struct bytes *f, uint16_t payload, uint8_t next)
{
	ADD(f, 0x86, 0xdd, 0x6a, 0xbd, 0xde, 0xf1, payload >> 8, payload, next, 7);
	for (int i = 0; i < 32; i++)
		ADD(f, 0x20 + i);
}

static void udp(struct bytes *f)
{
	ADD(f, 0x11, 0x22, 0x33, 0x44, 0, 8, 0, 0);
}

static void tcp(struct bytes *f)
{
	ADD(f, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0);
}

/* Parse the first @len bytes, in pieces that cut every header. */
static struct frame parse(struct bytes *f, uint32_t len)
{
	struct packet p = { .kind = PACKET_ETHERNET, .len = len };
	static uint8_t exact[512];
	struct frame out;

	memset(exact, 0xa5, sizeof(exact));
	memcpy(exact + sizeof(exact) - len, f->b, len);
	for (uint32_t at = 0; at < len; at += 9)
		p.seg[p.nseg++] = (struct seg){ exact + sizeof(exact) - len + at,
						len - at < 9 ? len - at : 9 };
	frame_parse(&p, &out);
	for (uint32_t i = 0; i < sizeof(out.key.mbz); i++)
		assert_int_equal(out.key.mbz[i], 0);
	assert_int_equal(out.key.tunnel_id | out.key.tcp_flags, 0);
	if (!(out.fields & ORNIC_MATCH_VLAN))
		assert_int_equal(out.key.vlan_tci, 0);
	if (!(out.fields & PORTS))
		assert_int_equal(out.key.src_port | out.key.dst_port, 0);
	return out;
}

static void check_ports(const struct frame *f)
{
	assert_int_equal(be16toh(f->key.src_port), 0x1122);
	assert_int_equal(be16toh(f->key.dst_port), 0x3344);
}

static void test_ethernet(void **state)
{
	struct bytes f;
	struct frame out;

	(void)state;
	eth(&f);
	ADD(&f, 0x88, 0xb5, 1, 2, 3);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, L2);
	assert_int_equal(be16toh(out.key.ethertype), 0x88b5);
	assert_memory_equal(out.key.dmac, f.b, 6);
	assert_memory_equal(out.key.smac, f.b + 6, 6);
}

static void test_vlan(void **state)
{
	struct bytes f;
	struct frame out;

	(void)state;
	eth(&f);
	ADD(&f, 0x81, 0, 0xb0, 0x07);
	ipv4(&f, 5, 28, 0, 17);
	udp(&f);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, L2 | L3 | PORTS | ORNIC_MATCH_VLAN | ORNIC_MATCH_PROTOCOL);
	assert_int_equal(be16toh(out.key.vlan_tci), 0xb007);
	assert_int_equal(be16toh(out.key.ethertype), 0x0800);
	check_ports(&out);
	/* a second tag is the ethertype of the first one; the data behind it is not parsed */
	eth(&f);
	ADD(&f, 0x81, 0, 0, 7, 0x81, 0, 0, 8);
	ipv4(&f, 5, 28, 0, 17);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, L2 | ORNIC_MATCH_VLAN);
	assert_int_equal(be16toh(out.key.ethertype), 0x8100);
	assert_int_equal(be16toh(out.key.vlan_tci), 7);
	for (int i = 0; i < 16; i++)
		assert_int_equal(out.key.src_ip[i] | out.key.dst_ip[i], 0);
}

static void test_ipv4(void **state)
{
	static const uint8_t src[16] = { [10] = 0xff, 0xff, 1, 2, 3, 4 };
	static const uint8_t dst[16] = { [10] = 0xff, 0xff, 5, 6, 7, 8 };
	struct bytes f;
	struct frame out;

	(void)state;
	for (uint8_t ihl = 5; ihl < 16; ihl++) {
		eth(&f);
		ipv4(&f, ihl, ihl * 4 + 20, 0x4000, 6);
		tcp(&f);
		out = parse(&f, f.len);
		assert_int_equal(out.fields, L2 | L3 | PORTS | ORNIC_MATCH_PROTOCOL);
		assert_int_equal(out.key.ip_version, 4);
		assert_int_equal(out.key.tos, 0x2c);
		assert_int_equal(out.key.ttl, 9);
		assert_int_equal(out.key.protocol, 6);
		assert_int_equal(out.key.ip_frag, ORNIC_FRAG_DF);
		assert_memory_equal(out.key.src_ip, src, 16);
		assert_memory_equal(out.key.dst_ip, dst, 16);
		check_ports(&out);
	}
}

/*
 * Contradictory lengths: no header is found where none fits, and no byte beyond the packet is
 * read.
 */
static void test_ipv4_lies(void **state)
{
	struct bytes f;

	(void)state;
	for (uint8_t ihl = 0; ihl < 5; ihl++) {
		eth(&f);
		ipv4(&f, ihl, 60, 0, 6);
		tcp(&f);
		assert_int_equal(parse(&f, f.len).fields, L2);
	}
	for (uint16_t total = 0; total < 60; total++) {
		eth(&f);
		ipv4(&f, 6, total, 0, 6);
		tcp(&f);
		tcp(&f);
		assert_int_equal(parse(&f, f.len).fields,
				 total < 24 ? L2 :
				 total < 44 ? L2 | L3 | ORNIC_MATCH_PROTOCOL :
					      L2 | L3 | PORTS | ORNIC_MATCH_PROTOCOL);
	}
	eth(&f);
	ipv4(&f, 5, 0xffff, 0, 17);
	udp(&f);
	assert_int_equal(parse(&f, f.len).fields, L2 | L3 | PORTS | ORNIC_MATCH_PROTOCOL);
	eth(&f);
	ipv4(&f, 5, 28, 0, 17);
	udp(&f);
	f.b[14] = 0x65;
	assert_int_equal(parse(&f, f.len).fields, L2);
}

/* ORN-STEER-14 */
static void test_fragments(void **state)
{
	static const uint16_t frag[] = {
		0x2000, 0x0001, 0x2001, 0x1fff, 0x3fff, 0x6000, 0x4001, 0x7fff,
	};
	static const uint8_t frag6[] = { 0, 1, 8, 9 };
	static const uint16_t offset6[] = { 0x0008, 0x0100, 0xfff8 };
	struct bytes f;
	struct frame out;

	(void)state;
	for (size_t i = 0; i < sizeof(frag) / sizeof(frag[0]); i++) {
		eth(&f);
		ipv4(&f, 5, 28, frag[i], 17);
		udp(&f);
		out = parse(&f, f.len);
		assert_int_equal(out.fields, L2 | L3 | ORNIC_MATCH_PROTOCOL);
		assert_int_equal(out.key.ip_frag,
				 ORNIC_FRAG_ANY | (frag[i] & 0x2000 ? ORNIC_FRAG_MF : 0) |
				 (frag[i] & 0x4000 ? ORNIC_FRAG_DF : 0));
		assert_int_equal(out.key.src_port, 0);
	}
	for (size_t i = 0; i < sizeof(frag6); i++) {
		eth(&f);
		ipv6(&f, 16, 44);
		ADD(&f, 17, 0, 0, frag6[i], 0, 0, 0, 0);
		udp(&f);
		out = parse(&f, f.len);
		assert_int_equal(out.fields,
				 L2 | L3 | ORNIC_MATCH_PROTOCOL | ORNIC_MATCH_FLOW_LABEL);
		assert_int_equal(out.key.ip_frag,
				 ORNIC_FRAG_ANY | (frag6[i] & 1 ? ORNIC_FRAG_MF : 0));
		assert_int_equal(out.key.protocol, 17);
	}
	/* behind a later fragment's header is data, not the header that was announced */
	for (size_t i = 0; i < sizeof(offset6) / sizeof(offset6[0]); i++) {
		eth(&f);
		ipv6(&f, 24, 44);
		ADD(&f, 60, 0, offset6[i] >> 8, offset6[i], 0, 0, 0, 0);
		ADD(&f, 17, 0, 0, 0, 0, 0, 0, 0);
		udp(&f);
		out = parse(&f, f.len);
		assert_int_equal(out.key.ip_frag, ORNIC_FRAG_ANY);
		assert_int_equal(out.key.protocol, 60);
	}
	/* of two fragment headers the first has the MF flag */
	eth(&f);
	ipv6(&f, 24, 44);
	ADD(&f, 44, 0, 0, 1, 0, 0, 0, 0);
	ADD(&f, 17, 0, 0, 0, 0, 0, 0, 0);
	udp(&f);
	out = parse(&f, f.len);
	assert_int_equal(out.key.ip_frag, ORNIC_FRAG_ANY | ORNIC_FRAG_MF);
	assert_int_equal(out.key.protocol, 17);
}

static void test_ipv6(void **state)
{
	const uint32_t all = L2 | L3 | PORTS | ORNIC_MATCH_PROTOCOL | ORNIC_MATCH_FLOW_LABEL;
	struct bytes f;
	struct frame out;

	(void)state;
	eth(&f);
	ipv6(&f, 8, 17);
	udp(&f);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, all);
	assert_int_equal(out.key.ip_version, 6);
	assert_int_equal(out.key.tos, 0xab);
	assert_int_equal(out.key.ttl, 7);
	assert_int_equal(be32toh(out.key.flow_label), 0xddef1);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(out.key.src_ip[i], 0x20 + i);
		assert_int_equal(out.key.dst_ip[i], 0x30 + i);
	}
	assert_int_equal(out.key.ip_frag, 0);
	check_ports(&out);
	/* hop-by-hop of 8, routing of 16, destination options of 8 bytes */
	eth(&f);
	ipv6(&f, 40, 0);
	ADD(&f, 43, 0, 0, 0, 0, 0, 0, 0);
	ADD(&f, 60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	ADD(&f, 17, 0, 0, 0, 0, 0, 0, 0);
	udp(&f);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, all);
	check_ports(&out);
	/* a protocol that is not parsed further */
	eth(&f);
	ipv6(&f, 8, 50);
	udp(&f);
	out = parse(&f, f.len);
	assert_int_equal(out.fields, all & ~PORTS);
	assert_int_equal(out.key.protocol, 50);
}

/* Eight headers are parsed: ports are found behind seven extension headers, not behind eight. */
static void test_extensions(void **state)
{
	const uint32_t addrs = L2 | L3 | ORNIC_MATCH_FLOW_LABEL;
	const uint8_t kinds[] = { 0, 43, 60 };
	struct bytes f;
	struct frame out;

	(void)state;
	for (uint32_t n = 1; n < 10; n++) {
		eth(&f);
		ipv6(&f, 8 * n + 8, kinds[0]);
		for (uint32_t i = 1; i <= n; i++)
			ADD(&f, i < n ? kinds[i % 3] : 17, 0, 0, 0, 0, 0, 0, 0);
		udp(&f);
		out = parse(&f, f.len);
		if (n < 8) {
			assert_int_equal(out.fields, addrs | ORNIC_MATCH_PROTOCOL | PORTS);
			assert_int_equal(out.key.protocol, 17);
			check_ports(&out);
		} else {
			assert_int_equal(out.fields, addrs);
		}
	}
}

/* Headers up to byte 256 of a frame are read, and none beyond. */
static void test_head_bytes(void **state)
{
	struct bytes f;

	(void)state;
	for (uint32_t words = 20; words < 26; words++) {
		const uint32_t at = ETH_BYTES + IPV6_BYTES + 8 * words;

		eth(&f);
		ipv6(&f, 8 * words + 8, 60);
		ADD(&f, 17, words - 1);
		for (uint32_t i = 2; i < 8 * words; i++)
			ADD(&f, 0);
		udp(&f);
		assert_int_equal(!!(parse(&f, f.len).fields & ORNIC_MATCH_SRC_PORT),
				 at + UDP_BYTES <= 256);
	}
}

static void test_ipv6_lies(void **state)
{
	const uint32_t addrs = L2 | L3 | ORNIC_MATCH_FLOW_LABEL;
	struct bytes f;

	(void)state;
	/* an extension header longer than the packet, and than the frame */
	eth(&f);
	ipv6(&f, 16, 0);
	ADD(&f, 17, 255, 0, 0, 0, 0, 0, 0);
	udp(&f);
	assert_int_equal(parse(&f, f.len).fields, addrs);
	/* the packet ends inside its extension header */
	eth(&f);
	ipv6(&f, 7, 0);
	ADD(&f, 17, 0, 0, 0, 0, 0, 0, 0);
	udp(&f);
	assert_int_equal(parse(&f, f.len).fields, addrs);
	/* it ends inside a fragment header */
	eth(&f);
	ipv6(&f, 7, 44);
	ADD(&f, 17, 0, 0, 0, 0, 0, 0, 0);
	assert_int_equal(parse(&f, f.len).fields, addrs);
	/* extension headers without end */
	eth(&f);
	ipv6(&f, 200, 0);
	for (int i = 0; i < 25; i++)
		ADD(&f, 0, 0, 0, 0, 0, 0, 0, 0);
	assert_int_equal(parse(&f, f.len).fields, addrs);
	eth(&f);
	ipv6(&f, 8, 17);
	udp(&f);
	f.b[14] = 0x4a;
	assert_int_equal(parse(&f, f.len).fields, L2);
}

/* Cut at every byte: the number of fields only falls, and nothing beyond the cut is read. */
static void test_cut(void **state)
{
	struct bytes f;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t had = 0;

		eth(&f);
		ADD(&f, 0x81, 0, 0, 7);
		if (v6) {
			ipv6(&f, 36, 0);
			ADD(&f, 60, 0, 0, 0, 0, 0, 0, 0);
			ADD(&f, 6, 0, 0, 0, 0, 0, 0, 0);
		} else {
			ipv4(&f, 8, 52, 0, 6);
		}
		tcp(&f);
		for (uint32_t len = 0; len <= f.len; len++) {
			struct frame out = parse(&f, len);

			assert_int_equal(had & ~out.fields, 0);
			had = out.fields;
			if (len < 14)
				assert_int_equal(had, 0);
		}
		assert_int_equal(had & PORTS, PORTS);
	}
}

/* Random bytes behind every kind of beginning. */
static void test_random(void **state)
{
	uint32_t x = 1;
	struct bytes f;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		eth(&f);
		if (round & 1)
			ADD(&f, 0x81, 0, 0, 7);
		if (round & 2)
			ADD(&f, 8, 0, 0x40 | (round >> 4 & 0xf));
		else
			ADD(&f, 0x86, 0xdd, 0x60);
		while (f.len < 300) {
			x = x * 1664525 + 1013904223;
			ADD(&f, round & 4 ? x >> 24 : (x >> 24) % 61);
		}
		parse(&f, 14 + (x >> 8) % 280);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ethernet),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv4_lies),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_head_bytes),
		cmocka_unit_test(test_ipv6_lies),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
