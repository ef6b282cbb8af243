/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the memory tests: two connected queue pairs of one process, and memory to
 * move data from and to.
 */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include "conn.h"
#include "report.h"

#define SIZE	65536u
#define HUGE	(2u << 20)
#define PATIENCE 20			/* seconds for an event that must come */

struct memory_test {
	const char *name;
	void (*run)(struct verdict *v);
};

/* The tests' environment; a and b are connected at the start of each test. */
struct memory {
	const char *name;		/* of the device */
	struct dev dev;
	struct queue cq;		/* of both queue pairs */
	struct conn a, b;
	char *buf;			/* 3 * SIZE bytes */
	struct ibv_mr *local;		/* of them, for a and b themselves */
};

extern struct memory m;

/* Connect the queue pairs again after an error broke them. */
void reconnect_pair(void);
/* Post a signaled operation of a; return 0 or an errno. */
int rdma_post(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	      uint32_t len);
/*
 * Post an operation and wait for its completion; return its status, -1 if the post failed, or -2
 * if no completion came within PATIENCE seconds.
 */
int rdma(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	 uint32_t len);
void expect(struct verdict *v, int got, int want, const char *what);
/*
 * Write @len bytes, at most SIZE, to @raddr, read them back and compare both with @view, if
 * that is not NULL.
 */
void there_and_back(struct verdict *v, uint64_t raddr, uint32_t rkey, const char *view,
		    uint32_t len);
/* Return the number of pages that were registered with the device so far */
long key_pages(void);

extern const struct memory_test region_tests[], dm_tests[], dmabuf_tests[];

#endif
