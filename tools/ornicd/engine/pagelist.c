// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for page lists. A small list is on the heap. A large list is a mapping, which is unmapped
 * from its end piece by piece.
 */
#include "pagelist.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/**
 * struct unused - start of an array that waits for pagelist_reap()
 * @next:	next array
 * @bytes:	bytes that are still mapped
 */
struct unused {
	struct unused *next;
	size_t bytes;
};

static struct unused *unused;

/* Return true if an array of @n addresses is a mapping: it is larger than one piece. */
static bool is_large(uint64_t n)
{
	return n > PAGELIST_PIECE / sizeof(uint64_t);
}

uint64_t *pagelist_alloc(uint64_t n)
{
	size_t bytes;
	void *list;

	if (__builtin_mul_overflow(n, sizeof(uint64_t), &bytes))
		return NULL;
	if (!is_large(n))
		return malloc(bytes);
	list = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return list == MAP_FAILED ? NULL : list;
}

void pagelist_free(uint64_t *list, uint64_t n)
{
	struct unused *u = (struct unused *)list;

	if (!list || !is_large(n)) {
		free(list);
		return;
	}
	u->bytes = n * sizeof(*list);
	u->next = unused;
	unused = u;
}

bool pagelist_reap(void)
{
	struct unused *u = unused;
	size_t keep;

	if (!u)
		return false;
	if (u->bytes <= PAGELIST_PIECE) {
		unused = u->next;
		munmap(u, u->bytes);
		return unused;
	}
	keep = (u->bytes - 1) / PAGELIST_PIECE * PAGELIST_PIECE;
	munmap((uint8_t *)u + keep, u->bytes - keep);
	u->bytes = keep;
	return true;
}
