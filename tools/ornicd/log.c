// SPDX-License-Identifier: GPL-2.0
/*
 * Log lines on standard error.
 *
 * A line is built first and written by a single write(), so that lines of several processes in one
 * terminal or file do not mix.
 */
#include "log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 512

static enum log_level log_threshold = LOG_INFO;
static bool log_timestamps;
static char *log_kept;
static size_t log_kept_size;

static const char * const log_prefix[] = {
	[LOG_ERR] = "error: ",
	[LOG_WARN] = "warning: ",
	[LOG_INFO] = "",
	[LOG_DEBUG] = "debug: ",
};

void log_setup(enum log_level level, bool timestamps)
{
	log_threshold = level;
	log_timestamps = timestamps;
}

void log_keep(char *buf, size_t size)
{
	log_kept = buf;
	log_kept_size = size;
	if (buf)
		*buf = '\0';
}

bool log_enabled(enum log_level level)
{
	return level <= log_threshold;
}

bool log_limit_ok(struct log_limit *limit)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec != limit->window) {
		limit->window = now.tv_sec;
		limit->lines = 0;
		if (limit->missed)
			log_line(LOG_WARN, "%u similar messages suppressed", limit->missed);
		limit->missed = 0;
	}
	if (limit->lines >= LOG_LIMIT_LINES) {
		limit->missed++;
		return false;
	}
	limit->lines++;
	return true;
}

/* Replace control characters: names that others chose must not start a line or move the cursor. */
static void log_clean(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]))
			text[i] = '?';
}

static size_t log_time(char *buf, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	len = strftime(buf, size, "%H:%M:%S", &tm);
	return len + snprintf(buf + len, size - len, ".%06ld ", now.tv_nsec / 1000);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[LOG_LINE_MAX];
	size_t len = 0, text;
	va_list args;

	if (log_timestamps)
		len = log_time(line, sizeof(line));
	len += snprintf(line + len, sizeof(line) - len, "ornicd: %s", log_prefix[level]);
	text = len;
	va_start(args, fmt);
	len += vsnprintf(line + len, sizeof(line) - len, fmt, args);
	va_end(args);
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	log_clean(line + text, len - text);
	if (level == LOG_ERR && log_kept && !*log_kept)
		snprintf(log_kept, log_kept_size, "%s", line + text);
	line[len++] = '\n';
	/* There is no way to report that the log cannot be written. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
