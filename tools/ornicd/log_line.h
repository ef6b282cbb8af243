/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The form of a log line.
 */
#ifndef ORNICD_LOG_LINE_H
#define ORNICD_LOG_LINE_H

#include "log.h"

/** LOG_TEXT_BYTES - most bytes of a line in text, and of the message of one in JSON */
#define LOG_TEXT_BYTES	512
/** LOG_LINE_BYTES - room for every line: in JSON a byte of source or message may take two */
#define LOG_LINE_BYTES	(4 * LOG_TEXT_BYTES + 128)

/**
 * struct log_form - the form of all lines
 * @format:	text or JSON
 * @time:	text begins with the time
 * @journal:	each line begins with its priority
 */
struct log_form {
	enum log_format format;
	bool time;
	bool journal;
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
