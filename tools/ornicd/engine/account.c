// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that guests make the daemon use.
 */
#include "account.h"

#include <stdlib.h>

/* Return the part of @used that is beyond the guarantee. */
static uint64_t beyond(const struct account_pool *pool, uint64_t used)
{
	return used > pool->guarantee ? used - pool->guarantee : 0;
}

/* Set the guarantees for the present number of accounts. */
static void share(struct account_pool *pool)
{
	const struct account *a;

	pool->guarantee = pool->size / 2 / (pool->n ? pool->n : 1);
	if (pool->guarantee > ACCOUNT_GUARANTEE)
		pool->guarantee = ACCOUNT_GUARANTEE;
	pool->most = pool->size / ACCOUNT_SHARE;
	if (pool->most < pool->guarantee)
		pool->most = pool->guarantee;
	pool->shared = 0;
	LIST_FOREACH(a, &pool->accounts, link)
		pool->shared += beyond(pool, a->used);
}

void account_pool_init(struct account_pool *pool, uint64_t size)
{
	*pool = (struct account_pool){ .size = size };
	LIST_INIT(&pool->accounts);
	share(pool);
}

void account_open(struct account *a, struct account_pool *pool)
{
	*a = (struct account){ .pool = pool };
	LIST_INSERT_HEAD(&pool->accounts, a, link);
	pool->n++;
	share(pool);
}

void account_close(struct account *a)
{
	struct account_pool *pool = a->pool;

	LIST_REMOVE(a, link);
	pool->n--;
	share(pool);
}

bool account_take(struct account *a, uint64_t bytes)
{
	struct account_pool *pool = a->pool;
	uint64_t more;

	if (!pool)
		return true;
	if (a->used > pool->most || bytes > pool->most - a->used)
		goto reject;
	more = beyond(pool, a->used + bytes) - beyond(pool, a->used);
	/* With fewer accounts before, the shared part may be larger than it is now. */
	if (more && pool->shared + more > pool->size - pool->n * pool->guarantee)
		goto reject;
	a->used += bytes;
	pool->shared += more;
	return true;
reject:
	a->rejected++;
	return false;
}

void account_give(struct account *a, uint64_t bytes)
{
	struct account_pool *pool = a->pool;

	if (!pool)
		return;
	pool->shared -= beyond(pool, a->used) - beyond(pool, a->used - bytes);
	a->used -= bytes;
}

void *account_alloc(struct account *a, size_t bytes)
{
	void *memory;

	if (!account_take(a, bytes))
		return NULL;
	memory = calloc(1, bytes);
	if (!memory)
		account_give(a, bytes);
	return memory;
}

void account_free(struct account *a, void *memory, size_t bytes)
{
	if (!memory)
		return;
	free(memory);
	account_give(a, bytes);
}
