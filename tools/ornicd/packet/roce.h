/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2 on the wire: a packet of the daemon to Ethernet frames, and back
 * (IBTA volume 1, chapter 9; annexes A14, A17 and A19).
 */
#ifndef ORNICD_PACKET_ROCE_H
#define ORNICD_PACKET_ROCE_H

#include "packet.h"

/** ROCE_HEAD_BYTES - no frame's headers are longer: VLAN, IPv6, XRC, atomic */
#define ROCE_HEAD_BYTES	128
/** ROCE_TAIL_BYTES - pad and ICRC */
#define ROCE_TAIL_BYTES	8

/**
 * struct roce_frame - a frame: @head, the pieces, @tail
 * @head:	headers
 * @head_len:	bytes of @head
 * @tail_len:	bytes of @tail
 * @tail:	pad and ICRC
 * @len:	bytes of payload
 * @nseg:	pieces of payload
 * @seg:	payload, in the memory of the packet's sender
 */
struct roce_frame {
	uint8_t head[ROCE_HEAD_BYTES];
	uint8_t tail[ROCE_TAIL_BYTES];
	uint32_t head_len;
	uint32_t tail_len;
	uint32_t len;
	uint32_t nseg;
	struct seg seg[PACKET_SEGS];
};

/**
 * struct roce_cut - a packet on its way into frames
 * @p:		packet
 * @done:	frames made
 * @seg:	piece of the payload that the next one begins in
 * @off:	byte of it
 */
struct roce_cut {
	const struct packet *p;
	uint32_t done;
	uint32_t seg;
	uint32_t off;
};

/* roce_cut() - begin to cut @p, a packet of kind PACKET_ROCE */
void roce_cut(struct roce_cut *c, const struct packet *p);

/* roce_next() - the next frame. Return: false if there is none. */
bool roce_next(struct roce_cut *c, struct roce_frame *f);

/* roce_opcode() - the opcode of frame @i of those that @p stands for */
uint8_t roce_opcode(const struct packet *p, uint32_t i);

/*
 * roce_bth() - where the BTH is in a frame that was RoCEv2 when it was made; 0 if it has been
 * cut off since
 */
uint32_t roce_bth(const uint8_t *frame, uint32_t len);

/** enum roce_kind - what a frame is */
enum roce_kind {
	ROCE_NONE,		/* not RoCEv2: a frame like others */
	ROCE_PACKET,
	ROCE_MALFORMED,		/* RoCEv2 that is cut off or contradicts itself */
	ROCE_BAD_ICRC,
};

/*
 * roce_parse() - what the frame @frame of @len bytes is; for ROCE_PACKET, @p is filled in
 * and refers to it. The frame is in the daemon's memory, and nobody changes it.
 */
enum roce_kind roce_parse(struct packet *p, uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_ROCE_H */
