// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: take entries, check the limit, fail.
 */
#include "srq.h"

#include "engine.h"
#include "../mem/gpa.h"

#include <errno.h>
#include <ornic/admin.h>

void srq_init(struct srq *srq)
{
	struct ornic_rec *rec = wq_record(srq->dev, &srq->wq);

	if (rec)
		ring_quiet(rec, srq->wq.cons);
}

/* Fail because of an unusable ring: raise an event; qp_stop_users() follows (ORN-SRQ-7). */
static void srq_fail(struct srq *srq, uint32_t syndrome)
{
	srq->wq.bad = true;
	srq->syndrome = syndrome;
	srq->dev->failed = true;
	device_event(srq->dev, ORNIC_EV_SRQ_ERR, srq->number, srq->owner, syndrome, 0, 0);
}

/* Raise SRQ_LIMIT, once, if only @left entries are posted and that is too few (ORN-SRQ-5). */
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

/*
 * The host keeps the old and the new ring and record identical (ORN-SRQ-17, 18). So the device
 * copies nothing and need not read the old record.
 */
uint8_t srq_resize(struct srq *srq, struct ring_place *to)
{
	struct ornic_rec *rec = gpa_ptr(srq->dev->gpa, to->rec, sizeof(*rec), true);
	struct ring_place old = { .log = srq->wq.log, .mem = srq->wq.mem, .rec = srq->wq.rec };

	if (srq->wq.bad)
		return ORNIC_ST_BAD_STATE;
	if (!rec)
		return ORNIC_ST_DMA_ERROR;
	if (ring_host_index(rec) - srq->wq.cons > 1u << to->log)
		return ORNIC_ST_BAD_PARAM;
	srq->wq.log = to->log;
	srq->wq.mem = to->mem;
	srq->wq.rec = to->rec;
	*to = old;
	ring_quiet(rec, srq->wq.cons);
	return ORNIC_ST_OK;
}

void srq_arm(struct srq *srq, uint32_t limit)
{
	int64_t n = srq->wq.bad ? -EIO : wq_pending(srq->dev, &srq->wq);

	srq->limit = limit;
	if (n >= 0)
		srq_check_limit(srq, n);
}
