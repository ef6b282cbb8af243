// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that take several turns: see progress.h.
 */
#include "command.h"

uint8_t progress_pages(struct command *c, const struct ornic_pages *field, uint64_t length,
		       struct umem *mem)
{
	struct progress *p = &c->f->progress;
	int st;

	if (!p->loading) {
		st = umem_begin(&p->load, c->dev->gpa, field, length, LIMIT_PAGE_SIZES,
				&c->dev->list_budget);
		if (st)
			return command_refuse(c, st, field);
		p->loading = true;
	}
	st = umem_step(&p->load, &p->work);
	if (st == UMEM_MORE)
		return COMMAND_MORE;
	if (st)
		return command_refuse(c, st, field);
	p->loading = false;
	*mem = p->load.mem;
	return ORNIC_ST_OK;
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
		umem_free(&p->load.mem, &f->dev.list_budget);
	p->loading = false;
}
