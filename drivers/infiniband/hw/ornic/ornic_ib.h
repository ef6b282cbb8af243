/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA device, and the lock order of its objects. Each object has a header of its own.
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

#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <linux/ornic/core.h>

#include "counters.h"

struct workqueue_struct;

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

static inline struct ornic_ib_dev *to_oib(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ornic_ib_dev, ibdev);
}

static inline struct device *ornic_ib_dma(struct ornic_ib_dev *dev)
{
	return &dev->odev->pdev->dev;
}

#endif
