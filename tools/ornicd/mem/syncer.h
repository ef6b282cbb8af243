/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes files durable without keeping the data path waiting: fdatasync() can take as long as
 * a disk does, so a thread of its own calls it.
 *
 * A sync serves everybody who asked for the file before it was handed to the thread; who asks
 * later waits for the next one. So a file is handed over at most once at a time, the thread's
 * queue is as long as there are files, and it needs no memory.
 *
 * Everything but the sync itself happens on the caller's thread. The descriptor of
 * syncer_init() becomes readable when there is something for syncer_reap().
 */
#ifndef ORNICD_MEM_SYNCER_H
#define ORNICD_MEM_SYNCER_H

#include "durable.h"

#include <pthread.h>

STAILQ_HEAD(durable_queue, durable);

/**
 * struct sync_wait - who waits for a sync
 * @done:	called by syncer_reap() or syncer_add(), with 0 or a negative errno; not after
 *		sync_cancel()
 * @waiting:	it is in a list
 * @link:	the file's list
 */
struct sync_wait {
	void (*done)(struct sync_wait *w, int err);
	bool waiting;
	LIST_ENTRY(sync_wait) link;
};

/**
 * struct syncer - the thread and what goes to and fro
 * @sync:	fdatasync(), or a test's
 * @fd:		readable: call syncer_reap()
 * @started:	there is a thread: from the first sync on
 * @thread:	it
 * @lock:	protects what follows
 * @wake:	@todo or @stop changed
 * @todo:	files handed to the thread
 * @done:	files handed back
 * @stop:	the thread is to end
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

/* syncer_init() - Return: 0 or a negative errno */
int syncer_init(struct syncer *s, int (*sync)(int fd));
/* syncer_fini() - nobody waits any more; ends once the sync under way has ended */
void syncer_fini(struct syncer *s);

/*
 * syncer_add() - tell @w when all that is in @d by now is durable
 * A file that lost something once is never durable again: the kernel reports a failure to
 * write once and forgets it.
 */
void syncer_add(struct syncer *s, struct durable *d, struct sync_wait *w);

/* sync_cancel() - @w does not wait any more, if it did */
void sync_cancel(struct sync_wait *w);

/* syncer_reap() - tell those whose sync has ended */
void syncer_reap(struct syncer *s);

#endif /* ORNICD_MEM_SYNCER_H */
