/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet as frames in memory of the daemon, for whoever keeps or changes them, and back.
 */
#ifndef ORNICD_PACKET_FRAMES_H
#define ORNICD_PACKET_FRAMES_H

#include "packet.h"
#include "roce.h"

/** FRAMES_MAX_BYTES - the longest frame: an MTU of 9000, Ethernet, VLAN; and some more */
#define FRAMES_MAX_BYTES	9216

/**
 * struct frames - a packet on its way into frames
 * @p:		packet
 * @cut:	of RoCE that was made in this daemon
 * @done:	another packet: its one frame was taken
 */
struct frames {
	const struct packet *p;
	struct roce_cut cut;
	bool done;
};

/* frames_begin() - begin with @p, of any kind */
void frames_begin(struct frames *f, const struct packet *p);

/*
 * frames_next() - the next frame as it would be on the wire, copied to @to, which has room for
 * it: FRAMES_MAX_BYTES are enough for any. A frame that came from a wire is the same as there.
 * Longer ones are left out.
 * Return: its bytes; 0 if there is none.
 */
uint32_t frames_next(struct frames *f, uint8_t *to);

/*
 * frames_parse() - make @p, whose header fields are zero, a packet of a frame: RoCEv2, or
 * Ethernet for ROCE_NONE. It refers to @frame, of at least ETH_BYTES, which nobody changes.
 * Return: what the frame is; ROCE_MALFORMED is to be dropped, and ROCE_BAD_ICRC too by whoever
 * checks for others.
 */
enum roce_kind frames_parse(struct packet *p, uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_FRAMES_H */
