// SPDX-License-Identifier: GPL-2.0
/*
 * Tell the service manager about the daemon: see notify.h.
 */
#include "notify.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Longest wait for a busy manager */
#define PATIENCE_MS	1000

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Fill in an address: a path, or with a leading @ an abstract name. Return: bytes, 0: neither. */
static socklen_t address(struct sockaddr_un *addr, const char *name)
{
	size_t len = strlen(name);

	*addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(addr->sun_path))
		return 0;
	memcpy(addr->sun_path, name, len);
	if (name[0] == '@')
		addr->sun_path[0] = '\0';
	return offsetof(struct sockaddr_un, sun_path) + len;
}

/* Return: a connected socket or a negative errno. */
static int dial(const char *name)
{
	struct sockaddr_un addr;
	socklen_t len = address(&addr, name);
	int fd, err;

	if (!len)
		return -EINVAL;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&addr, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Return how often the manager expects a sign of life, ns; 0: never, or not from this process. */
static uint64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long n;
	char *end;

	if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	errno = 0;
	n = strtoull(usec, &end, 10);
	if (errno || *end || usec[0] < '0' || usec[0] > '9' || n > UINT64_MAX / 1000)
		return 0;
	return n * 1000;
}

void notify_open(struct notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET");

	*n = (struct notify) { .fd = -1, .log.name = "service manager" };
	if (!name)
		return;
	n->fd = dial(name);
	if (n->fd >= 0)
		n->watchdog_ns = watchdog_ns();
	else
		log_from(&n->log, LOG_WARN, "cannot connect to %s: %s", name, strerror(-n->fd));
}

void notify_close(struct notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
	log_source_end(&n->log);
}

/* Send @text; wait @ms if the manager has too many datagrams to read. */
static void tell(struct notify *n, const char *text, int ms)
{
	struct pollfd room = { .fd = n->fd, .events = POLLOUT };
	size_t len = strlen(text);
	ssize_t ret;

	if (n->fd < 0)
		return;
	ret = send(n->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (ret < 0 && errno == EAGAIN && poll(&room, 1, ms) > 0)
		ret = send(n->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (ret < 0)
		log_from(&n->log, LOG_WARN, "cannot send %.*s: %s", (int)strcspn(text, "\n"), text,
			 strerror(errno));
}

static void tell_devices(struct notify *n, const char *ready, unsigned int devices, int ms)
{
	char text[64];

	snprintf(text, sizeof(text), "%sSTATUS=Serving %u device%s", ready, devices,
		 devices == 1 ? "" : "s");
	tell(n, text, ms);
}

void notify_devices(struct notify *n, unsigned int devices)
{
	tell_devices(n, "", devices, 0);
}

void notify_ready(struct notify *n, unsigned int devices)
{
	tell_devices(n, "READY=1\n", devices, PATIENCE_MS);
	n->next = now() + n->watchdog_ns / 2;
}

void notify_stopping(struct notify *n)
{
	tell(n, "STOPPING=1\nSTATUS=Stopping", 0);
}

int64_t notify_work(struct notify *n)
{
	uint64_t time;

	if (!n->watchdog_ns)
		return -1;
	time = now();
	if (time >= n->next) {
		tell(n, "WATCHDOG=1", 0);
		n->next = time + n->watchdog_ns / 2;
	}
	return n->next - time;
}
