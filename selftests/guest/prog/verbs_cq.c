// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues and domains, within one machine.
 *
 *   verbs_cq -d DEVICE [TEST...]	prints TAP
 */
#include "cq.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cq_test *const tables[] = {
	clock_tests, event_tests, size_tests, domain_tests,
};

static void run(const char *device, int gid_index, const struct cq_test *t)
{
	static const struct verdict good;
	struct verdict v = {};
	struct dev d;

	dev_open(&d, device, gid_index);
	t->run(&d, &v);
	dev_close(&d);
	tap_point(t->name, &v, &good);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int gid_index = -1, option;

	while ((option = getopt(argc, argv, "d:g:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
	}
	if (!device) {
		fprintf(stderr, "usage: verbs_cq -d DEVICE [-g GID_INDEX] [TEST...]\n");
		return 2;
	}
	for (size_t n = 0; n < sizeof(tables) / sizeof(tables[0]); n++)
		for (const struct cq_test *t = tables[n]; t->name; t++)
			if (tap_chosen(t->name, argv + optind))
				run(device, gid_index, t);
	return tap_end();
}
