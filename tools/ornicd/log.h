/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log lines on standard error, one per event, by level.
 *
 * A line that a guest, a client or a peer can cause repeatedly has a source: the device, port or
 * connection whose object has the account that pays for it (log_from()). So one source suppresses
 * its own lines only. Lines without a source belong to the start and the end of the daemon, or to a
 * request of the control socket, whose client pays for them (log_charge()).
 *
 * All functions run on the loop's thread. None of them waits for the reader of the log: a thread
 * writes the lines (log_writer.h).
 */
#ifndef ORNICD_LOG_H
#define ORNICD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum log_level {
	LOG_ERR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
};

enum log_format {
	LOG_TEXT,
	LOG_JSON,	/* one object per line */
};

/**
 * struct log_account - a bucket that each line fills, and that time drains
 * @drained:	time up to which it was drained, ns
 * @lines:	lines in the bucket
 */
struct log_account {
	uint64_t drained;
	unsigned int lines;
};

/**
 * struct log_source - origin of lines, and the account that pays for them
 * @name:	precedes the text of each line; must stay valid; NULL: no name
 * @parent:	also pays for each line, because such sources come and go; or NULL
 * @account:	lines of levels up to info
 * @debug:	lines of level debug
 * @suppressed:	lines that were not written, and not reported yet
 * @worst:	most important level of these
 * @since:	time of the first of these, ns
 * @link:	in a list, if @suppressed is not 0
 *
 * All members but @name and @parent begin with zeros. log_source_end() before it is freed.
 */
struct log_source {
	const char *name;
	struct log_source *parent;
	struct log_account account;
	struct log_account debug;
	unsigned long suppressed;
	enum log_level worst;
	uint64_t since;
	TAILQ_ENTRY(log_source) link;
};

/**
 * LOG_BURST - lines that a source may write at once: of level error, warning, info
 *
 * A less important line leaves room for more important ones.
 */
#define LOG_BURST { 12, 9, 6 }
/** LOG_PARENT - a parent takes so many times as many lines at once from all its sources */
#define LOG_PARENT 8
/** LOG_INTERVAL_NS - after so many ns a source may write another line */
#define LOG_INTERVAL_NS 1000000000ull

/**
 * LOG_DEBUG_BURST - the same for lines of level debug, which only a developer asks for: the start
 * of a virtual machine takes hundreds
 */
#define LOG_DEBUG_BURST 1000
#define LOG_DEBUG_INTERVAL_NS 1000000ull

/** LOG_REPORT_NS - a count of suppressed lines is written so many ns after the first one */
#define LOG_REPORT_NS 1000000000ull

/* log_setup() - write lines up to @level, in text with the time if @timestamps */
void log_setup(enum log_level level, bool timestamps);
/* log_set_format() - write lines in this format; JSON always has the time */
void log_set_format(enum log_format format);
/*
 * log_find_journal() - begin each line with its priority, as sd-daemon(3) describes, if standard
 * error is a stream to the journal
 */
void log_find_journal(void);

/*
 * log_keep() - store the text of the next error line in @buf, @size bytes, for the reply to a
 * request that fails; NULL ends this
 */
void log_keep(char *buf, size_t size);

/* log_charge() - let @payer pay for all lines, until the call with NULL */
void log_charge(struct log_source *payer);

/* log_enabled() - return true if lines of @level are written */
bool log_enabled(enum log_level level);

/*
 * log_write() - write a line regardless of the threshold, if its source can pay for it; @source
 * may be NULL
 */
void log_write(struct log_source *source, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * log_source_end() - report suppressed lines, or let the parent do so, and forget @source; it may
 * be used again
 */
void log_source_end(struct log_source *source);

/*
 * log_work() - report suppressed lines that are due
 * Return: ns until the next ones are due, -1 if there are none.
 */
int64_t log_work(void);

/** log_from() - write a line of @source; the name of the source precedes the text */
#define log_from(source, level, ...)					\
	do {								\
		if (log_enabled(level))					\
			log_write(source, level, __VA_ARGS__);		\
	} while (0)

#define log_err(...)	log_from(NULL, LOG_ERR, __VA_ARGS__)
#define log_warn(...)	log_from(NULL, LOG_WARN, __VA_ARGS__)
#define log_info(...)	log_from(NULL, LOG_INFO, __VA_ARGS__)
#define log_debug(...)	log_from(NULL, LOG_DEBUG, __VA_ARGS__)

#endif /* ORNICD_LOG_H */
