// SPDX-License-Identifier: GPL-2.0
/*
 * vfu/event.c: signals to eventfds that never wait, and what remains without asynchronous I/O.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/folder.h"
#include "lib/lines.h"
#include "vfu/event.h"

static int no_setup;	/* errno of io_setup(), 0: it works */

/* Replaces the C library's; io_setup() has two arguments, the others here at most five. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (__typeof__(real))dlsym(RTLD_NEXT, "syscall");
	long arg[5];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 5; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_io_setup && no_setup) {
		errno = no_setup;
		return -1;
	}
	return real(number, arg[0], arg[1], arg[2], arg[3], arg[4]);
}

static void expect_count(int fd, eventfd_t want)
{
	eventfd_t n = 0;

	assert_int_equal(eventfd_read(fd, &n), 0);
	assert_true(n == want);
}

static void test_count(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK), other = eventfd(0, EFD_NONBLOCK);
	unsigned int open_before;
	eventfd_t n;

	(void)state;
	assert_int_equal(event_signal(fd), 0);
	expect_count(fd, 1);
	open_before = descriptors();
	for (unsigned int i = 0; i < 1000; i++) {
		assert_int_equal(event_signal(fd), 0);
		if (!(i % 3))
			assert_int_equal(event_signal(other), 0);
	}
	expect_count(fd, 1000);
	expect_count(other, 334);
	assert_int_equal(eventfd_read(fd, &n), -1);
	assert_int_equal(descriptors(), open_before);
	close(fd);
	close(other);
}

/* The counter is full and the file blocks: write() would wait for ever. */
static void test_full(void **state)
{
	int fd = eventfd(0, 0);

	(void)state;
	assert_int_equal(eventfd_write(fd, UINT64_MAX - 1), 0);
	alarm(20);
	for (int i = 0; i < 300; i++)
		assert_int_equal(event_signal(fd), 0);
	alarm(0);
	close(fd);
}

static void test_others(void **state)
{
	int pipefd[2], fd = open("/dev/null", O_RDWR);

	(void)state;
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(event_signal(-1), -EBADF);
	assert_int_equal(event_signal(fd), -EINVAL);
	assert_int_equal(event_signal(pipefd[1]), -EINVAL);
	close(pipefd[0]);
	close(pipefd[1]);
	close(fd);
}

/* Each thread has its own source, so a new one tries again. */
static void *without(void *arg)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	unsigned int open_before = descriptors();

	(void)arg;
	lines_begin();
	assert_int_equal(event_signal(fd), 0);
	assert_int_equal(event_signal(fd), 0);
	lines_end("ornicd: warning: no asynchronous I/O: Function not implemented; a client can stop "
		  "the daemon by its eventfds; raise fs.aio-max-nr, and allow io_setup()\n");
	expect_count(fd, 2);
	assert_int_equal(eventfd_write(fd, UINT64_MAX - 1), 0);
	assert_int_equal(event_signal(fd), 0);
	assert_int_equal(event_signal(-1), -EBADF);
	assert_int_equal(descriptors(), open_before);
	close(fd);
	return NULL;
}

static void test_without(void **state)
{
	pthread_t thread;

	(void)state;
	no_setup = ENOSYS;
	assert_int_equal(pthread_create(&thread, NULL, without, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	no_setup = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count), cmocka_unit_test(test_full),
		cmocka_unit_test(test_others), cmocka_unit_test(test_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
