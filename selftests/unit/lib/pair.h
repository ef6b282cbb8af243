/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions on one engine, and queue pairs as a host program uses them: rings in
 * guest memory, the posting rule, polling by phase. Time stands still unless a
 * test moves it. Include after <cmocka.h>'s prerequisites.
 */
#ifndef UNIT_LIB_PAIR_H
#define UNIT_LIB_PAIR_H

#include <ornic/cq.h>
#include <ornic/eq.h>
#include <ornic/wqe.h>
#include "engine/engine.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "guest.h"

#define DUTS		3
#define DUT_PORT_FRAME	9000

/**
 * struct dut - a function under test
 * @dev:	it
 * @guest:	its guest
 * @pd, @other_pd: protection domains
 * @eq:		EQ 0
 * @eq_cons:	events consumed
 * @irqs:	MSI-X messages
 * @fatals:	number of fatal errors, which stop the function
 * @changes:	number of port changes that no command caused
 */
struct dut {
	struct device dev;
	struct guest guest;
	struct pd pd;
	struct pd other_pd;
	struct eq eq;
	uint32_t eq_cons;
	uint32_t irqs;
	uint32_t fatals;
	uint32_t changes;
};

/**
 * struct world - the engine and all functions
 * @e:	the engine
 * @packets: free packets at the beginning; world_fini() checks that all of them are free again
 * @dut: functions "vm1", "vm2", "vm3"; MAC 02:..:n+1, GID 0 10.0.0.n+1, GID 1 fe80::n+1
 */
struct world {
	struct engine e;
	uint32_t packets;
	struct dut dut[DUTS];
};

/**
 * struct hostq - the host's side of a work or completion queue
 * @ring:	DMA address of the entries
 * @rec:	DMA address of the record
 * @index:	next index to post, or to consume
 * @rang:	doorbells that the posting rule asked for
 */
struct hostq {
	uint64_t ring;
	uint64_t rec;
	uint32_t index;
	uint32_t rang;
};

/** struct conn - a queue pair with CQs of its own, and its host's side */
struct conn {
	struct dut *d;
	struct qp qp;
	struct cq scq;
	struct cq rcq;
	struct hostq sq;
	struct hostq rq;
	struct hostq hscq;
	struct hostq hrcq;
};

/**
 * struct ends - two queue pairs, of the first two functions
 * @w:		the engine
 * @a, @b:	the queue pairs
 * @abuf, @bbuf: DMA address of a buffer of each function
 * @akey, @bkey: key of the buffer
 */
struct ends {
	struct world w;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
};

/** struct conn_opt - differences from the defaults; 0 = default */
struct conn_opt {
	uint8_t type;		/* RC */
	uint32_t flags;
	uint8_t sq_log;		/* 8 */
	uint8_t rq_log;		/* 8 */
	uint8_t sq_stride;	/* 9 */
	uint8_t rq_stride;	/* 8 */
	uint8_t cq_log;		/* 10 */
	uint32_t ring_offset;	/* rings start this far inside a page */
};

/** struct wr - a send work request */
struct wr {
	uint8_t opcode;
	uint8_t flags;
	uint32_t imm;
	uint64_t raddr;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
	struct ornic_wqe_flush flush;
	uint32_t nsge;
	struct ornic_sge sge[30];
	const void *inl;
	uint32_t inl_len;
	struct ornic_path path;
	struct ornic_wqe_fast_reg reg;
	struct ornic_wqe_bind bind;
};

void world_init(struct world *w, uint32_t spin_us);
void world_fini(struct world *w);
/* world_run() - run turns until the engine is idle. Return: result of the last turn. */
int64_t world_run(struct world *w);
/* world_pass() - advance the clock, then run */
int64_t world_pass(struct world *w, uint64_t ns);
/* world_spend() - advance the clock within a turn; the turn keeps the time of its start */
void world_spend(uint64_t ns);
/* world_starve() - run a turn while other queues hold all packets. Return: its result. */
int64_t world_starve(struct world *w);
/* world_finish() - run, and advance from timer to timer until none is armed or @ns passed */
void world_finish(struct world *w, uint64_t ns);

/* dut_buf() - allocate guest memory */
uint64_t dut_buf(struct dut *d, uint64_t len);
uint8_t *dut_at(struct dut *d, uint64_t addr, uint64_t len);
/* dut_ring() - allocate a ring of @bytes bytes and its record, and set up the host's side */
void dut_ring(struct dut *d, struct umem *m, struct hostq *h, uint64_t bytes);
/* dut_key() - create a key for [@addr, @addr + @len); @pd NULL: the function's first PD */
uint32_t dut_key(struct dut *d, struct pd *pd, uint64_t addr, uint64_t len, uint32_t access);
/* dut_blank() - create a key that work requests fill; @pages for FAST_REG */
uint32_t dut_blank(struct dut *d, struct pd *pd, uint8_t kind, uint32_t pages);
/* dut_phys() - create a PHYS_ALL key */
uint32_t dut_phys(struct dut *d, uint32_t access);
/* dut_event() - get the next asynchronous event. Return: false if there is none. */
bool dut_event(struct dut *d, struct ornic_eqe *e);
void dut_gid(const struct dut *d, int index, uint8_t gid[16]);

void conn_init(struct conn *c, struct dut *d, const struct conn_opt *opt);
void conn_fini(struct conn *c);
/* conn_path() - set the path from @c to a port */
void conn_path(struct conn *c, const uint8_t mac[6], const uint8_t gid[16]);
/* conn_attr() - set all attributes of a connection except its path */
void conn_attr(struct conn *c, uint32_t dest_qpn, uint32_t sq_psn, uint32_t rq_psn);
void conn_rts(struct conn *c);
/* conn_pair() - connect two queue pairs with each other and bring them to RTS */
void conn_pair(struct conn *a, struct conn *b, uint32_t a_psn, uint32_t b_psn);

/* ends_new() - allocate two queue pairs in RESET, without buffers; @spin_us as world_init() */
struct ends *ends_new(const struct conn_opt *opt, uint32_t spin_us);
/* ends_buffers() - allocate a buffer of @len bytes and a key for each end */
void ends_buffers(struct ends *t, uint64_t len, uint32_t access);
/* ends_teardown() - free the struct ends in *@state; a teardown function of cmocka */
int ends_teardown(void **state);

/* wr_sge() - append a data segment */
void wr_sge(struct wr *wr, uint64_t addr, uint32_t len, uint32_t key);
/* conn_write_wr() - write a work request to the next slot. Return: its bytes. */
uint8_t *conn_write_wr(struct conn *c, const struct wr *wr);
/* conn_publish() - publish up to @index, and ring the doorbell if the posting rule requires it */
void conn_publish(struct conn *c, struct hostq *q, uint32_t index);
void conn_send(struct conn *c, const struct wr *wr);
void conn_recv(struct conn *c, uint64_t addr, uint32_t len, uint32_t key);
/* conn_recv_list() - post a receive of @n segments */
void conn_recv_list(struct conn *c, const struct ornic_sge *sge, uint16_t n);
struct ornic_rec *conn_rec(struct conn *c, const struct hostq *q);
/* conn_poll() - get the next completion of a CQ. Return: false if there is none. */
bool conn_poll(struct conn *c, struct hostq *cq, struct ornic_cqe *cqe);
/* conn_expect() - check the next completion */
void conn_expect(struct conn *c, struct hostq *cq, uint32_t index, uint8_t opcode,
		 uint8_t status);
/* conn_quiet() - check that there is no completion */
void conn_quiet(struct conn *c);

void fill(uint8_t *p, uint64_t len, uint32_t seed);
void check(const uint8_t *p, uint64_t len, uint32_t seed);

#endif /* UNIT_LIB_PAIR_H */
