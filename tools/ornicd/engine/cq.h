/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues, device side: writing entries, overflow, firing (ORN-CQ).
 */
#ifndef ORNICD_ENGINE_CQ_H
#define ORNICD_ENGINE_CQ_H

#include "ring.h"
#include "../timer.h"
#include "umem.h"

#include <ornic/cq.h>
#include <stdbool.h>
#include <sys/queue.h>

struct device;
struct eq;
struct qp;
struct wqe;

/**
 * struct cq - a completion queue
 * @dev:	its function
 * @number:	CQ number
 * @flags:	ORNIC_CQ_F_*
 * @log:	log2 entries
 * @owner:	as given at create
 * @dbpage:	page that may ring it
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 * @prod:	next index to write
 * @cons:	host's consumer index as last read
 * @arm:	state of the arm word
 * @error:	no more entries (ORN-CQ-3)
 * @syndrome:	why
 * @eq:		where its events go
 * @users:	queue pairs that name it
 * @dirty:	on the device's list of CQs to look at
 * @held:	on @eq's list of held events
 * @evented:	it had a completion event on this EQ
 * @event_at:	EQ index of the last one, valid if @evented
 * @event_arm:	arm word that fired last
 * @mod_count, @mod_period_us: moderation (ORN-CQ-4)
 * @mod_timer:	ends the period
 * @mod_over:	it has ended
 * @look, @hold: list entries
 * @attr:	as created, for queries
 */
struct cq {
	struct device *dev;
	uint32_t number;
	uint8_t flags;
	uint8_t log;
	uint32_t owner;
	uint32_t dbpage;
	struct umem mem;
	uint64_t rec;
	uint32_t prod;
	uint32_t cons;
	struct ring_arm arm;
	bool error;
	uint32_t syndrome;
	struct eq *eq;
	uint32_t users;
	bool dirty;
	bool held;
	bool evented;
	uint32_t event_at;
	uint32_t event_arm;
	uint16_t mod_count;
	uint16_t mod_period_us;
	struct timer mod_timer;
	bool mod_over;
	TAILQ_ENTRY(cq) look;
	TAILQ_ENTRY(cq) hold;
	struct ornic_cq_create_cmd attr;
};

/*
 * cq_init() - start a CQ whose attributes are filled in and whose memory is loaded.
 * Its record must be reachable: notify is written, so that arming needs no doorbell.
 * Return: enum ornic_status.
 *
 * cq_fini() - no entry and no event follow.
 */
int cq_init(struct cq *cq);
void cq_fini(struct cq *cq);

/*
 * cq_resize() - from now on the CQ is at @to; its old place is there on return.
 * On failure @to is as it was. Return: enum ornic_status.
 */
int cq_resize(struct cq *cq, struct ring_place *to, struct ornic_cq_resize_rsp *at);

/* cq_set_eq() - events go to @eq from now on, also one that is held. */
void cq_set_eq(struct cq *cq, struct eq *eq);

/*
 * cq_post() - write an entry; @cqe is complete but for timestamp and phase.
 * Errors and ORNIC_CQE_SOLICITED count as solicited. On overflow or unreachable
 * memory the CQ goes into error, and all its queue pairs with it. The caller sees to
 * it that the function may do DMA.
 */
void cq_post(struct cq *cq, struct ornic_cqe *cqe);

/*
 * cq_look() - read the arm word and fire if it asks for it; tell the queue pairs of
 * CQs that failed. Takes the CQ off the device's list. At the end of a turn, before
 * the EQs, and not while the function may not do DMA: then the list stays as it is.
 */
void cq_look(struct cq *cq);
/* cq_doorbell() - the host rang with an arm word; memory decides, this turn (ORN-DB-2). */
void cq_doorbell(struct cq *cq);

/*
 * cq_fail() - put the CQ into error: event now, its queue pairs to ERR when the turn
 * ends. Not at once, because a queue pair that flushes may make its other CQ overflow,
 * and so on: a guest could build a chain as long as the stack is deep.
 */
void cq_fail(struct cq *cq, uint32_t syndrome);

/* complete_send() - finish @w with its status: write a CQE if one is due, free its slots */
void complete_send(struct qp *qp, struct wqe *w);

/**
 * complete_recv() - write the CQE of a receive
 * @index:	of struct rwqe
 * @cqe:	what the transport knows (byte_len, imm, flags, src_qp, ...); this function adds the
 *		queue, index, opcode, status and syndrome
 */
void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe);

#endif /* ORNICD_ENGINE_CQ_H */
