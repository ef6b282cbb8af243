// SPDX-License-Identifier: GPL-2.0
/*
 * Out-of-band connection between the two ends of a test.
 */
#include "oob.h"
#include "report.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OOB_PATIENCE	150	/* seconds; longer than any wait of the other end */

static void set_up(int fd)
{
	struct timeval patience = { .tv_sec = OOB_PATIENCE };
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int oob_listen(const char *port)
{
	struct sockaddr_in6 here = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(atoi(port)),
	};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) || listen(fd, 4))
		bail("cannot listen on TCP port %s: %s", port, strerror(errno));
	return fd;
}

bool oob_accept(struct oob *o, int listener)
{
	o->server = true;
	o->fd = accept(listener, NULL, NULL);
	if (o->fd < 0)
		return false;
	set_up(o->fd);
	return true;
}

void oob_connect(struct oob *o, const char *host, const char *port)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int err = getaddrinfo(host, port, &want, &found);

	if (err)
		bail("%s: %s", host, gai_strerror(err));
	o->server = false;
	o->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (o->fd < 0 || connect(o->fd, found->ai_addr, found->ai_addrlen))
		bail("no server at %s port %s: %s", host, port, strerror(errno));
	freeaddrinfo(found);
	set_up(o->fd);
}

void oob_close(struct oob *o)
{
	close(o->fd);
	o->fd = -1;
}

void oob_send(struct oob *o, const void *data, size_t len)
{
	while (len) {
		ssize_t n = send(o->fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			bail("the other end is gone: %s", strerror(errno));
		data = (const char *)data + n;
		len -= n;
	}
}

bool oob_recv(struct oob *o, void *data, size_t len)
{
	while (len) {
		ssize_t n = recv(o->fd, data, len, 0);

		if (n < 0 && errno == EAGAIN)
			bail("the other end said nothing for %d s", OOB_PATIENCE);
		if (n <= 0)
			return false;
		data = (char *)data + n;
		len -= n;
	}
	return true;
}

void oob_swap(struct oob *o, const void *mine, void *theirs, size_t len)
{
	/* One end sends first, because a long message would fill both socket buffers. */
	if (!o->server)
		oob_send(o, mine, len);
	if (!oob_recv(o, theirs, len))
		bail("the other end closed the connection in the middle of a test");
	if (o->server)
		oob_send(o, mine, len);
}

void oob_barrier(struct oob *o)
{
	char mine = 'b', theirs = 0;

	oob_swap(o, &mine, &theirs, 1);
	if (theirs != 'b')
		bail("the two ends are out of step");
}
