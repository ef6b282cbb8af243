// SPDX-License-Identifier: GPL-2.0
/*
 * Creating and destroying objects of every kind, within one VM.
 *
 *   verbs_storm_churn [-s SEED] [-n DIVISOR] DEVICE TEST
 *
 * - all: threads of one process create and destroy objects; no object remains.
 * - tough: the same, and the threads continue after failures.
 * - rereg: regions change under traffic.
 * - limits: objects of some kinds are created up to the limit; then all can be destroyed.
 * - killed: processes that create and destroy objects are killed at random moments.
 * - unplugged: goes on until the device is taken away.
 * - forever: the victim of the other tests.
 */
#include "storm_churn.h"
#include "storm_rereg.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS		3
#define ROUNDS		700		/* of each thread */
#define MOVERS		4
#define MOVES		200
#define ENDLESS		1000000
#define CHILDREN	3		/* at a time */
#define KILLS		12
#define MIN_LIFE	50000		/* us; some are killed while they start */
#define LIFE		400000

static void churn(struct storm *s, const char *device, unsigned int rounds)
{
	struct churn c;

	dev_open(&s->dev, device, -1);
	churn_start(&c, s, THREADS, rounds);
	churn_end(&c);
	for (enum kind k = 0; rounds < ENDLESS && k < KINDS; k++)
		if (!c.made[k] && rounds * THREADS > 50 * KINDS)
			storm_fail(s, "no %s was ever created", kinds[k].name);
	if (!atomic_load(&s->over))
		dev_close(&s->dev);
}

static void rereg(struct storm *s, const char *device)
{
	dev_open(&s->dev, device, -1);
	rereg_run(s, MOVERS, storm_work(s, MOVES));
	dev_close(&s->dev);
}

/* Create as many as possible; then all can be destroyed, and there is room again. */
static void limit(struct nest *n, enum kind kind, unsigned int least, unsigned int most)
{
	void **made = calloc(most + 1, sizeof(*made));
	unsigned int count = 0;
	int err = 0;

	if (!made)
		bail("out of memory");
	while (count <= most && !err) {
		made[count] = kinds[kind].make(n);
		err = made[count] ? 0 : errno;
		count += !err;
	}
	if (count < least || count > most || (err != ENOMEM && err != ENOSPC))
		storm_fail(n->s, "%u times %s, expected %u to %u: %s", count, kinds[kind].name,
			   least, most, strerror(err));
	while (count)
		if (kinds[kind].drop(n, made[--count]))
			storm_fail(n->s, "one %s does not go", kinds[kind].name);
	made[0] = kinds[kind].make(n);
	if (!made[0] || kinds[kind].drop(n, made[0]))
		storm_fail(n->s, "no %s after the limit", kinds[kind].name);
	free(made);
}

static void limits(struct storm *s, const char *device)
{
	struct nest n;

	dev_open(&s->dev, device, -1);
	nest_init(&n, s, NULL, 0);
	limit(&n, K_PD, s->dev.attr.max_pd - 16, s->dev.attr.max_pd);
	limit(&n, K_DM, 4, 64);
	n.thing[K_CQ][0] = kinds[K_CQ].make(&n);
	n.thing[K_RAW][0] = kinds[K_RAW].make(&n);
	if (!n.thing[K_RAW][0])
		bail("no raw packet queue pair: %s", strerror(errno));
	limit(&n, K_FLOW, 400, 512);
	kinds[K_RAW].drop(&n, n.thing[K_RAW][0]);
	kinds[K_CQ].drop(&n, n.thing[K_CQ][0]);
	nest_free(&n);
	dev_close(&s->dev);
}

static pid_t start_child(const char *device, uint64_t seed)
{
	char number[32];
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
	pid = fork();
	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (!pid) {
		execl("/proc/self/exe", "verbs_storm_churn", "-s", number, device, "forever", NULL);
		_exit(127);
	}
	return pid;
}

/* A child that ends by itself has found an error. */
static void kill_child(struct storm *s, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) == pid) {
		storm_fail(s, "a child ended with status %#x", status);
		return;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void killed(struct storm *s, const char *device)
{
	pid_t child[CHILDREN];
	struct rnd r;

	rnd_init(&r, s->seed, 0);
	for (int i = 0; i < CHILDREN; i++)
		child[i] = start_child(device, s->seed + i);
	for (unsigned int i = 0; i < storm_work(s, KILLS); i++) {
		usleep(MIN_LIFE + rnd_below(&r, LIFE * s->divisor));
		kill_child(s, child[i % CHILDREN]);
		child[i % CHILDREN] = start_child(device, s->seed + CHILDREN + i);
	}
	for (int i = 0; i < CHILDREN; i++)
		kill_child(s, child[i]);
}

int main(int argc, char **argv)
{
	unsigned int divisor = 1;
	struct verdict good = {};
	uint64_t seed = 1;
	const char *test;
	struct storm s;
	int option;

	while ((option = getopt(argc, argv, "s:n:")) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			divisor = atoi(optarg);
	}
	if (optind + 2 != argc || !divisor)
		bail("usage: verbs_storm_churn [-s SEED] [-n DIVISOR] DEVICE TEST");
	test = argv[optind + 1];
	printf("# seed %llu\n", (unsigned long long)seed);
	storm_init(&s, seed, divisor, !strcmp(test, "unplugged"));
	if (s.unplug)
		storm_allow_unplug();
	s.tough = !strcmp(test, "tough");
	if (!strcmp(test, "killed"))
		killed(&s, argv[optind]);
	else if (!strcmp(test, "rereg"))
		rereg(&s, argv[optind]);
	else if (!strcmp(test, "limits"))
		limits(&s, argv[optind]);
	else
		churn(&s, argv[optind], s.tough || !strcmp(test, "all") ? storm_work(&s, ROUNDS) : ENDLESS);
	tap_point(test, &s.verdict, &good);
	return tap_end();
}
