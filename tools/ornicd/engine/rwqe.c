// SPDX-License-Identifier: GPL-2.0
/*
 * Fetch and check receive work requests, from the receive queue of a queue pair or from its SRQ.
 *
 * An entry is copied once, then checked in the copy (ORN-RNG-3).
 */
#include "rwqe.h"

#include "qp.h"
#include "srq.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Fail because of an unusable ring. Only the event reports it, no completion (ORN-RNG-8). */
static int rq_broken(struct qp *qp, int64_t error)
{
	qp->rq.bad = true;
	qp_fail(qp, ORNIC_EV_QP_FATAL, wq_syndrome(error), qp->rq.cons);
	return -EIO;
}

static int rq_take(struct qp *qp, uint8_t *bytes)
{
	int64_t n;

	if (!qp->rq.present)
		return 0;
	n = wq_copy(qp->dev, &qp->rq, bytes, 1ull << qp->rq.stride);
	if (n < 0)
		return rq_broken(qp, n);
	if (!n)
		return 0;
	qp->rq.cons++;
	return 1;
}

/* Check a receive: zeros, index (RQ) and SGE count. Return: 0 or the syndrome. */
static uint32_t rwqe_decode(const struct wq *wq, bool shared, struct rwqe *r,
			    const uint8_t *bytes)
{
	const struct ornic_rwqe *h = (const void *)bytes;
	uint16_t count = le16toh(h->count);

	r->index = shared ? le32toh(h->id) : wq->cons - 1;
	if (h->mbz0 || h->mbz1)
		return ORNIC_SYN_WQE_MBZ;
	if (le32toh(h->id) != r->index)
		return ORNIC_SYN_WQE_STALE;
	if (sizeof(*h) + count * sizeof(r->sge[0]) > 1u << wq->stride)
		return ORNIC_SYN_WQE_SEGMENT;
	if (count > wq->max_sge || count > RWQE_MAX_SGE)
		return ORNIC_SYN_WQE_COUNT;
	memcpy(r->sge, bytes + sizeof(*h), count * sizeof(r->sge[0]));
	r->nsge = count;
	r->len = 0;
	for (uint32_t i = 0; i < count; i++)
		r->len += le32toh(r->sge[i].length);
	return 0;
}

int rwqe_fetch(struct qp *qp, struct rwqe *r)
{
	uint8_t bytes[WQE_MAX_BYTES] __attribute__((aligned(16)));
	struct ornic_cqe cqe = {};
	uint32_t syndrome;
	int ret = qp->srq ? srq_take(qp->srq, bytes) : rq_take(qp, bytes);

	if (ret < 0 && qp->srq)
		qp_fail(qp, 0, qp->srq->syndrome, 0);
	if (ret <= 0)
		return ret;
	syndrome = rwqe_decode(qp->srq ? &qp->srq->wq : &qp->rq, qp->srq, r, bytes);
	if (syndrome) {
		qp_count(qp, CNT_wqe_errors, 1);
		complete_recv(qp, r->index, ORNIC_WC_RECV, ORNIC_WC_LOC_QP_OP_ERR, syndrome, &cqe);
		qp_fail(qp, 0, syndrome, r->index);
		return -EINVAL;
	}
	r->valid = true;
	return 1;
}

int rwqe_skip(struct qp *qp, uint32_t *index)
{
	int64_t n = wq_pending(qp->dev, &qp->rq);

	if (n < 0)
		return rq_broken(qp, n);
	if (!n)
		return 0;
	*index = qp->rq.cons++;
	return 1;
}
