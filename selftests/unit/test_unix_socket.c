// SPDX-License-Identifier: GPL-2.0
/* unix_socket.c: names that are free, in use or left behind, and connections at the limit. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/folder.h"
#include "log.h"
#include "unix_socket.h"

#define LIMIT	64	/* descriptors */

static char dir[] = "/tmp/unix-socket-XXXXXX";
static char said[256];
static struct sockaddr_un at;
static bool no_spare;

/* Replaces the C library's: the spare descriptor cannot be opened again. */
int open(const char *path, int flags, ...)
{
	if (no_spare && !strcmp(path, "/dev/null")) {
		errno = ENFILE;
		return -1;
	}
	return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

/* Replaces the C library's: each line is written in another second, so none is suppressed. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static time_t seconds;

	(void)clock;
	*ts = (struct timespec) { .tv_sec = ++seconds };
	return 0;
}

static int accept_error;

/* Replaces the C library's, to fail once with @accept_error. */
int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (!accept_error)
		return syscall(SYS_accept4, fd, addr, len, flags);
	errno = accept_error;
	accept_error = 0;
	return -1;
}

static int setup(void **state)
{
	char path[64];

	(void)state;
	log_setup(LOG_ERR, false);
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	assert_int_equal(unix_address(&at, path), 0);
	log_keep(said, sizeof(said));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_keep(NULL, 0);
	unlink(at.sun_path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

/* Check the first error line, which begins with the name of the socket, and forget it. */
static void expect_said(const char *text)
{
	char want[256];

	snprintf(want, sizeof(want), "cannot listen on %s: %s", at.sun_path, text);
	assert_string_equal(said, want);
	log_keep(said, sizeof(said));
}

static void expect_flags(int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Return the lowest free descriptor. */
static int next_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void test_address(void **state)
{
	char path[sizeof(at.sun_path) + 1];
	struct sockaddr_un addr;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 2] = '\0';
	assert_int_equal(unix_address(&addr, path), 0);
	assert_int_equal(addr.sun_family, AF_UNIX);
	assert_string_equal(addr.sun_path, path);
	assert_string_equal(said, "");
	path[sizeof(path) - 2] = 'a';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(unix_address(&addr, path), -ENAMETOOLONG);
	assert_string_equal(said, "socket path aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... is longer than 107 characters");
}

/* A name that is in use stays with its process; a name that a dead process left is taken over. */
static void test_names(void **state)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };
	char in_use[100];
	struct stat st;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const int free_fd = next_fd();
		int fd = unix_bind(&at, types[i], i ? 0600 : 0640);

		expect_flags(fd);
		assert_int_equal(stat(at.sun_path, &st), 0);
		assert_int_equal(st.st_mode, S_IFSOCK | (i ? 0600 : 0640));
		assert_int_equal(unix_bind(&at, types[i], 0666), -EADDRINUSE);
		snprintf(in_use, sizeof(in_use),
			 "address in use by pid %d; stop it or choose another path", getpid());
		if (i)
			strcpy(in_use,
			       "address in use by another process; stop it or choose another path");
		expect_said(in_use);
		assert_int_equal(stat(at.sun_path, &st), 0);
		close(fd);
		fd = unix_bind(&at, types[i], 0600);
		assert_true(fd >= 0);
		close(fd);
		unlink(at.sun_path);
		/* only the spare descriptor remains */
		assert_in_range(next_fd(), free_fd, free_fd + 1);
	}
	assert_string_equal(said, "");
}

static void test_rejected(void **state)
{
	struct sockaddr_un good = at;
	const int free_fd = next_fd();
	int fd;

	(void)state;
	fd = creat(at.sun_path, 0600);
	close(fd);
	assert_int_equal(unix_bind(&at, SOCK_STREAM, 0600), -EADDRINUSE);
	expect_said("the file exists and is not a socket; remove it or choose another path");
	assert_int_equal(unlink(at.sun_path), 0);
	strcat(at.sun_path, "/x");
	assert_int_equal(unix_bind(&at, SOCK_STREAM, 0600), -ENOENT);
	expect_said("No such file or directory; create its directory first");
	strcpy(at.sun_path, "/dev/null/x");
	assert_int_equal(unix_bind(&at, SOCK_STREAM, 0600), -ENOTDIR);
	expect_said("Not a directory");
	at = good;
	assert_int_equal(next_fd(), free_fd);
}

/*
 * Connections beyond the limit of descriptors are closed, so that the clients do not wait and the
 * loop does not spin.
 */
static void test_limit(void **state)
{
	int sock = unix_bind(&at, SOCK_STREAM, 0600), client, fd, used, others[LIMIT];
	const struct rlimit few = { .rlim_cur = LIMIT, .rlim_max = LIMIT };
	char byte;

	(void)state;
	assert_int_equal(unix_accept(sock, "test"), -1);
	assert_string_equal(said, "");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* 2: the spare descriptor is lost; it returns with the next connection that is accepted */
	for (int i = 0; i < 4; i++) {
		client = dial();
		for (used = 0; (others[used] = dup(sock)) >= 0; used++)
			;
		no_spare = i == 2;
		fd = unix_accept(sock, "test");
		no_spare = false;
		while (used)
			close(others[--used]);
		assert_int_equal(fd, -1);
		assert_string_equal(said, "test: cannot accept a connection: Too many open files");
		log_keep(said, sizeof(said));
		assert_int_equal(recv(client, &byte, 1, 0), 0);
		close(client);
		client = dial();
		fd = unix_accept(sock, "test");
		expect_flags(fd);
		assert_int_equal(send(fd, "x", 1, 0), 1);
		assert_int_equal(recv(client, &byte, 1, 0), 1);
		close(fd);
		close(client);
	}
	/* another error does not cost a connection */
	fd = unix_accept(STDERR_FILENO, "test");
	assert_int_equal(fd, -1);
	assert_string_equal(said,
			    "test: cannot accept a connection: Socket operation on non-socket");
	close(sock);
}

/* No error but that of missing descriptors costs a connection; errors that pass have no line. */
static void test_accept_errors(void **state)
{
	static const struct {
		int error;
		const char *said;
		bool lost;
	} cases[] = {
		{ EAGAIN, "", false }, { EINTR, "", false }, { ECONNABORTED, "", false },
		{ EMFILE, "test: cannot accept a connection: Too many open files", true },
		{ ENFILE, "test: cannot accept a connection: Too many open files in system", true },
		{ ENOMEM, "test: cannot accept a connection: Cannot allocate memory", false },
	};
	int sock = unix_bind(&at, SOCK_STREAM, 0600);
	const int free_fd = next_fd();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int client = dial(), fd;
		char byte;

		log_keep(said, sizeof(said));
		accept_error = cases[i].error;
		assert_int_equal(unix_accept(sock, "test"), -1);
		assert_string_equal(said, cases[i].said);
		assert_int_equal(recv(client, &byte, 1, 0), cases[i].lost ? 0 : -1);
		fd = unix_accept(sock, "test");
		assert_int_equal(fd < 0, cases[i].lost);
		if (fd >= 0)
			close(fd);
		close(client);
		assert_int_equal(next_fd(), free_fd);
	}
	close(sock);
}

/* A socket of another kind has the name: it stays, with the process unknown. */
static void test_other_kind(void **state)
{
	int fd = unix_bind(&at, SOCK_STREAM, 0600);
	const unsigned int fds = descriptors();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unix_bind(&at, SOCK_DGRAM, 0600), -EADDRINUSE);
	expect_said("address in use by another process; stop it or choose another path");
	assert_int_equal(access(at.sun_path, F_OK), 0);
	assert_int_equal(descriptors(), fds);
	close(fd);
	fd = unix_bind(&at, SOCK_DGRAM, 0600);
	assert_true(fd >= 0);
	assert_int_equal(descriptors(), fds);
	close(fd);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(address), TEST(names), TEST(rejected), TEST(limit),
		TEST(accept_errors), TEST(other_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
