// SPDX-License-Identifier: GPL-2.0
/*
 * Make and parse RoCEv2 frames.
 *
 * A packet may stand for several frames (packet.h). The table operations[] has the extension
 * headers of each operation and the opcodes of the first, middle and last frame into which such a
 * packet is cut. Each frame has the extension headers of its own opcode.
 */
#include "roce.h"

#include "bth.h"
#include "csum.h"
#include "icrc.h"
#include "ip.h"
#include "wire.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

/* First byte of an IPv4 header: version 4, 5 words of header */
#define IPV4_NO_OPTIONS	0x45

/* Extension headers in their order in the packet, and whether payload may follow them */
enum extension {
	EXT_DETH	= 1 << 0,
	EXT_XRCETH	= 1 << 1,
	EXT_FETH	= 1 << 2,
	EXT_RETH	= 1 << 3,
	EXT_ATOMICETH	= 1 << 4,
	EXT_AETH	= 1 << 5,
	EXT_ATOMICACKETH = 1 << 6,
	EXT_IMMDT	= 1 << 7,
	EXT_IETH	= 1 << 8,
	EXT_CNP		= 1 << 9,
	EXT_PAYLOAD	= 1 << 10,
};

static const struct {
	enum extension bit;
	uint8_t bytes;
} extensions[] = {
	{ EXT_DETH, 8 }, { EXT_XRCETH, 4 }, { EXT_FETH, 4 }, { EXT_RETH, 16 },
	{ EXT_ATOMICETH, 28 }, { EXT_AETH, 4 }, { EXT_ATOMICACKETH, 8 }, { EXT_IMMDT, 4 },
	{ EXT_IETH, 4 }, { EXT_CNP, 16 },
};

#define EXTENSIONS	(sizeof(extensions) / sizeof(extensions[0]))

/**
 * struct operation - an operation: a BTH opcode without its transport
 * @known:	the entry is valid
 * @ext:	set of enum extension
 * @first:	opcode of the first of several frames
 * @middle:	opcode of frames between first and last
 * @last:	opcode of the last frame
 */
struct operation {
	bool known;
	uint16_t ext;
	uint8_t first;
	uint8_t middle;
	uint8_t last;
};

#define ONE(op, ext)	[BTH_RC_##op] = { true, ext, BTH_RC_##op, BTH_RC_##op, BTH_RC_##op }
#define CUT(op, ext, first, middle, last) \
	[BTH_RC_##op] = { true, ext, BTH_RC_##first, BTH_RC_##middle, BTH_RC_##last }

static const struct operation operations[] = {
	CUT(SEND_FIRST, EXT_PAYLOAD, SEND_FIRST, SEND_MIDDLE, SEND_MIDDLE),
	CUT(SEND_MIDDLE, EXT_PAYLOAD, SEND_MIDDLE, SEND_MIDDLE, SEND_MIDDLE),
	CUT(SEND_LAST, EXT_PAYLOAD, SEND_MIDDLE, SEND_MIDDLE, SEND_LAST),
	CUT(SEND_LAST_IMM, EXT_PAYLOAD | EXT_IMMDT, SEND_MIDDLE, SEND_MIDDLE, SEND_LAST_IMM),
	CUT(SEND_LAST_INV, EXT_PAYLOAD | EXT_IETH, SEND_MIDDLE, SEND_MIDDLE, SEND_LAST_INV),
	CUT(SEND_ONLY, EXT_PAYLOAD, SEND_FIRST, SEND_MIDDLE, SEND_LAST),
	CUT(SEND_ONLY_IMM, EXT_PAYLOAD | EXT_IMMDT, SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM),
	CUT(SEND_ONLY_INV, EXT_PAYLOAD | EXT_IETH, SEND_FIRST, SEND_MIDDLE, SEND_LAST_INV),
	CUT(WRITE_FIRST, EXT_PAYLOAD | EXT_RETH, WRITE_FIRST, WRITE_MIDDLE, WRITE_MIDDLE),
	CUT(WRITE_MIDDLE, EXT_PAYLOAD, WRITE_MIDDLE, WRITE_MIDDLE, WRITE_MIDDLE),
	CUT(WRITE_LAST, EXT_PAYLOAD, WRITE_MIDDLE, WRITE_MIDDLE, WRITE_LAST),
	CUT(WRITE_LAST_IMM, EXT_PAYLOAD | EXT_IMMDT, WRITE_MIDDLE, WRITE_MIDDLE, WRITE_LAST_IMM),
	CUT(WRITE_ONLY, EXT_PAYLOAD | EXT_RETH, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST),
	CUT(WRITE_ONLY_IMM, EXT_PAYLOAD | EXT_RETH | EXT_IMMDT, WRITE_FIRST, WRITE_MIDDLE,
	    WRITE_LAST_IMM),
	CUT(READ_RESP_FIRST, EXT_PAYLOAD | EXT_AETH, READ_RESP_FIRST, READ_RESP_MIDDLE,
	    READ_RESP_MIDDLE),
	CUT(READ_RESP_MIDDLE, EXT_PAYLOAD, READ_RESP_MIDDLE, READ_RESP_MIDDLE, READ_RESP_MIDDLE),
	CUT(READ_RESP_LAST, EXT_PAYLOAD | EXT_AETH, READ_RESP_MIDDLE, READ_RESP_MIDDLE,
	    READ_RESP_LAST),
	CUT(READ_RESP_ONLY, EXT_PAYLOAD | EXT_AETH, READ_RESP_FIRST, READ_RESP_MIDDLE,
	    READ_RESP_LAST),
	ONE(READ_REQUEST, EXT_RETH),
	ONE(ACK, EXT_AETH),
	ONE(ATOMIC_ACK, EXT_AETH | EXT_ATOMICACKETH),
	ONE(COMPARE_SWAP, EXT_ATOMICETH),
	ONE(FETCH_ADD, EXT_ATOMICETH),
	ONE(FLUSH, EXT_FETH | EXT_RETH),
	ONE(ATOMIC_WRITE, EXT_RETH | EXT_PAYLOAD),
};

/* All bytes of an unknown opcode are payload; the queue pair decides whether it is an error. */
static const struct operation unknown = { .ext = EXT_PAYLOAD };

static const struct operation *operation_of(uint8_t opcode)
{
	uint8_t operation = bth_operation(opcode);

	if (operation >= sizeof(operations) / sizeof(operations[0]) ||
	    !operations[operation].known)
		return &unknown;
	return &operations[operation];
}

static uint32_t extensions_of(uint8_t opcode)
{
	const struct operation *op = operation_of(opcode);
	uint32_t ext = op->ext;

	if (opcode == BTH_CNP)
		return EXT_CNP;
	if (!op->known)
		return ext;
	if ((opcode & BTH_TRANSPORT_MASK) == BTH_TRANSPORT_UD)
		ext |= EXT_DETH;
	else if ((opcode & BTH_TRANSPORT_MASK) == BTH_TRANSPORT_XRC && !bth_is_answer(opcode))
		ext |= EXT_XRCETH;
	return ext;
}

uint8_t roce_opcode(const struct packet *p, uint32_t i)
{
	const struct operation *op = operation_of(p->opcode);
	uint8_t transport = p->opcode & BTH_TRANSPORT_MASK;

	if (p->npsn == 1)
		return p->opcode;
	if (!i)
		return transport | op->first;
	return transport | (i == p->npsn - 1 ? op->last : op->middle);
}

static void put_extension(uint8_t *at, const struct packet *p, enum extension ext)
{
	switch (ext) {
	case EXT_DETH:
		be32_put(at, p->qkey);
		be32_put(at + 4, p->sqpn & 0xffffff);
		break;
	case EXT_XRCETH:
		be32_put(at, p->srqn & 0xffffff);
		break;
	case EXT_FETH:
		be32_put(at, p->feth);
		break;
	case EXT_RETH:
		be64_put(at, p->va);
		be32_put(at + 8, p->rkey);
		be32_put(at + 12, p->dmalen);
		break;
	case EXT_ATOMICETH:
		be64_put(at, p->va);
		be32_put(at + 8, p->rkey);
		be64_put(at + 12, p->swap_add);
		be64_put(at + 20, p->compare);
		break;
	case EXT_AETH:
		be32_put(at, (uint32_t)p->aeth << 24 | (p->msn & BTH_PSN_MASK));
		break;
	case EXT_ATOMICACKETH:
		be64_put(at, p->atomic_ack);
		break;
	case EXT_IMMDT:
		memcpy(at, &p->imm, 4);
		break;
	case EXT_IETH:
		be32_put(at, p->rkey);
		break;
	case EXT_CNP:
		memset(at, 0, 16);
		break;
	case EXT_PAYLOAD:
		break;
	}
}

static void get_extension(struct packet *p, const uint8_t *at, enum extension ext)
{
	switch (ext) {
	case EXT_DETH:
		p->qkey = be32_get(at);
		p->sqpn = be24_get(at + 5);
		break;
	case EXT_XRCETH:
		p->srqn = be24_get(at + 1);
		break;
	case EXT_FETH:
		p->feth = be32_get(at);
		break;
	case EXT_RETH:
		p->va = be64_get(at);
		p->rkey = be32_get(at + 8);
		p->dmalen = be32_get(at + 12);
		break;
	case EXT_ATOMICETH:
		p->va = be64_get(at);
		p->rkey = be32_get(at + 8);
		p->swap_add = be64_get(at + 12);
		p->compare = be64_get(at + 20);
		break;
	case EXT_AETH:
		p->aeth = at[0];
		p->msn = be24_get(at + 1);
		break;
	case EXT_ATOMICACKETH:
		p->atomic_ack = be64_get(at);
		break;
	case EXT_IMMDT:
		memcpy(&p->imm, at, 4);
		break;
	case EXT_IETH:
		p->rkey = be32_get(at);
		break;
	case EXT_CNP:		/* reserved: ignored */
	case EXT_PAYLOAD:
		break;
	}
}

void roce_cut(struct roce_cut *c, const struct packet *p)
{
	*c = (struct roce_cut) { .p = p };
}

/* Set the payload of @f to the next @len bytes. */
static void take_payload(struct roce_cut *c, struct roce_frame *f, uint32_t len)
{
	const struct packet *p = c->p;

	f->len = len;
	f->nseg = 0;
	while (len) {
		uint32_t n = p->seg[c->seg].len - c->off;

		if (n > len)
			n = len;
		if (n)
			f->seg[f->nseg++] = (struct seg) { p->seg[c->seg].ptr + c->off, n };
		len -= n;
		c->off += n;
		if (c->off == p->seg[c->seg].len) {
			c->seg++;
			c->off = 0;
		}
	}
}

static uint8_t *put_ethernet(uint8_t *at, const struct packet *p, bool v4)
{
	memcpy(at, p->dmac, 6);
	memcpy(at + 6, p->smac, 6);
	at += 12;
	if (p->vlan) {
		be16_put(at, ETHERTYPE_VLAN);
		be16_put(at + 2, p->vlan_tci);
		at += VLAN_BYTES;
	}
	be16_put(at, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	return at + 2;
}

/* The UDP checksum is zero, as annex A17 requires; the ICRC protects the packet. */
static uint8_t *put_udp(uint8_t *at, const struct packet *p, uint16_t len)
{
	be16_put(at, p->udp_sport);
	be16_put(at + 2, ROCE_UDP_PORT);
	be16_put(at + 4, len);
	be16_put(at + 6, 0);
	return at + UDP_BYTES;
}

/*
 * MigReq is 1, which reports the migrated state, because there is no automatic path migration. A
 * CNP has no flag but BECN (annex A17.9.3).
 */
static uint8_t *put_bth(uint8_t *at, const struct packet *p, uint8_t opcode, uint32_t pad,
			uint32_t i)
{
	bool last = i == p->npsn - 1;

	at[0] = opcode;
	at[1] = BTH_MIGREQ | pad << BTH_PAD_SHIFT | (p->solicited && last ? BTH_SOLICITED : 0);
	if (opcode == BTH_CNP)
		at[1] = 0;
	be16_put(at + 2, p->pkey);
	be32_put(at + 4, p->dqpn & 0xffffff);
	if (opcode == BTH_CNP)
		at[4] = BTH_BECN;
	be32_put(at + 8, (p->psn + i) & BTH_PSN_MASK);
	if (p->ackreq && last)
		at[8] = BTH_ACKREQ;
	return at + BTH_BYTES;
}

bool roce_next(struct roce_cut *c, struct roce_frame *f)
{
	const struct packet *p = c->p;
	uint32_t i = c->done, len, pad, udp_len, ext, ext_bytes = 0, crc;
	bool v4 = ip_is_v4(p->dgid);
	uint8_t opcode, *ip, *at;

	if (i == p->npsn)
		return false;
	c->done++;
	len = i < p->npsn - 1 ? p->mtu : p->len - i * p->mtu;
	pad = -len & BTH_PAD_MASK;
	opcode = roce_opcode(p, i);
	ext = extensions_of(opcode);
	for (uint32_t e = 0; e < EXTENSIONS; e++)
		ext_bytes += ext & extensions[e].bit ? extensions[e].bytes : 0;
	take_payload(c, f, len);
	ip = put_ethernet(f->head, p, v4);
	udp_len = UDP_BYTES + BTH_BYTES + ext_bytes + len + pad + ICRC_BYTES;
	if (v4)
		ip_v4_build(ip, p, udp_len);
	else
		ip_v6_build(ip, p, udp_len);
	at = put_udp(ip + (v4 ? IPV4_BYTES : IPV6_BYTES), p, udp_len);
	at = put_bth(at, p, opcode, pad, i);
	for (uint32_t e = 0; e < EXTENSIONS; e++) {
		if (!(ext & extensions[e].bit))
			continue;
		put_extension(at, p, extensions[e].bit);
		at += extensions[e].bytes;
	}
	f->head_len = at - f->head;
	crc = icrc_headers(ip, v4 ? IPV4_BYTES : IPV6_BYTES);
	crc = icrc_add(crc, at - ext_bytes, ext_bytes);
	for (uint32_t s = 0; s < f->nseg; s++)
		crc = icrc_add(crc, f->seg[s].ptr, f->seg[s].len);
	memset(f->tail, 0, pad);
	crc = htole32(icrc_add(crc, f->tail, pad));
	memcpy(f->tail + pad, &crc, ICRC_BYTES);
	f->tail_len = pad + ICRC_BYTES;
	return true;
}

/**
 * struct bytes - the part of a frame that is not yet parsed
 * @at:		next byte
 * @left:	number of bytes
 */
struct bytes {
	uint8_t *at;
	uint32_t left;
};

/* Return the next @n bytes and move behind them; NULL if fewer are left. */
static uint8_t *take(struct bytes *b, uint32_t n)
{
	uint8_t *at = b->at;

	if (n > b->left)
		return NULL;
	b->at += n;
	b->left -= n;
	return at;
}

/* Parse Ethernet and VLAN headers. Return: the EtherType of the payload, 0 if there is none. */
static uint16_t parse_ethernet(struct packet *p, struct bytes *b)
{
	const uint8_t *eth = take(b, ETH_BYTES), *tag;
	uint16_t type;

	if (!eth)
		return 0;
	memcpy(p->dmac, eth, 6);
	memcpy(p->smac, eth + 6, 6);
	type = be16_get(eth + 12);
	if (type != ETHERTYPE_VLAN)
		return type;
	tag = take(b, VLAN_BYTES);
	if (!tag)
		return 0;
	p->vlan = true;
	p->vlan_tci = be16_get(tag);
	return be16_get(tag + 2);
}

/*
 * Parse the IP header of a UDP datagram. RoCEv2 uses no options, extension headers or fragments,
 * so a frame with these is not RoCEv2. Return: bytes of the IP header, 0 if it is not RoCEv2.
 */
static uint32_t parse_ipv4(struct packet *p, struct bytes *b)
{
	const uint8_t *ip = take(b, IPV4_BYTES);
	uint32_t total;

	if (!ip || ip[0] != IPV4_NO_OPTIONS || ip[9] != IPPROTO_UDP ||
	    be16_get(ip + 6) & IPV4_FRAGMENT)
		return 0;
	total = be16_get(ip + 2);
	if (total < IPV4_BYTES || total - IPV4_BYTES > b->left || !csum_ipv4_ok(ip, IPV4_BYTES))
		return 0;
	b->left = total - IPV4_BYTES;
	p->tclass = ip[1];
	p->hop_limit = ip[8];
	ip_v4_gid(p->sgid, ip + 12);
	ip_v4_gid(p->dgid, ip + 16);
	return IPV4_BYTES;
}

static uint32_t parse_ipv6(struct packet *p, struct bytes *b)
{
	const uint8_t *ip = take(b, IPV6_BYTES);

	if (!ip || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP || be16_get(ip + 4) > b->left)
		return 0;
	b->left = be16_get(ip + 4);
	p->tclass = be16_get(ip) >> 4;
	p->flow_label = be32_get(ip) & 0xfffff;
	p->hop_limit = ip[7];
	memcpy(p->sgid, ip + 8, 16);
	memcpy(p->dgid, ip + 24, 16);
	return IPV6_BYTES;
}

/* Parse BTH, extension headers and payload. Return: false if they are inconsistent. */
static bool parse_transport(struct packet *p, struct bytes *b)
{
	const uint8_t *bth = take(b, BTH_BYTES);
	uint32_t ext, pad;

	if (!bth || b->left < ICRC_BYTES || bth[1] & BTH_TVER_MASK)
		return false;
	b->left -= ICRC_BYTES;
	p->kind = PACKET_ROCE;
	p->npsn = 1;
	p->opcode = bth[0];
	p->solicited = bth[1] & BTH_SOLICITED;
	p->pkey = be16_get(bth + 2);
	p->dqpn = be24_get(bth + 5);
	p->ackreq = bth[8] & BTH_ACKREQ;
	p->psn = be24_get(bth + 9);
	pad = bth[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	ext = extensions_of(p->opcode);
	for (uint32_t e = 0; e < EXTENSIONS; e++) {
		const uint8_t *at;

		if (!(ext & extensions[e].bit))
			continue;
		at = take(b, extensions[e].bytes);
		if (!at)
			return false;
		get_extension(p, at, extensions[e].bit);
	}
	/* Payload and pad together are a multiple of four bytes. */
	if (pad > b->left || b->left & BTH_PAD_MASK || (b->left && !(ext & EXT_PAYLOAD)))
		return false;
	p->len = b->left - pad;
	p->nseg = p->len ? 1 : 0;
	p->seg[0] = (struct seg) { b->at, p->len };
	return true;
}

enum roce_kind roce_parse(struct packet *p, uint8_t *frame, uint32_t len)
{
	struct bytes b = { frame, len };
	uint16_t type = parse_ethernet(p, &b);
	uint32_t ip_bytes = 0, crc, received;
	uint8_t *ip = b.at, *udp;

	if (type == ETHERTYPE_IPV4)
		ip_bytes = parse_ipv4(p, &b);
	else if (type == ETHERTYPE_IPV6)
		ip_bytes = parse_ipv6(p, &b);
	if (!ip_bytes)
		return ROCE_NONE;
	udp = take(&b, UDP_BYTES);
	if (!udp || be16_get(udp + 2) != ROCE_UDP_PORT)
		return ROCE_NONE;
	p->udp_sport = be16_get(udp);
	len = b.left;
	if (be16_get(udp + 4) != UDP_BYTES + len || !parse_transport(p, &b))
		return ROCE_MALFORMED;
	crc = icrc_headers(ip, ip_bytes);
	crc = icrc_add(crc, udp + UDP_BYTES + BTH_BYTES, len - BTH_BYTES - ICRC_BYTES);
	memcpy(&received, udp + UDP_BYTES + len - ICRC_BYTES, ICRC_BYTES);
	return le32toh(received) == crc ? ROCE_PACKET : ROCE_BAD_ICRC;
}

uint32_t roce_bth(const uint8_t *frame, uint32_t len)
{
	uint32_t at = ETH_BYTES;
	uint16_t type;

	if (len < ETH_BYTES + VLAN_BYTES)
		return 0;
	type = be16_get(frame + at - 2);
	if (type == ETHERTYPE_VLAN) {
		at += VLAN_BYTES;
		type = be16_get(frame + at - 2);
	}
	at += (type == ETHERTYPE_IPV4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
	return at + BTH_BYTES <= len ? at : 0;
}
