/* SPDX-License-Identifier: GPL-2.0 */
/*
 * VLAN tags (IEEE 802.1Q) of packets of any kind.
 */
#ifndef ORNICD_NET_VLAN_H
#define ORNICD_NET_VLAN_H

#include "../packet/frames.h"
#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>

/** VLAN_MAX_ID - largest number of a VLAN; the smallest is 1, and 0 stands for none */
#define VLAN_MAX_ID	4094

/* vlan_id() - return the VLAN in the tag of @p, 0 if it has no tag or a priority tag (VLAN 0) */
uint16_t vlan_id(const struct packet *p);

/*
 * vlan_is_tagged() - return true if @p has a tag that an access port rejects: any tag except one
 * priority tag of IEEE 802.1Q, or a second tag, also if it is truncated
 */
bool vlan_is_tagged(const struct packet *p);

/**
 * struct vlan_copy - a copy of a packet with another tag
 * @packet:	the copy; refers to the payload of the original if that had no frame
 * @frame:	frame of the copy
 */
struct vlan_copy {
	struct packet packet;
	uint8_t frame[FRAMES_MAX_BYTES];
};

/**
 * vlan_retag() - copy a packet with the tag of VLAN @id, or without a tag
 * @c:	the copy; valid as long as @p
 * @p:	packet
 * @id:	VLAN, or 0 for no tag
 *
 * Return: false if the frame would be too long.
 */
bool vlan_retag(struct vlan_copy *c, const struct packet *p, uint16_t id);

#endif /* ORNICD_NET_VLAN_H */
