// SPDX-License-Identifier: GPL-2.0
/*
 * Form log lines: see log_line.h.
 */
#include "log_line.h"

#include <stdio.h>
#include <time.h>

static const char * const log_prefix[] = {
	[LOG_ERR] = "error: ",
	[LOG_WARN] = "warning: ",
	[LOG_INFO] = "",
	[LOG_DEBUG] = "debug: ",
};

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

size_t log_line(const struct log_form *form, char line[LOG_LINE_BYTES], enum log_level level,
		const char *source, const char *text)
{
	size_t len = 0;

	if (form->time)
		len = log_time(line, LOG_LINE_BYTES);
	len += snprintf(line + len, LOG_LINE_BYTES - len, "ornicd: %s%s%s%s", log_prefix[level],
			source ? source : "", source ? ": " : "", text);
	if (len > LOG_LINE_BYTES - 1)
		len = LOG_LINE_BYTES - 1;
	line[len++] = '\n';
	return len;
}
