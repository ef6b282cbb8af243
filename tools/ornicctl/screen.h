/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A terminal that is redrawn repeatedly and restored at the end.
 */
#ifndef ORNICCTL_SCREEN_H
#define ORNICCTL_SCREEN_H

#include <stdbool.h>

/*
 * screen_begin() - let SIGINT, SIGQUIT, SIGTERM and SIGHUP end screen_wait(), except those that are
 * ignored; with @draw switch to the alternate screen, if standard output is a terminal
 *
 * If the output stalls, the program ends some seconds after such a signal. SIGTSTP restores the
 * terminal until the program continues.
 */
void screen_begin(bool draw);
/* screen_end() - restore the terminal, if screen_begin() was called; its signal handlers stay */
void screen_end(void);

/* screen_rows() - return the lines of the screen; 0 if the output is not a screen */
int screen_rows(void);

/* screen_frame() - begin a frame, which replaces the previous one on the screen */
void screen_frame(void);
/* screen_flush() - write the frame. Return: false if standard output cannot be written. */
bool screen_flush(void);

/*
 * screen_wait() - wait until @fd (-1: none) is readable, or for @seconds (negative: for ever)
 * Return: false after a signal of screen_begin(); without screen_begin() such a signal ends the
 * program.
 */
bool screen_wait(int fd, double seconds);
/* screen_stopped() - return true after a signal of screen_begin() */
bool screen_stopped(void);

#endif /* ORNICCTL_SCREEN_H */
