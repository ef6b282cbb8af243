/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kinds of objects that a process can create. For each: how to create one from existing
 * objects, how to use it, and how to destroy it.
 */
#ifndef GUEST_STORM_KINDS_H
#define GUEST_STORM_KINDS_H

#include "storm.h"

#define EACH		4u		/* limit of objects of a kind per thread */
#define NEST_BYTES	(256u << 10)
#define NO_LIFE		UINT64_MAX	/* wr_id of receives of a shared receive queue */

/* In an order in which each kind needs earlier ones only. */
enum kind {
	K_CONTEXT, K_PD, K_TD, K_PARENT, K_CHANNEL, K_CQ, K_SRQ, K_DM, K_MR, K_DM_MR, K_MW, K_AH,
	K_UD, K_MCAST, K_WQ, K_TABLE, K_RSS, K_RAW, K_FLOW, K_XRCD, K_XSRQ, K_TARGET, K_PAIR,
	KINDS
};

/*
 * State of the CQ that all threads share. A life is the time of one queue pair on it;
 * wr_ids contain its number.
 */
struct shared_cq {
	struct queue q;
	pthread_mutex_t lock;		/* protects gone; held while a thread polls and reads it */
	bool *gone;			/* by life */
	uint32_t lives;
	_Atomic uint32_t next;
};

/* The objects of one thread. */
struct nest {
	struct storm *s;
	struct rnd rnd;
	struct shared_cq *shared;
	void *thing[KINDS][EACH];
	uint8_t *mem;			/* NEST_BYTES that work requests may spoil */
	struct ibv_mr *mr;		/* all of it */
};

struct kind_ops {
	const char *name;
	/* Return NULL and errno; errno 0: an object that it needs does not exist */
	void *(*make)(struct nest *n);
	/* 0 or an errno */
	int (*use)(struct nest *n, void *thing);
	int (*drop)(struct nest *n, void *thing);
};

extern const struct kind_ops kinds[KINDS];

/* Allocate memory and the state for work requests, no objects. */
void nest_init(struct nest *n, struct storm *s, struct shared_cq *shared, unsigned int number);
void nest_free(struct nest *n);
/* Return some object of a kind, or NULL. */
void *nest_any(struct nest *n, enum kind kind);
/* Return some protection domain; there always is one. */
struct ibv_pd *nest_pd(struct nest *n);

/* storm_pairs.c: connected queue pairs */
void *pair_make(struct nest *n);
int pair_use(struct nest *n, void *thing);
int pair_drop(struct nest *n, void *thing);
/* A type 1 window is bound through one. */
int pair_bind(struct nest *n, void *pair, struct ibv_mw *mw);

/* storm_frames.c: objects that receive Ethernet frames */
void *raw_make(struct nest *n);
void *flow_make(struct nest *n);
void *wq_make(struct nest *n);
int wq_use(struct nest *n, void *thing);
void *table_make(struct nest *n);
void *rss_make(struct nest *n);

#endif
