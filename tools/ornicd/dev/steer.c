// SPDX-License-Identifier: GPL-2.0
/*
 * Receive rules: one each for unicast, multicast and promiscuous reception, whose
 * numbers are their kinds; and members of groups (mcast.c).
 */
#include "command.h"

#include "../engine/link.h"
#include "../engine/qp.h"

#include <ornic/steer.h>

/* Where the data path finds the target of a kind of rule; NULL: no such kind here */
static struct qp **rule_slot(struct port *port, uint32_t kind)
{
	switch (kind) {
	case ORNIC_RULE_UNICAST:
		return &port->unicast;
	case ORNIC_RULE_MULTICAST:
		return &port->multicast;
	case ORNIC_RULE_PROMISC:
		return &port->promisc;
	default:
		return NULL;
	}
}

static uint8_t rule_check_zero(struct command *c, const struct ornic_rule_cmd *in)
{
	uint8_t st;

	if (in->flow_tag)
		return command_refuse(c, ORNIC_ST_UNSUPPORTED, &in->flow_tag);
	st = COMMAND_ZERO(c, in->flags);
	st = st ?: COMMAND_ZERO(c, in->counter_set);
	st = st ?: COMMAND_ZERO(c, in->fields);
	st = st ?: COMMAND_ZERO(c, in->value);
	st = st ?: COMMAND_ZERO(c, in->mask);
	return st ?: COMMAND_ZERO(c, in->mbz);
}

static uint8_t rule_check(struct command *c, const struct ornic_rule_cmd *in)
{
	uint8_t st = command_need(c, ORNIC_FEATURE(RAW), &in->kind);

	if (st)
		return st;
	if (!rule_slot(&c->dev->port, in->kind))
		return command_refuse(c, ORNIC_ST_UNSUPPORTED, &in->kind);
	if (in->port != 1)
		return command_refuse(c, ORNIC_ST_BAD_NUMBER, &in->port);
	if (le32toh(in->target_type) != ORNIC_TARGET_QP)
		return command_refuse(c, ORNIC_ST_UNSUPPORTED, &in->target_type);
	return rule_check_zero(c, in);
}

uint8_t cmd_rule_create(struct command *c)
{
	const struct ornic_rule_cmd *in = c->in;
	struct qp **slot, *qp;
	uint8_t st;

	if (in->kind == ORNIC_RULE_MEMBER)
		return member_create(c);
	st = rule_check(c, in);
	if (st)
		return st;
	qp = table_get(&c->dev->qps, le32toh(in->target));
	if (!qp || qp->type != ORNIC_QPT_RAW || !qp->rq.present)
		return command_refuse(c, ORNIC_ST_BAD_NUMBER, &in->target);
	slot = rule_slot(&c->dev->port, in->kind);
	if (*slot)
		return command_refuse(c, ORNIC_ST_EXISTS, &in->kind);
	*slot = qp;
	link_update(c->dev);
	c->number = in->kind;
	return ORNIC_ST_OK;
}

uint8_t cmd_rule_destroy(struct command *c)
{
	struct qp **slot = rule_slot(&c->dev->port, c->number);

	if (c->number >= MCAST_FIRST)
		return member_destroy(c);
	if (!slot || !*slot)
		return ORNIC_ST_BAD_NUMBER;
	*slot = NULL;
	link_update(c->dev);
	return ORNIC_ST_OK;
}
