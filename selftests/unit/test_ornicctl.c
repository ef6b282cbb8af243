// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl where the system fails: memory for a table, the connection to the daemon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../tools/ornicctl/ornicctl.h"
#include "../../tools/ornicctl/table.h"
#include "lib/failing.h"

#include <dirent.h>

/*
 * Each allocation of a table fails once. The C library prints a cell without some of them, so the
 * number of cells shows whether the table is complete.
 */
static void test_incomplete_table(void **state)
{
	unsigned int incomplete = 0;
	bool failed = true;

	(void)state;
	for (uint32_t left = 0; failed; left++) {
		struct table t;
		bool complete;

		failing_begin(FAILING_MEMORY, ENOMEM, left);
		table_head(&t, "NAME VALUE");
		table_cell(&t, "%s", "a");
		table_cell(&t, "%d", 1);
		failed = failing_end();
		complete = t.cells == 4;
		incomplete += !complete;
		assert_int_equal(table_print(&t), complete ? CTL_OK : CTL_FAILED);
	}
	assert_true(incomplete >= 4);
}

/* Return the number of open descriptors. */
static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* After a failed connect() the next call tries again. */
static void test_no_connection(void **state)
{
	struct ctl ctl = { .path = "/nowhere/control", .fd = -1 };
	int before = descriptors();

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_null(ctl_call(&ctl, "version", NULL));
		assert_int_equal(ctl.fd, -1);
	}
	assert_int_equal(descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incomplete_table), cmocka_unit_test(test_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
