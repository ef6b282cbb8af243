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

/* Make @p, which has a frame, an Ethernet packet. */
static void be_ethernet(struct packet *p)
{
	p->kind = PACKET_ETHERNET;
	p->len = p->frame.len;
	p->nseg = 1;
	p->seg[0] = p->frame;
}

enum roce_kind frames_parse(struct packet *p, uint8_t *frame, uint32_t len)
{
	enum roce_kind kind = roce_parse(p, frame, len);

	p->frame = (struct seg) { frame, len };
	if (kind == ROCE_NONE)
		be_ethernet(p);
	else if (kind == ROCE_BAD_ICRC)
		p->kind = PACKET_BAD_ICRC;
	return kind;
}

void frames_keep(struct frames_kept *kept, const struct packet *p)
{
	*kept = (struct frames_kept) {
		.roce = p->kind != PACKET_ETHERNET, .csum_ok = p->csum_ok,
		.outside = p->outside, .sqpn = p->sqpn,
	};
}

void frames_restore(struct packet *p, uint8_t *frame, uint32_t len,
		    const struct frames_kept *kept)
{
	enum roce_kind kind = frames_parse(p, frame, len);

	if (!kept->roce || kind == ROCE_MALFORMED)
		be_ethernet(p);
	p->csum_ok = kept->csum_ok;
	p->outside = kept->outside;
	p->sqpn = kept->sqpn;
}

void frames_ethernet(struct packet *to, const struct packet *p)
{
	memcpy(to, p, offsetof(struct packet, seg));
	be_ethernet(to);
}
