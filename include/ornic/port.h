/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ports: link, MAC, GID table (specification: port.rst; clauses ORN-PORT).
 * The object number of the commands is the number of the port.
 */
#ifndef ORNIC_PORT_H
#define ORNIC_PORT_H

#include "identify.h"
#include "types.h"

/* PORT_MODIFY input. The output of PORT_QUERY is struct ornic_identify_port. */
struct ornic_port_modify_cmd {
	__le32 mask;		/* ORNIC_PORT_M_* */
	__le32 admin_up;	/* 0 or 1 */
	__u8 mac[6];		/* unicast, not zero */
	__le16 max_frame;	/* MTU of the network interface in use */
	__le32 flags;		/* mbz */
	__u8 mbz[44];
};
ORNIC_ASSERT_SIZE(struct ornic_port_modify_cmd, 64);

#define ORNIC_PORT_M_ADMIN	(1u << 0) /* admin_up */
#define ORNIC_PORT_M_MAC	(1u << 1) /* mac */
#define ORNIC_PORT_M_FRAME	(1u << 2) /* max_frame */
#define ORNIC_PORT_M_FLAGS	(1u << 3) /* reserved */

enum ornic_gid_type {
	ORNIC_GID_IB		= 0,	/* reserved */
	ORNIC_GID_ROCEV1	= 1,	/* reserved */
	ORNIC_GID_ROCEV2	= 2,	/* the only type in version 1.0 */
	ORNIC_GID_IWARP		= 3,	/* reserved */
};

/* SET_GID input and GET_GID output. IPv4 addresses are ::ffff:a.b.c.d. */
struct ornic_gid_entry {
	__u8 port;		/* same as the number of the command */
	__u8 type;		/* enum ornic_gid_type */
	__le16 index;		/* below gid_entries */
	__le32 flags;		/* ORNIC_GID_* */
	__u8 gid[16];		/* source of packets: an IP address */
	__u8 smac[6];		/* source MAC of packets */
	__le16 vlan;		/* 12 bits */
	__le32 owner;		/* 0 = any */
	__u8 mbz[28];
};
ORNIC_ASSERT_SIZE(struct ornic_gid_entry, 64);
ORNIC_ASSERT_OFFSET(struct ornic_gid_entry, gid, 0x08);
ORNIC_ASSERT_OFFSET(struct ornic_gid_entry, owner, 0x20);

#define ORNIC_GID_VALID		(1u << 0) /* clear: the entry is deleted */
#define ORNIC_GID_VLAN		(1u << 1) /* tagged with vlan */

/* GET_GID input. */
struct ornic_gid_get_cmd {
	__le16 mbz;
	__le16 index;		/* below gid_entries */
};
ORNIC_ASSERT_SIZE(struct ornic_gid_get_cmd, 4);

#endif
