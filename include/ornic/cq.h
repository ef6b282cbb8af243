/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues and their entries (specification: cq.rst; clauses ORN-CQ).
 */
#ifndef ORNIC_CQ_H
#define ORNIC_CQ_H

#include "eq.h"
#include "ring.h"

/* CQ_CREATE input. */
struct ornic_cq_create_cmd {
	__u8 log_entries;	/* 0..log_max_cq */
	__u8 flags;		/* ORNIC_CQ_F_* */
	__le16 mbz0;
	__le32 eq;		/* EQ of its completion events */
	__le32 dbpage;		/* page that may ring this CQ */
	__le32 want;		/* mbz */
	__le64 record;		/* DMA address of the doorbell record */
	struct ornic_pages pages;	/* the ring */
	__le16 mod_count;	/* entries after which a delayed event is written */
	__le16 mod_period_us;	/* longest delay of an event in us, 0 = none */
	__le32 owner;		/* echoed in events */
	__u8 mbz1[16];
};
ORNIC_ASSERT_SIZE(struct ornic_cq_create_cmd, 64);
ORNIC_ASSERT_OFFSET(struct ornic_cq_create_cmd, pages, 0x18);
ORNIC_ASSERT_OFFSET(struct ornic_cq_create_cmd, owner, 0x2c);

#define ORNIC_CQ_F_IGNORE_OVERRUN	(1u << 0) /* feature CQ_IGNORE_OVERRUN */
#define ORNIC_CQ_F_TIMESTAMP		(1u << 1) /* feature TIMESTAMP */

/* CQ_RESIZE input (ORN-CQ-20 to 28): new ring and record. */
struct ornic_cq_resize_cmd {
	__u8 log_entries;	/* 0..log_max_cq */
	__u8 mbz[7];
	__le64 record;		/* DMA address of the new doorbell record */
	struct ornic_pages pages;	/* the new ring */
};
ORNIC_ASSERT_SIZE(struct ornic_cq_resize_cmd, 32);
ORNIC_ASSERT_OFFSET(struct ornic_cq_resize_cmd, pages, 0x10);

/* CQ_RESIZE output: indices of the old ring when the device left it. */
struct ornic_cq_resize_rsp {
	__le32 producer;	/* P: entries with a smaller index are in the old ring */
	__le32 consumer;	/* C: old host_index; becomes index 0 of the new ring */
};
ORNIC_ASSERT_SIZE(struct ornic_cq_resize_rsp, 8);

struct ornic_cq_query_rsp {
	struct ornic_cq_create_cmd attr;	/* as created and modified */
	struct ornic_ring_state state;	/* indices and error state */
};
ORNIC_ASSERT_SIZE(struct ornic_cq_query_rsp, 80);

/* The host writes this qpn into entries that it drops. No queue pair has this number. */
#define ORNIC_CQE_DROPPED	0xffffffu

struct ornic_cqe {
	__le64 timestamp;	/* device clock, 0 if not wanted */
	__le32 qpn;		/* [23:0] queue pair handle */
	__le32 wqe_id;		/* SQ, RQ: ring index of the work request; SRQ: id as posted */
	__le32 byte_len;	/* receive, read, atomics; UD: with the 40-byte GRH area */
	union {
		__be32 imm;	/* WITH_IMM */
		__le32 inv_key;	/* WITH_INV */
	};
	__le32 src_qp;		/* UD, GSI; raw: flow tag */
	__le32 srqn;		/* SRQ of the receive, else ORNIC_NONE */
	__u8 smac[6];		/* source MAC if SMAC */
	__le16 vlan_tci;	/* if VLAN */
	__le32 rss_hash;	/* raw, if HASH */
	__le16 slid_csum;	/* IB: SLID; raw: sum over the frame if CSUM_COMPLETE */
	__le16 pkey_index;	/* always 0 in version 1.0 */
	__u8 sl;		/* UD: priority of the VLAN tag or priority tag, else 0 */
	__u8 path_bits;		/* IB link layer, reserved */
	__u8 net_type;		/* enum ornic_net_type, if NET_TYPE */
	__u8 rss_type;		/* ORNIC_RSS_TYPE_*, if HASH */
	__le32 syndrome;	/* 0 if status is 0 */
	__le32 flags;		/* ORNIC_CQE_* */
	__u8 opcode;		/* enum ornic_wc_opcode */
	__u8 status;		/* enum ornic_wc_status */
	__u8 res;
	__u8 phase;		/* bit 0 */
};
ORNIC_ASSERT_SIZE(struct ornic_cqe, 64);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, qpn, 0x08);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, byte_len, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, smac, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, sl, 0x30);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, syndrome, 0x34);
ORNIC_ASSERT_OFFSET(struct ornic_cqe, opcode, 0x3c);

/* Flags 0..6 are the kernel's IB_WC_* values. */
#define ORNIC_CQE_GRH			(1u << 0) /* 40 bytes of header area precede the data */
#define ORNIC_CQE_WITH_IMM		(1u << 1) /* imm is valid */
#define ORNIC_CQE_WITH_INV		(1u << 2) /* inv_key is valid */
#define ORNIC_CQE_IP_CSUM_OK		(1u << 3) /* IPv4 header checksum verified */
#define ORNIC_CQE_SMAC			(1u << 4) /* smac is valid */
#define ORNIC_CQE_VLAN			(1u << 5) /* vlan_tci is valid; VLAN other than 0 */
#define ORNIC_CQE_NET_TYPE		(1u << 6) /* net_type is valid */
#define ORNIC_CQE_SOLICITED		(1u << 8) /* the sender requested an event */
#define ORNIC_CQE_L4_CSUM_OK		(1u << 9) /* TCP or UDP checksum verified */
#define ORNIC_CQE_CSUM_COMPLETE		(1u << 10) /* slid_csum is the sum over the frame */
#define ORNIC_CQE_HASH			(1u << 11) /* rss_hash and rss_type are valid */
#define ORNIC_CQE_FLOW_TAG		(1u << 12) /* raw: src_qp is the flow tag of the rule */
#define ORNIC_CQE_CSUM_BAD		(1u << 14) /* a checksum is wrong */

enum ornic_net_type {
	ORNIC_NET_IB		= 0,	/* reserved */
	ORNIC_NET_ROCEV1	= 1,	/* reserved */
	ORNIC_NET_IPV4		= 2,	/* RoCEv2 over IPv4 */
	ORNIC_NET_IPV6		= 3,	/* RoCEv2 over IPv6 */
};

/* Completion opcodes: IBV_WC_* values; bit 7: a receive. Also valid on error. */
enum ornic_wc_opcode {
	ORNIC_WC_SEND			= 0,
	ORNIC_WC_RDMA_WRITE		= 1,
	ORNIC_WC_RDMA_READ		= 2,
	ORNIC_WC_COMP_SWAP		= 3,
	ORNIC_WC_FETCH_ADD		= 4,
	ORNIC_WC_BIND_MW		= 5,
	ORNIC_WC_LOCAL_INV		= 6,
	ORNIC_WC_TSO			= 7,
	ORNIC_WC_FLUSH			= 8,
	ORNIC_WC_ATOMIC_WRITE		= 9,
	ORNIC_WC_FAST_REG		= 0x20,
	ORNIC_WC_NOP			= 0x2f,
	ORNIC_WC_SEND_FLUSHED		= 0x7f,	/* flushed; the device need not report the opcode */
	ORNIC_WC_RECV			= 0x80,
	ORNIC_WC_RECV_RDMA_WITH_IMM	= 0x81,
	ORNIC_WC_RECV_FLUSHED		= 0xff,
};

#define ORNIC_WC_RECV_BIT		0x80

/* Completion statuses: IBV_WC_* values. */
enum ornic_wc_status {
	ORNIC_WC_SUCCESS		= 0,
	ORNIC_WC_LOC_LEN_ERR		= 1,	/* invalid total length */
	ORNIC_WC_LOC_QP_OP_ERR		= 2,	/* malformed work request */
	ORNIC_WC_LOC_EEC_OP_ERR		= 3,	/* never used */
	ORNIC_WC_LOC_PROT_ERR		= 4,	/* invalid key of an SGE */
	ORNIC_WC_WR_FLUSH_ERR		= 5,	/* flushed, not executed */
	ORNIC_WC_MW_BIND_ERR		= 6,	/* FAST_REG, BIND_MW or LOCAL_INV rejected */
	ORNIC_WC_BAD_RESP_ERR		= 7,	/* malformed response */
	ORNIC_WC_LOC_ACCESS_ERR		= 8,	/* write with immediate failed */
	ORNIC_WC_REM_INV_REQ_ERR	= 9,	/* NAK invalid request */
	ORNIC_WC_REM_ACCESS_ERR		= 10,	/* NAK remote access */
	ORNIC_WC_REM_OP_ERR		= 11,	/* NAK remote operational error */
	ORNIC_WC_RETRY_EXC_ERR		= 12,	/* the peer did not answer */
	ORNIC_WC_RNR_RETRY_EXC_ERR	= 13,	/* no receive at the peer */
	ORNIC_WC_GENERAL_ERR		= 21,	/* any other error */
};

#endif
