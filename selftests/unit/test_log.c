// SPDX-License-Identifier: GPL-2.0
/* log.c, log_line.c: lines byte for byte, and suppressed lines of each source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/numbers.h"
#include "log.h"
#include "log_writer.h"

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
	log_set_format(LOG_TEXT);
	unsetenv("JOURNAL_STREAM");
	log_find_journal();
	log_keep(NULL, 0);
	log_charge(NULL);
	seconds = 0;
	nanoseconds = 0;
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

/* Write @n lines. Return: how many were written. */
static unsigned int flood(struct log_source *s, enum log_level level, unsigned int n)
{
	const char *at = got;
	unsigned int lines = 0;

	while (n--) {
		log_from(s, level, "x");
		written();
		for (at = got; (at = strchr(at, '\n')); at++)
			lines++;
	}
	return lines;
}

/* A source writes some lines at once, and later one per second. Others are not affected. */
static void test_suppressed(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source a = { .name = "a" }, b = { .name = "b" };

	(void)state;
	seconds = 100;
	assert_int_equal(flood(&a, LOG_ERR, 100000), burst[LOG_ERR]);
	assert_int_equal(flood(&b, LOG_ERR, burst[LOG_ERR]), burst[LOG_ERR]);
	seconds = 101;
	assert_int_equal(flood(&a, LOG_ERR, 5), 1);
	seconds = 105;
	assert_int_equal(flood(&a, LOG_ERR, 10), 4);
	seconds = 1000;
	assert_int_equal(flood(&a, LOG_ERR, 100), burst[LOG_ERR]);
	log_source_end(&a);
	log_source_end(&b);
	assert_string_equal(written(), "ornicd: error: a: 100086 lines suppressed\n");
}

/* Lines of a lower level leave room for those of a higher one. */
static void test_important(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source a = { .name = "a" };

	(void)state;
	seconds = 100;
	assert_int_equal(flood(&a, LOG_INFO, 1000), burst[LOG_INFO]);
	assert_int_equal(flood(&a, LOG_WARN, 1000), burst[LOG_WARN] - burst[LOG_INFO]);
	assert_int_equal(flood(&a, LOG_INFO, 1), 0);
	assert_int_equal(flood(&a, LOG_ERR, 1000), burst[LOG_ERR] - burst[LOG_WARN]);
	log_source_end(&a);
}

/* Lines of level debug have an account of their own. */
static void test_debug_account(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source a = { .name = "a" };

	(void)state;
	seconds = 100;
	log_setup(LOG_DEBUG, false);
	assert_int_equal(flood(&a, LOG_DEBUG, 2000), LOG_DEBUG_BURST);
	nanoseconds = 3000000;
	assert_int_equal(flood(&a, LOG_DEBUG, 100), 3);
	assert_int_equal(flood(&a, LOG_ERR, 100), burst[LOG_ERR]);
	log_source_end(&a);
}

/* The count is written within a second, with the level of the most important line. */
static void test_report(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source a = { .name = "a" }, b = { .name = "b" };

	(void)state;
	seconds = 100;
	assert_int_equal(log_work(), -1);
	flood(&a, LOG_INFO, burst[LOG_INFO] + 2);
	assert_int_equal(log_work(), 1000000000);
	nanoseconds = 400000000;
	flood(&b, LOG_WARN, burst[LOG_WARN] + 3);
	flood(&b, LOG_INFO, 4);
	flood(&a, LOG_INFO, 5);
	assert_int_equal(log_work(), 600000000);
	assert_string_equal(written(), "");
	seconds = 101;
	nanoseconds = 0;
	assert_int_equal(log_work(), 400000000);
	assert_string_equal(written(), "ornicd: a: 7 lines suppressed\n");
	nanoseconds = 400000000;
	assert_int_equal(log_work(), -1);
	assert_string_equal(written(), "ornicd: warning: b: 7 lines suppressed\n");
	assert_int_equal(flood(&a, LOG_INFO, 3), 1);
	seconds = 102;
	nanoseconds = 0;
	assert_int_equal(log_work(), 400000000);
	nanoseconds = 500000000;
	assert_int_equal(log_work(), -1);
	assert_string_equal(written(), "ornicd: a: 2 lines suppressed\n");
	log_source_end(&a);
	log_source_end(&b);
	assert_string_equal(written(), "");
}

/* Sources that come and go have a parent, which pays too and reports what they did not. */
static void test_parent(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source parent = { .name = "all" };
	unsigned int lines = 0;

	(void)state;
	seconds = 100;
	for (int i = 0; i < 1000; i++) {
		struct log_source one = { .name = "one", .parent = &parent };
		unsigned int n = flood(&one, LOG_ERR, burst[LOG_ERR] + 1);

		if (i < LOG_PARENT)
			assert_int_equal(n, burst[LOG_ERR]);
		lines += n;
		log_source_end(&one);
	}
	assert_int_equal(lines, LOG_PARENT * burst[LOG_ERR]);
	assert_int_equal(log_work(), 1000000000);
	seconds = 101;
	assert_int_equal(log_work(), -1);
	assert_string_equal(written(), "ornicd: error: all: 12904 lines suppressed\n");
}

/* Who asks for work pays for its lines, those without a source, too; its error text is kept. */
static void test_charge(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct log_source client = { .name = "client" }, a = { .name = "a" };
	char text[20];

	(void)state;
	seconds = 100;
	log_charge(&client);
	assert_int_equal(flood(&a, LOG_ERR, burst[LOG_ERR] - 1), burst[LOG_ERR] - 1);
	log_err("%d", 1);
	assert_string_equal(written(), "ornicd: error: 1\n");
	log_keep(text, sizeof(text));
	log_err("%d", 2);
	assert_string_equal(text, "2");
	log_keep(text, sizeof(text));
	log_from(&a, LOG_ERR, "%d", 3);
	assert_string_equal(text, "a: 3");
	assert_string_equal(written(), "");
	log_charge(NULL);
	assert_int_equal(flood(&a, LOG_ERR, burst[LOG_ERR] + 1), burst[LOG_ERR]);
	assert_int_equal(flood(NULL, LOG_ERR, 1000), 1000);
	log_source_end(&client);
	assert_string_equal(written(), "ornicd: error: client: 2 lines suppressed\n");
	log_source_end(&a);
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
	setenv("TZ", "Asia/Tokyo", 1);
	tzset();
	seconds = 3600 * 7 + 60 * 8 + 9;
	nanoseconds = 12345678;
	log_setup(LOG_INFO, true);
	log_err("x");
	assert_string_equal(written(), "1970-01-01T07:08:09.012345Z ornicd: error: x\n");
}

/* Each line is a JSON object, whatever is in it. */
static void test_json(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "x", "x" }, { "a \"b\" \\", "a \"b\" \\" }, { "\x1b[1m\n", "?[1m?" },
		/* a to z with marks, of 2, 3 and 4 bytes; the first and the last of each length */
		{ "\u00e9\u20ac\U0001f600", "\u00e9\u20ac\U0001f600" },
		{ "\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf" },
		{ "\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf" },
		{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
		/* overlong, surrogates, too large, cut off, no first byte */
		{ "\xc1\xbf", "??" }, { "\xe0\x9f\xbf", "???" }, { "\xf0\x8f\xbf\xbf", "????" },
		{ "\xed\xa0\x80", "???" }, { "\xed\x9f\xbf", "\xed\x9f\xbf" },
		{ "\xf4\x90\x80\x80", "????" }, { "\xf5\x80\x80\x80", "????" },
		{ "\xe2\x82", "??" }, { "\xf0\x90\x80z", "???z" }, { "\x80\xbf", "??" },
		{ "\xc3(", "?(" }, { "\xff", "?" },
	};
	struct log_source a = { .name = "a\"\n\xff" };
	json_error_t error;
	json_t *line;

	(void)state;
	seconds = 1700000000;
	nanoseconds = 999999999;
	log_set_format(LOG_JSON);
	log_info("hello");
	assert_string_equal(written(), "{\"time\":\"2023-11-14T22:13:20.999999Z\",\"level\":\"info\","
			    "\"source\":\"ornicd\",\"message\":\"hello\"}\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		seconds += 2;
		log_from(&a, LOG_WARN, "%s", cases[i].text);
		line = json_loads(written(), JSON_REJECT_DUPLICATES, &error);
		assert_non_null(line);
		assert_string_equal(json_string_value(json_object_get(line, "source")), "a\"??");
		assert_string_equal(json_string_value(json_object_get(line, "level")), "warning");
		assert_string_equal(json_string_value(json_object_get(line, "message")),
				    cases[i].want);
		assert_int_equal(json_object_size(line), 4);
		json_decref(line);
	}
	assert_string_equal(strchr(got, '\n'), "\n");
}

/* The longest line in JSON has twice the bytes; no character is cut. */
static void test_json_long(void **state)
{
	char text[2 * LINE], name[2 * LINE];
	struct log_source a = { .name = name };
	json_error_t error;
	json_t *line;

	(void)state;
	log_set_format(LOG_JSON);
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memset(name, '\\', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	log_from(&a, LOG_ERR, "%s", text);
	line = json_loads(written(), 0, &error);
	assert_non_null(line);
	assert_int_equal(json_string_length(json_object_get(line, "message")), LINE - 1);
	assert_int_equal(json_string_length(json_object_get(line, "source")), LINE);
	json_decref(line);
	memcpy(text, "aa", 2);
	for (size_t i = 2; i < sizeof(text) - 3; i += 3)
		memcpy(text + i, "\u20ac", 3);
	memcpy(name, text, sizeof(name));
	log_from(&a, LOG_ERR, "x");
	line = json_loads(written(), 0, &error);
	assert_non_null(line);
	/* 512 bytes are 2, and 170 characters of three */
	assert_int_equal(json_string_length(json_object_get(line, "source")), LINE);
	json_decref(line);
	name[0] = 0;
	memmove(name, text + 1, sizeof(name) - 1);
	log_from(&a, LOG_ERR, "x");
	line = json_loads(written(), 0, &error);
	assert_non_null(line);
	assert_int_equal(json_string_length(json_object_get(line, "source")), LINE - 1);
	json_decref(line);
}

/* The journal gets priorities, if standard error is the stream that it opened. */
static void test_journal(void **state)
{
	struct log_source a = { .name = "vm1" };
	char stream[64];
	struct stat st;

	(void)state;
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	for (int off = 0; off < 4; off++) {
		snprintf(stream, sizeof(stream), off < 3 ? "%llu:%llu" : "%llu;%llu",
			 (unsigned long long)st.st_dev + (off == 1),
			 (unsigned long long)st.st_ino + (off == 2));
		setenv("JOURNAL_STREAM", stream, 1);
		log_find_journal();
		log_from(&a, LOG_ERR, "x");
		assert_string_equal(written(), off ? "ornicd: error: vm1: x\n" :
						     "<3>error: vm1: x\n");
	}
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_find_journal();
	log_setup(LOG_DEBUG, false);
	log_warn("x");
	assert_string_equal(written(), "<4>warning: x\n");
	log_info("x");
	assert_string_equal(written(), "<6>x\n");
	log_debug("x");
	assert_string_equal(written(), "<7>debug: x\n");
	seconds = 1;
	log_set_format(LOG_JSON);
	log_info("x");
	assert_string_equal(written(), "<6>{\"time\":\"1970-01-01T00:00:01.000000Z\",\"level\":\"info\","
			    "\"source\":\"ornicd\",\"message\":\"x\"}\n");
}

/* Numbers of ornicd.8 and guide/operating.rst */
static void test_documented(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	const struct number numbers[] = {
		NUMBER(burst[LOG_INFO], 6), NUMBER(burst[LOG_WARN], 9),
		NUMBER(burst[LOG_ERR], 12), NUMBER(LOG_INTERVAL_NS, 1000000000),
		NUMBER(LOG_DEBUG_BURST, 1000), NUMBER(LOG_DEBUG_INTERVAL_NS, 1000000),
		NUMBER(LOG_PARENT, 8), NUMBER(LOG_REPORT_NS, 1000000000),
		NUMBER(LOG_WRITER_BYTES, 64 << 10), NUMBER(LOG_WRITER_PATIENCE_NS, 1000000000),
		NUMBER(LOG_WRITER_RETRY_NS, 1000000000),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(levels), TEST(suppressed), TEST(important), TEST(debug_account), TEST(report),
		TEST(parent), TEST(charge), TEST(long), TEST(control_characters), TEST(keep),
		TEST(time), TEST(json), TEST(json_long), TEST(journal), TEST(documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
