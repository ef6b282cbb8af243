// SPDX-License-Identifier: GPL-2.0
/*
 * XRC domain commands.
 */
#include "command.h"

#include "../engine/xrc.h"

#include <ornic/pd.h>
#include <stdlib.h>

struct xrcd *xrcd_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->xrcds, number);
}

uint8_t cmd_xrcd_create(struct command *c)
{
	const struct ornic_pd_create_cmd *in = c->in;
	uint8_t st = command_need(c, ORNIC_FEATURE(XRC), in);
	struct xrcd *xrcd;

	st = st ?: COMMAND_ZERO(c, in->want);
	if (st)
		return st;
	xrcd = account_alloc(&c->dev->account, sizeof(*xrcd));
	if (!xrcd)
		return ORNIC_ST_NO_RESOURCE;
	st = command_number(c, &c->dev->xrcds, xrcd);
	if (st) {
		account_free(&c->dev->account, xrcd, sizeof(*xrcd));
		return st;
	}
	xrcd->number = c->number;
	return ORNIC_ST_OK;
}

void xrcd_release(struct device *dev, uint32_t number, void *xrcd)
{
	table_del(&dev->xrcds, number);
	account_free(&dev->account, xrcd, sizeof(struct xrcd));
}

uint8_t cmd_xrcd_destroy(struct command *c)
{
	struct xrcd *xrcd = xrcd_get(c->dev, c->number);

	if (!xrcd)
		return ORNIC_ST_BAD_NUMBER;
	if (xrcd->users)
		return ORNIC_ST_BUSY;
	xrcd_release(c->dev, c->number, xrcd);
	return ORNIC_ST_OK;
}
