// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domain commands.
 */
#include "command.h"

#include <ornic/pd.h>
#include <stdlib.h>

uint8_t cmd_pd_create(struct command *c)
{
	const struct ornic_pd_create_cmd *in = c->in;
	uint8_t st = COMMAND_ZERO(c, in->want);
	struct pd *pd;

	if (st)
		return st;
	pd = account_alloc(&c->dev->account, sizeof(*pd));
	if (!pd)
		return ORNIC_ST_NO_RESOURCE;
	st = command_number(c, &c->dev->pds, pd);
	if (st) {
		account_free(&c->dev->account, pd, sizeof(*pd));
		return st;
	}
	pd->number = c->number;
	c->f->created = true;
	return ORNIC_ST_OK;
}

void pd_release(struct device *dev, uint32_t number, void *pd)
{
	table_del(&dev->pds, number);
	account_free(&dev->account, pd, sizeof(struct pd));
}

uint8_t cmd_pd_destroy(struct command *c)
{
	struct pd *pd = pd_get(c->dev, c->number);

	if (!pd)
		return ORNIC_ST_BAD_NUMBER;
	if (pd->users)
		return ORNIC_ST_BUSY;
	pd_release(c->dev, c->number, pd);
	return ORNIC_ST_OK;
}
