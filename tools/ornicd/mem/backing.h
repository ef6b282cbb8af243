/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory files of a client.
 *
 * The VMM describes guest memory in pieces that come and go (firmware toggles holes at boot, an
 * IOMMU maps single buffers), but all pieces lie in a few files. A file is mapped whole if it takes
 * at most half of the address space that its client has left, otherwise only the piece. A piece
 * that is mapped already needs no further mapping.
 *
 * A file whose server or disk does not answer blocks whoever looks at it, maps or unmaps it, which
 * is therefore done by a mapper (mapper.h). Everything else runs on the loop's thread.
 */
#ifndef ORNICD_MEM_BACKING_H
#define ORNICD_MEM_BACKING_H

#include "durable.h"
#include "mapper.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/** BACKING_BUCKETS - lists of a pool's mappings, by inode */
#define BACKING_BUCKETS 1024

/** BACKING_IDLE_MAX - most mappings without a user that a pool keeps */
#define BACKING_IDLE_MAX 4

/**
 * struct backing_limits - files that a client may map
 * @files:	most mappings
 * @bytes:	most bytes of all mappings
 * @disk:	files on disks, too; the loop waits for a page that is not in memory
 */
struct backing_limits {
	unsigned int files;
	uint64_t bytes;
	bool disk;
};

/** BACKING_LIMITS - limits of a client by default */
#define BACKING_LIMITS	((struct backing_limits) { .files = 512, .bytes = 1ull << 40 })

TAILQ_HEAD(backing_queue, backing);

/**
 * struct backing - a file, or a part of one, that is mapped
 * @job:	to unmap it
 * @unmap:	mappings that @job unmaps
 * @bucket:	link of the pool's mappings whose inodes have the same remainder
 * @all:	link of the pool's mappings, or of @unmap
 * @idle:	link of the pool's mappings without users
 * @disk:	link of the pool's mappings with @durable
 * @pool:	pool of the file
 * @dev:	device of the file; with @ino its identity, stable while mapped
 * @ino:	inode of the file
 * @offset:	offset of @base in the file, bytes
 * @base:	address of the mapping
 * @len:	length of the mapping, bytes
 * @page:	bytes of a page that can be lost: of a huge page, if the file has these
 * @durable:	handle to synchronise the file, NULL if it cannot be made durable
 * @writable:	the descriptor, hence the mapping, allows stores
 * @refs:	number of users
 */
struct backing {
	struct mapper_job job;
	struct backing_queue unmap;
	LIST_ENTRY(backing) bucket;
	TAILQ_ENTRY(backing) all;
	TAILQ_ENTRY(backing) idle;
	LIST_ENTRY(backing) disk;
	struct backing_pool *pool;
	dev_t dev;
	ino_t ino;
	uint64_t offset;
	uint8_t *base;
	size_t len;
	size_t page;
	struct durable *durable;
	bool writable;
	unsigned int refs;
};

static_assert(!offsetof(struct backing, job), "a job is its mapping");

LIST_HEAD(backing_list, backing);

struct backing_request;

/**
 * struct backing_pool - the files of one client
 * @bucket:	its mappings, by inode modulo BACKING_BUCKETS
 * @all:	its mappings
 * @idle:	mappings without users; the first one for longest
 * @disk:	mappings of files that can be made durable
 * @files:	number of mappings
 * @nidle:	number of mappings in @idle
 * @bytes:	length of all mappings, bytes
 * @limits:	limits of the client
 * @lost:	si_code of the access that first found a page lost, 0 if none was; until the client
 *		is gone
 * @lost_at:	offset of that access in its file, bytes
 * @client:	limits of the client for files that can be made durable
 * @pid:	process of the client, 0 if unknown; tells where its files are mounted
 * @mapper:	mapper of the client's device; NULL: do its work at once
 * @request:	backing_get() that waits for the mapper, or NULL
 * @got:	called with the result of backing_get(), unless backing_get() returned it
 * @link:	in the list of all pools, for the SIGBUS handler
 */
struct backing_pool {
	struct backing_list bucket[BACKING_BUCKETS];
	struct backing_queue all;
	struct backing_queue idle;
	struct backing_list disk;
	unsigned int files;
	unsigned int nidle;
	uint64_t bytes;
	struct backing_limits limits;
	int lost;
	size_t lost_at;
	struct durable_client *client;
	pid_t pid;
	struct mapper *mapper;
	struct backing_request *request;
	void (*got)(struct backing_pool *pool, int err, struct backing *b);
	LIST_ENTRY(backing_pool) link;
};

int backing_guard(void);
bool backing_loss_pending(void);
void backing_loss_clear(void);
int backing_init(struct backing_pool *pool, struct log_source *log);
void backing_fini(struct backing_pool *pool);
void backing_use_mapper(struct backing_pool *pool, struct mapper *mapper);
int backing_get(struct backing_pool *pool, int fd, uint64_t offset, uint64_t size,
		struct backing **backing);
void backing_put(struct backing_pool *pool, struct backing *b);
void backing_drain(struct backing_pool *pool);

#endif /* ORNICD_MEM_BACKING_H */
