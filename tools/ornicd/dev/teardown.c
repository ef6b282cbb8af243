// SPDX-License-Identifier: GPL-2.0
/*
 * Release the objects of a function that has stopped.
 *
 * An object is released after those that refer to it. Windows are unbound first, because queue
 * pairs and regions know them.
 */
#include "teardown.h"

#include "command.h"

#include <string.h>

#define TABLE(name)	offsetof(struct device, name)

static void member_release(struct device *dev, uint32_t number, void *member)
{
	(void)member;
	mcast_leave(&dev->mcast, number);
}

static const struct walk_step steps[] = {
	{ TABLE(mcast.number), member_release },
	{ TABLE(rules), rule_release },
	{ TABLE(groups), rss_release },
	{ TABLE(keys), key_unbind },
	{ TABLE(qps), qp_release },
	{ TABLE(srqs), srq_release },
	{ TABLE(sets), counter_set_release },
	{ TABLE(xrcds), xrcd_release },
	{ TABLE(cqs), cq_release },
	{ TABLE(keys), key_release },
	{ TABLE(pds), pd_release },
	{ TABLE(eqs), eq_release },
};

#define NSTEPS	(sizeof(steps) / sizeof(steps[0]))

static void teardown_end(struct function *f)
{
	struct device *dev = &f->dev;

	f->teardown.active = false;
	dm_release_all(f);
	memset(dev->past, 0, sizeof(dev->past));
	memset(dev->port.gid, 0, sizeof(dev->port.gid));
	ctrl_stopped(f);
}

void teardown_begin(struct function *f)
{
	f->teardown = (struct teardown){ .active = true };
}

void teardown_run(struct function *f, uint32_t work)
{
	if (f->teardown.active && walk_run(&f->teardown.walk, &f->dev, steps, NSTEPS, work))
		teardown_end(f);
}
