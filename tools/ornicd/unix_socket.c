// SPDX-License-Identifier: GPL-2.0
/*
 * UNIX sockets with a name, and names left behind.
 */
#define _GNU_SOURCE 1	/* accept4() */

#include "unix_socket.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTEN_BACKLOG	8

/* A spare descriptor: when there is no other, it is closed to accept and close a connection. */
static int spare = -1;

static void spare_keep(void)
{
	if (spare < 0)
		spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int unix_address(struct sockaddr_un *addr, const char *path)
{
	*addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(addr->sun_path)) {
		log_err("socket path %.40s... is longer than %zu characters", path,
			sizeof(addr->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(addr->sun_path, path);
	return 0;
}

/* Is the socket file left over from a process that is gone? */
static bool unix_stale(const struct sockaddr_un *addr, int type)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(addr->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int unix_take_name(int fd, const struct sockaddr_un *addr, int type)
{
	const struct sockaddr *name = (const struct sockaddr *)addr;

	if (!bind(fd, name, sizeof(*addr)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!unix_stale(addr, type))
		return -EADDRINUSE;
	if (unlink(addr->sun_path) < 0)
		return -errno;
	return bind(fd, name, sizeof(*addr)) < 0 ? -errno : 0;
}

static int unix_failed(const struct sockaddr_un *addr, int fd, int err)
{
	log_err("cannot listen on %s: %s%s", addr->sun_path, err == -EADDRINUSE ?
		"in use by another process, or no socket; choose another path" : strerror(-err),
		err == -ENOENT ? "; create its directory first" : "");
	if (fd >= 0)
		close(fd);
	return err;
}

int unix_bind(const struct sockaddr_un *addr, int type, mode_t mode)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return unix_failed(addr, fd, -errno);
	/* the name gets what the socket had before, so there is no moment when others may connect */
	if (fchmod(fd, mode) < 0)
		return unix_failed(addr, fd, -errno);
	err = unix_take_name(fd, addr, type);
	if (err)
		return unix_failed(addr, fd, err);
	if (type == SOCK_STREAM && listen(fd, LISTEN_BACKLOG) < 0) {
		err = -errno;
		unlink(addr->sun_path);
		return unix_failed(addr, fd, err);
	}
	spare_keep();
	return fd;
}

static void turn_away(int sock)
{
	int fd;

	if (spare < 0)
		return;
	close(spare);
	spare = -1;
	fd = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	spare_keep();
}

int unix_accept(int sock, const char *who)
{
	int fd = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err = errno;

	if (fd >= 0 || err == EAGAIN || err == ECONNABORTED || err == EINTR)
		return fd;
	log_ratelimited(LOG_ERR, "%s: accept: %s", who, strerror(err));
	if (err == EMFILE || err == ENFILE)
		turn_away(sock);
	return -1;
}
