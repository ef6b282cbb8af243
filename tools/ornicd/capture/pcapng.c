// SPDX-License-Identifier: GPL-2.0
/*
 * Write pcapng blocks: type, length, fields, options, length again; padded to four bytes.
 */
#include "pcapng.h"

#include <endian.h>
#include <string.h>

#define BLOCK_SECTION		0x0a0d0d0a
#define BLOCK_INTERFACE		1
#define BLOCK_STATISTICS	5
#define BLOCK_PACKET		6

#define BYTE_ORDER_MAGIC	0x1a2b3c4d
#define LINKTYPE_ETHERNET	1

/* Options; the meaning of a number depends on the block. */
#define OPT_END			0
#define OPT_COMMENT		1
#define SECTION_APPLICATION	4
#define INTERFACE_NAME		2
#define INTERFACE_DESCRIPTION	3
#define INTERFACE_TSRESOL	9
#define PACKET_FLAGS		2
#define STATISTICS_START	2
#define STATISTICS_END		3
#define STATISTICS_RECEIVED	4
#define STATISTICS_DROPPED	5

#define TSRESOL_NS		9	/* 10^-9 s */

static uint8_t *put16(uint8_t *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static uint8_t *put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

/* A time is two words, the upper one first in files of either byte order. */
static uint8_t *put_time(uint8_t *at, uint64_t ns)
{
	return put32(put32(at, ns >> 32), ns);
}

static uint8_t *put_pad(uint8_t *at, uint32_t len)
{
	uint32_t pad = -len & 3;

	memset(at, 0, pad);
	return at + pad;
}

static uint8_t *put_option(uint8_t *at, uint16_t code, const void *value, uint16_t len)
{
	at = put16(put16(at, code), len);
	memcpy(at, value, len);
	return put_pad(at + len, len);
}

static uint8_t *put_text(uint8_t *at, uint16_t code, const char *text)
{
	return put_option(at, code, text, strnlen(text, PCAPNG_TEXT));
}

static uint8_t *put_count(uint8_t *at, uint16_t code, uint64_t count)
{
	return put64(put16(put16(at, code), sizeof(count)), count);
}

/* Begin a block; its length follows when it ends. */
static uint8_t *block_begin(uint8_t *to, uint32_t type)
{
	return put32(to, type) + sizeof(uint32_t);
}

static uint32_t block_end(uint8_t *to, uint8_t *at)
{
	uint32_t len = at + sizeof(uint32_t) - to;

	put32(at, len);
	put32(to + sizeof(uint32_t), len);
	return len;
}

uint32_t pcapng_put_section(uint8_t *to, const char *application)
{
	uint8_t *at = block_begin(to, BLOCK_SECTION);

	at = put32(at, BYTE_ORDER_MAGIC);
	at = put16(put16(at, 1), 0);		/* version 1.0 */
	at = put64(at, UINT64_MAX);		/* length of the section: unknown */
	at = put_text(at, SECTION_APPLICATION, application);
	return block_end(to, put32(at, OPT_END));
}

uint32_t pcapng_put_interface(uint8_t *to, const struct pcapng_interface *i)
{
	const uint8_t resolution = TSRESOL_NS;
	uint8_t *at = block_begin(to, BLOCK_INTERFACE);

	at = put16(put16(at, LINKTYPE_ETHERNET), 0);
	at = put32(at, i->snaplen);
	at = put_text(at, INTERFACE_NAME, i->name);
	at = put_text(at, INTERFACE_DESCRIPTION, i->description);
	at = put_option(at, INTERFACE_TSRESOL, &resolution, sizeof(resolution));
	return block_end(to, put32(at, OPT_END));
}

static uint8_t *put_data(uint8_t *at, const struct pcapng_packet *p)
{
	uint32_t left = p->keep;

	for (uint32_t i = 0; left; i++) {
		uint32_t n = p->piece[i].len < left ? p->piece[i].len : left;

		if (n)
			memcpy(at, p->piece[i].ptr, n);
		at += n;
		left -= n;
	}
	return put_pad(at, p->keep);
}

uint32_t pcapng_put_packet(uint8_t *to, const struct pcapng_packet *p)
{
	uint8_t *at = block_begin(to, BLOCK_PACKET);
	uint32_t flags = htole32(p->flags);

	at = put32(at, p->interface);
	at = put_time(at, p->ns);
	at = put32(put32(at, p->keep), p->len);
	at = put_data(at, p);
	if (p->comment)
		at = put_text(at, OPT_COMMENT, p->comment);
	at = put_option(at, PACKET_FLAGS, &flags, sizeof(flags));
	return block_end(to, put32(at, OPT_END));
}

uint32_t pcapng_put_statistics(uint8_t *to, const struct pcapng_statistics *s)
{
	uint8_t *at = block_begin(to, BLOCK_STATISTICS);

	at = put32(at, s->interface);
	at = put_time(at, s->ns);
	at = put_time(put16(put16(at, STATISTICS_START), sizeof(s->start_ns)), s->start_ns);
	at = put_time(put16(put16(at, STATISTICS_END), sizeof(s->end_ns)), s->end_ns);
	at = put_count(at, STATISTICS_RECEIVED, s->received);
	at = put_count(at, STATISTICS_DROPPED, s->dropped);
	return block_end(to, put32(at, OPT_END));
}

uint32_t pcapng_packet_room(const struct pcapng_packet *p)
{
	return PCAPNG_FIXED + PCAPNG_TEXT + p->keep;
}

size_t pcapng_whole(const uint8_t *at, size_t len)
{
	size_t whole = 0;

	while (len - whole >= 2 * sizeof(uint32_t)) {
		uint32_t block;

		memcpy(&block, at + whole + sizeof(block), sizeof(block));
		block = le32toh(block);
		if (!block || block > len - whole)
			break;
		whole += block;
	}
	return whole;
}
