// SPDX-License-Identifier: GPL-2.0
/*
 * share.c: each device's part of the process's limits, and warnings of limits that are too low.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <sys/resource.h>

#include "lib/lines.h"
#include "share.h"

#define GIB	(1ull << 30)

static struct rlimit nofile;
static int get_error, set_error;
static const char *map_count;	/* contents of the kernel's file, NULL: there is none */

/* These three replace the C library's. Sanitizers ask for other limits. */
int getrlimit(__rlimit_resource_t which, struct rlimit *rl)
{
	if (which != RLIMIT_NOFILE)
		return prlimit(0, which, NULL, rl);
	*rl = nofile;
	errno = get_error;
	return get_error ? -1 : 0;
}

int setrlimit(__rlimit_resource_t which, const struct rlimit *rl)
{
	if (which != RLIMIT_NOFILE)
		return prlimit(0, which, rl, NULL);
	assert_int_equal(rl->rlim_max, nofile.rlim_max);	/* never raised */
	errno = set_error;
	if (!set_error)
		nofile = *rl;
	return set_error ? -1 : 0;
}

FILE *fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/proc/sys/vm/max_map_count");
	assert_string_equal(mode, "re");
	return map_count ? fmemopen((char *)map_count, strlen(map_count), "r") : NULL;
}

static void raise_to(rlim_t hard)
{
	nofile = (struct rlimit) { 64, hard };
	share_raise();
}

/* Nothing is restricted before share_raise(), for programs without a daemon. */
static void test_unlimited(void **state)
{
	(void)state;
	share_saw(1000000);
	assert_false(share_scarce());
	assert_int_equal(share_keep(), UINT_MAX);
	assert_int_equal(share_close(), 64);
}

static void test_raise(void **state)
{
	(void)state;
	map_count = "65530\n";
	raise_to(1024);
	assert_int_equal(nofile.rlim_cur, 1024);
	/* the soft limit counts if it cannot be raised */
	set_error = EPERM;
	lines_begin();
	nofile = (struct rlimit) { 600, 5000 };
	share_raise();
	set_error = 0;
	lines_end("ornicd: warning: cannot raise the soft limit of open files: Operation not "
		  "permitted\n");
	share_saw(600 - 2 * SHARE_MESSAGE - 1);
	assert_false(share_scarce());
	share_saw(600 - 2 * SHARE_MESSAGE);
	assert_true(share_scarce());
	raise_to(RLIM_INFINITY);
	share_saw(1000000);
	assert_false(share_scarce());
	get_error = EINVAL;
	nofile.rlim_cur = 5;
	share_raise();
	get_error = 0;
	assert_int_equal(nofile.rlim_cur, 5);
}

/* How many descriptors each of @n devices may keep, and leave to the mapper */
static void expect_share(unsigned int n, unsigned int keep, unsigned int close)
{
	for (unsigned int i = 0; i < n; i++)
		share_join(0, 0);
	assert_int_equal(share_keep(), keep);
	assert_int_equal(share_close(), close);
	for (unsigned int i = 0; i < n; i++)
		share_leave(0, 0);
}

static void test_parts(void **state)
{
	(void)state;
	raise_to(SHARE_OWN + 4 * SHARE_FULL);
	expect_share(0, UINT_MAX, 64);
	expect_share(4, UINT_MAX, 64);
	expect_share(5, 102, 51);
	expect_share(64, 8, 4);
	expect_share(2000, 0, 0);
	raise_to(SHARE_OWN);
	expect_share(1, 0, 0);
}

/* Each limit that is too low is named once, and again after it was sufficient. */
static void test_warnings(void **state)
{
	static const char files[] =
		"ornicd: warning: the hard limit of open files is 640, but 3 devices need 896: each "
		"gets at most 85 interrupts; raise it (LimitNOFILE=, ulimit -Hn)\n";
	static const char maps[] =
		"ornicd: warning: vm.max_map_count is 2047, but the memory files of 2 devices need "
		"2048: a virtual machine can use up those of others; raise it, or lower "
		"memory-files= of the devices\n";
	static const char space[] =
		"ornicd: warning: 2 devices may map 98305 GiB of guest memory, but a process has "
		"address space for 98304 GiB: a virtual machine can use up that of others; lower "
		"memory= of the devices\n";

	(void)state;
	map_count = "2047";
	raise_to(SHARE_OWN + 2 * SHARE_FULL);
	lines_begin();
	share_join(512, 49152 * GIB);
	share_join(511, 49152 * GIB);
	share_check();
	lines_end("");
	for (int again = 0; again < 2; again++) {
		share_join(0, 0);
		lines_begin();
		share_check();
		share_check();
		lines_end(files);
		share_leave(0, 0);
		share_leave(511, 49152 * GIB);
		share_join(512, 49152 * GIB);
		lines_begin();
		share_check();
		lines_end(maps);
		share_leave(512, 49152 * GIB);
		share_join(511, 49153 * GIB);
		lines_begin();
		share_check();
		lines_end(space);
		share_leave(511, 49153 * GIB);
		share_join(511, 49152 * GIB);
		lines_begin();
		share_check();
		lines_end("");
	}
	/* a kernel that does not tell */
	for (int i = 0; i < 2; i++) {
		map_count = i ? "many" : NULL;
		raise_to(5000);
		share_join(10000, 0);
		lines_begin();
		share_check();
		lines_end("");
		share_leave(10000, 0);
	}
	share_leave(512, 49152 * GIB);
	share_leave(511, 49152 * GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlimited), cmocka_unit_test(test_raise),
		cmocka_unit_test(test_parts), cmocka_unit_test(test_warnings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
