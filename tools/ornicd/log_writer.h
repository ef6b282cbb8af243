/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Write log lines in a thread. write() blocks while nobody reads the pipe, the terminal is stopped
 * or the disk does not answer, and the daemon must serve its devices meanwhile. Standard error
 * cannot be made non-blocking, because other processes share it, and poll() promises nothing about
 * files and about pipes with several writers.
 *
 * So a line is written a little later. A reader of the log who was told of an event, for example by
 * a reply of the control socket, expects its line there: log_writer_settled() says when to tell.
 */
#ifndef ORNICD_LOG_WRITER_H
#define ORNICD_LOG_WRITER_H

#include "log_line.h"

/** LOG_WRITER_BYTES - room for waiting lines */
#define LOG_WRITER_BYTES	65536

/**
 * LOG_WRITER_PATIENCE_NS - longest wait for the log. A write() that takes longer waits for a reader
 * that may never come.
 */
#define LOG_WRITER_PATIENCE_NS	1000000000ull

/**
 * LOG_WRITER_RETRY_NS - time after which a failed write is tried again, because the disk may have
 * room again
 */
#define LOG_WRITER_RETRY_NS	1000000000ull

/*
 * log_writer_start() - write lines in a thread from now on
 *
 * The thread blocks all signals. Return: 0 or a negative errno; then lines are written directly.
 */
int log_writer_start(void);

/*
 * log_writer_stop() - write the waiting lines and end the thread
 *
 * Waits LOG_WRITER_PATIENCE_NS at most, and not for a reader that has kept a write() waiting for
 * as long before. Then the waiting lines and all later ones are lost.
 */
void log_writer_stop(void);

/* log_writer_set_form() - report lost lines in this form */
void log_writer_set_form(const struct log_form *form);

/*
 * log_writer_put() - take over a line of @len bytes
 *
 * Never waits for the reader. If there is no room, or the log could not be written before, the line
 * is lost. A line in its place reports the number of lost lines when the log can be written again.
 *
 * Context: any thread. Return: false if there is no thread: the caller has to write the line.
 */
bool log_writer_put(const char *line, size_t len);

/*
 * log_writer_settled() - return true if no line waits, or if there is no point in waiting for them:
 * nobody reads the log, or it cannot be written
 */
bool log_writer_settled(void);

/* log_writer_flush() - wait until that is true, LOG_WRITER_PATIENCE_NS at most */
void log_writer_flush(void);

#endif /* ORNICD_LOG_WRITER_H */
