// SPDX-License-Identifier: GPL-2.0
/*
 * XRC targets: choose the SRQ that a request names.
 */
#include "xrc.h"

#include "qp.h"
#include "srq.h"

bool xrc_select(struct qp *qp, const struct packet *p, bool first)
{
	struct srq *srq = table_get(&qp->dev->srqs, p->srqn);

	if (!srq || srq->type != ORNIC_SRQT_XRC || srq->xrcd != qp->xrcd || srq->cq->error ||
	    srq->going)
		return false;
	if (!first)
		return srq == qp->srq;
	qp->srq = srq;
	return true;
}

/*
 * Take the protection domain from stored requests that named SRQ @srqn, so that a repeated READ is
 * rejected. Another SRQ may have the same domain; its requests stay.
 */
static void forget_answers(struct responder *r, uint32_t srqn)
{
	for (uint32_t i = r->rd_first; i != r->rd_next; i++)
		if (responder_rd(r, i)->srqn == srqn)
			responder_rd(r, i)->pd = 0;
}

bool xrc_forget(struct srq *srq, uint32_t n)
{
	struct qp *qp;

	srq->going = true;
	for (; (qp = table_next(&srq->dev->qps, &srq->forgot)); srq->forgot++) {
		if (!n--)
			return false;
		if (qp->type != ORNIC_QPT_XRC_TGT || qp->xrcd != srq->xrcd)
			continue;
		forget_answers(&qp->resp, srq->number);
		if (qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->resp.recv.valid = false;
		qp->resp.message = RESP_IDLE;
	}
	return true;
}
