// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: taking entries, the limit, failure.
 */
#include "srq.h"

#include "engine.h"
#include "qp.h"

#include <errno.h>

void srq_init(struct srq *srq)
{
	struct ornic_rec *rec = wq_record(srq->dev, &srq->wq);

	srq->wq.present = true;
	if (rec)
		ring_quiet(rec, srq->wq.cons);
}

/* The ring is unusable: tell its owner, and stop whoever would need it (ORN-SRQ-7). */
static void srq_fail(struct srq *srq, uint32_t syndrome)
{
	struct device *dev = srq->dev;
	struct qp *qp;

	srq->wq.bad = true;
	srq->syndrome = syndrome;
	device_event(dev, ORNIC_EV_SRQ_ERR, srq->number, srq->owner, syndrome, 0, 0);
	for (uint32_t n = 0; (qp = table_next(&dev->qps, &n)); n++)
		if (qp->srq == srq)
			qp_fail(qp, 0, syndrome, 0);
}

/* @left entries are posted: tell once if that is too few (ORN-SRQ-5). */
static void srq_check_limit(struct srq *srq, int64_t left)
{
	if (left >= srq->limit)
		return;
	srq->limit = 0;
	device_event(srq->dev, ORNIC_EV_SRQ_LIMIT, srq->number, srq->owner, 0, 0, 0);
}

int srq_take(struct srq *srq, uint8_t *bytes)
{
	int64_t n;

	if (srq->wq.bad)
		return -EIO;
	n = wq_copy(srq->dev, &srq->wq, bytes, 1ull << srq->wq.stride);
	if (n < 0) {
		srq_fail(srq, wq_syndrome(n));
		return -EIO;
	}
	if (!n)
		return 0;
	srq->wq.cons++;
	srq_check_limit(srq, n - 1);
	return 1;
}

void srq_arm(struct srq *srq, uint32_t limit)
{
	int64_t n = srq->wq.bad ? -EIO : wq_pending(srq->dev, &srq->wq);

	srq->limit = limit;
	if (n >= 0)
		srq_check_limit(srq, n);
}
