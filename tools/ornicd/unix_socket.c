// SPDX-License-Identifier: GPL-2.0
/*
 * UNIX sockets with a name in the file system; take over names that dead processes left.
 */
#define _GNU_SOURCE 1	/* accept4(), memfd_create(), O_PATH */

#include "unix_socket.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

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

struct unix_access unix_access_or(const struct unix_access *a, const struct unix_access *defaults)
{
	return (struct unix_access) {
		.has_uid = a->has_uid || defaults->has_uid,
		.has_gid = a->has_gid || defaults->has_gid,
		.has_mode = a->has_mode || defaults->has_mode,
		.uid = a->has_uid ? a->uid : defaults->uid,
		.gid = a->has_gid ? a->gid : defaults->gid,
		.mode = a->has_mode ? a->mode : defaults->mode,
	};
}

/* Set the owner of an open file; @path is for the message. */
static int unix_set_owner(const char *path, int fd, uid_t uid)
{
	int err;

	if (!fchownat(fd, "", uid, -1, AT_EMPTY_PATH))
		return 0;
	err = -errno;
	log_err("cannot listen on %s: cannot give it to user %u: %s; only root may do that", path,
		uid, strerror(-err));
	return err;
}

static int unix_set_group(const char *path, int fd, gid_t gid)
{
	int err;

	if (!fchownat(fd, "", -1, gid, AT_EMPTY_PATH))
		return 0;
	err = -errno;
	log_err("cannot listen on %s: cannot give it to group %u: %s; only root and members of the group may do that",
		path, gid, strerror(-err));
	return err;
}

/* fchmod() rejects a descriptor of O_PATH. */
static int unix_set_mode(const char *path, int fd, mode_t mode)
{
	char self[32];
	int err;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!chmod(self, mode))
		return 0;
	err = -errno;
	log_err("cannot listen on %s: cannot set its mode to %04o: %s", path, mode, strerror(-err));
	return err;
}

/* The rules for giving away a file are the same for an anonymous one. */
int unix_access_check(const char *path, const struct unix_access *a)
{
	int fd, err = 0;

	if (!a->has_uid && !a->has_gid)
		return 0;
	fd = memfd_create("access", MFD_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		log_err("cannot listen on %s: %s", path, strerror(-err));
		return err;
	}
	if (a->has_gid)
		err = unix_set_group(path, fd, a->gid);
	if (!err && a->has_uid)
		err = unix_set_owner(path, fd, a->uid);
	close(fd);
	return err;
}

/*
 * Open the file that bind() created. If somebody has put another one in its place, this must not
 * be given away: reject it unless it is a socket that has no other name.
 */
static int unix_open_file(const char *path, struct stat *st)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd < 0 || fstat(fd, st) < 0) {
		err = -errno;
		log_err("cannot listen on %s: cannot open it: %s", path, strerror(-err));
	} else if (!S_ISSOCK(st->st_mode) || st->st_nlink != 1) {
		err = -EBUSY;
		log_err("cannot listen on %s: it was replaced; let nobody else write to its directory",
			path);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Set owner, group and mode of the socket file. The order matters: bits of the mode are for the
 * final group, and the owner is last, because another one's file cannot be changed any more.
 */
static int unix_set_access(const char *path, struct unix_access *a)
{
	struct unix_access is = { .has_uid = true, .has_gid = true };
	struct stat st;
	int fd = unix_open_file(path, &st), err = 0;

	if (fd < 0)
		return fd;
	if (a->has_gid && a->gid != st.st_gid)
		err = unix_set_group(path, fd, a->gid);
	if (!err && a->mode != (st.st_mode & 0777))
		err = unix_set_mode(path, fd, a->mode);
	if (!err && a->has_uid && a->uid != st.st_uid)
		err = unix_set_owner(path, fd, a->uid);
	close(fd);
	is.uid = st.st_uid;
	is.gid = st.st_gid;
	*a = unix_access_or(a, &is);
	return err;
}

/* Listen on a new socket, once its file has owner, group and mode. */
static int unix_publish(int fd, const char *path, int type, struct unix_access *a)
{
	int err = unix_set_access(path, a);

	if (err)
		return err;
	if (type != SOCK_STREAM || !listen(fd, SOMAXCONN))
		return 0;
	err = -errno;
	log_err("cannot listen on %s: %s", path, strerror(-err));
	return err;
}

int unix_bind(const struct sockaddr_un *addr, int type, struct unix_access *access)
{
	static const struct unix_access private = { .has_mode = true, .mode = UNIX_MODE };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct unix_access a = access ? unix_access_or(access, &private) : private;
	char why[WHY_BYTES];
	int err;

	if (fd < 0)
		return unix_failed(addr, fd, -errno, NULL);
	/*
	 * bind() creates the file with the socket's mode. Set it first, so that nobody can connect
	 * in between: only the bits for the process's user until the group is the right one.
	 */
	if (fchmod(fd, a.has_gid ? a.mode & 0700 : a.mode) < 0)
		return unix_failed(addr, fd, -errno, NULL);
	err = unix_take_name(fd, addr, type, why);
	if (err)
		return unix_failed(addr, fd, err, why);
	err = unix_publish(fd, addr->sun_path, type, &a);
	if (err) {
		if (err != -EBUSY)	/* the name belongs to somebody else */
			unlink(addr->sun_path);
		close(fd);
		return err;
	}
	if (access)
		*access = a;
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

void unix_stop_listening(int fd, const struct sockaddr_un *addr)
{
	/* from now on connect() fails, so that no connection comes after the last one closed */
	shutdown(fd, SHUT_RDWR);
	unlink(addr->sun_path);
}

void unix_close_listener(int fd)
{
	int waiting;

	while ((waiting = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		unix_hang_up(waiting);
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

int unix_accept(int sock, struct log_source *log)
{
	int fd = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err = errno;

	if (fd >= 0) {
		spare_keep();	/* if turn_away() could not get it back */
		return fd;
	}
	if (err == EAGAIN || err == ECONNABORTED || err == EINTR)
		return -1;
	log_from(log, LOG_ERR, "cannot accept a connection: %s", strerror(err));
	if (err == EMFILE || err == ENFILE)
		turn_away(sock);
	return -1;
}

void unix_no_descriptors(int fd)
{
	const int no = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}
