/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UNIX sockets with a name in the file system.
 */
#ifndef ORNICD_UNIX_SOCKET_H
#define ORNICD_UNIX_SOCKET_H

#include <sys/types.h>
#include <sys/un.h>

/** UNIX_MODE - what the umask leaves of it is the usual */
#define UNIX_MODE	0777

/* unix_address() - Return: 0, or -ENAMETOOLONG after a log line. */
int unix_address(struct sockaddr_un *addr, const char *path);

/*
 * unix_bind() - a socket of @type at @addr, non-blocking; one of SOCK_STREAM listens
 *
 * A name that a dead process left is taken over, one in use is not. @mode is what others may,
 * less the umask.
 *
 * Return: the descriptor, or a negative errno after a log line. The file is the caller's to
 * remove.
 */
int unix_bind(const struct sockaddr_un *addr, int type, mode_t mode);

/*
 * unix_accept() - a connection to the listening socket @sock, non-blocking
 *
 * When the process has no descriptor left, a new client is disconnected: it would wait for nothing,
 * and the socket would stay readable. @who is for the log.
 *
 * Return: the descriptor, or -1.
 */
int unix_accept(int sock, const char *who);

#endif /* ORNICD_UNIX_SOCKET_H */
