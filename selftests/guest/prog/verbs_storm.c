// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that share queues, with and without others that create and destroy objects all
 * the while.
 *
 *   verbs_storm -d DEVICE [-s SEED] [-n DIVISOR] [-u]                    server, until killed
 *   verbs_storm -d DEVICE [-s SEED] [-n DIVISOR] [-m MESSAGES] [-c ROUNDS] [-g FILE] [-u]
 *               SERVER [TEST..]                                        client, prints TAP
 *
 * -c: threads of both processes create and destroy objects, each this many times; -n
 * divides the work, -m is the number of messages of each poster; -g: connected queue pairs
 * send as soon as the file exists; -u: the device of this process may be taken away.
 */
#include "storm_churn.h"
#include "storm_traffic.h"
#include "oob.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OOB_PORT	"7475"
#define MESSAGES	300		/* of each poster */
#define CHURNERS	2

static const struct traffic_plan plans[] = {
	{ .name = "order", .qps = 2, .posters = 4, .pollers = 1, .cqs = 2 },
	{ .name = "one_qp", .qps = 1, .posters = 4, .pollers = 3, .cqs = 1 },
	{ .name = "one_cq", .qps = 8, .posters = 4, .pollers = 4, .cqs = 1 },
	{ .name = "one_srq", .qps = 6, .posters = 4, .pollers = 2, .cqs = 2, .srq = true },
	{ .name = "one_channel", .qps = 6, .posters = 3, .pollers = 3, .cqs = 4, .events = true },
};

#define PLANS	(sizeof(plans) / sizeof(plans[0]))

/* The client's order for the server. */
struct order {
	uint32_t plan;
	uint32_t divisor;
	uint32_t churn;
	uint32_t messages;
	uint64_t seed;
};

static void run(struct dev *d, struct oob *o, const struct order *order, const char *gate,
		bool unplug, struct verdict *mine, struct verdict *theirs)
{
	const struct traffic_plan *plan = &plans[order->plan];
	struct churn churn;
	struct storm s;

	storm_init(&s, order->seed, order->divisor, unplug);
	s.dev = *d;
	s.gate = gate;
	if (order->churn)
		churn_start(&churn, &s, CHURNERS, order->churn);
	traffic_run(&s, o, plan, storm_work(&s, order->messages));
	if (order->churn)
		churn_end(&churn);
	*mine = s.verdict;
	oob_swap(o, mine, theirs, sizeof(*mine));
}

static void serve(const char *device, bool unplug)
{
	int listener = oob_listen(OOB_PORT);
	struct verdict mine, theirs;
	struct order order;
	struct oob oob;
	struct dev dev;

	printf("listening\n");
	fflush(stdout);
	while (oob_accept(&oob, listener)) {
		dev_open(&dev, device, -1);
		while (oob_recv(&oob, &order, sizeof(order)))
			run(&dev, &oob, &order, NULL, unplug, &mine, &theirs);
		dev_close(&dev);
		oob_close(&oob);
	}
}

static void usage(void)
{
	bail("usage: verbs_storm -d DEVICE [-s SEED] [-n DIVISOR] [-m MESSAGES] [-c ROUNDS] [-g FILE] [-u] "
	     "[SERVER [TEST..]]");
}

int main(int argc, char **argv)
{
	struct order order = { .divisor = 1, .seed = 1, .messages = MESSAGES };
	struct verdict mine, theirs;
	const char *device = NULL, *gate = NULL;
	bool unplug = false;
	struct oob oob;
	struct dev dev;
	int option;

	while ((option = getopt(argc, argv, "d:s:n:m:c:g:u")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 's')
			order.seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			order.divisor = atoi(optarg);
		else if (option == 'm')
			order.messages = atoi(optarg);
		else if (option == 'c')
			order.churn = atoi(optarg);
		else if (option == 'g')
			gate = optarg;
		else if (option == 'u')
			unplug = true;
		else
			usage();
	}
	if (!device || !order.divisor)
		usage();
	if (unplug)
		storm_allow_unplug();
	if (optind == argc) {
		serve(device, unplug);
		return 1;
	}
	printf("# seed %llu\n", (unsigned long long)order.seed);
	oob_connect(&oob, argv[optind], OOB_PORT);
	dev_open(&dev, device, -1);
	for (order.plan = 0; order.plan < PLANS; order.plan++) {
		if (!tap_chosen(plans[order.plan].name, argv + optind + 1))
			continue;
		oob_send(&oob, &order, sizeof(order));
		run(&dev, &oob, &order, gate, unplug, &mine, &theirs);
		tap_point(plans[order.plan].name, &mine, &theirs);
	}
	dev_close(&dev);
	oob_close(&oob);
	return tap_end();
}
