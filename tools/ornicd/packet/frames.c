// SPDX-License-Identifier: GPL-2.0
/*
 * Convert packets to frames in contiguous memory, and back.
 */
#include "frames.h"

#include <string.h>

void frames_begin(struct frames *f, const struct packet *p)
{
	*f = (struct frames) { .p = p };
	roce_cut(&f->cut, p);
}

static uint32_t next_roce(struct roce_cut *cut, uint8_t *to)
{
	struct roce_frame r;

	while (roce_next(cut, &r)) {
		uint32_t len = r.head_len + r.len + r.tail_len;

		if (len > FRAMES_MAX_BYTES)
			continue;
		memcpy(to, r.head, r.head_len);
		seg_copy_out(to + r.head_len, r.seg, r.nseg, 0, r.len);
		memcpy(to + r.head_len + r.len, r.tail, r.tail_len);
		return len;
	}
	return 0;
}

uint32_t frames_next(struct frames *f, uint8_t *to)
{
	const struct packet *p = f->p;
	const struct seg *seg = p->frame.len ? &p->frame : p->seg;
	uint32_t nseg = p->frame.len ? 1 : p->nseg;
	uint32_t len = p->frame.len ? p->frame.len : p->len;

	if (!p->frame.len && p->kind == PACKET_ROCE)
		return next_roce(&f->cut, to);
	if (f->done || len > FRAMES_MAX_BYTES)
		return 0;
	f->done = true;
	seg_copy_out(to, seg, nseg, 0, len);
	return len;
}

enum roce_kind frames_parse(struct packet *p, uint8_t *frame, uint32_t len)
{
	enum roce_kind kind = roce_parse(p, frame, len);

	if (kind == ROCE_NONE) {
		p->kind = PACKET_ETHERNET;
		p->len = len;
		p->nseg = 1;
		p->seg[0] = (struct seg) { frame, len };
	} else if (kind == ROCE_BAD_ICRC) {
		p->kind = PACKET_BAD_ICRC;
	}
	p->frame = (struct seg) { frame, len };
	return kind;
}
