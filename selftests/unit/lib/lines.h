/* SPDX-License-Identifier: GPL-2.0 */
/* Collect the lines of the log, which go to standard error. */
#ifndef UNIT_LIB_LINES_H
#define UNIT_LIB_LINES_H

/* lines_begin() - log from level info on, into a file instead of standard error */
void lines_begin(void);

/* lines_end() - log to standard error again; the lines so far must be @want */
void lines_end(const char *want);

/* lines_drop() - end what lines_begin() began, if a failed test did not */
void lines_drop(void);

#endif /* UNIT_LIB_LINES_H */
