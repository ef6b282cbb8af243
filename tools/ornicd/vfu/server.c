// SPDX-License-Identifier: GPL-2.0
/*
 * Listen, accept one client, serve it until it disconnects, reset the function, listen again.
 *
 * A function belongs to one virtual machine at a time. A second client is accepted and
 * closed at once: QEMU 11.1 waits 5 s for a reply if nobody accepts its connection.
 */
#define _GNU_SOURCE 1	/* struct ucred */

#include "server.h"

#include "command.h"
#include "endpoint.h"
#include "message.h"

#include "../log.h"
#include "../mem/mapper.h"
#include "../share.h"
#include "../unix_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct vfu_server {
	struct loop *loop;
	struct mapper *mapper;
	struct vfu_endpoint ep;
	struct vfu_conn *conn;
	bool full;		/* accept nobody until the mapper has closed descriptors */
	int sock;
	struct sockaddr_un addr;
	struct unix_access access;
};

static int server_request(void *arg, struct vfu_msg *m)
{
	struct vfu_server *s = arg;

	return vfu_command(&s->ep, m);
}

static void server_begin(void *arg)
{
	struct vfu_func *f = ((struct vfu_server *)arg)->ep.func;

	if (f->ops->begin)
		f->ops->begin(f);
}

static void server_end(void *arg)
{
	struct vfu_func *f = ((struct vfu_server *)arg)->ep.func;

	if (f->ops->end)
		f->ops->end(f);
}

static bool server_held(void *arg)
{
	struct vfu_func *f = ((struct vfu_server *)arg)->ep.func;

	return f->ops->held && f->ops->held(f);
}

static void server_closed(void *arg)
{
	struct vfu_server *s = arg;

	s->conn = NULL;
	endpoint_detach(&s->ep);
	log_from(&s->ep.func->log, LOG_INFO, "client disconnected");
}

static void server_answer(void *arg, int err)
{
	struct vfu_server *s = arg;

	vfu_conn_reply(s->conn, err);
}

static void server_mapped(void *arg, uint32_t events)
{
	struct vfu_server *s = arg;

	(void)events;
	mapper_reap(s->mapper);
	if (mapper_full(s->mapper))
		return;
	if (s->full)
		loop_mod(s->loop, s->sock, EPOLLIN);
	s->full = false;
	if (s->conn)
		vfu_conn_resume(s->conn);
}

static pid_t server_peer_pid(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? 0 : cred.pid;
}

static void server_accept(void *arg, uint32_t events)
{
	struct vfu_server *s = arg;
	const struct vfu_handler handler = {
		.request = server_request,
		.begin = server_begin,
		.held = server_held,
		.end = server_end,
		.closed = server_closed,
		.arg = s,
		.mapper = s->mapper,
	};
	struct log_source *log = &s->ep.func->log;
	int fd;

	(void)events;
	s->full = mapper_full(s->mapper);
	if (s->full) {
		loop_mod(s->loop, s->sock, 0);
		return;
	}
	fd = unix_accept(s->sock, log);
	if (fd < 0)
		return;
	share_saw(fd);
	/* a client that has left may have sent more than was read yet */
	if (s->conn && vfu_conn_hung_up(s->conn)) {
		vfu_conn_free(s->conn);
		server_closed(s);
	}
	if (s->conn) {
		log_from(log, LOG_WARN, "%s: another client is connected, rejected pid %d",
			 s->addr.sun_path, server_peer_pid(fd));
		mapper_hang_up(s->mapper, fd);
		return;
	}
	s->conn = vfu_conn_new(s->loop, fd, log, &handler);
	if (!s->conn) {
		log_from(log, LOG_ERR, "cannot serve a client: %s", strerror(errno));
		mapper_hang_up(s->mapper, fd);
		return;
	}
	s->ep.gpa->pool.pid = server_peer_pid(fd);
	log_from(log, LOG_INFO, "client connected, process %d", s->ep.gpa->pool.pid);
}

static int server_listen(struct vfu_server *s, const char *path)
{
	int err = unix_address(&s->addr, path);

	if (err)
		return err;
	s->sock = unix_bind(&s->addr, SOCK_STREAM, &s->access);
	if (s->sock < 0)
		return s->sock;
	err = loop_add(s->loop, s->sock, EPOLLIN, server_accept, s);
	if (err) {
		log_from(&s->ep.func->log, LOG_ERR, "cannot wait for a client on %s: %s", path,
			 strerror(-err));
		close(s->sock);
		unlink(path);
	}
	return err;
}

/* Start the mapper, and wait for it. Return: 0 or a negative errno. */
static int server_start_mapper(struct vfu_server *s)
{
	int err = mapper_new(&s->mapper);

	if (err)
		return err;
	err = loop_add(s->loop, mapper_fd(s->mapper), EPOLLIN, server_mapped, s);
	if (err)
		mapper_end(s->mapper);
	return err;
}

static void server_end_mapper(struct vfu_server *s)
{
	loop_del(s->loop, mapper_fd(s->mapper));
	mapper_end(s->mapper);
}

static int server_start_endpoint(struct vfu_server *s, struct vfu_func *func)
{
	int err = endpoint_init(&s->ep, func);

	if (err)
		return err;
	endpoint_use_mapper(&s->ep, s->mapper);
	s->ep.answer = server_answer;
	s->ep.arg = s;
	return 0;
}

int vfu_server_open(struct loop *loop, struct vfu_func *func, const char *path,
		    const struct unix_access *access, struct vfu_server **server)
{
	struct vfu_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		log_from(&func->log, LOG_ERR, "out of memory");
		return -ENOMEM;
	}
	s->loop = loop;
	if (access)
		s->access = *access;
	err = server_start_mapper(s);
	if (err) {
		log_from(&func->log, LOG_ERR, "cannot start a thread: %s", strerror(-err));
		goto free_server;
	}
	err = server_start_endpoint(s, func);
	if (err) {
		log_from(&func->log, LOG_ERR, "cannot make its PCI function: %s", strerror(-err));
		goto end_mapper;
	}
	err = server_listen(s, path);
	if (err)
		goto destroy_endpoint;
	*server = s;
	return 0;

destroy_endpoint:
	endpoint_destroy(&s->ep);
end_mapper:
	server_end_mapper(s);
free_server:
	free(s);
	return err;
}

void vfu_server_close(struct vfu_server *s)
{
	if (!s)
		return;
	loop_del(s->loop, s->sock);
	unix_stop_listening(s->sock, &s->addr);
	mapper_close_listener(s->mapper, s->sock);
	vfu_conn_free(s->conn);
	endpoint_detach(&s->ep);
	endpoint_destroy(&s->ep);
	server_end_mapper(s);
	free(s);
}

void vfu_server_limit(struct vfu_server *s, const struct backing_limits *limits)
{
	s->ep.gpa->pool.limits = *limits;
}

const char *vfu_server_path(const struct vfu_server *s)
{
	return s->addr.sun_path;
}

const struct unix_access *vfu_server_access(const struct vfu_server *s)
{
	return &s->access;
}

bool vfu_server_client(const struct vfu_server *s, pid_t *pid)
{
	bool connected = s->conn && !vfu_conn_hung_up(s->conn);

	*pid = connected ? s->ep.gpa->pool.pid : 0;
	return connected;
}

const struct backing_pool *vfu_server_memory(const struct vfu_server *s)
{
	return &s->ep.gpa->pool;
}

bool vfu_server_attached(const struct vfu_server *s)
{
	return s->ep.negotiated;
}
