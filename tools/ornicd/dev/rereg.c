// SPDX-License-Identifier: GPL-2.0
/*
 * KEY_MODIFY: change the memory, protection domain or rights of a region.
 *
 * Commands run between iterations of the data path, which looks a key up for each packet, so a
 * packet sees either the old or the new region, never a mixture (ORN-MEM-4). Steps that can
 * fail come first, so a rejected change leaves the region as it was. The region also does not
 * change while its new page list is loaded, which may take several iterations; a window that
 * is bound to it meanwhile makes the change fail.
 */
#include "command.h"

#include "../engine/mr.h"

#include <ornic/mr.h>

#define KEYM_ALL	(ORNIC_KEYM_TRANSLATION | ORNIC_KEYM_PD | ORNIC_KEYM_ACCESS)

/* Return the attributes of the region after the command. */
static struct ornic_key_create_cmd merge(const struct mr *mr, uint32_t mask,
					 const struct ornic_key_create_cmd *in)
{
	struct ornic_key_create_cmd next = mr->attr;

	if (mask & ORNIC_KEYM_TRANSLATION) {
		next.flags = in->flags;
		next.iova = in->iova;
		next.length = in->length;
		next.pages = in->pages;
	}
	if (mask & ORNIC_KEYM_PD)
		next.pd = in->pd;
	if (mask & ORNIC_KEYM_ACCESS)
		next.access = in->access;
	return next;
}

/* Check each field that the mask selects. */
static uint8_t check_fields(struct command *c, uint32_t mask,
			    const struct ornic_key_create_cmd *in)
{
	uint8_t st = ORNIC_ST_OK;

	if (mask & ORNIC_KEYM_TRANSLATION) {
		st = key_check_flags(c, in);
		st = st ?: key_check_region(c, in);
	}
	if (!st && mask & ORNIC_KEYM_PD && !pd_get(c->dev, le32toh(in->pd)))
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->pd);
	if (!st && mask & ORNIC_KEYM_ACCESS)
		st = key_check_access(c, in);
	return st;
}

static uint8_t check(struct command *c, const struct ornic_key_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);
	uint8_t st = command_need(c, ORNIC_FEATURE(REREG), &in->mask);

	if (!st && (!mask || mask & ~KEYM_ALL))
		st = command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	st = st ?: COMMAND_ZERO(c, in->mbz);
	st = st ?: COMMAND_ZERO(c, in->attr.mbz0);
	st = st ?: COMMAND_ZERO(c, in->attr.mbz1);
	st = st ?: COMMAND_ZERO(c, in->attr.want);
	st = st ?: COMMAND_ZERO(c, in->attr.mbz2);
	return st ?: check_fields(c, mask, &in->attr);
}

/* Load the page list and find the file of @next, as far as @mr does not have them. */
static uint8_t load(struct command *c, const struct mr *mr,
		    const struct ornic_key_create_cmd *next)
{
	const struct ornic_key_modify_cmd *in = c->in;
	uint32_t access = le32toh(next->access);

	if (le32toh(in->mask) & ORNIC_KEYM_TRANSLATION)
		return key_load(c, &in->attr, access);
	return mr->durable || !mr->length ? ORNIC_ST_OK :
					    key_find_file(c, &in->attr, access, &mr->mem);
}

/* Apply the attributes @next, and if the region @moves also the loaded page list, to @mr. */
static void adopt(struct command *c, struct mr *mr, const struct ornic_key_create_cmd *next,
		  bool moves)
{
	pd_get(c->dev, mr->pd)->users--;
	mr->attr = *next;
	mr->pd = le32toh(next->pd);
	mr->access = le32toh(next->access);
	mr->iova = le64toh(next->iova);
	pd_get(c->dev, mr->pd)->users++;
	if (moves) {
		key_unload(c->dev, mr);
		mr->length = le64toh(next->length);
		key_take(c, mr);
	} else if (!mr->durable) {
		mr->durable = progress_take_file(c->f);
	} else if (!(mr->access & ORNIC_ACCESS_FLUSH_PERSISTENT)) {
		durable_put(mr->durable);
		mr->durable = NULL;
	}
}

uint8_t cmd_key_modify(struct command *c)
{
	const struct ornic_key_modify_cmd *in = c->in;
	struct mr *mr = key_get(c->dev, c->number);
	bool moves = le32toh(in->mask) & ORNIC_KEYM_TRANSLATION;
	struct ornic_key_create_cmd next;
	uint8_t st = check(c, in);

	if (st)
		return st;
	if (!mr)
		return ORNIC_ST_BAD_NUMBER;
	if (mr->kind != ORNIC_KEY_REGION)
		return ORNIC_ST_BAD_STATE;
	if (mr->windows)
		return ORNIC_ST_BUSY;
	next = merge(mr, le32toh(in->mask), &in->attr);
	if (next.iova && le32toh(next.access) & ORNIC_ACCESS_ZERO_BASED)
		return command_reject(c, ORNIC_ST_RESERVED, &in->attr.iova);
	st = load(c, mr, &next);
	if (!st)
		adopt(c, mr, &next, moves);
	return st;
}
