/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The form of a log line.
 */
#ifndef ORNICD_LOG_LINE_H
#define ORNICD_LOG_LINE_H

#include "log.h"

/** LOG_LINE_BYTES - most bytes of a line */
#define LOG_LINE_BYTES	512

/**
 * struct log_form - the form of all lines
 * @time:	begin with the local time
 */
struct log_form {
	bool time;
};

/*
 * log_line() - store a line with its line feed in @line
 * @source: name of its source, or NULL
 * @text: message without control characters
 * Return: its bytes.
 */
size_t log_line(const struct log_form *form, char line[LOG_LINE_BYTES], enum log_level level,
		const char *source, const char *text);

#endif /* ORNICD_LOG_LINE_H */
