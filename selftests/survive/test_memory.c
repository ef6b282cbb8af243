// SPDX-License-Identifier: GPL-2.0
/*
 * Guests that make the daemon allocate as much as they can do not exhaust its memory: 64 hostile ones
 * and an honest one, in a memory control group of 1 GiB.
 */
#define _GNU_SOURCE 1	/* pipe2() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device.h"
#include "queue.h"

#include <ornic/identify.h>
#include <ornic/mr.h>
#include <ornic/qp.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOSTILE		64
#define ALL		(HOSTILE + 1)
#define GROUP_BYTES	(1ull << 30)
#define MEM		(8u << 20)
#define LEAVES		(64u << 20 >> 9)	/* of a list of 64 Mi entries */

struct daemon {
	char dir[32];
	pid_t pid;
	struct device_client d[ALL];
};

/* Where a memory control group is made: version 1, and version 2 */
static const struct {
	const char *path;
	const char *limit;
} groups[] = {
	{ "/sys/fs/cgroup/memory/ornic-survive", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup/ornic-survive", "memory.max" },
};

static char ornicd[4096];
static const char *group;

/* Write @text to file @name of folder @path. */
static bool put(const char *path, const char *name, const char *text)
{
	char file[128];
	bool ok;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_WRONLY);
	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* Make the control group. Return: false if this user or this system cannot. */
static bool group_make(void)
{
	char bytes[24];

	snprintf(bytes, sizeof(bytes), "%llu", GROUP_BYTES);
	put("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");	/* version 2 */
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		group = groups[i].path;
		if ((!mkdir(group, 0700) || errno == EEXIST) && put(group, groups[i].limit, bytes))
			return true;
		rmdir(group);
	}
	return false;
}

static void run_daemon(struct daemon *t, const char *ready_fd)
{
	static char spec[ALL][64];
	const char *argv[2 * ALL + 6] = { ornicd, "--log-level", "error", "--ready-fd", ready_fd };
	int n = 5;

	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* in case the test aborts */
	if (!put(group, "cgroup.procs", "0"))
		_exit(126);
	for (int i = 0; i < ALL; i++) {
		snprintf(spec[i], sizeof(spec[i]), "path=%s/%d", t->dir, i);
		argv[n++] = "-d";
		argv[n++] = spec[i];
	}
	execv(ornicd, (char **)argv);
	_exit(127);
}

static int setup(void **state)
{
	struct daemon *t = test_calloc(1, sizeof(*t));
	char fd[12], c;
	int ready[2];

	*state = t;
	strcpy(t->dir, "/tmp/ornic-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(pipe2(ready, 0), 0);
	snprintf(fd, sizeof(fd), "%d", ready[1]);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		close(ready[0]);
		run_daemon(t, fd);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return 0;
}

static int teardown(void **state)
{
	struct daemon *t = *state;
	int status;

	assert_int_equal(kill(t->pid, SIGTERM), 0);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(rmdir(t->dir), 0);
	test_free(t);
	return 0;
}

/* Return a line of /proc/PID/status, kB. */
static unsigned long status_kb(pid_t pid, const char *name)
{
	char path[32], line[128];
	unsigned long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtoul(line + strlen(name) + 1, NULL, 10);
	fclose(f);
	return kb;
}

/* A device that is up, with a PD and a CQ */
struct up {
	struct host_ring eq0, eq1, cq;
	uint32_t pd;
};

static void bring_up(struct daemon *t, int i, struct up *up)
{
	struct host *h = &t->d[i].host;
	char path[64];

	snprintf(path, sizeof(path), "%s/%d", t->dir, i);
	assert_int_equal(device_open(&t->d[i], path, MEM), 0);
	h->timeout_ms = 60000;
	assert_int_equal(host_enable(h), 0);
	assert_int_equal(host_bring_up(h, ORNIC_FEATURE(RC), &up->eq0, &up->eq1), 0);
	assert_int_equal(host_pd_create(h, &up->pd), 0);
	assert_int_equal(host_cq_create(h, &up->cq, 4, up->eq1.number, 0), 0);
}

/* Create queue pairs until one is rejected, at most @most. Return their number. */
static uint32_t take_queue_pairs(struct host *h, const struct up *up, uint32_t most)
{
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;
	uint32_t n = 0;

	host_qp_template(h, &qp, ORNIC_QPT_RC, 2, up->pd, up->cq.number, up->cq.number, &cmd);
	while (n < most && !host_exec(h, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0))
		n++;
	return n;
}

/*
 * Register regions whose page lists have one leaf again and again, so that a few pages of the guest
 * become a list of up to 512 MiB: as large as the device accepts.
 */
static uint64_t take_lists(struct host *h, const struct up *up)
{
	uint64_t top = dma_alloc(&h->dma, LEAVES * sizeof(uint64_t), 4096);
	uint64_t leaf = dma_alloc(&h->dma, ORNIC_PAGES_LEAF_BYTES, 4096), taken = 0;
	uint64_t *entry = dma_at(&h->dma, top);

	for (uint32_t i = 0; i < LEAVES; i++)
		entry[i] = htole64(leaf);
	for (uint64_t pages = 64u << 20; pages >= 1024; ) {
		struct ornic_key_create_cmd cmd = {
			.pd = htole32(up->pd), .length = htole64(pages << 12),
			.pages = { .addr = htole64(top), .page_shift = 12, .level = 2 },
		};
		int st = host_exec(h, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);

		assert_true(!st || st == ORNIC_ST_NO_RESOURCE || st == ORNIC_ST_LIMIT);
		if (st)
			pages /= 2;
		else
			taken += pages;
	}
	return taken * sizeof(uint64_t);
}

/* The honest guest comes last, and gets what it needs; when the others are gone, so is their memory. */
static void test_memory(void **state)
{
	struct daemon *t = *state;
	unsigned long idle = status_kb(t->pid, "VmRSS"), busy, end;
	uint64_t lists = 0, qps = 0;
	struct up up;

	for (int i = 0; i < HOSTILE; i++) {
		bring_up(t, i, &up);
		lists += take_lists(&t->d[i].host, &up);
		qps += take_queue_pairs(&t->d[i].host, &up, UINT32_MAX);
	}
	busy = status_kb(t->pid, "VmRSS");
	print_message("# 64 hostile guests: page lists %llu MiB, %llu queue pairs; daemon %lu MiB\n",
		      (unsigned long long)(lists >> 20), (unsigned long long)qps, busy >> 10);
	assert_in_range(busy, 0, GROUP_BYTES >> 10);
	bring_up(t, HOSTILE, &up);
	assert_int_equal(take_queue_pairs(&t->d[HOSTILE].host, &up, 1000), 1000);
	for (int i = 0; i < ALL; i++)
		device_close(&t->d[i]);
	for (int i = 0; i < 100; i++) {
		end = status_kb(t->pid, "VmRSS");
		if (end < idle + (busy - idle) / 4)
			break;
		usleep(100000);
	}
	print_message("# idle before %lu MiB, after %lu MiB\n", idle >> 10, end >> 10);
	assert_in_range(end, 0, idle + (busy - idle) / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};
	const char *build = getenv("O");
	int failed;

	signal(SIGPIPE, SIG_IGN);
	snprintf(ornicd, sizeof(ornicd), "%s/ornicd", build ? build : "build");
	if (!group_make()) {
		print_message("1..1\nok 1 - test_memory # SKIP no memory control group can be made (needs root)\n");
		return 0;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(group);
	return failed;
}
