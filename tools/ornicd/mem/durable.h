/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's memory file that survives a loss of power once it has been synchronised: a file
 * on a disk, such as the image of a virtual machine's NVDIMM.
 *
 * The daemon synchronises it by a descriptor, not by the mapping. A pending sync therefore does not
 * keep guest memory mapped, and the client may unmap, reset or disconnect meanwhile.
 *
 * Linux reports a failed write-back once per open file description, then considers the pages clean.
 * The client has the description that it sent, and its own fsync() would take the report. The
 * daemon therefore opens the file again, once for all its clients, and remembers a file that lost
 * data when nobody has it mapped any more, because the client may map it again.
 *
 * All functions except durable_look() run on the loop's thread. Opening and closing a file may block:
 * a mapper does it (mapper.h).
 */
#ifndef ORNICD_MEM_DURABLE_H
#define ORNICD_MEM_DURABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct closer;
struct log_source;
struct mapper;
struct syncer;

LIST_HEAD(sync_list, sync_wait);
TAILQ_HEAD(durable_queue, durable);

/** DURABLE_FILES - most files of a client whose descriptors the daemon keeps */
#define DURABLE_FILES 64

/** DURABLE_LOST_MAX - most unused files that a client's list remembers as having lost data */
#define DURABLE_LOST_MAX 64

/**
 * struct durable_client - limits of one client, so that its files do not harm other clients
 * @log:	source of log lines; NULL: none, or @gone
 * @refs:	number of users: the owner, and the files with users
 * @gone:	durable_client_free() was called
 * @lost:	files without users that lost data, oldest first
 * @nlost:	number of files in @lost
 * @running:	number of syncs that run
 * @todo:	files that wait for a thread
 * @waiting:	in the syncer's list while @todo is not empty
 * @mapper:	closes the client's files; NULL: they are closed at once
 * @files:	files with descriptors; memory keys and syncs keep them without a mapping, too
 */
struct durable_client {
	struct log_source *log;
	unsigned int refs;
	bool gone;
	struct durable_queue lost;
	unsigned int nlost;
	unsigned int running;
	struct durable_queue todo;
	LIST_ENTRY(durable_client) waiting;
	struct mapper *mapper;
	unsigned int files;
};

/**
 * struct durable_id - identity of a file
 * @dev:	device
 * @ino:	inode; the file system may use it again for another file
 * @born:	time of creation, ns; 0 if the file system does not store it
 */
struct durable_id {
	uint64_t dev;
	uint64_t ino;
	uint64_t born;
};

/**
 * struct durable - the file
 * @fd:		descriptor, -1 if the file lost data before it was mapped: it is never synchronised
 * @closer:	to close @fd
 * @id:		identity
 * @client:	client that mapped it first
 * @refs:	number of users: mappings, memory keys, the syncer
 * @lost:	data written to the mapping may be lost for ever before it reached the file
 * @busy:	a sync is queued or runs
 * @now:	waiters of the sync that runs
 * @next:	waiters of the sync after that
 * @syncer:	while a sync runs: its syncer, NULL after syncer_fini()
 * @err:	result of the sync, 0 or a negative errno
 * @all:	in the list of all files
 * @link:	in a queue of @client or @syncer
 *
 * While a sync runs, its thread uses @fd, and with the syncer's lock @syncer, @err and @link.
 */
struct durable {
	int fd;
	struct closer *closer;
	struct durable_id id;
	struct durable_client *client;
	unsigned int refs;
	bool lost;
	bool busy;
	struct sync_list now;
	struct sync_list next;
	struct syncer *syncer;
	int err;
	LIST_ENTRY(durable) all;
	TAILQ_ENTRY(durable) link;
};

/* durable_client_new() - make the limits of a client. Return: NULL without memory. */
struct durable_client *durable_client_new(struct log_source *log);
/* durable_client_free() - forget the client's files, except those with users; NULL is ignored */
void durable_client_free(struct durable_client *c);

/* durable_use_mapper() - let a mapper close the files; takes a reference to it */
void durable_use_mapper(struct durable_client *c, struct mapper *m);

/* durable_type() - return true if files of a file system are not in RAM only; its f_type decides */
bool durable_type(unsigned long type);

/**
 * struct durable_file - a file that a client is about to map
 * @disk:	it is not in RAM only
 * @id:		identity, if @disk
 * @fd:		descriptor of our own, or -1; the caller closes it
 * @err:	negative errno of opening it, or 0
 */
struct durable_file {
	bool disk;
	struct durable_id id;
	int fd;
	int err;
};

/*
 * durable_look() - fill in @file, except @disk, for the descriptor @fd of a client, if @file->disk;
 * on any thread, may block
 * Return: 0, or a negative errno of statx().
 */
int durable_look(int fd, struct durable_file *file);

/*
 * durable_open() - get the handle of a file that @c maps
 * @file:	from durable_look(); its @fd becomes -1 if the handle takes it
 * @durable:	returns the handle with one reference; NULL if the file is in RAM only, or if the
 *		daemon may not open it, which it logs
 * Return: 0; -ENOSPC if @c has DURABLE_FILES others; or a negative errno without memory or descriptors.
 */
int durable_open(struct durable_client *c, struct durable_file *file, struct durable **durable);

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
