// SPDX-License-Identifier: GPL-2.0
/*
 * Send queues without acknowledgements: the common loop of their transports.
 */
#include "unreliable.h"

#include "engine.h"
#include "memop.h"
#include "qp.h"

/** UNRELIABLE_BUDGET - packets per turn of one queue pair */
#define UNRELIABLE_BUDGET	16

/*
 * Return true if the queue pair may send. A failed work request, or a packet to itself, may have
 * changed its state within this turn.
 */
static bool may_send(const struct qp *qp)
{
	return qp->state == ORNIC_QPS_RTS || qp->state == ORNIC_QPS_SQD;
}

/* Return true if the work request sends packets; otherwise execute it here. */
static bool has_packets(struct qp *qp, struct wqe *w)
{
	if (w->status || w->opcode == ORNIC_WR_NOP)
		return false;
	if (!wqe_is_memop(w))
		return true;
	memop_execute(qp, w);
	return false;
}

/* Return the work request in progress or fetch the next one; NULL if there is none. */
static struct wqe *current(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct wqe *w = (struct wqe *)r->win;

	if (r->head == r->tail) {
		if (qp->state != ORNIC_QPS_RTS || wqe_fetch(qp, w) <= 0)
			return NULL;
		r->tail++;
	}
	return w;
}

static void finish(struct qp *qp, struct wqe *w)
{
	qp->req.head++;
	complete_send(qp, w);
	if (w->status)
		qp_fail_sends(qp, w->syndrome);
}

bool unreliable_run(struct qp *qp, bool (*send)(struct qp *qp, struct wqe *w))
{
	struct engine *e = qp->dev->engine;
	struct requester *r = &qp->req;
	int budget = UNRELIABLE_BUDGET;

	if (!r->win)
		return false;
	for (; budget && may_send(qp) && !engine_sated(e); budget--) {
		struct wqe *w;

		if (!rate_open(&qp->rate, &qp->dev->timers, e->now))
			return false;
		w = current(qp);
		if (!w)
			break;
		if (has_packets(qp, w) && !send(qp, w))
			return true;
		/* The packet refers to the sender's memory until it is delivered (ORN-WQE-12). */
		switch_drain(e->sw);
		if (w->status || w->sent == w->npsn)
			finish(qp, w);
	}
	if (!may_send(qp))
		return false;
	if (r->head != r->tail)
		return true;
	return qp->state == ORNIC_QPS_RTS && wq_pending(qp->dev, &qp->sq) > 0;
}
