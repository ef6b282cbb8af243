/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Make files durable without blocking the data path: fdatasync() takes as long as the disk
 * needs, so a thread calls it, a new one for each sync.
 *
 * A sync serves all waiters that were added before it began; later ones wait for the next sync. A
 * file therefore has at most one thread, and the queues need no memory.
 *
 * At most SYNCER_THREADS files of a client have threads; its other files wait for their turn. So
 * the threads are bounded by the number of devices, and a disk that does not answer delays only
 * clients that use it.
 *
 * Everything except the sync itself happens on the caller's thread. @fd of struct syncer becomes
 * readable when syncer_reap() has work.
 */
#ifndef ORNICD_MEM_SYNCER_H
#define ORNICD_MEM_SYNCER_H

#include "durable.h"

/** SYNCER_THREADS - most files of a client that are synchronised at the same time */
#define SYNCER_THREADS 4

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
 * struct syncer - the queues
 * @sync:	fdatasync(), or a replacement for tests
 * @fd:		eventfd; if readable, call syncer_reap()
 * @waiting:	clients with files that wait for a thread
 * @running:	files whose sync runs; protected by a lock, as @done
 * @done:	files that were synced
 */
struct syncer {
	int (*sync)(int fd);
	int fd;
	LIST_HEAD(, durable_client) waiting;
	struct durable_queue running;
	struct durable_queue done;
};

/* syncer_init() - initialise without threads. Return: 0 or a negative errno. */
int syncer_init(struct syncer *s, int (*sync)(int fd));
/*
 * syncer_fini() - end; there must be no waiters
 * It does not wait for syncs that run, because a disk may never answer. Their threads end by
 * themselves or with the process; the kernel ends the process when the disk has answered.
 */
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
