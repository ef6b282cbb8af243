/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A terminal to be written over again and again, and left as it was found.
 */
#ifndef ORNICCTL_SCREEN_H
#define ORNICCTL_SCREEN_H

#include <stdbool.h>

/*
 * screen_begin() - SIGINT, SIGTERM and SIGHUP end screen_wait() from now on; with @draw the
 * terminal is taken, if standard output is one, else what is printed is left as it is
 * Return: 0, or -1 after an error line.
 */
int screen_begin(bool draw);
/* screen_end() - give it back, if it was taken */
void screen_end(void);

/* screen_rows() - lines there is room for; 0: as many as one likes */
int screen_rows(void);

/* screen_frame() - what is printed until screen_flush() takes the place of what was there */
void screen_frame(void);
/* screen_flush() - write the screen out. Return: false if the reader of the output is gone. */
bool screen_flush(void);

/*
 * screen_wait() - wait until @fd can be read, -1 for none, or @seconds are over, negative for ever
 * Return: false if the user wants to stop; without screen_begin() that ends the program.
 */
bool screen_wait(int fd, double seconds);
/* screen_stopped() - it was so */
bool screen_stopped(void);

#endif /* ORNICCTL_SCREEN_H */
