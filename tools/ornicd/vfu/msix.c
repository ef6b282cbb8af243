// SPDX-License-Identifier: GPL-2.0
/*
 * MSI-X vectors.
 *
 * The VMM emulates table, masking and pending bits. A vector here is only an eventfd to
 * write to. Two cases remain: before the guest first unmasks a vector there is no
 * eventfd, and while bus mastering is off no interrupt may be sent. A vector that fires
 * then becomes pending, and is delivered once when the condition ends.
 */
#include "msix.h"

#include "event.h"

#include "../log.h"
#include "../mem/mapper.h"
#include "../share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int msix_init(struct msix *m, unsigned int n, struct log_source *log)
{
	memset(m, 0, sizeof(*m));
	m->vector = calloc(n ? n : 1, sizeof(*m->vector));
	if (!m->vector)
		return -ENOMEM;
	m->n = n;
	m->log = log;
	for (unsigned int i = 0; i < n; i++)
		m->vector[i].fd = -1;
	return 0;
}

void msix_destroy(struct msix *m)
{
	msix_release(m, 0, m->n);
	free(m->vector);
}

static void msix_deliver(struct msix *m, struct msix_vector *v)
{
	int err;

	v->pending = false;
	err = event_signal(v->fd);
	if (err)
		log_from(m->log, LOG_WARN, "interrupt lost: eventfd: %s", strerror(-err));
}

void msix_fire(struct msix *m, unsigned int vector)
{
	struct msix_vector *v;

	if (vector >= m->n)
		return;
	v = &m->vector[vector];
	if (m->enabled && v->fd >= 0)
		msix_deliver(m, v);
	else
		v->pending = true;
}

void msix_enable(struct msix *m, bool on)
{
	m->enabled = on;
	for (unsigned int i = 0; on && i < m->n; i++)
		if (m->vector[i].pending && m->vector[i].fd >= 0)
			msix_deliver(m, &m->vector[i]);
}

/* Return true if @fd is an eventfd. Without asynchronous I/O another file could block write(). */
static bool msix_is_eventfd(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(want)];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target));
	return len == sizeof(want) - 1 && !memcmp(target, want, len);
}

int msix_assign(struct msix *m, unsigned int vector, int fd)
{
	struct msix_vector *v = &m->vector[vector];
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !msix_is_eventfd(fd))
		return -EINVAL;
	if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -EINVAL;
	if (v->fd < 0 && m->nfds >= share_keep())
		return -EMFILE;
	if (v->fd >= 0)
		mapper_close(m->mapper, v->fd);
	else
		m->nfds++;
	v->fd = fd;
	if (v->pending && m->enabled)
		msix_deliver(m, v);
	return 0;
}

void msix_release(struct msix *m, unsigned int start, unsigned int count)
{
	for (unsigned int i = start; i < start + count; i++) {
		if (m->vector[i].fd < 0)
			continue;
		mapper_close(m->mapper, m->vector[i].fd);
		m->vector[i].fd = -1;
		m->nfds--;
	}
}

void msix_forget_pending(struct msix *m)
{
	for (unsigned int i = 0; i < m->n; i++)
		m->vector[i].pending = false;
}
