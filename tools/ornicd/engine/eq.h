/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event queues, device side: writing entries, raising interrupts, holding events while a queue is
 * full (ORN-EQ).
 */
#ifndef ORNICD_ENGINE_EQ_H
#define ORNICD_ENGINE_EQ_H

#include "ring.h"
#include "umem.h"

#include <ornic/eq.h>
#include <stdbool.h>
#include <sys/queue.h>

struct cq;
struct device;
struct eq_async;

/**
 * struct eq - an event queue
 * @dev:	its function
 * @number:	EQ number
 * @vector:	MSI-X vector
 * @classes:	ORNIC_EQ_*
 * @log:	log2 entries
 * @mem:	entries
 * @rec:	DMA address of the doorbell record, translated at each use
 * @prod:	next index to write
 * @cons:	host's consumer index as last read
 * @arm:	state of the arm word
 * @dirty:	entries were written, or the arm word may have changed, since the last look
 * @always:	notify is ALWAYS, because events are held
 * @error:	failed; the function is FATAL
 * @lost:	events discarded since the last entry
 * @held:	CQs whose completion event is held
 * @nheld:	their number
 * @left:	CQs that are left to be visited to write their events, or 0
 * @left_cons:	@cons when the first of these was visited
 * @async:	held asynchronous events
 * @nasync:	number of events in @async
 * @users:	number of CQs that use it
 * @link:	in the device's list of EQs to look at
 * @attr:	as created, for queries
 */
struct eq {
	struct device *dev;
	uint32_t number;
	uint16_t vector;
	uint64_t classes;
	uint8_t log;
	struct umem mem;
	uint64_t rec;
	uint32_t prod;
	uint32_t cons;
	struct ring_arm arm;
	bool dirty;
	bool always;
	bool error;
	uint32_t lost;
	TAILQ_HEAD(, cq) held;
	uint32_t nheld;
	uint32_t left;
	uint32_t left_cons;
	STAILQ_HEAD(, eq_async) async;
	uint32_t nasync;
	uint32_t users;
	TAILQ_ENTRY(eq) link;
	struct ornic_eq_create_cmd attr;
};

/*
 * eq_init() - start an EQ whose attributes are filled in, whose memory is loaded, and which
 * is zero otherwise
 * Writes notify to the record, so that arming needs no doorbell.
 * Return: enum ornic_status; ORNIC_ST_DMA_ERROR if the record cannot be reached.
 */
int eq_init(struct eq *eq);
/* eq_fini() - discard all held events of an EQ that no CQ uses */
void eq_fini(struct eq *eq);

/* eq_completion() - write or hold the event of @cq, which fired because of arm word @arm */
void eq_completion(struct eq *eq, struct cq *cq, uint32_t arm);
/* eq_forget() - discard a held event of @cq, which leaves the EQ */
void eq_forget(struct eq *eq, struct cq *cq);

/*
 * eq_event() - write an asynchronous event of @type (enum ornic_event), or hold it (one per type
 * and object); arguments as in struct ornic_eqe
 */
void eq_event(struct eq *eq, uint8_t type, uint32_t number, uint32_t owner, uint32_t syndrome,
	      uint32_t info0, uint32_t info1);

/* device_event() - write an asynchronous event to EQ 0 of the function, if it exists */
void device_event(struct device *dev, uint8_t type, uint32_t number, uint32_t owner,
		  uint32_t syndrome, uint32_t info0, uint32_t info1);

/* Asynchronous events of an object, a bit for each type */
#define EVENT_BIT(type)	(1u << (ORNIC_EV_##type - ORNIC_EV_VERBS))
#define EVENTS_CQ	EVENT_BIT(CQ_ERR)
#define EVENTS_SRQ	(EVENT_BIT(SRQ_ERR) | EVENT_BIT(SRQ_LIMIT))
#define EVENTS_QP	(EVENT_BIT(QP_FATAL) | EVENT_BIT(QP_REQ_ERR) | EVENT_BIT(QP_ACCESS_ERR) | \
			 EVENT_BIT(COMM_EST) | EVENT_BIT(SQ_DRAINED) | EVENT_BIT(LAST_WQE))
/*
 * device_forget_events() - discard the held events of an object, which is destroyed or, a queue
 * pair, enters RESET (ORN-ADM-4, ORN-EQ-20)
 * @types:	EVENTS_CQ, EVENTS_SRQ or EVENTS_QP
 * @number:	number or handle of the object
 */
void device_forget_events(struct device *dev, uint32_t types, uint32_t number);

/*
 * eq_look() - write held events, read the arm word, fire; take the EQ off the device's list, or put it
 * at the end if events are left for the next turn
 * Called at the end of a turn, after the CQs. While the function may not do DMA, it does nothing
 * and the EQ stays on the list.
 */
void eq_look(struct eq *eq);
/*
 * eq_doorbell() - schedule eq_look() after a doorbell (the host rings only if notify is ALWAYS), or
 * for every EQ when a function may do DMA again
 */
void eq_doorbell(struct eq *eq);
/* eq_holding() - return true if events are held */
bool eq_holding(const struct eq *eq);

#endif /* ORNICD_ENGINE_EQ_H */
