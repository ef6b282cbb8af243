/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA device, and the lock order of its objects. Each object has a header of its own.
 *
 * An object represents one of the device, and the device holds its state. The driver keeps
 * only the object's number, its user for events and, for queues of the kernel, the data
 * needed to post and poll.
 *
 * Lock order, outermost first:
 *
 *	dma_resv	reservation lock of a DMA buffer, owned by its exporter; held while
 *			the key is created or destroyed; process context
 *	odev->numbers	tables of objects by number, see core.h; process context
 *	qp->mutex	one modify at a time; process context
 *	cq->mutex	one command for a CQ at a time, or the dropping of its entries; no
 *			allocation under it does I/O, as under odev->numbers; process context
 *	srq->modify	one modify at a time; process context
 *	pd->windows_lock	memory windows of a domain; process context
 *	cq->comp_lock	held while the completion handler of the consumer runs
 *	cq->lock	of one CQ at a time
 *	wq->lock	of one queue at a time
 *	qp->life_lock	entry into RESET against events
 *	dev->port_lock	events of the port; process context
 *
 * A verb never calls a handler of its consumer. Handlers run from events and from dev->wq,
 * with no lock held but comp_lock.
 */
#ifndef ORNIC_IB_H
#define ORNIC_IB_H

#include <linux/atomic.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/core.h>

#include "counters.h"

struct workqueue_struct;

/* The only port that this driver uses, that of the netdev. */
#define ORNIC_IB_PORT		1

/**
 * struct ornic_ib_limits - limits of Identify in CPU byte order, bounded by the formats
 * @page_sizes: usable page sizes of page lists, one bit each
 * @log_sq: log2 of the maximum of send entries
 * @log_rq: log2 of the maximum of receive entries
 * @log_srq: log2 of the maximum of entries of a shared receive queue
 * @log_cq: log2 of the maximum of completion entries
 * @sq_stride: log2 of the largest send entry in bytes
 * @rq_stride: log2 of the largest receive entry in bytes
 * @send_sge: SGEs of a send work request, for any type of queue pair
 * @recv_sge: SGEs of a receive work request
 * @srq_sge: SGEs of an entry of a shared receive queue
 * @max_inline: inline bytes of a send work request, for any type of queue pair
 * @rss_table: work queues of an RSS group, a power of two
 * @rss_fields: ORNIC_RSS_* that the device can hash
 * @max_cqe: completions that a CQ can hold: all entries of the largest ring, because neither
 *	this driver nor the provider lets host_index lag (ORN-RNG-13)
 * @read_sge: SGEs of an RDMA READ
 * @rd_atomic_init: outstanding READs and atomics of a queue pair as requester
 * @rd_atomic_resp: the same as responder
 * @fast_reg_pages: pages of a fast registration, 0 if not supported
 * @dm_bytes: device memory in bytes, 0 if there is none
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
 * struct ornic_ib_used - number of objects that struct ornic_share limits
 * @cq: completion queues
 * @qp: queue pairs
 * @raw_qp: those of type RAW
 * @rules: receive rules that are no memberships of multicast groups
 */
struct ornic_ib_used {
	atomic_t cq;
	atomic_t qp;
	atomic_t raw_qp;
	atomic_t rules;
};

/**
 * struct ornic_ib_dev - an RDMA device
 * @ibdev: ib_core's part
 * @odev: device of ornic.ko
 * @lim: limits of the device
 * @used: objects that count against the driver's share
 * @nb: subscription to asynchronous events
 * @wq: calls completion handlers of CQs that the device no longer serves
 * @qps: queue pairs by handle, for events
 * @cqs: completion queues by number, for events
 * @srqs: shared receive queues by number, for events
 * @data_in_order: the transport places the data of a message in address order
 * @registered: ib_core accepts events of device and port; set to true under @port_lock
 * @port_lock: keeps the events of device and port in order
 * @port_event: the last event of the port, 0 before the first; under @port_lock
 * @fatal_event: DEVICE_FATAL was delivered, or waits until @registered; under @port_lock
 * @dead: the device died; soft_flush.c generates completions
 * @remove_late: gives the device up if its removal takes too long
 * @port_stats: counters of the port
 * @device_stats: counters of the device
 * @qp_stats: counters of a counter set
 * @qp_to_port: index in @port_stats of each counter in @qp_stats
 * @qp_before: sum over all counter sets at probe
 */
struct ornic_ib_dev {
	struct ib_device ibdev;
	struct ornic_dev *odev;
	struct ornic_ib_limits lim;
	struct ornic_ib_used used;
	struct notifier_block nb;
	struct workqueue_struct *wq;
	struct xarray qps;
	struct xarray cqs;
	struct xarray srqs;
	bool data_in_order;
	bool registered;
	spinlock_t port_lock;	/* see above */
	unsigned long port_event;
	bool fatal_event;
	bool dead;
	struct delayed_work remove_late;
	struct ornic_ib_stats port_stats;
	struct ornic_ib_stats device_stats;
	struct ornic_ib_stats qp_stats;
	u32 *qp_to_port;
	__le64 *qp_before;
};

static inline struct ornic_ib_dev *to_oib(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ornic_ib_dev, ibdev);
}

static inline struct device *ornic_ib_dma(struct ornic_ib_dev *dev)
{
	return &dev->odev->pdev->dev;
}

#endif
