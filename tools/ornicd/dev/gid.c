// SPDX-License-Identifier: GPL-2.0
/*
 * The GID table: the addresses a function may send from (ORN-PORT-1).
 */
#include "command.h"

#include <ornic/port.h>
#include <string.h>

#define GID_FLAGS	(ORNIC_GID_VALID | ORNIC_GID_VLAN)
#define GID_MAX_VLAN	4094

static bool gid_usable(const struct ornic_gid_entry *e)
{
	static const uint8_t zero[16];

	return e->gid[0] != 0xff && memcmp(e->gid, zero, sizeof(zero));
}

static uint8_t gid_check(struct command *c, const struct ornic_gid_entry *in)
{
	static const uint8_t zero[6];
	uint32_t flags = le32toh(in->flags);

	if (in->port != c->number)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->port);
	if (le16toh(in->index) >= DEVICE_GIDS)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->index);
	if (flags & ~GID_FLAGS)
		return command_refuse(c, ORNIC_ST_RESERVED, &in->flags);
	if (!(flags & ORNIC_GID_VALID))
		return ORNIC_ST_OK;
	if (in->type != ORNIC_GID_ROCEV2)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->type);
	if (!gid_usable(in))
		return command_refuse(c, ORNIC_ST_BAD_PARAM, in->gid);
	if (in->smac[0] & 1 || !memcmp(in->smac, zero, sizeof(zero)))
		return command_refuse(c, ORNIC_ST_BAD_PARAM, in->smac);
	if (flags & ORNIC_GID_VLAN && le16toh(in->vlan) > GID_MAX_VLAN)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->vlan);
	return COMMAND_ZERO(c, in->mbz);
}

static bool gid_same(const struct ornic_gid_entry *a, const struct ornic_gid_entry *b)
{
	uint32_t fa = le32toh(a->flags), fb = le32toh(b->flags);

	return fa & fb & ORNIC_GID_VALID && !((fa ^ fb) & ORNIC_GID_VLAN) &&
	       (!(fa & ORNIC_GID_VLAN) || a->vlan == b->vlan) &&
	       !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/* Does another function on the wire have this address (ORN-PORT-6)? */
static bool gid_taken(const struct device *dev, const struct ornic_gid_entry *e)
{
	const struct device *other;

	TAILQ_FOREACH(other, &dev->engine->devices, link) {
		if (other == dev)
			continue;
		for (uint32_t i = 0; i < DEVICE_GIDS; i++)
			if (gid_same(&other->port.gid[i], e))
				return true;
	}
	return false;
}

uint8_t cmd_set_gid(struct command *c)
{
	const struct ornic_gid_entry *in = c->in;
	struct ornic_gid_entry *entry;
	uint8_t st;

	if (c->number != 1)
		return ORNIC_ST_BAD_NUMBER;
	st = gid_check(c, in);
	if (st)
		return st;
	entry = &c->dev->port.gid[le16toh(in->index)];
	if (!(le32toh(in->flags) & ORNIC_GID_VALID)) {
		memset(entry, 0, sizeof(*entry));
		return ORNIC_ST_OK;
	}
	if (gid_taken(c->dev, in))
		return command_refuse(c, ORNIC_ST_EXISTS, in->gid);
	*entry = *in;
	return ORNIC_ST_OK;
}

uint8_t cmd_get_gid(struct command *c)
{
	const struct ornic_gid_get_cmd *in = c->in;
	struct ornic_gid_entry *out = c->out;
	uint8_t st;

	if (c->number != 1)
		return ORNIC_ST_BAD_NUMBER;
	st = COMMAND_ZERO(c, in->mbz);
	if (st)
		return st;
	if (le16toh(in->index) >= DEVICE_GIDS)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->index);
	*out = c->dev->port.gid[le16toh(in->index)];
	out->port = 1;
	out->index = in->index;
	return ORNIC_ST_OK;
}
