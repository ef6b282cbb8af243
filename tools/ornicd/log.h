/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log lines on standard error, one per event, by level and with a rate limit
 * for whatever a guest or a peer can provoke at will.
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

void log_setup(enum log_level level, bool timestamps);
void log_keep(char *buf, size_t size);
bool log_enabled(enum log_level level);
bool log_limit_ok(struct log_limit *limit);
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

/** log_ratelimited() - log_at() for events an outsider can repeat without end */
#define log_ratelimited(level, ...)					\
	do {								\
		static struct log_limit log_limit_;			\
									\
		if (log_enabled(level) && log_limit_ok(&log_limit_))	\
			log_line(level, __VA_ARGS__);			\
	} while (0)

#endif /* ORNICD_LOG_H */
