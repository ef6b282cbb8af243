// SPDX-License-Identifier: GPL-2.0
/*
 * Rules of kind MEMBER: a UD queue pair joins a multicast group (ORN-MC).
 */
#include "command.h"

#include "../engine/mcast.h"
#include "../engine/qp.h"

#include <ornic/steer.h>
#include <errno.h>

static uint8_t member_check(struct command *c, const struct ornic_rule_cmd *in)
{
	const uint8_t *value = (const uint8_t *)&in->value;
	uint8_t st = command_need(c, ORNIC_FEATURE(MCAST), &in->kind);

	if (st)
		return st;
	if (in->port != 1)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->port);
	if (le32toh(in->target_type) != ORNIC_TARGET_QP)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->target_type);
	st = COMMAND_ZERO(c, in->priority);
	st = st ?: COMMAND_ZERO(c, in->flow_tag);
	st = st ?: COMMAND_ZERO(c, in->flags);
	st = st ?: COMMAND_ZERO(c, in->counter_set);
	st = st ?: COMMAND_ZERO(c, in->fields);
	st = st ?: command_zero(c, value, ORNIC_MEMBER_GID);
	st = st ?: command_zero(c, value + ORNIC_MEMBER_GID + 16,
				sizeof(in->value) - ORNIC_MEMBER_GID - 16);
	st = st ?: COMMAND_ZERO(c, in->mask);
	st = st ?: COMMAND_ZERO(c, in->mbz);
	if (!st && !mcast_is_group(value + ORNIC_MEMBER_GID))
		st = command_reject(c, ORNIC_ST_BAD_PARAM, value + ORNIC_MEMBER_GID);
	return st;
}

uint8_t member_create(struct command *c)
{
	const struct ornic_rule_cmd *in = c->in;
	uint8_t st = member_check(c, in);
	struct qp *qp;

	if (st)
		return st;
	qp = table_get(&c->dev->qps, le32toh(in->target));
	if (!qp || qp->type != ORNIC_QPT_UD || !(qp->rq.present || qp->srq))
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->target);
	switch (mcast_join(&c->dev->mcast, (const uint8_t *)&in->value + ORNIC_MEMBER_GID, qp,
			   &c->number)) {
	case 0:
		return ORNIC_ST_OK;
	case -EEXIST:
		return command_reject(c, ORNIC_ST_EXISTS, &in->target);
	case -ENOSPC:
		return command_reject(c, ORNIC_ST_LIMIT, &in->kind);
	default:
		return ORNIC_ST_NO_RESOURCE;
	}
}

uint8_t member_destroy(struct command *c)
{
	return mcast_leave(&c->dev->mcast, c->number) ? ORNIC_ST_BAD_NUMBER : ORNIC_ST_OK;
}
