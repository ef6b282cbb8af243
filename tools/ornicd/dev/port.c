// SPDX-License-Identifier: GPL-2.0
/*
 * Port commands: link, MAC, frame size.
 */
#include "command.h"

#include "../engine/link.h"

#include <ornic/port.h>
#include <string.h>

#define PORT_MASK	(ORNIC_PORT_M_ADMIN | ORNIC_PORT_M_MAC | ORNIC_PORT_M_FRAME)

static uint8_t port_check_mac(struct command *c, const struct ornic_port_modify_cmd *in)
{
	static const uint8_t zero[6];

	if (in->mac[0] & 1 || !memcmp(in->mac, zero, sizeof(zero)))
		return command_reject(c, ORNIC_ST_BAD_PARAM, in->mac);
	if (!(c->dev->port.flags & ORNIC_PORT_F_MAC_CHANGE) &&
	    memcmp(in->mac, c->dev->port.mac, sizeof(in->mac)))
		return command_reject(c, ORNIC_ST_PERMISSION, in->mac);
	return ORNIC_ST_OK;
}

static uint8_t port_check_frame(struct command *c, const struct ornic_port_modify_cmd *in)
{
	uint32_t frame = le16toh(in->max_frame);

	if (frame < PORT_MIN_FRAME || frame > PORT_MAX_FRAME)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->max_frame);
	if (frame > PORT_DEFAULT_FRAME)
		return command_need(c, ORNIC_FEATURE(JUMBO), &in->max_frame);
	return ORNIC_ST_OK;
}

static uint8_t port_check(struct command *c, const struct ornic_port_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);
	uint8_t st = ORNIC_ST_OK;

	if (mask & ~(PORT_MASK | ORNIC_PORT_M_FLAGS))
		return command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	if (mask & ORNIC_PORT_M_FLAGS)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->mask);
	if (mask & ORNIC_PORT_M_ADMIN && le32toh(in->admin_up) > 1)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->admin_up);
	if (mask & ORNIC_PORT_M_MAC)
		st = port_check_mac(c, in);
	if (!st && mask & ORNIC_PORT_M_FRAME)
		st = port_check_frame(c, in);
	st = st ?: COMMAND_ZERO(c, in->flags);
	return st ?: COMMAND_ZERO(c, in->mbz);
}

uint8_t cmd_port_modify(struct command *c)
{
	const struct ornic_port_modify_cmd *in = c->in;
	struct port *port = &c->dev->port, old = *port;
	uint32_t mask = le32toh(in->mask);
	bool was_up = link_is_up(c->dev);
	uint8_t st;

	if (c->number != 1)
		return ORNIC_ST_BAD_NUMBER;
	st = port_check(c, in);
	if (st)
		return st;
	if (mask & ORNIC_PORT_M_ADMIN)
		port->admin_up = le32toh(in->admin_up);
	if (mask & ORNIC_PORT_M_MAC)
		memcpy(port->mac, in->mac, sizeof(port->mac));
	if (mask & ORNIC_PORT_M_FRAME)
		port->max_frame = le16toh(in->max_frame);
	if (link_update(c->dev)) {
		*port = old;
		return command_reject(c, ORNIC_ST_EXISTS, in->mac);
	}
	if (old.admin_up != port->admin_up || old.max_frame != port->max_frame ||
	    memcmp(old.mac, port->mac, sizeof(port->mac)))
		function_changed(c->f, ORNIC_ID_PORT, 1);
	link_notify(c->dev, was_up);
	return ORNIC_ST_OK;
}

uint8_t cmd_port_query(struct command *c)
{
	if (c->number != 1)
		return ORNIC_ST_BAD_NUMBER;
	identify_port(c->f, c->out);
	return ORNIC_ST_OK;
}
