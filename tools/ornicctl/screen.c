// SPDX-License-Identifier: GPL-2.0
/*
 * Uses escape sequences of ECMA-48 and the alternate screen of xterm, which current terminals have.
 * Signals are blocked except in screen_wait(), so that none arrives while a frame is printed and
 * the terminal is always restored by screen_end().
 */
#include "screen.h"

#include "ornicctl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define ENTER	"\033[?1049h\033[?25l"	/* alternate screen, no cursor */
#define LEAVE	"\033[?25h\033[?1049l"
#define HOME	"\033[H"
#define CLEAR	"\033[J"		/* clear from the cursor to the end */

static bool taken, on_terminal;
static atomic_bool stopped;
static sigset_t before;

static void stop(int signal)
{
	(void)signal;
	stopped = true;
}

int screen_begin(bool draw)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = stop };
	sigset_t block;

	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&block, ends[i]);
	if (sigprocmask(SIG_BLOCK, &block, &before)) {
		ctl_err("cannot wait for signals: %s", strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
	taken = true;
	on_terminal = draw && isatty(STDOUT_FILENO);
	if (on_terminal)
		fputs(ENTER, stdout);
	return 0;
}

void screen_end(void)
{
	if (!taken)
		return;
	taken = false;
	if (on_terminal)
		fputs(LEAVE, stdout);
	on_terminal = false;
	fflush(stdout);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int screen_rows(void)
{
	struct winsize size;

	if (!on_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_row;
}

void screen_frame(void)
{
	if (on_terminal)
		fputs(HOME CLEAR, stdout);
}

bool screen_flush(void)
{
	return !fflush(stdout) && !ferror(stdout);
}

bool screen_wait(int fd, double seconds)
{
	struct timespec ts = { .tv_sec = seconds, .tv_nsec = (seconds - (long)seconds) * 1e9 };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	/* Repeat after other signals, such as SIGWINCH or SIGCONT; this may double the time. */
	while (!stopped && ppoll(&p, fd >= 0, seconds < 0 ? NULL : &ts,
				 taken ? &before : NULL) < 0 && errno == EINTR)
		;
	return !stopped;
}

bool screen_stopped(void)
{
	return stopped;
}
