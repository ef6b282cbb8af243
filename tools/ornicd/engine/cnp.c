// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion notification packets (IBTA annex A17.9.3), sent and received.
 *
 * A CNP goes to the queue pair that sent a marked packet, a request or a response. At most one is
 * sent per np_min_time_between_cnps, because the rate needs that time to change. A CNP has no PSN.
 * Only its addresses can be checked; a forged CNP lowers the rate of a connection for a moment.
 */
#include "cc.h"

#include "engine.h"
#include "link.h"
#include "qp.h"
#include "../packet/ecn.h"

#define DSCP_SHIFT	2

/* Return true if the queue pair is in a state that sends or answers. */
static bool is_alive(const struct qp *qp)
{
	return qp->state >= ORNIC_QPS_RTR && qp->state != ORNIC_QPS_ERR;
}

static bool cnp_send(struct qp *qp)
{
	struct engine *e = qp->dev->engine;
	uint32_t syndrome;
	struct packet *p = link_packet(qp, &qp->path, &syndrome);

	if (!p)
		return false;
	p->opcode = BTH_CNP;
	p->tclass = e->cc.v[CC_np_cnp_dscp] << DSCP_SHIFT | ECN_NOT_ECT;
	p->dqpn = qp->dest_qpn;
	link_send(qp, p);
	return true;
}

void cnp_notify(struct qp *qp, const struct packet *p)
{
	struct engine *e = qp->dev->engine;
	uint64_t pause = e->cc.v[CC_np_min_time_between_cnps] * 1000ull;

	qp_count(qp, CNT_ecn_marked, p->npsn);
	if (!e->cc.on || !qp_connected(qp) || !is_alive(qp))
		return;
	if (qp->cc.cnp_at && e->now < qp->cc.cnp_at + pause)
		return;
	if (!cnp_send(qp))
		return;
	/* Do not use e->now, the start of the turn: the next CNP could be too soon after this one. */
	qp->cc.cnp_at = e->clock();
	qp_count(qp, CNT_cnp_sent, 1);
}

/* Apply the current rate of @qp to its pacing, 0 if unlimited. */
static void apply(struct qp *qp)
{
	struct engine *e = qp->dev->engine;

	rate_pace(&qp->rate, qp->cc.limiting ? qp->cc.rate : 0, e->now,
		  dcqcn_next(&qp->cc, &e->cc));
}

void cnp_receive(struct qp *qp)
{
	struct engine *e = qp->dev->engine;

	qp_count(qp, CNT_cnp_received, 1);
	if (!e->cc.on || !qp_connected(qp) || !is_alive(qp) ||
	    !dcqcn_cnp(&qp->cc, &e->cc, e->now)) {
		qp_count(qp, CNT_cnp_ignored, 1);
		return;
	}
	apply(qp);
}

/*
 * A wait ended if there are no bytes. Compute the next end of a wait even if the timer has not
 * expired, because rp_time_reset may have been raised: the old end would wake the queue pair in
 * each turn.
 */
void cc_sent(struct qp *qp, uint32_t bytes)
{
	struct engine *e = qp->dev->engine;

	if (dcqcn_advance(&qp->cc, &e->cc, bytes, e->now) || !bytes)
		apply(qp);
}

/* Queue pairs that a CNP limited keep their current rate. */
void cc_changed(struct engine *e)
{
	uint64_t now = e->clock();	/* e->now may be old between turns */
	struct device *dev;
	struct qp *qp;

	TAILQ_FOREACH(dev, &e->devices, link)
		for (uint32_t n = 0; (qp = table_next(&dev->qps, &n)); n++)
			if (qp->rate.remote)
				rate_remote(&qp->rate, true, cc_max_kbps(&e->cc), now);
}

void cc_reset(struct qp *qp)
{
	uint64_t now = qp->dev->engine->clock();	/* engine->now may be old between turns */

	qp->cc = (struct cc) {};
	rate_pace(&qp->rate, 0, now, 0);
	rate_remote(&qp->rate, false, 0, now);
}
