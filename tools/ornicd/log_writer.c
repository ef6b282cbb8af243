// SPDX-License-Identifier: GPL-2.0
/*
 * Write log lines in a thread: see log_writer.h.
 *
 * The lines wait in a ring. The thread writes them in pieces of whole lines, each by a single
 * write() of at most PIPE_BUF bytes, so that lines of several processes in one pipe do not mix.
 *
 * Once a line is lost, all further ones are, until the ring is empty and the line is written that
 * reports their number. So that line is where they are missing.
 */
#include "log_writer.h"

#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC	1000000000ull

_Static_assert(LOG_LINE_BYTES < PIPE_BUF, "a line fits into a piece");

enum state {
	NO_THREAD,
	RUNNING,
	ENDING,		/* the thread ends when no line waits */
	ABANDONED,	/* the process ends without it */
};

static struct {
	pthread_mutex_t lock;		/* protects all members */
	pthread_cond_t wake;		/* for the thread: a line waits, or it shall end */
	pthread_cond_t written;		/* no line waits, or the thread has ended */
	pthread_t thread;
	enum state state;
	struct log_form form;
	uint64_t since;			/* start of the write() that runs, ns; 0: none does */
	unsigned long lost;		/* lines, not reported yet */
	int err;			/* why: errno, 0: no room */
	bool torn;			/* the last line in the log is incomplete */
	size_t head, used;		/* of the ring */
	char ring[LOG_WRITER_BYTES];
} w = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Wait for @cond until @ns of the monotonic clock. Return: false at that time. */
static bool wait_until(pthread_cond_t *cond, uint64_t ns)
{
	const struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	return pthread_cond_timedwait(cond, &w.lock, &ts) != ETIMEDOUT;
}

/* Append bytes to the ring, all or none. */
static bool ring_put(const char *bytes, size_t len)
{
	size_t at = (w.head + w.used) % sizeof(w.ring), end = sizeof(w.ring) - at;

	if (len > sizeof(w.ring) - w.used)
		return false;
	if (end > len)
		end = len;
	memcpy(w.ring + at, bytes, end);
	memcpy(w.ring, bytes + end, len - end);
	w.used += len;
	return true;
}

/* Copy whole lines out of the ring, at most @room bytes. Return: how many bytes. */
static size_t ring_take(char *piece, size_t room)
{
	size_t len = w.used < room ? w.used : room, end = sizeof(w.ring) - w.head;

	if (end > len)
		end = len;
	memcpy(piece, w.ring + w.head, end);
	memcpy(piece + end, w.ring, len - end);
	while (piece[len - 1] != '\n')
		len--;
	w.head = (w.head + len) % sizeof(w.ring);
	w.used -= len;
	return len;
}

static unsigned long count_lines(const char *piece, size_t len)
{
	unsigned long n = 0;

	for (size_t i = 0; i < len; i++)
		n += piece[i] == '\n';
	return n;
}

/* Make the line that reports @lost lines. Return: bytes. */
static size_t make_report(char *line, unsigned long lost)
{
	char text[LOG_TEXT_BYTES];

	snprintf(text, sizeof(text), "%lu lines lost, because %s%s", lost, w.err ?
		 "the log could not be written: " : "nobody read the log",
		 w.err ? strerror(w.err) : "");
	return log_line(&w.form, line, LOG_WARN, NULL, text);
}

/* Write @len bytes. Return: how many; fewer after an error, with errno set. */
static size_t write_piece(const char *piece, size_t len)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(STDERR_FILENO, piece + done, len - done);

		if (n > 0)
			done += n;
		else if (n < 0 && errno == EAGAIN)	/* another process made it non-blocking */
			poll(&ready, 1, -1);
		else if (!n || errno != EINTR)
			break;
	}
	return done;
}

/*
 * Write the next piece of the ring, or the report if the ring is empty, with the lock released. End
 * an incomplete line before. Return: false after an error.
 */
static bool write_next(void)
{
	char piece[PIPE_BUF] = "\n";
	size_t head = w.torn, len = head, done;
	unsigned long lost = 0;
	bool report = !w.used;
	int err;

	if (report) {
		lost = w.lost;
		w.lost = 0;
		len += make_report(piece + head, lost);
	} else {
		len += ring_take(piece + head, sizeof(piece) - head);
	}
	w.since = now();
	pthread_mutex_unlock(&w.lock);
	done = write_piece(piece, len);
	err = errno;
	pthread_mutex_lock(&w.lock);
	w.since = 0;
	if (done)
		w.torn = piece[done - 1] != '\n';
	if (done == len)
		return true;
	if (!report) {
		size_t from = done > head ? done : head;

		lost = count_lines(piece + from, len - from);
	}
	w.lost += lost;
	w.err = err;
	return false;
}

static void *writer_thread(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&w.lock);
	while (w.used || w.lost || w.state == RUNNING) {
		if (!w.used && !w.lost) {
			pthread_cond_broadcast(&w.written);
			pthread_cond_wait(&w.wake, &w.lock);
		} else if (!write_next()) {
			uint64_t again = now() + LOG_WRITER_RETRY_NS;

			pthread_cond_broadcast(&w.written);
			while (w.state == RUNNING && wait_until(&w.wake, again))
				;
			if (w.state != RUNNING)
				break;
		}
	}
	w.state = NO_THREAD;
	pthread_cond_broadcast(&w.written);
	pthread_mutex_unlock(&w.lock);
	return NULL;
}

int log_writer_start(void)
{
	pthread_condattr_t monotonic;
	int err;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w.wake, &monotonic);
	pthread_cond_init(&w.written, &monotonic);
	pthread_condattr_destroy(&monotonic);
	w.state = RUNNING;
	w.used = 0;
	w.lost = 0;
	w.torn = false;
	err = thread_start(&w.thread, 0, writer_thread, NULL);
	if (err)
		w.state = NO_THREAD;
	return err;
}

void log_writer_stop(void)
{
	uint64_t end;
	bool ended;

	pthread_mutex_lock(&w.lock);
	if (w.state != RUNNING) {
		pthread_mutex_unlock(&w.lock);
		return;
	}
	w.state = ENDING;
	pthread_cond_signal(&w.wake);
	end = (w.since ? w.since : now()) + LOG_WRITER_PATIENCE_NS;
	while (w.state == ENDING && wait_until(&w.written, end))
		;
	ended = w.state == NO_THREAD;
	if (!ended)
		w.state = ABANDONED;
	pthread_mutex_unlock(&w.lock);
	if (ended)
		pthread_join(w.thread, NULL);
	else
		pthread_detach(w.thread);
}

void log_writer_set_form(const struct log_form *form)
{
	pthread_mutex_lock(&w.lock);
	w.form = *form;
	pthread_mutex_unlock(&w.lock);
}

bool log_writer_put(const char *line, size_t len)
{
	bool taken;

	pthread_mutex_lock(&w.lock);
	taken = w.state != NO_THREAD;
	if (w.state == RUNNING) {
		bool was_lost = w.lost;

		if (was_lost || !ring_put(line, len))
			w.lost++;
		if (w.lost && !was_lost)
			w.err = 0;
		pthread_cond_signal(&w.wake);
	}
	pthread_mutex_unlock(&w.lock);
	return taken;
}

static bool settled(void)
{
	return w.state != RUNNING || w.lost || (!w.used && !w.since) ||
	       (w.since && now() - w.since > LOG_WRITER_PATIENCE_NS);
}

bool log_writer_settled(void)
{
	bool ret;

	pthread_mutex_lock(&w.lock);
	ret = settled();
	pthread_mutex_unlock(&w.lock);
	return ret;
}

void log_writer_flush(void)
{
	uint64_t end = now() + LOG_WRITER_PATIENCE_NS;

	pthread_mutex_lock(&w.lock);
	while (!settled() && wait_until(&w.written, end))
		;
	pthread_mutex_unlock(&w.lock);
}
