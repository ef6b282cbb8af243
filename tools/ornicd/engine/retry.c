// SPDX-License-Identifier: GPL-2.0
/*
 * RC requester: timeouts, RNR waits and retransmission (IBTA volume 1, 9.7.5, 9.7.8).
 *
 * The ACK timer is lazy: progress only moves the deadline, and a timer that fires before the
 * deadline is armed again. So a queue pair with steady traffic changes the timer heap once per
 * timeout, not once per packet.
 */
#include "engine.h"
#include "qp.h"

/* RNR NAK timer codes in units of 10 us (IBTA volume 1, table 45). */
static const uint32_t rnr_units[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

#define RNR_UNIT_NS	10000u
#define RNR_INFINITE	7

/* Return the local ACK timeout in ns, 4.096 us * 2^code; 0 = none. */
static uint64_t ack_timeout(const struct qp *qp)
{
	return qp->timeout ? 4096ull << qp->timeout : 0;
}

/*
 * Return the deadline of a timeout that starts now. Packets to a remote peer may get lost, and a
 * turn may take as long as many packets. Its start would be too early, so read the clock.
 */
static uint64_t deadline(const struct qp *qp)
{
	const struct engine *e = qp->dev->engine;

	return (qp->req.remote ? e->clock() : e->now) + ack_timeout(qp);
}

static bool in_flight(const struct requester *r)
{
	return r->una != r->sent_psn;
}

/*
 * Find the work request of @seq, or @cur. Return: true if a packet from @seq on was sent since the
 * last rewind.
 */
static bool is_sent(const struct requester *r, uint32_t seq, uint32_t *at)
{
	const struct wqe *w;

	for (*at = r->head; *at != r->cur; (*at)++)
		if (seq_diff(seq, wqe_end(requester_wqe(r, *at))) < 0)
			return true;
	if (r->cur == r->tail)
		return false;
	w = requester_wqe(r, r->cur);
	return w->sent && (wqe_is_read(w) || seq_diff(w->psn + w->sent, seq) > 0);
}

/* Use one retry: retransmit everything that is not acknowledged, or fail if none is left. */
static void go_back(struct qp *qp, uint32_t syndrome)
{
	struct requester *r = &qp->req;

	if (!r->retry_left) {
		requester_fail(qp, ORNIC_WC_RETRY_EXC_ERR, syndrome);
		return;
	}
	r->retry_left--;
	r->went_back = true;
	requester_rewind(qp, r->una);
}

static void ack_timer_fired(void *arg)
{
	struct qp *qp = arg;
	struct requester *r = &qp->req;
	struct engine *e = qp->dev->engine;
	uint32_t i;

	if (!in_flight(r) || timer_armed(&r->rnr_timer) || !ack_timeout(qp))
		return;
	if (!qp->dev->running || !is_sent(r, r->una, &i))
		r->deadline = deadline(qp);
	if (e->now < r->deadline) {
		timer_arm(&qp->dev->timers, &r->ack_timer, r->deadline);
		return;
	}
	qp_count(qp, CNT_ack_timeouts, 1);
	go_back(qp, ORNIC_SYN_WIRE | ORNIC_SYN_WIRE_TIMEOUT);
}

static void rnr_timer_fired(void *arg)
{
	struct qp *qp = arg;

	engine_activate(qp->dev->engine, qp);
}

void requester_timers_init(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->ack_timer = (struct timer) { .fn = ack_timer_fired, .arg = qp };
	r->rnr_timer = (struct timer) { .fn = rnr_timer_fired, .arg = qp };
}

void requester_sending(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->rnr_nak = false;
	if (!ack_timeout(qp))
		return;
	if (!in_flight(r) || !timer_armed(&r->ack_timer) || r->rewound)
		r->deadline = deadline(qp);
	r->rewound = false;
	if (!timer_armed(&r->ack_timer))
		timer_arm(&qp->dev->timers, &r->ack_timer, r->deadline);
}

void requester_progress(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->retry_left = qp->retry_cnt;
	r->rnr_left = qp->rnr_retry;
	r->went_back = false;
	r->rnr_nak = false;
	r->deadline = deadline(qp);
}

/* Prepare @w for retransmission from @seq on. */
static void wqe_rewind(struct requester *r, struct wqe *w, uint32_t seq)
{
	if (wqe_is_read(w)) {
		if (w->sent && !w->done)
			r->reads--;
		w->sent = w->done ? w->npsn : 0;
	} else if (seq_diff(seq, w->psn) > 0) {
		w->sent = seq - w->psn;
	} else {
		w->sent = 0;
	}
}

void requester_rewind(struct qp *qp, uint32_t seq)
{
	struct requester *r = &qp->req;
	uint32_t i;

	if (!is_sent(r, seq, &i))
		return;
	qp_count(qp, CNT_retransmits, r->sent_psn - seq);
	r->retransmits += r->sent_psn - seq;
	r->rtt_sent = 0;	/* an ACK could be for either transmission */
	r->rewound = true;
	for (uint32_t j = i; j != r->cur + (r->cur != r->tail); j++)
		wqe_rewind(r, requester_wqe(r, j), seq);
	r->cur = i;
	engine_activate(qp->dev->engine, qp);
}

/* Ignore the report of a loss whose retransmission is already due. */
void requester_retry(struct qp *qp, uint32_t syndrome)
{
	uint32_t i;

	if (!qp->req.went_back && is_sent(&qp->req, qp->req.una, &i))
		go_back(qp, syndrome);
}

void requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer)
{
	struct requester *r = &qp->req;
	struct engine *e = qp->dev->engine;

	/* A duplicate RNR NAK: the timer of the first one already runs or has expired. */
	if (r->rnr_nak)
		return;
	r->rnr_nak = true;
	qp_count(qp, CNT_rnr_naks_received, 1);
	if (qp->rnr_retry != RNR_INFINITE) {
		if (!r->rnr_left) {
			requester_fail(qp, ORNIC_WC_RNR_RETRY_EXC_ERR,
				       ORNIC_SYN_WIRE | ORNIC_SYN_WIRE_RNR);
			return;
		}
		r->rnr_left--;
	}
	requester_rewind(qp, seq);
	timer_arm(&qp->dev->timers, &r->rnr_timer,
		  e->now + (uint64_t)rnr_units[timer & AETH_VALUE_MASK] * RNR_UNIT_NS);
}
