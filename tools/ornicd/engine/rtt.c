// SPDX-License-Identifier: GPL-2.0
/*
 * RC requester: an estimate of the round trip time, for people to look at.
 *
 * Of far peers only; to those of the same daemon the way and back is within a turn. One packet
 * at a time is timed, never one that was sent twice (Karn's rule), and smoothed as TCP
 * does it (RFC 6298). Times are those of the engine's turns, so the clock is not read for it, and
 * what is measured has the time in it that an answer waits for its turn.
 */
#include "engine.h"
#include "qp.h"

void requester_rtt_start(struct qp *qp)
{
	struct requester *r = &qp->req;

	if (r->rtt_sent)
		return;
	r->rtt_seq = r->sent_psn;
	r->rtt_sent = qp->dev->engine->now;
}

void requester_rtt_end(struct qp *qp)
{
	struct requester *r = &qp->req;
	uint64_t rtt = qp->dev->engine->now - r->rtt_sent;

	if (seq_diff(r->una, r->rtt_seq) < 0)
		return;
	r->rtt = r->rtt ? r->rtt - r->rtt / 8 + rtt / 8 : rtt;
	r->rtt_sent = 0;
}
