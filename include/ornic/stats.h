/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Statistics: self-describing counters (specification: stats.rst; clauses
 * ORN-STAT).
 */
#ifndef ORNIC_STATS_H
#define ORNIC_STATS_H

#include "types.h"

enum ornic_stat_scope {
	ORNIC_STAT_DEVICE	= 0,
	ORNIC_STAT_PORT		= 1,
	ORNIC_STAT_QP		= 2,	/* feature COUNTER_SETS */
	ORNIC_STAT_EQ		= 3,
};

/* STAT_NAMES input: start with the offset-th entry. */
struct ornic_stat_names_cmd {
	__le32 offset;
};
ORNIC_ASSERT_SIZE(struct ornic_stat_names_cmd, 4);

/* One entry of STAT_NAMES output; as many as fit are written. */
struct ornic_stat_name {
	__le32 id;		/* < 0x1000: defined by the specification */
	__u8 scope;		/* enum ornic_stat_scope */
	__u8 kind;		/* 0 counter, 1 gauge */
	__le16 res;
	char name[40];		/* zero padded */
};
ORNIC_ASSERT_SIZE(struct ornic_stat_name, 48);

/*
 * STAT_READ input; output: count __le64 values, those of the entries of this
 * scope in the order of STAT_NAMES from the first-th on. Fewer are written if
 * there are fewer (out_size tells) or if out_len is smaller.
 */
struct ornic_stat_read_cmd {
	__u8 scope;
	__u8 clear;		/* mbz */
	__le16 mbz;
	__le32 number;		/* port for scope 1, else 0 */
	__le32 first;
	__le32 count;
};
ORNIC_ASSERT_SIZE(struct ornic_stat_read_cmd, 16);

#endif
