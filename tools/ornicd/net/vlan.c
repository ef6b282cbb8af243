// SPDX-License-Identifier: GPL-2.0
/*
 * Add, change and remove VLAN tags.
 *
 * A RoCE packet that was made in this daemon has no frame yet: its tag is a field. Other packets
 * are a frame or the pieces of one, which is copied. The ICRC does not cover the tag.
 */
#include "vlan.h"

#include "../packet/wire.h"

#include <string.h>

#define ID_MASK		0xfff
#define ADDRESS_BYTES	12	/* bytes of a frame before tag or EtherType */

/*
 * Get the tag of @p. Only this file parses the tag of a frame that a guest sent. Return: false if
 * there is none.
 */
static bool tag_of(const struct packet *p, uint16_t *tci)
{
	uint8_t head[ADDRESS_BYTES + VLAN_BYTES];

	*tci = p->vlan_tci;
	if (p->kind == PACKET_ROCE || p->frame.len)
		return p->vlan;
	if (p->len < ETH_BYTES + VLAN_BYTES)
		return false;
	seg_copy_out(head, p->seg, p->nseg, 0, sizeof(head));
	*tci = be16_get(head + ADDRESS_BYTES + 2);
	return be16_get(head + ADDRESS_BYTES) == ETHERTYPE_VLAN;
}

uint16_t vlan_id(const struct packet *p)
{
	uint16_t tci;

	return tag_of(p, &tci) ? tci & ID_MASK : 0;
}

bool vlan_is_tagged(const struct packet *p)
{
	uint8_t head[ETH_BYTES + VLAN_BYTES] = { 0 };
	uint32_t len = p->frame.len ? p->frame.len : p->len;
	uint16_t type;

	if (p->kind == PACKET_ROCE)
		return vlan_id(p);
	seg_copy_out(head, p->frame.len ? &p->frame : p->seg, p->frame.len ? 1 : p->nseg, 0,
		     len < sizeof(head) ? len : sizeof(head));
	type = be16_get(head + ADDRESS_BYTES);
	if (type == ETHERTYPE_VLAN && len >= sizeof(head) &&
	    !(be16_get(head + ETH_BYTES) & ID_MASK))
		type = be16_get(head + ETH_BYTES + 2);
	return type == ETHERTYPE_VLAN || type == ETHERTYPE_SVLAN;
}

/*
 * Copy the frame of @p to @c->frame without its tag, if @tagged, and with the tag of @c->packet, if
 * that has one. Return: bytes of the new frame, 0 if it would be too long.
 */
static uint32_t copy_frame(struct vlan_copy *c, const struct packet *p, bool tagged)
{
	const struct seg *seg = p->frame.len ? &p->frame : p->seg;
	uint32_t nseg = p->frame.len ? 1 : p->nseg;
	uint32_t len = p->frame.len ? p->frame.len : p->len;
	uint32_t skip = ADDRESS_BYTES + (tagged ? VLAN_BYTES : 0);
	uint32_t at = ADDRESS_BYTES;

	if (len < skip || len - skip > FRAMES_MAX_BYTES - ADDRESS_BYTES - VLAN_BYTES)
		return 0;
	seg_copy_out(c->frame, seg, nseg, 0, ADDRESS_BYTES);
	if (c->packet.vlan) {
		be16_put(c->frame + at, ETHERTYPE_VLAN);
		be16_put(c->frame + at + 2, c->packet.vlan_tci);
		at += VLAN_BYTES;
	}
	len -= skip;
	seg_copy_out(c->frame + at, seg, nseg, skip, len);
	for (len += at; len < ETH_MIN_FRAME; len++)
		c->frame[len] = 0;
	return len;
}

bool vlan_retag(struct vlan_copy *c, const struct packet *p, uint16_t id)
{
	struct packet *q = &c->packet;
	uint16_t tci;
	bool tagged = tag_of(p, &tci);
	uint32_t len;

	*q = *p;
	q->vlan = id;
	q->vlan_tci = id | (tagged ? tci & ~ID_MASK : 0);
	if (p->kind == PACKET_ROCE && !p->frame.len)
		return true;
	len = copy_frame(c, p, tagged);
	q->frame = (struct seg) { c->frame, len };
	if (p->kind == PACKET_ETHERNET) {
		q->len = len;
		q->nseg = 1;
		q->seg[0] = q->frame;
	}
	return len;
}
