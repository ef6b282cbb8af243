/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits of a function: Identify reports them, and commands beyond them fail with LIMIT. Each
 * function has its own limits; it need not share them with other functions.
 */
#ifndef ORNICD_DEV_LIMITS_H
#define ORNICD_DEV_LIMITS_H

#include "../engine/device.h"
#include "../engine/qp.h"
#include "../engine/raw.h"
#include "../packet/packet.h"

#include <ornic/identify.h>
#include <ornic/ring.h>

/* PCI */
#define FUNC_VECTORS		64
#define FUNC_BAR_BYTES		(8u << 20)
#define FUNC_DB_OFFSET		(4u << 20)
#define FUNC_DB_BYTES		(FUNC_BAR_BYTES - FUNC_DB_OFFSET)
#define FUNC_MAX_STRIDE_LOG	16	/* doorbell pages for hosts with 64 KiB pages */

/* Registers: periods and timeouts */
#define FUNC_HB_MS		1000
#define FUNC_READY_TIMEOUT	20	/* times 100 ms */
#define FUNC_ADMIN_TIMEOUT	100
#define FUNC_RESET_TIMEOUT	20

/* Objects */
#define LIMIT_QP		16384
#define LIMIT_CQ		16384
#define LIMIT_SRQ		16384
#define LIMIT_XRCD		4096
#define LIMIT_EQ		FUNC_VECTORS
#define LIMIT_KEY		65536
#define LIMIT_PD		4096
#define LIMIT_RSS		256
#define LIMIT_RULES		512	/* each frame is compared with every MATCH rule */
#define LIMIT_COUNTER_SETS	4096
#define FIRST_QP		2	/* on the wire 0 and 1 are SMI and GSI */
#define FIRST_RSS		0x800000	/* larger than the number of any queue pair */

/* Memory */
#define LIMIT_PAGE_SIZES	UMEM_PAGE_SIZES
#define LIMIT_REGION		(1ull << 40)
#define LIMIT_LIST_ENTRIES	(64ull << 20)
#define LIMIT_FAST_REG_PAGES	512	/* a page full of addresses */

#define LIMIT_DM		(256u << 10)
#define LIMIT_DMS		64

/* Rings */
#define LIMIT_LOG_SQ		15
#define LIMIT_LOG_RQ		15
#define LIMIT_LOG_SRQ		LIMIT_LOG_RQ
#define LIMIT_LOG_CQ		ORNIC_LOG_MAX_CQ
#define LIMIT_LOG_EQ		ORNIC_LOG_MAX_EQ

/* Queue pairs */
#define LIMIT_SEND_SGE		30
#define LIMIT_RECV_SGE		30
#define LIMIT_SGE_READ		16
#define LIMIT_INLINE		PACKET_INLINE
#define LIMIT_RD_ATOMIC		QP_MAX_RD_ATOMIC
#define RATE_QP_TYPES		(1u << ORNIC_QPT_RC | 1u << ORNIC_QPT_RAW)
/* Most completions, and most microseconds, by which moderation may delay an event */
#define LIMIT_MOD_COUNT		60000
#define LIMIT_MOD_PERIOD_US	60000

/* Ports */
#define PORT_MIN_FRAME		68	/* smallest IPv4 MTU */
#define PORT_DEFAULT_FRAME	1500
#define PORT_MAX_FRAME		9000

_Static_assert(LIMIT_RECV_SGE <= RWQE_MAX_SGE, "a receive holds its SGEs");
/*
 * Pages have at least SMALLEST_PAGE bytes, also those of vfu/dma.c. Each SGE may cross a page
 * boundary, and the frame one more for every page. The inline header and the copied beginning add
 * one piece each, a checksum field behind the copy two. Padding adds one, but only to short frames,
 * whose checksum field is in the copy (engine/raw.c).
 */
#define SMALLEST_PAGE	(1u << ORNIC_PAGES_MIN_SHIFT)
#define MOST_PAGES	((PORT_MAX_FRAME + ETH_OVERHEAD) / SMALLEST_PAGE)
_Static_assert(2 * LIMIT_SEND_SGE + MOST_PAGES + 4 <= PACKET_SEGS,
	       "a packet holds the pieces of a raw frame");
_Static_assert(LIMIT_KEY <= (1u << 24), "a key's index has 24 bits");

/** QUEUE_FEATURES - features of FEATURES for queue pairs, receive queues and receive rules */
#define QUEUE_FEATURES								\
	(ORNIC_FEATURE(RC) | ORNIC_FEATURE(UC) | ORNIC_FEATURE(UD) |		\
	 ORNIC_FEATURE(XRC) | ORNIC_FEATURE(RAW) | ORNIC_FEATURE(SRQ) |		\
	 ORNIC_FEATURE(SRQ_RESIZE) | ORNIC_FEATURE(MCAST) |			\
	 ORNIC_FEATURE(STEER) | ORNIC_FEATURE(RSS))

/** MEMORY_FEATURES - features of FEATURES for memory regions and operations on memory */
#define MEMORY_FEATURES								\
	(ORNIC_FEATURE(MW1) | ORNIC_FEATURE(MW2B) | ORNIC_FEATURE(FAST_REG) |	\
	 ORNIC_FEATURE(REREG) | ORNIC_FEATURE(ATOMICS) |			\
	 ORNIC_FEATURE(FLUSH_GLOBAL) | ORNIC_FEATURE(FLUSH_PERSISTENT) |	\
	 ORNIC_FEATURE(ATOMIC_WRITE) |						\
	 ORNIC_FEATURE(RELAXED_ORDERING) | ORNIC_FEATURE(ZERO_BASED) |		\
	 ORNIC_FEATURE(DM))

/** FEATURES - all features of the device: feature word 0 of Identify */
#define FEATURES								\
	(QUEUE_FEATURES | MEMORY_FEATURES |					\
	 ORNIC_FEATURE(TX_CSUM) | ORNIC_FEATURE(RX_CSUM) |			\
	 ORNIC_FEATURE(JUMBO) | ORNIC_FEATURE(TIMESTAMP) |			\
	 ORNIC_FEATURE(CQ_MODERATION) | ORNIC_FEATURE(CQ_IGNORE_OVERRUN) |	\
	 ORNIC_FEATURE(COUNTER_SETS) | ORNIC_FEATURE(CQ_RESIZE) |		\
	 ORNIC_FEATURE(RATE_LIMIT))

#endif /* ORNICD_DEV_LIMITS_H */
