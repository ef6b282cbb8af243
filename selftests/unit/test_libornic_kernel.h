/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the provider's unit tests: it answers the uverbs commands of libornic and records
 * their contents. A memfd is the doorbell page.
 */
#ifndef TEST_LIBORNIC_KERNEL_H
#define TEST_LIBORNIC_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ccan/array_size.h>

#include "ornic.h"

/* The last registration, other than by ibv_reg_mr(). */
struct fake_mr {
	uint64_t offset, length, iova;
	int access;
	uint32_t flags;
};

struct fake_kernel {
	int fail;			/* errno of the next command, once */
	unsigned int memory;		/* n: the n-th calloc or mmap from now on fails */
	int dontfork;			/* result of ibv_dontfork_range; negative: -1 and errno */
	unsigned int dofork;		/* calls */
	char log[256];			/* the last message */
	uint32_t qpn;			/* number of the next queue pair */
	uint32_t srqn;
	uint32_t cqn;
	struct ornic_uresp_query_device clocks;	/* answer of query_device */
	uint32_t queries;		/* number of queries */
	void (*on_query_device)(void);	/* during a query of the clocks */
	uint64_t monotonic_ns;		/* CLOCK_MONOTONIC */
	const char *fw_ver;		/* file in sysfs; NULL: there is none */
	bool keep_attr;			/* leave the caller's structure unchanged */
	uint8_t dmac[6];		/* address that create_ah resolves */
	struct ornic_uresp_query_dm dm;	/* device memory of another process */
	unsigned int dm_freed;
	uint32_t queried;		/* handle of the PD or device memory of the last query */
	unsigned int qps_destroyed;	/* destroy_qp commands */
	unsigned int wqs_destroyed;
	unsigned int srqs_destroyed;
	void (*on_calloc)(void);	/* during the next calloc */
	struct fake_mr mr;
	struct ornic_ureq_create_cq cq_req;
	struct ornic_ureq_resize_cq resize_req;
	struct ornic_uresp_resize_cq resized_at;
	struct ibv_moderate_cq moderate;
	struct ornic_ureq_create_qp qp_req;
	struct ibv_qp_cap qp_cap;
	struct ornic_ureq_create_rss rss_req;
	uint32_t rss_mask;		/* comp_mask of the same command */
	struct ornic_ureq_create_srq srq_req;
	struct ornic_ureq_modify_srq srq_modify_req;
	struct ibv_srq_attr srq_attr;	/* of the last create_srq or modify_srq */
	int srq_mask;
	struct ornic_ureq_modify_qp rate_req;
	uint32_t rate_kbps;
	void (*on_resize)(struct ibv_cq *cq);	/* the device changes rings */
	void (*on_srq_resize)(struct ibv_srq *srq);	/* same for SRQs, before success or error */
	void (*before_reset)(struct ibv_qp *qp); /* the device's last acts before RESET is done */
	void (*after_query)(struct ibv_qp *qp);	/* the answer of query_qp is on its way */
	void (*on_create_xsrq)(struct ibv_srq *srq);	/* an event could name it from now on */
	void (*on_destroy)(void);	/* while a command destroys a queue */
};

extern struct fake_kernel kernel;

/* As in compat.h, which tests do not include */
#ifdef ORNIC_LACKS_DRIVER_ID
#define RDMA_DRIVER_ORNIC	RDMA_DRIVER_UNKNOWN
#endif

/* The resource_type of ibv_alloc_parent_domain(3) for a type of queues */
#define RESOURCE_TYPE(code)	((uint64_t)RDMA_DRIVER_ORNIC << 32 | (code))

/* Spinlocks and mutexes of the provider that this thread took since locks_watch(). */
#define LOCKS_SEEN 16

struct fake_locks {
	unsigned int taken, held;
	const volatile void *order[LOCKS_SEEN];	/* the first ones taken */
	const volatile void *now[LOCKS_SEEN];	/* those held */
};

extern _Thread_local struct fake_locks locks;

void locks_watch(void);
bool lock_is_held(const volatile void *lock);

/* A clock of 2.5 ticks per microsecond that read 1000000 at second 50. */
#define CLOCKS ((struct ornic_uresp_query_device){			\
	.clock = 1000000, .clock_mask = UINT64_MAX,			\
	.system_ns = 50000000000, .clock_khz = 2500, .error_ns = 10 })

/* A context, a PD and one CQ; the tests create queue pairs of @type in RTS on top. */
struct rig {
	struct ornic_context *ctx;
	struct ibv_pd *pd;
	struct ornic_cq *cq;
	struct ornic_qp *qp;
	uint32_t cq_index;		/* the device's producer index of cq */
};

struct ibv_device *fake_device(void);
void rig_open(struct rig *rig, int cqe);
struct ornic_qp *rig_qp(struct rig *rig, enum ibv_qp_type type, struct ibv_qp_cap cap,
			uint64_t send_ops);
void rig_state(struct ornic_qp *qp, enum ibv_qp_state state);

/* Create a work queue, or an SRQ for XRC. Return: NULL and errno if the provider rejects it. */
struct ibv_wq *rig_wq(struct rig *rig, struct ornic_cq *cq);
struct ibv_srq *rig_xsrq(struct rig *rig);

/* Close everything; check that the provider freed all locks and mappings since rig_open(). */
void rig_close(struct rig *rig);

/* Return the last doorbell since the previous call, 0 if none. */
uint64_t rig_doorbell(struct rig *rig);

/* Write a completion into the rig's CQ as the device. */
void rig_complete(struct rig *rig, struct ornic_cqe cqe);

static inline struct ornic_cqe cqe_of(uint32_t qpn, uint32_t wqe_id, uint8_t opcode,
				      uint8_t status)
{
	return (struct ornic_cqe){
		.qpn = htole32(qpn), .wqe_id = htole32(wqe_id), .srqn = htole32(ORNIC_NONE),
		.opcode = opcode, .status = status,
	};
}

#endif
