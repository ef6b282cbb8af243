// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for page lists: small ones from the heap; a large one is a mapping of its own, which
 * shrinks from its end once nobody needs it.
 */
#include "pagelist.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/**
 * struct forgotten - start of an array that waits for pagelist_reap()
 * @next:	next one
 * @bytes:	left of the mapping
 */
struct forgotten {
	struct forgotten *next;
	size_t bytes;
};

static struct forgotten *forgotten;

/* Is the array a mapping? Then a piece is less than all of it. */
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
	struct forgotten *f = (struct forgotten *)list;

	if (!list || !is_large(n)) {
		free(list);
		return;
	}
	f->bytes = n * sizeof(*list);
	f->next = forgotten;
	forgotten = f;
}

bool pagelist_reap(void)
{
	struct forgotten *f = forgotten;
	size_t keep;

	if (!f)
		return false;
	if (f->bytes <= PAGELIST_PIECE) {
		forgotten = f->next;
		munmap(f, f->bytes);
		return forgotten;
	}
	keep = (f->bytes - 1) / PAGELIST_PIECE * PAGELIST_PIECE;
	munmap((uint8_t *)f + keep, f->bytes - keep);
	f->bytes = keep;
	return true;
}
