/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory: blocks of BAR4 that keys of kind DM name (specification: dm.rst; clauses
 * ORN-DM).
 */
#ifndef ORNIC_DM_H
#define ORNIC_DM_H

#include "types.h"

/* DM_CREATE input. The completion's number is the block's. */
struct ornic_dm_create_cmd {
	__le64 bytes;		/* 1..dm_bytes */
	__u8 log_align;		/* log2 bytes; 12 if less */
	__u8 mbz[7];
	__le32 owner;		/* host's id of the user context */
	__le32 want;		/* mbz */
};
ORNIC_ASSERT_SIZE(struct ornic_dm_create_cmd, 24);

/* DM_CREATE output: where the block lies. */
struct ornic_dm_create_rsp {
	__le64 offset;		/* bytes from the start of BAR4 */
	__le64 bytes;		/* those asked for, rounded up to a multiple of 4096 */
};
ORNIC_ASSERT_SIZE(struct ornic_dm_create_rsp, 16);

/* Blocks begin and end at multiples of this. */
#define ORNIC_DM_LOG_PAGE	12

#endif
