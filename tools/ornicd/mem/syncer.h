/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Make files durable without blocking the data path: fdatasync() takes as long as the disk
 * needs, so a separate thread calls it.
 *
 * A sync serves all waiters that were added before the file was queued to the thread; later
 * ones wait for the next sync. A file is therefore queued at most once, and the queue needs no
 * memory.
 *
 * Everything except the sync itself happens on the caller's thread. @fd of struct syncer becomes
 * readable when syncer_reap() has work.
 */
#ifndef ORNICD_MEM_SYNCER_H
#define ORNICD_MEM_SYNCER_H

#include "durable.h"

#include <pthread.h>

/**
 * struct sync_wait - a waiter for a sync
 * @done:	called by syncer_reap() or syncer_add(), with 0 or a negative errno; not after
 *		sync_cancel()
 * @waiting:	@link is in a list
 * @link:	in a list of the file
 */
struct sync_wait {
	void (*done)(struct sync_wait *w, int err);
	bool waiting;
	LIST_ENTRY(sync_wait) link;
};

/**
 * struct syncer - the thread and its queues
 * @sync:	fdatasync(), or a replacement for tests
 * @fd:		eventfd; if readable, call syncer_reap()
 * @started:	the thread runs; the first sync starts it
 * @thread:	the thread
 * @lock:	protects the members below
 * @wake:	@todo or @stop changed
 * @todo:	files to sync
 * @done:	files that were synced
 * @stop:	the thread must end
 */
struct syncer {
	int (*sync)(int fd);
	int fd;
	bool started;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct durable_queue todo;
	struct durable_queue done;
	bool stop;
};

/* syncer_init() - initialise without a thread. Return: 0 or a negative errno. */
int syncer_init(struct syncer *s, int (*sync)(int fd));
/* syncer_fini() - end the thread after the current sync; there must be no waiters */
void syncer_fini(struct syncer *s);

/*
 * syncer_add() - call @w->done() when all data that is in @d now is durable
 * A file that lost data fails for ever with -EIO, because Linux (since 4.13) reports a failed
 * write-back to fdatasync() once per open file description, then considers the pages clean.
 */
void syncer_add(struct syncer *s, struct durable *d, struct sync_wait *w);

/* sync_cancel() - remove @w from its list, if it waits */
void sync_cancel(struct sync_wait *w);

/* syncer_reap() - call @done of the waiters whose sync has ended */
void syncer_reap(struct syncer *s);

#endif /* ORNICD_MEM_SYNCER_H */
