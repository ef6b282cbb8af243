/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ring geometry, page descriptors, doorbell records, the notify and arm words
 * and the doorbell page (specification: ring.rst; clauses ORN-RNG, ORN-DB).
 *
 * Indices are free-running 32-bit counters; slot = index & (entries - 1).
 */
#ifndef ORNIC_RING_H
#define ORNIC_RING_H

#include "types.h"

/* Phase of device-produced entries: bit 0 of the last byte (ORN-RNG-2). */
#define ORNIC_PHASE			0x01

/* Doorbell record: one cache line per ring, in the memory of the ring's owner. */
struct ornic_rec {
	__le32 host_index;	/* host: producer (SQ RQ SRQ ASQ) or consumer index (CQ EQ ACQ) */
	__le32 arm;		/* host: arm word (CQ EQ ACQ), mbz otherwise */
	__u8 mbz[24];
	__le32 notify;		/* device: [30:0] index, [31] ORNIC_NOTIFY_ALWAYS */
	__le32 dev_index;	/* device: may store its consumer index, debugging only */
	__u8 res[24];
};
ORNIC_ASSERT_SIZE(struct ornic_rec, 64);
ORNIC_ASSERT_OFFSET(struct ornic_rec, notify, 0x20);

/* Notify word (ORN-RNG-4 to 7). */
#define ORNIC_NOTIFY_ALWAYS		0x80000000u
#define ORNIC_NOTIFY_INDEX		0x7fffffffu

/* Arm word of completion-side rings (ORN-RNG-9 to 12, 27). */
#define ORNIC_ARM_INDEX_MASK		0x00ffffffu
#define ORNIC_ARM_SN_SHIFT		24
#define ORNIC_ARM_SN_MASK		0xfu
#define ORNIC_ARM_TYPE_SHIFT		28
#define ORNIC_ARM_TYPE_MASK		0x3u
#define ORNIC_ARM_MBZ			0xc0000000u

enum ornic_arm_type {
	ORNIC_ARM_NONE		= 0,	/* disarmed */
	ORNIC_ARM_SOLICITED	= 1,	/* solicited entries and errors */
	ORNIC_ARM_ANY		= 2,	/* any entry */
};

/* Doorbell page: one aligned 8-byte store at offset 0 (ORN-DB). */
#define ORNIC_DB_REG			0x000
#define ORNIC_DB_PUSH			0x800	/* reserved for pushed work requests */
#define ORNIC_DB_MIN_STRIDE_LOG		12

#define ORNIC_DB_NUMBER_MASK		0x00ffffffull	/* [23:0] */
#define ORNIC_DB_KIND_SHIFT		24		/* [27:24] enum ornic_db_kind */
#define ORNIC_DB_KIND_MASK		0xfull
#define ORNIC_DB_MBZ			0xf0000000ull	/* [31:28] */
#define ORNIC_DB_VALUE_SHIFT		32		/* [63:32] index or arm word */

enum ornic_db_kind {
	ORNIC_DB_SQ	= 0,	/* number: handle */
	ORNIC_DB_RQ	= 1,	/* number: handle */
	ORNIC_DB_SRQ	= 2,	/* number: SRQ */
	ORNIC_DB_CQ_ARM	= 3,	/* number: CQ; value: arm word */
	ORNIC_DB_EQ_ARM	= 4, /* page 0 only */
	ORNIC_DB_ADMIN	= 5, /* page 0 only; number: enum ornic_db_admin */
};

enum ornic_db_admin {
	ORNIC_DB_ASQ	= 0,	/* value: index */
	ORNIC_DB_ACQ	= 1,	/* value: arm word */
};

/*
 * Page descriptor: address of a ring or a memory region (ORN-MEM-1, 2).
 * Level 0: addr is the address of the contiguous memory. Level 1: addr is the
 * address of an array of 8-byte page addresses. Level 2: addr is the address of an
 * array of addresses of 4096-byte leaf arrays with 512 page addresses each.
 */
struct ornic_pages {
	__le64 addr;		/* level 0: 4096-byte multiple; arrays: 64-byte aligned */
	__le32 offset;		/* in the first page; rings: multiple of 64 and of the stride */
	__u8 page_shift;	/* 12..63, a bit of Identify page_sizes; level 0: mbz */
	__u8 level;		/* 0, 1, 2 */
	__le16 mbz;
};
ORNIC_ASSERT_SIZE(struct ornic_pages, 16);

#define ORNIC_PAGES_LEAF_ENTRIES	512
#define ORNIC_PAGES_LEAF_BYTES		4096
#define ORNIC_PAGES_MIN_SHIFT		12

/* Entries of each ring, as log2 (ORN-RNG-1). */
#define ORNIC_LOG_MIN_EQ		4
#define ORNIC_LOG_MAX_EQ		20
#define ORNIC_LOG_MIN_ADMIN		4
#define ORNIC_LOG_MAX_ADMIN		12
#define ORNIC_LOG_MAX_CQ		22
#define ORNIC_LOG_MAX_WQ		20

/* Strides of work queues, as log2. */
#define ORNIC_SQ_MIN_STRIDE		6
#define ORNIC_SQ_MAX_STRIDE		11
#define ORNIC_RQ_MIN_STRIDE		5
#define ORNIC_RQ_MAX_STRIDE		11

#endif
