/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Identify pages, feature bits and limits (specification: identify.rst;
 * clauses ORN-FEA, ORN-IDN).
 */
#ifndef ORNIC_IDENTIFY_H
#define ORNIC_IDENTIFY_H

#include "types.h"

enum ornic_identify_page {
	ORNIC_ID_DEVICE		= 0,
	ORNIC_ID_PORT		= 1,	/* index: port, from 1 */
	ORNIC_ID_TRANSPORT	= 2,	/* index: entry, from 0 */
};

/* IDENTIFY input. */
struct ornic_identify_cmd {
	__u8 page;		/* enum ornic_identify_page; from 0xc0 on: vendor */
	__u8 mbz;
	__le16 index;		/* depends on the page; 0 if there is only one */
};
ORNIC_ASSERT_SIZE(struct ornic_identify_cmd, 4);

/* SET_FEATURES input: the words that the host accepts. */
struct ornic_features_cmd {
	__le64 features0;	/* bit per enum ornic_feature */
	__le64 features1;	/* reserved; bits 48..63 vendor */
};
ORNIC_ASSERT_SIZE(struct ornic_features_cmd, 16);

/* Feature bits of word 0. */
enum ornic_feature {
	ORNIC_F_RC			= 0,
	ORNIC_F_UC			= 1,
	ORNIC_F_UD			= 2,	/* with GSI */
	ORNIC_F_XRC			= 3,
	ORNIC_F_RAW			= 4,	/* Ethernet queue pairs */
	ORNIC_F_SRQ			= 5,
	ORNIC_F_MCAST			= 6,
	ORNIC_F_STEER			= 7,
	ORNIC_F_RSS			= 8,
	ORNIC_F_TX_CSUM			= 9,
	ORNIC_F_RX_CSUM			= 10,
	ORNIC_F_LSO			= 11,
	ORNIC_F_VLAN			= 12,	/* insert, strip */
	ORNIC_F_SCATTER_FCS		= 13,
	ORNIC_F_JUMBO			= 14,
	ORNIC_F_IB_LINK			= 15,	/* reserved */
	ORNIC_F_MW1			= 16,
	ORNIC_F_MW2A			= 17,
	ORNIC_F_MW2B			= 18,
	ORNIC_F_FAST_REG		= 19,	/* with local and remote invalidate */
	ORNIC_F_SG_GAPS			= 20,	/* reserved */
	ORNIC_F_REREG			= 21,
	ORNIC_F_ATOMICS			= 22,	/* 8 byte */
	ORNIC_F_MASKED_ATOMICS		= 23,	/* reserved */
	ORNIC_F_FLUSH_GLOBAL		= 24,
	ORNIC_F_FLUSH_PERSISTENT	= 25,
	ORNIC_F_ATOMIC_WRITE		= 26,
	ORNIC_F_RELAXED_ORDERING	= 27,
	ORNIC_F_ZERO_BASED		= 28,
	ORNIC_F_GLOBAL_RKEY		= 29,	/* PHYS_ALL keys with remote access */
	ORNIC_F_APM			= 30,	/* reserved */
	ORNIC_F_TAG_MATCHING		= 31,	/* reserved */
	ORNIC_F_DM			= 32,
	ORNIC_F_TIMESTAMP		= 33,	/* completion timestamps */
	ORNIC_F_CQ_MODERATION		= 34,
	ORNIC_F_CQ_IGNORE_OVERRUN	= 35,
	ORNIC_F_CQ_RESIZE		= 36,
	ORNIC_F_COUNTER_SETS		= 37,
	ORNIC_F_CC_PROFILES		= 38,
	ORNIC_F_RATE_LIMIT		= 39,
	ORNIC_F_PUSH			= 40,	/* reserved */
	ORNIC_F_ODP			= 41,	/* reserved */
	ORNIC_F_RESTORE			= 42,	/* reserved */
	ORNIC_F_HOST_LISTS		= 43,	/* page lists exist as long as the object */
	ORNIC_F_SRQ_RESIZE		= 44,
	ORNIC_F_READ_INV		= 45,	/* reserved */
	ORNIC_F_AH_OBJECT		= 46,	/* reserved */
	ORNIC_F_COMP_CNTR		= 47,	/* reserved */
};

#define ORNIC_FEATURE(name)		(1ull << ORNIC_F_##name)

/* Identify page 0: the device. Limits are per function and guaranteed. */
struct ornic_identify_device {
	__le64 features0;	/* offered, bit per enum ornic_feature */
	__le64 features1;	/* reserved; bits 48..63 vendor */
	__le32 generation;	/* + 1 at every change of any page */
	__le32 vendor_id;	/* id of the vendor */
	__le32 vendor_part;	/* part number of the vendor */
	__le32 hw_version;	/* revision of the part */
	__u8 fw_version[32];	/* text, zero padded */
	__u8 serial[32];	/* text, zero padded */
	__be64 node_guid;	/* of this function, EUI-64 */
	__be64 sys_image_guid;	/* of the whole device */
	__u8 ports;		/* 1..16 */
	__u8 function_kind;	/* 0 physical, 1 virtual, 2 sub-function */
	__le16 function_index;	/* index among the functions of its kind */
	__le32 max_dbpages;	/* doorbell pages, page 0 included */
	__le64 page_sizes;	/* bit n: 2^n usable as page_shift; bit 12 always set */
	__le64 max_region;	/* bytes per key */
	__le64 dm_bytes;	/* bytes of device memory */
	__le32 max_qp;		/* queue pairs */
	__le32 max_cq;		/* completion queues */
	__le32 max_srq;		/* shared receive queues */
	__le32 max_eq;		/* event queues, EQ 0 included */
	__le32 max_key;		/* regions and windows share the index space */
	__le32 max_mw;		/* windows, included in max_key */
	__le32 max_pd;		/* protection domains */
	__le32 max_xrcd;	/* XRC domains */
	__le32 max_ah;		/* 0 = no limit, address vectors are inline */
	__le32 max_raw_qp;	/* queue pairs of type RAW, included in max_qp */
	__le32 max_mcast_groups;	/* multicast groups with at least one member */
	__le32 max_mcast_per_group;	/* members of one group */
	__le32 max_mcast_total;	/* memberships of all groups */
	__le32 max_rules;	/* receive rules */
	__le32 max_rss_groups;	/* RSS groups */
	__le32 max_counter_sets;	/* counter sets */
	__le32 max_cc_profiles;	/* reserved */
	__le32 max_fast_reg_pages;	/* pages of a FAST_REG key */
	__u8 log_max_sq;	/* log2 entries of a send queue */
	__u8 log_max_rq;	/* log2 entries of a receive queue */
	__u8 log_max_srq;	/* log2 entries of an SRQ */
	__u8 log_max_cq;	/* log2 entries of a CQ */
	__u8 log_max_eq;	/* log2 entries of an EQ */
	__u8 max_sq_stride;	/* log2 bytes */
	__u8 max_rq_stride;	/* log2 bytes */
	__u8 max_list_level;	/* 2 */
	__le16 max_send_sge;	/* SGEs of a send */
	__le16 max_recv_sge;	/* SGEs of a receive */
	__le16 max_srq_sge;	/* SGEs of an entry of an SRQ */
	__le16 max_sge_read;	/* SGEs of an RDMA_READ */
	__le16 max_inline;	/* inline bytes of a send */
	__le16 max_lso_header;	/* reserved */
	__le32 max_lso_bytes;	/* reserved */
	__le16 max_rd_atomic_init;	/* per QP, as requester */
	__le16 max_rd_atomic_resp;	/* per QP, as responder */
	__le32 max_rd_resources;	/* total of the device */
	__u8 atomic_scope;	/* 0 none, 1 this device, 2 global (with the CPU) */
	__u8 masked_atomic_scope;	/* reserved */
	__u8 ca_ack_delay;	/* 4.096 us * 2^n */
	__u8 rss_hash_functions;	/* bit per enum ornic_rss_function */
	__le32 rss_fields;	/* ORNIC_RSS_* */
	__le32 rss_max_table;	/* most entries of an RSS table, a power of two */
	__le32 clock_khz;	/* ticks of the device clock per ms */
	__le64 clock_mask;	/* valid bits of timestamps */
	__le16 max_mod_count;	/* largest mod_count */
	__le16 max_mod_period_us;	/* largest mod_period_us */
	__le32 rate_min_kbps;	/* smallest rate limit in kbit/s */
	__le32 rate_max_kbps;	/* largest rate limit in kbit/s */
	__le32 rate_qp_types;	/* bit per enum ornic_qp_type that supports a rate limit */
	__le32 odp_caps[4];	/* reserved */
	__le32 stat_count;	/* entries of STAT_NAMES */
	__le32 transports;	/* entries of page 2 */
	__le64 max_list_entries; /* page-list entries of all keys and rings */
	__u8 res[192];
};
ORNIC_ASSERT_SIZE(struct ornic_identify_device, 512);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, fw_version, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, node_guid, 0x60);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, page_sizes, 0x78);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, max_qp, 0x90);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, max_fast_reg_pages, 0xd4);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, log_max_sq, 0xd8);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, max_send_sge, 0xe0);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, max_rd_atomic_init, 0xf0);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, atomic_scope, 0xf8);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, clock_mask, 0x108);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, stat_count, 0x130);
ORNIC_ASSERT_OFFSET(struct ornic_identify_device, max_list_entries, 0x138);

/* Identify page 1: a port. Also the output of PORT_QUERY. */
struct ornic_identify_port {
	__u8 link_layer;	/* 1 InfiniBand, 2 Ethernet */
	__u8 state;		/* enum ornic_port_state */
	__u8 phys_state;	/* enum ornic_port_phys_state */
	__u8 max_mtu;		/* IBTA code 1..5 */
	__u8 active_mtu;	/* largest IBTA code that fits into the max_frame in use */
	__u8 res0[3];
	__le32 gid_entries;	/* entries of the GID table */
	__le32 pkey_entries;	/* 1: 0xffff */
	__le64 speed_mbps;	/* bandwidth of the link */
	__le32 max_msg;		/* <= 2^31 */
	__u8 ib_width;		/* link width as in verbs */
	__u8 ib_speed;		/* speed per lane as in verbs */
	__le16 max_frame;	/* largest Ethernet payload (MTU) accepted */
	__u8 permanent_mac[6];	/* MAC address after a function-level reset */
	__u8 current_mac[6];	/* MAC address in use, set by PORT_MODIFY */
	__le32 pkey_violations;	/* packets with a bad P_Key */
	__le32 qkey_violations;	/* datagrams with a bad Q_Key */
	__le32 port_cap_flags;	/* IBTA capability mask, 0 on Ethernet */
	__le32 flags;		/* ORNIC_PORT_F_* */
	__u8 res1[28];
	__u8 res2[168];
};
ORNIC_ASSERT_SIZE(struct ornic_identify_port, 256);
ORNIC_ASSERT_OFFSET(struct ornic_identify_port, speed_mbps, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_identify_port, permanent_mac, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_identify_port, flags, 0x38);

#define ORNIC_PORT_F_PROMISC		(1u << 0) /* promiscuous rules allowed */
#define ORNIC_PORT_F_MAC_CHANGE		(1u << 1) /* PORT_MODIFY may set the MAC */
#define ORNIC_PORT_F_SHARED		(1u << 2) /* other functions use the port */
#define ORNIC_PORT_F_ANTI_SPOOF		(1u << 3) /* source MAC is enforced */
#define ORNIC_PORT_F_ANTI_SPOOF_IP	(1u << 4) /* source IP addresses are enforced */

enum ornic_link_layer {
	ORNIC_LINK_IB		= 1,
	ORNIC_LINK_ETHERNET	= 2,
};

/* Port states: the subset of IBTA's values that a port has. */
enum ornic_port_state {
	ORNIC_PORT_STATE_DOWN	= 1,
	ORNIC_PORT_STATE_ACTIVE	= 4,
};

/* Physical states of a port: the subset of IBTA's values that a port has. */
enum ornic_port_phys_state {
	ORNIC_PORT_PHYS_DISABLED	= 3,
	ORNIC_PORT_PHYS_LINK_UP		= 5,
};

/* Identify page 2: a transport. */
struct ornic_identify_transport {
	__u8 id;		/* enum ornic_transport */
	__u8 version;		/* 0 for the transports of this version */
	__u8 res0[2];
	__le32 qp_types;	/* bit per enum ornic_qp_type */
	__le32 gid_types;	/* bit per enum ornic_gid_type */
	__le32 flags;		/* ORNIC_TP_F_* */
	__le16 udp_port;	/* 4791 */
	__u8 res1[46];
};
ORNIC_ASSERT_SIZE(struct ornic_identify_transport, 64);
ORNIC_ASSERT_OFFSET(struct ornic_identify_transport, udp_port, 0x10);

/* The device places the data of a message in address order, the last byte last. */
#define ORNIC_TP_F_DATA_IN_ORDER	(1u << 0)

enum ornic_transport {
	ORNIC_TP_ROCEV2		= 0,
	ORNIC_TP_ETHERNET	= 1,
	ORNIC_TP_ROCEV1		= 2,	/* reserved */
	ORNIC_TP_IB		= 3,	/* reserved */
	ORNIC_TP_IWARP		= 4,	/* reserved */
	ORNIC_TP_MULTIPATH	= 5,	/* reserved */
	ORNIC_TP_UET		= 6,	/* reserved */
};

#endif
