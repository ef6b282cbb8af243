// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that a process can create, change and destroy, with each allocation failing in
 * turn.
 *
 *   verbs_faults [-n] DEVICE [CASE...]	the named cases, or all; prints TAP, a point per case
 *
 * With -n no allocation fails, and each case is done once: for a device that fails.
 *
 * At the end of each case the device is closed object by object: it rejects the destruction
 * of an object that a leaked object still uses.
 */
#include "faults_cases.h"

#include <stdio.h>
#include <stdlib.h>

struct dev dev;
struct queue cq;

static const struct fault_group *groups[] = {
	&context_faults, &queue_faults, &qp_faults, &memory_faults, &raw_faults,
};

static void report(const char *name, const struct verdict *v, unsigned int faults)
{
	struct verdict good = {};

	tap_point(name, v, &good);
	printf("# %u faults\n", faults);
}

/* Do a case without a fault. */
static void once(struct verdict *v, const struct fault_case *c)
{
	int err = c->make();

	if (!err && c->unmake)
		err = c->unmake();
	if (err)
		verdict_fail(v, "%s", strerror(err));
}

static void run(const char *device, const struct fault_group *g, const struct fault_case *c,
		bool healthy)
{
	struct verdict v = {};
	unsigned int faults = 0;

	dev_open(&dev, device, -1);
	queue_create(&cq, &dev, 64, false);
	if (g->open)
		g->open();
	if (healthy)
		once(&v, c);
	else
		faults = faults_walk(&v, c, false);
	report(c->name, &v, faults);
	if (v.bad)
		exit(1);		/* the kernel cleans up objects that it may have left */
	if (g->close)
		g->close();
	queue_destroy(&cq);
	dev_close(&dev);
}

static void run_process_end(const char *device)
{
	struct verdict v = {};
	unsigned int faults;

	dev_open(&dev, device, -1);
	faults = faults_process_end(&v);
	dev_close(&dev);
	report("process_end", &v, faults);
}

int main(int argc, char **argv)
{
	bool healthy = argc > 1 && !strcmp(argv[1], "-n");

	argv += healthy;
	if (argc < 2 + healthy)
		bail("usage: verbs_faults [-n] DEVICE [CASE...]");
	if (!healthy && !faults_possible())
		bail("this kernel has no fault injection");
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (unsigned int k = 0; k < groups[i]->count; k++)
			if (tap_chosen(groups[i]->cases[k].name, argv + 2))
				run(argv[1], groups[i], &groups[i]->cases[k], healthy);
	if (!healthy && tap_chosen("process_end", argv + 2))
		run_process_end(argv[1]);
	return tap_end();
}
