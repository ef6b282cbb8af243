/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device's port on the switch: addresses of sent packets, filtering and demultiplexing of
 * received packets (ORN-PORT-2, ORN-STEER-1).
 */
#ifndef ORNICD_ENGINE_LINK_H
#define ORNICD_ENGINE_LINK_H

#include "device.h"
#include "../packet/packet.h"

#include <ornic/qp.h>

/*
 * link_attach() - add the device's port to the switch, as access port of @vlan or of none: 0
 * Return: 0, -EEXIST if another port in that VLAN has its MAC address, or -ENOMEM.
 */
int link_attach(struct device *dev, uint16_t vlan);
/* link_detach() - remove the port from the switch */
void link_detach(struct device *dev);

/*
 * link_update() - apply a changed MAC address, state or rule of the port to the switch
 * Return: 0, or -EEXIST if another port has the MAC address: then nothing was applied.
 */
int link_update(struct device *dev);

/* link_is_up() - return true if frames pass: admin up, carrier on, function running */
bool link_is_up(const struct device *dev);

/* link_notify() - raise a port event if the link state differs from @was_up (ORN-PORT-12) */
void link_notify(struct device *dev, bool was_up);

/* link_set_carrier() - remove the carrier of the port, or restore it */
void link_set_carrier(struct device *dev, bool on);

/* link_mtu() - return the largest path MTU that fits the frame size of the port, in bytes */
uint32_t link_mtu(const struct device *dev);

/*
 * link_gid() - return the source GID entry of @path, or NULL if @qp may not use it: invalid, of
 * another owner, or IPv4 with an IPv6 destination or vice versa (ORN-PORT-9, 17)
 */
const struct ornic_gid_entry *link_gid(const struct qp *qp, const struct ornic_path *path);

/*
 * link_packet() - get a packet with the addresses of @path and the source queue pair filled in
 * Return: the packet, or NULL: with a syndrome if link_gid() allows none, without if the pool is
 * empty.
 */
struct packet *link_packet(struct qp *qp, const struct ornic_path *path, uint32_t *syndrome);

/* link_send() - send RoCE packet @p, or drop it if the link is down; takes ownership of @p */
void link_send(struct qp *qp, struct packet *p);

/*
 * link_send_frame() - send Ethernet frame @p, or drop it; takes ownership of @p
 *
 * Its first piece is memory of the packet, with the bytes that antispoof_frame() needs.
 */
void link_send_frame(struct qp *qp, struct packet *p);

#endif /* ORNICD_ENGINE_LINK_H */
