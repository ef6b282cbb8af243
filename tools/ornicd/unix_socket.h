/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UNIX sockets with a name in the file system.
 */
#ifndef ORNICD_UNIX_SOCKET_H
#define ORNICD_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct log_source;

/** UNIX_MODE - permission bits of a socket file if the user did not choose others */
#define UNIX_MODE	0600

/**
 * struct unix_access - who may connect to a socket: owner, group and mode of its file
 * @has_uid:	an owner was chosen; if not, it is the user of the process
 * @has_gid:	a group was chosen; if not, it is the one that files in the directory get
 * @has_mode:	permission bits were chosen; if not, they are UNIX_MODE
 * @uid:	owner
 * @gid:	group
 * @mode:	permission bits, of which the one to write lets a client connect
 */
struct unix_access {
	bool has_uid;
	bool has_gid;
	bool has_mode;
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/* unix_access_or() - return @a, and what it leaves open as in @defaults */
struct unix_access unix_access_or(const struct unix_access *a, const struct unix_access *defaults);

/*
 * unix_access_check() - check that this process may give a file the owner and group of @a; @path is
 * for the message
 * Return: 0, or a negative errno after an error line.
 */
int unix_access_check(const char *path, const struct unix_access *a);

/* unix_address() - fill in an address. Return: 0, or -ENAMETOOLONG after a log line. */
int unix_address(struct sockaddr_un *addr, const char *path);

/*
 * unix_bind() - create a non-blocking socket at @addr; listen if @type is SOCK_STREAM
 *
 * Takes over a name that a dead process left, but not one in use. Processes that try this at the
 * same moment are not kept apart. The caller removes the file.
 *
 * @access is what the file gets, regardless of the umask, and is updated to what it has; NULL
 * leaves all open. At no moment may a user connect whom @access keeps out, except the process's. If
 * others may write to the directory, they can replace the socket, but cannot make this function
 * change the owner or mode of a file that is no socket.
 *
 * Return: the descriptor, or a negative errno after a log line. Then there is no file.
 */
int unix_bind(const struct sockaddr_un *addr, int type, struct unix_access *access);

/*
 * unix_accept() - accept a connection on @sock as a non-blocking descriptor
 *
 * If the process has no descriptor left, disconnect the new client: it would wait in vain, and
 * @sock would stay readable, so that the loop would spin. @log is the source of log lines.
 *
 * Return: the descriptor, or -1.
 */
int unix_accept(int sock, struct log_source *log);

/*
 * unix_hang_up() - close a connected stream socket so that the peer reads an end of file
 *
 * After a close() with unread bytes the peer would get ECONNRESET. QEMU 11.1 aborts then, because
 * vfio_user_recv_hdr() sets its error twice. Bytes that were sent stay readable for the peer.
 */
void unix_hang_up(int fd);

/*
 * unix_stop_listening() - let no more connections come to the socket @fd, and remove its file at @addr
 */
void unix_stop_listening(int fd, const struct sockaddr_un *addr);

/*
 * unix_close_listener() - close @fd after unix_stop_listening()
 * Connections that wait to be accepted end as by unix_hang_up(): close() alone would reset them.
 */
void unix_close_listener(int fd);

/*
 * unix_no_descriptors() - reject descriptors, also on connections that @fd accepts from now on
 *
 * The kernel closes those that nobody receives, on the thread that reads. That may block. Linux
 * before 6.16 cannot reject them.
 */
void unix_no_descriptors(int fd);

#endif /* ORNICD_UNIX_SOCKET_H */
