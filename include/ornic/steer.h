/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive rules: which queue pair gets which frame (specification: steer.rst;
 * clauses ORN-STEER).
 */
#ifndef ORNIC_STEER_H
#define ORNIC_STEER_H

#include "types.h"

enum ornic_rule_kind {
	ORNIC_RULE_MATCH	= 0,	/* feature STEER */
	ORNIC_RULE_UNICAST	= 1,	/* frames to the port's MAC */
	ORNIC_RULE_MULTICAST	= 2,	/* all multicast and broadcast frames */
	ORNIC_RULE_PROMISC	= 3,	/* every frame that reaches the port */
	ORNIC_RULE_SNIFFER	= 4,	/* feature STEER */
	ORNIC_RULE_MEMBER	= 5,	/* feature MCAST */
};

enum ornic_rule_target {
	ORNIC_TARGET_QP		= 0,
	ORNIC_TARGET_RSS	= 1,	/* feature RSS */
	ORNIC_TARGET_DROP	= 2,	/* feature STEER */
};

/* MEMBER: offset of the group's GID in value, all else of value, mask and fields zero. */
#define ORNIC_MEMBER_GID	0x20

/* RULE_CREATE input. Kinds 1..3 leave fields, value and mask zero. */
struct ornic_rule_cmd {
	__u8 kind;		/* enum ornic_rule_kind */
	__u8 port;		/* 1..ports */
	__le16 priority;	/* 0 first */
	__le32 target_type;	/* enum ornic_rule_target */
	__le32 target;		/* handle of a RAW queue pair */
	__le32 flow_tag;	/* feature STEER */
	__le32 flags;		/* mbz */
	__le32 counter_set;	/* feature COUNTER_SETS */
	__le32 owner;		/* host's id of the user context */
	__le32 fields;		/* bit n: the n-th field of value takes part */
	__u8 value[96];		/* feature STEER */
	__u8 mask[96];		/* feature STEER */
	__u8 mbz[32];
};
ORNIC_ASSERT_SIZE(struct ornic_rule_cmd, 256);
ORNIC_ASSERT_OFFSET(struct ornic_rule_cmd, value, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_rule_cmd, mask, 0x80);

#endif
