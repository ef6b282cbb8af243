// SPDX-License-Identifier: GPL-2.0
/* signals.c: which signals end the loop, which are logged, and which keep their action. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/folder.h"
#include "lib/printed.h"

#include "log.h"
#include "loop.h"
#include "signals.h"

static int signalfd_error, epoll_error;

/* Replaces the C library's, to fail with @signalfd_error. */
int signalfd(int fd, const sigset_t *set, int flags)
{
	if (!signalfd_error)
		return syscall(SYS_signalfd4, fd, set, _NSIG / 8, flags);
	errno = signalfd_error;
	return -1;
}

/* Replaces the C library's, to fail with @epoll_error. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (!epoll_error)
		return syscall(SYS_epoll_ctl, epfd, op, fd, event);
	errno = epoll_error;
	return -1;
}

static time_t later;	/* s that the clock is fast */

/* Replaces the C library's, to be fast. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = syscall(SYS_clock_gettime, clock, ts);

	ts->tv_sec += later;
	return err;
}

struct fix {
	struct loop *l;
	struct signals s;
	sigset_t old;
	unsigned int turns;	/* the loop stops when they are taken */
};

static int64_t work(void *arg)
{
	struct fix *t = arg;

	if (!t->turns--)
		loop_stop(t->l);
	return 1;
}

/* Fill the stack that the next call uses, so that a variable without a value shows. */
static __attribute__((noinline)) void dirty_stack(void)
{
	uint8_t stack[4096];

	memset(stack, 0xff, sizeof(stack));
	__asm__ __volatile__("" : : "r" (stack) : "memory");
}

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));

	log_setup(LOG_WARN, false);
	sigprocmask(SIG_BLOCK, NULL, &t->old);
	t->l = loop_new();
	assert_non_null(t->l);
	dirty_stack();
	assert_int_equal(signals_open(&t->s, t->l), 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;
	sigset_t late;
	int sig;

	signals_close(&t->s);
	loop_free(t->l);
	/* a signal during the orderly end does not interrupt it */
	raise(SIGTERM);
	sigpending(&late);
	assert_int_equal(sigwait(&late, &sig), 0);
	assert_int_equal(sig, SIGTERM);
	sigprocmask(SIG_SETMASK, &t->old, NULL);
	test_free(t);
	return 0;
}

/* A request to end ends the loop, also one that comes before it runs; another one is no harm. */
static void test_end(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGQUIT, SIGXCPU };
	struct fix *t = *state;

	assert_int_equal(fcntl(t->s.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(t->s.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		raise(signals[i]);
		assert_int_equal(loop_run(t->l), 0);
	}
	for (int i = 0; i < 2; i++)
		kill(getpid(), SIGTERM);
	assert_int_equal(loop_run(t->l), 0);
}

/* Raise @sig a second later, and give the loop some turns. Return: what was logged. */
static const char *said(struct fix *t, int sig)
{
	static char text[4096];
	struct printed p;

	later++;		/* no line is suppressed, nor one that reports this */
	print_begin(&p, STDERR_FILENO);
	raise(sig);
	loop_set_work(t->l, work, t);
	t->turns = 3;
	assert_int_equal(loop_run(t->l), 0);
	print_end(&p, text, sizeof(text));
	return text;
}

/* Signals that may end or stop this process, or that the test of another signal covers */
static bool is_other(int sig)
{
	static const int signals[] = {
		SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS,
		SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGURG, SIGWINCH, SIGPIPE, SIGXFSZ,
	};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sig == signals[i])
			return true;
	return false;
}

static bool is_end(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGQUIT || sig == SIGXCPU;
}

/* All signals that would end the process are received, and those do not end the loop. */
static void test_ignored(void **state)
{
	struct fix *t = *state;
	char want[256];

	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		if (is_other(sig) || is_end(sig) || (sig >= __SIGRTMIN && sig < SIGRTMIN))
			continue;
		snprintf(want, sizeof(want),
			 "ornicd: warning: signals: ignored signal %d (%s) from process %d; SIGTERM ends ornicd\n",
			 sig, strsignal(sig), getpid());
		if (sig == SIGHUP)
			snprintf(want, sizeof(want),
				 "ornicd: warning: signals: ignored SIGHUP from process %d: ornicd cannot reload; to restart it, stop its virtual machines, send SIGTERM and start it again\n",
				 getpid());
		assert_string_equal(said(t, sig), want);
	}
}

/* Errors of the program and stops are as before, so a crash leaves a core file. */
static void test_others(void **state)
{
	struct fix *t = *state;
	struct sigaction now;
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		if (!is_other(sig))
			continue;
		assert_int_equal(sigismember(&blocked, sig), sigismember(&t->old, sig));
		assert_int_equal(sigaction(sig, NULL, &now), 0);
		if (sig == SIGPIPE || sig == SIGXFSZ)
			assert_ptr_equal(now.sa_handler, SIG_IGN);
	}
	assert_string_equal(said(t, SIGPIPE), "");
	assert_string_equal(said(t, SIGXFSZ), "");
}

/* A flood of signals fills neither the log nor the time of the loop. */
static void test_flood(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct fix *t = *state;
	unsigned int lines = 0;

	for (int i = 0; i < 100; i++) {
		lines += strlen(said(t, SIGHUP)) > 0;
		later--;
	}
	assert_in_range(lines, burst[LOG_WARN], 15);	/* some seconds pass */
}

/* A timer and a terminal that hangs up are no process. */
static void test_kernel(void **state)
{
	const struct itimerval soon = { .it_value.tv_usec = 1 };
	struct fix *t = *state;

	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	usleep(1000);
	assert_string_equal(said(t, SIGPIPE),
			    "ornicd: warning: signals: ignored signal 14 (Alarm clock) from the kernel; SIGTERM ends ornicd\n");
}

static void test_errors(void **state)
{
	static int *const errors[] = { &signalfd_error, &epoll_error };
	struct fix *t = *state;
	struct signals s;

	for (int i = 0; i < 2; i++) {
		const unsigned int fds = descriptors();

		*errors[i] = EMFILE;
		assert_int_equal(signals_open(&s, t->l), -EMFILE);
		*errors[i] = 0;
		assert_int_equal(descriptors(), fds);
	}
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(end), TEST(ignored), TEST(others), TEST(flood), TEST(kernel), TEST(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
