/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Objects of the provider and the verbs that ornic.c puts into its operations.
 *
 * Verbs that return int return 0 or a positive errno; verbs that return a pointer return
 * NULL with errno on failure.
 *
 * Lock order: ornic_srq.resize; the lock of a CQ; the lock of an SQ, RQ or SRQ; arm_lock of the CQ,
 * which only a resize takes while it holds another lock.
 *
 * An application may call verbs while another thread waits for it:
 * - From ibv_start_poll() to ibv_end_poll() it holds the lock of the CQ.
 * - A destroy command waits until the application has acknowledged the events of the object.
 * Therefore verbs that create or destroy hold no lock during their commands. They share nothing
 * but the tables (qp_table.h), which need no lock. Destroy and reset take the lock of one CQ at a
 * time, to drop its entries. A thread that polls a CQ must end the poll before it resizes the CQ,
 * or destroys or resets a queue of it, as with other providers.
 */
#ifndef ORNIC_PROVIDER_ORNIC_H
#define ORNIC_PROVIDER_ORNIC_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/ilog.h>
#include <infiniband/driver.h>
#include <util/util.h>
#include <ornic/cq.h>
#include <ornic/qp.h>
#include <ornic/steer.h>
#include <ornic/wqe.h>

#include "abi.h"
#include "lock.h"
#include "qp_table.h"
#include "ring.h"

struct ornic_pd;

/*
 * Lower half of the resource_type with which the custom allocator of a parent domain is called. The
 * upper half is the driver ID (buf.c).
 */
enum ornic_res_type {
	ORNIC_RES_QP	= 1,
	ORNIC_RES_CQ	= 2,
	ORNIC_RES_SRQ	= 3,
};

/* Page-aligned, zeroed memory shared with the device. */
struct ornic_buf {
	void *addr;
	size_t bytes;
	struct ornic_pd *pd;		/* parent domain of the queue, or NULL */
	uint64_t resource_type;
	bool custom;			/* from the parent domain's allocator */
};

struct ornic_context {
	struct verbs_context ibv_ctx;
	void *db;			/* doorbell page */
	size_t db_bytes;
	struct ornic_uresp_alloc_ucontext limits;
	struct ornic_qp_table sends;	/* queue pairs, by the CQ of their sends */
	struct ornic_qp_table recvs;	/* queue pairs and work queues, by that of their receives */
	struct ornic_qp_table xrc_srqs;
	_Atomic uint32_t cq_resizes;	/* number of CQ resizes */
};

struct ornic_td {
	struct ibv_td ibv_td;
	_Atomic uint32_t users;		/* parent domains that use it */
};

/* A protection domain, or a parent domain that uses one. */
struct ornic_pd {
	struct ibv_pd ibv_pd;
	_Atomic uint32_t users;		/* parent domains; of a parent domain: buffers of queues */
	struct ornic_pd *on;		/* parent domain: its protection domain; else NULL */
	struct ornic_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* Device memory. */
struct ornic_dm {
	struct verbs_dm vdm;
	void *mem;
	size_t length;			/* bytes that the application requested */
	size_t mapped;			/* bytes of the mapping, whole pages */
};

struct ornic_ah {
	struct ibv_ah ibv_ah;
	struct ornic_path path;		/* dest_qpn and qkey come from the work request */
};

/* Ring and record of a CQ. */
struct ornic_cq_mem {
	struct ornic_rec *rec;
	struct ornic_cqe *ring;
	unsigned int log;
	struct ornic_buf buf;
};

/* A reading of the device clock and the system time. */
struct ornic_wall {
	struct ornic_uresp_query_device clocks;
	uint64_t taken_at;		/* ns of CLOCK_MONOTONIC before the reading */
};

struct ornic_cq {
	struct verbs_cq vcq;
	struct ornic_lock lock;		/* mem, index, entries of the ring */
	struct ornic_cq_mem mem;	/* a change needs both locks */
	_Atomic uint32_t index;	/* first entry that is not consumed; written under lock */
	uint32_t cqn;
	pthread_spinlock_t arm_lock;	/* arm, order of arm words */
	struct ornic_arm arm;
	struct ornic_cqe cur;		/* current entry of start_poll and next_poll */
	struct ornic_wall wall;		/* last reading, if timestamped; under lock */
};

/* A send or receive queue. Indices run free; slot = index & mask. */
struct ornic_wq {
	struct ornic_lock lock;		/* head, slots from head on, open */
	unsigned int stride;		/* log2 bytes of a slot */
	uint32_t entries;		/* slots; 0: no such queue */
	uint32_t max_sge;
	bool open;			/* the state allows to post; not for SRQs */
	_Atomic uint32_t head;		/* index of the next work request to post */
	void *ring;
	uint64_t *wr_id;		/* by slot */
	struct ornic_rec *rec;
	_Atomic uint32_t tail;		/* oldest that is not completed; under the CQ's lock */
};

/* Ring and record of an SRQ. */
struct ornic_srq_mem {
	struct ornic_rec *rec;
	void *ring;
	uint32_t entries;
	struct ornic_buf buf;
};

/* State of each id of an SRQ: free (in a linked list), posted, or spare. */
struct ornic_srq_ids {
	uint32_t *next;			/* by id: next free id, or ORNIC_ID_* */
	uint64_t *wr_id;		/* by id */
	uint32_t count;			/* number of ids */
};

/* wq.head is a free-running index; slot = head & mask, independent of the id. */
struct ornic_srq {
	struct verbs_srq vsrq;
	struct ornic_wq wq;		/* tail and wr_id are not used, see ids */
	struct ornic_srq_ids ids;	/* under wq.lock; wq.entries of them are not spare */
	uint32_t free;			/* first free id; under wq.lock */
	uint32_t posted;		/* number of posted ids; under wq.lock */
	uint32_t counted;		/* last CQ resize that counted it; under wq.lock */
	uint32_t srqn;
	struct ornic_buf buf;		/* ring and record */
	struct ornic_srq_mem *coming;	/* new ring during a resize, posted to as well; or NULL */
	pthread_mutex_t resize;		/* serialises resizes */
};

struct ornic_qp {
	struct verbs_qp vqp;
	struct ornic_wq sq;
	struct ornic_wq rq;
	uint32_t qpn;			/* handle: doorbells, work requests, completions */
	uint32_t max_inline;
	bool rss;			/* RSS: no queues and no entry in a table */
	/* Between wr_start and wr_complete, under the SQ lock: */
	int build_err;			/* first error of the batch, or 0 */
	uint32_t build_next;		/* index of the next work request */
	struct ornic_wqe_ctrl *build;	/* work request that is being built */
	void *build_data;		/* address of its data segments */
	struct ibv_qp_cap cap;
	struct ornic_buf buf;
};

/* Return true for the receiving end of an XRC connection, which has no queues. */
static inline bool ornic_is_target(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_XRC_RECV;
}

/* Return true for a queue pair that sends requests which the peer acknowledges. */
static inline bool ornic_is_reliable(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
}

/* Return log2 of the smallest power of two that is at least @n; n >= 1. */
static inline unsigned int ornic_log2_up(uint32_t n)
{
	return n > 1 ? ilog32_nz(n - 1) : 0;
}

static inline struct ornic_context *to_octx(struct ibv_context *ctx)
{
	return container_of(ctx, struct ornic_context, ibv_ctx.context);
}

static inline struct ornic_pd *to_opd(struct ibv_pd *pd)
{
	return container_of(pd, struct ornic_pd, ibv_pd);
}

static inline struct ornic_td *to_otd(struct ibv_td *td)
{
	return container_of(td, struct ornic_td, ibv_td);
}

/* Return true if one thread at a time uses the queues of @pd, which may be NULL. */
static inline bool ornic_pd_single(const struct ornic_pd *pd)
{
	return pd && pd->td;
}

static inline struct ornic_ah *to_oah(struct ibv_ah *ah)
{
	return container_of(ah, struct ornic_ah, ibv_ah);
}

static inline struct ornic_cq *to_ocq(struct ibv_cq *cq)
{
	return container_of(cq, struct ornic_cq, vcq.cq);
}

static inline struct ornic_cq *to_ocq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct ornic_cq, vcq.cq_ex);
}

static inline struct ornic_srq *to_osrq(struct ibv_srq *srq)
{
	return container_of(srq, struct ornic_srq, vsrq.srq);
}

static inline struct ornic_qp *to_oqp(struct ibv_qp *qp)
{
	return container_of(qp, struct ornic_qp, vqp.qp);
}

static inline struct ornic_qp *to_oqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct ornic_qp, vqp.qp_ex);
}

/*
 * Log why a verb is rejected; VERBS_LOG_LEVEL=1 shows it. The application gets only an
 * errno. Both functions return true if the caller must reject the verb.
 */
static inline bool ornic_exceeds(struct ornic_context *ctx, const char *what, uint32_t asked,
				 uint32_t limit)
{
	if (asked <= limit)
		return false;
	verbs_err(&ctx->ibv_ctx, "%s is %u, the limit is %u\n", what, asked, limit);
	return true;
}

static inline bool ornic_unsupported(struct ornic_context *ctx, const char *what, uint64_t asked,
				     uint64_t known)
{
	if (!(asked & ~known))
		return false;
	verbs_err(&ctx->ibv_ctx, "%s has unsupported bits 0x%" PRIx64 "\n", what, asked & ~known);
	return true;
}

/* ornic.c; exported for the tests, which open a device without sysfs. */
extern const struct verbs_device_ops ornic_dev_ops;

/* db.c */
int ornic_db_map(struct ornic_context *ctx, int cmd_fd);
void ornic_db_unmap(struct ornic_context *ctx);
void ornic_db_ring(struct ornic_context *ctx, enum ornic_db_kind kind, uint32_t number,
		   uint32_t value);

/* buf.c */
int ornic_buf_alloc_in(struct ornic_buf *buf, size_t bytes, struct ornic_pd *pd,
		       enum ornic_res_type type);
void ornic_buf_free(struct ornic_buf *buf);

/* query.c */
int ornic_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int ornic_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);

/* pd.c */
struct ibv_pd *ornic_alloc_pd(struct ibv_context *ctx);
int ornic_dealloc_pd(struct ibv_pd *pd);

/* dm.c */
struct ibv_dm *ornic_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int ornic_free_dm(struct ibv_dm *dm);
struct ibv_dm *ornic_import_dm(struct ibv_context *ctx, uint32_t handle);
void ornic_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *ornic_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t length,
			       unsigned int access);

/* import.c */
int ornic_query_context(struct ornic_context *ctx);
struct ibv_pd *ornic_import_pd(struct ibv_context *ctx, uint32_t handle);
void ornic_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *ornic_import_mr(struct ibv_pd *pd, uint32_t handle);
void ornic_unimport_mr(struct ibv_mr *mr);

/* parent_domain.c */
struct ibv_td *ornic_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int ornic_dealloc_td(struct ibv_td *td);
struct ibv_pd *ornic_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr);
void ornic_free_parent_domain(struct ornic_pd *pd);

/* mr.c */
struct ibv_mr *ornic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access);
struct ibv_mr *ornic_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access);
int ornic_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
int ornic_dereg_mr(struct verbs_mr *vmr);

/* mw.c */
struct ibv_mw *ornic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int ornic_dealloc_mw(struct ibv_mw *mw);
int ornic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* ah.c */
struct ibv_ah *ornic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int ornic_destroy_ah(struct ibv_ah *ah);

/* mcast.c */
int ornic_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int ornic_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* cq.c */
struct ibv_cq *ornic_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *ornic_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int ornic_destroy_cq(struct ibv_cq *cq);
int ornic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int ornic_arm_cq(struct ibv_cq *cq, int solicited_only);
int ornic_cq_mem_alloc(struct ornic_cq_mem *mem, uint32_t cqe, struct ornic_pd *pd);
void ornic_cq_event(struct ibv_cq *cq);
struct ornic_cqe *ornic_cq_unpolled(const struct ornic_cq *cq, uint32_t n);
void ornic_cq_drop_srq(struct ornic_cq *cq, uint32_t srqn);
void ornic_cq_drop_qp(struct ornic_cq *cq, const struct ornic_qp *qp, bool recv);

/* cq_resize.c */
int ornic_resize_cq(struct ibv_cq *cq, int cqe);

/* poll_cq.c */
int ornic_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
struct ornic_srq *ornic_cqe_xrc_srq(const struct ornic_cq *cq, const struct ornic_cqe *cqe);
void ornic_cq_set_reader(struct ornic_cq *cq, uint64_t wc_flags);

/* clock.c */
int ornic_clock_read(struct ornic_context *ctx, struct ornic_uresp_query_device *now);
int ornic_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
int ornic_wall_init(struct ornic_context *ctx, struct ornic_wall *w);
bool ornic_wall_is_old(const struct ornic_cq *cq);
void ornic_wall_refresh(struct ornic_cq *cq);
uint64_t ornic_wall_ns(struct ornic_cq *cq, uint64_t stamp);

/* flow.c */
struct ibv_flow *ornic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int ornic_destroy_flow(struct ibv_flow *flow);

/* qp.c */
struct ibv_qp *ornic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *ornic_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int ornic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int ornic_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
int ornic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr);
int ornic_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
int ornic_destroy_qp(struct ibv_qp *qp);
/* also for work queues (wq.c): */
int ornic_qp_rings(struct ornic_context *ctx, struct ornic_qp *qp, struct ornic_pd *pd,
		   enum ibv_qp_type type, struct ibv_qp_cap *cap);
void ornic_qp_describe(const struct ornic_qp *qp, struct ornic_ureq_create_qp *req);
int ornic_qp_enter(struct ornic_qp *qp);
void ornic_qp_leave(struct ornic_qp *qp);
void ornic_qp_reset(struct ornic_qp *qp);
void ornic_wq_set_open(struct ornic_wq *wq, bool open);
void ornic_qp_free(struct ornic_qp *qp);

/* srq.c */
struct ibv_srq *ornic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *ornic_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int ornic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int ornic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int ornic_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int ornic_destroy_srq(struct ibv_srq *srq);
int ornic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
bool ornic_srq_complete(struct ornic_srq *srq, uint32_t id, uint64_t *wr_id);
uint32_t ornic_srq_posted(struct ornic_srq *srq, uint32_t resize);
uint32_t ornic_srq_entries(uint32_t max_wr, unsigned int stride);
int ornic_srq_mem_alloc(struct ornic_srq_mem *mem, uint32_t entries, unsigned int stride,
			struct ornic_pd *pd);
int ornic_srq_ids_alloc(struct ornic_srq_ids *ids, uint32_t count);
void ornic_srq_ids_free(struct ornic_srq_ids *ids);
bool ornic_srq_use_ids(struct ornic_srq *srq, uint32_t entries);

/* srq_resize.c */
int ornic_resize_srq(struct ornic_srq *srq, const struct ibv_srq_attr *attr, int attr_mask);
void ornic_srq_post_coming(struct ornic_srq *srq, uint32_t old, uint32_t new);

/* wq.c */
struct ibv_wq *ornic_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr);
int ornic_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int ornic_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *ornic_create_rwq_ind_table(struct ibv_context *ctx,
						     struct ibv_rwq_ind_table_init_attr *attr);
int ornic_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/* rss.c */
struct ibv_qp *ornic_rss_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int ornic_rss_destroy(struct ornic_qp *qp);

/* xrc.c */
struct ibv_xrcd *ornic_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int ornic_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *ornic_create_target(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *ornic_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
int ornic_destroy_target(struct ibv_qp *qp);

/* qp_ex.c */
#define ORNIC_SEND_OPS_RC						\
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |		\
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |	\
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_FLUSH |	\
	 IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_LOCAL_INV |		\
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define ORNIC_SEND_OPS_UC						\
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |		\
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define ORNIC_SEND_OPS_XRC						\
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |		\
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |	\
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define ORNIC_SEND_OPS_UD						\
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

#define ORNIC_SEND_OPS_RAW	IBV_QP_EX_WITH_SEND

void ornic_qp_set_builders(struct ornic_qp *qp);

/* post_send.c, post_recv.c */
int ornic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int ornic_rq_post(struct ornic_context *ctx, struct ornic_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad_wr);
int ornic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
