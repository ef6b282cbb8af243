// SPDX-License-Identifier: GPL-2.0
/*
 * Event queue commands. EQ 0 comes first and goes last (ORN-EQ-5, ORN-EQ-14).
 */
#include "command.h"

#include "../engine/eq.h"
#include "../mem/gpa.h"

#include <ornic/eq.h>
#include <stdlib.h>
#include <string.h>

#define EQ_ENTRY_LOG	6

static struct eq *eq_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->eqs, number);
}

/* Only completion queues have moderation, so both fields must be zero. */
static uint8_t eq_moderation(struct command *c, const __le16 *count, const __le16 *period)
{
	uint8_t st = command_zero(c, count, sizeof(*count));

	return st ?: command_zero(c, period, sizeof(*period));
}

static uint8_t eq_check_vector(struct command *c, const struct ornic_eq_create_cmd *in)
{
	bool first = !c->dev->eqs.used;
	uint64_t classes = first ? ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN : ORNIC_EQ_COMPLETION;

	if (le16toh(in->vector) >= FUNC_VECTORS || (first && in->vector))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->vector);
	if (le64toh(in->classes) != classes)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->classes);
	return ORNIC_ST_OK;
}

static uint8_t eq_check(struct command *c, const struct ornic_eq_create_cmd *in)
{
	uint8_t st;

	if (in->log_entries < ORNIC_LOG_MIN_EQ)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->log_entries);
	if (in->log_entries > LIMIT_LOG_EQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_entries);
	st = COMMAND_ZERO(c, in->flags);
	st = st ?: eq_check_vector(c, in);
	st = st ?: COMMAND_ZERO(c, in->want);
	st = st ?: eq_moderation(c, &in->mod_count, &in->mod_period_us);
	return st ?: COMMAND_ZERO(c, in->mbz);
}

static uint8_t eq_setup(struct command *c, const struct ornic_eq_create_cmd *in, struct eq *eq)
{
	uint8_t st;

	eq->dev = c->dev;
	eq->vector = le16toh(in->vector);
	eq->classes = le64toh(in->classes);
	eq->log = in->log_entries;
	eq->attr = *in;
	st = command_record(c, &in->record, &eq->rec);
	st = st ?: command_ring(c, &in->pages, eq->log, EQ_ENTRY_LOG, true, &eq->mem);
	if (st)
		return st;
	st = command_number(c, &c->dev->eqs, eq);
	if (st)
		goto free_mem;
	eq->number = c->number;
	st = eq_init(eq);
	if (!st)
		return ORNIC_ST_OK;
	table_del(&c->dev->eqs, eq->number);
free_mem:
	umem_free(&eq->mem, &c->dev->lists);
	return st;
}

uint8_t cmd_eq_create(struct command *c)
{
	const struct ornic_eq_create_cmd *in = c->in;
	uint8_t st = eq_check(c, in);
	struct eq *eq;

	if (st)
		return st;
	eq = account_alloc(&c->dev->account, sizeof(*eq));
	if (!eq)
		return ORNIC_ST_NO_RESOURCE;
	st = eq_setup(c, in, eq);
	if (st)
		account_free(&c->dev->account, eq, sizeof(*eq));
	else if (eq->number)
		c->f->created = true;
	return st;
}

uint8_t cmd_eq_modify(struct command *c)
{
	const struct ornic_moderate_cmd *in = c->in;
	struct eq *eq = eq_get(c->dev, c->number);
	uint32_t mask = le32toh(in->mask), target = le32toh(in->target);
	uint8_t st;

	if (!eq)
		return ORNIC_ST_BAD_NUMBER;
	if (mask & ~(ORNIC_MODERATE_TIMING | ORNIC_MODERATE_TARGET))
		return command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	st = COMMAND_ZERO(c, in->mbz);
	if (!st && mask & ORNIC_MODERATE_TIMING)
		st = eq_moderation(c, &in->mod_count, &in->mod_period_us);
	if (st)
		return st;
	if (mask & ORNIC_MODERATE_TARGET) {
		if (target >= FUNC_VECTORS || (!eq->number && target))
			return command_reject(c, ORNIC_ST_BAD_PARAM, &in->target);
		eq->vector = target;
	}
	return ORNIC_ST_OK;
}

uint8_t cmd_eq_query(struct command *c)
{
	struct ornic_eq_query_rsp *out = c->out;
	struct eq *eq = eq_get(c->dev, c->number);
	struct ornic_rec *rec;
	bool armed;

	if (!eq)
		return ORNIC_ST_BAD_NUMBER;
	rec = gpa_ptr(c->dev->gpa, eq->rec, sizeof(*rec), false);
	armed = rec && ring_arm_armed(&eq->arm, ring_arm_load(rec));
	out->attr = eq->attr;
	out->attr.vector = htole16(eq->vector);
	out->state.producer = htole32(eq->prod);
	out->state.consumer = htole32(rec ? ring_host_index(rec) : eq->cons);
	out->state.state = htole32(armed ? ORNIC_RING_ARMED : 0);
	return ORNIC_ST_OK;
}

static bool eq_in_use(const struct eq *eq)
{
	return eq->users || (!eq->number && eq->dev->eqs.used > 1);
}

void eq_release(struct device *dev, uint32_t number, void *obj)
{
	struct eq *eq = obj;

	eq_fini(eq);
	table_del(&dev->eqs, number);
	umem_free(&eq->mem, &dev->lists);
	account_free(&dev->account, eq, sizeof(*eq));
	/* The first EQ always has number 0, so let the table count from 0 again. */
	if (!dev->eqs.used)
		table_fini(&dev->eqs);
}

uint8_t cmd_eq_destroy(struct command *c)
{
	struct eq *eq = eq_get(c->dev, c->number);

	if (!eq)
		return ORNIC_ST_BAD_NUMBER;
	if (eq_in_use(eq))
		return ORNIC_ST_BUSY;
	eq_release(c->dev, c->number, eq);
	return ORNIC_ST_OK;
}
