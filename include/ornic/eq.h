/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Event queues and their entries (specification: eq.rst; clauses ORN-EQ).
 */
#ifndef ORNIC_EQ_H
#define ORNIC_EQ_H

#include "ring.h"

/* Classes of events that an EQ carries. ASYNC, ADMIN and FAULT belong to one EQ each. */
#define ORNIC_EQ_COMPLETION	(1u << 0) /* events of CQs */
#define ORNIC_EQ_ASYNC		(1u << 1) /* all other events */
#define ORNIC_EQ_ADMIN		(1u << 2) /* events of the ACQ */
#define ORNIC_EQ_FAULT		(1u << 3) /* reserved */

/* EQ_CREATE input. The first EQ is number 0 and carries ASYNC and ADMIN. */
struct ornic_eq_create_cmd {
	__u8 log_entries;	/* 4..log_max_eq */
	__u8 flags;		/* mbz */
	__le16 vector;		/* MSI-X vector, < VECTORS */
	__le32 want;		/* mbz */
	__le64 record;		/* DMA address of the doorbell record */
	struct ornic_pages pages;	/* the ring */
	__le64 classes;		/* ORNIC_EQ_* */
	__le16 mod_count;	/* mbz */
	__le16 mod_period_us;	/* mbz */
	__u8 mbz[20];
};
ORNIC_ASSERT_SIZE(struct ornic_eq_create_cmd, 64);
ORNIC_ASSERT_OFFSET(struct ornic_eq_create_cmd, classes, 0x20);

/* EQ_MODIFY and CQ_MODIFY input. */
struct ornic_moderate_cmd {
	__le32 mask;		/* ORNIC_MODERATE_* */
	__le32 target;		/* EQ: vector; CQ: EQ number */
	__le16 mod_count;	/* TIMING: entries; EQ: mbz */
	__le16 mod_period_us;	/* TIMING: microseconds; EQ: mbz */
	__le32 mbz;
};
ORNIC_ASSERT_SIZE(struct ornic_moderate_cmd, 16);

#define ORNIC_MODERATE_TIMING	(1u << 0) /* mod_count and mod_period_us */
#define ORNIC_MODERATE_TARGET	(1u << 1) /* target */

/* Tail of EQ_QUERY and CQ_QUERY output, after the 64 bytes of the create layout. */
struct ornic_ring_state {
	__le32 producer;	/* index of the next entry that the device writes */
	__le32 consumer;	/* host_index as last stored */
	__le32 state;		/* [3:0] 0 good, 1 error; [4] armed */
	__le32 syndrome;	/* reason of the error state */
};
ORNIC_ASSERT_SIZE(struct ornic_ring_state, 16);

#define ORNIC_RING_ERROR	(1u << 0)
#define ORNIC_RING_ARMED	(1u << 4)

struct ornic_eq_query_rsp {
	struct ornic_eq_create_cmd attr;	/* as created and modified */
	struct ornic_ring_state state;	/* indices and error state */
};
ORNIC_ASSERT_SIZE(struct ornic_eq_query_rsp, 80);

struct ornic_eqe {
	__le64 timestamp;	/* device clock */
	__le32 number;		/* CQ, QP, port or other object, depending on the type */
	__le32 syndrome;	/* enum ornic_syndrome, or 0 */
	__le32 info0;		/* COMPLETION, ADMIN: arm word that fired; QP: state;
				 * PORT: bit 0: link is up; IDENTIFY: page
				 */
	__le32 info1;		/* QP events: WQE index */
	__le32 owner;		/* owner in the create command, 0 = driver */
	__le32 lost;		/* events of this EQ discarded since the previous entry */
	__u8 data[24];		/* page faults, reserved */
	__le32 res0;
	__u8 type;		/* enum ornic_event */
	__u8 res1[2];
	__u8 phase;		/* bit 0 */
};
ORNIC_ASSERT_SIZE(struct ornic_eqe, 64);
ORNIC_ASSERT_OFFSET(struct ornic_eqe, owner, 0x18);
ORNIC_ASSERT_OFFSET(struct ornic_eqe, data, 0x20);
ORNIC_ASSERT_OFFSET(struct ornic_eqe, type, 0x3c);

/* Event types. 0x10 + n is asynchronous event n of verbs. */
#define ORNIC_EV_VERBS		0x10

enum ornic_event {
	ORNIC_EV_COMPLETION	= 0x01,	/* number: CQ */
	ORNIC_EV_ADMIN		= 0x02,	/* the ACQ has entries */
	ORNIC_EV_CQ_ERR		= ORNIC_EV_VERBS + 0,	/* CQ in error */
	ORNIC_EV_QP_FATAL	= ORNIC_EV_VERBS + 1,	/* ring unusable */
	ORNIC_EV_QP_REQ_ERR	= ORNIC_EV_VERBS + 2,	/* peer sent an invalid request */
	ORNIC_EV_QP_ACCESS_ERR	= ORNIC_EV_VERBS + 3,	/* peer has no right for its request */
	ORNIC_EV_COMM_EST	= ORNIC_EV_VERBS + 4,	/* first packet in RTR */
	ORNIC_EV_SQ_DRAINED	= ORNIC_EV_VERBS + 5,	/* in SQD, no request is unfinished */
	ORNIC_EV_DEVICE_FATAL	= ORNIC_EV_VERBS + 8,	/* the device is FATAL */
	ORNIC_EV_PORT_ACTIVE	= ORNIC_EV_VERBS + 9,	/* link came up */
	ORNIC_EV_PORT_ERR	= ORNIC_EV_VERBS + 10,	/* link went down */
	ORNIC_EV_SRQ_ERR	= ORNIC_EV_VERBS + 14,	/* SRQ: ring unusable */
	ORNIC_EV_SRQ_LIMIT	= ORNIC_EV_VERBS + 15,	/* SRQ: fewer entries than its limit */
	ORNIC_EV_LAST_WQE	= ORNIC_EV_VERBS + 16,	/* QP in ERR is done with its SRQ */
	ORNIC_EV_GID_CHANGE	= ORNIC_EV_VERBS + 18,	/* reserved */
	ORNIC_EV_IDENTIFY	= 0x40,	/* an Identify page changed; info0: page, number: index */
	ORNIC_EV_DB_REJECTED	= 0x41,	/* a doorbell was rejected; number: page */
	ORNIC_EV_PAGE_FAULT	= 0x50,	/* reserved */
};

#endif
