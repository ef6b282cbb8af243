/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event queues, device side: writing entries, firing interrupts, holding
 * completion events while a queue is full (ORN-EQ).
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
 * @rec:	doorbell record; the DMA address, looked up at each use
 * @prod:	next index to write
 * @cons:	host's consumer index as last read
 * @arm:	state of the arm word
 * @dirty:	entries were written, or the arm word may have changed, since the last look
 * @always:	notify says ALWAYS: events wait for room
 * @error:	it cannot be used any more; the function is FATAL
 * @lost:	events discarded since the last entry
 * @held:	CQs whose completion event waits for room
 * @async:	asynchronous events that wait for room
 * @nasync:	how many
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
	STAILQ_HEAD(, eq_async) async;
	uint32_t nasync;
	TAILQ_ENTRY(eq) link;
	struct ornic_eq_create_cmd attr;
};

/*
 * eq_init() - start an EQ whose memory is loaded (@mem, @rec, @log, @vector ...
 * filled in by the caller). Its record must be reachable: notify is written, so that
 * arming needs no doorbell. Return: enum ornic_status.
 */
int eq_init(struct eq *eq);
void eq_fini(struct eq *eq);

/* eq_completion() - a CQ fired: write its event, or hold it. */
void eq_completion(struct eq *eq, struct cq *cq, uint32_t arm);
/* eq_forget() - @cq goes away: no held event of it may follow. */
void eq_forget(struct eq *eq, struct cq *cq);

/* eq_event() - write an asynchronous event, or queue it (one per type and number). */
void eq_event(struct eq *eq, uint8_t type, uint32_t number, uint32_t owner, uint32_t syndrome,
	      uint32_t info0, uint32_t info1);

/* device_event() - eq_event() on the function's EQ 0, if there is one. */
void device_event(struct device *dev, uint8_t type, uint32_t number, uint32_t owner,
		  uint32_t syndrome, uint32_t info0, uint32_t info1);

/*
 * eq_look() - flush what waits, read the arm word, fire. Takes the EQ off the
 * device's list. At the end of a turn, after the CQs, and not while the function may
 * not do DMA: then the list stays as it is.
 */
void eq_look(struct eq *eq);
/*
 * eq_doorbell() - the host rang (only a queue with notify ALWAYS is rung): look when
 * this turn ends. Also for every EQ when a function may do DMA again.
 */
void eq_doorbell(struct eq *eq);
/* eq_holding() - events wait for room */
bool eq_holding(const struct eq *eq);

#endif /* ORNICD_ENGINE_EQ_H */
