// SPDX-License-Identifier: GPL-2.0
/*
 * A mapper without a thread, instead of the daemon's: the loop does the requests itself when it
 * reaps, one each time, so that an input always has the same result.
 */
#include "mem/mapper.h"

#include "rig.h"

#include "unix_socket.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mapper {
	int fd;
	unsigned int refs;
	STAILQ_HEAD(, mapper_job) todo;
	int closing[MAPPER_CLOSING];
	unsigned int nclosing;
};

int mapper_new(struct mapper **mapper)
{
	struct mapper *m = calloc(1, sizeof(*m));

	CHECK(m);
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(m->fd >= 0);
	m->refs = 1;
	STAILQ_INIT(&m->todo);
	*mapper = m;
	return 0;
}

struct mapper *mapper_get(struct mapper *m)
{
	if (m)
		m->refs++;
	return m;
}

void mapper_put(struct mapper *m)
{
	if (!m || --m->refs)
		return;
	CHECK(STAILQ_EMPTY(&m->todo));
	close(m->fd);
	free(m);
}

static void close_all(struct mapper *m)
{
	while (m->nclosing)
		close(m->closing[--m->nclosing]);
}

void mapper_end(struct mapper *m)
{
	struct mapper_job *job;

	if (!m)
		return;
	while ((job = STAILQ_FIRST(&m->todo))) {
		STAILQ_REMOVE_HEAD(&m->todo, link);
		if (job->done)
			job->drop(job);
		else
			job->work(job);
	}
	close_all(m);
	mapper_put(m);
}

bool mapper_wait(unsigned int ms)
{
	(void)ms;
	return true;
}

void mapper_add(struct mapper *m, struct mapper_job *job)
{
	void (*done)(struct mapper_job *job) = job->done;

	if (m) {
		STAILQ_INSERT_TAIL(&m->todo, job, link);
		eventfd_write(m->fd, 1);
		return;
	}
	job->work(job);
	if (done)
		done(job);
}

void mapper_close(struct mapper *m, int fd)
{
	if (!m) {
		close(fd);
		return;
	}
	CHECK(m->nclosing < MAPPER_CLOSING);
	m->closing[m->nclosing++] = fd;
	eventfd_write(m->fd, 1);
}

void mapper_hang_up(struct mapper *m, int fd)
{
	(void)m;
	unix_hang_up(fd);
}

void mapper_close_listener(struct mapper *m, int fd)
{
	(void)m;
	unix_close_listener(fd);
}

unsigned int mapper_closing(struct mapper *m)
{
	return m ? m->nclosing : 0;
}

bool mapper_full(struct mapper *m)
{
	return m && m->nclosing > 16;
}

int mapper_fd(const struct mapper *m)
{
	return m->fd;
}

void mapper_reap(struct mapper *m)
{
	struct mapper_job *job = STAILQ_FIRST(&m->todo);
	void (*done)(struct mapper_job *job);
	eventfd_t n;

	eventfd_read(m->fd, &n);
	if (!job) {
		close_all(m);
		return;
	}
	eventfd_write(m->fd, 1);
	STAILQ_REMOVE_HEAD(&m->todo, link);
	done = job->done;
	job->work(job);
	if (done)
		done(job);
}
