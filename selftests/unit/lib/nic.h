/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A function without a PCI bus: guest memory, a device of the engine, and the host's side of its
 * rings. All objects are real. Only the admin commands of dev/ are replaced by the functions
 * here.
 */
#ifndef UNIT_LIB_NIC_H
#define UNIT_LIB_NIC_H

#include "guest.h"

#include "engine/engine.h"
#include "engine/mr.h"
#include "engine/qp.h"

#define NIC_VECTORS	4
/** NIC_RINGS - log2 entries of send and receive queues */
#define NIC_RINGS	4
#define NIC_SQ_STRIDE	10
#define NIC_RQ_STRIDE	6

/**
 * struct host_ring - the host's side of a ring
 * @ring:	entries
 * @rec:	doorbell record
 * @log:	log2 entries
 * @index:	next to post, or next to consume
 */
struct host_ring {
	uint64_t ring;
	uint64_t rec;
	uint8_t log;
	uint32_t index;
};

struct nic_eq {
	struct eq eq;
	struct host_ring host;
};

struct nic_cq {
	struct cq cq;
	struct host_ring host;
};

struct nic_qp {
	struct qp qp;
	struct host_ring sq;
	struct host_ring rq;
};

/**
 * struct nic - a function
 * @guest:	its memory
 * @dev:	the device
 * @pd:		a protection domain
 * @irqs:	interrupts per vector
 * @fatals:	number of fatal errors; each one stops the function
 * @fatal:	syndrome
 */
struct nic {
	struct guest guest;
	struct device dev;
	struct pd pd;
	unsigned int irqs[NIC_VECTORS];
	unsigned int fatals;
	uint32_t fatal;
};

void nic_init(struct nic *n, struct engine *e, const uint8_t mac[6]);
void nic_fini(struct nic *n);

struct nic_eq *nic_eq_new(struct nic *n, uint8_t log, uint16_t vector);
struct nic_cq *nic_cq_new(struct nic *n, uint8_t log, struct nic_eq *eq, uint8_t flags);
/* nic_cq_del() - do the work of a destroy command */
void nic_cq_del(struct nic *n, struct nic_cq *cq);
/* nic_qp_new() - create a queue pair in RESET, in the PD n->pd */
struct nic_qp *nic_qp_new(struct nic *n, uint8_t type, uint32_t flags, struct nic_cq *scq,
			  struct nic_cq *rcq);
/* nic_qp_rts() - move through INIT and RTR to RTS with unchanged attributes */
void nic_qp_rts(struct nic_qp *qp);

/* nic_region() - create a key for DMA addresses [@addr, @addr + @len) with iova @addr */
uint32_t nic_region(struct nic *n, uint32_t pd, uint32_t access, uint64_t addr, uint64_t len);
/* nic_region_pages() - create a key for @pages with iova @addr */
uint32_t nic_region_pages(struct nic *n, uint32_t pd, uint32_t access,
			  const struct ornic_pages *pages, uint64_t addr, uint64_t len);
uint32_t nic_phys_all(struct nic *n, uint32_t access);

/* nic_rec() - return a doorbell record */
struct ornic_rec *nic_rec(struct nic *n, const struct host_ring *r);
/* nic_next() - consume an entry of a CQ or EQ; NULL if there is none */
void *nic_next(struct nic *n, struct host_ring *r);
/* nic_consumed() - publish the consumer index */
void nic_consumed(struct nic *n, struct host_ring *r);
/* nic_arm() - arm at the host's index */
void nic_arm(struct nic *n, struct host_ring *r, uint8_t sn, enum ornic_arm_type type);

/* nic_sqe() - return the next send slot; its control segment lacks only count */
struct ornic_wqe_ctrl *nic_sqe(struct nic *n, struct nic_qp *qp, uint8_t opcode, uint8_t flags);
/* nic_rqe() - post a receive of @len bytes at @addr */
void nic_rqe(struct nic *n, struct nic_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey);
/* nic_ring() - publish the sends so far and ring the doorbell */
void nic_ring(struct nic *n, struct nic_qp *qp);
/* nic_turns() - run turns of the engine until only timers are left */
void nic_turns(struct engine *e);

#endif /* UNIT_LIB_NIC_H */
