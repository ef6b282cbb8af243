/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signal eventfds of clients.
 *
 * write() waits while the counter is full, unless the file is non-blocking. The client shares the
 * file: it can make it blocking again, fill the counter, and stop the caller. The kernel's own
 * signals never wait. So the completion of an asynchronous read of nothing signals the eventfd.
 */
#ifndef ORNICD_VFU_EVENT_H
#define ORNICD_VFU_EVENT_H

/*
 * event_signal() - add 1 to the counter of an eventfd
 * Without asynchronous I/O in the kernel, or for this user, it uses write() after a warning.
 * Return: 0, also if the counter is full; or a negative errno: -EINVAL if @fd is no eventfd.
 */
int event_signal(int fd);

#endif /* ORNICD_VFU_EVENT_H */
