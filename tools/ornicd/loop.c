// SPDX-License-Identifier: GPL-2.0
/*
 * Event loop with epoll and nanosecond timeouts.
 *
 * epoll returns a pointer to the watch. A callback may remove any watch while the same batch of
 * events has a pointer to it. So a removed watch is only marked dead, and is freed after the batch.
 */
#include "loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOP_BATCH	64
#define NSEC_PER_SEC	1000000000LL

struct watch {
	bool dead;
	loop_cb cb;
	void *arg;
	struct watch *next_dead;
};

struct loop {
	int epfd;
	bool stop;
	struct watch **watch;		/* indexed by file descriptor */
	size_t nwatch;
	struct watch *dead;
	TAILQ_HEAD(, loop_task) tasks;	/* oldest first */
	uint64_t iteration;
	int64_t looked;			/* end of the last check for events, ns */
	int64_t looked_before;		/* and of the one before */
	loop_work work;
	void *work_arg;
};

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		free(l);
		return NULL;
	}
	TAILQ_INIT(&l->tasks);
	return l;
}

static void loop_bury(struct loop *l)
{
	struct watch *w;

	while ((w = l->dead)) {
		l->dead = w->next_dead;
		free(w);
	}
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (size_t fd = 0; fd < l->nwatch; fd++)
		free(l->watch[fd]);
	loop_bury(l);
	close(l->epfd);
	free(l->watch);
	free(l);
}

static struct watch *loop_find(struct loop *l, int fd)
{
	return fd >= 0 && (size_t)fd < l->nwatch ? l->watch[fd] : NULL;
}

static int loop_grow(struct loop *l, int fd)
{
	size_t n = l->nwatch ? l->nwatch : 64;
	struct watch **watch;

	while (n <= (size_t)fd)
		n *= 2;
	if (n == l->nwatch)
		return 0;
	watch = realloc(l->watch, n * sizeof(struct watch *));
	if (!watch)
		return -ENOMEM;
	memset(watch + l->nwatch, 0, (n - l->nwatch) * sizeof(struct watch *));
	l->watch = watch;
	l->nwatch = n;
	return 0;
}

int loop_add(struct loop *l, int fd, uint32_t events, loop_cb cb, void *arg)
{
	struct epoll_event ev = { .events = events };
	struct watch *w;
	int err;

	if (fd < 0)
		return -EBADF;
	if (loop_find(l, fd))
		return -EEXIST;
	err = loop_grow(l, fd);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->cb = cb;
	w->arg = arg;
	ev.data.ptr = w;
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		err = -errno;
		free(w);
		return err;
	}
	l->watch[fd] = w;
	return 0;
}

int loop_mod(struct loop *l, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = loop_find(l, fd) };

	if (!ev.data.ptr)
		return -ENOENT;
	return epoll_ctl(l->epfd, EPOLL_CTL_MOD, fd, &ev) < 0 ? -errno : 0;
}

void loop_del(struct loop *l, int fd)
{
	struct watch *w = loop_find(l, fd);

	if (!w)
		return;
	epoll_ctl(l->epfd, EPOLL_CTL_DEL, fd, NULL);
	l->watch[fd] = NULL;
	w->dead = true;
	w->next_dead = l->dead;
	l->dead = w;
}

void loop_defer(struct loop *l, struct loop_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	t->at = l->iteration;
	TAILQ_INSERT_TAIL(&l->tasks, t, link);
}

void loop_cancel(struct loop *l, struct loop_task *t)
{
	if (t->queued)
		TAILQ_REMOVE(&l->tasks, t, link);
	t->queued = false;
}

/* Call the tasks that were deferred before this iteration. */
static void loop_tasks(struct loop *l)
{
	struct loop_task *t;

	while ((t = TAILQ_FIRST(&l->tasks)) && t->at != l->iteration) {
		loop_cancel(l, t);
		t->run(t->arg);
	}
}

void loop_set_work(struct loop *l, loop_work work, void *arg)
{
	l->work = work;
	l->work_arg = arg;
}

int64_t loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int64_t loop_turns(struct loop *l)
{
	int64_t end, wait;

	if (!l->work)
		return LOOP_FOREVER;
	end = loop_now() + LOOP_SPIN_NS;
	do {
		wait = l->work(l->work_arg);
	} while (!wait && !l->stop && loop_now() < end);
	return wait;
}

static int loop_events(struct loop *l, int64_t wait)
{
	struct timespec ts = { wait / NSEC_PER_SEC, wait % NSEC_PER_SEC };
	struct epoll_event ev[LOOP_BATCH];
	int n;

	n = epoll_pwait2(l->epfd, ev, LOOP_BATCH, &ts, NULL);
	if (n < 0)		/* EINTR also at the end of a SIGSTOP: no look at the events */
		return errno == EINTR ? 0 : -errno;
	l->looked_before = l->looked;
	l->looked = loop_now();
	l->iteration++;
	for (int i = 0; i < n; i++) {
		struct watch *w = ev[i].data.ptr;

		if (!w->dead)
			w->cb(w->arg, ev[i].events);
	}
	loop_tasks(l);
	loop_bury(l);
	return 0;
}

int loop_run(struct loop *l)
{
	int err = 0;

	l->stop = false;
	l->looked = loop_now();
	while (!l->stop && !err) {
		int64_t wait = loop_turns(l);

		if (wait < 0 || wait > LOOP_LOOK_NS)
			wait = LOOP_LOOK_NS;
		if (!TAILQ_EMPTY(&l->tasks))
			wait = 0;
		if (!l->stop)
			err = loop_events(l, wait);
	}
	return err;
}

int64_t loop_since(const struct loop *l)
{
	return l->looked_before;
}

int64_t loop_age(const struct loop *l)
{
	return loop_now() - l->looked_before;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
