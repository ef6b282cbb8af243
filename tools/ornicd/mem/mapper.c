// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that handles a client's descriptors: see mapper.h.
 */
#define _GNU_SOURCE 1	/* pthread_setname_np(), pthread_cond_clockwait() */

#include "mapper.h"

#include "../share.h"
#include "../thread.h"
#include "../unix_socket.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES	(256u << 10)

STAILQ_HEAD(job_queue, mapper_job);

/**
 * struct closing - a descriptor that waits to be closed
 * @fd:		descriptor
 * @close:	closes it
 */
struct closing {
	int fd;
	void (*close)(int fd);
};

/**
 * struct mapper - see mapper.h
 * @event:	eventfd of mapper_fd()
 * @lock:	protects the members below
 * @wake:	something was added, or @refs became 0
 * @refs:	number of references
 * @ended:	mapper_end() was called
 * @todo:	requests, oldest first; the one that is being done is not among them
 * @done:	requests for mapper_reap()
 * @closing:	descriptors to close, as a stack
 * @nclosing:	number of descriptors in @closing
 * @busy:	the thread closes another one
 * @rested:	mapper_wait() waits for this mapper no longer
 */
struct mapper {
	int event;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	unsigned int refs;
	bool ended;
	struct job_queue todo;
	struct job_queue done;
	struct closing closing[MAPPER_CLOSING];
	unsigned int nclosing;
	bool busy;
	bool rested;
};

/* Ended mappers that have work. They outlive their devices, so this belongs to none. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t less;
	unsigned int mappers;
} ending = { .lock = PTHREAD_MUTEX_INITIALIZER, .less = PTHREAD_COND_INITIALIZER };

/* Do a request without the lock, but return with it. */
static void do_job(struct mapper *m, struct mapper_job *job)
{
	void (*done)(struct mapper_job *job) = job->done;
	void (*drop)(struct mapper_job *job) = job->drop;
	bool skip = done && m->ended;

	pthread_mutex_unlock(&m->lock);
	if (!skip)
		job->work(job);
	pthread_mutex_lock(&m->lock);
	if (!done)
		return;
	if (m->ended) {
		pthread_mutex_unlock(&m->lock);
		drop(job);
		pthread_mutex_lock(&m->lock);
		return;
	}
	STAILQ_INSERT_TAIL(&m->done, job, link);
	eventfd_write(m->event, 1);
}

/* Close a descriptor without the lock, but return with it. */
static void close_one(struct mapper *m)
{
	struct closing c = m->closing[--m->nclosing];

	m->busy = true;
	pthread_mutex_unlock(&m->lock);
	c.close(c.fd);
	pthread_mutex_lock(&m->lock);
	m->busy = false;
	if (!m->nclosing)
		eventfd_write(m->event, 1);
}

/* Tell mapper_wait() that an ended mapper has done its work; without the lock. */
static void tell_rest(void)
{
	pthread_mutex_lock(&ending.lock);
	ending.mappers--;
	pthread_cond_signal(&ending.less);
	pthread_mutex_unlock(&ending.lock);
}

/* An ended mapper has nothing to do, but somebody may still use it. */
static void rest(struct mapper *m)
{
	m->rested = true;
	pthread_mutex_unlock(&m->lock);
	tell_rest();
	pthread_mutex_lock(&m->lock);
}

static void mapper_free(struct mapper *m)
{
	close(m->event);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static void *mapper_thread(void *arg)
{
	struct mapper *m = arg;
	bool rested;

	pthread_mutex_lock(&m->lock);
	for (;;) {
		struct mapper_job *job = STAILQ_FIRST(&m->todo);

		if (job) {
			STAILQ_REMOVE_HEAD(&m->todo, link);
			do_job(m, job);
		} else if (m->nclosing) {
			close_one(m);
		} else if (!m->refs) {
			break;
		} else if (m->ended && !m->rested) {
			rest(m);
		} else {
			pthread_cond_wait(&m->wake, &m->lock);
		}
	}
	rested = m->rested;
	pthread_mutex_unlock(&m->lock);
	mapper_free(m);
	if (!rested)
		tell_rest();
	return NULL;
}

/* Start the thread. Return: 0 or a negative errno. */
static int mapper_start(struct mapper *m)
{
	pthread_t thread;
	int err = thread_start(&thread, STACK_BYTES, mapper_thread, m);

	if (err)
		return err;
	pthread_setname_np(thread, "ornicd-mapper");
	pthread_detach(thread);
	return 0;
}

int mapper_new(struct mapper **mapper)
{
	struct mapper *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->refs = 1;
	STAILQ_INIT(&m->todo);
	STAILQ_INIT(&m->done);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->wake, NULL);
	m->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = m->event < 0 ? -errno : mapper_start(m);
	if (!err) {
		*mapper = m;
		return 0;
	}
	if (m->event >= 0)
		close(m->event);
	free(m);
	return err;
}

struct mapper *mapper_get(struct mapper *m)
{
	if (!m)
		return NULL;
	pthread_mutex_lock(&m->lock);
	m->refs++;
	pthread_mutex_unlock(&m->lock);
	return m;
}

/* Release a reference, with the lock. */
static void put(struct mapper *m)
{
	if (!--m->refs)
		pthread_cond_signal(&m->wake);
}

void mapper_put(struct mapper *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	put(m);
	pthread_mutex_unlock(&m->lock);
}

void mapper_end(struct mapper *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&ending.lock);
	ending.mappers++;
	pthread_mutex_unlock(&ending.lock);
	pthread_mutex_lock(&m->lock);
	m->ended = true;
	STAILQ_CONCAT(&m->todo, &m->done);	/* to be dropped */
	pthread_cond_signal(&m->wake);
	put(m);
	pthread_mutex_unlock(&m->lock);
}

bool mapper_wait(unsigned int ms)
{
	struct timespec end;
	bool done;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000L;
	if (end.tv_nsec >= 1000000000L) {
		end.tv_nsec -= 1000000000L;
		end.tv_sec++;
	}
	pthread_mutex_lock(&ending.lock);
	while (ending.mappers &&
	       !pthread_cond_clockwait(&ending.less, &ending.lock, CLOCK_MONOTONIC, &end))
		;
	done = !ending.mappers;
	pthread_mutex_unlock(&ending.lock);
	return done;
}

void mapper_add(struct mapper *m, struct mapper_job *job)
{
	void (*done)(struct mapper_job *job) = job->done;

	if (!m) {
		job->work(job);
		if (done)
			done(job);
		return;
	}
	pthread_mutex_lock(&m->lock);
	STAILQ_INSERT_TAIL(&m->todo, job, link);
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
}

static void close_fd(int fd)
{
	close(fd);
}

/* Let the mapper close @fd; without one, do it at once. */
static void add_closing(struct mapper *m, int fd, void (*close)(int fd))
{
	if (!m) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&m->lock);
	assert(m->nclosing < MAPPER_CLOSING);
	m->closing[m->nclosing++] = (struct closing) { fd, close };
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
}

void mapper_close(struct mapper *m, int fd)
{
	add_closing(m, fd, close_fd);
}

void mapper_hang_up(struct mapper *m, int fd)
{
	shutdown(fd, SHUT_RDWR);
	add_closing(m, fd, unix_hang_up);
}

void mapper_close_listener(struct mapper *m, int fd)
{
	add_closing(m, fd, unix_close_listener);
}

unsigned int mapper_closing(struct mapper *m)
{
	unsigned int n;

	if (!m)
		return 0;
	pthread_mutex_lock(&m->lock);
	n = m->nclosing + m->busy;
	pthread_mutex_unlock(&m->lock);
	return n;
}

bool mapper_full(struct mapper *m)
{
	return m && mapper_closing(m) > share_close();
}

int mapper_fd(const struct mapper *m)
{
	return m->event;
}

void mapper_reap(struct mapper *m)
{
	struct mapper_job *job;
	struct job_queue done;
	eventfd_t n;

	eventfd_read(m->event, &n);
	STAILQ_INIT(&done);
	pthread_mutex_lock(&m->lock);
	STAILQ_CONCAT(&done, &m->done);
	pthread_mutex_unlock(&m->lock);
	while ((job = STAILQ_FIRST(&done))) {
		STAILQ_REMOVE_HEAD(&done, link);
		job->done(job);
	}
}
