/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for page lists. A region may have millions of pages, and the kernel needs tens of
 * milliseconds to free such a list. So it is freed in pieces, one per turn of the engine
 * (ORN-SEC-14).
 */
#ifndef ORNICD_ENGINE_PAGELIST_H
#define ORNICD_ENGINE_PAGELIST_H

#include <stdbool.h>
#include <stdint.h>

/** PAGELIST_PIECE - bytes that pagelist_reap() frees */
#define PAGELIST_PIECE		(512u << 10)

/* pagelist_alloc() - allocate an array of @n > 0 addresses. Return: the array or NULL. */
uint64_t *pagelist_alloc(uint64_t n);

/*
 * pagelist_free() - free an array of @n addresses or leave it to pagelist_reap(); NULL is ignored
 */
void pagelist_free(uint64_t *list, uint64_t n);

/*
 * pagelist_reap() - free a piece of a large array that was passed to pagelist_free()
 * A new array is filled more slowly than this. So the memory that waits stays within the budget of
 * page-list entries, however often a host registers and deregisters memory.
 * Return: true if more memory waits.
 */
bool pagelist_reap(void);

#endif /* ORNICD_ENGINE_PAGELIST_H */
