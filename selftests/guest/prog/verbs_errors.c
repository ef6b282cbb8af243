// SPDX-License-Identifier: GPL-2.0
/*
 * Errors between two ends: the right status and the right event at each, without effect on
 * others.
 *
 *   verbs_errors -d DEVICE                       server, until killed
 *   verbs_errors -d DEVICE [-n] SERVER [TEST..]  client, prints TAP
 *
 * -n: the device raises no asynchronous events (rxe), do not expect any.
 */
#include "errors.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define OOB_PORT	"7472"

struct order {
	uint32_t test;
	uint32_t no_events;
};

/* Tests are numbered through the tables. */
static const struct error_test *test_of(unsigned int number)
{
	const struct error_test *tables[] = { remote_tests, local_tests, path_tests };

	for (unsigned int t = 0; t < 3; t++)
		for (const struct error_test *test = tables[t]; test->name; test++)
			if (!number--)
				return test;
	return NULL;
}

static void run_test(struct dev *d, struct oob *o, const struct error_test *t, bool no_events,
		     struct verdict verdicts[2])
{
	struct env e = { .dev = d, .oob = o, .client = !o->server, .no_events = no_events };

	env_open(&e, t);
	t->run(&e);
	env_close(&e);
	verdicts[0] = e.verdict;
	oob_swap(o, &verdicts[0], &verdicts[1], sizeof(verdicts[0]));
}

static void serve(const char *device, int gid_index)
{
	int listener = oob_listen(OOB_PORT);
	struct verdict verdicts[2];
	struct order order;
	struct oob oob;
	struct dev dev;

	printf("listening\n");
	fflush(stdout);
	while (oob_accept(&oob, listener)) {
		dev_open(&dev, device, gid_index);
		while (oob_recv(&oob, &order, sizeof(order)))
			run_test(&dev, &oob, test_of(order.test), order.no_events, verdicts);
		dev_close(&dev);
		oob_close(&oob);
	}
}

static void ask_all(struct dev *d, struct oob *o, char **names, bool no_events)
{
	struct order order = { .no_events = no_events };
	const struct error_test *t;

	for (; (t = test_of(order.test)); order.test++) {
		struct verdict verdicts[2];

		if (!tap_chosen(t->name, names))
			continue;
		oob_send(o, &order, sizeof(order));
		run_test(d, o, t, no_events, verdicts);
		tap_point(t->name, &verdicts[0], &verdicts[1]);
	}
}

static void usage(void)
{
	fprintf(stderr, "usage: verbs_errors -d DEVICE [-g GID_INDEX] [-n] [SERVER [TEST...]]\ntests:");
	for (unsigned int i = 0; test_of(i); i++)
		fprintf(stderr, " %s", test_of(i)->name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	bool no_events = false;
	int gid_index = -1, option;
	struct oob oob;
	struct dev dev;

	while ((option = getopt(argc, argv, "d:g:n")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
		else if (option == 'n')
			no_events = true;
		else
			usage();
	}
	if (!device)
		usage();
	if (optind == argc) {
		serve(device, gid_index);
		return 1;
	}
	oob_connect(&oob, argv[optind], OOB_PORT);
	dev_open(&dev, device, gid_index);
	ask_all(&dev, &oob, argv + optind + 1, no_events);
	dev_close(&dev);
	oob_close(&oob);
	return tap_end();
}
