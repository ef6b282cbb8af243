// SPDX-License-Identifier: GPL-2.0
/*
 * mem/mapper.c: requests in their order, descriptors after them, and the end of a mapper while a
 * request blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/failing.h"
#include "lib/folder.h"
#include "lib/locks.h"
#include "mem/mapper.h"

#define MANY	50

/* A request that writes down what happens to it */
struct request {
	struct mapper_job job;
	sem_t *begun;		/* posted at its begin, or NULL */
	sem_t *until;		/* it waits for, or NULL */
	unsigned int worked, done, dropped;	/* order among all, from 1 */
	pthread_t worker;
};

static struct {
	struct mapper *m;
	pthread_t loop;			/* the thread of the tests */
	_Atomic unsigned int n;
	sem_t begun, until;
	unsigned int fds;
} t;

static void work(struct mapper_job *job)
{
	struct request *r = (struct request *)job;

	r->worker = pthread_self();
	if (!pthread_equal(r->worker, t.loop))
		locks_work();
	if (r->begun)
		sem_post(r->begun);
	if (r->until)
		sem_wait(r->until);
	r->worked = ++t.n;
}

static void done(struct mapper_job *job)
{
	((struct request *)job)->done = ++t.n;
}

static void drop(struct mapper_job *job)
{
	struct request *r = (struct request *)job;

	r->worker = pthread_self();
	r->dropped = ++t.n;
}

static struct request request(void)
{
	return (struct request) { .job = { work, done, drop, { NULL } } };
}

/* A request that waits for t.until */
static struct request blocked(void)
{
	struct request r = request();

	r.begun = &t.begun;
	r.until = &t.until;
	return r;
}

static int setup(void **state)
{
	(void)state;
	t.n = 0;
	t.loop = pthread_self();
	sem_init(&t.begun, 0, 0);
	sem_init(&t.until, 0, 0);
	t.fds = descriptors();
	return mapper_new(&t.m);
}

static int teardown(void **state)
{
	(void)state;
	mapper_end(t.m);
	assert_true(mapper_wait(5000));
	assert_int_equal(descriptors(), t.fds);
	assert_int_equal(locks_wrong(), 0);
	return 0;
}

static void readable(bool want)
{
	struct pollfd p = { .fd = mapper_fd(t.m), .events = POLLIN };

	assert_int_equal(poll(&p, 1, want ? 5000 : 0), want);
}

/* Reap until the request is done. */
static void reap(const struct request *r)
{
	while (!r->done) {
		readable(true);
		mapper_reap(t.m);
	}
}

static void test_order(void **state)
{
	struct request r[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		r[i] = request();
		mapper_add(t.m, &r[i].job);
	}
	reap(&r[MANY - 1]);
	for (int i = 0; i < MANY; i++) {
		assert_false(pthread_equal(r[i].worker, t.loop));
		assert_true(r[i].worked < r[i].done);
		assert_int_equal(r[i].dropped, 0);
		if (i) {
			assert_true(r[i].worked > r[i - 1].worked);
			assert_true(r[i].done > r[i - 1].done);
		}
	}
	mapper_reap(t.m);
	readable(false);
}

/* A request that blocks stops its own mapper only. */
static void test_blocked(void **state)
{
	struct request bad = blocked(), behind = request(), good = request();
	struct mapper *first = t.m;

	(void)state;
	mapper_add(t.m, &bad.job);
	sem_wait(&t.begun);
	mapper_add(t.m, &behind.job);
	assert_int_equal(mapper_new(&t.m), 0);
	mapper_add(t.m, &good.job);
	reap(&good);
	mapper_end(t.m);
	t.m = first;
	assert_int_equal(bad.worked, 0);
	assert_int_equal(behind.worked, 0);
	sem_post(&t.until);
	reap(&behind);
	assert_true(bad.done && bad.done < behind.done);
}

/*
 * The end waits for nothing. The thread ends later; it drops the requests whose owners are gone, and
 * does the others.
 */
static void test_end(void **state)
{
	struct request old = request(), bad = blocked(), next = request(), last = request();
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	last.job.done = NULL;
	last.job.drop = NULL;
	mapper_add(t.m, &old.job);
	mapper_add(t.m, &bad.job);
	mapper_add(t.m, &next.job);
	mapper_add(t.m, &last.job);
	sem_wait(&t.begun);
	mapper_close(t.m, fd);
	mapper_end(t.m);
	t.m = NULL;
	assert_false(mapper_wait(20));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	sem_post(&t.until);
	assert_true(mapper_wait(5000));
	assert_true(fcntl(fd, F_GETFD) < 0);
	assert_true(old.worked && old.dropped && !old.done);
	assert_true(bad.worked && bad.dropped && !bad.done);
	assert_true(!next.worked && next.dropped && !next.done);
	assert_true(last.worked);
	assert_false(pthread_equal(old.worker, t.loop));
}

/* A user that outlives the mapper's owner still gets its requests done. */
static void test_reference(void **state)
{
	struct mapper *m = mapper_get(t.m);
	struct request r = request();

	(void)state;
	r.job.done = NULL;
	mapper_end(t.m);
	t.m = NULL;
	assert_true(mapper_wait(5000));
	mapper_add(m, &r.job);
	mapper_put(m);
	assert_true(descriptors_become(t.fds));
	assert_true(r.worked);
	assert_null(mapper_get(NULL));
	mapper_put(NULL);
}

/* Descriptors are closed after all requests, and the loop learns when none is left. */
static void test_close(void **state)
{
	struct request bad = blocked(), next = request();
	unsigned int before = descriptors();
	int fd[3];

	(void)state;
	mapper_add(t.m, &bad.job);
	sem_wait(&t.begun);
	for (int i = 0; i < 3; i++) {
		fd[i] = open("/dev/null", O_RDONLY);
		mapper_close(t.m, fd[i]);
	}
	mapper_add(t.m, &next.job);
	assert_int_equal(mapper_closing(t.m), 3);
	assert_int_equal(descriptors(), before + 3);
	sem_post(&t.until);
	reap(&next);
	while (mapper_closing(t.m)) {
		readable(true);
		mapper_reap(t.m);
	}
	assert_int_equal(descriptors(), before);
}

/* The client notices at once that its connection has ended, also while the mapper is blocked. */
static void test_hang_up(void **state)
{
	struct request bad = blocked();
	int pair[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	mapper_add(t.m, &bad.job);
	sem_wait(&t.begun);
	mapper_hang_up(t.m, pair[0]);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
	sem_post(&t.until);
	reap(&bad);
	assert_true(descriptors_become(t.fds + 2));
	assert_int_equal(recv(pair[1], &byte, 1, 0), 0);	/* no ECONNRESET */
	close(pair[1]);
}

static void test_no_mapper(void **state)
{
	struct request r = request(), alone = request();
	int pair[2], fd = open("/dev/null", O_RDONLY);
	char byte;

	(void)state;
	mapper_add(NULL, &r.job);
	assert_true(r.worked == 1 && r.done == 2);
	assert_true(pthread_equal(r.worker, t.loop));
	alone.job.done = NULL;
	mapper_add(NULL, &alone.job);
	assert_true(alone.worked);
	mapper_close(NULL, fd);
	assert_true(fcntl(fd, F_GETFD) < 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	mapper_hang_up(NULL, pair[0]);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
	assert_true(fcntl(pair[0], F_GETFD) < 0);
	close(pair[1]);
	assert_int_equal(mapper_closing(NULL), 0);
	mapper_end(NULL);
}

static void test_no_thread(void **state)
{
	struct mapper *m;

	(void)state;
	for (uint32_t left = 0; left < 2; left++) {
		failing_begin(FAILING_KERNEL, EAGAIN, left);
		assert_int_equal(mapper_new(&m), -EAGAIN);
		assert_true(failing_end());
	}
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	assert_int_equal(mapper_new(&m), -ENOMEM);
	assert_true(failing_end());
	assert_int_equal(descriptors(), t.fds + 1);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_order), T(test_blocked), T(test_end), T(test_reference), T(test_close),
		T(test_hang_up), T(test_no_mapper), T(test_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
