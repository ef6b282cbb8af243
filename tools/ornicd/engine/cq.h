/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues, device side: writing entries, overflow, firing (ORN-CQ); and the completions
 * of work requests.
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
 * @dbpage:	doorbell page that may ring it
 * @mem:	entries
 * @rec:	DMA address of the doorbell record
 * @prod:	next index to write
 * @cons:	host's consumer index as last read
 * @arm:	state of the arm word
 * @error:	failed: it gets no more entries (ORN-CQ-3)
 * @syndrome:	reason for @error
 * @eq:		EQ of its events
 * @users:	number of queue pairs and SRQs that use it
 * @dirty:	on the device's list of CQs for cq_look()
 * @held:	on @eq's list of held events
 * @evented:	a completion event was written to @eq
 * @event_at:	EQ index of the last completion event, valid if @evented
 * @event_arm:	arm word that fired last
 * @mod_count, @mod_period_us: moderation (ORN-CQ-4)
 * @mod_timer:	end of the moderation period
 * @mod_over:	the moderation period has ended
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
 * cq_init() - start a CQ whose attributes are filled in, whose memory is loaded, and which
 * is zero otherwise
 * Writes notify to the record, so that arming needs no doorbell.
 * Return: enum ornic_status; ORNIC_ST_DMA_ERROR if the record cannot be reached.
 */
int cq_init(struct cq *cq);
/* cq_fini() - stop a CQ that no queue pair uses; no entry and no event follow */
void cq_fini(struct cq *cq);

/*
 * cq_resize() - move the CQ to @to and return the old place in *@to (ORN-CQ-24)
 * @at: set to the indices at which the host continues
 * Return: enum ornic_status; on failure nothing has changed.
 */
int cq_resize(struct cq *cq, struct ring_place *to, struct ornic_cq_resize_rsp *at);

/* cq_set_eq() - send later events to @eq, also an event that is held */
void cq_set_eq(struct cq *cq, struct eq *eq);

/*
 * cq_post() - write an entry; @cqe is complete except for timestamp and phase
 * Errors and ORNIC_CQE_SOLICITED count as solicited. On overflow or unreachable memory the CQ
 * fails, see cq_fail(). The caller has checked that the function may do DMA.
 */
void cq_post(struct cq *cq, struct ornic_cqe *cqe);

/*
 * cq_look() - read the arm word and fire if it asks for an event; take the CQ off the device's list
 * Called at the end of a turn, before the EQs. While the function may not do DMA, it does nothing
 * and the CQ stays on the list.
 */
void cq_look(struct cq *cq);
/* cq_moderate() - change moderation, also that of an event that is due already (ORN-CQ-4) */
void cq_moderate(struct cq *cq, uint16_t count, uint16_t period_us);
/* cq_doorbell() - schedule cq_look(), which reads the arm word from memory (ORN-DB-2) */
void cq_doorbell(struct cq *cq);

/*
 * cq_fail() - put the CQ into error because of @syndrome (RING_INDEX, RING_MEMORY or RING_FULL)
 * The event is raised now, the queue pairs enter ERR at the end of the turn (qp_stop_users()): a
 * queue pair that flushes may make its other CQ overflow, and so on, and a guest could build a
 * chain that exhausts the stack.
 */
void cq_fail(struct cq *cq, uint32_t syndrome);

/* complete_send() - complete @w with its status: write a CQE if one is due, free its slots */
void complete_send(struct qp *qp, struct wqe *w);

/**
 * complete_recv() - write the CQE of a receive
 * @qp:		queue pair that took the receive
 * @index:	index of the receive, as in struct rwqe
 * @opcode:	enum ornic_wc_opcode
 * @status:	enum ornic_wc_status
 * @syndrome:	reason, if @status is an error
 * @cqe:	members that the transport knows (byte_len, imm, flags, src_qp, ...); the others are
 *		filled in here
 */
void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe);

#endif /* ORNICD_ENGINE_CQ_H */
