// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that take several iterations of the engine: see progress.h.
 */
#include "command.h"

uint8_t progress_pages(struct command *c, const struct ornic_pages *field, uint64_t length)
{
	struct progress *p = &c->f->progress;
	int st;

	if (!p->loading) {
		st = umem_begin(&p->load, c->dev->gpa, field, length, LIMIT_PAGE_SIZES,
				&c->dev->lists);
		if (st == UMEM_MORE) {
			p->work = 0;
			return COMMAND_MORE;
		}
		if (st)
			return command_reject(c, st, field);
		p->loading = true;
	}
	st = umem_step(&p->load, &p->work);
	if (st == UMEM_MORE)
		return COMMAND_MORE;
	return st ? command_reject(c, st, field) : ORNIC_ST_OK;
}

/*
 * The client may map and unmap memory between iterations. Pages that were checked are not checked
 * again: a host that unmaps memory while it registers it harms only itself (ORN-MEM-20).
 */
uint8_t progress_durable(struct command *c, const __le32 *field, const struct umem *mem)
{
	struct progress *p = &c->f->progress;
	struct durable *file = p->file;
	int st = umem_durable(mem, &p->checked, &p->work, &file);

	if (!p->file)
		p->file = durable_get(file);
	if (st == UMEM_MORE)
		return COMMAND_MORE;
	return st ? command_reject(c, st, field) : ORNIC_ST_OK;
}

struct umem progress_take_pages(struct function *f)
{
	f->progress.loading = false;
	return f->progress.load.mem;
}

struct durable *progress_take_file(struct function *f)
{
	struct durable *file = f->progress.file;

	f->progress.file = NULL;
	return file;
}

void progress_charge(struct function *f, uint64_t entries)
{
	struct progress *p = &f->progress;

	p->work -= entries < p->work ? entries : p->work;
}

void progress_end(struct function *f)
{
	struct progress *p = &f->progress;

	p->active = false;
	if (p->loading)
		umem_free(&p->load.mem, &f->dev.lists);
	p->loading = false;
	durable_put(p->file);
	p->file = NULL;
	p->checked = 0;
}
