// SPDX-License-Identifier: GPL-2.0
/*
 * A guest keeps its share of the daemon's time whatever another guest does. Each attack is compared
 * with an honest neighbour that is equally busy.
 *
 * The number of completed WRITEs depends much on whether the daemon falls asleep between them, and on
 * the load of the machine. So the test demands only a twentieth of the share beside an honest
 * neighbour, in one of ten attempts. Before resets were bounded, a flood of them left 1 % in each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/mr.h>
#include <ornic/pd.h>
#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MSG		64u
#define MEASURE_NS	300000000ull
#define ATTEMPTS	10
#define LEAST		20	/* parts of the honest share */
#define DEPTH		32u
#define OBJECTS		4000u

/* Keep DEPTH WRITEs of the station to itself in flight until @end, ns. Return how many completed. */
static uint64_t writes(struct station *s, uint64_t end)
{
	struct ornic_cqe cqe;
	uint64_t n = 0, sent = 0;

	do {
		while (sent - n < DEPTH) {
			host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, MSG, s->key, s->buf + 4096,
				  s->key);
			sent++;
		}
		while (host_next(&s->cq, &cqe)) {
			assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
			n++;
		}
	} while (stations_clock() < end);
	while (n < sent) {
		assert_true(host_wait(&s->cq, &cqe));
		n++;
	}
	return n;
}

static void store(struct station *s, uint64_t off, uint32_t val)
{
	s->d.host.bus.write(s->d.host.bus.arg, off, 4, val);
}

/* What the neighbour does, again and again, in a process of its own */
static void honest(struct station *s)
{
	writes(s, stations_clock() + MEASURE_NS);
}

static void flood_reset(struct station *s)
{
	for (int i = 0; i < 1000; i++)
		store(s, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
}

/* RESET of a device that once had many objects */
static void flood_reset_large(struct station *s)
{
	static bool made;
	struct ornic_pd_create_cmd pd = { 0 };

	for (uint32_t i = 0; !made && i < OBJECTS; i++)
		host_exec(&s->d.host, ORNIC_OP_PD_CREATE, 0, &pd, sizeof(pd), NULL, 0);
	made = true;
	flood_reset(s);
}

static void flood_bus_master(struct station *s)
{
	for (int i = 0; i < 100; i++)
		vfu_client_bus_master(&s->d.vfu, i % 2);
}

static void flood_doorbells(struct station *s)
{
	for (int i = 0; i < 1000; i++)
		host_doorbell(&s->d.host, 1, ORNIC_DB_SQ, s->qp.number, 0);
}

static void flood_commands(struct station *s)
{
	host_exec(&s->d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0);
}

/* Large page lists that are rejected at their end: each entry is read, and the memory is freed */
static void flood_lists(struct station *s)
{
	struct ornic_key_create_cmd cmd = {
		.pd = htole32(s->pd), .length = htole64((STATION_MEM / 8) << 12),
		.pages = { .addr = htole64(DEVICE_DMA_BASE), .page_shift = 12, .level = 1 },
	};

	host_exec(&s->d.host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
}

static const struct {
	const char *name;
	void (*act)(struct station *s);
} acts[] = {
	{ "an honest neighbour", honest },
	{ "RESET", flood_reset },
	{ "RESET of a device that had 4000 objects", flood_reset_large },
	{ "Bus Master Enable on and off", flood_bus_master },
	{ "doorbells", flood_doorbells },
	{ "admin commands", flood_commands },
	{ "page lists of 2 Mi entries", flood_lists },
};

/* Start a process in which the first guest does this. Its parent must not use the device. */
static pid_t neighbour(struct stations *t, void (*act)(struct station *s))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	station_bring_up(&t->s[0], 0);
	station_connect(t, 0, 0);
	for (;;)
		act(&t->s[0]);
}

/* Connect again. The daemon first has to handle what the last connection left in its socket. */
static void reopen(struct stations *t)
{
	char path[64];

	device_close(&t->s[0].d);
	snprintf(path, sizeof(path), "%s/0", t->dir);
	for (int i = 0; device_open(&t->s[0].d, path, STATION_MEM); i++) {
		assert_in_range(i, 0, 1000);
		usleep(10000);
	}
}

/* Return how many WRITEs complete while the first guest does @act: at least @least, if one attempt does. */
static uint64_t measured(struct stations *t, void (*act)(struct station *s), uint64_t least)
{
	pid_t pid = neighbour(t, act);
	uint64_t n = 0;

	usleep(300000);		/* it brings its device up */
	for (int i = 0; i < ATTEMPTS && (!i || n < least); i++)
		n = writes(&t->s[1], stations_clock() + MEASURE_NS);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	reopen(t);
	return n;
}

static void test_floods(void **state)
{
	struct stations *t = *state;
	uint64_t share = 0;
	bool fair = true;

	station_bring_up(&t->s[1], 1);
	station_connect(t, 1, 1);
	t->s[1].d.host.timeout_ms = 30000;
	print_message("# alone: %llu WRITEs of 64 B\n", (unsigned long long)
		      writes(&t->s[1], stations_clock() + MEASURE_NS));
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		uint64_t n = measured(t, acts[i].act, share / LEAST);

		if (!i)
			share = n;
		print_message("# %s: %llu, %llu %%\n", acts[i].name, (unsigned long long)n,
			      (unsigned long long)(n * 100 / share));
		fair &= n >= share / LEAST;
	}
	assert_true(fair);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_floods, stations_setup, stations_teardown),
	};
	static char path[4096];
	char *args[] = { argv[0], argc > 1 ? argv[1] : path, NULL };
	const char *build = getenv("O");

	snprintf(path, sizeof(path), "%s/ornicd", build ? build : "build");
	if (!stations_daemon(2, args))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
