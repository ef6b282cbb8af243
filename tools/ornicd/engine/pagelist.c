// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for page lists. A small list is on the heap. A large list is a mapping, which is unmapped
 * from its end piece by piece.
 */
#include "pagelist.h"

#include "account.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/**
 * struct pagelist_unused - start of an array that waits for pagelist_reap()
 * @link:	in the queue
 * @lists:	budget that it counts in, or NULL
 * @bytes:	bytes that are still mapped
 */
struct pagelist_unused {
	STAILQ_ENTRY(pagelist_unused) link;
	struct page_lists *lists;
	size_t bytes;
};

/* Return true if an array of @n addresses is a mapping: it is larger than one piece. */
static bool is_large(uint64_t n)
{
	return n > PAGELIST_PIECE / sizeof(uint64_t);
}

bool pagelist_reserve(struct page_lists *lists, uint64_t n)
{
	if (n > lists->left)
		return false;
	if (lists->account && !account_take(lists->account, n * sizeof(uint64_t)))
		return false;
	lists->left -= n;
	return true;
}

void pagelist_return(struct page_lists *lists, uint64_t n)
{
	lists->left += n;
	if (lists->account)
		account_give(lists->account, n * sizeof(uint64_t));
}

uint64_t *pagelist_alloc(struct page_lists *lists, uint64_t n)
{
	size_t bytes;
	void *list;

	if (__builtin_mul_overflow(n, sizeof(uint64_t), &bytes) || !pagelist_reserve(lists, n))
		return NULL;
	if (is_large(n))
		list = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		list = malloc(bytes);
	if (list && list != MAP_FAILED)
		return list;
	pagelist_return(lists, n);
	return NULL;
}

void pagelist_free(struct page_lists *lists, uint64_t *list, uint64_t n)
{
	struct pagelist_unused *u = (struct pagelist_unused *)list;

	if (!list)
		return;
	if (!is_large(n)) {
		free(list);
		pagelist_return(lists, n);
		return;
	}
	u->lists = lists;
	u->bytes = n * sizeof(*list);
	lists->waiting += n;
	STAILQ_INSERT_TAIL(lists->queue, u, link);
}

void pagelist_disown(struct page_lists *lists)
{
	struct pagelist_unused *u;

	STAILQ_FOREACH(u, lists->queue, link) {
		if (u->lists != lists)
			continue;
		u->lists = NULL;
		lists->waiting -= u->bytes / sizeof(uint64_t);
		pagelist_return(lists, u->bytes / sizeof(uint64_t));
	}
}

bool pagelist_reap(struct pagelist_queue *queue)
{
	struct pagelist_unused *u = STAILQ_FIRST(queue);
	struct page_lists *lists;
	size_t keep, piece;

	if (!u)
		return false;
	lists = u->lists;
	keep = (u->bytes - 1) / PAGELIST_PIECE * PAGELIST_PIECE;
	piece = u->bytes - keep;
	if (!keep)
		STAILQ_REMOVE_HEAD(queue, link);
	else
		u->bytes = keep;
	munmap((uint8_t *)u + keep, piece);
	if (lists) {
		lists->waiting -= piece / sizeof(uint64_t);
		pagelist_return(lists, piece / sizeof(uint64_t));
	}
	return !STAILQ_EMPTY(queue);
}
