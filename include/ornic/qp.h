/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: address vectors, create, modify, query (specification: qp.rst;
 * clauses ORN-QP).
 */
#ifndef ORNIC_QP_H
#define ORNIC_QP_H

#include "ring.h"

/* Queue pair types: the verbs' values. */
enum ornic_qp_type {
	ORNIC_QPT_SMI		= 0,	/* reserved */
	ORNIC_QPT_GSI		= 1,	/* feature UD; QPN 1 on the wire */
	ORNIC_QPT_RC		= 2,	/* feature RC */
	ORNIC_QPT_UC		= 3,	/* feature UC */
	ORNIC_QPT_UD		= 4,	/* feature UD */
	ORNIC_QPT_RAW		= 8,	/* Ethernet frames */
	ORNIC_QPT_XRC_INI	= 9,	/* feature XRC; no RQ */
	ORNIC_QPT_XRC_TGT	= 10,	/* feature XRC; no queues, no domain */
	ORNIC_QPT_TRANSPORT	= 0x40,	/* .. transport-private */
};

enum ornic_qp_state {
	ORNIC_QPS_RESET	= 0,
	ORNIC_QPS_INIT	= 1,
	ORNIC_QPS_RTR	= 2,
	ORNIC_QPS_RTS	= 3,
	ORNIC_QPS_SQD	= 4,
	ORNIC_QPS_SQE	= 5,
	ORNIC_QPS_ERR	= 6,
};

/* Path MTU codes: the verbs' values; bytes = 128 << code. */
enum ornic_mtu {
	ORNIC_MTU_256	= 1,
	ORNIC_MTU_512	= 2,
	ORNIC_MTU_1024	= 3,
	ORNIC_MTU_2048	= 4,
	ORNIC_MTU_4096	= 5,
};

/* Static rates: IBTA's codes, in Gbit/s of the link. Any other code means ORNIC_RATE_PORT. */
enum ornic_rate {
	ORNIC_RATE_PORT		= 0,
	ORNIC_RATE_2_5_GBPS	= 2,
	ORNIC_RATE_10_GBPS	= 3,
	ORNIC_RATE_30_GBPS	= 4,
	ORNIC_RATE_5_GBPS	= 5,
	ORNIC_RATE_20_GBPS	= 6,
	ORNIC_RATE_40_GBPS	= 7,
	ORNIC_RATE_60_GBPS	= 8,
	ORNIC_RATE_80_GBPS	= 9,
	ORNIC_RATE_120_GBPS	= 10,
	ORNIC_RATE_14_GBPS	= 11,	/* 14.0625 */
	ORNIC_RATE_56_GBPS	= 12,	/* 56.25 */
	ORNIC_RATE_112_GBPS	= 13,	/* 112.5 */
	ORNIC_RATE_168_GBPS	= 14,	/* 168.75 */
	ORNIC_RATE_25_GBPS	= 15,	/* 25.78125 */
	ORNIC_RATE_100_GBPS	= 16,	/* 103.125 */
	ORNIC_RATE_200_GBPS	= 17,	/* 206.25 */
	ORNIC_RATE_300_GBPS	= 18,	/* 309.375 */
	ORNIC_RATE_28_GBPS	= 19,	/* 28.125 */
	ORNIC_RATE_50_GBPS	= 20,	/* 53.125 */
	ORNIC_RATE_400_GBPS	= 21,	/* 425 */
	ORNIC_RATE_600_GBPS	= 22,	/* 637.5 */
	ORNIC_RATE_800_GBPS	= 23,	/* 850 */
};

/* Address vector: one layout for UD work requests and for connected queue pairs. */
struct ornic_path {
	__u8 dgid[16];		/* destination IP address */
	__u8 dmac[6];		/* MAC of the next hop */
	__le16 mbz;		/* VLAN and source MAC come from the GID entry */
	__le32 flow_label;	/* [19:0] */
	__u8 traffic_class;	/* IPv4: type of service */
	__u8 hop_limit;		/* IPv4: time to live */
	__u8 sl;		/* [3:0]; Ethernet PCP = sl & 7 */
	__u8 static_rate;	/* enum ornic_rate */
	__le16 sgid_index;	/* GID entry to send from */
	__le16 udp_sport;	/* 0 = the device chooses it (ORN-QP-24) */
	__le32 dest_qpn;	/* UD; mbz in modify */
	__le32 qkey;		/* UD; bit 31: use the Q_Key of the QP; mbz in modify */
	__u8 port;		/* UD: 0 or the port of the QP */
	__u8 flags;		/* mbz */
	__le16 dlid;		/* mbz */
};
ORNIC_ASSERT_SIZE(struct ornic_path, 48);
ORNIC_ASSERT_OFFSET(struct ornic_path, flow_label, 0x18);
ORNIC_ASSERT_OFFSET(struct ornic_path, sgid_index, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_path, dest_qpn, 0x24);

/* In a UD path: use the Q_Key of the sending queue pair (ORN-WQE-18). */
#define ORNIC_QKEY_OWN		0x80000000u

/* Lowest UDP source port that a device derives; the range ends at 0xffff. */
#define ORNIC_UDP_SPORT_MIN	0xc000

/* QP_CREATE input. The number in the completion is the handle. */
struct ornic_qp_create_cmd {
	__u8 type;		/* enum ornic_qp_type */
	__u8 transport;		/* id of an Identify page 2 entry */
	__u8 port;		/* GSI, RAW; 0 otherwise */
	__u8 mbz0;
	__le32 pd;		/* protection domain of all keys used; XRC_TGT: mbz */
	__le32 send_cq;		/* completions of the SQ */
	__le32 recv_cq;		/* completions of the RQ */
	__le32 srq;		/* SRQ that provides the receives, ORNIC_NONE without */
	__le32 xrcd;		/* XRC_TGT: XRC domain; mbz otherwise */
	__le32 flags;		/* ORNIC_QP_F_* */
	__le32 dbpage;		/* page that may ring this queue pair */
	__u8 sq_log;		/* log2 entries, ORNIC_NO_RING: no such queue */
	__u8 sq_stride;		/* log2 bytes */
	__u8 rq_log;		/* log2 entries, ORNIC_NO_RING: no such queue */
	__u8 rq_stride;		/* log2 bytes */
	__le16 max_send_sge;	/* most SGEs of a send */
	__le16 max_recv_sge;	/* most SGEs of a receive */
	__le16 max_inline;	/* most inline bytes of a send */
	__le16 max_lso_header;	/* feature LSO */
	__le32 counter_set;	/* 0 = none */
	__le32 want;		/* mbz */
	__le32 owner;		/* host's id of the user context, echoed in events */
	__le64 sq_record;	/* DMA address of the doorbell record */
	__le64 rq_record;	/* DMA address of the doorbell record */
	struct ornic_pages sq_pages;	/* ring of the SQ */
	struct ornic_pages rq_pages;	/* ring of the RQ */
	__le32 cc_profile;	/* 0 = default */
	__u8 mbz1[20];
};
ORNIC_ASSERT_SIZE(struct ornic_qp_create_cmd, 128);
ORNIC_ASSERT_OFFSET(struct ornic_qp_create_cmd, sq_log, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_qp_create_cmd, sq_record, 0x38);
ORNIC_ASSERT_OFFSET(struct ornic_qp_create_cmd, sq_pages, 0x48);
ORNIC_ASSERT_OFFSET(struct ornic_qp_create_cmd, cc_profile, 0x68);

#define ORNIC_NO_RING			0xff

#define ORNIC_QP_F_SIG_ALL		(1u << 0) /* every send produces a completion */
#define ORNIC_QP_F_PRIVILEGED		(1u << 1) /* kernel queue pair (ORN-SEC-3) */
#define ORNIC_QP_F_BLOCK_MC_LOOP	(1u << 2) /* feature MCAST */
#define ORNIC_QP_F_SCATTER_FCS		(1u << 3) /* feature SCATTER_FCS */
#define ORNIC_QP_F_VLAN_STRIP		(1u << 4) /* feature VLAN */
/* bits 5 and 6 are reserved */
#define ORNIC_QP_F_DRIVER		(1u << 7) /* RAW: for the driver's network interface */
#define ORNIC_QP_F_PAD_WRITES		(1u << 8) /* reserved */

/* Attribute mask of modify and query: the values of verbs. */
#define ORNIC_QPM_STATE			(1u << 0)
#define ORNIC_QPM_CUR_STATE		(1u << 1)
#define ORNIC_QPM_SQD_NOTIFY		(1u << 2)
#define ORNIC_QPM_ACCESS		(1u << 3)
#define ORNIC_QPM_PKEY_INDEX		(1u << 4)
#define ORNIC_QPM_PORT			(1u << 5)
#define ORNIC_QPM_QKEY			(1u << 6)
#define ORNIC_QPM_PATH			(1u << 7)
#define ORNIC_QPM_PATH_MTU		(1u << 8)
#define ORNIC_QPM_TIMEOUT		(1u << 9)
#define ORNIC_QPM_RETRY_CNT		(1u << 10)
#define ORNIC_QPM_RNR_RETRY		(1u << 11)
#define ORNIC_QPM_RQ_PSN		(1u << 12)
#define ORNIC_QPM_MAX_RD_ATOMIC		(1u << 13)
#define ORNIC_QPM_ALT_PATH		(1u << 14) /* reserved with APM */
#define ORNIC_QPM_MIN_RNR_TIMER		(1u << 15)
#define ORNIC_QPM_SQ_PSN		(1u << 16)
#define ORNIC_QPM_MAX_DEST_RD_ATOMIC	(1u << 17)
#define ORNIC_QPM_PATH_MIG_STATE	(1u << 18) /* reserved with APM */
#define ORNIC_QPM_CAP			(1u << 19) /* never valid here */
#define ORNIC_QPM_DEST_QPN		(1u << 20)
#define ORNIC_QPM_RATE_LIMIT		(1u << 25) /* feature RATE_LIMIT */
#define ORNIC_QPM_COUNTER_SET		(1u << 28) /* feature COUNTER_SETS */
#define ORNIC_QPM_CC_PROFILE		(1u << 29) /* feature CC_PROFILES */

/* QP_MODIFY input; fields that the mask does not select are ignored. */
struct ornic_qp_modify_cmd {
	__le32 mask;		/* ORNIC_QPM_* */
	__u8 next_state;	/* enum ornic_qp_state */
	__u8 cur_state;		/* checked if selected */
	__u8 path_mtu;		/* enum ornic_mtu */
	__u8 mig_state;		/* reserved */
	__le32 qkey;		/* UD, GSI: Q_Key expected in datagrams */
	__le32 rq_psn;		/* 24 bits */
	__le32 sq_psn;		/* 24 bits */
	__le32 dest_qpn;	/* RC, UC: queue pair number of the peer, 24 bits */
	__le32 access;		/* ORNIC_ACCESS_REMOTE bits */
	__le16 pkey_index;	/* 0 */
	__le16 alt_pkey_index;	/* reserved */
	__u8 port;		/* 1..ports */
	__u8 alt_port;		/* reserved */
	__u8 timeout;		/* 4.096 us * 2^n, 0 = infinite, n <= 31 */
	__u8 alt_timeout;	/* reserved */
	__u8 retry_cnt;		/* 0..7 */
	__u8 rnr_retry;		/* 0..7, 7 = infinite */
	__u8 min_rnr_timer;	/* 0..31 */
	__u8 sqd_notify;	/* 1: event SQ_DRAINED when drained */
	__u8 max_rd_atomic;	/* most unanswered reads and atomics, as requester */
	__u8 max_dest_rd_atomic;	/* the same, as responder */
	__le16 mbz0;
	__le32 rate_kbps;	/* rate limit in kbit/s, 0 = no limit */
	__le32 rate_burst;	/* burst size in bytes, 0 = default */
	__le16 rate_packet;	/* bytes of the typical packet, 0 = largest frame */
	__le16 mbz1;
	__le32 counter_set;	/* feature COUNTER_SETS; 0 = none */
	__le32 cc_profile;	/* feature CC_PROFILES */
	struct ornic_path path;	/* RC, UC: to the peer */
	__u8 mbz2[16];
	struct ornic_path alt_path;	/* reserved */
	__u8 mbz3[80];		/* for attributes of later transports */
};
ORNIC_ASSERT_SIZE(struct ornic_qp_modify_cmd, 256);
ORNIC_ASSERT_OFFSET(struct ornic_qp_modify_cmd, access, 0x18);
ORNIC_ASSERT_OFFSET(struct ornic_qp_modify_cmd, retry_cnt, 0x24);
ORNIC_ASSERT_OFFSET(struct ornic_qp_modify_cmd, rate_kbps, 0x2c);
ORNIC_ASSERT_OFFSET(struct ornic_qp_modify_cmd, path, 0x40);
ORNIC_ASSERT_OFFSET(struct ornic_qp_modify_cmd, alt_path, 0x80);

/* QP_QUERY output. */
struct ornic_qp_query_rsp {
	struct ornic_qp_modify_cmd attr; /* mask: valid fields; next_state: current state */
	__le32 sq_index;	/* index of the next work request to execute */
	__le32 sq_done;		/* index of the oldest work request that is not completed */
	__le32 rq_index;	/* index of the next receive to consume */
	__le32 wire_qpn;	/* queue pair number in packets; 1 for GSI */
	__le32 syndrome;	/* reason of ERR or SQE, 0 otherwise */
	__u8 sq_draining;	/* 1: in SQD with unfinished requests */
	__u8 res0[3];
	__le32 next_psn;	/* RC, UC: PSN of the next new request */
	__le32 expected_psn;	/* RC, UC: PSN that the responder expects next */
	__le32 msn;		/* RC: messages executed, 24 bits */
	__u8 res1[92];
};
ORNIC_ASSERT_SIZE(struct ornic_qp_query_rsp, 384);
ORNIC_ASSERT_OFFSET(struct ornic_qp_query_rsp, sq_index, 0x100);
ORNIC_ASSERT_OFFSET(struct ornic_qp_query_rsp, next_psn, 0x118);

#endif
