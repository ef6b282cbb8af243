/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory keys: regions, access rights, page lists (specification: mr.rst;
 * clauses ORN-MEM).
 *
 * key = index << 8 | tag. One key serves as lkey and rkey; its access rights decide.
 * No key has index 0.
 */
#ifndef ORNIC_MR_H
#define ORNIC_MR_H

#include "ring.h"

#define ORNIC_KEY_TAG_BITS	8
#define ORNIC_KEY_TAG_MASK	0xffu

/* Access bits have the values of verbs. Local read is implied. */
#define ORNIC_ACCESS_LOCAL_WRITE	(1u << 0)
#define ORNIC_ACCESS_REMOTE_WRITE	(1u << 1)
#define ORNIC_ACCESS_REMOTE_READ	(1u << 2)
#define ORNIC_ACCESS_REMOTE_ATOMIC	(1u << 3)
#define ORNIC_ACCESS_MW_BIND		(1u << 4) /* windows may be bound to the region */
#define ORNIC_ACCESS_ZERO_BASED		(1u << 5)
#define ORNIC_ACCESS_ON_DEMAND		(1u << 6) /* reserved */
#define ORNIC_ACCESS_FLUSH_GLOBAL	(1u << 8) /* feature FLUSH_GLOBAL */
#define ORNIC_ACCESS_FLUSH_PERSISTENT	(1u << 9) /* feature FLUSH_PERSISTENT */
#define ORNIC_ACCESS_RELAXED_ORDERING	(1u << 20) /* hint */

#define ORNIC_ACCESS_REMOTE						\
	(ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |		\
	 ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_FLUSH_GLOBAL |	\
	 ORNIC_ACCESS_FLUSH_PERSISTENT)

enum ornic_key_kind {
	ORNIC_KEY_REGION	= 0,	/* pinned memory and its page list */
	ORNIC_KEY_PHYS_ALL	= 1,	/* every DMA address; PRIVILEGED queue pairs only */
	ORNIC_KEY_FAST_REG	= 2,	/* needs feature FAST_REG */
	ORNIC_KEY_MW1		= 3,	/* needs feature MW1 */
	ORNIC_KEY_MW2A		= 4,	/* needs feature MW2A */
	ORNIC_KEY_MW2B		= 5,	/* needs feature MW2B */
	ORNIC_KEY_DM		= 6,	/* needs feature DM */
	ORNIC_KEY_INDIRECT	= 7,	/* reserved */
	ORNIC_KEY_IMPLICIT	= 8,	/* reserved */
};

/* KEY_CREATE input. The number in the completion is the whole key, index and tag. */
struct ornic_key_create_cmd {
	__u8 kind;		/* enum ornic_key_kind */
	__u8 flags;		/* ORNIC_KEY_F_* */
	__le16 mbz0;
	__le32 pd;		/* 0 only with PHYS_ALL: any PD */
	__le32 access;		/* ORNIC_ACCESS_* */
	__le32 max_pages;	/* FAST_REG: most pages of a registration */
	__le64 iova;		/* virtual address of the first byte, as work requests give it */
	__le64 length;		/* bytes from iova on */
	struct ornic_pages pages; /* region only */
	__le32 dm;		/* DM: object number */
	__le32 mbz1;
	__le64 dm_offset;	/* DM: first byte */
	__le32 want;		/* mbz */
	__le32 owner;		/* echoed in queries */
	__u8 mbz2[24];
};
ORNIC_ASSERT_SIZE(struct ornic_key_create_cmd, 96);
ORNIC_ASSERT_OFFSET(struct ornic_key_create_cmd, iova, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_key_create_cmd, pages, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_key_create_cmd, want, 0x40);

#define ORNIC_KEY_F_PEER	(1u << 0) /* dma-buf, peer memory: may become invalid at any time */
#define ORNIC_KEY_F_HUGETLB	(1u << 1) /* hint */

/* KEY_MODIFY input: the mask selects the fields of attr that replace those of the region. */
struct ornic_key_modify_cmd {
	__le32 mask;		/* ORNIC_KEYM_*, at least one */
	__le32 mbz;
	struct ornic_key_create_cmd attr;
};
ORNIC_ASSERT_SIZE(struct ornic_key_modify_cmd, 104);
ORNIC_ASSERT_OFFSET(struct ornic_key_modify_cmd, attr, 8);

/* Mask bits have the values of verbs. */
#define ORNIC_KEYM_TRANSLATION	(1u << 0) /* iova, length, pages and flags */
#define ORNIC_KEYM_PD		(1u << 1) /* pd */
#define ORNIC_KEYM_ACCESS	(1u << 2) /* access */

/* KEY_QUERY output. */
struct ornic_key_query_rsp {
	struct ornic_key_create_cmd attr;	/* as created and modified */
	__le32 key;		/* with the current tag */
	__le32 state;		/* 0 invalid, 1 valid (FAST_REG: registered, windows: bound) */
	__le64 uses;		/* accesses so far */
};
ORNIC_ASSERT_SIZE(struct ornic_key_query_rsp, 112);

#endif
