/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of the RDMA driver and what its files offer one another.
 *
 * Every object stands for one in the device, which keeps the truth: the driver
 * remembers only what it needs to name the object, to find the user of an event
 * and, for queues of the kernel, to post and poll.
 *
 * Lock order, outermost first:
 *
 *	dma_resv	of a DMA buffer, around making and ending a key for it; its
 *			exporter's, process context
 *	qp->mutex	one modify at a time; process context
 *	cq->resize	one resize at a time; process context
 *	srq->modify	one modify at a time; process context
 *	pd->windows_lock	memory windows of a domain; process context
 *	cq->comp_lock	around the completion handler of the consumer
 *	cq->lock	of one CQ at a time
 *	wq->lock	of one queue at a time
 *
 * A verb never calls its consumer back: handlers run from events and from
 * dev->wq, with nothing but comp_lock held.
 */
#ifndef ORNIC_IB_H
#define ORNIC_IB_H

#include <linux/cache.h>
#include <linux/mm.h>
#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>
#include <linux/ornic/hw/dm.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/pd.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/srq.h>
#include <linux/ornic/hw/stats.h>
#include <linux/ornic/hw/steer.h>
#include <linux/ornic/hw/wqe.h>
#include <rdma/ornic-abi.h>

/* The driver itself, where an object names its owner or its doorbell page. */
#define ORNIC_IB_DRIVER		0

/* The port that this driver uses: the one of the netdev. */
#define ORNIC_IB_PORT		1

/**
 * struct ornic_ib_limits - limits of Identify, in CPU order, within the format's
 * @page_sizes: usable page sizes of page lists, a bit each
 * @log_sq: log2 of the most send entries
 * @log_rq: log2 of the most receive entries
 * @log_srq: log2 of the most entries of a shared receive queue
 * @log_cq: log2 of the most completion entries
 * @sq_stride: log2 of the largest send entry
 * @rq_stride: log2 of the largest receive entry
 * @send_sge: SGEs of a send work request, whatever the queue pair's type
 * @recv_sge: SGEs of a receive work request
 * @srq_sge: SGEs of an entry of a shared receive queue
 * @max_inline: inline bytes, whatever the queue pair's type
 * @rss_table: work queues of an RSS group, a power of two
 * @rss_fields: ORNIC_RSS_* that can be hashed
 * @max_cqe: completions that a user may ask a CQ to hold: all of the ring, since
 *	neither this driver nor the provider lets host_index lag (ORN-RNG-13)
 * @read_sge: SGEs of an RDMA READ
 * @rd_atomic_init: READs and atomics that a queue pair can have outstanding
 * @rd_atomic_resp: those that it can be asked for
 * @fast_reg_pages: pages of a fast registration, 0 without
 * @dm_bytes: device memory, 0 without
 */
struct ornic_ib_limits {
	unsigned long page_sizes;
	u8 log_sq;
	u8 log_rq;
	u8 log_srq;
	u8 log_cq;
	u8 sq_stride;
	u8 rq_stride;
	u16 send_sge;
	u16 recv_sge;
	u16 srq_sge;
	u16 max_inline;
	u32 rss_table;
	u32 rss_fields;
	u32 max_cqe;
	u16 read_sge;
	u8 rd_atomic_init;
	u8 rd_atomic_resp;
	u32 fast_reg_pages;
	u64 dm_bytes;
};

/**
 * struct ornic_ib_stats - the counters of one scope
 * @descs: what ib_core shows, one per counter
 * @index: position of each among the device's entries of this scope
 * @count: how many of them
 * @span: entries of this scope in the device
 */
struct ornic_ib_stats {
	struct rdma_stat_desc *descs;
	u32 *index;
	u32 count;
	u32 span;
};

/**
 * struct ornic_ib_dev - an RDMA device
 * @ibdev: what ib_core knows
 * @odev: what ornic.ko offers
 * @lim: limits
 * @nb: asynchronous events
 * @wq: calls completion handlers of CQs that the device no longer serves
 * @qps: queue pairs by handle, for events
 * @cqs: completion queues by number, for events
 * @srqs: shared receive queues by number, for events
 * @data_in_order: the transport places the data of a message in address order
 * @registered: ib_core takes port events
 * @port_event: the last event of the port, 0 before the first
 * @dead: the device died; completions are made by soft_flush.c
 * @port_stats: counters of the port
 * @device_stats: counters of the device
 * @qp_stats: counters of a counter set
 * @qp_to_port: where in @port_stats each of them is
 * @qp_before: what all counter sets had counted when this driver came
 */
struct ornic_ib_dev {
	struct ib_device ibdev;
	struct ornic_dev *odev;
	struct ornic_ib_limits lim;
	struct notifier_block nb;
	struct workqueue_struct *wq;
	struct xarray qps;
	struct xarray cqs;
	struct xarray srqs;
	bool data_in_order;
	bool registered;
	unsigned long port_event;
	bool dead;
	struct ornic_ib_stats port_stats;
	struct ornic_ib_stats device_stats;
	struct ornic_ib_stats qp_stats;
	u32 *qp_to_port;
	__le64 *qp_before;
};

/**
 * struct ornic_ib_ref - keeps an object while an event is delivered to its user
 * @users: the object itself and each delivery
 * @idle: completes when the last of them is gone
 */
struct ornic_ib_ref {
	refcount_t users;
	struct completion idle;
};

/**
 * struct ornic_ib_ucontext - a process
 * @ibucontext: ib_core's part
 * @dbpage: index of its doorbell page; also its name as owner of objects
 * @caps: ORNIC_UCONTEXT_CAP_* of its provider, and bits that this driver does not know
 * @db_entry: mapping of that page, which owns it
 */
struct ornic_ib_ucontext {
	struct ib_ucontext ibucontext;
	u32 dbpage;
	u32 caps;
	struct rdma_user_mmap_entry *db_entry;
};

/**
 * struct ornic_ib_map - something of a BAR that a process can map
 * @rdma_entry: ib_core's part
 * @phys: where it is
 * @size: bytes
 * @combine: stores may be merged and reordered (ORN-DM-10)
 * @free: called when neither the process nor a mapping needs it any more
 */
struct ornic_ib_map {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t phys;
	size_t size;
	bool combine;
	void (*free)(struct ornic_ib_dev *dev, struct ornic_ib_map *map);
};

/**
 * struct ornic_ib_pd - protection domain
 * @ibpd: ib_core's part
 * @pdn: number in the device
 * @windows_lock: held for writing to change @windows; for reading while a region is deregistered
 * @windows: memory windows, any of which may be bound to a region of the domain
 */
struct ornic_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
	struct rw_semaphore windows_lock;	/* see above */
	u32 windows;
};

/* XRC domain. */
struct ornic_ib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

/* Address handle: the address vector as a work request carries it. */
struct ornic_ib_ah {
	struct ib_ah ibah;
	struct ornic_path path;
};

/**
 * struct ornic_ib_ubuf - pinned memory of a process
 * @umem: the memory; NULL when nothing is pinned
 * @shift: log2 of the page size that the device sees
 * @first: where in its first page the memory starts
 */
struct ornic_ib_ubuf {
	struct ib_umem *umem;
	u8 shift;
	u64 first;
};

/**
 * struct ornic_ib_kbuf - coherent memory for the queues of the kernel, page by page
 * @cpu: addresses of the pages; NULL without memory
 * @dma: the same for the device
 * @pages: how many they are
 *
 * Entries and records are aligned to their size, so none lies in two pages.
 */
struct ornic_ib_kbuf {
	void **cpu;
	dma_addr_t *dma;
	u32 pages;
};

static inline void *ornic_ib_kbuf_at(const struct ornic_ib_kbuf *kbuf, size_t offset)
{
	return kbuf->cpu[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

static inline u64 ornic_ib_kbuf_dma(const struct ornic_ib_kbuf *kbuf, size_t offset)
{
	return kbuf->dma[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

/**
 * ornic_ib_entry() - address of the entry of a free-running index
 * @cpu: pages of the buffer
 * @at: where the ring begins in it
 * @index: free-running index
 * @log: log2 of the ring's entries
 * @stride: log2 of an entry's bytes
 */
static inline void *ornic_ib_entry(void *const *cpu, size_t at, u32 index, u8 log, u8 stride)
{
	size_t offset = at + ((size_t)(index & (BIT(log) - 1)) << stride);

	return cpu[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

/* One array of a page list. */
struct ornic_ib_leaf {
	__le64 *entries;
	dma_addr_t dma;
};

/**
 * struct ornic_ib_pagelist - part of an ornic_ib_ubuf or ornic_ib_kbuf as the device reads it
 * @desc: descriptor for the command
 * @leaf: arrays of page addresses
 * @leaves: how many of them
 * @top: level 2: addresses of the arrays
 *
 * Needed until the command that carries it completed (ORN-MEM-1).
 */
struct ornic_ib_pagelist {
	struct ornic_pages desc;
	struct ornic_ib_leaf *leaf;
	u32 leaves;
	struct ornic_ib_leaf top;
};

/**
 * struct ornic_ib_mr - memory region
 * @ibmr: ib_core's part
 * @ubuf: memory of a process
 * @access: IB_ACCESS_*, as asked for
 * @virt: address that the process uses for its first byte
 * @list: addresses of the pages to register; kernel regions (fast_reg.c) only
 * @list_dma: the same for the device, which takes one block of memory
 * @max_pages: room in @list
 * @npages: entries of @list
 */
struct ornic_ib_mr {
	struct ib_mr ibmr;
	struct ornic_ib_ubuf ubuf;
	int access;
	u64 virt;
	__le64 *list;
	dma_addr_t list_dma;
	u32 max_pages;
	u32 npages;
};

/* Memory window: its key says it all. */
struct ornic_ib_mw {
	struct ib_mw ibmw;
};

/**
 * struct ornic_ib_ring - ring and record of a queue, for a command
 * @log: log2 of the entries
 * @stride: log2 of an entry's bytes
 * @ubuf: both, of a process
 * @kbuf: both, of the kernel
 * @list: page list of the ring
 * @pages: descriptor of the ring
 * @record: DMA address of the record
 */
struct ornic_ib_ring {
	u8 log;
	u8 stride;
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_pagelist list;
	struct ornic_pages pages;
	__le64 record;
};

/**
 * struct ornic_ib_cq - completion queue
 * @ibcq: ib_core's part
 * @comp: delivery of completion events
 * @ref: keeps it during events
 * @cqn: number in the device
 * @resize: one resize at a time
 * @log_entries: log2 of its entries
 * @ubuf: ring and record of a process
 * @kbuf: ring and record of the kernel; what follows is for these only
 * @rec: doorbell record
 * @qps: queue pairs that complete here, by handle; looked up under @lock
 * @soft: some of them are not served by the device any more
 * @broken: none of them is
 * @comp_lock: protects the completion handler from running twice at a time
 * @kick: runs the completion handler for completions made by soft_flush.c
 * @lock: protects what follows, the entries of the ring, where they are, and the
 *	consumer index of every work queue that completes here
 * @index: next entry to consume
 * @arm: arming state
 * @closed: it is being destroyed: not armed any more, since its number may soon be another's
 * @last: queue pair of the last entry that was polled, since the next is often of the same; NULL
 *	or in @qps
 *
 * Posting looks at @soft, so that is not in the cache line that polling writes.
 */
struct ornic_ib_cq {
	struct ib_cq ibcq;
	struct ornic_comp comp;
	struct ornic_ib_ref ref;
	u32 cqn;
	struct mutex resize;	/* see above */
	u8 log_entries;
	struct ornic_ib_ubuf ubuf;

	struct ornic_ib_kbuf kbuf;
	struct ornic_rec *rec;
	struct xarray qps;
	bool soft;
	bool broken;
	spinlock_t comp_lock;	/* see above */
	struct work_struct kick;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* see above */
	u32 index;
	struct ornic_arm arm;
	bool closed;
	struct ornic_ib_qp *last;
};

/**
 * struct ornic_ib_wq - send or receive queue of the kernel
 * @cpu: pages of the buffer in which the ring lies
 * @at: where it begins there
 * @rec: doorbell record
 * @wr_id: the consumer's id of each entry
 * @log: log2 of the entries
 * @stride: log2 of an entry's bytes
 * @max_sge: SGEs of a work request
 * @max_inline: inline bytes of a work request
 * @lock: protects posting: @prod, the entries and @wr_id up to it
 * @prod: next entry to post; read without lock by polling
 * @cons: oldest entry not completed; written under the lock of the CQ
 *
 * What posting writes and what polling writes lie in cache lines of their own: they run on
 * different processors.
 */
struct ornic_ib_wq {
	void **cpu;
	size_t at;
	struct ornic_rec *rec;
	u64 *wr_id;
	u8 log;
	u8 stride;
	u16 max_sge;
	u16 max_inline;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* see above */
	u32 prod;

	u32 cons ____cacheline_aligned_in_smp;
};

/* The entry of a free-running index. */
static inline void *ornic_ib_wqe(const struct ornic_ib_wq *wq, u32 index)
{
	return ornic_ib_entry(wq->cpu, wq->at, index, wq->log, wq->stride);
}

/**
 * struct ornic_ib_srq - shared receive queue
 * @ibsrq: ib_core's part
 * @ref: keeps it during events
 * @srqn: number in the device
 * @max_wr: entries, as given to the user; under @modify
 * @max_sge: SGEs of an entry, as given to the user
 * @modify: one modify at a time; process context
 * @ubuf: ring and record of a process
 * @kbuf: ring and record of the kernel; what follows is for these only, except @wq.log
 *	and @wq.stride
 * @wq: the ring, whose place changes under its lock; wr_id goes by id
 * @next: by id: the next free one, or that it is posted, or spare; under the lock of @wq
 * @ids: how many @next and wr_id have; as many as the ring has entries are not spare
 * @free: first free id; under the lock of @wq
 * @coming: a ring that the device is about to go over to, NULL without; under the lock of @wq
 */
struct ornic_ib_srq {
	struct ib_srq ibsrq;
	struct ornic_ib_ref ref;
	u32 srqn;
	u32 max_wr;
	u32 max_sge;
	struct mutex modify;	/* see above */
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_wq wq;
	u32 *next;
	u32 ids;
	u32 free;
	struct ornic_ib_ring *coming;
};

/**
 * struct ornic_ib_geom - rings of a queue pair
 * @sq_log: log2 of the send entries, ORNIC_NO_RING without
 * @sq_stride: log2 of a send entry's bytes
 * @rq_log: log2 of the receive entries, ORNIC_NO_RING without
 * @rq_stride: log2 of a receive entry's bytes
 */
struct ornic_ib_geom {
	u8 sq_log;
	u8 sq_stride;
	u8 rq_log;
	u8 rq_stride;
};

#define ORNIC_IB_QP_LAST_WQE	0

/**
 * struct ornic_ib_qp - queue pair
 * @ibqp: ib_core's part; its qp_num is the number on the wire
 * @ref: keeps it during events
 * @qpn: handle in the device; differs from qp_num for the GSI
 * @mutex: protects @dest_qpn, @members and the order of transitions
 * @state: state that the last modify asked for; the device may be in SQE or ERR
 * @dead: the device stopped serving it without flushing (ORN-QP-22)
 * @told: bit ORNIC_IB_QP_LAST_WQE: the event came since it left RESET
 * @dest_qpn: remote queue pair, connected ones
 * @members: multicast groups it is in
 * @cap: capabilities as given to the user
 * @rss: it has no queues: an RSS group, whose number is @qpn
 * @wq: the work queue that it stands behind, NULL without
 * @sig_all: every send completes with an entry
 * @geom: its rings
 * @ubuf: rings and records of a process
 * @kbuf: rings and records of the kernel
 * @sq: send queue of the kernel
 * @rq: receive queue of the kernel
 */
struct ornic_ib_qp {
	struct ib_qp ibqp;
	struct ornic_ib_ref ref;
	u32 qpn;
	struct mutex mutex;	/* see above */
	enum ib_qp_state state;
	bool dead;
	unsigned long told;
	u32 dest_qpn;
	struct list_head members;
	struct ib_qp_cap cap;
	bool rss;
	struct ib_wq *wq;
	bool sig_all;
	struct ornic_ib_geom geom;
	struct ornic_ib_ubuf ubuf;
	struct ornic_ib_kbuf kbuf;
	struct ornic_ib_wq sq;
	struct ornic_ib_wq rq;
};

static inline struct ornic_ib_dev *to_oib(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ornic_ib_dev, ibdev);
}

static inline struct ornic_ib_ucontext *to_oucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct ornic_ib_ucontext, ibucontext);
}

static inline struct ornic_ib_pd *to_opd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct ornic_ib_pd, ibpd);
}

static inline struct ornic_ib_ah *to_oah(struct ib_ah *ibah)
{
	return container_of(ibah, struct ornic_ib_ah, ibah);
}

static inline struct ornic_ib_mr *to_omr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct ornic_ib_mr, ibmr);
}

static inline struct ornic_ib_cq *to_ocq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct ornic_ib_cq, ibcq);
}

static inline struct ornic_ib_qp *to_oqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct ornic_ib_qp, ibqp);
}

static inline struct ornic_ib_srq *to_osrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct ornic_ib_srq, ibsrq);
}

/* An end of an XRC connection: it has no receive queue; the target has no queue at all. */
static inline bool ornic_ib_is_xrc(enum ib_qp_type type)
{
	return type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
}

/* A queue pair with one peer, whose work requests carry no address vector. */
static inline bool ornic_ib_connected(enum ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_XRC_INI;
}

static inline struct device *ornic_ib_dma(struct ornic_ib_dev *dev)
{
	return &dev->odev->pdev->dev;
}

/* The process on whose behalf a verb runs, NULL for the kernel. */
static inline struct ornic_ib_ucontext *ornic_ib_caller(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct ornic_ib_ucontext, ibucontext);
}

/* Doorbell page of the caller; also its id as owner of objects. */
static inline u32 ornic_ib_caller_page(struct ib_udata *udata)
{
	struct ornic_ib_ucontext *uctx = ornic_ib_caller(udata);

	return uctx ? uctx->dbpage : ORNIC_IB_DRIVER;
}

/* cmd.c */
int ornic_ib_number_error(struct ornic_ib_dev *dev, int ret);
int ornic_ib_cmd_pd_create(struct ornic_ib_dev *dev, u32 owner, u32 *pdn);
void ornic_ib_cmd_pd_destroy(struct ornic_ib_dev *dev, u32 pdn);
int ornic_ib_cmd_xrcd_create(struct ornic_ib_dev *dev, u32 owner, u32 *xrcdn);
void ornic_ib_cmd_xrcd_destroy(struct ornic_ib_dev *dev, u32 xrcdn);
int ornic_ib_cmd_key_create(struct ornic_ib_dev *dev, const struct ornic_key_create_cmd *in,
			    u32 *key);
int ornic_ib_cmd_key_modify(struct ornic_ib_dev *dev, u32 key,
			    const struct ornic_key_modify_cmd *in);
void ornic_ib_cmd_key_destroy(struct ornic_ib_dev *dev, u32 key);
int ornic_ib_cmd_region_destroy(struct ornic_ib_dev *dev, u32 key);
int ornic_ib_cmd_clock_read(struct ornic_ib_dev *dev, struct ornic_clock_rsp *out);
int ornic_ib_cmd_dm_create(struct ornic_ib_dev *dev, const struct ornic_dm_create_cmd *in,
			   struct ornic_dm_create_rsp *out, u32 *number);
void ornic_ib_cmd_dm_destroy(struct ornic_ib_dev *dev, u32 number);
int ornic_ib_cmd_cq_create(struct ornic_ib_dev *dev, const struct ornic_cq_create_cmd *in,
			   u32 *cqn);
int ornic_ib_cmd_cq_modify(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_moderate_cmd *in);
int ornic_ib_cmd_cq_resize(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_cq_resize_cmd *in,
			   struct ornic_cq_resize_rsp *out);
void ornic_ib_cmd_cq_destroy(struct ornic_ib_dev *dev, u32 cqn);
int ornic_ib_cmd_qp_create(struct ornic_ib_dev *dev, const struct ornic_qp_create_cmd *in,
			   u32 *qpn);
int ornic_ib_cmd_qp_modify(struct ornic_ib_dev *dev, u32 qpn, const struct ornic_qp_modify_cmd *in);
int ornic_ib_cmd_qp_query(struct ornic_ib_dev *dev, u32 qpn, struct ornic_qp_query_rsp *out);
void ornic_ib_cmd_qp_destroy(struct ornic_ib_dev *dev, u32 qpn);
int ornic_ib_cmd_srq_create(struct ornic_ib_dev *dev, const struct ornic_srq_create_cmd *in,
			    u32 *srqn);
int ornic_ib_cmd_srq_modify(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_modify_cmd *in);
int ornic_ib_cmd_srq_resize(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_resize_cmd *in);
int ornic_ib_cmd_srq_query(struct ornic_ib_dev *dev, u32 srqn, struct ornic_srq_query_rsp *out);
void ornic_ib_cmd_srq_destroy(struct ornic_ib_dev *dev, u32 srqn);
int ornic_ib_cmd_rule_create(struct ornic_ib_dev *dev, const struct ornic_rule_cmd *in, u32 *rule);
void ornic_ib_cmd_rule_destroy(struct ornic_ib_dev *dev, u32 rule);
int ornic_ib_cmd_rss_create(struct ornic_ib_dev *dev, const struct ornic_rss_create_cmd *in,
			    u32 *group);
void ornic_ib_cmd_rss_destroy(struct ornic_ib_dev *dev, u32 group);
int ornic_ib_cmd_set_gid(struct ornic_ib_dev *dev, const struct ornic_gid_entry *in);
int ornic_ib_cmd_port_query(struct ornic_ib_dev *dev, u32 port, struct ornic_identify_port *out);
int ornic_ib_cmd_transport(struct ornic_ib_dev *dev, u16 index,
			   struct ornic_identify_transport *out);
int ornic_ib_cmd_stat_names(struct ornic_ib_dev *dev, u32 offset, struct ornic_stat_name *names,
			    u32 count);
int ornic_ib_cmd_stat_read(struct ornic_ib_dev *dev, const struct ornic_stat_read_cmd *in,
			   __le64 *values);
int ornic_ib_cmd_counter_create(struct ornic_ib_dev *dev, u32 *number);
void ornic_ib_cmd_counter_destroy(struct ornic_ib_dev *dev, u32 number);
int ornic_ib_cmd_cq_query(struct ornic_ib_dev *dev, u32 cqn, struct ornic_cq_query_rsp *out);
int ornic_ib_cmd_key_query(struct ornic_ib_dev *dev, u32 key, struct ornic_key_query_rsp *out);

/* event.c */
void ornic_ib_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
				unsigned long event);
void ornic_ib_ref_init(struct ornic_ib_ref *ref);
void ornic_ib_ref_drain(struct ornic_ib_ref *ref);
int ornic_ib_event(struct notifier_block *nb, unsigned long type, void *data);

/* query.c */
int ornic_ib_read_limits(struct ornic_ib_dev *dev);
int ornic_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			  struct ib_udata *udata);
int ornic_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int ornic_ib_query_port_speed(struct ib_device *ibdev, u32 port_num, u64 *speed);
int ornic_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int ornic_ib_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm);
enum rdma_link_layer ornic_ib_get_link_layer(struct ib_device *ibdev, u32 port);
void ornic_ib_get_dev_fw_str(struct ib_device *ibdev, char *str);

/* ucontext.c */
void ornic_ib_describe_ucontext(struct ornic_ib_ucontext *uctx,
				struct ornic_uresp_alloc_ucontext *resp);
int ornic_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void ornic_ib_dealloc_ucontext(struct ib_ucontext *ibucontext);
void ornic_ib_disassociate_ucontext(struct ib_ucontext *ibucontext);

/* mmap.c */
int ornic_ib_db_map(struct ornic_ib_ucontext *uctx);
void ornic_ib_db_describe(struct ornic_ib_ucontext *uctx, struct ornic_uresp_alloc_ucontext *resp);
int ornic_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void ornic_ib_mmap_free(struct rdma_user_mmap_entry *entry);

/* dm.c */
extern const struct uapi_definition ornic_ib_dm_defs[];
struct ib_dm *ornic_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
				struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int ornic_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *ornic_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				 struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs);

/* pd.c */
int ornic_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int ornic_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* xrcd.c */
int ornic_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int ornic_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* import.c */
extern const struct uapi_definition ornic_ib_import_defs[];

int ornic_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs);

/* gid.c */
int ornic_ib_add_gid(const struct ib_gid_attr *attr, void **context);
int ornic_ib_del_gid(const struct ib_gid_attr *attr, void **context);

/* ah.c */
int ornic_ib_path_fill(struct ornic_path *path, const struct rdma_ah_attr *attr);
int ornic_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int ornic_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

/* pagelist.c */
int ornic_ib_ubuf_pin(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, u64 addr, u64 size,
		      u64 iova, int access);
int ornic_ib_ubuf_take(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf,
		       struct ib_umem *umem, u64 iova);
void ornic_ib_ubuf_unpin(struct ornic_ib_ubuf *ubuf);
int ornic_ib_pagelist_build(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			    const struct ornic_ib_ubuf *ubuf, u64 offset, u64 bytes);
void ornic_ib_pagelist_free(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list);
int ornic_ib_ubuf_addr(const struct ornic_ib_ubuf *ubuf, u64 offset, __le64 *addr);
int ornic_ib_kbuf_alloc(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf, size_t size);
void ornic_ib_kbuf_free(struct ornic_ib_dev *dev, struct ornic_ib_kbuf *kbuf);
int ornic_ib_pagelist_kernel(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			     const struct ornic_ib_kbuf *kbuf, size_t offset, size_t bytes);

/* ring.c */
static inline size_t ornic_ib_ring_bytes(const struct ornic_ib_ring *ring)
{
	return (size_t)1 << (ring->log + ring->stride);
}

/* The record of a ring of the kernel. */
static inline struct ornic_rec *ornic_ib_ring_rec(const struct ornic_ib_ring *ring)
{
	return ornic_ib_kbuf_at(&ring->kbuf, ornic_ib_ring_bytes(ring));
}

int ornic_ib_ring_pin(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr);
int ornic_ib_ring_alloc(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring);
void ornic_ib_ring_free(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring);

/* mr.c */
u32 ornic_ib_remote_rights(const struct ornic_ib_dev *dev);
int ornic_ib_access(const struct ornic_ib_dev *dev, int access, __le32 *out);
int ornic_ib_mr_create(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr,
		       const struct ornic_key_create_cmd *cmd);
struct ib_mr *ornic_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *ornic_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
				   int access, struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *ornic_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt,
					  int fd, int access, struct ib_dmah *dmah,
					  struct uverbs_attr_bundle *attrs);
int ornic_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* dmabuf.c */
int ornic_ib_dmabuf_pin_and_lock(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, int fd,
				 u64 offset, u64 size, u64 iova, int access);
void ornic_ib_dmabuf_unlock(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, bool made);
void ornic_ib_dmabuf_key_destroy(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr);

/* persist.c */
int ornic_ib_persistent(const struct ornic_ib_ubuf *ubuf, int access);

/* rereg.c */
struct ib_mr *ornic_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				     u64 virt, int access, struct ib_pd *pd,
				     struct ib_udata *udata);

/* fast_reg.c */
struct ib_mr *ornic_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int ornic_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset);
void ornic_ib_fast_reg_free(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr);
int ornic_ib_put_fast_reg(const struct ornic_ib_dev *dev, struct ornic_wqe_fast_reg *seg,
			  const struct ib_reg_wr *wr);

/* mw.c */
int ornic_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int ornic_ib_dealloc_mw(struct ib_mw *ibmw);

#define ORNIC_IB_CQE_LOG	6	/* log2 of ORNIC_ENTRY_BYTES */

static inline struct ornic_cqe *ornic_ib_cqe(const struct ornic_ib_cq *cq, u32 index)
{
	return ornic_ib_entry(cq->kbuf.cpu, 0, index, cq->log_entries, ORNIC_IB_CQE_LOG);
}

/* cq.c */
int ornic_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs);
int ornic_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int ornic_ib_pre_destroy_cq(struct ib_cq *ibcq);
void ornic_ib_post_destroy_cq(struct ib_cq *ibcq);
int ornic_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int ornic_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int ornic_ib_cq_user_ring(struct ornic_ib_dev *dev, struct ornic_ib_ring *ring, u64 addr,
			  u8 log_entries, u32 entries);
void ornic_ib_cq_call(struct ornic_ib_cq *cq);
void ornic_ib_cq_drop(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);
void ornic_ib_cq_forget(struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);

/* poll_cq.c */
bool ornic_ib_cq_ready(const struct ornic_ib_cq *cq);
int ornic_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int ornic_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* cq_resize.c */
int ornic_ib_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata);

/* clock.c */
int ornic_ib_clock_read(struct ornic_ib_dev *dev, struct ornic_uresp_query_device *resp);

/* event.c */
void ornic_ib_soft_last_wqe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);

/* soft_flush.c */
bool ornic_ib_is_soft(const struct ornic_ib_cq *cq, const struct ornic_ib_qp *qp);
void ornic_ib_soft_device(struct ornic_ib_dev *dev);
void ornic_ib_soft_cq(struct ornic_ib_dev *dev, struct ornic_ib_cq *cq);
void ornic_ib_soft_qp(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
void ornic_ib_soft_posted(struct ornic_ib_qp *qp, struct ib_cq *ibcq);
bool ornic_ib_soft_pending(struct ornic_ib_cq *cq);
int ornic_ib_soft_poll(struct ornic_ib_cq *cq, int num_entries, struct ib_wc *wc);
void ornic_ib_soft_kick(struct work_struct *work);

/* srq_resize.c */
int ornic_ib_srq_resize(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq,
			struct ib_srq_attr *attr, bool limit, struct ib_udata *udata);
void ornic_ib_srq_post_coming(struct ornic_ib_dev *dev, struct ornic_ib_srq *srq, u32 first);

/* srq.c */
u8 ornic_ib_srq_log(u32 max_wr);
bool ornic_ib_srq_use_ids(struct ornic_ib_srq *srq, u32 entries);
void ornic_ib_srq_adopt(struct ornic_ib_srq *srq, struct ornic_ib_ring *ring);
int ornic_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
			struct ib_udata *udata);
int ornic_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int ornic_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata);
int ornic_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int ornic_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr);
bool ornic_ib_srq_retire(struct ornic_ib_srq *srq, u32 id, u64 *wr_id);

/* qp.c */
int ornic_ib_qp_make(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
		     const struct ib_qp_init_attr *attr, struct ib_udata *udata);
void ornic_ib_qp_unmake(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
int ornic_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int ornic_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* qp_queues.c */
u32 ornic_ib_sq_bytes(enum ib_qp_type type, u32 sges, u32 inline_bytes);
u32 ornic_ib_rq_bytes(u32 sges);
void ornic_ib_no_queues(struct ornic_ib_qp *qp);
int ornic_ib_user_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp, struct ib_udata *udata);
int ornic_ib_kernel_queues(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
void ornic_ib_queues_free(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
void ornic_ib_wq_reset(struct ornic_ib_wq *wq);
int ornic_ib_queues_describe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			     struct ornic_qp_create_cmd *cmd, struct ornic_ib_pagelist *lists);

/* qp_modify.c */
int ornic_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata);
/* rate.c */
u32 ornic_ib_rate_types(const struct ornic_ib_dev *dev);
int ornic_ib_rate_fill(const struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
		       const struct ib_qp_attr *attr, int mask, struct ib_udata *udata,
		       struct ornic_qp_modify_cmd *cmd);
int ornic_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *init);

/* mcast.c */
int ornic_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int ornic_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* post_send.c, post_recv.c */
int ornic_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr);
int ornic_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
void ornic_ib_put_rwqe(struct ornic_ib_wq *wq, u32 index, u32 id, const struct ib_recv_wr *wr);
void ornic_ib_put_sges(struct ornic_sge *sge, const struct ib_sge *list, int count);

/* flow.c */
struct ib_flow *ornic_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				     struct ib_udata *udata);
int ornic_ib_destroy_flow(struct ib_flow *ibflow);

/* rwq.c */
u32 ornic_ib_wq_handle(struct ib_wq *ibwq);
struct ib_wq *ornic_ib_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
				 struct ib_udata *udata);
int ornic_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int ornic_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		       struct ib_udata *udata);
int ornic_ib_create_rwq_table(struct ib_rwq_ind_table *table,
			      struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata);
int ornic_ib_destroy_rwq_table(struct ib_rwq_ind_table *table);

/* rss.c */
int ornic_ib_rss_create(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			struct ib_qp_init_attr *attr, struct ib_udata *udata);
void ornic_ib_rss_destroy(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);
int ornic_ib_rss_modify(struct ornic_ib_qp *qp, const struct ib_qp_attr *attr, int mask);
void ornic_ib_rss_query(const struct ornic_ib_qp *qp, struct ib_qp_attr *attr,
			struct ib_qp_init_attr *init);

/* counters.c */
int ornic_ib_stats_init(struct ornic_ib_dev *dev);
void ornic_ib_stats_free(struct ornic_ib_dev *dev);
struct rdma_hw_stats *ornic_ib_alloc_port_stats(struct ib_device *ibdev, u32 port);
struct rdma_hw_stats *ornic_ib_alloc_device_stats(struct ib_device *ibdev);
int ornic_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			  int index);
int ornic_ib_stats_read(struct ornic_ib_dev *dev, u8 scope, u32 number, u32 span, __le64 *values);

/* qp_counters.c */
int ornic_ib_qp_stats_init(struct ornic_ib_dev *dev);
void ornic_ib_qp_stats_free(struct ornic_ib_dev *dev);
int ornic_ib_qp_stats_hide(struct ornic_ib_dev *dev, u64 *value);
extern const struct ib_device_ops ornic_ib_qp_stats_ops;

/* res.c */
int ornic_ib_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int ornic_ib_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int ornic_ib_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int ornic_ib_fill_res_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int ornic_ib_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int ornic_ib_fill_res_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int ornic_ib_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);
int ornic_ib_fill_res_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif
