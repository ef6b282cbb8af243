/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Translate DMA addresses of one PCI function to host pointers.
 *
 * The table is a sorted array of pieces of guest memory, for binary search. gpa_ptr() first
 * compares the address with the piece found last. A range may cover several pieces if they are
 * adjacent both in the guest and in one mapping of the daemon.
 *
 * Table changes and look-ups happen on one thread. A pointer is valid until a piece is removed. A
 * piece is unmapped after that, by a mapper.
 */
#ifndef ORNICD_MEM_GPA_H
#define ORNICD_MEM_GPA_H

#include "backing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** enum gpa_prot - accesses that a piece permits */
enum gpa_prot {
	GPA_READ = 1,
	GPA_WRITE = 2,
};

/** GPA_MAX - most pieces of a table */
#define GPA_MAX 65535

/**
 * struct gpa_entry - one piece of guest memory
 * @addr:	first DMA address
 * @size:	bytes, never 0; @addr + @size - 1 does not wrap
 * @host:	address of the mapping; NULL if the client sent no descriptor
 * @prot:	set of &enum gpa_prot
 * @backing:	file behind @host
 */
struct gpa_entry {
	uint64_t addr;
	uint64_t size;
	uint8_t *host;
	unsigned int prot;
	struct backing *backing;
};

/**
 * struct gpa - the table of one function
 * @entry:	pieces sorted by address, not overlapping
 * @n:		number of pieces
 * @cap:	number of pieces that @entry has memory for
 * @last:	index of the piece found last; always a valid index if @n > 0
 * @pool:	files of the pieces
 * @adding:	piece whose file is being mapped
 * @offset:	its offset in the file, bytes
 * @mapped:	called with the result of gpa_map(), unless gpa_map() returned it
 * @arg:	argument of @mapped
 */
struct gpa {
	struct gpa_entry *entry;
	uint32_t n;
	uint32_t cap;
	uint32_t last;
	struct backing_pool pool;
	struct gpa_entry adding;
	uint64_t offset;
	void (*mapped)(void *arg, int err);
	void *arg;
};

struct gpa *gpa_new(struct log_source *log);
void gpa_free(struct gpa *g);
int gpa_map(struct gpa *g, uint64_t addr, uint64_t size, unsigned int prot, int fd,
	    uint64_t offset);
int gpa_unmap(struct gpa *g, uint64_t addr, uint64_t size);
void gpa_unmap_all(struct gpa *g);
uint64_t gpa_span(struct gpa *g, uint64_t addr, uint64_t len, bool write, void **ptr);
const char *gpa_loss(const struct gpa *g, size_t *at);
struct durable *gpa_durable(struct gpa *g, uint64_t addr, uint64_t len, uint64_t *span);
int gpa_read(struct gpa *g, uint64_t addr, void *dst, size_t len);
int gpa_write(struct gpa *g, uint64_t addr, const void *src, size_t len);

/**
 * gpa_lost() - check whether an access has found a page lost
 * @g:	table
 *
 * The page has been replaced by zeros (backing.c), so the function must not use the memory any
 * more, not even after a reset.
 *
 * Return: true until the client is gone or has removed all its memory.
 */
static inline bool gpa_lost(const struct gpa *g)
{
	return __atomic_load_n(&g->pool.lost, __ATOMIC_RELAXED);
}

/**
 * gpa_ptr() - get a pointer to a range of guest memory
 * @g:		table
 * @addr:	DMA address
 * @len:	bytes
 * @write:	the caller stores to the range
 *
 * Return: a pointer valid for all @len bytes, or NULL if @len is 0 or a byte is not mapped,
 * has no descriptor, does not permit the access, or is not contiguous in host memory.
 */
static inline void *gpa_ptr(struct gpa *g, uint64_t addr, uint64_t len, bool write)
{
	void *ptr;

	if (g->n) {
		const struct gpa_entry *e = &g->entry[g->last];
		uint64_t off = addr - e->addr;

		if (off < e->size && len && len <= e->size - off && e->host &&
		    (e->prot & (write ? GPA_WRITE : GPA_READ)))
			return e->host + off;
	}
	return len && gpa_span(g, addr, len, write, &ptr) == len ? ptr : NULL;
}

#endif /* ORNICD_MEM_GPA_H */
