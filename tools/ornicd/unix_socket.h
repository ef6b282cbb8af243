/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UNIX sockets with a name in the file system.
 */
#ifndef ORNICD_UNIX_SOCKET_H
#define ORNICD_UNIX_SOCKET_H

#include <sys/types.h>
#include <sys/un.h>

/** UNIX_MODE - default mode of a socket file: only the umask restricts it */
#define UNIX_MODE	0777

/* unix_address() - fill in an address. Return: 0, or -ENAMETOOLONG after a log line. */
int unix_address(struct sockaddr_un *addr, const char *path);

/*
 * unix_bind() - create a non-blocking socket at @addr; listen if @type is SOCK_STREAM
 *
 * Takes over a name that a dead process left, but not one in use. Processes that try this at the
 * same moment are not kept apart. The file gets @mode less the umask; the caller removes it.
 *
 * Return: the descriptor, or a negative errno after a log line.
 */
int unix_bind(const struct sockaddr_un *addr, int type, mode_t mode);

/*
 * unix_accept() - accept a connection on @sock as a non-blocking descriptor
 *
 * If the process has no descriptor left, disconnect the new client: it would wait in vain, and
 * @sock would stay readable, so that the loop would spin. @who names the socket in log lines.
 *
 * Return: the descriptor, or -1.
 */
int unix_accept(int sock, const char *who);

/*
 * unix_hang_up() - close a connected stream socket so that the peer reads an end of file
 *
 * After a close() with unread bytes the peer would get ECONNRESET. QEMU 11.1 aborts then, because
 * vfio_user_recv_hdr() sets its error twice. Bytes that were sent stay readable for the peer.
 */
void unix_hang_up(int fd);

#endif /* ORNICD_UNIX_SOCKET_H */
