/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A PCI function offered on a UNIX socket: accepts one client at a time, and resets the function
 * when the client disconnects.
 */
#ifndef ORNICD_VFU_SERVER_H
#define ORNICD_VFU_SERVER_H

#include "func.h"

#include "../loop.h"
#include "../unix_socket.h"

#include <stdbool.h>
#include <sys/types.h>

struct backing_limits;
struct backing_pool;
struct vfu_server;

/**
 * vfu_server_open() - offer a function on a socket
 * @loop:	event loop
 * @func:	function, filled in as func.h says; outlives the server
 * @path:	path of the socket; a stale socket is replaced, one in use is not
 * @access:	who may connect to it; NULL: only this process's user
 * @server:	the server
 *
 * Return: 0, or a negative errno after a log line with the reason.
 */
int vfu_server_open(struct loop *loop, struct vfu_func *func, const char *path,
		    const struct unix_access *access, struct vfu_server **server);

/* vfu_server_limit() - limit the memory that a client may map; before the first one connects */
void vfu_server_limit(struct vfu_server *s, const struct backing_limits *limits);

/**
 * vfu_server_close() - end a client's session and remove the socket
 * @s:	server; NULL is ignored
 */
void vfu_server_close(struct vfu_server *s);

/* vfu_server_path() - return the path of the socket */
const char *vfu_server_path(const struct vfu_server *s);
/* vfu_server_access() - return owner, group and mode that the socket got */
const struct unix_access *vfu_server_access(const struct vfu_server *s);
/*
 * vfu_server_client() - return true if a client is connected, whatever it has said
 * @pid: its process; 0 if there is none, or if its number is unknown here
 */
bool vfu_server_client(const struct vfu_server *s, pid_t *pid);
/* vfu_server_memory() - return the memory files of the client, and the limits */
const struct backing_pool *vfu_server_memory(const struct vfu_server *s);
/* vfu_server_attached() - return true if a client is connected and agreed on a version */
bool vfu_server_attached(const struct vfu_server *s);

#endif /* ORNICD_VFU_SERVER_H */
