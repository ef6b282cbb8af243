/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Header fields of an Ethernet frame in the layout that receive rules compare.
 */
#ifndef ORNICD_PACKET_FRAME_H
#define ORNICD_PACKET_FRAME_H

#include "packet.h"

#include <ornic/steer.h>

/**
 * struct frame - header fields of a frame
 * @key:	values; those not in @fields are zero; compared word by word
 * @fields:	ORNIC_MATCH_* of the fields that the frame has
 */
struct frame {
	struct ornic_rule_match key __attribute__((aligned(8)));
	uint32_t fields;
};

/**
 * frame_parse() - parse the headers of a frame
 * @p:	frame; each byte is read only once, because guests may change it at any time
 * @f:	result; a header that is truncated or inconsistent counts as missing
 */
void frame_parse(const struct packet *p, struct frame *f);

#endif /* ORNICD_PACKET_FRAME_H */
