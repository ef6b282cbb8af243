// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: blocks of BAR4.
 *
 * The memory belongs to the daemon. A guest accesses it through the BAR, with a message per
 * access; queue pairs access it through keys, as fast as other memory. The VMM cannot map the
 * BAR: QEMU 11.1 posts writes to a device only if no region of it can be mapped, so a mappable
 * BAR would slow down every doorbell (vfu/region.c has figures).
 *
 * A block consists of whole pages in the first gap that is large enough. Memory is zeroed when
 * a block is created and when it is destroyed.
 */
#include "command.h"

#include "../engine/mr.h"

#include <ornic/dm.h>
#include <ornic/mr.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	(1u << ORNIC_DM_LOG_PAGE)
#define PAGES	(LIMIT_DM / PAGE)

_Static_assert(PAGES <= 64, "a bit of dm_used for each page");

/**
 * struct dm - a block
 * @first:	number of the first page
 * @pages:	number of pages
 * @bytes:	requested bytes; keys end there
 * @users:	number of keys that refer to it
 */
struct dm {
	uint32_t first;
	uint32_t pages;
	uint64_t bytes;
	uint32_t users;
};

int dm_init(struct function *f)
{
	void *mem = mmap(NULL, LIMIT_DM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	f->dm_mem = mem;
	return 0;
}

void dm_fini(struct function *f)
{
	munmap(f->dm_mem, LIMIT_DM);
}

uint64_t dm_bar_read(const struct function *f, uint64_t off, unsigned int len)
{
	uint64_t val = 0;

	memcpy(&val, f->dm_mem + off, len);
	return val;
}

void dm_bar_write(struct function *f, uint64_t off, unsigned int len, uint64_t val)
{
	memcpy(f->dm_mem + off, &val, len);
	f->dm_dirty |= 1ull << off / PAGE;
}

static uint64_t page_mask(uint32_t first, uint32_t pages)
{
	return (pages < 64 ? (1ull << pages) - 1 : UINT64_MAX) << first;
}

/* Return the first gap of @pages pages at a multiple of @align pages, or -1. */
static int gap_find(uint64_t used, uint32_t pages, uint32_t align)
{
	for (uint32_t first = 0; first + pages <= PAGES; first += align)
		if (!(used & page_mask(first, pages)))
			return first;
	return -1;
}

static uint8_t dm_check(struct command *c, const struct ornic_dm_create_cmd *in)
{
	uint64_t bytes = le64toh(in->bytes);
	uint8_t st = command_need(c, ORNIC_FEATURE(DM), &in->bytes);

	if (!st && !bytes)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->bytes);
	if (!st && bytes > LIMIT_DM)
		st = command_reject(c, ORNIC_ST_LIMIT, &in->bytes);
	if (!st && in->log_align >= 64)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->log_align);
	st = st ?: COMMAND_ZERO(c, in->mbz);
	return st ?: COMMAND_ZERO(c, in->want);
}

/* Return the alignment of blocks in pages. With PAGES or more only page 0 is aligned. */
static uint32_t align_pages(uint8_t log_align)
{
	if (log_align <= ORNIC_DM_LOG_PAGE)
		return 1;
	log_align -= ORNIC_DM_LOG_PAGE;
	return log_align < 6 ? 1u << log_align : PAGES;
}

uint8_t cmd_dm_create(struct command *c)
{
	const struct ornic_dm_create_cmd *in = c->in;
	struct ornic_dm_create_rsp *out = c->out;
	uint8_t st = dm_check(c, in);
	struct dm *dm;
	int first;

	if (st)
		return st;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return ORNIC_ST_NO_RESOURCE;
	dm->bytes = le64toh(in->bytes);
	dm->pages = (dm->bytes + PAGE - 1) / PAGE;
	first = gap_find(c->f->dm_used, dm->pages, align_pages(in->log_align));
	st = first < 0 ? ORNIC_ST_NO_RESOURCE : command_number(c, &c->f->dms, dm);
	if (st) {
		free(dm);
		return st;
	}
	dm->first = first;
	c->f->dm_used |= page_mask(dm->first, dm->pages);
	memset(c->f->dm_mem + dm->first * PAGE, 0, dm->pages * PAGE);
	out->offset = htole64(dm->first * PAGE);
	out->bytes = htole64(dm->pages * PAGE);
	return ORNIC_ST_OK;
}

static void dm_release(struct function *f, uint32_t number, struct dm *dm)
{
	table_del(&f->dms, number);
	memset(f->dm_mem + dm->first * PAGE, 0, dm->pages * PAGE);
	f->dm_used &= ~page_mask(dm->first, dm->pages);
	f->dm_dirty &= ~page_mask(dm->first, dm->pages);
	free(dm);
}

uint8_t cmd_dm_destroy(struct command *c)
{
	struct dm *dm = table_get(&c->f->dms, c->number);

	if (!dm)
		return ORNIC_ST_BAD_NUMBER;
	if (dm->users)
		return ORNIC_ST_BUSY;
	dm_release(c->f, c->number, dm);
	return ORNIC_ST_OK;
}

void dm_release_all(struct function *f)
{
	uint32_t n = 0;
	struct dm *dm;

	while ((dm = table_next(&f->dms, &n)))
		dm_release(f, n, dm);
	/* A guest can store outside of blocks, too. */
	for (; f->dm_dirty; f->dm_dirty &= f->dm_dirty - 1)
		memset(f->dm_mem + __builtin_ctzll(f->dm_dirty) * PAGE, 0, PAGE);
}

uint8_t key_check_dm(struct command *c, const struct ornic_key_create_cmd *in)
{
	struct dm *dm = table_get(&c->f->dms, le32toh(in->dm));
	uint64_t length = le64toh(in->length), offset = le64toh(in->dm_offset);
	uint8_t st = ORNIC_ST_OK;

	if (le32toh(in->access) & ORNIC_ACCESS_FLUSH_PERSISTENT)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->access);
	if (!st && !dm)
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->dm);
	if (!st && offset > dm->bytes)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->dm_offset);
	if (!st && (length > dm->bytes - offset || le64toh(in->iova) + length < length))
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &in->length);
	st = st ?: COMMAND_ZERO(c, in->flags);
	return st ?: COMMAND_ZERO(c, in->pages);
}

void key_load_dm(struct command *c, const struct ornic_key_create_cmd *in, struct mr *mr)
{
	struct dm *dm = table_get(&c->f->dms, le32toh(in->dm));

	dm->users++;
	mr->dm = c->f->dm_mem + dm->first * PAGE + le64toh(in->dm_offset);
	mr->dm_users = &dm->users;
}
