// SPDX-License-Identifier: GPL-2.0
/*
 * Make files durable in a thread: see syncer.h.
 */
#include "syncer.h"

#include "../log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int syncer_init(struct syncer *s, int (*sync)(int fd))
{
	*s = (struct syncer) { .sync = sync };
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0)
		return -errno;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	TAILQ_INIT(&s->todo);
	TAILQ_INIT(&s->done);
	return 0;
}

static int sync_file(const struct syncer *s, int fd)
{
	int ret;

	do {
		ret = s->sync(fd);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static void *syncer_thread(void *arg)
{
	struct syncer *s = arg;
	struct durable *d;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		d = TAILQ_FIRST(&s->todo);
		if (!d) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		TAILQ_REMOVE(&s->todo, d, link);
		pthread_mutex_unlock(&s->lock);
		d->err = sync_file(s, d->fd);
		pthread_mutex_lock(&s->lock);
		TAILQ_INSERT_TAIL(&s->done, d, link);
		eventfd_write(s->fd, 1);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/*
 * Start the thread, unless it runs, with all signals blocked, because the main thread handles them.
 * It gets no SIGBUS, because it does not access mapped files.
 */
static int syncer_start(struct syncer *s)
{
	sigset_t all, old;
	int err;

	if (s->started)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&s->thread, NULL, syncer_thread, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->started = !err;
	return -err;
}

/* Queue a file that has waiters to the thread. */
static void hand_over(struct syncer *s, struct durable *d)
{
	struct sync_wait *w;

	while ((w = LIST_FIRST(&d->next))) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&d->now, w, link);
	}
	d->busy = true;
	durable_get(d);
	pthread_mutex_lock(&s->lock);
	TAILQ_INSERT_TAIL(&s->todo, d, link);
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void syncer_add(struct syncer *s, struct durable *d, struct sync_wait *w)
{
	int err = durable_lost(d) ? -EIO : syncer_start(s);

	if (err) {
		w->done(w, err);
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

/* Call the waiters of the sync of @d that has ended, and queue @d again if there are others. */
static void hand_back(struct syncer *s, struct durable *d)
{
	struct sync_wait *w;

	if (d->err) {
		log_ratelimited(LOG_ERR, "cannot make a client's memory file durable: %s",
				strerror(-d->err));
		durable_lose(d);
	}
	while ((w = LIST_FIRST(&d->now))) {
		sync_cancel(w);
		w->done(w, durable_lost(d) ? -EIO : 0);
	}
	d->busy = false;
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

		pthread_mutex_lock(&s->lock);
		d = TAILQ_FIRST(&s->done);
		if (d)
			TAILQ_REMOVE(&s->done, d, link);
		pthread_mutex_unlock(&s->lock);
		if (!d)
			return;
		hand_back(s, d);
	}
}

static void drop_all(struct durable_queue *q)
{
	struct durable *d;

	while ((d = TAILQ_FIRST(q))) {
		TAILQ_REMOVE(q, d, link);
		durable_put(d);
	}
}

void syncer_fini(struct syncer *s)
{
	if (s->started) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	drop_all(&s->todo);
	drop_all(&s->done);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
}
