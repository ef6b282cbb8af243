/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory: blocks of BAR4, accessed through keys of kind DM (specification: dm.rst;
 * clauses ORN-DM).
 */
#ifndef ORNIC_DM_H
#define ORNIC_DM_H

#include "types.h"

/* DM_CREATE input. The number in the completion is the number of the block. */
struct ornic_dm_create_cmd {
	__le64 bytes;		/* 1..dm_bytes */
	__u8 log_align;		/* alignment, log2 bytes; less than 12 means 12 */
	__u8 mbz[7];
	__le32 owner;		/* host's id of the user context */
	__le32 want;		/* mbz */
};
ORNIC_ASSERT_SIZE(struct ornic_dm_create_cmd, 24);

/* DM_CREATE output: place of the block. */
struct ornic_dm_create_rsp {
	__le64 offset;		/* bytes from the start of BAR4 */
	__le64 bytes;		/* size requested, rounded up to a multiple of 4096 */
};
ORNIC_ASSERT_SIZE(struct ornic_dm_create_rsp, 16);

/* Blocks begin and end at multiples of 2^12 bytes. */
#define ORNIC_DM_LOG_PAGE	12

#endif
