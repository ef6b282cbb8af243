// SPDX-License-Identifier: GPL-2.0
/*
 * Make files durable in threads: see syncer.h.
 */
#include "syncer.h"

#include "../log.h"
#include "../thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Not in struct syncer, because a thread may need it after syncer_fini(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int syncer_init(struct syncer *s, int (*sync)(int fd))
{
	*s = (struct syncer) { .sync = sync };
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0)
		return -errno;
	LIST_INIT(&s->waiting);
	TAILQ_INIT(&s->running);
	TAILQ_INIT(&s->done);
	return 0;
}

static int sync_file(int (*sync)(int fd), int fd)
{
	int ret;

	do {
		ret = sync(fd);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static void *syncer_thread(void *arg)
{
	int (*sync)(int fd) = NULL;
	struct durable *d = arg;
	int err;

	pthread_mutex_lock(&lock);
	if (d->syncer)
		sync = d->syncer->sync;
	pthread_mutex_unlock(&lock);
	if (!sync)
		return NULL;
	err = sync_file(sync, d->fd);
	pthread_mutex_lock(&lock);
	if (d->syncer) {
		d->err = err;
		TAILQ_REMOVE(&d->syncer->running, d, link);
		TAILQ_INSERT_TAIL(&d->syncer->done, d, link);
		eventfd_write(d->syncer->fd, 1);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Start a thread for @d. Return: 0 or a negative errno. */
static int syncer_start(struct durable *d)
{
	pthread_t thread;
	int err = thread_start(&thread, 0, syncer_thread, d);

	if (!err)
		pthread_detach(thread);
	return err;
}

static void call_waiters(struct sync_list *l, int err)
{
	struct sync_wait *w;

	while ((w = LIST_FIRST(l))) {
		sync_cancel(w);
		w->done(w, err);
	}
}

/* Begin the sync of @d for all its waiters, if they still wait; without a thread fail them. */
static void begin(struct syncer *s, struct durable *d)
{
	struct sync_wait *w;
	int err;

	if (LIST_EMPTY(&d->next)) {
		d->busy = false;
		durable_put(d);
		return;
	}
	while ((w = LIST_FIRST(&d->next))) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&d->now, w, link);
	}
	pthread_mutex_lock(&lock);
	d->syncer = s;
	TAILQ_INSERT_TAIL(&s->running, d, link);
	pthread_mutex_unlock(&lock);
	err = syncer_start(d);
	if (!err) {
		d->client->running++;
		return;
	}
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&s->running, d, link);
	pthread_mutex_unlock(&lock);
	log_from(d->client->log, LOG_ERR, "cannot start a thread to make a memory file durable: %s",
		 strerror(-err));
	d->busy = false;
	call_waiters(&d->now, err);
	durable_put(d);
}

/* Begin the sync of a file that has waiters, or queue the file if its client has no thread left. */
static void hand_over(struct syncer *s, struct durable *d)
{
	struct durable_client *c = d->client;

	d->busy = true;
	durable_get(d);
	if (c->running < SYNCER_THREADS) {
		begin(s, d);
		return;
	}
	if (TAILQ_EMPTY(&c->todo))
		LIST_INSERT_HEAD(&s->waiting, c, waiting);
	TAILQ_INSERT_TAIL(&c->todo, d, link);
}

static struct durable *take_todo(struct durable_client *c)
{
	struct durable *d = TAILQ_FIRST(&c->todo);

	TAILQ_REMOVE(&c->todo, d, link);
	if (TAILQ_EMPTY(&c->todo))
		LIST_REMOVE(c, waiting);
	return d;
}

void syncer_add(struct syncer *s, struct durable *d, struct sync_wait *w)
{
	if (durable_lost(d)) {
		w->done(w, -EIO);
		return;
	}
	w->waiting = true;
	LIST_INSERT_HEAD(&d->next, w, link);
	if (!d->busy)
		hand_over(s, d);
}

void sync_cancel(struct sync_wait *w)
{
	if (!w->waiting)
		return;
	LIST_REMOVE(w, link);
	w->waiting = false;
}

/*
 * Call the waiters of the sync of @d that has ended. Give its thread to the client's next file, and
 * queue @d again if it has other waiters.
 */
static void hand_back(struct syncer *s, struct durable *d)
{
	struct durable_client *c = d->client;

	if (d->err) {
		log_from(c->log, LOG_ERR, "cannot make a client's memory file durable: %s",
			 strerror(-d->err));
		durable_lose(d);
	}
	call_waiters(&d->now, durable_lost(d) ? -EIO : 0);
	d->busy = false;
	c->running--;
	while (c->running < SYNCER_THREADS && !TAILQ_EMPTY(&c->todo))
		begin(s, take_todo(c));
	if (!LIST_EMPTY(&d->next))
		hand_over(s, d);
	durable_put(d);
}

void syncer_reap(struct syncer *s)
{
	eventfd_t n;

	eventfd_read(s->fd, &n);
	for (;;) {
		struct durable *d;

		pthread_mutex_lock(&lock);
		d = TAILQ_FIRST(&s->done);
		if (d)
			TAILQ_REMOVE(&s->done, d, link);
		pthread_mutex_unlock(&lock);
		if (!d)
			return;
		hand_back(s, d);
	}
}

void syncer_fini(struct syncer *s)
{
	struct durable_client *c;
	struct durable *d;
	bool runs;

	while ((c = LIST_FIRST(&s->waiting)))
		durable_put(take_todo(c));
	pthread_mutex_lock(&lock);
	runs = !TAILQ_EMPTY(&s->running);
	TAILQ_FOREACH(d, &s->running, link)
		d->syncer = NULL;	/* keeps its reference, because the thread uses it */
	pthread_mutex_unlock(&lock);
	if (runs)
		log_warn("not waiting for the disk of a client's memory file");
	while ((d = TAILQ_FIRST(&s->done))) {
		TAILQ_REMOVE(&s->done, d, link);
		durable_put(d);
	}
	close(s->fd);
}
