// SPDX-License-Identifier: GPL-2.0
/*
 * Counter sets: counters of the queue pairs that are bound to them, in addition to those of the
 * port. The function adds the counters of a destroyed set to a sum over all sets, so that a
 * host can compute the traffic of queue pairs without a set: port value - sum over all sets.
 */
#include "command.h"

#include "../engine/qp.h"

#include <stdlib.h>
#include <string.h>

static bool sets_accepted(const struct device *dev)
{
	return dev->features & ORNIC_FEATURE(COUNTER_SETS);
}

struct counter_set *counter_set_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->sets, number);
}

void counter_set_use(struct qp *qp, struct counter_set *set)
{
	if (set)
		set->users++;
	if (qp->set)
		qp->set->users--;
	qp->set = set;
}

void counter_sets_sum(struct device *dev, uint64_t sum[CNT_COUNT])
{
	const struct counter_set *set;
	uint32_t n;

	for (uint32_t i = 0; i < CNT_COUNT; i++)
		sum[i] = dev->past[i];
	for (n = 0; (set = table_next(&dev->sets, &n)); n++)
		for (uint32_t i = 0; i < CNT_COUNT; i++)
			sum[i] += set->cnt[i];
}

uint8_t cmd_counter_create(struct command *c)
{
	struct counter_set *set;
	uint8_t st;

	if (!sets_accepted(c->dev))
		return ORNIC_ST_UNSUPPORTED;
	set = account_alloc(&c->dev->account, sizeof(*set));
	if (!set)
		return ORNIC_ST_NO_RESOURCE;
	st = command_number(c, &c->dev->sets, set);
	if (st)
		account_free(&c->dev->account, set, sizeof(*set));
	else
		set->number = c->number;
	return st;
}

void counter_set_release(struct device *dev, uint32_t number, void *obj)
{
	struct counter_set *set = obj;

	for (uint32_t i = 0; i < CNT_COUNT; i++)
		dev->past[i] += set->cnt[i];
	table_del(&dev->sets, number);
	account_free(&dev->account, set, sizeof(*set));
}

uint8_t cmd_counter_destroy(struct command *c)
{
	struct counter_set *set;

	if (!sets_accepted(c->dev))
		return ORNIC_ST_UNSUPPORTED;
	set = counter_set_get(c->dev, c->number);
	if (!set)
		return ORNIC_ST_BAD_NUMBER;
	if (set->users)
		return ORNIC_ST_BUSY;
	counter_set_release(c->dev, c->number, set);
	return ORNIC_ST_OK;
}
