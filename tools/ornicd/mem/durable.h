/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's memory file that survives a loss of power once it has been synchronised: a file
 * on a disk, such as the image of a virtual machine's NVDIMM.
 *
 * The daemon synchronises it by a duplicate descriptor, not by the mapping. A pending sync
 * therefore does not keep guest memory mapped, and the client may unmap, reset or disconnect
 * meanwhile.
 */
#ifndef ORNICD_MEM_DURABLE_H
#define ORNICD_MEM_DURABLE_H

#include <stdbool.h>
#include <sys/queue.h>

LIST_HEAD(sync_list, sync_wait);

/**
 * struct durable - the file
 * @fd:		descriptor
 * @refs:	number of users: the mapping, memory keys, the syncer
 * @lost:	data written to the mapping may be lost for ever before it reached the file
 * @busy:	a sync runs: the syncer's thread uses @fd and @err, nothing else
 * @now:	waiters of the sync that runs
 * @next:	waiters of the sync after that
 * @err:	result of the sync, 0 or a negative errno
 * @link:	in a queue of the syncer
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
 * durable_new() - make a handle of a mapped file; duplicates @fd
 * Return: the handle with one reference; NULL if the file is in RAM only, or without memory or
 * descriptors.
 */
struct durable *durable_new(int fd);

/* durable_lose() - note that data did not, or will not, reach the file; safe in signal handlers */
static inline void durable_lose(struct durable *d)
{
	__atomic_store_n(&d->lost, true, __ATOMIC_RELAXED);
}

/* durable_lost() - return true if durable_lose() was called */
static inline bool durable_lost(const struct durable *d)
{
	return __atomic_load_n(&d->lost, __ATOMIC_RELAXED);
}

/* durable_get(), durable_put() - take or release a reference; NULL is ignored */
struct durable *durable_get(struct durable *d);
void durable_put(struct durable *d);

#endif /* ORNICD_MEM_DURABLE_H */
