// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queue commands.
 */
#include "command.h"

#include "../engine/eq.h"
#include "../engine/srq.h"
#include "../engine/xrc.h"
#include "../mem/gpa.h"

#include <ornic/srq.h>
#include <stdlib.h>

struct srq *srq_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->srqs, number);
}

static uint8_t srq_check_type(struct command *c, const struct ornic_srq_create_cmd *in)
{
	uint8_t st;

	if (in->type == ORNIC_SRQT_XRC)
		return command_need(c, ORNIC_FEATURE(XRC), &in->type);
	if (in->type != ORNIC_SRQT_BASIC)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->type);
	st = command_need(c, ORNIC_FEATURE(SRQ), &in->type);
	st = st ?: COMMAND_ZERO(c, in->xrcd);
	return st ?: COMMAND_ZERO(c, in->cq);
}

static uint8_t srq_check_limit(struct command *c, const __le32 *limit, uint8_t log)
{
	return le32toh(*limit) > 1u << log ? command_reject(c, ORNIC_ST_BAD_PARAM, limit) :
					     ORNIC_ST_OK;
}

static uint8_t srq_check_ring(struct command *c, const struct ornic_srq_create_cmd *in)
{
	if (in->log_entries > LIMIT_LOG_SRQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_entries);
	if (in->stride < ORNIC_RQ_MIN_STRIDE)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->stride);
	if (in->stride > ORNIC_RQ_MAX_STRIDE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->stride);
	if (le16toh(in->max_sge) > LIMIT_RECV_SGE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->max_sge);
	return srq_check_limit(c, &in->limit, in->log_entries);
}

static uint8_t srq_check(struct command *c, const struct ornic_srq_create_cmd *in)
{
	uint8_t st = srq_check_type(c, in);

	if (!st && in->flags & ~ORNIC_SRQ_F_PRIVILEGED)
		st = command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	st = st ?: srq_check_ring(c, in);
	st = st ?: COMMAND_ZERO(c, in->mbz0);
	st = st ?: COMMAND_ZERO(c, in->want);
	return st ?: COMMAND_ZERO(c, in->mbz1);
}

static void srq_attributes(struct device *dev, const struct ornic_srq_create_cmd *in,
			   struct srq *srq)
{
	srq->dev = dev;
	srq->type = in->type;
	srq->privileged = in->flags & ORNIC_SRQ_F_PRIVILEGED;
	srq->owner = le32toh(in->owner);
	srq->wq.log = in->log_entries;
	srq->wq.stride = in->stride;
	srq->wq.max_sge = le16toh(in->max_sge);
	srq->attr = *in;
}

static uint8_t srq_references(struct command *c, const struct ornic_srq_create_cmd *in,
			      struct srq *srq)
{
	srq->pd = pd_get(c->dev, le32toh(in->pd));
	if (!srq->pd)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->pd);
	if (srq->type != ORNIC_SRQT_XRC)
		return ORNIC_ST_OK;
	srq->xrcd = xrcd_get(c->dev, le32toh(in->xrcd));
	if (!srq->xrcd)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->xrcd);
	srq->cq = table_get(&c->dev->cqs, le32toh(in->cq));
	return srq->cq ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, &in->cq);
}

static void srq_hold(struct srq *srq, int n)
{
	srq->pd->users += n;
	if (srq->xrcd)
		srq->xrcd->users += n;
	if (srq->cq)
		srq->cq->users += n;
}

/* Look up the references of the SRQ, load its ring, number it and start it. */
static uint8_t srq_setup(struct command *c, const struct ornic_srq_create_cmd *in,
			 struct srq *srq)
{
	uint8_t st;

	srq_attributes(c->dev, in, srq);
	st = srq_references(c, in, srq);
	st = st ?: command_dbpage(c, &in->dbpage, &srq->dbpage);
	st = st ?: command_record(c, &in->record, &srq->wq.rec);
	st = st ?: command_ring(c, &in->pages, srq->wq.log, srq->wq.stride, false, &srq->wq.mem);
	if (st)
		return st;
	st = command_number(c, &c->dev->srqs, srq);
	if (st) {
		umem_free(&srq->wq.mem, &c->dev->lists);
		return st;
	}
	srq->number = c->number;
	srq_hold(srq, 1);
	srq_init(srq);
	srq_arm(srq, le32toh(in->limit));
	return ORNIC_ST_OK;
}

uint8_t cmd_srq_create(struct command *c)
{
	const struct ornic_srq_create_cmd *in = c->in;
	uint8_t st = srq_check(c, in);
	struct srq *srq;

	if (st)
		return st;
	srq = account_alloc(&c->dev->account, sizeof(*srq));
	if (!srq)
		return ORNIC_ST_NO_RESOURCE;
	st = srq_setup(c, in, srq);
	if (st)
		account_free(&c->dev->account, srq, sizeof(*srq));
	return st;
}

uint8_t cmd_srq_modify(struct command *c)
{
	const struct ornic_srq_modify_cmd *in = c->in;
	struct srq *srq = srq_get(c->dev, c->number);
	uint32_t mask = le32toh(in->mask);
	uint8_t st;

	if (!srq)
		return ORNIC_ST_BAD_NUMBER;
	if (mask & ~ORNIC_SRQM_LIMIT)
		return command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	st = COMMAND_ZERO(c, in->mbz);
	if (!st && mask & ORNIC_SRQM_LIMIT)
		st = srq_check_limit(c, &in->limit, srq->wq.log);
	if (!st && mask & ORNIC_SRQM_LIMIT)
		srq_arm(srq, le32toh(in->limit));
	return st;
}

static uint8_t srq_check_resize(struct command *c, const struct ornic_srq_resize_cmd *in,
				const struct srq *srq)
{
	bool limit = in->flags & ORNIC_SRQ_RESIZE_LIMIT;
	uint8_t st;

	if (in->log_entries > LIMIT_LOG_SRQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_entries);
	if (in->flags & ~ORNIC_SRQ_RESIZE_LIMIT)
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	st = COMMAND_ZERO(c, in->mbz);
	if (!st && !limit)
		st = COMMAND_ZERO(c, in->limit);
	if (!st && limit)
		st = srq_check_limit(c, &in->limit, in->log_entries);
	if (!st && !limit && srq->limit > 1u << in->log_entries)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->log_entries);
	return st;
}

uint8_t cmd_srq_resize(struct command *c)
{
	const struct ornic_srq_resize_cmd *in = c->in;
	struct srq *srq = srq_get(c->dev, c->number);
	struct ring_place to = { .log = in->log_entries };
	uint8_t st;

	st = command_need(c, ORNIC_FEATURE(SRQ_RESIZE), in);
	if (st)
		return st;
	if (!srq)
		return ORNIC_ST_BAD_NUMBER;
	st = srq_check_resize(c, in, srq);
	st = st ?: command_record(c, &in->record, &to.rec);
	st = st ?: command_ring(c, &in->pages, to.log, srq->wq.stride, false, &to.mem);
	if (st)
		return st;
	st = srq_resize(srq, &to);
	umem_free(&to.mem, &c->dev->lists);
	if (st == ORNIC_ST_BAD_PARAM)
		return command_reject(c, st, &in->log_entries);
	if (st)
		return st;
	srq->attr.log_entries = in->log_entries;
	srq->attr.record = in->record;
	srq->attr.pages = in->pages;
	if (in->flags & ORNIC_SRQ_RESIZE_LIMIT)
		srq_arm(srq, le32toh(in->limit));
	return ORNIC_ST_OK;
}

uint8_t cmd_srq_query(struct command *c)
{
	struct ornic_srq_query_rsp *out = c->out;
	const struct srq *srq = srq_get(c->dev, c->number);
	const struct ornic_rec *rec;

	if (!srq)
		return ORNIC_ST_BAD_NUMBER;
	rec = wq_record(c->dev, &srq->wq);
	out->attr = srq->attr;
	out->attr.limit = htole32(srq->limit);
	out->state.producer = htole32(rec ? ring_host_index(rec) : srq->wq.cons);
	out->state.consumer = htole32(srq->wq.cons);
	out->state.state = htole32((srq->wq.bad ? ORNIC_RING_ERROR : 0) |
				   (srq->limit ? ORNIC_RING_ARMED : 0));
	out->state.syndrome = htole32(srq->syndrome);
	return ORNIC_ST_OK;
}

void srq_release(struct device *dev, uint32_t number, void *obj)
{
	struct srq *srq = obj;

	if (srq->xrcd)
		xrc_forget(srq, UINT32_MAX);
	srq_hold(srq, -1);
	table_del(&dev->srqs, number);
	umem_free(&srq->wq.mem, &dev->lists);
	account_free(&dev->account, srq, sizeof(*srq));
}

/* Queue pairs that are visited in one iteration when an XRC SRQ is destroyed */
#define FORGET_WORK	256

/* Let the targets of XRC forget the SRQ. Return: false if some are left for the next iteration. */
static bool srq_forget(struct command *c, struct srq *srq)
{
	if (!srq->xrcd)
		return true;
	progress_charge(c->f, PROGRESS_WORK);
	return xrc_forget(srq, FORGET_WORK);
}

uint8_t cmd_srq_destroy(struct command *c)
{
	struct srq *srq = srq_get(c->dev, c->number);

	if (!srq)
		return ORNIC_ST_BAD_NUMBER;
	if (srq->users)
		return ORNIC_ST_BUSY;
	if (!srq_forget(c, srq))
		return COMMAND_MORE;
	srq_release(c->dev, c->number, srq);
	device_forget_events(c->dev, EVENTS_SRQ, c->number);
	return ORNIC_ST_OK;
}
