// SPDX-License-Identifier: GPL-2.0
#include "pass.h"
#include "report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

void pass_fd(int s, int fd, const void *with, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { (void *)with, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(s, &msg, 0) != (ssize_t)len)
		bail("cannot send a file descriptor: %s", strerror(errno));
}

int take_fd(int s, void *with, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { with, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(s, &msg, 0) == (ssize_t)len && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}
