// SPDX-License-Identifier: GPL-2.0
/*
 * Receive rules: at most one rule each for unicast, multicast and promiscuous reception of the
 * network interface, MATCH rules, and members of multicast groups (mcast.c).
 */
#include "command.h"

#include "../engine/link.h"
#include "../engine/qp.h"
#include "../engine/rss.h"
#include "../engine/steer.h"

#include <ornic/steer.h>
#include <stdlib.h>
#include <string.h>

/* Offset and size of the fields of a MATCH rule, by bit of @fields in the command */
#define FIELD(member)								\
	{ offsetof(struct ornic_rule_match, member),				\
	  sizeof(((struct ornic_rule_match *)0)->member) }

static const struct {
	uint8_t offset;
	uint8_t size;
} fields[] = {
	FIELD(dmac), FIELD(smac), FIELD(ethertype), FIELD(vlan_tci), FIELD(src_ip),
	FIELD(dst_ip), FIELD(src_port), FIELD(dst_port), FIELD(ip_version), FIELD(protocol),
	FIELD(tos), FIELD(ttl), FIELD(flow_label), FIELD(tunnel_id), FIELD(tcp_flags),
	FIELD(ip_frag),
};

#define FIELDS_LATER	(1u << 13 | 1u << 14)
#define FIELDS_KNOWN	(0xffffu & ~FIELDS_LATER)
#define RULE_FLAGS	(ORNIC_RULE_F_COPY | ORNIC_RULE_F_LEFTOVER)
#define FLOW_TAG_MAX	0xffffffu

/* Return where the port stores the target of a kind of rule; NULL for MATCH and unknown kinds. */
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

static uint8_t rule_check_kind(struct command *c, const struct ornic_rule_cmd *in)
{
	if (in->kind == ORNIC_RULE_MATCH)
		return command_need(c, ORNIC_FEATURE(STEER), &in->kind);
	if (!rule_slot(&c->dev->port, in->kind))
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->kind);
	if (in->kind == ORNIC_RULE_PROMISC && !(c->dev->port.flags & ORNIC_PORT_F_PROMISC))
		return command_reject(c, ORNIC_ST_PERMISSION, &in->kind);
	return ORNIC_ST_OK;
}

/* Check that mask and value have bits only in fields that the rule compares (ORN-STEER-16). */
static uint8_t rule_check_match(struct command *c, const struct ornic_rule_cmd *in)
{
	const uint8_t *value = (const void *)&in->value, *mask = (const void *)&in->mask;
	uint32_t used = le32toh(in->fields);
	uint8_t may[sizeof(in->value)] = {};

	if (used & ~FIELDS_KNOWN)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->fields);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (used >> i & 1)
			memset(may + fields[i].offset, 0xff, fields[i].size);
	for (size_t i = 0; i < sizeof(may); i++) {
		if (mask[i] & ~may[i])
			return command_reject(c, ORNIC_ST_BAD_PARAM, &mask[i]);
		if (value[i] & ~mask[i])
			return command_reject(c, ORNIC_ST_BAD_PARAM, &value[i]);
	}
	return ORNIC_ST_OK;
}

static uint8_t rule_check_zero(struct command *c, const struct ornic_rule_cmd *in)
{
	uint8_t st = COMMAND_ZERO(c, in->flow_tag);

	st = st ?: COMMAND_ZERO(c, in->flags);
	st = st ?: COMMAND_ZERO(c, in->fields);
	st = st ?: COMMAND_ZERO(c, in->value);
	return st ?: COMMAND_ZERO(c, in->mask);
}

static uint8_t rule_check_params(struct command *c, const struct ornic_rule_cmd *in)
{
	if (in->kind != ORNIC_RULE_MATCH)
		return rule_check_zero(c, in);
	if (le32toh(in->flags) & ~RULE_FLAGS)
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	if (le32toh(in->flow_tag) > FLOW_TAG_MAX)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->flow_tag);
	return rule_check_match(c, in);
}

static uint8_t rule_check(struct command *c, const struct ornic_rule_cmd *in)
{
	uint8_t st = command_need(c, ORNIC_FEATURE(RAW), &in->kind);

	st = st ?: rule_check_kind(c, in);
	if (!st && in->port != 1)
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->port);
	st = st ?: rule_check_params(c, in);
	st = st ?: COMMAND_ZERO(c, in->counter_set);
	return st ?: COMMAND_ZERO(c, in->mbz);
}

/* Look up a queue pair; rules of the network interface need one of the driver (ORN-STEER-13). */
static uint8_t rule_target_qp(struct command *c, const struct ornic_rule_cmd *in,
			      struct steer_rule *r)
{
	struct qp *qp = table_get(&c->dev->qps, le32toh(in->target));

	if (!qp || qp->type != ORNIC_QPT_RAW || !qp->rq.present)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->target);
	if (in->kind != ORNIC_RULE_MATCH && !(qp->flags & ORNIC_QP_F_DRIVER))
		return command_reject(c, ORNIC_ST_PERMISSION, &in->target);
	r->qp = qp;
	return ORNIC_ST_OK;
}

static uint8_t rule_target_rss(struct command *c, const struct ornic_rule_cmd *in,
			       struct steer_rule *r)
{
	uint8_t st = command_need(c, ORNIC_FEATURE(RSS), &in->target_type);

	if (st)
		return st;
	r->rss = table_get(&c->dev->groups, le32toh(in->target));
	return r->rss ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, &in->target);
}

static uint8_t rule_target(struct command *c, const struct ornic_rule_cmd *in, struct steer_rule *r)
{
	uint32_t type = le32toh(in->target_type);

	if (type == ORNIC_TARGET_QP)
		return rule_target_qp(c, in, r);
	if (in->kind == ORNIC_RULE_MATCH && type == ORNIC_TARGET_RSS)
		return rule_target_rss(c, in, r);
	if (in->kind != ORNIC_RULE_MATCH || type != ORNIC_TARGET_DROP)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->target_type);
	return COMMAND_ZERO(c, in->target);
}

static void rule_fill(struct steer_rule *r, const struct ornic_rule_cmd *in)
{
	r->kind = in->kind;
	r->priority = le16toh(in->priority);
	r->flags = le32toh(in->flags);
	r->fields = le32toh(in->fields);
	r->flow_tag = le32toh(in->flow_tag);
	memcpy(r->value, &in->value, sizeof(r->value));
	memcpy(r->mask, &in->mask, sizeof(r->mask));
}

/* Count the rule in its target, which cannot be destroyed before it. */
static void rule_hold(const struct steer_rule *r, int by)
{
	if (r->qp)
		r->qp->rules += by;
	if (r->rss)
		r->rss->rules += by;
}

/* Number the rule and put it into effect. */
static uint8_t rule_start(struct command *c, struct steer_rule *r)
{
	struct qp **slot = rule_slot(&c->dev->port, r->kind);
	uint8_t st;

	if (slot && *slot)
		return command_reject(c, ORNIC_ST_EXISTS,
				      &((const struct ornic_rule_cmd *)c->in)->kind);
	st = command_number(c, &c->dev->rules, r);
	if (st)
		return st;
	r->number = c->number;
	if (slot)
		*slot = r->qp;
	else
		steer_add(&c->dev->port, r);
	rule_hold(r, 1);
	link_update(c->dev);
	return ORNIC_ST_OK;
}

uint8_t cmd_rule_create(struct command *c)
{
	const struct ornic_rule_cmd *in = c->in;
	struct steer_rule *r;
	uint8_t st;

	if (in->kind == ORNIC_RULE_MEMBER)
		return member_create(c);
	st = rule_check(c, in);
	if (st)
		return st;
	r = account_alloc(&c->dev->account, sizeof(*r));
	if (!r)
		return ORNIC_ST_NO_RESOURCE;
	rule_fill(r, in);
	st = rule_target(c, in, r);
	st = st ?: rule_start(c, r);
	if (st)
		account_free(&c->dev->account, r, sizeof(*r));
	return st;
}

void rule_release(struct device *dev, uint32_t number, void *obj)
{
	struct steer_rule *r = obj;
	struct qp **slot = rule_slot(&dev->port, r->kind);

	if (slot)
		*slot = NULL;
	else
		steer_del(&dev->port, r);
	rule_hold(r, -1);
	table_del(&dev->rules, number);
	account_free(&dev->account, r, sizeof(*r));
}

uint8_t cmd_rule_destroy(struct command *c)
{
	struct steer_rule *r = table_get(&c->dev->rules, c->number);

	if (c->number >= MCAST_FIRST)
		return member_destroy(c);
	if (!r)
		return ORNIC_ST_BAD_NUMBER;
	rule_release(c->dev, c->number, r);
	link_update(c->dev);
	return ORNIC_ST_OK;
}
