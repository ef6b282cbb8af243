/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues, device side: writing entries, overflow, firing (ORN-CQ).
 */
#ifndef ORNICD_ENGINE_CQ_H
#define ORNICD_ENGINE_CQ_H

#include "ring.h"
#include "timer.h"
#include "umem.h"

#include <ornic/cq.h>
#include <stdbool.h>
#include <sys/queue.h>

struct device;
struct eq;

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
 * @event_at:	EQ index of its last completion event, valid if @evented
 * @mod_count, @mod_period_us: moderation (ORN-CQ-4)
 * @mod_timer:	ends the period
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
	uint16_t mod_count;
	uint16_t mod_period_us;
	struct timer mod_timer;
	TAILQ_ENTRY(cq) look;
	TAILQ_ENTRY(cq) hold;
	struct ornic_cq_create_cmd attr;
};

int cq_init(struct cq *cq);
void cq_fini(struct cq *cq);

/*
 * cq_post() - write an entry; @cqe is complete but for timestamp and phase.
 * Errors and ORNIC_CQE_SOLICITED count as solicited. On overflow or unreachable
 * memory the CQ goes into error, and all its queue pairs with it.
 */
void cq_post(struct cq *cq, struct ornic_cqe *cqe);

/* cq_look() - read the arm word and fire if it asks for it. At the end of a turn. */
void cq_look(struct cq *cq);
/* cq_doorbell() - the host rang with an arm word; memory decides (ORN-DB-2). */
void cq_doorbell(struct cq *cq);

/* cq_fail() - put the CQ into error: event, and its queue pairs to ERR. */
void cq_fail(struct cq *cq, uint32_t syndrome);

#endif /* ORNICD_ENGINE_CQ_H */
