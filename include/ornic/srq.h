/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues: create, modify, resize, query (specification: srq.rst; clauses
 * ORN-SRQ).
 */
#ifndef ORNIC_SRQ_H
#define ORNIC_SRQ_H

#include "eq.h"
#include "ring.h"

/* Types: the values of verbs. */
enum ornic_srq_type {
	ORNIC_SRQT_BASIC	= 0,
	ORNIC_SRQT_XRC		= 1,	/* feature XRC */
	ORNIC_SRQT_TM		= 2,	/* reserved */
};

/* SRQ_CREATE input. */
struct ornic_srq_create_cmd {
	__u8 type;		/* enum ornic_srq_type */
	__u8 log_entries;	/* 0..log_max_srq */
	__u8 stride;		/* log2 bytes of an entry, as in an RQ */
	__u8 flags;		/* ORNIC_SRQ_F_* */
	__le32 pd;		/* protection domain of the keys in its entries */
	__le32 xrcd;		/* XRC: domain; mbz otherwise */
	__le32 cq;		/* XRC: CQ of its completions; mbz otherwise */
	__le32 dbpage;		/* page that may ring this SRQ */
	__le32 limit;		/* event SRQ_LIMIT below this number of entries, 0 = never */
	__le16 max_sge;		/* most SGEs of an entry */
	__le16 mbz0;
	__le32 want;		/* mbz */
	__le32 owner;		/* echoed in events */
	__le32 mbz1;
	__le64 record;		/* DMA address of the doorbell record */
	struct ornic_pages pages;	/* the ring */
};
ORNIC_ASSERT_SIZE(struct ornic_srq_create_cmd, 64);
ORNIC_ASSERT_OFFSET(struct ornic_srq_create_cmd, dbpage, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_srq_create_cmd, owner, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_srq_create_cmd, record, 0x28);

#define ORNIC_SRQ_F_PRIVILEGED		(1u << 0) /* entries may name PHYS_ALL keys (ORN-SEC-3) */

/* SRQ_MODIFY input. */
struct ornic_srq_modify_cmd {
	__le32 mask;		/* ORNIC_SRQM_* */
	__le32 limit;		/* one event SRQ_LIMIT below this number of entries; 0 = disarm */
	__le64 mbz;
};
ORNIC_ASSERT_SIZE(struct ornic_srq_modify_cmd, 16);

#define ORNIC_SRQM_LIMIT		(1u << 0)

/* SRQ_RESIZE input (ORN-SRQ-17 to 26): new ring and record. */
struct ornic_srq_resize_cmd {
	__u8 log_entries;	/* 0..log_max_srq */
	__u8 flags;		/* ORNIC_SRQ_RESIZE_* */
	__le16 mbz;
	__le32 limit;		/* with LIMIT, as in SRQ_MODIFY; mbz otherwise */
	__le64 record;		/* DMA address of the new doorbell record */
	struct ornic_pages pages;	/* the new ring */
};
ORNIC_ASSERT_SIZE(struct ornic_srq_resize_cmd, 32);
ORNIC_ASSERT_OFFSET(struct ornic_srq_resize_cmd, record, 0x08);
ORNIC_ASSERT_OFFSET(struct ornic_srq_resize_cmd, pages, 0x10);

#define ORNIC_SRQ_RESIZE_LIMIT		(1u << 0) /* set limit as well */

struct ornic_srq_query_rsp {
	struct ornic_srq_create_cmd attr;	/* as created and resized; limit: as armed, or 0 */
	struct ornic_ring_state state;	/* producer: host_index; consumer: next entry to take */
};
ORNIC_ASSERT_SIZE(struct ornic_srq_query_rsp, 80);

#endif
