/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Network interface: one Ethernet queue pair, its two completion queues, one
 * NAPI context.
 */
#ifndef ORNIC_NETDEV_H
#define ORNIC_NETDEV_H

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>

#include <linux/ornic/hw/steer.h>
#include <linux/ornic/hw/wqe.h>
#include "ornic.h"

#define ORNIC_TX_LOG		9	/* log2 entries of the send queue */
#define ORNIC_RX_LOG		10	/* log2 entries of the receive queue */
#define ORNIC_TX_STRIDE		8	/* log2 bytes: control, Ethernet, 14 SGEs */
#define ORNIC_RX_STRIDE		5	/* log2 bytes: header, 1 SGE */
#define ORNIC_MIN_LOG		4	/* a device with less is refused by itself */
#define ORNIC_TX_MAX_SGE						\
	(((1u << ORNIC_TX_STRIDE) - sizeof(struct ornic_wqe_ctrl) -	\
	  sizeof(struct ornic_wqe_eth)) / sizeof(struct ornic_sge))

/* Bytes of a frame without its payload. */
#define ORNIC_FRAME_HEADER	(ETH_HLEN + VLAN_HLEN)
#define ORNIC_MAX_MTU		9000

/**
 * struct ornic_cq - completion queue of the network interface
 * @comp: how its events arrive
 * @nd: interface
 * @ring: entries
 * @rec: record
 * @dma: address of the allocation that holds both
 * @number: as the device knows it, 0 = not created
 * @log: log2 entries
 * @next: consumer index
 * @arm_lock: serialises arming and events
 * @arm: arming state
 */
struct ornic_cq {
	struct ornic_comp comp;
	struct ornic_netdev *nd;
	void *ring;
	struct ornic_rec *rec;
	dma_addr_t dma;
	u32 number;
	u8 log;
	u32 next;
	spinlock_t arm_lock;	/* arming against events */
	struct ornic_arm arm;
};

/**
 * struct ornic_wq - ring of the queue pair
 * @ring: entries
 * @rec: record
 * @dma: address of the allocation that holds both
 * @log: log2 entries
 * @stride: log2 bytes of an entry
 * @head: index of the next entry to write
 * @published: index that the device knows
 * @tail: oldest entry not completed
 */
struct ornic_wq {
	void *ring;
	struct ornic_rec *rec;
	dma_addr_t dma;
	u8 log;
	u8 stride;
	u32 head;
	u32 published;
	u32 tail;
};

/* A DMA mapping of a frame being sent. Kept apart from the ring, which the device can write. */
struct ornic_tx_map {
	dma_addr_t addr;
	u32 len;
};

struct ornic_tx_slot {
	struct sk_buff *skb;
	u8 maps;
	struct ornic_tx_map map[ORNIC_TX_MAX_SGE];
};

/* Counted where frames are handed over, under the transmit lock. */
struct ornic_tx_stats {
	struct u64_stats_sync sync;
	u64 dropped;
	u64 linearized;
	u64 stopped;
};

/* Counted where they complete, in NAPI. */
struct ornic_tx_done {
	struct u64_stats_sync sync;
	u64 packets;
	u64 bytes;
	u64 errors;
};

struct ornic_rx_stats {
	struct u64_stats_sync sync;
	u64 packets;
	u64 bytes;
	u64 dropped;
	u64 errors;
	u64 csum_ok;
	u64 no_buffer;
};

/**
 * struct ornic_netdev - private part of the net_device
 * @core: device
 * @dev: network interface
 * @nb: subscription to asynchronous events
 * @napi: polls both completion queues
 * @sq: send ring; @head is the transmit lock's, @tail NAPI's
 * @tx_cq: its completions
 * @tx_slots: frames in the send ring
 * @max_sge: fragments of one frame
 * @rq: receive ring, NAPI's
 * @rx_cq: its completions
 * @rx_pages: buffers in the receive ring
 * @pool: where they come from
 * @rx_room: bytes of one buffer that the device may fill
 * @rx_order: log2 pages of one buffer
 * @pd: protection domain
 * @qpn: queue pair
 * @rules: receive rules by kind, 0 = none
 * @up: queues exist
 * @link_lock: carrier against open and stop
 * @rx_mode_work: follows the promiscuous flag
 * @restart_work: closes and opens the queues after a queue error
 * @tx_stats: frames handed over
 * @tx_done: frames completed
 * @rx_stats: of the receive ring
 * @stat_names: the device's port statistics
 * @stat_count: how many
 */
struct ornic_netdev {
	struct ornic_core *core;
	struct net_device *dev;
	struct notifier_block nb;
	struct napi_struct napi;

	struct ornic_wq sq;
	struct ornic_cq tx_cq;
	struct ornic_tx_slot *tx_slots;
	u32 max_sge;

	struct ornic_wq rq;
	struct ornic_cq rx_cq;
	struct page **rx_pages;
	struct page_pool *pool;
	u32 rx_room;
	unsigned int rx_order;

	u32 pd;
	u32 qpn;
	u32 rules[ORNIC_RULE_PROMISC + 1];
	bool up;
	struct mutex link_lock;	/* carrier against open and stop */
	struct work_struct rx_mode_work;
	struct delayed_work restart_work;

	struct ornic_tx_stats tx_stats;
	struct ornic_tx_done tx_done;
	struct ornic_rx_stats rx_stats;
	struct ornic_stat_name *stat_names;
	u32 stat_count;
};

/* netdev.c */
int ornic_netdev_create(struct ornic_core *core);
void ornic_netdev_destroy(struct ornic_core *core);
void ornic_netdev_suspend(struct ornic_core *core);
int ornic_netdev_resume(struct ornic_core *core);
void ornic_netdev_restart(struct ornic_netdev *nd);

/* queues.c */
int ornic_queues_create(struct ornic_netdev *nd);
int ornic_queues_start(struct ornic_netdev *nd);
void ornic_queues_destroy(struct ornic_netdev *nd);
bool ornic_cq_next(struct ornic_cq *cq, struct ornic_cqe *cqe);
void ornic_cq_consumed(struct ornic_cq *cq);
bool ornic_cq_arm(struct ornic_cq *cq);

/* tx.c */
netdev_tx_t ornic_start_xmit(struct sk_buff *skb, struct net_device *dev);
int ornic_tx_init(struct ornic_netdev *nd);
void ornic_tx_cleanup(struct ornic_netdev *nd);
void ornic_tx_clean(struct ornic_netdev *nd, int budget);

/* rx.c */
int ornic_rx_init(struct ornic_netdev *nd);
void ornic_rx_cleanup(struct ornic_netdev *nd);
void ornic_rx_fill(struct ornic_netdev *nd);
int ornic_napi_poll(struct napi_struct *napi, int budget);

/* steer.c */
int ornic_steer_start(struct ornic_netdev *nd);
void ornic_steer_stop(struct ornic_netdev *nd);
void ornic_steer_init(struct ornic_netdev *nd);
void ornic_set_rx_mode(struct net_device *dev);

/* netstats.c */
void ornic_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *out);
int ornic_netstats_init(struct ornic_netdev *nd);
void ornic_netstats_cleanup(struct ornic_netdev *nd);
int ornic_netstats_count(struct ornic_netdev *nd);
void ornic_netstats_names(struct ornic_netdev *nd, u8 *data);
void ornic_netstats_values(struct ornic_netdev *nd, u64 *data);

/* ethtool.c */
extern const struct ethtool_ops ornic_ethtool_ops;

#endif
