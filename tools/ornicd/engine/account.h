/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of the daemon that guests make it use: objects and page lists. The devices share a pool.
 * Each may always use a guaranteed amount; the rest belongs to those that need more, up to a limit,
 * so that no guest can take it all from the others, and all together cannot exhaust the host's
 * memory.
 *
 * All functions run on the engine's thread.
 */
#ifndef ORNICD_ENGINE_ACCOUNT_H
#define ORNICD_ENGINE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** ACCOUNT_GUARANTEE - bytes that each account may always use, if the pool suffices for all */
#define ACCOUNT_GUARANTEE	(4ull << 20)
/** ACCOUNT_SHARE - a single account may use one part of so many of the pool */
#define ACCOUNT_SHARE		4

/**
 * struct account - memory that one device uses
 * @pool:	its pool, NULL if the memory is not limited
 * @link:	in the pool's list
 * @used:	bytes
 * @rejected:	requests that were rejected
 */
struct account {
	struct account_pool *pool;
	LIST_ENTRY(account) link;
	uint64_t used;
	uint64_t rejected;
};

/**
 * struct account_pool - memory for all devices
 * @size:	bytes
 * @guarantee:	bytes that each account may always use; all guarantees take at most half of @size
 * @most:	bytes that an account may use
 * @shared:	bytes that accounts use beyond their guarantees
 * @accounts:	list of accounts
 * @n:		number of accounts
 */
struct account_pool {
	uint64_t size;
	uint64_t guarantee;
	uint64_t most;
	uint64_t shared;
	LIST_HEAD(, account) accounts;
	uint32_t n;
};

/* account_pool_init() - initialise a pool of @size bytes without accounts */
void account_pool_init(struct account_pool *pool, uint64_t size);

/*
 * account_open() - add an empty account to @pool
 * account_close() - remove an account, whose memory is free
 * Both change the guarantees of all accounts.
 */
void account_open(struct account *a, struct account_pool *pool);
void account_close(struct account *a);

/* account_take() - charge @bytes before they are allocated. Return: false if they are too many. */
bool account_take(struct account *a, uint64_t bytes);
/* account_give() - return @bytes that were freed */
void account_give(struct account *a, uint64_t bytes);

/*
 * account_alloc() - charge and allocate @bytes, filled with zeros. Return: the memory, or NULL.
 * account_free() - free memory of account_alloc(); NULL is ignored
 */
void *account_alloc(struct account *a, size_t bytes);
void account_free(struct account *a, void *memory, size_t bytes);

#endif /* ORNICD_ENGINE_ACCOUNT_H */
