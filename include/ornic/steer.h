/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive rules: they select the queue pairs that receive a frame (specification:
 * steer.rst; clauses ORN-STEER).
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
	ORNIC_TARGET_RSS	= 1,	/* feature RSS; MATCH only */
	ORNIC_TARGET_DROP	= 2,	/* feature STEER */
};

/* MEMBER: offset of the group's GID in value. The rest of value, mask and fields are zero. */
#define ORNIC_MEMBER_GID	0x20

/* Headers that a MATCH rule compares; byte arrays and __be are in wire order. */
struct ornic_rule_match {
	__u8 dmac[6];		/* DMAC */
	__u8 smac[6];		/* SMAC */
	__be16 ethertype;	/* ETHERTYPE: the one behind the VLAN tag, if any */
	__be16 vlan_tci;	/* VLAN: the frame has a tag (0x8100) */
	__u8 src_ip[16];	/* SRC_IP; IPv4 as ::ffff:a.b.c.d */
	__u8 dst_ip[16];	/* DST_IP; IPv4 as ::ffff:a.b.c.d */
	__be16 src_port;	/* SRC_PORT: TCP or UDP port */
	__be16 dst_port;	/* DST_PORT: TCP or UDP port */
	__u8 ip_version;	/* IP_VERSION: 4 or 6 */
	__u8 protocol;		/* PROTOCOL; IPv6: behind the extension headers */
	__u8 tos;		/* TOS: type of service, traffic class */
	__u8 ttl;		/* TTL: time to live, hop limit */
	__be32 flow_label;	/* FLOW_LABEL: IPv6, [19:0] */
	__be32 tunnel_id;	/* reserved */
	__u8 tcp_flags;		/* reserved */
	__u8 ip_frag;		/* IP_FRAG: ORNIC_FRAG_* */
	__u8 mbz[30];
};
ORNIC_ASSERT_SIZE(struct ornic_rule_match, 96);
ORNIC_ASSERT_OFFSET(struct ornic_rule_match, src_ip, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_rule_match, src_port, 0x30);
ORNIC_ASSERT_OFFSET(struct ornic_rule_match, flow_label, 0x38);
ORNIC_ASSERT_OFFSET(struct ornic_rule_match, ip_frag, 0x41);

#define ORNIC_MATCH_DMAC	(1u << 0)
#define ORNIC_MATCH_SMAC	(1u << 1)
#define ORNIC_MATCH_ETHERTYPE	(1u << 2)
#define ORNIC_MATCH_VLAN	(1u << 3)
#define ORNIC_MATCH_SRC_IP	(1u << 4)
#define ORNIC_MATCH_DST_IP	(1u << 5)
#define ORNIC_MATCH_SRC_PORT	(1u << 6)
#define ORNIC_MATCH_DST_PORT	(1u << 7)
#define ORNIC_MATCH_IP_VERSION	(1u << 8)
#define ORNIC_MATCH_PROTOCOL	(1u << 9)
#define ORNIC_MATCH_TOS		(1u << 10)
#define ORNIC_MATCH_TTL		(1u << 11)
#define ORNIC_MATCH_FLOW_LABEL	(1u << 12)
/* bits 13 and 14 are reserved for tunnel_id and tcp_flags */
#define ORNIC_MATCH_IP_FRAG	(1u << 15)

#define ORNIC_FRAG_ANY		(1u << 0) /* the packet is a fragment */
#define ORNIC_FRAG_DF		(1u << 1) /* IPv4: don't fragment */
#define ORNIC_FRAG_MF		(1u << 2) /* more fragments follow */

/* RULE_CREATE input. Kinds 1..3 leave fields, value and mask zero. */
struct ornic_rule_cmd {
	__u8 kind;		/* enum ornic_rule_kind */
	__u8 port;		/* 1..ports */
	__le16 priority;	/* 0 first */
	__le32 target_type;	/* enum ornic_rule_target */
	__le32 target;		/* RAW queue pair, RSS group; DROP: 0 */
	__le32 flow_tag;	/* MATCH: echoed in completions, 24 bits */
	__le32 flags;		/* MATCH: ORNIC_RULE_F_* */
	__le32 counter_set;	/* feature COUNTER_SETS */
	__le32 owner;		/* host's id of the user context */
	__le32 fields;		/* MATCH: ORNIC_MATCH_* fields to compare */
	struct ornic_rule_match value;	/* MATCH: required values of the bits in mask */
	struct ornic_rule_match mask;	/* MATCH: bits to compare */
	__u8 mbz[32];
};
ORNIC_ASSERT_SIZE(struct ornic_rule_cmd, 256);
ORNIC_ASSERT_OFFSET(struct ornic_rule_cmd, value, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_rule_cmd, mask, 0x80);

/* bit 0 is reserved */
#define ORNIC_RULE_F_COPY	(1u << 1) /* the frame is offered to later rules too */
#define ORNIC_RULE_F_LEFTOVER	(1u << 2) /* only frames that UNICAST did not take */

/* RSS_CREATE input. The number in the completion is the number of the group. */
#define ORNIC_RSS_LOG_MAX_TABLE	8
#define ORNIC_RSS_MAX_TABLE	(1 << ORNIC_RSS_LOG_MAX_TABLE)
#define ORNIC_RSS_KEY_BYTES	40

struct ornic_rss_create_cmd {
	__u8 function;		/* enum ornic_rss_function */
	__u8 log_size;		/* log2 of the entries of table in use, 0..8 */
	__u8 port;		/* 1..ports */
	__u8 mbz0;
	__le32 fields;		/* ORNIC_RSS_*: fields to hash */
	__le32 owner;		/* host's id of the user context */
	__le32 mbz1;
	__u8 key[ORNIC_RSS_KEY_BYTES];	/* hash key; bit 7 of the first byte is its first bit */
	__le64 mbz2;
	__le32 table[ORNIC_RSS_MAX_TABLE];	/* RAW queue pairs; unused entries: 0 */
};
ORNIC_ASSERT_SIZE(struct ornic_rss_create_cmd, 1088);
ORNIC_ASSERT_OFFSET(struct ornic_rss_create_cmd, key, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_rss_create_cmd, table, 0x40);

enum ornic_rss_function {
	ORNIC_RSS_TOEPLITZ	= 1,
};

/* Hash fields: IBV_RX_HASH_* values. */
#define ORNIC_RSS_SRC_IPV4	(1u << 0)
#define ORNIC_RSS_DST_IPV4	(1u << 1)
#define ORNIC_RSS_SRC_IPV6	(1u << 2)
#define ORNIC_RSS_DST_IPV6	(1u << 3)
#define ORNIC_RSS_SRC_PORT_TCP	(1u << 4)
#define ORNIC_RSS_DST_PORT_TCP	(1u << 5)
#define ORNIC_RSS_SRC_PORT_UDP	(1u << 6)
#define ORNIC_RSS_DST_PORT_UDP	(1u << 7)
#define ORNIC_RSS_FIELDS	0xffu

/* Hashed headers: rss_type of a completion. */
#define ORNIC_RSS_TYPE_IPV4	(1u << 0)
#define ORNIC_RSS_TYPE_IPV6	(1u << 1)
#define ORNIC_RSS_TYPE_TCP	(1u << 2)
#define ORNIC_RSS_TYPE_UDP	(1u << 3)

#endif
