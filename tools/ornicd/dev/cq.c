// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queue commands.
 */
#include "command.h"

#include "../engine/cq.h"
#include "../engine/eq.h"
#include "../mem/gpa.h"

#include <ornic/cq.h>
#include <stdlib.h>

#define CQ_ENTRY_LOG	6
#define CQ_FLAGS	(ORNIC_CQ_F_IGNORE_OVERRUN | ORNIC_CQ_F_TIMESTAMP)

static struct cq *cq_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->cqs, number);
}

/* Return the completion EQ that a field names, or NULL. */
static struct eq *cq_target(struct command *c, const __le32 *field)
{
	struct eq *eq = table_get(&c->dev->eqs, le32toh(*field));

	return eq && eq->classes & ORNIC_EQ_COMPLETION ? eq : NULL;
}

static uint8_t cq_moderation(struct command *c, const __le16 *count, const __le16 *period)
{
	if (le16toh(*count) > LIMIT_MOD_COUNT)
		return command_reject(c, ORNIC_ST_LIMIT, count);
	if (le16toh(*period) > LIMIT_MOD_PERIOD_US)
		return command_reject(c, ORNIC_ST_LIMIT, period);
	return *count || *period ? command_need(c, ORNIC_FEATURE(CQ_MODERATION), count) :
				   ORNIC_ST_OK;
}

static uint8_t cq_check_flags(struct command *c, const struct ornic_cq_create_cmd *in)
{
	uint8_t st = ORNIC_ST_OK;

	if (in->flags & ~CQ_FLAGS)
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	if (in->flags & ORNIC_CQ_F_IGNORE_OVERRUN)
		st = command_need(c, ORNIC_FEATURE(CQ_IGNORE_OVERRUN), &in->flags);
	if (!st && in->flags & ORNIC_CQ_F_TIMESTAMP)
		st = command_need(c, ORNIC_FEATURE(TIMESTAMP), &in->flags);
	return st;
}

static uint8_t cq_check(struct command *c, const struct ornic_cq_create_cmd *in)
{
	uint8_t st;

	if (in->log_entries > LIMIT_LOG_CQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_entries);
	st = cq_check_flags(c, in);
	st = st ?: COMMAND_ZERO(c, in->mbz0);
	if (!st && !cq_target(c, &in->eq))
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->eq);
	st = st ?: COMMAND_ZERO(c, in->want);
	st = st ?: cq_moderation(c, &in->mod_count, &in->mod_period_us);
	return st ?: COMMAND_ZERO(c, in->mbz1);
}

static uint8_t cq_setup(struct command *c, const struct ornic_cq_create_cmd *in, struct cq *cq)
{
	uint8_t st;

	cq->dev = c->dev;
	cq->flags = in->flags;
	cq->log = in->log_entries;
	cq->owner = le32toh(in->owner);
	cq->eq = cq_target(c, &in->eq);
	cq->mod_count = le16toh(in->mod_count);
	cq->mod_period_us = le16toh(in->mod_period_us);
	cq->attr = *in;
	st = command_dbpage(c, &in->dbpage, &cq->dbpage);
	st = st ?: command_record(c, &in->record, &cq->rec);
	st = st ?: command_ring(c, &in->pages, cq->log, CQ_ENTRY_LOG, true, &cq->mem);
	if (st)
		return st;
	st = command_number(c, &c->dev->cqs, cq);
	if (st)
		goto free_mem;
	cq->number = c->number;
	st = cq_init(cq);
	if (!st) {
		cq->eq->users++;
		return ORNIC_ST_OK;
	}
	table_del(&c->dev->cqs, cq->number);
free_mem:
	umem_free(&cq->mem, &c->dev->lists);
	return st;
}

uint8_t cmd_cq_create(struct command *c)
{
	const struct ornic_cq_create_cmd *in = c->in;
	uint8_t st = cq_check(c, in);
	struct cq *cq;

	if (st)
		return st;
	cq = account_alloc(&c->dev->account, sizeof(*cq));
	if (!cq)
		return ORNIC_ST_NO_RESOURCE;
	st = cq_setup(c, in, cq);
	if (st)
		account_free(&c->dev->account, cq, sizeof(*cq));
	return st;
}

uint8_t cmd_cq_modify(struct command *c)
{
	const struct ornic_moderate_cmd *in = c->in;
	struct cq *cq = cq_get(c->dev, c->number);
	uint32_t mask = le32toh(in->mask);
	struct eq *eq = NULL;
	uint8_t st;

	if (!cq)
		return ORNIC_ST_BAD_NUMBER;
	if (mask & ~(ORNIC_MODERATE_TIMING | ORNIC_MODERATE_TARGET))
		return command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	st = COMMAND_ZERO(c, in->mbz);
	if (!st && mask & ORNIC_MODERATE_TIMING)
		st = cq_moderation(c, &in->mod_count, &in->mod_period_us);
	if (st)
		return st;
	if (mask & ORNIC_MODERATE_TARGET) {
		eq = cq_target(c, &in->target);
		if (!eq)
			return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->target);
		if (eq != cq->eq) {
			cq->eq->users--;
			eq->users++;
			cq_set_eq(cq, eq);
		}
	}
	if (mask & ORNIC_MODERATE_TIMING)
		cq_moderate(cq, le16toh(in->mod_count), le16toh(in->mod_period_us));
	return ORNIC_ST_OK;
}

uint8_t cmd_cq_query(struct command *c)
{
	struct ornic_cq_query_rsp *out = c->out;
	struct cq *cq = cq_get(c->dev, c->number);
	struct ornic_rec *rec;
	bool armed;

	if (!cq)
		return ORNIC_ST_BAD_NUMBER;
	rec = gpa_ptr(c->dev->gpa, cq->rec, sizeof(*rec), false);
	armed = rec && ring_arm_armed(&cq->arm, ring_arm_load(rec));
	out->attr = cq->attr;
	out->attr.eq = htole32(cq->eq->number);
	out->attr.mod_count = htole16(cq->mod_count);
	out->attr.mod_period_us = htole16(cq->mod_period_us);
	out->state.producer = htole32(cq->prod);
	out->state.consumer = htole32(rec ? ring_host_index(rec) : cq->cons);
	out->state.state = htole32((cq->error ? ORNIC_RING_ERROR : 0) |
				   (armed ? ORNIC_RING_ARMED : 0));
	out->state.syndrome = htole32(cq->syndrome);
	return ORNIC_ST_OK;
}

uint8_t cmd_cq_resize(struct command *c)
{
	const struct ornic_cq_resize_cmd *in = c->in;
	struct ornic_cq_resize_rsp *out = c->out;
	struct cq *cq = cq_get(c->dev, c->number);
	struct ring_place to = { .log = in->log_entries };
	uint8_t st;

	st = command_need(c, ORNIC_FEATURE(CQ_RESIZE), in);
	if (st)
		return st;
	if (!cq)
		return ORNIC_ST_BAD_NUMBER;
	if (in->log_entries > LIMIT_LOG_CQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_entries);
	st = COMMAND_ZERO(c, in->mbz);
	st = st ?: command_record(c, &in->record, &to.rec);
	st = st ?: command_ring(c, &in->pages, to.log, CQ_ENTRY_LOG, true, &to.mem);
	if (st)
		return st;
	st = cq_resize(cq, &to, out);
	umem_free(&to.mem, &c->dev->lists);
	if (st == ORNIC_ST_BAD_PARAM)
		return command_reject(c, st, &in->log_entries);
	if (st)
		return st;
	cq->attr.log_entries = in->log_entries;
	cq->attr.record = in->record;
	cq->attr.pages = in->pages;
	return ORNIC_ST_OK;
}

void cq_release(struct device *dev, uint32_t number, void *obj)
{
	struct cq *cq = obj;

	cq->eq->users--;
	cq_fini(cq);
	table_del(&dev->cqs, number);
	umem_free(&cq->mem, &dev->lists);
	account_free(&dev->account, cq, sizeof(*cq));
}

uint8_t cmd_cq_destroy(struct command *c)
{
	struct cq *cq = cq_get(c->dev, c->number);

	if (!cq)
		return ORNIC_ST_BAD_NUMBER;
	if (cq->users)
		return ORNIC_ST_BUSY;
	cq_release(c->dev, c->number, cq);
	device_forget_events(c->dev, EVENTS_CQ, c->number);
	return ORNIC_ST_OK;
}
