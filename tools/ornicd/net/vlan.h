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

/** VLAN_MAX_ID - VLANs have numbers from 1 to this; 0 stands for none */
#define VLAN_MAX_ID	4094

/* vlan_id() - the VLAN that the tag of @p names, 0 if it has no tag or one for the priority only */
uint16_t vlan_id(const struct packet *p);

/*
 * vlan_is_tagged() - has @p a tag that an access port does not take: any but one of IEEE 802.1Q for
 * the priority only, or any behind that one; whole or not
 */
bool vlan_is_tagged(const struct packet *p);

/**
 * struct vlan_copy - a packet with another tag
 * @packet:	what it is now; refers to the payload of the one that it was
 * @frame:	its frame, if that was one
 */
struct vlan_copy {
	struct packet packet;
	uint8_t frame[FRAMES_MAX_BYTES];
};

/**
 * vlan_retag() - make of @p a packet with the tag of VLAN @id, or without a tag
 * @c:	the new one; good as long as @p is
 * @p:	packet
 * @id:	VLAN, or 0
 *
 * Return: false if the frame would be too long.
 */
bool vlan_retag(struct vlan_copy *c, const struct packet *p, uint16_t id);

#endif /* ORNICD_NET_VLAN_H */
