// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells: find the ring, and check that this page may ring it. The index in the value is a
 * hint and ignored, because the doorbell record in memory is authoritative (ORN-DB-2).
 *
 * A process can store any value at any rate. A doorbell therefore costs one look-up and marks
 * at most one queue for the next iteration of the engine.
 */
#include "doorbell.h"

#include "function.h"

#include "../engine/cq.h"
#include "../engine/engine.h"
#include "../engine/eq.h"
#include "../engine/qp.h"
#include "../engine/srq.h"

/* Objects whose doorbells doorbell_some() rings */
#define RING_WORK	128

/* Least time between two DB_REJECTED events */
#define DB_QUIET_NS	1000000000ull

static bool ring_wq(struct device *dev, uint32_t page, uint32_t number, bool rq)
{
	struct qp *qp = table_get(&dev->qps, number);

	if (!qp || qp->dbpage != page || !(rq ? qp->rq.present : qp->sq.present))
		return false;
	qp_doorbell(qp, rq);
	return true;
}

/* Check the doorbell only: an SRQ is read when a message arrives. */
static bool ring_srq(struct device *dev, uint32_t page, uint32_t number)
{
	const struct srq *srq = table_get(&dev->srqs, number);

	return srq && srq->dbpage == page;
}

static bool ring_cq(struct device *dev, uint32_t page, uint32_t number)
{
	struct cq *cq = table_get(&dev->cqs, number);

	if (!cq || cq->dbpage != page)
		return false;
	cq_doorbell(cq);
	return true;
}

static bool ring_eq(struct device *dev, uint32_t page, uint32_t number)
{
	struct eq *eq = table_get(&dev->eqs, number);

	if (!eq || page)
		return false;
	eq_doorbell(eq);
	return true;
}

static bool ring_admin(struct function *f, uint32_t page, uint32_t number)
{
	if (page || number > ORNIC_DB_ACQ)
		return false;
	admin_doorbell(&f->admin, number);
	return true;
}

static bool doorbell_ring(struct function *f, uint32_t page, uint64_t val)
{
	uint32_t number = val & ORNIC_DB_NUMBER_MASK;

	if (val & ORNIC_DB_MBZ)
		return false;
	switch (val >> ORNIC_DB_KIND_SHIFT & ORNIC_DB_KIND_MASK) {
	case ORNIC_DB_SQ:
		return ring_wq(&f->dev, page, number, false);
	case ORNIC_DB_RQ:
		return ring_wq(&f->dev, page, number, true);
	case ORNIC_DB_SRQ:
		return ring_srq(&f->dev, page, number);
	case ORNIC_DB_CQ_ARM:
		return ring_cq(&f->dev, page, number);
	case ORNIC_DB_EQ_ARM:
		return ring_eq(&f->dev, page, number);
	case ORNIC_DB_ADMIN:
		return ring_admin(f, page, number);
	default:
		return false;
	}
}

/* Count a rejected doorbell and report its page, at most once per second (ORN-EQ-17). */
static void doorbell_reject(struct function *f, uint32_t page)
{
	uint64_t now = f->dev.engine->clock();

	device_count(&f->dev, CNT_db_rejected, 1);
	if (now < f->db_quiet)
		return;
	f->db_quiet = now + DB_QUIET_NS;
	device_event(&f->dev, ORNIC_EV_DB_REJECTED, page, 0, 0, f->dev.cnt[CNT_db_rejected], 0);
}

void doorbell_write(struct function *f, uint64_t off, unsigned int len, uint64_t val)
{
	uint32_t log = function_stride_log(f);

	if (!f->dev.running || (off & ((1ull << log) - 1)) >= ORNIC_DB_REG + sizeof(uint64_t))
		return;
	if (len == sizeof(uint64_t) && doorbell_ring(f, off >> log, val))
		device_count(&f->dev, CNT_doorbells, 1);
	else
		doorbell_reject(f, off >> log);
}

/* Also one without rings: an answer, or LAST_WQE of an SRQ, may be due (ORN-PCI-4). */
static void ring_any_qp(struct device *dev, uint32_t number, void *obj)
{
	struct qp *qp = obj;

	(void)number;
	if (qp->state != ORNIC_QPS_RESET)
		engine_activate(dev->engine, qp);
}

static void ring_any_cq(struct device *dev, uint32_t number, void *cq)
{
	(void)dev;
	(void)number;
	cq_doorbell(cq);
}

static void ring_any_eq(struct device *dev, uint32_t number, void *eq)
{
	(void)dev;
	(void)number;
	eq_doorbell(eq);
}

static const struct walk_step all[] = {
	{ offsetof(struct device, qps), ring_any_qp },
	{ offsetof(struct device, cqs), ring_any_cq },
	{ offsetof(struct device, eqs), ring_any_eq },
};

void doorbell_some(struct function *f)
{
	f->ringing = !walk_run(&f->ring, &f->dev, all, sizeof(all) / sizeof(all[0]), RING_WORK);
}

void doorbell_all(struct function *f)
{
	f->ring = (struct walk){ 0 };
	f->ringing = true;
	admin_doorbell(&f->admin, ORNIC_DB_ASQ);
}
