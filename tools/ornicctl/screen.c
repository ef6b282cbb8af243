// SPDX-License-Identifier: GPL-2.0
/*
 * Uses escape sequences of ECMA-48 and the alternate screen of xterm, which current terminals have.
 * A signal that ends the program only sets a flag, so that the frame is printed completely and
 * screen_end() restores the terminal. If the output stalls, the handler of SIGALRM restores it. The
 * handler of SIGTSTP restores it before the program stops.
 */
#include "screen.h"

#include "ornicctl.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER	"\033[?1049h\033[?25l"	/* alternate screen, no cursor */
#define LEAVE	"\033[?25h\033[?1049l"
#define HOME	"\033[H"
#define CLEAR	"\033[J"		/* clear from the cursor to the end */

/** STALL_S - seconds from a signal until the program ends without the rest of its output */
#define STALL_S	3

static const int ends[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

static bool taken;
static atomic_bool stopped, on_terminal;
static atomic_bool drawn;	/* from before ENTER until after LEAVE has been written */

static void stop(int signal)
{
	(void)signal;
	if (!atomic_exchange(&stopped, true))
		alarm(STALL_S);
}

/* Write to the terminal in a signal handler, which must not call stdio. */
static void put(const char *sequence)
{
	ssize_t n = write(STDOUT_FILENO, sequence, strlen(sequence));

	(void)n;	/* a terminal that is gone needs no restoring */
}

/*
 * End the program, whose output stalls. To restore the terminal, discard the rest of the frame and
 * continue output that the user stopped with ^S. TCOON continues only what TCOOFF stopped, so call
 * both. The write must not wait, because the terminal may still take nothing.
 */
static void give_up(int number)
{
	int flags;

	(void)number;
	if (drawn) {
		signal(SIGTTOU, SIG_IGN);	/* would stop a program in the background */
		tcflush(STDOUT_FILENO, TCOFLUSH);
		tcflow(STDOUT_FILENO, TCOOFF);
		tcflow(STDOUT_FILENO, TCOON);
		flags = fcntl(STDOUT_FILENO, F_GETFL);
		fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
		put(LEAVE);
		fcntl(STDOUT_FILENO, F_SETFL, flags);	/* other processes share them */
	}
	_exit(CTL_FAILED);
}

static void suspend(int signal)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction ours;
	int err = errno;
	sigset_t set;

	if (on_terminal)
		put(LEAVE);
	sigaction(signal, &usual, &ours);
	raise(signal);
	sigemptyset(&set);
	sigaddset(&set, signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);	/* the program stops here until SIGCONT */
	sigaction(signal, &ours, NULL);
	if (on_terminal)
		put(ENTER);
	errno = err;
}

/* SA_RESTART: a signal must not truncate what stdio writes */
static void handle(int signal, void (*handler)(int))
{
	signal_handle(signal, handler, SA_RESTART);
}

void screen_begin(bool draw)
{
	taken = true;
	on_terminal = draw && isatty(STDOUT_FILENO);
	signal(SIGALRM, give_up);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		handle(ends[i], stop);
	if (on_terminal) {
		drawn = true;
		handle(SIGTSTP, suspend);
		fputs(ENTER, stdout);
	}
}

void screen_end(void)
{
	if (!taken)
		return;
	taken = false;
	if (atomic_exchange(&on_terminal, false))
		fputs(LEAVE, stdout);
	fflush(stdout);
	drawn = false;
	alarm(0);
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
	sigset_t block, before;

	/* Block signals, so that none arrives between the check of @stopped and ppoll(). */
	sigemptyset(&block);
	for (size_t i = 0; taken && i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&block, ends[i]);
	sigprocmask(SIG_BLOCK, &block, &before);
	/*
	 * Repeat after signals that have another handler: those of capture.c, and suspend(). After
	 * the latter end a sleep, so that the next frame is drawn on the empty screen.
	 */
	while (!stopped && ppoll(&p, fd >= 0, seconds < 0 ? NULL : &ts, &before) < 0 &&
	       errno == EINTR && fd >= 0)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return !stopped;
}

bool screen_stopped(void)
{
	return stopped;
}
