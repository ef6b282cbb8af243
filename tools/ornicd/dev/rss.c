// SPDX-License-Identifier: GPL-2.0
/*
 * Create and destroy RSS groups.
 */
#include "command.h"

#include "../engine/qp.h"
#include "../engine/rss.h"

#include <ornic/steer.h>
#include <stdlib.h>
#include <string.h>

static uint8_t rss_check(struct command *c, const struct ornic_rss_create_cmd *in)
{
	uint8_t st = command_need(c, ORNIC_FEATURE(RSS), &in->function);

	if (st)
		return st;
	if (in->function != ORNIC_RSS_TOEPLITZ)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->function);
	if (in->log_size > ORNIC_RSS_LOG_MAX_TABLE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->log_size);
	if (in->port != 1)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->port);
	if (le32toh(in->fields) & ~ORNIC_RSS_FIELDS)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->fields);
	st = COMMAND_ZERO(c, in->mbz0);
	st = st ?: COMMAND_ZERO(c, in->mbz1);
	return st ?: COMMAND_ZERO(c, in->mbz2);
}

static uint8_t rss_members(struct command *c, const struct ornic_rss_create_cmd *in,
			   struct rss *rss)
{
	for (uint32_t i = 0; i < ORNIC_RSS_MAX_TABLE; i++) {
		struct qp *qp;

		if (i >> in->log_size) {
			if (in->table[i])
				return command_reject(c, ORNIC_ST_RESERVED, &in->table[i]);
			continue;
		}
		qp = table_get(&c->dev->qps, le32toh(in->table[i]));
		if (!qp || qp->type != ORNIC_QPT_RAW || !qp->rq.present)
			return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->table[i]);
		rss->qp[i] = qp;
	}
	return ORNIC_ST_OK;
}

/* Count the group in its queue pairs, which cannot be destroyed before it. */
static void rss_hold(const struct rss *rss, int by)
{
	for (uint32_t i = 0; !(i >> rss->log_size); i++)
		rss->qp[i]->rules += by;
}

uint8_t cmd_rss_create(struct command *c)
{
	const struct ornic_rss_create_cmd *in = c->in;
	uint8_t st = rss_check(c, in);
	struct rss *rss;

	if (st)
		return st;
	rss = account_alloc(&c->dev->account, sizeof(*rss));
	if (!rss)
		return ORNIC_ST_NO_RESOURCE;
	rss->log_size = in->log_size;
	rss->fields = le32toh(in->fields);
	memcpy(rss->key, in->key, sizeof(rss->key));
	st = rss_members(c, in, rss);
	st = st ?: command_number(c, &c->dev->groups, rss);
	if (st) {
		account_free(&c->dev->account, rss, sizeof(*rss));
		return st;
	}
	rss->number = c->number;
	rss_hold(rss, 1);
	return ORNIC_ST_OK;
}

void rss_release(struct device *dev, uint32_t number, void *obj)
{
	struct rss *rss = obj;

	rss_hold(rss, -1);
	table_del(&dev->groups, number);
	account_free(&dev->account, rss, sizeof(*rss));
}

uint8_t cmd_rss_destroy(struct command *c)
{
	struct rss *rss = table_get(&c->dev->groups, c->number);

	if (!rss)
		return ORNIC_ST_BAD_NUMBER;
	if (rss->rules)
		return ORNIC_ST_BUSY;
	rss_release(c->dev, c->number, rss);
	return ORNIC_ST_OK;
}
