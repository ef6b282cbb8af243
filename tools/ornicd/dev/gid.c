// SPDX-License-Identifier: GPL-2.0
/*
 * The GID table: addresses from which a function may send (ORN-PORT-1). Several functions may
 * have the same GID, because the switch delivers by MAC address, unless the operator limits the
 * addresses (ORN-ETH-15). RoCE packets take their source from the table, so they need no check.
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
	uint8_t st;

	if (in->port != c->number)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->port);
	if (le16toh(in->index) >= DEVICE_GIDS)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->index);
	if (flags & ~GID_FLAGS)
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	st = COMMAND_ZERO(c, in->mbz);
	if (st || !(flags & ORNIC_GID_VALID))
		return st;
	if (in->type != ORNIC_GID_ROCEV2)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->type);
	if (!gid_usable(in))
		return command_reject(c, ORNIC_ST_BAD_PARAM, in->gid);
	if (in->smac[0] & 1 || !memcmp(in->smac, zero, sizeof(zero)))
		return command_reject(c, ORNIC_ST_BAD_PARAM, in->smac);
	if (c->dev->port.flags & ORNIC_PORT_F_ANTI_SPOOF &&
	    memcmp(in->smac, c->dev->port.mac, sizeof(in->smac)))
		return command_reject(c, ORNIC_ST_PERMISSION, in->smac);
	if (flags & ORNIC_GID_VLAN && le16toh(in->vlan) > GID_MAX_VLAN)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->vlan);
	if (c->dev->port.flags & ORNIC_PORT_F_ANTI_SPOOF_IP &&
	    !antispoof_address(&c->dev->port.source, in->gid))
		return command_reject(c, ORNIC_ST_PERMISSION, in->gid);
	return ORNIC_ST_OK;
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
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->index);
	*out = c->dev->port.gid[le16toh(in->index)];
	out->port = 1;
	out->index = in->index;
	return ORNIC_ST_OK;
}
