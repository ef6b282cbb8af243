/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of memory share: two connected queue pairs of one process, and
 * memory to move data from and to.
 */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include "conn.h"
#include "report.h"

#define SIZE	65536u
#define HUGE	(2u << 20)
#define PATIENCE 20			/* seconds for what must happen */

struct memory_test {
	const char *name;
	void (*run)(struct verdict *v);
};

/* The tests' surroundings; a and b are connected at the start of each. */
struct memory {
	const char *name;		/* of the device */
	struct dev dev;
	struct queue cq;		/* of both queue pairs */
	struct conn a, b;
	char *buf;			/* 3 * SIZE bytes */
	struct ibv_mr *local;		/* of them, for a and b themselves */
};

extern struct memory m;

/* Anew, after an error broke them. */
void reconnect_pair(void);
/* A signaled operation of a; 0 or an errno. */
int rdma_post(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	      uint32_t len);
/* The same, to its end; returns its status. */
int rdma(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	 uint32_t len);
void expect(struct verdict *v, int got, int want, const char *what);
/*
 * Writes @len bytes, at most SIZE, to @raddr, reads them back and compares both with what @view shows,
 * if that is given.
 */
void there_and_back(struct verdict *v, uint64_t raddr, uint32_t rkey, const char *view,
		    uint32_t len);
/* Pages that the device was told of so far */
long key_pages(void);

extern const struct memory_test region_tests[], dm_tests[], dmabuf_tests[];

#endif
