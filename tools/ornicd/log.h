/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log lines on standard error, one per event, by level, with a rate limit for events that a guest
 * or a peer can cause repeatedly.
 */
#ifndef ORNICD_LOG_H
#define ORNICD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LOG_ERR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
};

/**
 * struct log_limit - state of one rate-limited place in the code
 * @window:	start of the running second, in seconds of the monotonic clock
 * @lines:	lines written in that second
 * @missed:	lines suppressed since the last one written
 */
struct log_limit {
	uint64_t window;
	unsigned int lines;
	unsigned int missed;
};

/** LOG_LIMIT_LINES - lines per second and place that log_ratelimited() writes */
#define LOG_LIMIT_LINES 5

/* log_setup() - write lines up to @level, each with the local time if @timestamps */
void log_setup(enum log_level level, bool timestamps);

/*
 * log_keep() - store the text of the next error line in @buf, @size bytes, for the reply to a
 * request that fails; NULL ends this
 */
void log_keep(char *buf, size_t size);

/* log_enabled() - return true if lines of @level are written */
bool log_enabled(enum log_level level);

/* log_limit_ok() - count a line of this place. Return: true if it is within the rate limit. */
bool log_limit_ok(struct log_limit *limit);

/* log_line() - write one line regardless of the threshold; @level decides the prefix */
void log_line(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_at(level, ...)					\
	do {							\
		if (log_enabled(level))				\
			log_line(level, __VA_ARGS__);		\
	} while (0)

#define log_err(...)	log_at(LOG_ERR, __VA_ARGS__)
#define log_warn(...)	log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)	log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...)	log_at(LOG_DEBUG, __VA_ARGS__)

/** log_ratelimited() - log_at() with a rate limit, for events that a guest or peer can repeat */
#define log_ratelimited(level, ...)					\
	do {								\
		static struct log_limit log_limit_;			\
									\
		if (log_enabled(level) && log_limit_ok(&log_limit_))	\
			log_line(level, __VA_ARGS__);			\
	} while (0)

#endif /* ORNICD_LOG_H */
