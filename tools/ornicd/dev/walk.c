// SPDX-License-Identifier: GPL-2.0
/*
 * Visit all objects of a device, some of them per iteration.
 */
#include "walk.h"

#include "../engine/device.h"

bool walk_run(struct walk *w, struct device *dev, const struct walk_step *steps, uint32_t nsteps,
	      uint32_t work)
{
	for (; w->step < nsteps; *w = (struct walk){ .step = w->step + 1 }) {
		const struct walk_step *s = &steps[w->step];
		const struct table *t = (const struct table *)((char *)dev + s->table);
		void *obj;

		while ((obj = table_next(t, &w->number))) {
			if (!work--)
				return false;
			s->visit(dev, w->number++, obj);
		}
	}
	return true;
}
