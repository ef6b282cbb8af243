/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Convert a packet to frames in memory of the daemon, which may be kept or changed, and back.
 */
#ifndef ORNICD_PACKET_FRAMES_H
#define ORNICD_PACKET_FRAMES_H

#include "packet.h"
#include "roce.h"

/** FRAMES_MAX_BYTES - longest frame: an MTU of 9000, Ethernet and VLAN headers, and a reserve */
#define FRAMES_MAX_BYTES	9216

/**
 * struct frames - state of the conversion of a packet to frames
 * @p:		packet
 * @cut:	state of a RoCE packet that was made in this daemon
 * @done:	any other packet: its only frame was returned
 */
struct frames {
	const struct packet *p;
	struct roce_cut cut;
	bool done;
};

/* frames_begin() - start the conversion of @p, a packet of any kind, which must stay unchanged */
void frames_begin(struct frames *f, const struct packet *p);

/*
 * frames_next() - copy the next frame, as it would be on a wire, to @to of FRAMES_MAX_BYTES. A
 * frame that came from a wire is unchanged; longer frames than FRAMES_MAX_BYTES are left out.
 * Return: its bytes; 0 if there is none.
 */
uint32_t frames_next(struct frames *f, uint8_t *to);

/*
 * frames_parse() - fill in @p, whose header fields are zero, from a frame: a RoCEv2 packet, or an
 * Ethernet packet for ROCE_NONE. @p refers to @frame, which has at least ETH_BYTES and must not
 * change while @p is used.
 * Return: kind of frame. The caller must drop ROCE_MALFORMED; for ROCE_BAD_ICRC @p is a
 * PACKET_BAD_ICRC, which uplinks drop and devices count.
 */
enum roce_kind frames_parse(struct packet *p, uint8_t *frame, uint32_t len);

/**
 * struct frames_kept - properties of a packet that its frame does not show
 * @roce:	it was RoCEv2; other packets are Ethernet, even if they look like RoCEv2
 * @csum_ok, @outside, @sqpn: as in struct packet
 */
struct frames_kept {
	bool roce;
	bool csum_ok;
	bool outside;
	uint32_t sqpn;
};

/* frames_keep() - get the properties of @p */
void frames_keep(struct frames_kept *kept, const struct packet *p);

/*
 * frames_restore() - fill in @p, as frames_parse(), from a frame of a packet whose properties were
 * @kept. @p is RoCEv2 only if that was, and if the frame still can be parsed as such; otherwise
 * Ethernet.
 */
void frames_restore(struct packet *p, uint8_t *frame, uint32_t len,
		    const struct frames_kept *kept);

/*
 * frames_ethernet() - fill in @to as an Ethernet packet with the frame of @p, which has one; @to is
 * valid as long as @p
 */
void frames_ethernet(struct packet *to, const struct packet *p);

#endif /* ORNICD_PACKET_FRAMES_H */
