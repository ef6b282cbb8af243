// SPDX-License-Identifier: GPL-2.0
/*
 * Levels and sources of log lines: see log.h.
 *
 * Each line is built as a whole. The writer's thread writes it (log_writer.h), if there is one.
 */
#include "log.h"
#include "log_line.h"
#include "log_writer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum log_level threshold = LOG_INFO;
static struct log_form form;
static char *kept;
static size_t kept_size;
static struct log_source *payer;

/* Sources with suppressed lines, in the order of @since */
static TAILQ_HEAD(, log_source) waiting = TAILQ_HEAD_INITIALIZER(waiting);

void log_setup(enum log_level level, bool timestamps)
{
	threshold = level;
	form.time = timestamps;
	log_writer_set_form(&form);
}

void log_set_format(enum log_format format)
{
	form.format = format;
	log_writer_set_form(&form);
}

void log_find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	form.journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
	log_writer_set_form(&form);
}

void log_keep(char *buf, size_t size)
{
	kept = buf;
	kept_size = size;
	if (buf)
		*buf = '\0';
}

void log_charge(struct log_source *source)
{
	payer = source;
}

bool log_enabled(enum log_level level)
{
	return level <= threshold;
}

static uint64_t log_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void account_drain(struct log_account *a, uint64_t now, uint64_t interval)
{
	uint64_t n = (now - a->drained) / interval;

	a->lines = n < a->lines ? a->lines - n : 0;
	a->drained += n * interval;
}

static struct log_account *account_of(struct log_source *s, enum log_level level)
{
	return level == LOG_DEBUG ? &s->debug : &s->account;
}

/* Charge a line to @source and its parents. Return: false if one of them cannot pay. */
static bool pay(struct log_source *source, enum log_level level, uint64_t now)
{
	static const unsigned int burst[] = LOG_BURST;
	unsigned int most = level == LOG_DEBUG ? LOG_DEBUG_BURST : burst[level];

	for (struct log_source *s = source; s; s = s->parent) {
		struct log_account *a = account_of(s, level);

		account_drain(a, now, level == LOG_DEBUG ? LOG_DEBUG_INTERVAL_NS : LOG_INTERVAL_NS);
		if (a->lines >= (s == source ? most : LOG_PARENT * most))
			return false;
	}
	for (struct log_source *s = source; s; s = s->parent)
		account_of(s, level)->lines++;
	return true;
}

/* Count @n suppressed lines; @since is the time of the first one. */
static void suppress(struct log_source *s, unsigned long n, enum log_level worst, uint64_t since)
{
	if (!s->suppressed) {
		s->worst = worst;
		s->since = since;
		TAILQ_INSERT_TAIL(&waiting, s, link);
	}
	s->suppressed += n;
	if (worst < s->worst)
		s->worst = worst;
}

static void emit(const struct log_source *source, enum log_level level, const char *text)
{
	char line[LOG_LINE_BYTES];
	size_t len = log_line(&form, line, level, source ? source->name : NULL, text);

	/* There is no way to report that the log cannot be written. */
	if (!log_writer_put(line, len) && write(STDERR_FILENO, line, len) < 0)
		return;
}

/* Report the suppressed lines of @s, as important as the most important of them. */
static void report(struct log_source *s)
{
	char text[LOG_TEXT_BYTES];

	snprintf(text, sizeof(text), "%lu lines suppressed", s->suppressed);
	emit(s, s->worst, text);
	s->suppressed = 0;
	TAILQ_REMOVE(&waiting, s, link);
}

void log_source_end(struct log_source *s)
{
	if (!s->suppressed)
		return;
	if (!s->parent) {
		report(s);
		return;
	}
	suppress(s->parent, s->suppressed, s->worst, log_now());
	s->suppressed = 0;
	TAILQ_REMOVE(&waiting, s, link);
}

int64_t log_work(void)
{
	struct log_source *s = TAILQ_FIRST(&waiting);
	uint64_t now;

	if (!s)
		return -1;
	now = log_now();
	while (s && now - s->since >= LOG_REPORT_NS) {
		report(s);
		s = TAILQ_FIRST(&waiting);
	}
	return s ? (int64_t)(s->since + LOG_REPORT_NS - now) : -1;
}

/* Replace control characters: names that others chose must not start a line or move the cursor. */
static void clean(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

void log_write(struct log_source *source, enum log_level level, const char *fmt, ...)
{
	struct log_source *pays = payer ? payer : source;
	bool keep = level == LOG_ERR && kept && !*kept;
	char text[LOG_TEXT_BYTES];
	bool paid = true;
	va_list args;

	if (pays) {
		uint64_t now = log_now();

		paid = pay(pays, level, now);
		if (!paid)
			suppress(pays, 1, level, now);
	}
	if (!paid && !keep)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	clean(text);
	if (keep)
		snprintf(kept, kept_size, "%s%s%s", source && source->name ? source->name : "",
			 source && source->name ? ": " : "", text);
	if (paid)
		emit(source, level, text);
}
