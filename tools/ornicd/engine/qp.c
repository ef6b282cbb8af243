// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: states, failure, flushing, doorbells (ORN-QP-3, ORN-QP-4).
 */
#include "qp.h"

#include "engine.h"
#include "memop.h"
#include "raw.h"
#include "srq.h"
#include "uc.h"
#include "ud.h"

#include <errno.h>
#include <stdlib.h>

/** FLUSH_BUDGET - entries that a queue pair flushes per turn */
#define FLUSH_BUDGET	64
/** STOP_BUDGET - queue pairs that qp_stop_users() visits per turn */
#define STOP_BUDGET	256
/** QP_TIMERS - timers of a queue pair: local ACK, RNR, rate */
#define QP_TIMERS	3

static void rate_opened(void *arg)
{
	struct qp *qp = arg;

	if (qp->cc.limiting)
		cc_sent(qp, 0);
	engine_activate(qp->dev->engine, qp);
}

int qp_init(struct qp *qp)
{
	struct requester *r = &qp->req;
	uint32_t slots = 1;

	qp->state = ORNIC_QPS_RESET;
	qp->sched = QP_ASLEEP;
	backlog_init(&qp->backlog);
	rate_init(&qp->rate, rate_opened, qp);
	cc_reset(qp);
	if (timers_reserve(&qp->dev->timers, QP_TIMERS))
		return -ENOMEM;
	if (!qp->sq.present)
		return 0;
	/* RC and XRC keep a window of work requests in flight, the other types one. */
	if (qp_reliable(qp))
		slots = qp->sq.log < 6 ? 1u << qp->sq.log : REQUESTER_WINDOW;
	r->mask = slots - 1;
	r->wqe_bytes = sizeof(struct wqe) + (1u << qp->sq.stride);
	r->win = aligned_alloc(16, (size_t)slots * r->wqe_bytes);
	if (!r->win) {
		timers_unreserve(&qp->dev->timers, QP_TIMERS);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Return the receive that the queue pair took from an SRQ, because the host would lose the slot for
 * ever otherwise. Do so also if the queue pair ends without passing ERR (ORN-SRQ-4).
 */
static void return_shared(struct qp *qp)
{
	struct rwqe *recv = &qp->resp.recv;
	struct ornic_cqe cqe = {};

	if (!qp->srq || !recv->valid || !qp->dev->running)
		return;
	recv->valid = false;
	complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR, 0, &cqe);
}

/* Return the receive; an XRC target then has no SRQ until its next message arrives. */
static void release_shared(struct qp *qp)
{
	return_shared(qp);
	if (qp->type == ORNIC_QPT_XRC_TGT)
		qp->srq = NULL;
}

void qp_fini(struct qp *qp)
{
	release_shared(qp);
	requester_stop(qp);
	responder_stop(qp);
	memop_unbind_some(qp, UINT32_MAX);
	backlog_clear(&qp->backlog, qp->dev);
	engine_forget(qp->dev->engine, qp);
	timers_unreserve(&qp->dev->timers, QP_TIMERS);
	free(qp->req.win);
	qp->req.win = NULL;
}

static void wq_reset(struct wq *wq)
{
	wq->cons = 0;
	wq->done = 0;
	wq->bad = false;
}

static void enter_reset(struct qp *qp)
{
	release_shared(qp);
	requester_stop(qp);
	cc_reset(qp);
	backlog_clear(&qp->backlog, qp->dev);
	engine_forget(qp->dev->engine, qp);
	device_forget_events(qp->dev, EVENTS_QP, qp->handle);
	wq_reset(&qp->sq);
	wq_reset(&qp->rq);
	qp->req.head = 0;
	qp->req.cur = 0;
	qp->req.tail = 0;
	qp->req.next_psn = 0;
	responder_stop(qp);
	qp->resp = (struct responder) {};
	qp->syndrome = 0;
	qp->flush_sq = false;
	qp->flush_rq = false;
	qp->last_wqe = false;
	qp->comm_est = false;
	qp->fatal_raised = false;
	qp->request_raised = false;
}

/* Ask for no receive doorbells: the RQ is read when a message arrives (ORN-RNG-7). */
static void quiet_rq(struct qp *qp)
{
	struct ornic_rec *rec = qp->rq.present ? wq_record(qp->dev, &qp->rq) : NULL;

	if (rec)
		ring_quiet(rec, qp->rq.cons);
}

static void enter_error(struct qp *qp)
{
	requester_stop(qp);
	responder_stop(qp);
	backlog_clear(&qp->backlog, qp->dev);
	qp->flush_sq = qp->sq.present;
	qp->flush_rq = qp->rq.present;
	qp->last_wqe = qp->srq || qp->type == ORNIC_QPT_XRC_TGT;
	engine_activate(qp->dev->engine, qp);
}

/*
 * Flush the window, then the ring, oldest first. After SQE, only the work requests that were posted
 * before are flushed (ORN-QP-21). Return: true if there may be more work.
 */
static bool flush_sends(struct qp *qp, uint32_t budget)
{
	struct requester *r = &qp->req;
	struct wqe *w;

	for (; budget; budget--) {
		if (r->head == r->tail) {
			if ((qp->state == ORNIC_QPS_RTS || qp->state == ORNIC_QPS_SQD) &&
			    qp->sq.cons == qp->flush_end) {
				qp->flush_sq = false;
				return true;
			}
			if (qp->sq.bad || wqe_fetch(qp, requester_wqe(r, r->tail)) <= 0)
				return false;
			r->tail++;
		}
		w = requester_wqe(r, r->head++);
		w->status = ORNIC_WC_WR_FLUSH_ERR;
		w->syndrome = 0;
		complete_send(qp, w);
	}
	return true;
}

/*
 * Enter RTS. From SQE, flush the work requests that are already posted (ORN-QP-21). The host chose
 * their number, so the flush takes several turns if necessary.
 */
static void enter_rts(struct qp *qp, uint8_t from)
{
	if (from == ORNIC_QPS_RTR && qp->sq.present)
		requester_start(qp);
	if (from == ORNIC_QPS_SQE && qp->sq.present) {
		int64_t n = wq_pending(qp->dev, &qp->sq);

		qp->flush_end = qp->sq.cons + (n > 0 ? n : 0);
	}
	engine_activate(qp->dev->engine, qp);
}

void qp_set_state(struct qp *qp, uint8_t next)
{
	uint8_t from = qp->state;

	qp->state = next;
	switch (next) {
	case ORNIC_QPS_RESET:
		enter_reset(qp);
		break;
	case ORNIC_QPS_INIT:
		if (from == ORNIC_QPS_RESET)
			quiet_rq(qp);
		break;
	case ORNIC_QPS_RTR:
		if (from == ORNIC_QPS_INIT)
			responder_start(qp);
		break;
	case ORNIC_QPS_RTS:
		if (from != ORNIC_QPS_RTS)
			enter_rts(qp, from);
		break;
	case ORNIC_QPS_SQD:
		if (from != ORNIC_QPS_SQD)
			qp->sqd_raised = false;
		engine_activate(qp->dev->engine, qp);
		break;
	case ORNIC_QPS_SQE:
		qp->flush_sq = qp->sq.present;
		engine_activate(qp->dev->engine, qp);
		break;
	case ORNIC_QPS_ERR:
		if (from != ORNIC_QPS_ERR)
			enter_error(qp);
		break;
	}
}

void qp_fail(struct qp *qp, uint8_t event, uint32_t syndrome, uint32_t wqe_index)
{
	bool *raised;

	if (qp->state == ORNIC_QPS_RESET)
		return;
	if (qp->state != ORNIC_QPS_ERR) {
		qp->syndrome = syndrome;
		qp_set_state(qp, ORNIC_QPS_ERR);
	}
	raised = event == ORNIC_EV_QP_FATAL ? &qp->fatal_raised : &qp->request_raised;
	if (event && !*raised) {
		*raised = true;
		device_event(qp->dev, event, qp->handle, qp->owner, syndrome, qp->state, wqe_index);
	}
}

/* Return the syndrome of a failed CQ or SRQ that @qp uses, or 0. */
static uint32_t failed_queue(const struct qp *qp)
{
	if (qp->scq && qp->scq->error)
		return qp->scq->syndrome;
	if (qp->rcq && qp->rcq->error)
		return qp->rcq->syndrome;
	if (qp->srq && qp->srq->cq && qp->srq->cq->error)
		return qp->srq->cq->syndrome;
	return qp->srq && qp->srq->wq.bad ? qp->srq->syndrome : 0;
}

void qp_stop_users(struct device *dev)
{
	struct qp *qp;

	if (!dev->stopping) {
		dev->failed = false;
		dev->stopping = true;
		dev->stop_at = 0;
	}
	for (int n = 0; n < STOP_BUDGET; n++, dev->stop_at++) {
		uint32_t syndrome;

		qp = table_next(&dev->qps, &dev->stop_at);
		if (!qp) {
			dev->stopping = false;
			return;
		}
		syndrome = failed_queue(qp);
		if (syndrome)
			qp_fail(qp, 0, syndrome, 0);
	}
}

void qp_fail_sends(struct qp *qp, uint32_t syndrome)
{
	if (qp->state != ORNIC_QPS_RTS && qp->state != ORNIC_QPS_SQD)
		return;
	qp->syndrome = syndrome;
	qp_set_state(qp, ORNIC_QPS_SQE);
}

void qp_set_rate(struct qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct engine *e = qp->dev->engine;

	/* e->now may be old: commands run between turns, after a sleep of any length. */
	rate_set(&qp->rate, kbps, burst, packet, qp->dev->port.max_frame, e->clock());
	rate_stop(&qp->rate, &qp->dev->timers);
	engine_activate(e, qp);
}

/* In ERR: complete the receive of the SRQ, then raise LAST_WQE, once (ORN-SRQ-6). */
static void end_shared(struct qp *qp)
{
	return_shared(qp);
	qp->last_wqe = false;
	device_event(qp->dev, ORNIC_EV_LAST_WQE, qp->handle, qp->owner, 0, qp->state, 0);
}

/* In SQD: raise SQ_DRAINED, once, when all started work requests are finished (ORN-QP-16). */
static void qp_drained(struct qp *qp)
{
	if (qp->state != ORNIC_QPS_SQD || qp->req.head != qp->req.tail || qp->flush_sq ||
	    qp->sqd_raised)
		return;
	qp->sqd_raised = true;
	if (qp->sqd_notify)
		device_event(qp->dev, ORNIC_EV_SQ_DRAINED, qp->handle, qp->owner, 0, qp->state, 0);
}

void qp_doorbell(struct qp *qp, bool rq)
{
	if (qp->state == ORNIC_QPS_RESET || !(rq ? qp->rq.present : qp->sq.present))
		return;
	engine_activate(qp->dev->engine, qp);
}

/* Flush the receive in progress, then the posted ones. Return: true if more are left. */
static bool flush_receives(struct qp *qp)
{
	struct rwqe *recv = &qp->resp.recv;

	for (int budget = FLUSH_BUDGET; budget; budget--) {
		struct ornic_cqe cqe = {};

		if (!recv->valid && (qp->rq.bad || rwqe_skip(qp, &recv->index) <= 0))
			return false;
		recv->valid = false;
		complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR, 0, &cqe);
	}
	return true;
}

/*
 * Send answers and requests, which share the rate of the connection. The half that goes first may
 * use up the rate. Then the other half goes first when the rate opens the next time, so that
 * neither one starves. A run that finds the rate closed changes nothing, because packets of the
 * peer cause such runs at any time.
 */
static bool run_reliable(struct qp *qp)
{
	struct engine *e = qp->dev->engine;
	bool requests_first = qp->requests_first, more = false;
	bool open = rate_open(&qp->rate, &qp->dev->timers, e->now);

	if (requests_first)
		more |= requester_run(qp);
	more |= responder_run(qp);
	if (!requests_first)
		more |= requester_run(qp);
	if (open && rate_waits(&qp->rate))
		qp->requests_first = !requests_first;
	return more;
}

static bool run_transport(struct qp *qp)
{
	switch (qp->type) {
	case ORNIC_QPT_RC:
	case ORNIC_QPT_XRC_INI:
	case ORNIC_QPT_XRC_TGT:
		return run_reliable(qp);
	case ORNIC_QPT_UC:
		return uc_run(qp);
	case ORNIC_QPT_UD:
	case ORNIC_QPT_GSI:
		return ud_run(qp);
	case ORNIC_QPT_RAW:
		return raw_run(qp);
	default:
		return false;
	}
}

bool qp_run(struct qp *qp)
{
	bool more = false;

	if (!qp->dev->running)
		return false;
	if (qp->flush_sq)
		more |= flush_sends(qp, FLUSH_BUDGET);
	if (qp->flush_rq)
		more |= flush_receives(qp);
	if (qp->last_wqe)
		end_shared(qp);
	if (!backlog_empty(&qp->backlog))
		more |= ud_catch_up(qp);
	if (qp->state >= ORNIC_QPS_RTR && qp->state <= ORNIC_QPS_SQD && !qp->flush_sq)
		more |= run_transport(qp);
	qp_drained(qp);
	return more;
}

/*
 * Return true if the requester can take a work request from the ring now; otherwise polling is
 * useless.
 */
static bool takes_sends(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	if (rate_waits(&qp->rate))
		return false;
	if (!qp_reliable(qp))
		return true;
	return !timer_armed(&r->rnr_timer) && r->cur == r->tail && r->tail - r->head <= r->mask;
}

/* Return true if the send queue has to be polled. */
static bool watches_sq(const struct qp *qp)
{
	if (!qp->sq.present || qp->sq.bad)
		return false;
	return qp->flush_sq || (qp->state == ORNIC_QPS_RTS && takes_sends(qp));
}

/* Return true if the receive queue has to be polled. */
static bool watches_rq(const struct qp *qp)
{
	return qp->rq.present && !qp->rq.bad && (qp->flush_rq || !backlog_empty(&qp->backlog));
}

bool qp_watchable(const struct qp *qp)
{
	return qp->dev->running && (watches_sq(qp) || watches_rq(qp));
}

bool qp_has_news(struct qp *qp)
{
	return (watches_sq(qp) && wq_pending(qp->dev, &qp->sq)) ||
	       (watches_rq(qp) && wq_pending(qp->dev, &qp->rq));
}

static bool wq_sleep(struct qp *qp, struct wq *wq)
{
	struct ornic_rec *rec = wq_record(qp->dev, wq);

	return rec && ring_sleep(rec, wq->cons);
}

bool qp_sleep(struct qp *qp)
{
	if (watches_sq(qp) && !wq_sleep(qp, &qp->sq))
		return false;
	return !watches_rq(qp) || wq_sleep(qp, &qp->rq);
}
