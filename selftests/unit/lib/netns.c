// SPDX-License-Identifier: GPL-2.0
/* A network namespace of the test's own. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "netns.h"

void netns_enter(void)
{
	if (!unshare(CLONE_NEWNET))
		return;
	assert_int_not_equal(geteuid(), 0);
	if (access("/dev/net/tun", R_OK | W_OK) || unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_message("# needs root, or user namespaces and access to /dev/net/tun\n");
		skip();
	}
}
