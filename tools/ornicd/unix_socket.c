// SPDX-License-Identifier: GPL-2.0
/*
 * UNIX sockets with a name in the file system; take over names that dead processes left.
 */
#define _GNU_SOURCE 1	/* accept4() */

#include "unix_socket.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a reason why an address cannot be used */
#define WHY_BYTES	64

/* A spare descriptor: turn_away() closes it to accept a connection when no other is left. */
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

/*
 * Return true if the socket file was left by a dead process. Otherwise set @why to the reason. Linux
 * reports the pid for stream sockets only.
 */
static bool unix_stale(const struct sockaddr_un *addr, int type, char why[WHY_BYTES])
{
	struct ucred holder = { .pid = 0 };
	socklen_t len = sizeof(holder);
	bool stale = false;
	struct stat st;
	int fd;

	snprintf(why, WHY_BYTES, "address in use by another process; stop it");
	if (lstat(addr->sun_path, &st) < 0)
		return false;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, WHY_BYTES, "the file exists and is not a socket; remove it");
		return false;
	}
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		stale = errno == ECONNREFUSED;
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &len) && holder.pid > 0)
		snprintf(why, WHY_BYTES, "address in use by pid %d; stop it", (int)holder.pid);
	close(fd);
	return stale;
}

/* Bind @fd to the address. Return: 0 or a negative errno; -EADDRINUSE with a reason in @why. */
static int unix_take_name(int fd, const struct sockaddr_un *addr, int type, char why[WHY_BYTES])
{
	const struct sockaddr *name = (const struct sockaddr *)addr;

	if (!bind(fd, name, sizeof(*addr)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!unix_stale(addr, type, why))
		return -EADDRINUSE;
	if (unlink(addr->sun_path) < 0)
		return -errno;
	return bind(fd, name, sizeof(*addr)) < 0 ? -errno : 0;
}

/* Log the error, for -EADDRINUSE with @why, and close @fd. Return: @err. */
static int unix_failed(const struct sockaddr_un *addr, int fd, int err, const char *why)
{
	const char *advice = "";

	if (err == -EADDRINUSE)
		advice = " or choose another path";
	else if (err == -ENOENT)
		advice = "; create its directory first";
	log_err("cannot listen on %s: %s%s", addr->sun_path, err == -EADDRINUSE ? why :
		strerror(-err), advice);
	if (fd >= 0)
		close(fd);
	return err;
}

int unix_bind(const struct sockaddr_un *addr, int type, mode_t mode)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char why[WHY_BYTES];
	int err;

	if (fd < 0)
		return unix_failed(addr, fd, -errno, NULL);
	/*
	 * bind() creates the file with the socket's mode. Set it first, so that no other user can
	 * connect in between.
	 */
	if (fchmod(fd, mode) < 0)
		return unix_failed(addr, fd, -errno, NULL);
	err = unix_take_name(fd, addr, type, why);
	if (err)
		return unix_failed(addr, fd, err, why);
	if (type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0) {
		err = -errno;
		unlink(addr->sun_path);
		return unix_failed(addr, fd, err, NULL);
	}
	spare_keep();
	return fd;
}

void unix_hang_up(int fd)
{
	char unread[16384];

	/* from now on the peer's send() fails, so that no byte comes after the last one read here */
	shutdown(fd, SHUT_RDWR);
	while (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
	close(fd);
}

/* Accept a connection with the spare descriptor and close it. */
static void turn_away(int sock)
{
	int fd;

	if (spare < 0)
		return;
	close(spare);
	spare = -1;
	fd = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		unix_hang_up(fd);
	spare_keep();
}

int unix_accept(int sock, const char *who)
{
	int fd = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err = errno;

	if (fd >= 0) {
		spare_keep();	/* if turn_away() could not get it back */
		return fd;
	}
	if (err == EAGAIN || err == ECONNABORTED || err == EINTR)
		return -1;
	log_ratelimited(LOG_ERR, "%s: cannot accept a connection: %s", who, strerror(err));
	if (err == EMFILE || err == ENFILE)
		turn_away(sock);
	return -1;
}
