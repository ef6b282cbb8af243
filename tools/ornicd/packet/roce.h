/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2 on the wire: convert a packet of the daemon to Ethernet frames, and back
 * (IBTA volume 1, chapter 9; annexes A14, A17 and A19).
 */
#ifndef ORNICD_PACKET_ROCE_H
#define ORNICD_PACKET_ROCE_H

#include "packet.h"

/** ROCE_HEAD_BYTES - enough for the longest headers: VLAN, IPv6, XRC, atomic */
#define ROCE_HEAD_BYTES	128
/** ROCE_TAIL_BYTES - enough for pad and ICRC */
#define ROCE_TAIL_BYTES	8

/**
 * struct roce_frame - a frame: @head, the pieces of @seg, @tail
 * @head:	headers
 * @tail:	pad and ICRC
 * @head_len:	bytes of @head
 * @tail_len:	bytes of @tail
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
 * struct roce_cut - state of the segmentation of a packet
 * @p:		packet
 * @done:	number of frames made
 * @seg:	index of the piece with the next byte of payload
 * @off:	offset of that byte in the piece
 */
struct roce_cut {
	const struct packet *p;
	uint32_t done;
	uint32_t seg;
	uint32_t off;
};

/* roce_cut() - start the segmentation of @p, a PACKET_ROCE, which must stay unchanged */
void roce_cut(struct roce_cut *c, const struct packet *p);

/* roce_next() - make the next frame in @f. Return: false if there is none. */
bool roce_next(struct roce_cut *c, struct roce_frame *f);

/* roce_opcode() - return the BTH opcode of frame @i, from 0, of @p */
uint8_t roce_opcode(const struct packet *p, uint32_t i);

/*
 * roce_bth() - return the offset of the BTH in a frame that roce_next() made or roce_parse() found
 * to be RoCEv2; 0 if the frame was truncated before the end of the BTH
 */
uint32_t roce_bth(const uint8_t *frame, uint32_t len);

/** enum roce_kind - result of parsing a frame */
enum roce_kind {
	ROCE_NONE,		/* not RoCEv2 */
	ROCE_PACKET,		/* RoCEv2 */
	ROCE_MALFORMED,		/* RoCEv2 that is truncated or inconsistent */
	ROCE_BAD_ICRC,		/* RoCEv2 with a wrong ICRC */
};

/*
 * roce_parse() - parse @frame of @len bytes, which is in the daemon's memory and does not change.
 * For ROCE_PACKET and ROCE_BAD_ICRC @p is filled in and refers to the frame.
 */
enum roce_kind roce_parse(struct packet *p, uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_ROCE_H */
