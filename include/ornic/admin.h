/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Admin queue: command and completion entries, opcodes, statuses, syndromes
 * (specification: admin.rst; clauses ORN-ADM).
 */
#ifndef ORNIC_ADMIN_H
#define ORNIC_ADMIN_H

#include "types.h"

#define ORNIC_ADMIN_INLINE	32	/* payload bytes that fit into the entry */
#define ORNIC_ADMIN_MAX_PAYLOAD	4096

struct ornic_admin_cmd {
	__le16 opcode;		/* enum ornic_opcode */
	__le16 cmd_id;		/* host's choice, unique among commands in flight; echoed */
	__le32 number;		/* object of the command; 0 for create */
	__le16 in_len;		/* bytes of input payload, 0..4096 */
	__le16 out_len;		/* size of the output buffer in bytes, 0..4096 */
	__le32 flags;		/* mbz */
	__le64 in_addr;		/* DMA address, 64-byte aligned; mbz if in_len <= 32 */
	__le64 out_addr;	/* same; mbz if out_len <= 32 */
	__u8 inline_in[ORNIC_ADMIN_INLINE];	/* input of up to 32 bytes */
};
ORNIC_ASSERT_SIZE(struct ornic_admin_cmd, 64);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cmd, in_addr, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cmd, inline_in, 0x20);

struct ornic_admin_cpl {
	__le16 cmd_id;		/* echo */
	__le16 opcode;		/* echo */
	__le32 number;		/* object created, or object of the command */
	__le32 out_size;	/* bytes of the device's output layout; may exceed out_len */
	__le32 res0;
	__u8 inline_out[ORNIC_ADMIN_INLINE];	/* output, if out_len is up to 32 */
	__le32 res1;
	__le32 syndrome;	/* enum ornic_syndrome, 0 if OK */
	__le32 res2;
	__u8 status;		/* enum ornic_status */
	__u8 res3[2];
	__u8 phase;		/* bit 0 */
};
ORNIC_ASSERT_SIZE(struct ornic_admin_cpl, 64);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cpl, inline_out, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cpl, syndrome, 0x34);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cpl, status, 0x3c);
ORNIC_ASSERT_OFFSET(struct ornic_admin_cpl, phase, 0x3f);

/*
 * Opcodes: class << 8 | verb. These classes are reserved: 0x0c congestion profile,
 * 0x0d paging, 0x0e state, 0x0f completion counters, 0x10 transport-private.
 * 0x80..0xff are for the vendor.
 */
#define ORNIC_OP(class, verb)		((class) << 8 | (verb))

enum ornic_opcode {
	ORNIC_OP_NOP		= ORNIC_OP(0x00, 0x01),
	ORNIC_OP_IDENTIFY	= ORNIC_OP(0x00, 0x02),
	ORNIC_OP_SET_FEATURES	= ORNIC_OP(0x00, 0x03),
	ORNIC_OP_HOST_INFO	= ORNIC_OP(0x00, 0x04),
	ORNIC_OP_STAT_NAMES	= ORNIC_OP(0x00, 0x05),
	ORNIC_OP_STAT_READ	= ORNIC_OP(0x00, 0x06),
	ORNIC_OP_CLOCK_READ	= ORNIC_OP(0x00, 0x07),

	ORNIC_OP_EQ_CREATE	= ORNIC_OP(0x01, 0x01),
	ORNIC_OP_EQ_MODIFY	= ORNIC_OP(0x01, 0x02),
	ORNIC_OP_EQ_QUERY	= ORNIC_OP(0x01, 0x03),
	ORNIC_OP_EQ_DESTROY	= ORNIC_OP(0x01, 0x04),

	ORNIC_OP_PD_CREATE	= ORNIC_OP(0x02, 0x01),
	ORNIC_OP_PD_DESTROY	= ORNIC_OP(0x02, 0x04),

	ORNIC_OP_XRCD_CREATE	= ORNIC_OP(0x03, 0x01),	/* input: as PD_CREATE */
	ORNIC_OP_XRCD_DESTROY	= ORNIC_OP(0x03, 0x04),

	ORNIC_OP_KEY_CREATE	= ORNIC_OP(0x04, 0x01),
	ORNIC_OP_KEY_MODIFY	= ORNIC_OP(0x04, 0x02),	/* feature REREG */
	ORNIC_OP_KEY_QUERY	= ORNIC_OP(0x04, 0x03),
	ORNIC_OP_KEY_DESTROY	= ORNIC_OP(0x04, 0x04),

	ORNIC_OP_DM_CREATE	= ORNIC_OP(0x05, 0x01),	/* feature DM */
	ORNIC_OP_DM_DESTROY	= ORNIC_OP(0x05, 0x04),

	ORNIC_OP_CQ_CREATE	= ORNIC_OP(0x06, 0x01),
	ORNIC_OP_CQ_MODIFY	= ORNIC_OP(0x06, 0x02),
	ORNIC_OP_CQ_QUERY	= ORNIC_OP(0x06, 0x03),
	ORNIC_OP_CQ_DESTROY	= ORNIC_OP(0x06, 0x04),
	ORNIC_OP_CQ_RESIZE	= ORNIC_OP(0x06, 0x05),

	ORNIC_OP_SRQ_CREATE	= ORNIC_OP(0x07, 0x01),
	ORNIC_OP_SRQ_MODIFY	= ORNIC_OP(0x07, 0x02),
	ORNIC_OP_SRQ_QUERY	= ORNIC_OP(0x07, 0x03),
	ORNIC_OP_SRQ_DESTROY	= ORNIC_OP(0x07, 0x04),
	ORNIC_OP_SRQ_RESIZE	= ORNIC_OP(0x07, 0x05),

	ORNIC_OP_QP_CREATE	= ORNIC_OP(0x08, 0x01),
	ORNIC_OP_QP_MODIFY	= ORNIC_OP(0x08, 0x02),
	ORNIC_OP_QP_QUERY	= ORNIC_OP(0x08, 0x03),
	ORNIC_OP_QP_DESTROY	= ORNIC_OP(0x08, 0x04),

	ORNIC_OP_PORT_MODIFY	= ORNIC_OP(0x09, 0x02),
	ORNIC_OP_PORT_QUERY	= ORNIC_OP(0x09, 0x03),
	ORNIC_OP_SET_GID	= ORNIC_OP(0x09, 0x05),
	ORNIC_OP_GET_GID	= ORNIC_OP(0x09, 0x06),

	ORNIC_OP_RULE_CREATE	= ORNIC_OP(0x0a, 0x01),
	ORNIC_OP_RULE_DESTROY	= ORNIC_OP(0x0a, 0x04),
	ORNIC_OP_RSS_CREATE	= ORNIC_OP(0x0a, 0x11),
	ORNIC_OP_RSS_DESTROY	= ORNIC_OP(0x0a, 0x14),

	ORNIC_OP_COUNTER_CREATE		= ORNIC_OP(0x0b, 0x01),
	ORNIC_OP_COUNTER_DESTROY	= ORNIC_OP(0x0b, 0x04),
};

enum ornic_status {
	ORNIC_ST_OK		= 0,	/* done */
	ORNIC_ST_BAD_OPCODE	= 1,	/* opcode not known */
	ORNIC_ST_BAD_SIZE	= 2,	/* payload too short or too long */
	ORNIC_ST_RESERVED	= 3,	/* a must-be-zero byte is not zero */
	ORNIC_ST_BAD_PARAM	= 4,	/* value out of range or contradictory */
	ORNIC_ST_BAD_NUMBER	= 5,	/* no such object */
	ORNIC_ST_UNSUPPORTED	= 6,	/* feature not negotiated */
	ORNIC_ST_EXISTS		= 7,	/* such an object exists already */
	ORNIC_ST_BUSY		= 8,	/* other objects refer to the object */
	ORNIC_ST_BAD_STATE	= 9,	/* not possible in this state */
	ORNIC_ST_NO_RESOURCE	= 10,	/* memory or page-list entries exhausted */
	ORNIC_ST_LIMIT		= 11,	/* above an Identify limit */
	ORNIC_ST_DMA_ERROR	= 12,	/* address unreachable */
	ORNIC_ST_PERMISSION	= 13,	/* not allowed to this function */
	ORNIC_ST_AGAIN		= 14,	/* temporary failure; a retry may succeed */
	ORNIC_ST_INTERNAL	= 15,	/* the device failed */
	ORNIC_ST_ABORTED	= 16,	/* set by the host after a reset; no device sends it */
};

/* Syndromes: class << 16 | detail; vendor syndromes have bit 31 set. */
#define ORNIC_SYN(class, detail)	((class) << 16 | (detail))

enum ornic_syndrome {
	ORNIC_SYN_FIELD			= ORNIC_SYN(1, 0), /* | offset; in the entry: FIELD_ENTRY */
	ORNIC_SYN_HOST_MEMORY		= ORNIC_SYN(2, 1), /* nonce differs: memory is not shared */
	ORNIC_SYN_HOST_UNREACHABLE	= ORNIC_SYN(2, 2), /* enable-time address is not DMA-able */
	ORNIC_SYN_ENABLE_PARAM		= ORNIC_SYN(2, 3), /* misaligned or out-of-range register */
	ORNIC_SYN_RESTARTED		= ORNIC_SYN(3, 1),	/* restarted, all objects lost */
	ORNIC_SYN_ADMIN_RING		= ORNIC_SYN(3, 2),	/* admin ring index or memory */
	ORNIC_SYN_EQ_MEMORY		= ORNIC_SYN(3, 3),	/* EQ index or memory */
	ORNIC_SYN_WQE_OPCODE		= ORNIC_SYN(4, 1),	/* not for this queue pair */
	ORNIC_SYN_WQE_MBZ		= ORNIC_SYN(4, 2),	/* mbz byte or flag set */
	ORNIC_SYN_WQE_QPN		= ORNIC_SYN(4, 3),	/* qpn is not the handle */
	ORNIC_SYN_WQE_STALE		= ORNIC_SYN(4, 4),	/* index is not the ring index */
	ORNIC_SYN_WQE_SEGMENT		= ORNIC_SYN(4, 5),	/* segments beyond the stride */
	ORNIC_SYN_WQE_COUNT		= ORNIC_SYN(4, 6),	/* too many SGEs or inline bytes */
	ORNIC_SYN_WQE_LENGTH		= ORNIC_SYN(4, 7),	/* message too long or short */
	ORNIC_SYN_WQE_PRIVILEGED	= ORNIC_SYN(4, 8),	/* needs a PRIVILEGED queue pair */
	ORNIC_SYN_KEY_INDEX		= ORNIC_SYN(5, 1),	/* no such key */
	ORNIC_SYN_KEY_TAG		= ORNIC_SYN(5, 2),	/* tag of an earlier key */
	ORNIC_SYN_KEY_STATE		= ORNIC_SYN(5, 3),	/* key not valid */
	ORNIC_SYN_KEY_PD		= ORNIC_SYN(5, 4),	/* not of this protection domain */
	ORNIC_SYN_KEY_ACCESS		= ORNIC_SYN(5, 5),	/* access right not granted */
	ORNIC_SYN_KEY_RANGE		= ORNIC_SYN(5, 6),	/* outside the region */
	ORNIC_SYN_KEY_PAGE		= ORNIC_SYN(5, 7),	/* page unreachable */
	ORNIC_SYN_RING_INDEX		= ORNIC_SYN(6, 1),	/* index out of range */
	ORNIC_SYN_RING_MEMORY		= ORNIC_SYN(6, 2), /* ring or record unreachable */
	ORNIC_SYN_RING_FULL		= ORNIC_SYN(6, 3), /* CQ overflow */
	ORNIC_SYN_WIRE			= ORNIC_SYN(7, 0), /* | NAK code, 0x80 timeout, 0x81 RNR */
	ORNIC_SYN_PATH			= ORNIC_SYN(8, 1), /* GID entry not valid */
	ORNIC_SYN_DMA			= ORNIC_SYN(9, 1),	/* access failed on the bus */
	ORNIC_SYN_PERSISTENCE		= ORNIC_SYN(9, 2),	/* data did not become persistent */
};

#define ORNIC_SYN_FIELD_ENTRY		0x8000	/* the offset counts from the command entry */
#define ORNIC_SYN_WIRE_TIMEOUT		0x80	/* retry_cnt timeouts */
#define ORNIC_SYN_WIRE_RNR		0x81	/* rnr_retry RNR NAKs */

/* CLOCK_READ output. */
struct ornic_clock_rsp {
	__le64 clock;		/* device clock */
	__le64 wallclock_ns;	/* ns since the epoch, 0 = the device has no wall clock */
};
ORNIC_ASSERT_SIZE(struct ornic_clock_rsp, 16);

/* HOST_INFO input: informative text, for the device's log. */
struct ornic_host_info_cmd {
	char os[64];		/* zero padded */
	char driver[64];	/* zero padded */
};
ORNIC_ASSERT_SIZE(struct ornic_host_info_cmd, 128);

#endif
