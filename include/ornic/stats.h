/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Statistics: self-describing counters (specification: stats.rst; clauses
 * ORN-STAT).
 */
#ifndef ORNIC_STATS_H
#define ORNIC_STATS_H

#include "types.h"

enum ornic_stat_scope {
	ORNIC_STAT_DEVICE	= 0,	/* the function */
	ORNIC_STAT_PORT		= 1,	/* a port */
	ORNIC_STAT_QP		= 2,	/* a counter set; feature COUNTER_SETS */
	ORNIC_STAT_EQ		= 3,	/* all EQs of the function */
};

/*
 * Standard counters. The id determines name and scope: the name is the rest of the
 * constant's name behind ORNIC_STAT_ID_, in lower case; the scope is device from 0x200 on,
 * else port. STAT_NAMES lists a port counter a second time, with scope QP, if counter sets
 * have it.
 */
enum ornic_stat {
	ORNIC_STAT_ID_TX_BYTES			= 0x001, /* bytes of frames of RAW queue pairs */
	ORNIC_STAT_ID_RX_BYTES			= 0x002, /* received bytes of RAW queue pairs */
	ORNIC_STAT_ID_TX_PACKETS		= 0x003, /* frames of RAW queue pairs */
	ORNIC_STAT_ID_RX_PACKETS		= 0x004, /* received frames of RAW queue pairs */
	ORNIC_STAT_ID_TX_UNICAST		= 0x005, /* of tx_packets, to unicast addresses */
	ORNIC_STAT_ID_RX_UNICAST		= 0x006, /* of rx_packets, to unicast addresses */
	ORNIC_STAT_ID_TX_MULTICAST		= 0x007, /* of tx_packets, to multicast addresses */
	ORNIC_STAT_ID_RX_MULTICAST		= 0x008, /* of rx_packets, to multicast addresses */
	ORNIC_STAT_ID_TX_DROP			= 0x009, /* link down, over max_frame, anti-spoof */
	ORNIC_STAT_ID_RX_DROP_NO_WQE		= 0x00a, /* frames, datagrams without a receive */
	ORNIC_STAT_ID_RX_DROP_RULE		= 0x00b, /* frames that match no rule */
	ORNIC_STAT_ID_RX_DROP_SIZE		= 0x00c, /* longer than the posted receive */
	ORNIC_STAT_ID_RX_DROP_VLAN		= 0x00d, /* RoCE packets to a GID of another VLAN */
	ORNIC_STAT_ID_RX_CRC_ERRORS		= 0x00e, /* frames with a bad FCS */
	ORNIC_STAT_ID_TX_DROP_SPOOF		= 0x00f, /* of tx_drop, anti-spoof */
	ORNIC_STAT_ID_RDMA_TX_BYTES		= 0x101, /* payload bytes of RoCE packets */
	ORNIC_STAT_ID_RDMA_RX_BYTES		= 0x102, /* payload bytes of received packets */
	ORNIC_STAT_ID_RDMA_TX_PACKETS		= 0x103, /* RoCE packets */
	ORNIC_STAT_ID_RDMA_RX_PACKETS		= 0x104, /* received RoCE packets */
	ORNIC_STAT_ID_RX_SEND			= 0x105, /* sends executed as responder */
	ORNIC_STAT_ID_RX_WRITE			= 0x106, /* writes executed as responder */
	ORNIC_STAT_ID_RX_READ			= 0x107, /* reads executed as responder */
	ORNIC_STAT_ID_RX_ATOMIC			= 0x108, /* atomics executed as responder */
	ORNIC_STAT_ID_TX_SEND			= 0x109, /* sends begun as requester */
	ORNIC_STAT_ID_TX_WRITE			= 0x10a, /* writes begun as requester */
	ORNIC_STAT_ID_TX_READ			= 0x10b, /* reads begun as requester */
	ORNIC_STAT_ID_TX_ATOMIC			= 0x10c, /* atomics begun as requester */
	ORNIC_STAT_ID_RDMA_COPIED_BYTES		= 0x10d, /* payload bytes copied by software */
	ORNIC_STAT_ID_RX_FLUSH			= 0x10e, /* flushes executed as responder */
	ORNIC_STAT_ID_TX_FLUSH			= 0x10f, /* flushes begun as requester */
	ORNIC_STAT_ID_RETRANSMITS		= 0x110, /* packets retransmitted */
	ORNIC_STAT_ID_ACK_TIMEOUTS		= 0x111, /* expiries of the retransmission timer */
	ORNIC_STAT_ID_RNR_NAKS_SENT		= 0x112, /* RNR NAKs sent */
	ORNIC_STAT_ID_RNR_NAKS_RECEIVED		= 0x113, /* RNR NAKs received */
	ORNIC_STAT_ID_SEQ_NAKS_SENT		= 0x114, /* NAKs for a PSN gap sent */
	ORNIC_STAT_ID_SEQ_NAKS_RECEIVED		= 0x115, /* NAKs for a PSN gap received */
	ORNIC_STAT_ID_OUT_OF_ORDER		= 0x116, /* requests beyond the expected PSN */
	ORNIC_STAT_ID_DUPLICATES		= 0x117, /* request packets executed before */
	ORNIC_STAT_ID_IMPLIED_NAK		= 0x118, /* responses that skip a read or atomic */
	ORNIC_STAT_ID_RDMA_TX_MULTICAST		= 0x119, /* of rdma_tx_packets, multicast */
	ORNIC_STAT_ID_RDMA_RX_MULTICAST		= 0x11a, /* of rdma_rx_packets, multicast */
	ORNIC_STAT_ID_FLUSH_PERSISTENT		= 0x11b, /* of rx_flush, to persistence */
	ORNIC_STAT_ID_ICRC_ERRORS		= 0x120, /* packets with a bad ICRC */
	ORNIC_STAT_ID_BAD_GID			= 0x121, /* packets dropped: addresses */
	ORNIC_STAT_ID_BAD_QPN			= 0x122, /* packets dropped: queue pair number */
	ORNIC_STAT_ID_BAD_OPCODE		= 0x123, /* packets dropped: opcode */
	ORNIC_STAT_ID_BAD_PKEY			= 0x124, /* packets dropped: P_Key */
	ORNIC_STAT_ID_BAD_QKEY			= 0x125, /* packets dropped: Q_Key */
	ORNIC_STAT_ID_REMOTE_ACCESS_ERRORS	= 0x126, /* NAKs remote access, sent and received */
	ORNIC_STAT_ID_REMOTE_INVALID_REQUESTS	= 0x127, /* NAKs invalid request, both ways */
	ORNIC_STAT_ID_LOCAL_PROTECTION_ERRORS	= 0x128, /* work requests with a bad key */
	ORNIC_STAT_ID_WQE_ERRORS		= 0x129, /* malformed work requests */
	ORNIC_STAT_ID_FLUSHES			= 0x12a, /* work requests flushed */
	ORNIC_STAT_ID_ECN_MARKED		= 0x130, /* packets received with an ECN mark */
	ORNIC_STAT_ID_CNP_SENT			= 0x131, /* congestion notifications sent */
	ORNIC_STAT_ID_CNP_RECEIVED		= 0x132, /* congestion notifications received */
	ORNIC_STAT_ID_CNP_IGNORED		= 0x133, /* notifications without effect */
	ORNIC_STAT_ID_CQ_OVERFLOWS		= 0x201, /* CQs in error, as they were full */
	ORNIC_STAT_ID_EQ_HELD			= 0x202, /* held back: EQ full or last unread */
	ORNIC_STAT_ID_DB_REJECTED		= 0x203, /* doorbells rejected */
	ORNIC_STAT_ID_DOORBELLS			= 0x204, /* doorbells accepted */
	ORNIC_STAT_ID_ADMIN_COMMANDS		= 0x205, /* commands executed */
	ORNIC_STAT_ID_ADMIN_FAILURES		= 0x206, /* of admin_commands, failed ones */
	ORNIC_STAT_ID_KEY_PAGES			= 0x207, /* page-list entries of regions */
};

/* Ids from this one on are specific to the device. */
#define ORNIC_STAT_ID_OWN	0x1000

/* STAT_NAMES input: start with the offset-th entry. */
struct ornic_stat_names_cmd {
	__le32 offset;		/* first entry to list */
};
ORNIC_ASSERT_SIZE(struct ornic_stat_names_cmd, 4);

/* One entry of STAT_NAMES output. The device writes as many entries as fit. */
struct ornic_stat_name {
	__le32 id;		/* enum ornic_stat, or from ORNIC_STAT_ID_OWN on */
	__u8 scope;		/* enum ornic_stat_scope */
	__u8 kind;		/* 0 counter, 1 gauge */
	__le16 res;
	char name[40];		/* zero padded */
};
ORNIC_ASSERT_SIZE(struct ornic_stat_name, 48);

/*
 * STAT_READ input. The output is count __le64 values: those of the entries of this
 * scope, in the order of STAT_NAMES, after the first entries that it skips. The device
 * writes fewer values if there are fewer (see out_size) or if out_len is smaller.
 */
struct ornic_stat_read_cmd {
	__u8 scope;		/* enum ornic_stat_scope */
	__u8 clear;		/* mbz */
	__le16 mbz;
	__le32 number;		/* PORT: port; QP: counter set, 0 = all that ever existed */
	__le32 first;		/* entries of the scope to skip */
	__le32 count;		/* values to read */
};
ORNIC_ASSERT_SIZE(struct ornic_stat_read_cmd, 16);

#endif
