/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for page lists. A region may have millions of pages, and to give the memory of such
 * a list back takes the kernel tens of milliseconds: it goes in pieces, one per turn of the
 * engine (ORN-SEC-14).
 */
#ifndef ORNICD_ENGINE_PAGELIST_H
#define ORNICD_ENGINE_PAGELIST_H

#include <stdbool.h>
#include <stdint.h>

/** PAGELIST_PIECE - bytes that pagelist_reap() gives back */
#define PAGELIST_PIECE		(512u << 10)

/* pagelist_alloc() - an array of @n > 0 addresses, or NULL */
uint64_t *pagelist_alloc(uint64_t n);

/* pagelist_free() - forget an array of @n; NULL is ignored */
void pagelist_free(uint64_t *list, uint64_t n);

/*
 * pagelist_reap() - give a piece of a forgotten array back to the system
 * A new array is filled more slowly than this: memory that waits to be given back stays
 * within the budget of page-list entries, however fast a host forgets. Return: false if
 * nothing waits any more.
 */
bool pagelist_reap(void);

#endif /* ORNICD_ENGINE_PAGELIST_H */
