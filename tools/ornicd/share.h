/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits of the process that all devices share: descriptors, mappings, address space.
 *
 * Clients send descriptors. The kernel itself closes those of a message for which the process has no
 * number left, on the thread that receives it. That may block, and the message is useless. So each
 * device gets a share, and when few numbers are left, messages are looked at before they are received
 * (vfu/message.c).
 *
 * All functions run on the loop's thread.
 */
#ifndef ORNICD_SHARE_H
#define ORNICD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/** SHARE_MESSAGE - most descriptors of one message (SCM_MAX_FD of the kernel) */
#define SHARE_MESSAGE	253

/** SHARE_OWN - descriptors for anything but devices: ports, captures, clients of the control socket */
#define SHARE_OWN	128

/** SHARE_FULL - descriptors of a device that nothing restricts */
#define SHARE_FULL	256

/*
 * share_raise() - raise the soft limit of descriptors to the hard limit
 * Until this is called there is no limit.
 */
void share_raise(void);

/* share_join() - count a device, which may map @files memory files and @bytes of guest memory */
void share_join(unsigned int files, uint64_t bytes);
/* share_leave() - undo share_join() */
void share_leave(unsigned int files, uint64_t bytes);

/* share_check() - log which limits are too low for all devices, once, and what that costs */
void share_check(void);

/* share_keep() - return the number of interrupts for which a device may keep descriptors */
unsigned int share_keep(void);
/* share_close() - return how many descriptors may wait to be closed before a device receives more */
unsigned int share_close(void);

/* share_saw() - note the number of a new descriptor: the kernel always takes the lowest free one */
void share_saw(int fd);
/* share_scarce() - return true if the next message may have more descriptors than numbers are left */
bool share_scarce(void);

#endif /* ORNICD_SHARE_H */
