// SPDX-License-Identifier: GPL-2.0
/* log.c: lines byte for byte, and suppressed lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define LINE	512

/* The clocks of the program: real, unless a test sets them. */
static time_t seconds;
static long nanoseconds;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!seconds)
		return syscall(SYS_clock_gettime, clock, ts);
	*ts = (struct timespec) { .tv_sec = seconds, .tv_nsec = nanoseconds };
	return 0;
}

/* Redirect standard error into a pipe. */
static int real, pipe_fd[2];
static char got[8192];

static int setup(void **state)
{
	(void)state;
	fflush(stderr);
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
	real = dup(STDERR_FILENO);
	assert_int_equal(dup2(pipe_fd[1], STDERR_FILENO), STDERR_FILENO);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dup2(real, STDERR_FILENO);
	close(real);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	log_setup(LOG_INFO, false);
	log_keep(NULL, 0);
	seconds = 0;
	return 0;
}

/* Return the output since the last call */
static const char *written(void)
{
	ssize_t n = read(pipe_fd[0], got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = 0;
	return got;
}

static void test_levels(void **state)
{
	static const char *const lines[] = {
		"ornicd: error: 1\n", "ornicd: warning: 2\n", "ornicd: 3\n", "ornicd: debug: 4\n",
	};

	(void)state;
	for (int level = LOG_ERR; level <= LOG_DEBUG; level++) {
		char want[100] = "";

		for (int i = 0; i <= level - LOG_ERR; i++)
			strcat(want, lines[i]);
		log_setup(level, false);
		log_err("%d", 1);
		log_warn("%d", 2);
		log_info("%d", 3);
		log_debug("%d", 4);
		assert_string_equal(written(), want);
		for (int other = LOG_ERR; other <= LOG_DEBUG; other++)
			assert_int_equal(log_enabled(other), other <= level);
	}
}

/* Five lines per second and place; the first line of a later second reports the suppressed ones. */
static void test_suppressed(void **state)
{
	struct log_limit a = { 0 }, b = { 0 };

	(void)state;
	seconds = 100;
	for (int i = 0; i < 12; i++)
		assert_int_equal(log_limit_ok(&a), i < LOG_LIMIT_LINES);
	assert_true(log_limit_ok(&b));		/* another place */
	assert_string_equal(written(), "");
	seconds = 101;
	assert_true(log_limit_ok(&a));
	assert_string_equal(written(), "ornicd: warning: 7 similar messages suppressed\n");
	for (int i = 1; i < 6; i++)
		assert_int_equal(log_limit_ok(&a), i < LOG_LIMIT_LINES);
	seconds = 102;
	assert_true(log_limit_ok(&a));
	assert_string_equal(written(), "ornicd: warning: 1 similar messages suppressed\n");
	seconds = 103;
	assert_true(log_limit_ok(&a));
	assert_string_equal(written(), "");
	seconds = 99;		/* any other second */
	for (int i = 0; i < 6; i++)
		assert_int_equal(log_limit_ok(&a), i < LOG_LIMIT_LINES);
}

/* A line is never longer than 512 bytes, and ends with a newline. */
static void test_long(void **state)
{
	char text[2 * LINE], want[LINE + 1];

	(void)state;
	for (int extra = -2; extra <= 2; extra++) {
		const size_t room = LINE - 1 - strlen("ornicd: ");
		const size_t n = room + extra, shown = extra < 0 ? n : room;

		memset(text, 'y', n);
		text[n] = 0;
		log_info("%s", text);
		snprintf(want, sizeof(want), "ornicd: %.*s\n", (int)shown, text);
		assert_string_equal(written(), want);
	}
	memset(text, 'z', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	log_info("%s", text);
	assert_int_equal(strlen(written()), LINE);
	assert_int_equal(got[LINE - 1], '\n');
	assert_int_equal(got[LINE - 2], 'z');
}

/* Control characters are escaped. */
static void test_control_characters(void **state)
{
	(void)state;
	log_info("a%sb", "\n\033[1m\t\x7f");
	assert_string_equal(written(), "ornicd: a??[1m??b\n");
	log_info("\n");
	assert_string_equal(written(), "ornicd: ?\n");
}

/* The log keeps the first error line that is written, without prefix */
static void test_keep(void **state)
{
	char kept[8];

	(void)state;
	memset(kept, 'x', sizeof(kept));
	log_keep(kept, sizeof(kept));
	assert_string_equal(kept, "");
	log_warn("warned");
	assert_string_equal(kept, "");
	log_err("one");
	log_err("two");
	assert_string_equal(kept, "one");
	log_keep(kept, sizeof(kept));
	log_err("12345678");
	assert_string_equal(kept, "1234567");
	log_keep(NULL, 0);
	log_err("three");
	assert_string_equal(kept, "1234567");
}

static void test_time(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	seconds = 3600 * 7 + 60 * 8 + 9;
	nanoseconds = 12345678;
	log_setup(LOG_INFO, true);
	log_err("x");
	assert_string_equal(written(), "07:08:09.012345 ornicd: error: x\n");
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(levels), TEST(suppressed), TEST(long), TEST(control_characters), TEST(keep),
		TEST(time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
