// SPDX-License-Identifier: GPL-2.0
/*
 * The limit of the daemon's memory, in a made-up /proc and /sys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/limit.h"

#define RAM	(8ull << 30)

static char root[64];

/* Write @text to file @name, in a folder that exists. */
static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	static const char *const folders[] = {
		"", "/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/vm",
		"/sys/fs/cgroup/vm/net", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/old",
	};
	char path[256];

	(void)state;
	strcpy(root, "/tmp/ornic-limit-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 1; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", root, folders[i]);
		if (mkdir(path, 0700))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* No groups, or groups without a limit */
static void test_none(void **state)
{
	(void)state;
	assert_int_equal(memory_limit(root, RAM), RAM);
	put("proc/self/cgroup", "0::/vm/net\n");
	assert_int_equal(memory_limit(root, RAM), RAM);
	put("sys/fs/cgroup/vm/memory.max", "max\n");
	assert_int_equal(memory_limit(root, RAM), RAM);
	put("proc/self/cgroup", "nonsense\n1:memory\n::\n\n");
	assert_int_equal(memory_limit(root, RAM), RAM);
}

/* Version 2: the smallest limit on the way to the top */
static void test_version_2(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/vm/net\n");
	put("sys/fs/cgroup/vm/net/memory.max", "1073741824\n");
	assert_int_equal(memory_limit(root, RAM), 1ull << 30);
	put("sys/fs/cgroup/vm/memory.max", "536870912\n");
	assert_int_equal(memory_limit(root, RAM), 512u << 20);
	put("sys/fs/cgroup/memory.max", "268435456\n");
	assert_int_equal(memory_limit(root, RAM), 256u << 20);
	put("sys/fs/cgroup/memory.max", "max\n");
	put("proc/self/cgroup", "0::/vm\n");
	put("sys/fs/cgroup/vm/memory.max", "17179869184\n");
	assert_int_equal(memory_limit(root, RAM), RAM);
}

/* A container sees its own group as the top, and may be told of groups above it. */
static void test_container(void **state)
{
	(void)state;
	put("sys/fs/cgroup/memory.max", "268435456\n");
	put("proc/self/cgroup", "0::/\n");
	assert_int_equal(memory_limit(root, RAM), 256u << 20);
	put("proc/self/cgroup", "0::/../../vm\n");
	assert_int_equal(memory_limit(root, RAM), 256u << 20);
	put("proc/self/cgroup", "0::/is/not/there\n");
	assert_int_equal(memory_limit(root, RAM), 256u << 20);
}

/* Version 1: only the line of the memory controller counts. */
static void test_version_1(void **state)
{
	(void)state;
	put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "1073741824\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("proc/self/cgroup", "3:cpuset:/old\n2:memoryless,cpu:/old\n0::/\n");
	assert_int_equal(memory_limit(root, RAM), RAM);
	put("proc/self/cgroup", "3:cpuset:/\n2:hugetlb,memory:/old\n0::/\n");
	assert_int_equal(memory_limit(root, RAM), 1ull << 30);
}

static void test_host(void **state)
{
	(void)state;
	assert_in_range(memory_of_host(), 1 << 20, 1ull << 50);
	assert_in_range(memory_limit("", memory_of_host()), 1 << 20, memory_of_host());
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_none), T(test_version_2), T(test_container), T(test_version_1),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
