// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues.
 *
 * The data path never waits for room in an EQ (ORN-EQ-3). Without room, a completion event is held
 * as a flag of its CQ, an asynchronous event in a short list. The event of a CQ is also held while
 * the host has not consumed the last one, so a process that arms in a loop takes one entry. While
 * events are held, notify is ALWAYS and the host's next arm rings a doorbell; otherwise it rings
 * none.
 *
 * EQs belong to the driver. An EQ that cannot be reached, or whose index is impossible, stops its
 * function and no other one.
 */
#include "eq.h"

#include "device.h"
#include "engine.h"

#include <ornic/admin.h>
#include <stdlib.h>
#include <string.h>

/* CQs that an EQ visits per turn to write their held events */
#define FLUSH_WORK	256

/* Most asynchronous events that an EQ holds; further ones are counted as lost. */
#define EQ_MAX_ASYNC	1024

/** struct eq_async - a held asynchronous event; members as in struct ornic_eqe */
struct eq_async {
	STAILQ_ENTRY(eq_async) link;
	uint8_t type;
	uint32_t number;
	uint32_t owner;
	uint32_t syndrome;
	uint32_t info0;
	uint32_t info1;
};

static uint32_t eq_entries(const struct eq *eq)
{
	return 1u << eq->log;
}

static struct ornic_rec *eq_record(struct eq *eq)
{
	return gpa_ptr(eq->dev->gpa, eq->rec, sizeof(struct ornic_rec), true);
}

static void eq_fail(struct eq *eq)
{
	if (eq->error)
		return;
	eq->error = true;
	eq->dev->host->fatal(eq->dev->arg, ORNIC_SYN_EQ_MEMORY);
}

int eq_init(struct eq *eq)
{
	struct ornic_rec *rec = eq_record(eq);

	if (eq->rec % sizeof(*rec) || eq->mem.offset % ORNIC_ENTRY_BYTES)
		return ORNIC_ST_BAD_PARAM;
	if (!rec)
		return ORNIC_ST_DMA_ERROR;
	eq->arm.whole = true;
	TAILQ_INIT(&eq->held);
	STAILQ_INIT(&eq->async);
	ring_notify(rec, 0);
	return ORNIC_ST_OK;
}

static void async_drop_first(struct eq *eq)
{
	struct eq_async *a = STAILQ_FIRST(&eq->async);

	STAILQ_REMOVE_HEAD(&eq->async, link);
	eq->nasync--;
	free(a);
}

void eq_fini(struct eq *eq)
{
	while (!TAILQ_EMPTY(&eq->held))
		eq_forget(eq, TAILQ_FIRST(&eq->held));
	while (!STAILQ_EMPTY(&eq->async))
		async_drop_first(eq);
	if (eq->dirty)
		TAILQ_REMOVE(&eq->dev->eq_look, eq, link);
}

static void eq_mark(struct eq *eq)
{
	if (eq->dirty)
		return;
	eq->dirty = true;
	TAILQ_INSERT_TAIL(&eq->dev->eq_look, eq, link);
}

/* Read host_index; it may only move forward, up to the producer index. */
static void eq_refresh(struct eq *eq)
{
	const struct ornic_rec *rec = eq_record(eq);
	uint32_t index;

	if (!rec) {
		eq_fail(eq);
		return;
	}
	index = ring_host_index(rec);
	if (index - eq->cons > eq->prod - eq->cons)
		eq_fail(eq);
	else
		eq->cons = index;
}

static bool eq_usable(const struct eq *eq)
{
	return eq->dev->running && !eq->error;
}

static bool eq_has_room(struct eq *eq)
{
	if (eq_usable(eq) && eq->prod - eq->cons == eq_entries(eq))
		eq_refresh(eq);
	return eq_usable(eq) && eq->prod - eq->cons < eq_entries(eq);
}

/* Write @e to an EQ that has room; fill in timestamp, lost and phase. */
static void eq_write(struct eq *eq, struct ornic_eqe *e)
{
	uint64_t slot = eq->prod & (eq_entries(eq) - 1);
	void *ptr = umem_ptr(&eq->mem, slot * sizeof(*e), sizeof(*e), true);

	if (!ptr) {
		eq_fail(eq);
		return;
	}
	e->timestamp = htole64(engine_clock());
	e->lost = htole32(eq->lost);
	e->phase = ring_phase(eq->prod, eq->log);
	ring_write_entry(ptr, e);
	eq->lost = 0;
	eq->prod++;
	eq_mark(eq);
}

/* Return true if the host has not consumed the last event of @cq. */
static bool event_unread(struct eq *eq, const struct cq *cq)
{
	if (!cq->evented || cq->event_at - eq->cons >= eq->prod - eq->cons)
		return false;
	if (eq_usable(eq))
		eq_refresh(eq);
	return cq->event_at - eq->cons < eq->prod - eq->cons;
}

static void completion_write(struct eq *eq, struct cq *cq)
{
	struct ornic_eqe e = {
		.type = ORNIC_EV_COMPLETION,
		.number = htole32(cq->number),
		.info0 = htole32(cq->event_arm),
		.owner = htole32(cq->owner),
	};

	cq->evented = true;
	cq->event_at = eq->prod;
	eq_write(eq, &e);
}

static void completion_hold(struct eq *eq, struct cq *cq)
{
	cq->held = true;
	TAILQ_INSERT_TAIL(&eq->held, cq, hold);
	eq->nheld++;
	device_count(eq->dev, CNT_eq_held, 1);
	eq_mark(eq);
}

void eq_completion(struct eq *eq, struct cq *cq, uint32_t arm)
{
	bool full = eq->prod - eq->cons == eq_entries(eq);

	/* If events are held already, do not read host_index before the end of the turn. */
	cq->event_arm = arm;
	if (cq->held)
		return;
	if ((full && eq_holding(eq)) || event_unread(eq, cq) || !eq_has_room(eq))
		completion_hold(eq, cq);
	else
		completion_write(eq, cq);
}

void eq_forget(struct eq *eq, struct cq *cq)
{
	if (cq->held) {
		TAILQ_REMOVE(&eq->held, cq, hold);
		eq->nheld--;
	}
	cq->held = false;
	cq->evented = false;
}

static void async_write(struct eq *eq, const struct eq_async *a)
{
	struct ornic_eqe e = {
		.type = a->type,
		.number = htole32(a->number),
		.owner = htole32(a->owner),
		.syndrome = htole32(a->syndrome),
		.info0 = htole32(a->info0),
		.info1 = htole32(a->info1),
	};

	eq_write(eq, &e);
}

/* Queue a copy of @a. It replaces an older event of the same type and object. */
static void async_queue(struct eq *eq, const struct eq_async *a)
{
	struct eq_async *q;

	eq_mark(eq);
	device_count(eq->dev, CNT_eq_held, 1);
	STAILQ_FOREACH(q, &eq->async, link)
		if (q->type == a->type && q->number == a->number)
			break;
	if (q) {
		STAILQ_REMOVE(&eq->async, q, eq_async, link);
		eq->nasync--;
	} else if (eq->nasync < EQ_MAX_ASYNC) {
		q = malloc(sizeof(*q));
	}
	if (!q) {
		eq->lost++;
		return;
	}
	*q = *a;
	STAILQ_INSERT_TAIL(&eq->async, q, link);
	eq->nasync++;
}

void eq_event(struct eq *eq, uint8_t type, uint32_t number, uint32_t owner, uint32_t syndrome,
	      uint32_t info0, uint32_t info1)
{
	struct eq_async a = {
		.type = type,
		.number = number,
		.owner = owner,
		.syndrome = syndrome,
		.info0 = info0,
		.info1 = info1,
	};

	if (STAILQ_EMPTY(&eq->async) && eq_has_room(eq))
		async_write(eq, &a);
	else
		async_queue(eq, &a);
}

void device_event(struct device *dev, uint8_t type, uint32_t number, uint32_t owner,
		  uint32_t syndrome, uint32_t info0, uint32_t info1)
{
	struct eq *eq = table_get(&dev->eqs, 0);

	if (eq)
		eq_event(eq, type, number, owner, syndrome, info0, info1);
}

static bool is_event_of(const struct eq_async *a, uint32_t types, uint32_t number)
{
	uint32_t event = a->type - ORNIC_EV_VERBS;

	return a->number == number && event < 32 && types & 1u << event;
}

void device_forget_events(struct device *dev, uint32_t types, uint32_t number)
{
	struct eq *eq = table_get(&dev->eqs, 0);
	struct eq_async *a = eq ? STAILQ_FIRST(&eq->async) : NULL;

	while (a) {
		struct eq_async *next = STAILQ_NEXT(a, link);

		if (is_event_of(a, types, number)) {
			STAILQ_REMOVE(&eq->async, a, eq_async, link);
			eq->nasync--;
			free(a);
		}
		a = next;
	}
}

/*
 * Write held events of CQs as far as there is room, for some CQs per call. Return: false if the next
 * call has to continue: CQs are left, or the host has read events meanwhile.
 */
static bool flush_completions(struct eq *eq)
{
	struct cq *cq;

	if (!eq->left) {
		eq->left = eq->nheld;
		eq->left_cons = eq->cons;
	}
	for (int n = 0; eq->left && eq_has_room(eq) && (cq = TAILQ_FIRST(&eq->held)); n++) {
		if (n == FLUSH_WORK)
			return false;
		eq->left--;
		TAILQ_REMOVE(&eq->held, cq, hold);
		if (cq->evented && cq->event_at - eq->cons < eq->prod - eq->cons) {
			TAILQ_INSERT_TAIL(&eq->held, cq, hold);
			continue;
		}
		cq->held = false;
		eq->nheld--;
		completion_write(eq, cq);
	}
	eq->left = 0;
	return !eq->nheld || eq->cons == eq->left_cons;
}

/* Write held events as far as there is room. Return: false if some are left for the next call. */
static bool eq_flush(struct eq *eq)
{
	eq_refresh(eq);
	if (!flush_completions(eq))
		return false;
	while (!STAILQ_EMPTY(&eq->async) && eq_has_room(eq)) {
		async_write(eq, STAILQ_FIRST(&eq->async));
		async_drop_first(eq);
	}
	return true;
}

/*
 * Write held events; if some remain, make the host ring at its next arm. Return: false if this has to
 * continue in the next turn.
 */
static bool eq_settle(struct eq *eq, struct ornic_rec *rec)
{
	if (eq_holding(eq) && !eq_flush(eq))
		return false;
	if (eq_holding(eq) && eq_usable(eq) && !ring_listen(rec, eq->cons))
		return false;	/* the host has consumed more meanwhile */
	if (eq->always && !eq_holding(eq))
		ring_notify(rec, 0);
	eq->always = eq_holding(eq);
	return true;
}

void eq_look(struct eq *eq)
{
	struct ornic_rec *rec;
	bool done = true;

	if (!eq->dev->running)
		return;
	rec = eq_record(eq);
	if (!rec)
		eq_fail(eq);
	else if (!eq->error)
		done = eq_settle(eq, rec);
	if (eq->dirty)
		TAILQ_REMOVE(&eq->dev->eq_look, eq, link);
	eq->dirty = false;
	if (!done)
		eq_mark(eq);
	if (!eq_usable(eq))
		return;
	if (ring_arm_due(&eq->arm, ring_arm_load(rec), eq->prod, eq->log)) {
		ring_arm_fired(&eq->arm);
		eq->dev->host->irq(eq->dev->arg, eq->vector);
	}
}

void eq_doorbell(struct eq *eq)
{
	eq_mark(eq);
}

bool eq_holding(const struct eq *eq)
{
	return !TAILQ_EMPTY(&eq->held) || !STAILQ_EMPTY(&eq->async);
}
