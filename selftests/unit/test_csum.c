// SPDX-License-Identifier: GPL-2.0
/* packet/csum.c compared with a slow sum and with frames of known checksums. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/csum.h"

#define BYTES	3000

/* Add one byte at a time, in network order. */
static uint16_t slow(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return htons(~sum);
}

static void test_add(void **state)
{
	uint8_t data[BYTES];

	(void)state;
	srand(4);
	for (int i = 0; i < BYTES; i++)
		data[i] = rand();
	for (uint32_t len = 0; len < 300; len++)
		assert_int_equal(csum_fold(csum_add(0, data + len % 7, len, false)),
				 slow(data + len % 7, len));
	memset(data, 0xff, BYTES);
	assert_int_equal(csum_fold(csum_add(0, data, BYTES, false)), slow(data, BYTES));
}

static void test_pieces(void **state)
{
	uint8_t data[BYTES];

	(void)state;
	srand(5);
	for (int round = 0; round < 1000; round++) {
		uint32_t skip = rand() % 50, n = 0, at = 0;
		struct seg seg[20];

		for (int i = 0; i < BYTES; i++)
			data[i] = rand();
		while (n < 20) {
			seg[n] = (struct seg){ data + at, rand() % 100 };
			at += seg[n++].len;
		}
		assert_int_equal(csum_fold(csum_segs(0, seg, n, skip)),
				 slow(data + skip, at > skip ? at - skip : 0));
	}
}

/* Sums with every carry: the high half into the low half, and out of 16 bits again */
static void test_fold(void **state)
{
	static const uint64_t sums[] = {
		0, 1, 0xffff, 0x10000, 0x1ffff, 0x1fffe, 0xffff0000, 0xffffffff, 0x100000000,
		0x10000ffff, 0x1fffeffff, 0xffffffff00000000, 0xfffffffffffffffe, UINT64_MAX,
		0x10000ffffffff, 0x1ffffffffffff, 0xffff00000000, 0x10000fffeffff,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		uint64_t want = sums[i];

		while (want >> 16)
			want = (want & 0xffff) + (want >> 16);
		assert_int_equal(csum_fold(sums[i]), (uint16_t)~want);
		assert_int_equal(csum_fold_l4(sums[i]), want == 0xffff ? 0xffff : ~want & 0xffff);
	}
}

/* RFC 1071's example, and the IPv4 header of a captured packet. */
static void test_known(void **state)
{
	static const uint8_t rfc[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	uint8_t ip[] = {
		0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
		0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
	};

	(void)state;
	assert_int_equal(csum_fold(csum_add(0, rfc, sizeof(rfc), false)), htons(0x220d));
	assert_true(csum_ipv4_ok(ip, sizeof(ip)));
	assert_false(csum_ipv4_ok(ip, sizeof(ip) - 1));
	ip[11]++;
	assert_false(csum_ipv4_ok(ip, sizeof(ip)));
	ip[11]--;
	ip[0] = 0x46;
	assert_false(csum_ipv4_ok(ip, sizeof(ip)));
	ip[0] = 0x44;
	assert_false(csum_ipv4_ok(ip, sizeof(ip)));
}

struct frame {
	uint8_t b[2000];
	uint32_t len;
	uint32_t l4;
	uint32_t field;
};

/* Build a frame of UDP or TCP over IPv4 or IPv6 with @data bytes of payload. */
static struct frame build(bool vlan, bool ipv6, bool tcp, uint32_t data)
{
	uint32_t at = 12, ip, l4len = (tcp ? 20 : 8) + data;
	struct frame f = { .len = 0 };

	memset(f.b, 0x22, 12);
	if (vlan) {
		memcpy(f.b + at, "\x81\x00\x00\x05", 4);
		at += 4;
	}
	memcpy(f.b + at, ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	ip = at + 2;
	f.l4 = ip + (ipv6 ? 40 : 20);
	if (ipv6) {
		f.b[ip] = 0x60;
		f.b[ip + 4] = l4len >> 8;
		f.b[ip + 5] = l4len;
		f.b[ip + 6] = tcp ? 6 : 17;
		for (int i = 0; i < 32; i++)
			f.b[ip + 8 + i] = 0xab + 5 * i * i;
	} else {
		f.b[ip] = 0x45;
		memcpy(f.b + ip + 4, "\xff\xff\x40", 3);	/* identification, and DF */
		f.b[ip + 2] = (20 + l4len) >> 8;
		f.b[ip + 3] = 20 + l4len;
		f.b[ip + 9] = tcp ? 6 : 17;
		memset(f.b + ip + 10, 0x5a, 2);
		memcpy(f.b + ip + 12, "\xcd\x01\x23\x45\x67\x89\xab\x0e", 8);
	}
	for (uint32_t i = 0; i < l4len; i++)
		f.b[f.l4 + i] = i * 3 + 1;
	f.field = f.l4 + (tcp ? 16 : 6);
	f.len = f.l4 + l4len;
	return f;
}

/* The checksum of pseudo header and L4 is right iff their sum is all ones. */
static bool l4_ok(const struct frame *f, bool ipv6, bool tcp)
{
	uint32_t len = f->len - f->l4;
	uint8_t all[2100] = { 0 };
	uint32_t n = ipv6 ? 32 : 8;

	memcpy(all, f->b + f->l4 - n, n);
	all[n + 1] = tcp ? 6 : 17;
	all[n + 2] = len >> 8;
	all[n + 3] = len;
	memcpy(all + n + 4, f->b + f->l4, len);
	return !slow(all, n + 4 + len);
}

/* Check that two frames differ in their checksums only. */
static void check_rest(const struct frame *f, struct frame was, bool ipv6)
{
	if (!ipv6)
		memcpy(was.b + was.l4 - 10, f->b + was.l4 - 10, 2);
	memcpy(was.b + was.field, f->b + was.field, 2);
	assert_memory_equal(f->b, was.b, was.len);
}

static void test_fill(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		bool vlan = k & 1, ipv6 = k & 2, tcp = k & 4;

		for (uint32_t data = 0; data < 1500; data += data < 60 ? 1 : 337) {
			struct frame f = build(vlan, ipv6, tcp, data), was = f;
			uint32_t hdr = f.field + 2 + data / 2;
			struct seg rest = { f.b + hdr, f.len > hdr ? f.len - hdr : 0 };

			if (hdr > f.len)
				hdr = f.len;
			assert_false(l4_ok(&f, ipv6, tcp));
			assert_true(csum_fill(f.b, hdr, &rest, 1));
			assert_true(l4_ok(&f, ipv6, tcp));
			if (!ipv6)
				assert_true(csum_ipv4_ok(f.b + f.l4 - 20, 20));
			check_rest(&f, was, ipv6);
		}
	}
}

/* Each length of the first piece, in memory that ends there: no header is read beyond it. */
static void test_every_header_length(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		bool vlan = k & 1, ipv6 = k & 2, tcp = k & 4;
		const struct frame f = build(vlan, ipv6, tcp, 9);

		for (uint32_t n = 0; n <= f.len; n++) {
			uint8_t *hdr = malloc(n ? n : 1), *rest = malloc(f.len - n ? f.len - n : 1);
			struct seg seg = { rest, f.len - n };
			struct frame out = f;
			bool filled;

			memcpy(hdr, f.b, n);
			memcpy(rest, f.b + n, f.len - n);
			filled = csum_fill(hdr, n, &seg, 1);
			assert_int_equal(filled, n >= f.field + 2);
			memcpy(out.b, hdr, n);
			assert_memory_equal(rest, f.b + n, f.len - n);
			if (filled)
				assert_true(l4_ok(&out, ipv6, tcp));
			else
				assert_memory_equal(out.b + f.l4, f.b + f.l4, f.len - f.l4);
			/* an IPv4 header that is complete has its checksum nevertheless */
			if (!ipv6)
				assert_int_equal(csum_ipv4_ok(out.b + f.l4 - 20, 20), n >= f.l4);
			free(hdr);
			free(rest);
		}
	}
}

/* Each length in the IP header, right or wrong */
static void test_every_ip_length(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		bool vlan = k & 1, ipv6 = k & 2, tcp = k & 4;
		const struct frame f = build(vlan, ipv6, tcp, 9);
		const uint32_t ip = f.l4 - (ipv6 ? 40 : 20);

		for (uint32_t n = 0; n < 0x100; n++) {
			uint8_t *b = malloc(f.len);
			struct frame out = f;
			uint32_t l4 = ipv6 ? n : n < 20 ? 0 : n - 20;
			bool fits;

			memcpy(b, f.b, f.len);
			b[ip + (ipv6 ? 5 : 3)] = n;
			fits = l4 <= f.len - f.l4 && f.field + 2 - f.l4 <= l4;
			assert_int_equal(csum_fill(b, f.len, NULL, 0), fits);
			memcpy(out.b, b, f.len);
			out.len = f.l4 + l4;
			if (fits)
				assert_true(l4_ok(&out, ipv6, tcp));
			free(b);
		}
	}
}

/* As many pieces as a packet has, and one more */
static void test_most_pieces(void **state)
{
	struct seg seg[PACKET_SEGS + 1];

	(void)state;
	for (uint32_t n = PACKET_SEGS - 1; n <= PACKET_SEGS + 1; n++) {
		struct frame f = build(false, false, false, n);

		for (uint32_t i = 0; i < n; i++)
			seg[i] = (struct seg) { f.b + f.l4 + 8 + i, 1 };
		assert_int_equal(csum_fill(f.b, f.l4 + 8, seg, n), n <= PACKET_SEGS);
		assert_int_equal(l4_ok(&f, false, false), n <= PACKET_SEGS);
	}
}

/* Pieces with other bytes between them, the last one with more bytes than the packet */
static void test_scattered_pieces(void **state)
{
	enum { PIECES = 5, PART = 11 };

	(void)state;
	for (uint32_t more = 0; more < 9; more++) {
		struct frame f = build(false, false, false, PIECES * PART);
		uint8_t memory[2 * PIECES * PART], hdr[100];
		struct seg seg[PIECES];

		memset(memory, 0x77, sizeof(memory));
		for (uint32_t i = 0; i < PIECES; i++) {
			seg[i] = (struct seg) { memory + 2 * i * PART, PART };
			memcpy(seg[i].ptr, f.b + f.l4 + 8 + i * PART, PART);
		}
		seg[PIECES - 1].len += more;
		memcpy(hdr, f.b, f.l4 + 8);
		assert_true(csum_fill(hdr, f.l4 + 8, seg, PIECES));
		memcpy(f.b, hdr, f.l4 + 8);
		assert_true(l4_ok(&f, false, false));
	}
}

static void test_padding_is_not_summed(void **state)
{
	struct frame f = build(false, false, false, 3);
	struct seg pad = { (uint8_t *)"trailing", 8 };

	(void)state;
	assert_true(csum_fill(f.b, f.len, &pad, 1));
	assert_true(l4_ok(&f, false, false));
}

static void test_zero_udp_checksum_is_ones(void **state)
{
	(void)state;
	for (uint32_t v = 0; v < 0x10000; v++) {
		struct frame f = build(false, false, false, 2);

		f.b[f.len - 2] = v >> 8;
		f.b[f.len - 1] = v;
		assert_true(csum_fill(f.b, f.len, NULL, 0));
		assert_true(f.b[f.field] || f.b[f.field + 1]);
	}
}

/* No byte changes, except the checksum of a right IPv4 header. */
static void test_not_understood(void **state)
{
	static const struct {
		bool ipv6, header;
		uint32_t byte;
		uint8_t value;
	} cases[] = {
		{ false, false, 13, 0x06 },	/* EtherType */
		{ false, false, 14, 0x65 },	/* version */
		{ false, false, 14, 0x44 },	/* less than a header */
		{ false, true, 17, 200 },	/* longer than the frame */
		{ false, true, 17, 10 },	/* shorter than the header */
		{ false, true, 20, 0x20 },	/* fragments */
		{ false, true, 20, 0x01 },
		{ false, true, 21, 0x01 },
		{ false, true, 23, 1 },		/* protocol */
		{ true, false, 13, 0xde },
		{ true, false, 14, 0x45 },
		{ true, false, 20, 43 },
	};
	struct frame f = build(false, false, true, 5);

	(void)state;
	for (uint32_t hdr = 0; hdr < f.field + 2; hdr++) {
		struct frame g = f;
		struct seg rest = { g.b + hdr, g.len - hdr };

		assert_false(csum_fill(g.b, hdr, &rest, 1));
		assert_memory_equal(g.b + f.l4, f.b + f.l4, f.len - f.l4);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame want;

		f = build(false, cases[i].ipv6, true, 5);
		f.b[cases[i].byte] = cases[i].value;
		want = f;
		assert_false(csum_fill(f.b, f.len, NULL, 0));
		assert_int_equal(csum_ipv4_ok(f.b + 14, 20), cases[i].header);
		if (cases[i].header)
			memcpy(want.b + 24, f.b + 24, 2);
		assert_memory_equal(f.b, want.b, f.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_every_header_length),
		cmocka_unit_test(test_every_ip_length),
		cmocka_unit_test(test_most_pieces),
		cmocka_unit_test(test_scattered_pieces),
		cmocka_unit_test(test_padding_is_not_summed),
		cmocka_unit_test(test_zero_udp_checksum_is_ones),
		cmocka_unit_test(test_not_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
