// SPDX-License-Identifier: GPL-2.0
/*
 * log_writer.c: standard error is a pipe that is read late or never, or cannot be written. A call
 * that waits for the reader would never return, and the alarm would end the test.
 */
#define _GNU_SOURCE 1	/* RTLD_NEXT, pipe2() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "log_writer.h"

#define LINES	40000		/* twice as many bytes as can wait in ring and pipe */
#define ROOM	(8 * LOG_WRITER_BYTES)
#define READER	"ornicd: warning: %u lines lost, because nobody read the log\n%n"
#define DISK	"ornicd: warning: %u lines lost, because the log could not be written: No space " \
		"left on device\n%n"

static int real, pipe_fd[2];
static char got[ROOM];
static size_t len;
static pthread_t main_thread;

/* write() of the writer's thread: real, unless a test limits the bytes that the disk takes. */
static _Atomic int disk_bytes;
static _Atomic unsigned int disk_errors;

ssize_t write(int fd, const void *buf, size_t n)
{
	int room = disk_bytes;

	if (room < 0 || pthread_equal(pthread_self(), main_thread))
		return syscall(SYS_write, fd, buf, n);
	if (!room) {
		disk_errors++;
		errno = ENOSPC;
		return -1;
	}
	if (n > (size_t)room)
		n = room;
	disk_bytes -= n;
	return syscall(SYS_write, fd, buf, n);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int setup(void **state)
{
	(void)state;
	alarm(60);
	signal(SIGPIPE, SIG_IGN);
	fflush(stderr);
	len = 0;
	got[0] = 0;
	disk_bytes = -1;
	disk_errors = 0;
	main_thread = pthread_self();
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(dup2(pipe_fd[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(log_writer_start(), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(pipe_fd[0]);		/* ends a write() that waits */
	log_writer_stop();
	while (log_writer_put("", 0))	/* it gave up the thread, which ends now */
		usleep(1000);
	dup2(real, STDERR_FILENO);
	close(real);
	close(pipe_fd[1]);
	log_setup(LOG_INFO, false);
	log_set_format(LOG_TEXT);
	alarm(0);
	return 0;
}

/* Read what the pipe has, or wait for it. */
static void read_more(void)
{
	ssize_t n = read(pipe_fd[0], got + len, sizeof(got) - 1 - len);

	assert_true(n > 0);
	len += n;
	got[len] = 0;
}

static void read_until(const char *text)
{
	while (!strstr(got, text))
		read_more();
}

static void write_lines(void)
{
	for (unsigned int i = 0; i < LINES; i++)
		log_info("%u", i);
}

/* Check that @got begins with the first lines, in order. Return: how many; @rest is what follows. */
static unsigned int count_lines(const char **rest)
{
	char want[32];
	unsigned int n;

	*rest = got;
	for (n = 0; n < LINES; n++) {
		snprintf(want, sizeof(want), "ornicd: %u\n", n);
		if (strncmp(*rest, want, strlen(want)))
			break;
		*rest += strlen(want);
	}
	return n;
}

/* A line is written soon, and the log is settled then. */
static void test_line(void **state)
{
	uint64_t begin = now();

	(void)state;
	assert_true(log_writer_settled());
	for (int i = 0; i < 100; i++) {
		log_info("%d", i);
		log_writer_flush();
		assert_true(log_writer_settled());
		assert_true(poll(&(struct pollfd){ pipe_fd[0], POLLIN, 0 }, 1, 0));
		read_more();
	}
	assert_true(strstr(got, "ornicd: 98\nornicd: 99\n"));
	/* none took the most that a flush waits */
	assert_true(now() - begin < 10 * LOG_WRITER_PATIENCE_NS);
}

/* Lines that have no room are counted, and reported behind those that had. */
static void test_no_reader(void **state)
{
	unsigned int n, lost = 0;
	uint64_t begin = now();
	const char *rest;
	int end = 0;

	(void)state;
	write_lines();
	log_writer_flush();
	assert_true(log_writer_settled());
	assert_true(now() - begin < LOG_WRITER_PATIENCE_NS);
	for (int i = 0; i < 3; i++) {
		read_until("lost");
		n = count_lines(&rest);
		assert_true(n > 1000);
		log_info("after");
		read_until("after\n");
		assert_int_equal(sscanf(rest, READER "ornicd: after\n%n", &lost, &end, &end), 1);
		assert_int_equal(n + lost, LINES);
		assert_int_equal(end, strlen(rest));
		/* the next lines find room again */
		len = 0;
		got[0] = 0;
		write_lines();
	}
}

/* The report has the form of other lines. */
static void test_report_json(void **state)
{
	(void)state;
	log_set_format(LOG_JSON);
	write_lines();
	read_until("lost, because nobody read the log\"}\n");
	assert_non_null(strstr(got, "\"level\":\"warning\",\"source\":\"ornicd\",\"message\":\""));
	for (char *line = got, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_int_equal(strncmp(line, "{\"time\":\"", 9), 0);
		assert_int_equal(end[-1], '}');
	}
}

/* A stuck write makes others wait once, at most. */
static void test_settled(void **state)
{
	char fill[65536] = { 0 };
	uint64_t begin;

	(void)state;
	assert_int_equal(write(pipe_fd[1], fill, sizeof(fill)), sizeof(fill));
	log_info("stuck");
	assert_false(log_writer_settled());
	begin = now();
	log_writer_flush();
	assert_in_range(now() - begin, LOG_WRITER_PATIENCE_NS / 2, 4 * LOG_WRITER_PATIENCE_NS);
	while (!log_writer_settled())	/* the thread may have begun a little later */
		;
	begin = now();
	for (int i = 0; i < 1000; i++) {
		log_info("%d", i);
		log_writer_flush();
	}
	assert_true(now() - begin < LOG_WRITER_PATIENCE_NS / 2);
	while (len < sizeof(fill))
		read_more();
	len = 0;
	got[0] = 0;
	read_until("ornicd: 999\n");
	log_writer_flush();
	assert_true(log_writer_settled());
}

/* The waiting lines are written before the daemon ends. */
static void test_stop(void **state)
{
	(void)state;
	log_info("first");
	log_err("last");
	log_writer_stop();
	read_more();
	assert_string_equal(got, "ornicd: first\nornicd: error: last\n");
	log_info("direct");
	read_more();
	assert_string_equal(got, "ornicd: first\nornicd: error: last\nornicd: direct\n");
}

/* The end of the daemon waits for a reader for a second at most. */
static void test_stop_without_reader(void **state)
{
	struct pollfd pipe = { .fd = pipe_fd[0], .events = POLLIN };
	uint64_t begin = now();
	const char *rest;

	(void)state;
	write_lines();
	log_writer_stop();
	assert_in_range(now() - begin, LOG_WRITER_PATIENCE_NS / 2, 4 * LOG_WRITER_PATIENCE_NS);
	log_info("too late");
	/* the thread ends when it has written the lines that wait */
	while (log_writer_put("", 0))
		if (poll(&pipe, 1, 10) > 0)
			read_more();
	while (poll(&pipe, 1, 0) > 0)
		read_more();
	assert_true(count_lines(&rest) > 1000);
	assert_null(strstr(got, "too late"));
}

/* Another process that has the same terminal or pipe may make it non-blocking. */
static void test_not_blocking(void **state)
{
	const char *rest;

	(void)state;
	assert_int_equal(fcntl(pipe_fd[1], F_SETFL, O_NONBLOCK), 0);
	write_lines();
	read_until("lost");
	assert_true(count_lines(&rest) > 1000);
	assert_ptr_equal(strstr(rest, "ornicd: warning: "), rest);
}

/* If nobody can read the log any more, nothing waits for it. */
static void test_reader_gone(void **state)
{
	uint64_t begin = now();

	(void)state;
	close(pipe_fd[0]);
	pipe_fd[0] = -1;
	write_lines();
	log_writer_flush();
	assert_true(log_writer_settled());
	log_writer_stop();
	assert_false(log_writer_put("", 0));
	assert_true(now() - begin < LOG_WRITER_PATIENCE_NS);
}

/* Wait until @n writes have failed. */
static void wait_errors(unsigned int n)
{
	while (disk_errors < n)
		usleep(1000);
}

/*
 * A disk that is full is tried again every second. When it has room, a line reports those that it
 * did not take, after the end of a line that it took in part.
 */
static void test_disk_full(void **state)
{
	unsigned int lost = 0;
	int end = 0;
	uint64_t begin;

	(void)state;
	disk_bytes = strlen("ornicd: one\nornicd: t");
	log_info("one");
	log_writer_flush();
	log_info("two");
	wait_errors(1);
	begin = now();
	log_info("three");
	log_info("four");
	log_writer_flush();
	assert_true(log_writer_settled());
	assert_true(now() - begin < LOG_WRITER_RETRY_NS / 2);
	wait_errors(3);
	assert_true(now() - begin > LOG_WRITER_RETRY_NS);
	log_info("five");
	disk_bytes = -1;
	read_until("device\n");
	log_info("six");
	read_until("six\n");
	assert_string_equal(got, "ornicd: one\nornicd: t\n"
			    "ornicd: warning: 4 lines lost, because the log could not be written: No "
			    "space left on device\nornicd: six\n");
	/* again, and the report itself is cut */
	len = 0;
	got[0] = 0;
	disk_errors = 0;
	disk_bytes = 0;
	log_info("seven");
	wait_errors(1);
	disk_bytes = 5;
	wait_errors(2);
	disk_bytes = -1;
	read_until("device\n");
	assert_int_equal(sscanf(got, "ornic\n" DISK, &lost, &end), 1);
	assert_int_equal(end, strlen(got));
	assert_int_equal(lost, 1);
}

/* The end does not wait for a disk that is full. */
static void test_stop_disk_full(void **state)
{
	uint64_t begin;

	(void)state;
	disk_bytes = 0;
	log_info("one");
	wait_errors(1);
	begin = now();
	log_writer_stop();
	assert_false(log_writer_put("", 0));
	assert_true(now() - begin < LOG_WRITER_PATIENCE_NS / 2);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(line), TEST(no_reader), TEST(report_json), TEST(settled), TEST(stop),
		TEST(stop_without_reader), TEST(not_blocking), TEST(reader_gone), TEST(disk_full),
		TEST(stop_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
