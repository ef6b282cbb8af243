/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Older kernels (6.1) ask no driver for the statistics and the NAPI context of its queues. Their
 * struct net_device has no member stat_ops. The macro stat_ops turns the driver's assignment
 * "dev->stat_ops = &ops" into one to a variable that nobody reads.
 */
#ifndef ORNIC_COMPAT_NETDEV_QUEUES_H
#define ORNIC_COMPAT_NETDEV_QUEUES_H

#include_next <net/netdev_queues.h>

#include <linux/netdevice.h>

#ifndef ORNIC_HAVE_NETDEV_STAT_OPS
struct netdev_queue_stats_rx {
	u64 bytes;
	u64 packets;
	u64 alloc_fail;
	u64 csum_unnecessary;
};

struct netdev_queue_stats_tx {
	u64 bytes;
	u64 packets;
	u64 stop;
};

struct netdev_stat_ops {
	void (*get_queue_stats_rx)(struct net_device *dev, int index,
				   struct netdev_queue_stats_rx *stats);
	void (*get_queue_stats_tx)(struct net_device *dev, int index,
				   struct netdev_queue_stats_tx *stats);
	void (*get_base_stats)(struct net_device *dev, struct netdev_queue_stats_rx *rx,
			       struct netdev_queue_stats_tx *tx);
};

static inline const struct netdev_stat_ops **ornic_compat_stat_ops(void)
{
	static const struct netdev_stat_ops *ops;

	return &ops;
}

#define stat_ops priv_flags |= 0, *ornic_compat_stat_ops()
#endif

#ifndef ORNIC_HAVE_QUEUE_SET_NAPI
enum ornic_compat_queue_type {
	NETDEV_QUEUE_TYPE_RX,
	NETDEV_QUEUE_TYPE_TX,
};

static inline void netif_queue_set_napi(struct net_device *dev, unsigned int index,
					enum ornic_compat_queue_type type,
					struct napi_struct *napi)
{
}

static inline void netif_napi_set_irq(struct napi_struct *napi, int irq)
{
}
#endif

#endif
