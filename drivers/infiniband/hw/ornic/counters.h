/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of the device, its port and single queue pairs.
 */
#ifndef ORNIC_IB_COUNTERS_H
#define ORNIC_IB_COUNTERS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct ornic_ib_dev;

/**
 * struct ornic_ib_stats - the counters of one scope
 * @descs: names of the counters, for ib_core
 * @index: index of each counter among the device's counters of this scope
 * @count: number of counters shown
 * @span: number of the device's counters of this scope
 */
struct ornic_ib_stats {
	struct rdma_stat_desc *descs;
	u32 *index;
	u32 count;
	u32 span;
};

/* counters.c */
int ornic_ib_stats_init(struct ornic_ib_dev *dev);
void ornic_ib_stats_free(struct ornic_ib_dev *dev);
struct rdma_hw_stats *ornic_ib_alloc_port_stats(struct ib_device *ibdev, u32 port);
struct rdma_hw_stats *ornic_ib_alloc_device_stats(struct ib_device *ibdev);
int ornic_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			  int index);
int ornic_ib_stats_read(struct ornic_ib_dev *dev, u8 scope, u32 number, u32 span, __le64 *values);

/* qp_counters.c */
extern const struct ib_device_ops ornic_ib_qp_stats_ops;
int ornic_ib_qp_stats_init(struct ornic_ib_dev *dev);
void ornic_ib_qp_stats_free(struct ornic_ib_dev *dev);
int ornic_ib_qp_stats_hide(struct ornic_ib_dev *dev, u64 *value);

#endif
