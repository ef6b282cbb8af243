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
#include <sys/mman.h>
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
static struct log_source source = { .name = "test" };

/* What happens between bind() and open() by O_PATH */
static void (*meanwhile)(void);
static int path_error;

/* Replaces the C library's: the spare descriptor cannot be opened again. */
int open(const char *path, int flags, ...)
{
	if ((flags & O_PATH) && meanwhile)
		meanwhile();
	if ((flags & O_PATH) && path_error) {
		errno = path_error;
		return -1;
	}
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

/* What was done with the socket file, and the permissions that it had before; errors to return */
static char steps[256];
static int owner_error, group_error, mode_error, listen_error;

static int step(int error, const char *what, unsigned int arg)
{
	size_t len = strlen(steps);
	struct stat st;

	if (lstat(at.sun_path, &st) < 0)
		st.st_mode = 0;
	snprintf(steps + len, sizeof(steps) - len, "%s %u at %03o, ", what, arg,
		 st.st_mode & 0777);
	errno = error;
	return error ? -1 : 0;
}

/* Replaces the C library's, and gives nothing away. */
int fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	(void)dir;
	assert_string_equal(path, "");
	assert_int_equal(flags, AT_EMPTY_PATH);
	if (uid == (uid_t)-1)
		return step(group_error, "group", gid);
	assert_int_equal(gid, (gid_t)-1);
	return step(owner_error, "owner", uid);
}

int chmod(const char *path, mode_t mode)
{
	if (step(mode_error, "mode", mode))
		return -1;
	return syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

static int memfd_error;

/* Replaces the C library's, to fail with @memfd_error. */
int memfd_create(const char *name, unsigned int flags)
{
	errno = memfd_error;
	return memfd_error ? -1 : syscall(SYS_memfd_create, name, flags);
}

int listen(int fd, int backlog)
{
	return step(listen_error, "listen", 0) ? -1 : syscall(SYS_listen, fd, backlog);
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
		int fd = unix_bind(&at, types[i], NULL);

		expect_flags(fd);
		assert_int_equal(stat(at.sun_path, &st), 0);
		assert_int_equal(st.st_mode, S_IFSOCK | 0600);
		assert_int_equal(unix_bind(&at, types[i], NULL), -EADDRINUSE);
		snprintf(in_use, sizeof(in_use),
			 "address in use by pid %d; stop it or choose another path", getpid());
		if (i)
			strcpy(in_use,
			       "address in use by another process; stop it or choose another path");
		expect_said(in_use);
		assert_int_equal(stat(at.sun_path, &st), 0);
		close(fd);
		fd = unix_bind(&at, types[i], NULL);
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
	assert_int_equal(unix_bind(&at, SOCK_STREAM, NULL), -EADDRINUSE);
	expect_said("the file exists and is not a socket; remove it or choose another path");
	assert_int_equal(unlink(at.sun_path), 0);
	strcat(at.sun_path, "/x");
	assert_int_equal(unix_bind(&at, SOCK_STREAM, NULL), -ENOENT);
	expect_said("No such file or directory; create its directory first");
	strcpy(at.sun_path, "/dev/null/x");
	assert_int_equal(unix_bind(&at, SOCK_STREAM, NULL), -ENOTDIR);
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
	int sock = unix_bind(&at, SOCK_STREAM, NULL), client, fd, used, others[LIMIT];
	const struct rlimit few = { .rlim_cur = LIMIT, .rlim_max = LIMIT };
	char byte;

	(void)state;
	assert_int_equal(unix_accept(sock, &source), -1);
	assert_string_equal(said, "");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* 2: the spare descriptor is lost; it returns with the next connection that is accepted */
	for (int i = 0; i < 4; i++) {
		client = dial();
		for (used = 0; (others[used] = dup(sock)) >= 0; used++)
			;
		no_spare = i == 2;
		fd = unix_accept(sock, &source);
		no_spare = false;
		while (used)
			close(others[--used]);
		assert_int_equal(fd, -1);
		assert_string_equal(said, "test: cannot accept a connection: Too many open files");
		log_keep(said, sizeof(said));
		assert_int_equal(recv(client, &byte, 1, 0), 0);
		close(client);
		client = dial();
		fd = unix_accept(sock, &source);
		expect_flags(fd);
		assert_int_equal(send(fd, "x", 1, 0), 1);
		assert_int_equal(recv(client, &byte, 1, 0), 1);
		close(fd);
		close(client);
	}
	/* another error does not cost a connection */
	fd = unix_accept(STDERR_FILENO, &source);
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
	int sock = unix_bind(&at, SOCK_STREAM, NULL);
	const int free_fd = next_fd();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int client = dial(), fd;
		char byte;

		log_keep(said, sizeof(said));
		accept_error = cases[i].error;
		assert_int_equal(unix_accept(sock, &source), -1);
		assert_string_equal(said, cases[i].said);
		assert_int_equal(recv(client, &byte, 1, 0), cases[i].lost ? 0 : -1);
		fd = unix_accept(sock, &source);
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
	int fd = unix_bind(&at, SOCK_STREAM, NULL);
	const unsigned int fds = descriptors();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unix_bind(&at, SOCK_DGRAM, NULL), -EADDRINUSE);
	expect_said("address in use by another process; stop it or choose another path");
	assert_int_equal(access(at.sun_path, F_OK), 0);
	assert_int_equal(descriptors(), fds);
	close(fd);
	fd = unix_bind(&at, SOCK_DGRAM, NULL);
	assert_true(fd >= 0);
	assert_int_equal(descriptors(), fds);
	close(fd);
}

/* Bind, and check the steps, the result in @a and the file's mode. */
static void expect_steps(int type, struct unix_access a, const char *want)
{
	const mode_t mode = a.has_mode ? a.mode : 0600;
	const struct unix_access wish = a;
	struct stat st;
	int fd;

	steps[0] = '\0';
	fd = unix_bind(&at, type, &a);
	assert_true(fd >= 0);
	assert_string_equal(steps, want);
	assert_int_equal(stat(at.sun_path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | mode);
	assert_true(a.has_uid && a.has_gid && a.has_mode);
	assert_int_equal(a.uid, wish.has_uid ? wish.uid : st.st_uid);
	assert_int_equal(a.gid, wish.has_gid ? wish.gid : st.st_gid);
	assert_int_equal(a.mode, mode);
	close(fd);
	unlink(at.sun_path);
}

/*
 * The file never lets anybody connect who may not: bits for a group come after the group, and
 * listen() is last. The umask does not matter.
 */
static void test_access(void **state)
{
	const uid_t other = geteuid() + 1;
	const gid_t group = getegid() + 1;
	const struct unix_access all = {
		.has_uid = true, .has_gid = true, .has_mode = true,
		.uid = other, .gid = group, .mode = 0666
	};
	const struct unix_access own = {
		.has_uid = true, .has_gid = true, .uid = geteuid(), .gid = getegid()
	};
	const struct unix_access no_group = { .has_mode = true, .mode = 0646 };
	const struct unix_access closed = { .has_mode = true };
	const mode_t before = umask(0);
	char want[128];

	(void)state;
	expect_steps(SOCK_STREAM, (struct unix_access){ 0 }, "listen 0 at 600, ");
	expect_steps(SOCK_DGRAM, (struct unix_access){ 0 }, "");
	expect_steps(SOCK_STREAM, own, "listen 0 at 600, ");
	expect_steps(SOCK_STREAM, no_group, "listen 0 at 646, ");
	expect_steps(SOCK_STREAM, closed, "listen 0 at 000, ");
	umask(077);
	expect_steps(SOCK_STREAM, no_group, "mode 422 at 600, listen 0 at 646, ");
	for (int i = 0; i < 2; i++) {
		umask(i ? 0 : 0777);
		snprintf(want, sizeof(want),
			 "group %u at %s, mode 438 at %s, owner %u at 666, listen 0 at 666, ",
			 group, i ? "600" : "000", i ? "600" : "000", other);
		expect_steps(SOCK_STREAM, all, want);
		*strstr(want, "listen") = '\0';
		expect_steps(SOCK_DGRAM, all, want);
	}
	umask(before);
	assert_string_equal(said, "");
}

/* If a step fails, the file is removed and the reason named. */
static void test_access_errors(void **state)
{
	static const struct {
		int *error;
		const char *why;
	} cases[] = {
		{ &group_error,
		  "cannot give it to group 4294967293: Operation not permitted; only root and members of the group may do that" },
		{ &owner_error,
		  "cannot give it to user 4294967294: Operation not permitted; only root may do that" },
		{ &mode_error, "cannot set its mode to 0770: Operation not permitted" },
		{ &listen_error, "Operation not permitted" },
		{ &path_error, "cannot open it: Operation not permitted" },
	};
	const struct unix_access wish = {
		.has_uid = true, .has_gid = true, .has_mode = true,
		.uid = 4294967294, .gid = 4294967293, .mode = 0770
	};
	const unsigned int fds = descriptors();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct unix_access a = wish;

		*cases[i].error = EPERM;
		assert_int_equal(unix_bind(&at, SOCK_STREAM, &a), -EPERM);
		*cases[i].error = 0;
		expect_said(cases[i].why);
		assert_int_equal(a.uid, wish.uid);
		assert_int_equal(a.gid, wish.gid);
		assert_int_equal(a.mode, wish.mode);
		assert_int_equal(access(at.sun_path, F_OK), -1);
		assert_int_equal(descriptors(), fds);
	}
}

static char other_file[100];	/* of somebody else */

static void put_file(void)
{
	assert_int_equal(rename(other_file, at.sun_path), 0);
}

static void put_symlink(void)
{
	unlink(at.sun_path);
	assert_int_equal(symlink(other_file, at.sun_path), 0);
}

static void put_socket_with_names(void)
{
	unlink(at.sun_path);
	assert_int_equal(link(other_file, at.sun_path), 0);
}

static void put_nothing(void)
{
	unlink(at.sun_path);
}

#define REPLACED	"it was replaced; let nobody else write to its directory"

/* Another file that took the name in between is neither given away nor removed. */
static void test_replaced(void **state)
{
	static const struct {
		void (*put)(void);
		bool socket;
		int err;
		const char *why;
	} cases[] = {
		{ put_file, false, -EBUSY, REPLACED },
		{ put_symlink, false, -EBUSY, REPLACED },
		{ put_symlink, true, -EBUSY, REPLACED },
		{ put_socket_with_names, true, -EBUSY, REPLACED },
		{ put_nothing, false, -ENOENT, "cannot open it: No such file or directory" },
	};
	struct unix_access all = { .has_uid = true, .has_gid = true, .has_mode = true };
	const unsigned int fds = descriptors();
	struct stat st;

	(void)state;
	snprintf(other_file, sizeof(other_file), "%s/other", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const mode_t type = cases[i].socket ? S_IFSOCK : S_IFREG;

		assert_int_equal(mknod(other_file, type | 0600, 0), 0);
		meanwhile = cases[i].put;
		steps[0] = '\0';
		assert_int_equal(unix_bind(&at, SOCK_STREAM, &all), cases[i].err);
		meanwhile = NULL;
		assert_string_equal(steps, "");
		expect_said(cases[i].why);
		if (cases[i].err == -EBUSY) {
			assert_int_equal(stat(at.sun_path, &st), 0);
			assert_int_equal(st.st_mode, type | 0600);
		}
		unlink(at.sun_path);
		unlink(other_file);
		assert_int_equal(descriptors(), fds);
	}
}

/* Permission to set owner and group is known before any socket exists. */
static void test_check(void **state)
{
	const struct unix_access both = { .has_uid = true, .has_gid = true, .uid = 5, .gid = 6 };
	const struct unix_access user = { .has_uid = true, .uid = 5 };
	const unsigned int fds = descriptors();

	(void)state;
	steps[0] = '\0';
	memfd_error = EMFILE;
	assert_int_equal(unix_access_check(at.sun_path, &(struct unix_access){ 0 }), 0);
	assert_int_equal(unix_access_check(at.sun_path, &user), -EMFILE);
	memfd_error = 0;
	expect_said("Too many open files");
	assert_string_equal(steps, "");
	assert_int_equal(unix_access_check(at.sun_path, &both), 0);
	assert_string_equal(steps, "group 6 at 000, owner 5 at 000, ");
	owner_error = EPERM;
	assert_int_equal(unix_access_check(at.sun_path, &user), -EPERM);
	owner_error = 0;
	expect_said("cannot give it to user 5: Operation not permitted; only root may do that");
	group_error = EINVAL;
	assert_int_equal(unix_access_check(at.sun_path, &both), -EINVAL);
	group_error = 0;
	expect_said("cannot give it to group 6: Invalid argument; only root and members of the group "
		    "may do that");
	assert_int_equal(descriptors(), fds);
}

/* What one leaves open is as in the defaults. */
static void test_defaults(void **state)
{
	const struct unix_access all = { true, true, true, 1, 2, 3 };
	struct unix_access some = { .has_gid = true, .gid = 9 }, a;

	(void)state;
	a = unix_access_or(&some, &all);
	assert_true(a.has_uid && a.has_gid && a.has_mode);
	assert_int_equal(a.uid, 1);
	assert_int_equal(a.gid, 9);
	assert_int_equal(a.mode, 3);
	a = unix_access_or(&all, &some);
	assert_int_equal(a.uid, 1);
	assert_int_equal(a.gid, 2);
	assert_int_equal(a.mode, 3);
	a = unix_access_or(&(struct unix_access){ 0 }, &some);
	assert_false(a.has_uid || a.has_mode);
	assert_int_equal(a.gid, 9);
}

static int send_descriptor(int sock)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
	const int fd = 0;

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	return sendmsg(sock, &mh, MSG_DONTWAIT) == 1 ? 0 : -errno;
}

/* Where the kernel can reject descriptors, it does on connections, too; data passes. */
static void test_no_descriptors(void **state)
{
	socklen_t len = sizeof(int);
	int sock, fd, peer, on;
	char byte;

	(void)state;
	sock = unix_bind(&at, SOCK_STREAM, NULL);
	if (getsockopt(sock, SOL_SOCKET, 83, &on, &len) < 0) {
		close(sock);
		unlink(at.sun_path);
		skip();
	}
	for (int no = 0; no < 2; no++) {
		if (no)
			unix_no_descriptors(sock);
		peer = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(peer, (struct sockaddr *)&at, sizeof(at)), 0);
		fd = unix_accept(sock, NULL);
		assert_int_equal(send_descriptor(peer), no ? -EPERM : 0);
		assert_int_equal(send(peer, "y", 1, 0), 1);
		assert_int_equal(recv(fd, &byte, 1, 0), 1);
		assert_int_equal(byte, no ? 'y' : 'x');
		close(peer);
		close(fd);
	}
	close(sock);
	unlink(at.sun_path);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(address), TEST(names), TEST(rejected), TEST(limit),
		TEST(accept_errors), TEST(other_kind), TEST(access), TEST(access_errors),
		TEST(replaced), TEST(check), TEST(defaults), TEST(no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
