/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tell the service manager that the daemon serves, stops, and is alive: sd_notify(3), which systemd
 * and others implement.
 *
 * The protocol is a datagram of text, documented for own implementations. libsystemd would bring
 * its own libraries into a daemon that gives up all it does not need.
 */
#ifndef ORNICD_NOTIFY_H
#define ORNICD_NOTIFY_H

#include "log.h"

#include <stdint.h>

/**
 * struct notify - connection to the service manager
 * @log:	source of log lines
 * @fd:		connected socket, -1: there is no manager
 * @watchdog_ns: a sign of life is due so often, ns; 0: never
 * @next:	time of the next one, ns of CLOCK_MONOTONIC
 */
struct notify {
	struct log_source log;
	int fd;
	uint64_t watchdog_ns;
	uint64_t next;
};

/*
 * notify_open() - connect to the manager that the environment names: NOTIFY_SOCKET, WATCHDOG_USEC
 * and WATCHDOG_PID
 *
 * The connection is made once, because a socket's path may be out of reach later. If it fails, a
 * line warns, and the daemon runs without a manager.
 */
void notify_open(struct notify *n);
/* notify_close() - close the connection */
void notify_close(struct notify *n);

/*
 * notify_ready() - tell that the daemon serves @devices devices; waits up to a second if the
 * manager is busy
 */
void notify_ready(struct notify *n, unsigned int devices);
/* notify_devices() - tell that the number of devices is another one, after notify_ready() */
void notify_devices(struct notify *n, unsigned int devices);
/* notify_stopping() - tell that the daemon begins to end */
void notify_stopping(struct notify *n);

/*
 * notify_work() - send a sign of life if it is due
 * Return: ns until the next one is due, -1: never.
 */
int64_t notify_work(struct notify *n);

#endif /* ORNICD_NOTIFY_H */
