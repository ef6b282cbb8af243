/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device's port on the switch: addresses out, filters and demultiplexing in
 * (ORN-PORT-2, ORN-STEER-1).
 */
#ifndef ORNICD_ENGINE_LINK_H
#define ORNICD_ENGINE_LINK_H

#include "device.h"
#include "../packet/packet.h"

#include <ornic/qp.h>

/* link_attach() - put the device's port on the switch. Return: 0 or -EEXIST (MAC). */
int link_attach(struct device *dev);
void link_detach(struct device *dev);

/* link_update() - the port's MAC, state or rules changed. Return: 0 or -EEXIST (MAC). */
int link_update(struct device *dev);

/* link_is_up() - frames pass: admin up, plugged in, and the function running */
bool link_is_up(const struct device *dev);

/* link_told() - tell the host if the link is not what it was (ORN-PORT-12) */
void link_told(struct device *dev, bool was_up);

/* link_set_carrier() - pull the plug, or put it in again */
void link_set_carrier(struct device *dev, bool on);

/* link_mtu() - the largest path MTU the port's frame size carries, in bytes */
uint32_t link_mtu(const struct device *dev);

/*
 * link_gid() - the GID entry that @path names, or NULL if @qp may not send from it on that
 * path: not valid, another owner's, or an address of the other kind (ORN-PORT-9, 17)
 */
const struct ornic_gid_entry *link_gid(const struct qp *qp, const struct ornic_path *path);

/*
 * link_packet() - a packet of @qp with the addresses of @path filled in
 * Return: NULL; and the syndrome if link_gid() allows none.
 */
struct packet *link_packet(struct qp *qp, const struct ornic_path *path, uint32_t *syndrome);

/* link_send() - put a packet of @qp on the port; owns it, drops it if the link is down */
void link_send(struct qp *qp, struct packet *p);

/* link_send_frame() - the same for an Ethernet frame of @qp */
void link_send_frame(struct qp *qp, struct packet *p);

#endif /* ORNICD_ENGINE_LINK_H */
