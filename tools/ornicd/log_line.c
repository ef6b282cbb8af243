// SPDX-License-Identifier: GPL-2.0
/*
 * Form log lines: see log_line.h.
 *
 * The escapes of JSON are made here, not by jansson, because it takes memory and the log must be
 * able to report that there is none.
 */
#include "log_line.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#define PROGRAM		"ornicd"
#define TIME_BYTES	40

static const char * const level_names[] = {
	[LOG_ERR] = "error",
	[LOG_WARN] = "warning",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

/* Priorities of syslog(3) */
static const char level_priority[] = {
	[LOG_ERR] = '3',
	[LOG_WARN] = '4',
	[LOG_INFO] = '6',
	[LOG_DEBUG] = '7',
};

/* Write the time as RFC 3339 has it, in UTC: it is the same on all hosts, and needs no file. */
static void put_time(char text[TIME_BYTES])
{
	struct timespec now;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, TIME_BYTES - len, ".%06ldZ", now.tv_nsec / 1000);
}

/* Return the bytes of the UTF-8 character at @s, 0 if there is none (RFC 3629, section 4). */
static size_t utf8_bytes(const unsigned char *s)
{
	unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Append @text as a JSON string, at most LOG_TEXT_BYTES of it. Return: its end in @to. */
static char *put_string(char *to, const char *text)
{
	const char *end = text + LOG_TEXT_BYTES;

	*to++ = '"';
	while (*text) {
		size_t n = utf8_bytes((const unsigned char *)text);

		if (text + (n ? n : 1) > end)
			break;
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		if (!n || iscntrl((unsigned char)*text)) {
			*to++ = '?';
			text++;
			continue;
		}
		while (n--)
			*to++ = *text++;
	}
	*to++ = '"';
	return to;
}

static size_t put_json(char *line, enum log_level level, const char *source, const char *text)
{
	char time[TIME_BYTES], *to = line;

	put_time(time);
	to += sprintf(to, "{\"time\":\"%s\",\"level\":\"%s\",\"source\":", time,
		      level_names[level]);
	to = put_string(to, source ? source : PROGRAM);
	to += sprintf(to, ",\"message\":");
	to = put_string(to, text);
	*to++ = '}';
	*to++ = '\n';
	return to - line;
}

/* The journal adds the time and the name of the program. */
static size_t put_text(const struct log_form *form, char *line, enum log_level level,
		       const char *source, const char *text)
{
	char time[TIME_BYTES] = "";
	bool named = level != LOG_INFO;
	size_t len;

	if (form->time)
		put_time(time);
	len = snprintf(line, LOG_TEXT_BYTES, "%s%s%s%s%s%s%s%s", time, form->time ? " " : "",
		       form->journal ? "" : PROGRAM ": ", named ? level_names[level] : "",
		       named ? ": " : "", source ? source : "", source ? ": " : "", text);
	if (len > LOG_TEXT_BYTES - 1)
		len = LOG_TEXT_BYTES - 1;
	line[len++] = '\n';
	return len;
}

size_t log_line(const struct log_form *form, char line[LOG_LINE_BYTES], enum log_level level,
		const char *source, const char *text)
{
	size_t len = 0;

	if (form->journal)
		len = sprintf(line, "<%c>", level_priority[level]);
	if (form->format == LOG_JSON)
		return len + put_json(line + len, level, source, text);
	return len + put_text(form, line + len, level, source, text);
}
