// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, and the completions of work requests.
 *
 * Entries are written when work requests complete. The arm word is read once, at the end of the
 * turn, after a full barrier (ORN-RNG-12). notify never asks for doorbells, because the host tests
 * the ring itself after it armed (ORN-RNG-11).
 *
 * Record and entries belong to a process. Its writes there affect only this CQ and the queue pairs
 * that use it.
 */
#include "cq.h"

#include "engine.h"
#include "latency.h"
#include "qp.h"
#include "srq.h"

#include <ornic/admin.h>
#include <endian.h>

static uint32_t cq_entries(const struct cq *cq)
{
	return 1u << cq->log;
}

static struct ornic_rec *cq_record(struct cq *cq)
{
	return gpa_ptr(cq->dev->gpa, cq->rec, sizeof(struct ornic_rec), true);
}

static void cq_mark(struct cq *cq)
{
	if (cq->dirty)
		return;
	cq->dirty = true;
	TAILQ_INSERT_TAIL(&cq->dev->look, cq, look);
}

/* End the moderation period: cq_look() fires at the end of this turn. */
static void cq_period_over(void *arg)
{
	struct cq *cq = arg;

	cq->mod_over = true;
	cq_mark(cq);
}

int cq_init(struct cq *cq)
{
	struct ornic_rec *rec = cq_record(cq);

	if (cq->rec % sizeof(*rec) || cq->mem.offset % ORNIC_ENTRY_BYTES)
		return ORNIC_ST_BAD_PARAM;
	if (!rec)
		return ORNIC_ST_DMA_ERROR;
	if (timers_reserve(&cq->dev->timers, 1))
		return ORNIC_ST_NO_RESOURCE;
	cq->mod_timer = (struct timer){ .fn = cq_period_over, .arg = cq };
	ring_notify(rec, 0);
	return ORNIC_ST_OK;
}

void cq_fini(struct cq *cq)
{
	struct timers *timers = &cq->dev->timers;

	timer_disarm(timers, &cq->mod_timer);
	timers_unreserve(timers, 1);
	eq_forget(cq->eq, cq);
	if (cq->dirty)
		TAILQ_REMOVE(&cq->dev->look, cq, look);
	cq->dirty = false;
}

void cq_set_eq(struct cq *cq, struct eq *eq)
{
	bool held = cq->held;

	eq_forget(cq->eq, cq);
	cq->eq = eq;
	if (held)
		eq_completion(eq, cq, cq->event_arm);
}

/*
 * Read host_index of a CQ that seems full; it may only move forward, up to the producer index.
 * Return: true if there is room; otherwise the CQ has failed.
 */
static bool cq_make_room(struct cq *cq)
{
	const struct ornic_rec *rec = cq_record(cq);
	uint32_t index;

	if (!rec) {
		cq_fail(cq, ORNIC_SYN_RING_MEMORY);
		return false;
	}
	index = ring_host_index(rec);
	if (index - cq->cons > cq->prod - cq->cons) {
		cq_fail(cq, ORNIC_SYN_RING_INDEX);
		return false;
	}
	if (index == cq->cons) {
		device_count(cq->dev, CNT_cq_overflows, 1);
		cq_fail(cq, ORNIC_SYN_RING_FULL);
		return false;
	}
	cq->cons = index;
	return true;
}

void cq_post(struct cq *cq, struct ornic_cqe *cqe)
{
	uint64_t slot = cq->prod & (cq_entries(cq) - 1);
	void *ptr;

	if (cq->error)
		return;
	if (!(cq->flags & ORNIC_CQ_F_IGNORE_OVERRUN) && cq->prod - cq->cons == cq_entries(cq) &&
	    !cq_make_room(cq))
		return;
	ptr = umem_ptr(&cq->mem, slot * sizeof(*cqe), sizeof(*cqe), true);
	if (!ptr) {
		cq_fail(cq, ORNIC_SYN_RING_MEMORY);
		return;
	}
	cqe->timestamp = cq->flags & ORNIC_CQ_F_TIMESTAMP ? htole64(engine_clock()) : 0;
	cqe->phase = ring_phase(cq->prod, cq->log);
	ring_write_entry(ptr, cqe);
	if (cqe->status || (le32toh(cqe->flags) & ORNIC_CQE_SOLICITED))
		ring_arm_solicited(&cq->arm, cq->prod);
	cq->prod++;
	cq_mark(cq);
}

/* Read the arm word; fire, or start the moderation period (ORN-CQ-4, 5). */
static void cq_announce(struct cq *cq, const struct ornic_rec *rec)
{
	struct timers *timers = &cq->dev->timers;
	bool due = ring_arm_due(&cq->arm, ring_arm_load(rec), cq->prod, cq->log);
	bool moderated = cq->mod_count && cq->mod_period_us && !cq->mod_over &&
			 ring_arm_type(cq->arm.seen) == ORNIC_ARM_ANY &&
			 cq->prod - cq->arm.since < cq->mod_count;

	if (!due) {
		timer_disarm(timers, &cq->mod_timer);
		cq->mod_over = false;
	} else if (moderated) {
		if (!timer_armed(&cq->mod_timer))
			timer_arm(timers, &cq->mod_timer,
				  cq->dev->engine->now + cq->mod_period_us * 1000ull);
	} else {
		timer_disarm(timers, &cq->mod_timer);
		cq->mod_over = false;
		ring_arm_fired(&cq->arm);
		eq_completion(cq->eq, cq, cq->arm.seen);
	}
}

int cq_resize(struct cq *cq, struct ring_place *to, struct ornic_cq_resize_rsp *at)
{
	struct ring_place old = { .log = cq->log, .mem = cq->mem, .rec = cq->rec };
	struct ornic_rec *rec = gpa_ptr(cq->dev->gpa, to->rec, sizeof(*rec), true);
	const struct ornic_rec *old_rec = cq_record(cq);
	uint32_t index, unpolled;

	if (cq->error)
		return ORNIC_ST_BAD_STATE;
	if (!old_rec || !rec)
		return ORNIC_ST_DMA_ERROR;
	/* The entries that the host has not consumed must fit; it chooses @index itself. */
	index = ring_host_index(old_rec);
	unpolled = cq->prod - index;
	if (!(cq->flags & ORNIC_CQ_F_IGNORE_OVERRUN) && index - cq->cons > cq->prod - cq->cons)
		return ORNIC_ST_BAD_PARAM;
	if (unpolled > cq_entries(cq) || unpolled > 1u << to->log)
		return ORNIC_ST_BAD_PARAM;
	/* Read the old arm word a last time: the new one is for later entries only. */
	cq->mod_over = true;
	cq_announce(cq, old_rec);
	at->producer = htole32(cq->prod);
	at->consumer = htole32(index);
	cq->log = to->log;
	cq->mem = to->mem;
	cq->rec = to->rec;
	*to = old;
	cq->prod -= index;
	cq->cons = 0;
	ring_arm_shift(&cq->arm, index);
	ring_notify(rec, 0);
	return ORNIC_ST_OK;
}

void cq_look(struct cq *cq)
{
	const struct ornic_rec *rec;

	if (!cq->dev->running)
		return;
	if (cq->dirty)
		TAILQ_REMOVE(&cq->dev->look, cq, look);
	cq->dirty = false;
	if (cq->error)
		return;
	rec = cq_record(cq);
	if (rec)
		cq_announce(cq, rec);
	else
		cq_fail(cq, ORNIC_SYN_RING_MEMORY);
}

void cq_moderate(struct cq *cq, uint16_t count, uint16_t period_us)
{
	struct timer *t = &cq->mod_timer;
	uint64_t first = t->expires - cq->mod_period_us * 1000ull;

	if (timer_armed(t))
		timer_arm(&cq->dev->timers, t, first + period_us * 1000ull);
	cq->mod_count = count;
	cq->mod_period_us = period_us;
	cq_mark(cq);
}

void cq_doorbell(struct cq *cq)
{
	cq_mark(cq);
}

void cq_fail(struct cq *cq, uint32_t syndrome)
{
	const struct ornic_rec *rec = cq_record(cq);

	if (cq->error)
		return;
	/* Announce earlier entries first: events of an object come in order. */
	if (cq->dirty && rec)
		cq_announce(cq, rec);
	timer_disarm(&cq->dev->timers, &cq->mod_timer);
	cq->error = true;
	cq->syndrome = syndrome;
	cq->dev->failed = true;
	device_event(cq->dev, ORNIC_EV_CQ_ERR, cq->number, cq->owner, syndrome, 0, 0);
}

static uint8_t wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
	case ORNIC_WR_SEND_INV:
		return ORNIC_WC_SEND;
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
		return ORNIC_WC_RDMA_WRITE;
	case ORNIC_WR_RDMA_READ:
		return ORNIC_WC_RDMA_READ;
	case ORNIC_WR_COMP_SWAP:
		return ORNIC_WC_COMP_SWAP;
	case ORNIC_WR_FETCH_ADD:
		return ORNIC_WC_FETCH_ADD;
	case ORNIC_WR_FLUSH:
		return ORNIC_WC_FLUSH;
	case ORNIC_WR_ATOMIC_WRITE:
		return ORNIC_WC_ATOMIC_WRITE;
	case ORNIC_WR_FAST_REG:
		return ORNIC_WC_FAST_REG;
	case ORNIC_WR_BIND_MW:
		return ORNIC_WC_BIND_MW;
	case ORNIC_WR_LOCAL_INV:
		return ORNIC_WC_LOCAL_INV;
	case ORNIC_WR_NOP:
		return ORNIC_WC_NOP;
	default:
		return ORNIC_WC_SEND_FLUSHED;
	}
}

static void count_status(struct qp *qp, uint8_t status)
{
	if (status == ORNIC_WC_WR_FLUSH_ERR)
		qp_count(qp, CNT_flushes, 1);
	else if (status == ORNIC_WC_LOC_PROT_ERR)
		qp_count(qp, CNT_local_protection_errors, 1);
}

/* Return true if fault injection turned a successful completion into an error. */
static bool inject_fault(struct qp *qp, bool recv, struct ornic_cqe *cqe)
{
	const struct engine_faults *faults = qp->dev->engine->faults;

	if (__builtin_expect(!faults, 1) || cqe->status)
		return false;
	cqe->status = faults->completion(qp, recv);
	if (!cqe->status)
		return false;
	cqe->syndrome = htole32(FAULT_SYNDROME);
	return true;
}

void complete_send(struct qp *qp, struct wqe *w)
{
	struct ornic_cqe cqe = {
		.qpn = htole32(qp->handle),
		.wqe_id = htole32(w->index),
		.srqn = htole32(ORNIC_NONE),
		.opcode = wc_opcode(w->opcode),
		.status = w->status,
		.syndrome = htole32(w->syndrome),
	};

	latency_done(qp->dev, w);
	qp->sq.done = w->index + 1;
	if (!w->status && !(w->flags & ORNIC_WQE_SIGNALED) && !(qp->flags & ORNIC_QP_F_SIG_ALL))
		return;
	if (inject_fault(qp, false, &cqe)) {
		w->status = cqe.status;
		w->syndrome = FAULT_SYNDROME;
	}
	if (!w->status && wqe_is_read(w))
		cqe.byte_len = htole32(w->len);
	count_status(qp, w->status);
	cq_post(qp->scq, &cqe);
	/* UC and UD enter SQE because of @w->status (unreliable.c). */
	if (w->syndrome == FAULT_SYNDROME && (qp_reliable(qp) || qp->type == ORNIC_QPT_RAW))
		qp_fail(qp, 0, FAULT_SYNDROME, w->index);
}

void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe)
{
	bool injected;

	cqe->qpn = htole32(qp->handle);
	cqe->wqe_id = htole32(index);
	cqe->srqn = htole32(qp->srq ? qp->srq->number : ORNIC_NONE);
	cqe->opcode = opcode;
	cqe->status = status;
	cqe->syndrome = htole32(syndrome);
	injected = inject_fault(qp, true, cqe);
	count_status(qp, cqe->status);
	cq_post(qp->type == ORNIC_QPT_XRC_TGT ? qp->srq->cq : qp->rcq, cqe);
	if (injected && qp_reliable(qp))
		answer_fail(qp, NAK_REMOTE_OPERATIONAL, 0, FAULT_SYNDROME);
	else if (injected)
		qp_fail(qp, 0, FAULT_SYNDROME, index);
}
