// SPDX-License-Identifier: GPL-2.0
/* loop.c: which callbacks run, in which order with the work hook, and when the loop ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define WATCHES	3

struct fix;

/** struct end - a pipe whose read end is watched */
struct end {
	struct fix *t;
	int fd[2];
	uint32_t events;	/* of the last call */
	unsigned int calls;
	struct end *deletes;	/* action of the callback */
};

struct fix {
	struct loop *l;
	struct end end[WATCHES];
	unsigned int turns;	/* the loop stops when they are taken */
	unsigned int worked;
	int64_t wait;		/* return value of the hook */
	int64_t age;		/* of an event, ns */
};

static void called(void *arg, uint32_t events)
{
	struct end *e = arg;

	e->calls++;
	e->events = events;
	if (e->deletes)
		loop_del(e->t->l, e->deletes->fd[0]);
}

static int64_t work(void *arg)
{
	struct fix *t = arg;

	t->worked++;
	if (!t->turns--)
		loop_stop(t->l);
	return t->wait;
}

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));

	t->l = loop_new();
	assert_non_null(t->l);
	t->wait = 1;
	for (int i = 0; i < WATCHES; i++) {
		t->end[i].t = t;
		assert_int_equal(pipe2(t->end[i].fd, O_CLOEXEC | O_NONBLOCK), 0);
		assert_int_equal(loop_add(t->l, t->end[i].fd[0], EPOLLIN, called, &t->end[i]), 0);
	}
	loop_set_work(t->l, work, t);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	loop_free(t->l);
	for (int i = 0; i < WATCHES; i++) {
		close(t->end[i].fd[0]);
		close(t->end[i].fd[1]);
	}
	test_free(t);
	return 0;
}

/* Events are polled after each turn except the last one. */
static void turns(struct fix *t, unsigned int n)
{
	t->turns = n;
	t->worked = 0;
	for (int i = 0; i < WATCHES; i++)
		t->end[i].calls = 0;
	assert_int_equal(loop_run(t->l), 0);
	assert_int_equal(t->worked, n + 1);
}

static void fill(struct end *e)
{
	assert_int_equal(write(e->fd[1], "x", 1), 1);
}

/* Level triggered: each time until the byte is read; no other callback runs. */
static void test_events(void **state)
{
	struct fix *t = *state;

	turns(t, 2);
	for (int i = 0; i < WATCHES; i++)
		assert_int_equal(t->end[i].calls, 0);
	fill(&t->end[1]);
	turns(t, 3);
	assert_int_equal(t->end[0].calls, 0);
	assert_int_equal(t->end[1].calls, 3);
	assert_int_equal(t->end[1].events, EPOLLIN);
	assert_int_equal(t->end[2].calls, 0);
}

static void test_errors(void **state)
{
	struct fix *t = *state;
	struct end *e = &t->end[0];

	assert_int_equal(loop_add(t->l, e->fd[0], EPOLLIN, called, e), -EEXIST);
	assert_int_equal(loop_add(t->l, -1, EPOLLIN, called, e), -EBADF);
	assert_int_equal(loop_mod(t->l, e->fd[1], EPOLLIN), -ENOENT);
	assert_int_equal(loop_mod(t->l, 100000, EPOLLIN), -ENOENT);
	assert_int_equal(loop_mod(t->l, -1, EPOLLIN), -ENOENT);
	loop_del(t->l, e->fd[1]);
	loop_del(t->l, 100000);
	loop_del(t->l, -1);
	/* a regular file, which epoll rejects */
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(loop_add(t->l, file, EPOLLIN, called, e), -EPERM);
	assert_int_equal(loop_mod(t->l, file, EPOLLIN), -ENOENT);
	close(file);
	/* a closed descriptor */
	close(e->fd[0]);
	assert_int_equal(loop_mod(t->l, e->fd[0], EPOLLIN), -EBADF);
	loop_del(t->l, e->fd[0]);
	assert_int_equal(loop_mod(t->l, e->fd[0], EPOLLIN), -ENOENT);
	assert_int_equal(pipe2(e->fd, O_CLOEXEC | O_NONBLOCK), 0);
}

static void test_modify(void **state)
{
	struct fix *t = *state;
	struct end *e = &t->end[0];

	fill(e);
	assert_int_equal(loop_mod(t->l, e->fd[0], 0), 0);
	turns(t, 2);
	assert_int_equal(e->calls, 0);
	assert_int_equal(loop_mod(t->l, e->fd[0], EPOLLIN), 0);
	turns(t, 2);
	assert_int_equal(e->calls, 2);
}

/* Two watches have an event in one batch, and the first callback deletes the other watch. */
static void test_delete_in_batch(void **state)
{
	struct fix *t = *state;

	for (int i = 0; i < WATCHES; i++)
		fill(&t->end[i]);
	t->end[0].deletes = &t->end[1];
	t->end[1].deletes = &t->end[0];
	turns(t, 1);
	assert_int_equal(t->end[0].calls + t->end[1].calls, 1);
	assert_int_equal(t->end[2].calls, 1);
	/* a watch that deletes itself is called once */
	t->end[2].deletes = &t->end[2];
	turns(t, 3);
	assert_int_equal(t->end[2].calls, 1);
	/* the descriptor can be watched again */
	t->end[2].deletes = NULL;
	assert_int_equal(loop_add(t->l, t->end[2].fd[0], EPOLLIN, called, &t->end[2]), 0);
	turns(t, 2);
	assert_int_equal(t->end[2].calls, 2);
}

/* Any number of descriptors */
static void test_large_numbers(void **state)
{
	static const int numbers[] = { 63, 64, 65, 127, 128, 1000 };
	struct fix *t = *state;
	struct end many[6];

	for (int i = 0; i < 6; i++) {
		many[i] = (struct end) { .t = t };
		assert_int_equal(dup2(t->end[0].fd[0], numbers[i]), numbers[i]);
		assert_int_equal(loop_add(t->l, numbers[i], EPOLLIN, called, &many[i]), 0);
	}
	fill(&t->end[0]);
	turns(t, 1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(many[i].calls, 1);
		loop_del(t->l, numbers[i]);
		close(numbers[i]);
	}
	assert_int_equal(t->end[0].calls, 1);
}

/* Without standard input, its number is that of another file. */
static void test_descriptor_0(void **state)
{
	const int input = dup(STDIN_FILENO);
	struct fix *t = *state;
	struct end zero = { .t = t };
	struct loop *other;

	assert_int_equal(dup2(t->end[0].fd[0], 0), 0);
	assert_int_equal(loop_add(t->l, 0, EPOLLIN, called, &zero), 0);
	assert_int_equal(loop_add(t->l, 0, EPOLLIN, called, &zero), -EEXIST);
	fill(&t->end[0]);
	turns(t, 1);
	assert_int_equal(zero.calls, 1);
	assert_int_equal(loop_mod(t->l, 0, 0), 0);
	turns(t, 1);
	assert_int_equal(zero.calls, 1);
	loop_del(t->l, 0);
	close(0);
	other = loop_new();
	assert_non_null(other);
	assert_int_equal(fcntl(0, F_GETFD), FD_CLOEXEC);
	loop_free(other);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	dup2(input, 0);
	close(input);
}

static void stop(void *arg, uint32_t events)
{
	(void)events;
	loop_stop(((struct fix *)arg)->l);
}

/* Without a hook the loop sleeps until an event; a callback may end it. */
static void test_no_hook(void **state)
{
	struct fix *t = *state;

	loop_del(t->l, t->end[0].fd[0]);
	assert_int_equal(loop_add(t->l, t->end[0].fd[0], EPOLLIN, stop, t), 0);
	loop_set_work(t->l, NULL, NULL);
	fill(&t->end[0]);
	assert_int_equal(loop_run(t->l), 0);
	assert_int_equal(t->worked, 0);
}

static int64_t once(void *arg)
{
	struct fix *t = arg;

	if (t->worked++)
		loop_stop(t->l);
	return t->wait;
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* The loop sleeps as long as the hook says, and not at all for 0. */
static void test_wait(void **state)
{
	struct fix *t = *state;
	int64_t begin = now();

	errno = EBADF;		/* an earlier one means nothing */
	loop_set_work(t->l, once, t);
	t->wait = 20000000;
	assert_int_equal(loop_run(t->l), 0);
	assert_int_equal(t->worked, 2);
	assert_true(now() - begin >= 20000000);
	fill(&t->end[0]);		/* an event ends a longer sleep */
	for (int i = 0; i < 2; i++) {
		t->wait = i ? 0 : 1000000000;
		t->worked = 0;
		assert_int_equal(loop_run(t->l), 0);
		assert_int_equal(t->worked, 2);
	}
}

static void aged(void *arg, uint32_t events)
{
	struct fix *t = arg;

	(void)events;
	t->age = loop_age(t->l);
	loop_stop(t->l);
}

/* Be late for the event that was there before. */
static int64_t slow(void *arg)
{
	const struct timespec pause = { 0, 3000000 };
	struct fix *t = arg;

	t->worked++;
	nanosleep(&pause, NULL);
	return LOOP_FOREVER;
}

/* The age of an event is counted from the last look. An idle loop looks every LOOP_LOOK_NS. */
static void test_age(void **state)
{
	struct fix *t = *state;
	int64_t begin = now();

	loop_set_work(t->l, once, t);
	t->wait = LOOP_FOREVER;
	assert_int_equal(loop_run(t->l), 0);
	assert_int_equal(t->worked, 2);
	assert_true(now() - begin >= LOOP_LOOK_NS);
	loop_del(t->l, t->end[0].fd[0]);
	assert_int_equal(loop_add(t->l, t->end[0].fd[0], EPOLLIN, aged, t), 0);
	loop_set_work(t->l, slow, t);
	fill(&t->end[0]);
	begin = now();
	assert_int_equal(loop_run(t->l), 0);
	assert_true(t->age >= 3000000 && t->age <= now() - begin);
}

static void tenth(void *arg, uint32_t events)
{
	struct end *e = arg;

	(void)events;
	if (++e->calls == 10)
		loop_stop(e->t->l);
}

static int64_t busy(void *arg)
{
	struct fix *t = arg;

	t->worked++;
	return 0;
}

/* A hook with more work runs many times between two looks at the events, but not for ever. */
static void test_spin(void **state)
{
	struct fix *t = *state;

	loop_del(t->l, t->end[0].fd[0]);
	assert_int_equal(loop_add(t->l, t->end[0].fd[0], EPOLLIN, tenth, &t->end[0]), 0);
	loop_set_work(t->l, busy, t);
	fill(&t->end[0]);
	assert_int_equal(loop_run(t->l), 0);
	assert_true(t->worked > 2 * t->end[0].calls);
}

/* Return the lowest free descriptor. */
static int next_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static struct end *alarmed;

static void on_alarm(int sig)
{
	(void)sig;
	if (alarmed)
		fill(alarmed);
}

/* Have the alarm write to a descriptor after 10 ms, which count from within loop_run(). */
static int64_t arm_alarm(void *arg)
{
	const struct itimerval soon = { .it_value.tv_usec = 10000 };
	struct fix *t = arg;

	if (!t->worked++)
		assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	return LOOP_FOREVER;
}

/* The loop continues after the handler of a signal, and ends if its descriptor cannot be used. */
static void test_interrupted(void **state)
{
	const struct itimerval soon = { .it_value.tv_usec = 10000 };
	const struct sigaction action = { .sa_handler = on_alarm };
	struct fix *t = *state;
	struct sigaction old;
	int fd;

	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	loop_set_work(t->l, once, t);
	t->wait = 30000000;
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(loop_run(t->l), 0);
	assert_int_equal(t->worked, 2);

	/* an interrupted wait is no look at the events; a process that was stopped has one */
	alarmed = &t->end[0];
	loop_del(t->l, t->end[0].fd[0]);
	assert_int_equal(loop_add(t->l, t->end[0].fd[0], EPOLLIN, aged, t), 0);
	loop_set_work(t->l, arm_alarm, t);
	t->worked = 0;
	assert_int_equal(loop_run(t->l), 0);
	assert_true(t->age >= 10000000);
	alarmed = NULL;
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);

	loop_free(t->l);
	fd = next_fd();
	t->l = loop_new();
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	loop_set_work(t->l, busy, t);
	assert_int_equal(loop_run(t->l), -EBADF);
}

/** struct later - a task that defers itself @again times, and defers or cancels another one */
struct later {
	struct fix *t;
	struct loop_task task;
	unsigned int again, calls;
	struct later *defers, *cancels;
};

static void run_later(void *arg)
{
	struct later *a = arg;

	a->calls++;
	assert_false(a->task.queued);
	if (a->again && a->again--)
		loop_defer(a->t->l, &a->task);
	if (a->defers)
		loop_defer(a->t->l, &a->defers->task);
	if (a->cancels)
		loop_cancel(a->t->l, &a->cancels->task);
}

/* A task runs once per iteration, without an event, and the loop does not sleep before. */
static void test_tasks(void **state)
{
	struct fix *t = *state;
	struct later a[2] = { 0 };

	for (int i = 0; i < 2; i++)
		a[i] = (struct later) { .t = t, .task = { .run = run_later, .arg = &a[i] } };
	t->wait = 100000000000;
	a[0].again = 2;
	a[0].defers = &a[1];
	loop_defer(t->l, &a[0].task);
	loop_defer(t->l, &a[0].task);
	turns(t, 1);
	assert_int_equal(a[0].calls, 1);
	assert_int_equal(a[1].calls, 0);
	turns(t, 1);
	assert_int_equal(a[0].calls, 2);
	assert_int_equal(a[1].calls, 1);
	turns(t, 2);
	assert_int_equal(a[0].calls, 3);
	assert_int_equal(a[1].calls, 2);
	/* the first one cancels the second one, which was deferred with it */
	a[0].defers = NULL;
	a[0].cancels = &a[1];
	loop_defer(t->l, &a[0].task);
	loop_defer(t->l, &a[1].task);
	turns(t, 1);
	assert_int_equal(a[0].calls, 4);
	assert_int_equal(a[1].calls, 2);
	loop_cancel(t->l, &a[1].task);
	t->wait = 1;
	turns(t, 1);
	assert_int_equal(a[1].calls, 2);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events), TEST(errors), TEST(modify), TEST(delete_in_batch),
		TEST(large_numbers), TEST(descriptor_0), TEST(no_hook), TEST(wait), TEST(age),
		TEST(spin), TEST(interrupted), TEST(tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
