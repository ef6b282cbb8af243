// SPDX-License-Identifier: GPL-2.0
/*
 * vfu/server.c: a socket that cannot be offered leaves no descriptor and no memory behind (the
 * sanitizer looks), and removes no file of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop.h"
#include "lib/failing.h"
#include "lib/folder.h"
#include "lib/lines.h"
#include "mem/mapper.h"
#include "vfu/func.h"
#include "vfu/proto.h"
#include "vfu/server.h"

static bool no_peer;

/* Replaces the C library's */
int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	if (!no_peer || option != SO_PEERCRED)
		return syscall(SYS_getsockopt, fd, level, option, value, len);
	errno = ENOPROTOOPT;
	return -1;
}

static enum vfu_reset last_reset;

static void note_reset(struct vfu_func *f, enum vfu_reset why)
{
	(void)f;
	last_reset = why;
}

static const struct vfu_func_ops ops = { .reset = note_reset };

struct fix {
	struct loop *loop;
	char folder[64];
	char path[128];
	unsigned int before;	/* descriptors */
	unsigned int turns;	/* left for the loop to take */
};

static struct vfu_func function(void)
{
	return (struct vfu_func) { .ops = &ops, .log.name = "test", .bar[0] = { 4096, 0 } };
}

static int setup(void **state)
{
	static struct fix fix;
	struct fix *t = &fix;
	struct vfu_func f = function();
	struct vfu_server *server;

	strcpy(t->folder, "/tmp/ornic-XXXXXX");
	assert_non_null(mkdtemp(t->folder));
	snprintf(t->path, sizeof(t->path), "%s/socket", t->folder);
	t->loop = loop_new();
	assert_non_null(t->loop);
	/* the first socket of a process keeps a spare descriptor */
	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	vfu_server_close(server);
	assert_true(mapper_wait(5000));
	t->before = descriptors();
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	lines_drop();
	unlink(t->path);
	assert_int_equal(rmdir(t->folder), 0);
	loop_free(t->loop);
	return 0;
}

static void refused(struct fix *t, const char *path, int want)
{
	struct vfu_func f = function();
	struct vfu_server *server;

	assert_int_equal(vfu_server_open(t->loop, &f, path, NULL, &server), want);
	assert_true(descriptors_become(t->before));
}

static void test_open_and_close(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	struct stat st;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	assert_int_equal(stat(t->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	vfu_server_close(server);
	vfu_server_close(NULL);
	assert_int_equal(stat(t->path, &st), -1);
	assert_true(descriptors_become(t->before));
}

static void test_no_such_folder(void **state)
{
	struct fix *t = *state;

	refused(t, "/nosuchdir/socket", -ENOENT);
}

static void test_too_long(void **state)
{
	char path[200];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	refused(*state, path, -ENAMETOOLONG);
}

static void test_impossible_function(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	struct stat st;

	f.bar[0].size = 100;
	lines_begin();
	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), -EINVAL);
	lines_end("ornicd: error: test: BAR0: size 0x64 or position not possible\n"
		  "ornicd: error: test: cannot make its PCI function: Invalid argument\n");
	assert_int_equal(stat(t->path, &st), -1);
	assert_true(descriptors_become(t->before));
}

/* A file of another program, and a socket with a server, stay. */
static void test_in_use(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	struct stat st;
	int fd = open(t->path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
	refused(t, t->path, -EADDRINUSE);
	assert_int_equal(stat(t->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(t->path);
	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	t->before = descriptors();
	refused(t, t->path, -EADDRINUSE);
	assert_int_equal(stat(t->path, &st), 0);
	vfu_server_close(server);
}

/* A socket left by a dead process is replaced. */
static void test_stale(void **state)
{
	struct fix *t = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct vfu_func f = function();
	struct vfu_server *server;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, t->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	vfu_server_close(server);
	assert_true(descriptors_become(t->before));
}

/* No descriptor is free for the socket. */
static void test_no_descriptor(void **state)
{
	struct fix *t = *state;
	struct rlimit was, none;
	struct vfu_func f = function();
	struct vfu_server *server;
	struct stat st;
	int err, lowest = open("/dev/null", O_RDONLY);

	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = vfu_server_open(t->loop, &f, t->path, NULL, &server);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(stat(t->path, &st), -1);
	assert_true(descriptors_become(t->before));
}

static int64_t one_turn(void *arg)
{
	struct fix *t = arg;

	if (!t->turns--)
		loop_stop(t->loop);
	return 1;
}

static void turn(struct fix *t)
{
	t->turns = 2;
	loop_set_work(t->loop, one_turn, t);
	assert_int_equal(loop_run(t->loop), 0);
}

static int dial(struct fix *t)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, t->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* The process of the client tells where its files are mounted; a second client is named, too. */
static void test_process(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char want[256];
	int fd, second;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	snprintf(want, sizeof(want), "ornicd: test: client connected, process %1$d\n"
		 "ornicd: warning: test: %2$s: another client is connected, rejected pid %1$d\n",
		 getpid(), t->path);
	lines_begin();
	fd = dial(t);
	turn(t);
	second = dial(t);
	turn(t);
	lines_end(want);
	close(second);
	close(fd);
	turn(t);
	vfu_server_close(server);
}

/* A client whose process is unknown is served; one for which there is no memory is not. */
static void test_no_process_or_memory(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char byte;
	int fd;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	no_peer = true;
	lines_begin();
	fd = dial(t);
	turn(t);
	lines_end("ornicd: test: client connected, process 0\n");
	no_peer = false;
	close(fd);
	turn(t);
	fd = dial(t);
	lines_begin();
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	turn(t);
	assert_true(failing_end());
	lines_end("ornicd: error: test: cannot serve a client: Cannot allocate memory\n");
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	vfu_server_close(server);
	assert_true(descriptors_become(t->before));
}

/* While a client is connected, others are turned away at once; afterwards the next is served. */
static void test_clients(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char byte;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	t->before = descriptors();
	for (int i = 0; i < 3; i++) {
		int first = dial(t), second;

		turn(t);
		assert_true(descriptors_become(t->before + 2));
		for (int k = 0; k < 2; k++) {
			second = dial(t);
			assert_int_equal(send(second, "", 1, 0), 1);
			turn(t);
			assert_int_equal(recv(second, &byte, 1, 0), 0);
			close(second);
			assert_true(descriptors_become(t->before + 2));
		}
		assert_int_equal(recv(first, &byte, 1, 0), -1);
		assert_int_equal(errno, EAGAIN);
		close(first);
		turn(t);
		assert_true(descriptors_become(t->before));
	}
	vfu_server_close(server);
}

/* A client that has left does not keep its successor out, although unread bytes hide its end. */
static void test_successor(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char byte;
	pid_t pid;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	t->before = descriptors();
	assert_false(vfu_server_client(server, &pid));
	for (int i = 0; i < 3; i++) {
		int first = dial(t), second;

		turn(t);
		assert_true(vfu_server_client(server, &pid));
		assert_int_equal(pid, getpid());
		/* it sends no more, but still listens */
		shutdown(first, SHUT_WR);
		assert_true(vfu_server_client(server, &pid));
		close(first);
		assert_false(vfu_server_client(server, &pid));
		turn(t);

		first = dial(t);
		turn(t);
		assert_int_equal(send(first, "x", 1, 0), 1);
		close(first);
		assert_false(vfu_server_client(server, &pid));
		second = dial(t);
		turn(t);
		assert_int_equal(recv(second, &byte, 1, 0), -1);
		assert_int_equal(errno, EAGAIN);
		assert_true(descriptors_become(t->before + 2));
		close(second);
		turn(t);
		assert_true(descriptors_become(t->before));
	}
	vfu_server_close(server);
}

/* The function is reset when its client goes. The server closes the connection when it goes. */
static void test_ends(void **state)
{
	static const struct {
		struct vfu_hdr hdr;
		struct vfu_version version;
	} hello = {
		{ .id = 1, .cmd = VFU_VERSION, .size = sizeof(hello) }, { VFU_MAJOR, VFU_MINOR },
	};
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char answer[4096];
	int fd;

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	assert_string_equal(vfu_server_path(server), t->path);
	for (int i = 0; i < 2; i++) {
		fd = dial(t);
		turn(t);
		assert_false(vfu_server_attached(server));
		assert_int_equal(write(fd, &hello, sizeof(hello)), sizeof(hello));
		turn(t);
		assert_true(vfu_server_attached(server));
		assert_true(recv(fd, answer, sizeof(answer), 0) > (ssize_t)sizeof(hello));
		last_reset = VFU_RESET_DEVICE;
		if (i)
			break;
		lines_begin();
		close(fd);
		turn(t);
		lines_end("ornicd: test: client disconnected\n");
		assert_false(vfu_server_attached(server));
		assert_int_equal(last_reset, VFU_RESET_DISCONNECT);
	}
	vfu_server_close(server);
	assert_int_equal(last_reset, VFU_RESET_DISCONNECT);
	assert_int_equal(recv(fd, answer, sizeof(answer), 0), 0);
	close(fd);
	assert_true(descriptors_become(t->before));
}

/*
 * A client that is not accepted yet when the socket goes reads an end of file, too: QEMU 11.1 aborts
 * at a reset connection.
 */
static void test_ends_before_accept(void **state)
{
	struct fix *t = *state;
	struct vfu_func f = function();
	struct vfu_server *server;
	char byte;
	int fd[3];

	assert_int_equal(vfu_server_open(t->loop, &f, t->path, NULL, &server), 0);
	for (int i = 0; i < 3; i++) {
		fd[i] = dial(t);
		assert_int_equal(send(fd[i], "hello", 5, 0), 5);
	}
	vfu_server_close(server);
	assert_true(mapper_wait(5000));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(recv(fd[i], &byte, 1, 0), 0);
		close(fd[i]);
	}
	assert_true(descriptors_become(t->before));
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_open_and_close),
		T(test_no_such_folder),
		T(test_too_long),
		T(test_impossible_function),
		T(test_in_use),
		T(test_stale),
		T(test_no_descriptor),
		T(test_process),
		T(test_no_process_or_memory),
		T(test_clients),
		T(test_successor),
		T(test_ends),
		T(test_ends_before_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
