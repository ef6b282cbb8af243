// SPDX-License-Identifier: GPL-2.0
/*
 * Memory key commands: regions, device memory, the driver's PHYS_ALL key, and keys that work
 * requests bind to memory (engine/memop.c).
 */
#include "command.h"

#include "../engine/memop.h"
#include "../engine/mr.h"

#include <ornic/mr.h>
#include <errno.h>
#include <stdlib.h>

/*
 * All rights except ON_DEMAND, which key_need_features() rejects; RELAXED_ORDERING has no effect.
 */
#define KEY_ACCESS								\
	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |			\
	 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC |		\
	 ORNIC_ACCESS_FLUSH_GLOBAL | ORNIC_ACCESS_FLUSH_PERSISTENT |		\
	 ORNIC_ACCESS_MW_BIND | ORNIC_ACCESS_ZERO_BASED | ORNIC_ACCESS_RELAXED_ORDERING)

/* Rights that need a feature */
static const struct {
	uint32_t right;
	uint64_t feature;
} featured[] = {
	{ ORNIC_ACCESS_REMOTE_ATOMIC, ORNIC_FEATURE(ATOMICS) },
	{ ORNIC_ACCESS_ZERO_BASED, ORNIC_FEATURE(ZERO_BASED) },
	{ ORNIC_ACCESS_FLUSH_GLOBAL, ORNIC_FEATURE(FLUSH_GLOBAL) },
	{ ORNIC_ACCESS_FLUSH_PERSISTENT, ORNIC_FEATURE(FLUSH_PERSISTENT) },
	{ ORNIC_ACCESS_ON_DEMAND, ORNIC_FEATURE(ODP) },
	{ ORNIC_ACCESS_RELAXED_ORDERING, ORNIC_FEATURE(RELAXED_ORDERING) },
};

uint8_t key_need_features(struct command *c, const __le32 *access)
{
	uint8_t st = ORNIC_ST_OK;

	for (uint32_t i = 0; !st && i < sizeof(featured) / sizeof(featured[0]); i++)
		if (le32toh(*access) & featured[i].right)
			st = command_need(c, featured[i].feature, access);
	return st;
}

static uint32_t key_index(uint32_t key)
{
	return key >> ORNIC_KEY_TAG_BITS;
}

struct mr *key_get(struct device *dev, uint32_t key)
{
	return table_get(&dev->keys, key_index(key));
}

uint8_t key_check_access(struct command *c, const struct ornic_key_create_cmd *in)
{
	uint32_t access = le32toh(in->access);

	if (access & ~(KEY_ACCESS | ORNIC_ACCESS_ON_DEMAND))
		return command_reject(c, ORNIC_ST_RESERVED, &in->access);
	if (access & (ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_ATOMIC) &&
	    !(access & ORNIC_ACCESS_LOCAL_WRITE))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->access);
	return key_need_features(c, &in->access);
}

uint8_t key_check_flags(struct command *c, const struct ornic_key_create_cmd *in)
{
	if (in->flags & ~(ORNIC_KEY_F_PEER | ORNIC_KEY_F_HUGETLB))
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	return ORNIC_ST_OK;
}

uint8_t key_check_region(struct command *c, const struct ornic_key_create_cmd *in)
{
	uint64_t iova = le64toh(in->iova), length = le64toh(in->length);

	if (length > LIMIT_REGION)
		return command_reject(c, ORNIC_ST_LIMIT, &in->length);
	if (iova + length < iova)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->length);
	return COMMAND_ZERO(c, in->pages.mbz);
}

static uint8_t key_check_phys_all(struct command *c, const struct ornic_key_create_cmd *in)
{
	uint8_t st = COMMAND_ZERO(c, in->iova);

	if (!st && le32toh(in->access) & ORNIC_ACCESS_REMOTE)
		st = command_need(c, ORNIC_FEATURE(GLOBAL_RKEY), &in->access);
	st = st ?: COMMAND_ZERO(c, in->length);
	return st ?: COMMAND_ZERO(c, in->pages);
}

/* Return true if keys of that kind have no memory until a work request binds them. */
static bool key_is_blank(uint8_t kind)
{
	return kind == ORNIC_KEY_FAST_REG || kind == ORNIC_KEY_MW1 || kind == ORNIC_KEY_MW2B;
}

static uint8_t key_check_blank(struct command *c, const struct ornic_key_create_cmd *in)
{
	uint32_t pages = le32toh(in->max_pages);
	uint8_t st = COMMAND_ZERO(c, in->flags);

	st = st ?: COMMAND_ZERO(c, in->access);
	if (in->kind != ORNIC_KEY_FAST_REG)
		st = st ?: COMMAND_ZERO(c, in->max_pages);
	else if (!st && !pages)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->max_pages);
	else if (!st && pages > LIMIT_FAST_REG_PAGES)
		st = command_reject(c, ORNIC_ST_LIMIT, &in->max_pages);
	st = st ?: COMMAND_ZERO(c, in->iova);
	st = st ?: COMMAND_ZERO(c, in->length);
	return st ?: COMMAND_ZERO(c, in->pages);
}

/* Check that the kind exists and that the host accepted its feature. */
static uint8_t key_check_kind(struct command *c, const struct ornic_key_create_cmd *in)
{
	switch (in->kind) {
	case ORNIC_KEY_REGION:
	case ORNIC_KEY_PHYS_ALL:
		return ORNIC_ST_OK;
	case ORNIC_KEY_FAST_REG:
		return command_need(c, ORNIC_FEATURE(FAST_REG), &in->kind);
	case ORNIC_KEY_MW1:
		return command_need(c, ORNIC_FEATURE(MW1), &in->kind);
	case ORNIC_KEY_MW2B:
		return command_need(c, ORNIC_FEATURE(MW2B), &in->kind);
	case ORNIC_KEY_DM:
		return command_need(c, ORNIC_FEATURE(DM), &in->kind);
	default:
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->kind);
	}
}

/* Check the fields whose meaning depends on the kind. */
static uint8_t key_check_own(struct command *c, const struct ornic_key_create_cmd *in)
{
	uint8_t st;

	if (key_is_blank(in->kind))
		return key_check_blank(c, in);
	st = key_check_access(c, in);
	st = st ?: COMMAND_ZERO(c, in->max_pages);
	if (!st && in->iova && le32toh(in->access) & ORNIC_ACCESS_ZERO_BASED)
		st = command_reject(c, ORNIC_ST_RESERVED, &in->iova);
	if (st)
		return st;
	if (in->kind == ORNIC_KEY_DM)
		return key_check_dm(c, in);
	return in->kind == ORNIC_KEY_PHYS_ALL ? key_check_phys_all(c, in) :
						key_check_region(c, in);
}

static uint8_t key_check(struct command *c, const struct ornic_key_create_cmd *in)
{
	bool phys_all = in->kind == ORNIC_KEY_PHYS_ALL;
	uint8_t st;

	st = key_check_kind(c, in);
	st = st ?: key_check_flags(c, in);
	st = st ?: COMMAND_ZERO(c, in->mbz0);
	if (!st && !(phys_all && !in->pd) && !pd_get(c->dev, le32toh(in->pd)))
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->pd);
	st = st ?: key_check_own(c, in);
	if (!st && in->kind != ORNIC_KEY_DM)
		st = COMMAND_ZERO(c, in->dm) ?: COMMAND_ZERO(c, in->dm_offset);
	st = st ?: COMMAND_ZERO(c, in->mbz1);
	st = st ?: COMMAND_ZERO(c, in->want);
	return st ?: COMMAND_ZERO(c, in->mbz2);
}

uint8_t key_find_file(struct command *c, const struct ornic_key_create_cmd *in, uint32_t access,
		      const struct umem *mem)
{
	if (!(access & ORNIC_ACCESS_FLUSH_PERSISTENT))
		return ORNIC_ST_OK;
	return progress_durable(c, &in->access, mem);
}

uint8_t key_load(struct command *c, const struct ornic_key_create_cmd *in, uint32_t access)
{
	uint8_t st;

	if (!in->length)
		return ORNIC_ST_OK;	/* neither memory nor a file */
	st = progress_pages(c, &in->pages, le64toh(in->length));
	return st ?: key_find_file(c, in, access, &c->f->progress.load.mem);
}

void key_take(struct command *c, struct mr *mr)
{
	if (c->f->progress.loading)
		mr->mem = progress_take_pages(c->f);
	mr->durable = progress_take_file(c->f);
	device_count(c->dev, CNT_key_pages, mr->mem.npages);
}

/* Set up device memory, or reserve the page list of a fast registration. */
static uint8_t key_furnish(struct command *c, const struct ornic_key_create_cmd *in,
			   struct mr *mr)
{
	if (mr->kind == ORNIC_KEY_DM)
		key_load_dm(c, in, mr);
	if (mr->kind != ORNIC_KEY_FAST_REG)
		return ORNIC_ST_OK;
	if (!pagelist_reserve(&c->dev->lists, le32toh(in->max_pages)))
		return ORNIC_ST_NO_RESOURCE;
	mr->lists.left = le32toh(in->max_pages);
	return ORNIC_ST_OK;
}

void key_unload(struct device *dev, struct mr *mr)
{
	memop_unbind(mr);
	if (mr->dm_users)
		--*mr->dm_users;
	pagelist_return(&dev->lists, mr->lists.left);
	if (mr->mem.page)
		umem_free(&mr->mem, &dev->lists);
	durable_put(mr->durable);
	mr->durable = NULL;
}

/* Number the key. A key for remote access gets an unpredictable index (ORN-MEM-9). */
static uint8_t key_number(struct command *c, struct mr *mr)
{
	struct table *t = &c->dev->keys;
	uint32_t index;
	int err;

	if (mr->access & ORNIC_ACCESS_REMOTE || key_is_blank(mr->kind))
		err = table_add_random(t, mr, &index);
	else
		err = table_add(t, mr, &index);
	if (err)
		return err == -ENOSPC ? ORNIC_ST_LIMIT : ORNIC_ST_NO_RESOURCE;
	mr->tag = ++c->f->tag;
	c->number = index << ORNIC_KEY_TAG_BITS | mr->tag;
	return ORNIC_ST_OK;
}

uint8_t cmd_key_create(struct command *c)
{
	const struct ornic_key_create_cmd *in = c->in;
	uint8_t st = key_check(c, in);
	struct mr *mr;

	if (!st && in->kind == ORNIC_KEY_REGION)
		st = key_load(c, in, le32toh(in->access));
	if (st)
		return st;
	mr = account_alloc(&c->dev->account, sizeof(*mr));
	if (!mr)
		return ORNIC_ST_NO_RESOURCE;
	mr->kind = in->kind;
	mr->pd = le32toh(in->pd);
	mr->access = le32toh(in->access);
	mr->iova = le64toh(in->iova);
	mr->length = mr->kind == ORNIC_KEY_PHYS_ALL ? UINT64_MAX : le64toh(in->length);
	mr->attr = *in;
	st = key_furnish(c, in, mr);
	st = st ?: key_number(c, mr);
	if (!st) {
		key_take(c, mr);
		if (mr->pd)
			pd_get(c->dev, mr->pd)->users++;
		c->f->created = true;
		return ORNIC_ST_OK;
	}
	key_unload(c->dev, mr);
	account_free(&c->dev->account, mr, sizeof(*mr));
	return st;
}

uint8_t cmd_key_query(struct command *c)
{
	struct ornic_key_query_rsp *out = c->out;
	struct mr *mr = key_get(c->dev, c->number);

	if (!mr)
		return ORNIC_ST_BAD_NUMBER;
	out->attr = mr->attr;
	out->key = htole32(key_index(c->number) << ORNIC_KEY_TAG_BITS | mr->tag);
	out->state = htole32(mr->bound || !key_is_blank(mr->kind));
	out->uses = htole64(mr->uses);
	return ORNIC_ST_OK;
}

/*
 * Free a key. The data path looks keys up for each piece of work and keeps no pointers between
 * iterations, so later accesses find no key (ORN-MEM-3).
 */
void key_release(struct device *dev, uint32_t index, void *obj)
{
	struct mr *mr = obj;

	if (mr->pd)
		pd_get(dev, mr->pd)->users--;
	table_del(&dev->keys, index);
	key_unload(dev, mr);
	account_free(&dev->account, mr, sizeof(*mr));
}

uint8_t cmd_key_destroy(struct command *c)
{
	struct mr *mr = key_get(c->dev, c->number);

	if (!mr)
		return ORNIC_ST_BAD_NUMBER;
	if (mr->windows)
		return ORNIC_ST_BUSY;
	key_release(c->dev, key_index(c->number), mr);
	return ORNIC_ST_OK;
}

void key_unbind(struct device *dev, uint32_t index, void *mr)
{
	(void)dev;
	(void)index;
	memop_unbind(mr);
}
