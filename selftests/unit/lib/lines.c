// SPDX-License-Identifier: GPL-2.0
/* Collect the lines of the log, which go to standard error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lines.h"
#include "log.h"
#include "printed.h"

#include <unistd.h>

static struct printed printed;
static enum log_level level;	/* before lines_begin() */
static bool collecting;

void lines_begin(void)
{
	level = log_enabled(LOG_INFO) ? LOG_INFO : LOG_ERR;
	log_setup(LOG_INFO, false);
	print_begin(&printed, STDERR_FILENO);
	collecting = true;
}

/* Stop collecting, and store the lines in @got as a string, cut to @room. */
static void lines_take(char *got, size_t room)
{
	log_setup(level, false);
	print_end(&printed, got, room);
	collecting = false;
}

void lines_end(const char *want)
{
	char got[1024];

	lines_take(got, sizeof(got));
	assert_string_equal(got, want);
}

void lines_drop(void)
{
	char got[1];

	if (collecting)
		lines_take(got, sizeof(got));
}
