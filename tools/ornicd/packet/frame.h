/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the headers of an Ethernet frame say, in the layout that receive rules
 * compare.
 */
#ifndef ORNICD_PACKET_FRAME_H
#define ORNICD_PACKET_FRAME_H

#include "packet.h"

#include <ornic/steer.h>

/**
 * struct frame - see above
 * @key:	the fields; those not in @fields are zero; compared word by word
 * @fields:	ORNIC_MATCH_* that the frame has
 */
struct frame {
	struct ornic_rule_match key __attribute__((aligned(8)));
	uint32_t fields;
};

/**
 * frame_parse() - read the headers of a frame
 * @p:	frame, whose bytes may change at any time: each is read once
 * @f:	result; a header that is cut off or contradicts itself is no header
 */
void frame_parse(const struct packet *p, struct frame *f);

#endif /* ORNICD_PACKET_FRAME_H */
