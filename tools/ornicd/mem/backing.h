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
#include <sys/types.h>

/** BACKING_IDLE_MAX - most files without a user that a pool keeps mapped */
#define BACKING_IDLE_MAX 4

/**
 * struct backing - one mapped file
 * @next:	next in the pool
 * @next_all:	next in the list of all pools' files, for the SIGBUS handler
 * @dev:	device of the file; with @ino its identity, stable while mapped
 * @ino:	inode of the file
 * @base:	address of the mapping
 * @len:	length of the mapping = length of the file when it was mapped, bytes
 * @durable:	handle to synchronise the file, NULL if it cannot be made durable
 * @writable:	the descriptor, hence the mapping, allows stores
 * @refs:	number of users
 * @idle_since:	pool clock when @refs last became 0
 */
struct backing {
	struct backing *next;
	struct backing *next_all;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
	size_t len;
	struct durable *durable;
	bool writable;
	unsigned int refs;
	uint64_t idle_since;
};

/**
 * struct backing_pool - the files of one client
 * @head:	list of files
 * @client:	limits of the client for files that can be made durable
 * @pid:	process of the client, 0 if unknown; tells where its files are mounted
 * @clock:	number of releases; a logical clock to find the file that is idle for longest
 */
struct backing_pool {
	struct backing *head;
	struct durable_client *client;
	pid_t pid;
	uint64_t clock;
};

int backing_guard(void);
int backing_init(struct backing_pool *pool);
void backing_fini(struct backing_pool *pool);
int backing_get(struct backing_pool *pool, int fd, uint64_t offset, uint64_t size,
		struct backing **backing);
void backing_put(struct backing_pool *pool, struct backing *b);
void backing_drain(struct backing_pool *pool);

#endif /* ORNICD_MEM_BACKING_H */
