// SPDX-License-Identifier: GPL-2.0
/*
 * The GID table. ib_core derives it from the addresses of the network
 * interfaces. The device keeps a copy, which defines the source address, source
 * MAC and VLAN of the packets that it sends (ORN-PORT-1).
 */
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include <linux/ornic/hw/port.h>

#include "gid.h"
#include "cmd.h"
#include "ornic_ib.h"

/* VLAN that rdma_read_gid_l2_fields() reports for an interface without VLAN. */
#define NO_VLAN		0xffff

int ornic_ib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ornic_gid_entry entry = {
		.port = attr->port_num,
		.type = ORNIC_GID_ROCEV2,
		.index = cpu_to_le16(attr->index),
	};
	u32 flags = ORNIC_GID_VALID;
	u16 vlan = NO_VLAN;
	int ret;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	ret = rdma_read_gid_l2_fields(attr, &vlan, entry.smac);
	if (ret)
		return ret;
	if (vlan != NO_VLAN) {
		entry.vlan = cpu_to_le16(vlan);
		flags |= ORNIC_GID_VLAN;
	}
	entry.flags = cpu_to_le32(flags);
	memcpy(entry.gid, attr->gid.raw, sizeof(entry.gid));
	return ornic_ib_cmd_set_gid(to_oib(attr->device), &entry);
}

/* Delete an entry. Succeeds on a dead device, whose table is lost already. */
int ornic_ib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ornic_ib_dev *dev = to_oib(attr->device);
	struct ornic_gid_entry entry = {
		.port = attr->port_num,
		.type = ORNIC_GID_ROCEV2,
		.index = cpu_to_le16(attr->index),
	};
	int ret;

	ret = ornic_ib_cmd_set_gid(dev, &entry);
	return ornic_device_dead(dev->odev) ? 0 : ret;
}
