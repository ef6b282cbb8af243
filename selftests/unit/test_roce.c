// SPDX-License-Identifier: GPL-2.0
/*
 * packet/roce.c, icrc.c, ip.c: RoCEv2 frames out and in, and frames that nobody should believe
 * (ORN-QP-23).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/bth.h"
#include "packet/csum.h"
#include "packet/icrc.h"
#include "packet/ip.h"
#include "packet/roce.h"
#include "packet/wire.h"

#define MTU		256


static uint8_t payload[64 * MTU];

/* A packet with every field set, so that what a frame has too many or few of is seen. */
static struct packet sample(uint8_t opcode, bool v4, bool vlan, uint32_t len)
{
	struct packet p = {
		.kind = PACKET_ROCE,
		.dmac = { 2, 0, 0, 0, 0, 1 }, .smac = { 2, 0, 0, 0, 0, 2 },
		.vlan = vlan, .vlan_tci = vlan ? 0x6064 : 0,
		.sgid = { 0xfd, 0x88, [15] = 2 }, .dgid = { 0xfd, 0x88, [15] = 1 },
		.flow_label = v4 ? 0 : 0x54321, .udp_sport = 0xc123, .tclass = 0x6a,
		.hop_limit = 63, .opcode = opcode, .pkey = 0xffff, .dqpn = 0x123456,
		.psn = 0xfffffe, .npsn = 1, .mtu = MTU, .solicited = true, .ackreq = true,
		.qkey = 0x11223344, .sqpn = 0x654321, .srqn = 0xabcdef,
		.va = 0x1122334455667788, .rkey = 0x99aabbcc, .dmalen = len,
		.swap_add = 0x0102030405060708, .compare = 0x1112131415161718,
		.feth = 0x21, .aeth = 0x1f, .msn = 0x777777, .atomic_ack = 0x2122232425262728,
		.imm = htobe32(0xdeadbeef), .len = len,
	};

	if (v4) {
		ip_v4_gid(p.sgid, (uint8_t[]) { 10, 88, 0, 2 });
		ip_v4_gid(p.dgid, (uint8_t[]) { 10, 88, 0, 1 });
	}
	for (uint32_t i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7 % 251;
	if (len) {	/* in three pieces, one of them empty */
		p.seg[0] = (struct seg) { payload, len / 3 };
		p.seg[1] = (struct seg) { payload + len / 3, 0 };
		p.seg[2] = (struct seg) { payload + len / 3, len - len / 3 };
		p.nseg = 3;
		p.npsn = (len + MTU - 1) / MTU;
	}
	return p;
}

/* The next frame of @c in one piece, in memory that ends where it does. */
static uint8_t *next_frame(struct roce_cut *c, uint32_t *len)
{
	struct roce_frame f;
	uint8_t *bytes, *at;

	if (!roce_next(c, &f))
		return NULL;
	*len = f.head_len + f.len + f.tail_len;
	bytes = malloc(*len);
	assert_non_null(bytes);
	memcpy(bytes, f.head, f.head_len);
	at = bytes + f.head_len;
	for (uint32_t i = 0; i < f.nseg; at += f.seg[i++].len)
		memcpy(at, f.seg[i].ptr, f.seg[i].len);
	memcpy(at, f.tail, f.tail_len);
	assert_ptr_equal(at + f.tail_len, bytes + *len);
	return bytes;
}

static uint8_t *only_frame(const struct packet *p, uint32_t *len)
{
	struct roce_cut c;
	uint8_t *bytes;

	roce_cut(&c, p);
	bytes = next_frame(&c, len);
	assert_non_null(bytes);
	assert_false(roce_next(&c, &(struct roce_frame) {}));
	return bytes;
}

static enum roce_kind parse(struct packet *p, uint8_t *bytes, uint32_t len)
{
	memset(p, 0, sizeof(*p));
	return roce_parse(p, bytes, len);
}

/* Every byte as another implementation of RoCEv2 wrote it (scapy 2.5). */
static void test_known_frame(void **state)
{
	static const uint8_t known[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00,
		0x45, 0x00, 0x00, 0x34, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x07, 0x0a, 0x58,
		0x00, 0x02, 0x0a, 0x58, 0x00, 0x01, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00,
		0x04, 0x70, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef, 0x68, 0x65,
		0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0xff, 0x70, 0x45, 0x18,
	};
	struct packet p = sample(BTH_RC_SEND_ONLY, true, false, 5);
	uint8_t *bytes;
	uint32_t len;

	(void)state;
	memcpy(payload, "hello", 5);
	p.tclass = 0;
	p.hop_limit = 64;
	p.psn = 0xabcdef;
	p.solicited = false;
	bytes = only_frame(&p, &len);
	assert_int_equal(len, sizeof(known));
	assert_memory_equal(bytes, known, len);
	free(bytes);
}

/* CRC 32 bit by bit, as a second opinion. */
static uint32_t crc_slow(uint32_t crc, const uint8_t *at, uint32_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *at++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void test_icrc_ipv6(void **state)
{
	struct packet p = sample(BTH_RC_WRITE_ONLY, false, true, 77);
	uint8_t ones[8], *bytes, *ip;
	uint32_t len, crc, said;

	(void)state;
	bytes = only_frame(&p, &len);
	ip = bytes + ETH_BYTES + VLAN_BYTES;
	memcpy(&said, bytes + len - 4, 4);
	memset(ones, 0xff, sizeof(ones));
	ip[0] = 0x6f;
	memset(ip + 1, 0xff, 3);
	ip[7] = 0xff;
	memset(ip + IPV6_BYTES + 6, 0xff, 2);
	ip[IPV6_BYTES + UDP_BYTES + 4] = 0xff;
	crc = crc_slow(crc_slow(0, ones, 8), ip, bytes + len - 4 - ip);
	assert_int_equal(crc, le32toh(said));
	free(bytes);
}

static void check_addresses(const struct packet *p, const struct packet *q)
{
	assert_int_equal(q->kind, PACKET_ROCE);
	assert_memory_equal(q->dmac, p->dmac, 6);
	assert_memory_equal(q->smac, p->smac, 6);
	assert_int_equal(q->vlan, p->vlan);
	assert_int_equal(q->vlan_tci, p->vlan_tci);
	assert_memory_equal(q->sgid, p->sgid, 16);
	assert_memory_equal(q->dgid, p->dgid, 16);
	assert_int_equal(q->flow_label, p->flow_label);
	assert_int_equal(q->udp_sport, p->udp_sport);
	assert_int_equal(q->tclass, p->tclass);
	assert_int_equal(q->hop_limit, p->hop_limit);
	assert_int_equal(q->pkey, p->pkey);
	assert_int_equal(q->dqpn, p->dqpn);
}

/* What each operation carries; a field it does not carry reads as zero. */
enum carries { QKEY = 1, SRQN = 2, RETH = 4, ATOMIC = 8, AETH = 16, VALUE = 32, IMM = 64, KEY = 128,
	       FETH = 256, DATA = 512 };

static void check_extensions(const struct packet *p, const struct packet *q, uint32_t carries)
{
	assert_int_equal(q->qkey, carries & QKEY ? p->qkey : 0);
	assert_int_equal(q->sqpn, carries & QKEY ? p->sqpn : 0);
	assert_int_equal(q->srqn, carries & SRQN ? p->srqn : 0);
	assert_int_equal(q->va, carries & (RETH | ATOMIC) ? p->va : 0);
	assert_int_equal(q->rkey, carries & (RETH | ATOMIC | KEY) ? p->rkey : 0);
	assert_int_equal(q->dmalen, carries & RETH ? p->dmalen : 0);
	assert_int_equal(q->swap_add, carries & ATOMIC ? p->swap_add : 0);
	assert_int_equal(q->compare, carries & ATOMIC ? p->compare : 0);
	assert_int_equal(q->aeth, carries & AETH ? p->aeth : 0);
	assert_int_equal(q->msn, carries & AETH ? p->msn : 0);
	assert_int_equal(q->atomic_ack, carries & VALUE ? p->atomic_ack : 0);
	assert_int_equal(q->imm, carries & IMM ? p->imm : 0);
	assert_int_equal(q->feth, carries & FETH ? p->feth : 0);
}

static const struct {
	uint8_t operation;
	uint32_t carries;
} operations[] = {
	{ BTH_RC_SEND_FIRST, DATA }, { BTH_RC_SEND_MIDDLE, DATA }, { BTH_RC_SEND_LAST, DATA },
	{ BTH_RC_SEND_LAST_IMM, DATA | IMM }, { BTH_RC_SEND_ONLY, DATA },
	{ BTH_RC_SEND_ONLY_IMM, DATA | IMM }, { BTH_RC_WRITE_FIRST, DATA | RETH },
	{ BTH_RC_WRITE_MIDDLE, DATA }, { BTH_RC_WRITE_LAST, DATA },
	{ BTH_RC_WRITE_LAST_IMM, DATA | IMM }, { BTH_RC_WRITE_ONLY, DATA | RETH },
	{ BTH_RC_WRITE_ONLY_IMM, DATA | RETH | IMM }, { BTH_RC_READ_REQUEST, RETH },
	{ BTH_RC_READ_RESP_FIRST, DATA | AETH }, { BTH_RC_READ_RESP_MIDDLE, DATA },
	{ BTH_RC_READ_RESP_LAST, DATA | AETH }, { BTH_RC_READ_RESP_ONLY, DATA | AETH },
	{ BTH_RC_ACK, AETH }, { BTH_RC_ATOMIC_ACK, AETH | VALUE },
	{ BTH_RC_COMPARE_SWAP, ATOMIC }, { BTH_RC_FETCH_ADD, ATOMIC },
	{ BTH_RC_SEND_LAST_INV, DATA | KEY }, { BTH_RC_SEND_ONLY_INV, DATA | KEY },
	{ BTH_RC_FLUSH, FETH | RETH }, { BTH_RC_ATOMIC_WRITE, DATA | RETH },
};

static bool is_response(uint8_t operation)
{
	return operation >= BTH_RC_READ_RESP_FIRST && operation <= BTH_RC_ATOMIC_ACK;
}

static void check_one(uint8_t opcode, uint32_t carries, uint32_t len)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct packet p = sample(opcode, v4, len & 1, len), q;
		uint8_t got[MTU], *bytes;
		uint32_t n;

		bytes = only_frame(&p, &n);
		assert_int_equal(parse(&q, bytes, n), ROCE_PACKET);
		check_addresses(&p, &q);
		check_extensions(&p, &q, carries);
		assert_int_equal(q.opcode, opcode);
		assert_int_equal(q.psn, p.psn);
		assert_int_equal(q.npsn, 1);
		assert_true(q.solicited && q.ackreq);
		assert_int_equal(q.len, len);
		seg_copy_out(got, q.seg, q.nseg, 0, q.len);
		assert_memory_equal(got, payload, len);
		free(bytes);
	}
}

/* All operations of RC, XRC and UC, datagrams; payloads around what needs a pad. */
static void test_every_opcode(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		uint8_t op = operations[i].operation;
		uint32_t carries = operations[i].carries;

		for (uint32_t len = 0; len <= (carries & DATA ? 36 : 0); len++) {
			check_one(op, carries, len);
			check_one(BTH_TRANSPORT_XRC | op,
				  carries | (is_response(op) ? 0 : SRQN), len);
			if (op <= BTH_RC_WRITE_ONLY_IMM)
				check_one(BTH_TRANSPORT_UC | op, carries, len);
		}
	}
	for (uint32_t len = 0; len <= MTU; len += 31) {
		check_one(BTH_UD_SEND_ONLY, DATA | QKEY, len);
		check_one(BTH_UD_SEND_ONLY_IMM, DATA | QKEY | IMM, len);
	}
}

/* What one packet of @opcode becomes in @n frames. */
static void check_cut(uint8_t opcode, uint32_t n, uint8_t first, uint8_t middle, uint8_t last)
{
	uint32_t len = n * MTU - 3, done = 0, bytes_len;
	struct packet p = sample(opcode, true, false, len), q;
	struct roce_cut c;
	uint8_t *bytes;

	assert_int_equal(p.npsn, n);
	roce_cut(&c, &p);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t got[MTU];

		bytes = next_frame(&c, &bytes_len);
		assert_non_null(bytes);
		assert_int_equal(parse(&q, bytes, bytes_len), ROCE_PACKET);
		assert_int_equal(q.opcode, i == 0 ? first : i == n - 1 ? last : middle);
		assert_int_equal(q.psn, (p.psn + i) & 0xffffff);
		assert_int_equal(q.len, i < n - 1 ? MTU : MTU - 3);
		assert_int_equal(q.ackreq, i == n - 1);
		assert_int_equal(q.solicited, i == n - 1);
		seg_copy_out(got, q.seg, q.nseg, 0, q.len);
		assert_memory_equal(got, payload + done, q.len);
		done += q.len;
		free(bytes);
	}
	assert_null(next_frame(&c, &bytes_len));
	assert_int_equal(done, len);
}

static void test_cut(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 5; n++) {
		check_cut(BTH_RC_SEND_ONLY, n, BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE,
			  BTH_RC_SEND_LAST);
		check_cut(BTH_RC_SEND_ONLY_IMM, n, BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE,
			  BTH_RC_SEND_LAST_IMM);
		check_cut(BTH_RC_SEND_ONLY_INV, n, BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE,
			  BTH_RC_SEND_LAST_INV);
		check_cut(BTH_RC_SEND_FIRST, n, BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE,
			  BTH_RC_SEND_MIDDLE);
		check_cut(BTH_RC_SEND_LAST_INV, n, BTH_RC_SEND_MIDDLE, BTH_RC_SEND_MIDDLE,
			  BTH_RC_SEND_LAST_INV);
		check_cut(BTH_RC_WRITE_ONLY, n, BTH_RC_WRITE_FIRST, BTH_RC_WRITE_MIDDLE,
			  BTH_RC_WRITE_LAST);
		check_cut(BTH_RC_WRITE_ONLY_IMM, n, BTH_RC_WRITE_FIRST, BTH_RC_WRITE_MIDDLE,
			  BTH_RC_WRITE_LAST_IMM);
		check_cut(BTH_RC_WRITE_MIDDLE, n, BTH_RC_WRITE_MIDDLE, BTH_RC_WRITE_MIDDLE,
			  BTH_RC_WRITE_MIDDLE);
		check_cut(BTH_RC_WRITE_LAST_IMM, n, BTH_RC_WRITE_MIDDLE, BTH_RC_WRITE_MIDDLE,
			  BTH_RC_WRITE_LAST_IMM);
		check_cut(BTH_RC_READ_RESP_ONLY, n, BTH_RC_READ_RESP_FIRST,
			  BTH_RC_READ_RESP_MIDDLE, BTH_RC_READ_RESP_LAST);
		check_cut(BTH_RC_READ_RESP_FIRST, n, BTH_RC_READ_RESP_FIRST,
			  BTH_RC_READ_RESP_MIDDLE, BTH_RC_READ_RESP_MIDDLE);
		check_cut(BTH_TRANSPORT_XRC | BTH_RC_READ_RESP_LAST, n,
			  BTH_TRANSPORT_XRC | BTH_RC_READ_RESP_MIDDLE,
			  BTH_TRANSPORT_XRC | BTH_RC_READ_RESP_MIDDLE,
			  BTH_TRANSPORT_XRC | BTH_RC_READ_RESP_LAST);
		check_cut(BTH_TRANSPORT_UC | BTH_RC_WRITE_ONLY, n,
			  BTH_TRANSPORT_UC | BTH_RC_WRITE_FIRST,
			  BTH_TRANSPORT_UC | BTH_RC_WRITE_MIDDLE,
			  BTH_TRANSPORT_UC | BTH_RC_WRITE_LAST);
	}
}

/* May a router, or who marks congestion, change this byte without breaking the ICRC? */
static bool may_change(uint32_t at, bool v4)
{
	uint32_t ip = ETH_BYTES, udp = ip + (v4 ? IPV4_BYTES : IPV6_BYTES);

	if (at < 12 || at == udp + 6 || at == udp + 7 || at == udp + UDP_BYTES + 4)
		return true;
	return !v4 && ((at > ip && at < ip + 4) || at == ip + 7);
}

/* One bit wrong anywhere: not a packet, but where the ICRC leaves it out. */
static void test_every_bit(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		struct packet p = sample(BTH_RC_WRITE_ONLY_IMM, v4, false, 33), q;
		uint32_t len;
		uint8_t *bytes = only_frame(&p, &len);

		for (uint32_t bit = 0; bit < len * 8; bit++) {
			bool fine;

			bytes[bit / 8] ^= 1 << bit % 8;
			fine = parse(&q, bytes, len) == ROCE_PACKET;
			if (bit / 8 == ETH_BYTES)	/* version, and half of the class */
				assert_int_equal(fine, !v4 && bit % 8 < 4);
			else
				assert_int_equal(fine, may_change(bit / 8, v4));
			bytes[bit / 8] ^= 1 << bit % 8;
		}
		free(bytes);
	}
}

/* Cut off anywhere, or longer than it says: no packet; padding of Ethernet is none of its business. */
static void test_lengths(void **state)
{
	struct packet p = sample(BTH_RC_COMPARE_SWAP, true, true, 0), q;
	uint32_t len;
	uint8_t *bytes = only_frame(&p, &len), *other;

	(void)state;
	for (uint32_t n = 0; n < len; n++) {
		other = malloc(n ? n : 1);
		memcpy(other, bytes, n);
		assert_int_not_equal(parse(&q, other, n), ROCE_PACKET);
		free(other);
	}
	other = calloc(1, len + 18);
	memcpy(other, bytes, len);
	assert_int_equal(parse(&q, other, len + 18), ROCE_PACKET);
	assert_int_equal(q.len, 0);
	free(other);
	free(bytes);
}

/* Write the ICRC that belongs to what was changed. */
static void seal(uint8_t *bytes, uint32_t len)
{
	uint8_t *udp = bytes + ETH_BYTES + IPV4_BYTES, *after = udp + UDP_BYTES + BTH_BYTES;
	uint32_t crc = icrc_headers(bytes + ETH_BYTES, IPV4_BYTES);

	crc = htole32(icrc_add(crc, after, bytes + len - ICRC_BYTES - after));
	memcpy(bytes + len - ICRC_BYTES, &crc, ICRC_BYTES);
}

/*
 * Make the first @n bytes of the UDP datagram of a frame a frame of its own, whose lengths say so,
 * in memory that ends where it does.
 */
static uint8_t *shorter(const uint8_t *frame, uint32_t l3, bool v4, uint32_t n, uint32_t *len)
{
	uint32_t l4 = l3 + (v4 ? IPV4_BYTES : IPV6_BYTES);
	uint8_t *bytes = malloc(l4 + n), *ip = bytes + l3;
	uint16_t csum;

	assert_non_null(bytes);
	memcpy(bytes, frame, l4 + n);
	be16_put(ip + (v4 ? 2 : 4), v4 ? IPV4_BYTES + n : n);
	if (v4) {
		memset(ip + 10, 0, 2);
		csum = csum_fold(csum_add(0, ip, IPV4_BYTES, false));
		memcpy(ip + 10, &csum, sizeof(csum));
	}
	if (n >= UDP_BYTES)
		be16_put(bytes + l4 + 4, n);
	*len = l4 + n;
	return bytes;
}

/* Each length of UDP that IP's length agrees with: no header is read beyond the end. */
static void test_udp_lengths(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t headers;	/* behind BTH */
		uint32_t payload;
		bool may;		/* have payload */
	} cases[] = {
		{ BTH_RC_COMPARE_SWAP, 28, 0, false }, { BTH_RC_SEND_ONLY, 0, 40, true },
		{ BTH_RC_WRITE_ONLY, 16, 40, true }, { BTH_UD_SEND_ONLY, 8, 40, true },
		{ BTH_RC_ACK, 4, 0, false },
	};

	(void)state;
	for (int i = 0; i < 4 * (int)(sizeof(cases) / sizeof(cases[0])); i++) {
		const bool v4 = i & 1, vlan = i & 2;
		const uint32_t l3 = ETH_BYTES + (vlan ? VLAN_BYTES : 0);
		const uint32_t least = UDP_BYTES + BTH_BYTES + cases[i / 4].headers + ICRC_BYTES;
		struct packet p = sample(cases[i / 4].opcode, v4, vlan, cases[i / 4].payload), q;
		uint32_t len, whole, n;
		uint8_t *frame = only_frame(&p, &whole), *bytes;

		whole -= l3 + (v4 ? IPV4_BYTES : IPV6_BYTES);
		assert_int_equal(whole, least + cases[i / 4].payload);
		for (n = 0; n <= whole; n++) {
			enum roce_kind want = ROCE_MALFORMED;

			if (n < UDP_BYTES)
				want = ROCE_NONE;
			else if (n >= least && !((n - least) & 3))
				want = n == whole ? ROCE_PACKET : ROCE_BAD_ICRC;
			bytes = shorter(frame, l3, v4, n, &len);
			if (parse(&q, bytes, len) != want)
				fail_msg("opcode 0x%x, %u bytes of UDP", cases[i / 4].opcode, n);
			free(bytes);
		}
		free(frame);
	}
}

/* A payload is a multiple of 4 bytes with its pad, whatever the ICRC says. */
static void test_unpadded(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= 8; n++) {
		struct packet p = sample(BTH_RC_SEND_ONLY, true, false, 12), q;
		uint32_t len, whole = UDP_BYTES + BTH_BYTES + n + ICRC_BYTES;
		uint8_t *frame = only_frame(&p, &len), *bytes;

		bytes = shorter(frame, ETH_BYTES, true, whole, &len);
		seal(bytes, len);
		assert_int_equal(parse(&q, bytes, len), n & 3 ? ROCE_MALFORMED : ROCE_PACKET);
		if (!(n & 3))
			assert_int_equal(q.len, n);
		free(bytes);
		free(frame);
	}
}

/* Contradictions under a good ICRC. */
static void test_contradictions(void **state)
{
	static const struct {
		const char *what;
		uint8_t opcode;
		uint32_t payload;
		uint32_t byte;		/* of UDP and BTH */
		uint8_t value;
	} cases[] = {
		{ "another version", BTH_RC_SEND_ONLY, 8, UDP_BYTES + 1, 0x41 },
		{ "more pad than payload", BTH_RC_SEND_ONLY, 0, UDP_BYTES + 1, 0x70 },
		{ "UDP says less", BTH_RC_SEND_ONLY, 8, 5, 31 },
		{ "UDP says more", BTH_RC_SEND_ONLY, 8, 5, 33 },
		{ "no room for the headers", BTH_RC_SEND_ONLY, 8, UDP_BYTES, BTH_RC_READ_REQUEST },
		{ "payload where none may be", BTH_RC_SEND_ONLY, 8, UDP_BYTES, BTH_RC_ACK },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet p = sample(cases[i].opcode, true, false, cases[i].payload), q;
		uint32_t len;
		uint8_t *bytes = only_frame(&p, &len);

		seal(bytes, len);
		assert_int_equal(parse(&q, bytes, len), ROCE_PACKET);
		bytes[ETH_BYTES + IPV4_BYTES + cases[i].byte] = cases[i].value;
		seal(bytes, len);
		if (parse(&q, bytes, len) != ROCE_MALFORMED)
			fail_msg("%s", cases[i].what);
		free(bytes);
	}
}

/* Reserved operations come through as they are: what to say to them is the queue pair's. */
static void test_unknown_opcode(void **state)
{
	struct packet p = sample(BTH_RC_SEND_ONLY, true, false, 8), q;
	uint32_t len;
	uint8_t *bytes = only_frame(&p, &len);

	(void)state;
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		bytes[ETH_BYTES + IPV4_BYTES + UDP_BYTES] = opcode;
		seal(bytes, len);
		if (parse(&q, bytes, len) == ROCE_PACKET)
			assert_int_equal(q.opcode, opcode);
	}
	bytes[ETH_BYTES + IPV4_BYTES + UDP_BYTES] = 0x1f;
	seal(bytes, len);
	assert_int_equal(parse(&q, bytes, len), ROCE_PACKET);
	assert_int_equal(q.len, 8);
	free(bytes);
}

/* What is not RoCEv2 is left to others, whatever it resembles. */
static void test_other_frames(void **state)
{
	struct packet p = sample(BTH_RC_SEND_ONLY, true, false, 8), q;
	uint32_t len;
	uint8_t *bytes = only_frame(&p, &len);
	static const struct {
		uint32_t byte;
		uint8_t value;
	} cases[] = {
		{ 12, 0x88 },				/* ethertype */
		{ ETH_BYTES, 0x46 },			/* options */
		{ ETH_BYTES + 6, 0x20 },		/* a fragment */
		{ ETH_BYTES + 9, 6 },			/* TCP */
		{ ETH_BYTES + IPV4_BYTES + 2, 0 },	/* another port */
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t was = bytes[cases[i].byte];

		bytes[cases[i].byte] = cases[i].value;
		assert_int_equal(parse(&q, bytes, len), ROCE_NONE);
		bytes[cases[i].byte] = was;
	}
	free(bytes);
}

/* Random bytes, and random changes of good frames: the sanitizers watch. */
static void test_garbage(void **state)
{
	(void)state;
	srand(5);
	for (int round = 0; round < 20000; round++) {
		struct packet p = sample(rand(), rand() & 1, rand() & 1, rand() % 40), q;
		uint32_t len;
		uint8_t *bytes = only_frame(&p, &len);

		for (int n = rand() % 4; n >= 0; n--)
			bytes[rand() % len] = rand();
		parse(&q, bytes, rand() % 3 ? len : (uint32_t)rand() % (len + 1));
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_frame),
		cmocka_unit_test(test_icrc_ipv6),
		cmocka_unit_test(test_every_opcode),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_udp_lengths),
		cmocka_unit_test(test_unpadded),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_unknown_opcode),
		cmocka_unit_test(test_other_frames),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
