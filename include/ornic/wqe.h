/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests: control segment, remote, atomic, Ethernet and data segments
 * (specification: wqe.rst; clauses ORN-WQE, ORN-RQ).
 *
 * A send work request is a control segment followed by the segments of its
 * opcode, each a multiple of 16 bytes, in the order:
 *
 *   RDMA_WRITE(_IMM)         control, remote, data
 *   SEND(_IMM)  RC, UC       control, data
 *               XRC_INI      control, remote, data
 *               UD, GSI      control, path, data
 *               RAW          control, eth, [inline header], data
 *   RDMA_READ                control, remote, SGEs
 *   COMP_SWAP, FETCH_ADD     control, remote, atomic, one SGE of 8 bytes
 *   FLUSH                    control, remote, flush
 *   ATOMIC_WRITE             control, remote, data of 8 bytes
 *   SEND_INV                 control, data
 *   LOCAL_INV, NOP           control
 *   FAST_REG                 control, fast_reg
 *   BIND_MW                  control, bind
 *
 * "data" is count SGEs or, with INLINE, count bytes in this place.
 */
#ifndef ORNIC_WQE_H
#define ORNIC_WQE_H

#include "types.h"

/* Send opcodes: the values of verbs. 0xe0..0xef are for the vendor. */
enum ornic_wqe_opcode {
	ORNIC_WR_RDMA_WRITE	= 0,
	ORNIC_WR_RDMA_WRITE_IMM	= 1,
	ORNIC_WR_SEND		= 2,
	ORNIC_WR_SEND_IMM	= 3,
	ORNIC_WR_RDMA_READ	= 4,
	ORNIC_WR_COMP_SWAP	= 5,
	ORNIC_WR_FETCH_ADD	= 6,
	ORNIC_WR_LOCAL_INV	= 7,	/* features FAST_REG, MW2* */
	ORNIC_WR_BIND_MW	= 8,	/* features MW* */
	ORNIC_WR_SEND_INV	= 9,	/* features FAST_REG, MW2* */
	ORNIC_WR_TSO		= 10,	/* feature LSO */
	ORNIC_WR_READ_INV	= 11,	/* reserved */
	ORNIC_WR_MASKED_CS	= 12,	/* reserved */
	ORNIC_WR_MASKED_FA	= 13,	/* reserved */
	ORNIC_WR_FLUSH		= 14,	/* features FLUSH_* */
	ORNIC_WR_ATOMIC_WRITE	= 15,	/* feature ATOMIC_WRITE */
	ORNIC_WR_FAST_REG	= 0x20,	/* feature FAST_REG */
	ORNIC_WR_NOP		= 0x2f,
};

/* Control flags 0..4: IBV_SEND_* values. */
#define ORNIC_WQE_FENCE		(1u << 0) /* wait for earlier reads, atomics, FLUSH, ATOMIC_WRITE */
#define ORNIC_WQE_SIGNALED	(1u << 1) /* write a completion */
#define ORNIC_WQE_SOLICITED	(1u << 2) /* request an event at the peer */
#define ORNIC_WQE_INLINE	(1u << 3) /* the slot contains the data */
#define ORNIC_WQE_IP_CSUM	(1u << 4) /* RAW: fill IPv4 and L4 checksums */
#define ORNIC_WQE_FLAGS		0x1fu

struct ornic_wqe_ctrl {
	__u8 opcode;		/* enum ornic_wqe_opcode */
	__u8 flags;		/* ORNIC_WQE_* */
	__le16 count;		/* SGEs, or inline bytes if INLINE */
	union {
		__be32 imm;	/* *_IMM: immediate data */
		__le32 inv_key;	/* LOCAL_INV, SEND_INV: key to invalidate */
	};
	__le32 qpn;		/* handle of the queue pair */
	__le32 index;		/* free-running ring index of the work request */
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_ctrl, 16);
ORNIC_ASSERT_OFFSET(struct ornic_wqe_ctrl, qpn, 8);

struct ornic_wqe_remote {
	__le64 addr;		/* virtual address at the responder */
	__le32 rkey;		/* rkey of the responder's memory */
	__le32 xrc_srqn;	/* XRC_INI: SRQ of the responder; mbz otherwise */
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_remote, 16);

struct ornic_wqe_atomic {
	__le64 swap_add;	/* COMP_SWAP: new value; FETCH_ADD: addend */
	__le64 compare;		/* COMP_SWAP; mbz otherwise */
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_atomic, 16);

struct ornic_wqe_flush {
	__le64 length;		/* RANGE: number of bytes from the remote address on */
	__u8 type;		/* ORNIC_FLUSH_*, at least one */
	__u8 level;		/* enum ornic_flush_level */
	__u8 mbz[6];
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_flush, 16);

/* Condition for which a flush waits: the values of verbs and of the wire. */
#define ORNIC_FLUSH_GLOBAL	(1u << 0) /* visible to everything in the responder's system */
#define ORNIC_FLUSH_PERSISTENT	(1u << 1) /* survives loss of power */

enum ornic_flush_level {
	ORNIC_FLUSH_RANGE	= 0,	/* the bytes given by address and length */
	ORNIC_FLUSH_REGION	= 1,	/* all bytes of the key; address and length are ignored */
};

/* Data segment: the layout of struct ibv_sge on a little-endian host. */
struct ornic_sge {
	__le64 addr;		/* virtual address in the address space of the key */
	__le32 length;		/* bytes; 0 = none, addr and lkey are not checked */
	__le32 lkey;		/* key of a local region */
};
ORNIC_ASSERT_SIZE(struct ornic_sge, 16);

/* FAST_REG: PRIVILEGED queue pairs only, since the list has DMA addresses. */
struct ornic_wqe_fast_reg {
	__le64 iova;		/* virtual address of the first byte, as work requests give it */
	__le64 length;		/* bytes from iova on */
	__le64 list;		/* DMA address of the array of page addresses */
	__le32 npages;		/* entries of the array */
	__le32 key;		/* index of a FAST_REG key, and its new tag */
	__le32 access;		/* ORNIC_ACCESS_* */
	__le32 offset;		/* first byte within the first page */
	__u8 page_shift;	/* log2 of the page size, a bit of page_sizes */
	__u8 mbz[7];
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_fast_reg, 48);
ORNIC_ASSERT_OFFSET(struct ornic_wqe_fast_reg, npages, 0x18);
ORNIC_ASSERT_OFFSET(struct ornic_wqe_fast_reg, page_shift, 0x28);

struct ornic_wqe_bind {
	__le64 addr;		/* first byte, in the region's address space */
	__le64 length;		/* 0 = unbind, type 1 only */
	__le32 lkey;		/* key of the region */
	__le32 key;		/* index of a window, and its new tag */
	__le32 access;		/* REMOTE_WRITE, _READ, _ATOMIC; type 2B: ZERO_BASED */
	__le32 mbz;
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_bind, 32);
ORNIC_ASSERT_OFFSET(struct ornic_wqe_bind, lkey, 0x10);

struct ornic_wqe_eth {
	__le16 mss;		/* TSO; mbz otherwise */
	__le16 hdr_len;		/* TSO; mbz otherwise */
	__le16 inline_hdr;	/* frame bytes that follow inline, padded to 16 */
	__le16 vlan_tci;	/* VLAN_INSERT */
	__le16 csum_start;	/* CSUM_PARTIAL: first byte to sum */
	__le16 csum_offset;	/* CSUM_PARTIAL: offset of the checksum field from csum_start */
	__u8 eflags;		/* ORNIC_ETH_* */
	__u8 mbz[3];
};
ORNIC_ASSERT_SIZE(struct ornic_wqe_eth, 16);

#define ORNIC_ETH_VLAN_INSERT	(1u << 0) /* feature VLAN */
#define ORNIC_ETH_CSUM_PARTIAL	(1u << 1) /* feature TX_CSUM */

/* Receive work request header; count SGEs follow. */
struct ornic_rwqe {
	__le16 count;		/* SGEs */
	__le16 mbz0;
	__le32 id;		/* RQ: free-running index, checked; SRQ: any value, echoed */
	__le64 mbz1;
};
ORNIC_ASSERT_SIZE(struct ornic_rwqe, 16);

/* Bytes of the longest message, and of the header area before a received datagram (UD, GSI). */
#define ORNIC_MAX_MSG		0x80000000u
#define ORNIC_GRH_BYTES		40

#endif
