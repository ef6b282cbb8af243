/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for page lists. A region may have millions of pages, and the kernel needs tens of
 * milliseconds to free such a list. So it is freed in pieces, one per turn of the engine
 * (ORN-SEC-14). It counts as used until then: otherwise a guest that registers faster than the
 * pieces are freed would exhaust memory and addresses of the daemon.
 */
#ifndef ORNICD_ENGINE_PAGELIST_H
#define ORNICD_ENGINE_PAGELIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct account;

/** PAGELIST_PIECE - bytes that pagelist_reap() frees */
#define PAGELIST_PIECE		(128u << 10)

/** struct pagelist_queue - large lists of all devices that wait to be freed, oldest first */
STAILQ_HEAD(pagelist_queue, pagelist_unused);

/**
 * struct page_lists - budget of the page lists of a device or a key
 * @left:	entries that lists may still have
 * @waiting:	entries of freed lists that still use memory
 * @account:	charged with the memory, or NULL if it was charged before
 * @queue:	where large lists wait
 */
struct page_lists {
	uint64_t left;
	uint64_t waiting;
	struct account *account;
	struct pagelist_queue *queue;
};

/*
 * pagelist_reserve() - take @n entries from the budget. Return: false if they are too many.
 * pagelist_return() - return them
 */
bool pagelist_reserve(struct page_lists *lists, uint64_t n);
void pagelist_return(struct page_lists *lists, uint64_t n);

/* pagelist_alloc() - allocate an array of @n > 0 addresses. Return: the array or NULL. */
uint64_t *pagelist_alloc(struct page_lists *lists, uint64_t n);

/*
 * pagelist_free() - free an array of @n addresses or leave it to pagelist_reap(); NULL is ignored
 */
void pagelist_free(struct page_lists *lists, uint64_t *list, uint64_t n);

/* pagelist_disown() - end the use of @lists; what waits is freed later, but is no longer counted */
void pagelist_disown(struct page_lists *lists);

/*
 * pagelist_reap() - free a piece of a large array that was passed to pagelist_free()
 * Return: true if more memory waits.
 */
bool pagelist_reap(struct pagelist_queue *queue);

#endif /* ORNICD_ENGINE_PAGELIST_H */
