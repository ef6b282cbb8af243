/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's memory file that outlives a loss of power once it has been synchronised: one on
 * a real file system, such as the image of a virtual machine's NVDIMM.
 *
 * It is reached by a descriptor of the daemon's own, not by the mapping: what waits for the
 * file does not keep guest memory mapped, and the client may unmap, reset or go meanwhile.
 */
#ifndef ORNICD_MEM_DURABLE_H
#define ORNICD_MEM_DURABLE_H

#include <stdbool.h>
#include <sys/queue.h>

LIST_HEAD(sync_list, sync_wait);

/**
 * struct durable - the file
 * @fd:		descriptor
 * @refs:	users: the mapping, memory keys, the syncer
 * @lost:	something written to the mapping may not have got to the file, and never will
 * @busy:	with the syncer's thread, which may use @fd and @err and nothing else
 * @now:	who waits for that
 * @next:	who came later and waits for the sync after it
 * @err:	what that sync said
 * @link:	in the syncer's list
 */
struct durable {
	int fd;
	unsigned int refs;
	bool lost;
	bool busy;
	struct sync_list now;
	struct sync_list next;
	int err;
	STAILQ_ENTRY(durable) link;
};

/*
 * durable_new() - for a mapped file; @fd stays the caller's
 * Return: the file with a reference; NULL if it lives in memory, or no descriptor is to be had.
 */
struct durable *durable_new(int fd);

/* durable_lose() - something did not, or will not, get to the file; from a signal handler, too */
static inline void durable_lose(struct durable *d)
{
	__atomic_store_n(&d->lost, true, __ATOMIC_RELAXED);
}

/* durable_lost() - did that happen? */
static inline bool durable_lost(const struct durable *d)
{
	return __atomic_load_n(&d->lost, __ATOMIC_RELAXED);
}

/* durable_get(), durable_put() - take and give back a reference; NULL is ignored */
struct durable *durable_get(struct durable *d);
void durable_put(struct durable *d);

#endif /* ORNICD_MEM_DURABLE_H */
