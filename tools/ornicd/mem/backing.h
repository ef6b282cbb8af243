/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory files of a client, each mapped once and whole.
 *
 * The VMM describes guest memory in pieces that come and go (firmware toggles holes at boot,
 * an IOMMU maps single buffers), but all pieces lie in a few files. Because the whole file
 * is mapped, adding or removing a piece costs only a table entry and no system call.
 *
 * All functions run on the loop's thread.
 */
#ifndef ORNICD_MEM_BACKING_H
#define ORNICD_MEM_BACKING_H

#include "durable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/** BACKING_BUCKETS - lists of a pool's files, by inode */
#define BACKING_BUCKETS 1024

/** BACKING_IDLE_MAX - most files without a user that a pool keeps mapped */
#define BACKING_IDLE_MAX 4

/**
 * struct backing - one mapped file
 * @bucket:	link of the pool's files whose inodes have the same remainder
 * @all:	link of all pools' files, for the SIGBUS handler
 * @idle:	link of the pool's files without users
 * @pool:	pool of the file
 * @dev:	device of the file; with @ino its identity, stable while mapped
 * @ino:	inode of the file
 * @base:	address of the mapping
 * @len:	length of the mapping = length of the file when it was mapped, bytes
 * @page:	bytes of a page that can be lost: of a huge page, if the file has these
 * @durable:	handle to synchronise the file, NULL if it cannot be made durable
 * @writable:	the descriptor, hence the mapping, allows stores
 * @refs:	number of users
 */
struct backing {
	LIST_ENTRY(backing) bucket;
	LIST_ENTRY(backing) all;
	TAILQ_ENTRY(backing) idle;
	struct backing_pool *pool;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
	size_t len;
	size_t page;
	struct durable *durable;
	bool writable;
	unsigned int refs;
};

LIST_HEAD(backing_list, backing);
TAILQ_HEAD(backing_queue, backing);

/**
 * struct backing_pool - the files of one client
 * @bucket:	its files, by inode modulo BACKING_BUCKETS
 * @idle:	files without users; the first one for longest
 * @files:	number of files
 * @nidle:	number of files in @idle
 * @lost:	si_code of the access that first found a page lost, 0 if none was; until the client
 *		is gone
 * @lost_at:	offset of that access in its file, bytes
 * @client:	limits of the client for files that can be made durable
 * @pid:	process of the client, 0 if unknown; tells where its files are mounted
 */
struct backing_pool {
	struct backing_list bucket[BACKING_BUCKETS];
	struct backing_queue idle;
	unsigned int files;
	unsigned int nidle;
	int lost;
	size_t lost_at;
	struct durable_client *client;
	pid_t pid;
};

int backing_guard(void);
bool backing_loss_pending(void);
void backing_loss_clear(void);
int backing_init(struct backing_pool *pool, struct log_source *log);
void backing_fini(struct backing_pool *pool);
int backing_get(struct backing_pool *pool, int fd, uint64_t offset, uint64_t size,
		struct backing **backing);
void backing_put(struct backing_pool *pool, struct backing *b);
void backing_drain(struct backing_pool *pool);

#endif /* ORNICD_MEM_BACKING_H */
