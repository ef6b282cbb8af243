// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection through /proc/thread-self/fail-nth.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF	"/proc/thread-self/fail-nth"
#define MOST	20000		/* allocations of one step; more means an endless loop */

static unsigned int armed;
static bool hit_in_child;

bool faults_possible(void)
{
	return !access(SELF, W_OK);
}

/* Read the allocations left to count, -1 if the file cannot be read. */
static int left(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY);
	int len = fd < 0 ? -1 : (int)read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return len <= 0 ? -1 : atoi(text);
}

static void count_down(unsigned int n)
{
	char text[16];
	int fd = open(SELF, O_WRONLY);
	int len = snprintf(text, sizeof(text), "%u", n);

	if (fd < 0 || write(fd, text, len) != len)
		bail("cannot write " SELF ": %s", strerror(errno));
	close(fd);
}

void faults_arm(unsigned int n)
{
	armed = n;
	hit_in_child = false;
	count_down(n);
}

bool faults_disarm(void)
{
	bool hit = !left(SELF) || hit_in_child;

	faults_arm(0);
	return hit;
}

bool faults_hit(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	return !left(path);
}

int faults_command(char *const argv[])
{
	siginfo_t info;
	int result;
	pid_t pid = fork();

	if (!pid) {
		count_down(armed);
		execvp(argv[0], argv);
		_exit(127);
	}
	waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
	hit_in_child = armed && faults_hit(pid);
	waitpid(pid, &result, 0);
	return result ? ENOMEM : 0;
}

/* Return true for lack of memory, including the errnos of sockets, files and PCI resources */
static bool is_shortage(int err)
{
	return err == ENOMEM || err == ENOBUFS || err == EAGAIN || err == EBUSY;
}

static int no_step(void)
{
	return 0;
}

/*
 * Let every allocation of @step fail in turn. @before makes the step possible, @after
 * undoes it. With @again, repeat a failed step without a fault.
 */
static unsigned int walk(struct verdict *v, const char *what, int (*before)(void),
			 int (*step)(void), int (*after)(void), bool again)
{
	unsigned int n, faults = 0;
	bool hit = true;
	int err;

	for (n = 1; hit && n < MOST && !v->bad; n++) {
		err = before();
		if (err)
			verdict_fail(v, "before %s, fault %u: %s", what, n, strerror(err));
		faults_arm(n);
		err = step();
		hit = faults_disarm();
		faults += hit;
		if (err && !hit)
			verdict_fail(v, "%s without a fault: %s", what, strerror(err));
		else if (err && !is_shortage(err))
			verdict_fail(v, "%s with fault %u: %s", what, n, strerror(err));
		if (err && !again)
			continue;
		if (err)
			err = step();
		if (err)
			verdict_fail(v, "%s again after fault %u: %s", what, n, strerror(err));
		else
			err = after();
		if (err)
			verdict_fail(v, "after %s with fault %u: %s", what, n, strerror(err));
	}
	if (hit && !v->bad)
		verdict_fail(v, "%s has no end of allocations", what);
	return faults;
}

unsigned int faults_walk(struct verdict *v, const struct fault_case *c, bool slow)
{
	int (*unmake)(void) = c->unmake ? c->unmake : no_step;
	unsigned int faults;

	faults = walk(v, "make", no_step, c->make, unmake, !slow);
	if (!faults)
		verdict_fail(v, "nothing was allocated: faults do not reach the driver");
	if (c->unmake)
		faults += walk(v, "unmake", c->make, unmake, no_step, true);
	return faults;
}
