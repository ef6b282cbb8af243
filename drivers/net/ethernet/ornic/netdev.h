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
#include <net/netdev_queues.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>

#include <linux/ornic/hw/steer.h>
#include <linux/ornic/hw/wqe.h>
#include "ornic.h"

#define ORNIC_TX_LOG		9	/* log2 entries of the send queue, unless set otherwise */
#define ORNIC_RX_LOG		10	/* the same of the receive queue */
#define ORNIC_MIN_LOG		4	/* a device with less is rejected */
#define ORNIC_MAX_LOG		12	/* more than this cannot be set */
#define ORNIC_TX_STRIDE		8	/* log2 bytes: control, Ethernet, 14 SGEs */
#define ORNIC_TX_MIN_STRIDE	6	/* log2 bytes: control, Ethernet, 2 SGEs */
#define ORNIC_TX_SGES(stride)						\
	(((1u << (stride)) - sizeof(struct ornic_wqe_ctrl) -		\
	  sizeof(struct ornic_wqe_eth)) / sizeof(struct ornic_sge))
#define ORNIC_TX_MAX_SGE	ORNIC_TX_SGES(ORNIC_TX_STRIDE)
#define ORNIC_RX_MIN_STRIDE	5	/* log2 bytes: header, 1 SGE */
#define ORNIC_RX_STRIDE		6	/* log2 bytes: header, 3 SGEs */
#define ORNIC_RX_SGES(stride)						\
	(((1u << (stride)) - sizeof(struct ornic_rwqe)) / sizeof(struct ornic_sge))
#define ORNIC_RX_MAX_SEGS	ORNIC_RX_SGES(ORNIC_RX_STRIDE)

/* Bytes of a frame without its payload. */
#define ORNIC_FRAME_HEADER	(ETH_HLEN + VLAN_HLEN)
#define ORNIC_MAX_MTU		9000

struct ethtool_eth_mac_stats;
struct ornic_netdev;
struct ornic_queues;

/**
 * struct ornic_cq - completion queue of the network interface
 * @comp: receives completion events
 * @queues: queues that this one belongs to
 * @ring: entries and record
 * @number: number in the device, 0 = not created
 * @next: consumer index, used only by NAPI
 * @arm_lock: serialises arming and events
 * @arm: arming state
 */
struct ornic_cq {
	struct ornic_comp comp;
	struct ornic_queues *queues;
	struct ornic_ring ring;
	u32 number;
	u32 next;
	spinlock_t arm_lock;	/* arming against events */
	struct ornic_arm arm;
};

/**
 * struct ornic_wq - work queue of the queue pair
 * @ring: entries and record
 * @head: index of the next entry to write
 * @published: producer index last published to the device
 * @tail: oldest entry not completed
 *
 * Posting and completion of the send queue run on different CPUs, so the words that they write
 * have their own cache lines.
 */
struct ornic_wq {
	struct ornic_ring ring;
	u32 head ____cacheline_aligned_in_smp;
	u32 published;
	u32 tail ____cacheline_aligned_in_smp;
};

/* A DMA mapping of a frame being sent. Not in the ring, because the device can write there. */
struct ornic_tx_map {
	dma_addr_t addr;
	u32 len;
};

struct ornic_tx_slot {
	struct sk_buff *skb;
	u8 maps;
	struct ornic_tx_map map[ORNIC_TX_MAX_SGE];
};

/* A segment of a receive buffer; stays in its ring slot until a packet buffer takes it over. */
struct ornic_rx_seg {
	struct page *page;
	u32 offset;
};

/**
 * struct ornic_rx_shape - receive buffers
 * @head: bytes of the first segment, a power of two, with headroom and skb_shared_info
 * @head_room: bytes of it that the device may fill
 * @segs: segments; those behind the first are whole pages
 * @room: bytes of all segments that the device may fill
 */
struct ornic_rx_shape {
	u32 head;
	u32 head_room;
	u32 segs;
	u32 room;
};

/**
 * struct ornic_queues - a queue pair, its completion queues, rings and buffers
 * @nd: interface
 * @qpn: queue pair, 0 = not created
 * @tx_slots: frames in the send ring
 * @rx_segs: buffers in the receive ring
 * @pool: page pool of the buffers
 * @shape: sizes of a receive buffer
 * @sq: send ring; the transmit lock protects @head, only NAPI writes @tail
 * @tx_cq: its completions
 * @rq: receive ring; only NAPI uses it after the queues are started
 * @rx_cq: its completions
 *
 * A change of MTU or ring size creates new queues while the old ones are in use.
 */
struct ornic_queues {
	struct ornic_netdev *nd;
	u32 qpn;
	struct ornic_tx_slot *tx_slots;
	struct ornic_rx_seg *rx_segs;
	struct page_pool *pool;
	struct ornic_rx_shape shape;

	struct ornic_wq sq;
	struct ornic_cq tx_cq;
	struct ornic_wq rq;
	struct ornic_cq rx_cq;
};

/* Counted by ornic_start_xmit(), under the transmit lock. */
struct ornic_tx_stats {
	struct u64_stats_sync sync;
	u64 dropped;
	u64 linearized;
	u64 stopped;
};

/* Counted at the completion of frames, in NAPI. */
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

/* Moderation of a completion queue: an event after so many frames or microseconds. */
struct ornic_coalesce {
	u16 frames;
	u16 usecs;
};

/**
 * struct ornic_netdev - private part of the net_device
 * @core: device
 * @dev: network interface
 * @nb: subscription to asynchronous events
 * @napi: polls both completion queues
 * @pd: protection domain; exists while the device is up, because processes could take all others,
 *	and is destroyed by disabling the device
 * @queues: while the interface is up; changes under rtnl with NAPI and transmission stopped
 * @qpn: queue pair in use, 0 = none; events are compared with it
 * @offered: NETIF_F_* that the device offers now
 * @max_sge: fragments of one frame
 * @max_segs: segments of one receive buffer
 * @tx_log: log2 entries wanted of the send queue
 * @rx_log: log2 entries wanted of the receive queue
 * @tx_coalesce: moderation of the send queue's completions
 * @rx_coalesce: moderation of the receive queue's completions
 * @rules: receive rules by kind, 0 = none
 * @up: queues exist
 * @link_lock: serialises changes of the carrier with open and stop
 * @rx_mode_work: follows the promiscuous flag
 * @restart_work: replaces the queues after a queue error
 * @tx_stats: frames handed over
 * @tx_done: frames completed
 * @rx_stats: counters of the receive ring
 * @stat_names: the device's port statistics
 * @stat_count: number of entries of @stat_names
 */
struct ornic_netdev {
	struct ornic_core *core;
	struct net_device *dev;
	struct notifier_block nb;
	struct napi_struct napi;
	u32 pd;
	struct ornic_queues *queues;
	u32 qpn;

	netdev_features_t offered;
	u32 max_sge;
	u32 max_segs;
	u8 tx_log;
	u8 rx_log;
	struct ornic_coalesce tx_coalesce;
	struct ornic_coalesce rx_coalesce;

	u32 rules[ORNIC_RULE_PROMISC + 1];
	bool up;
	struct mutex link_lock;	/* serialises changes of the carrier with open and stop */
	struct work_struct rx_mode_work;
	struct delayed_work restart_work;

	struct ornic_tx_stats tx_stats;
	struct ornic_tx_done tx_done;
	struct ornic_rx_stats rx_stats;
	struct ornic_stat_name *stat_names;
	u32 stat_count;
};

/*
 * Return the MTU in use, in bytes. It is below that of the interface from a recovery of a device
 * that offers less until the core has announced the new one.
 */
static inline u32 ornic_netdev_mtu(const struct ornic_netdev *nd)
{
	return min(READ_ONCE(nd->dev->mtu), nd->dev->max_mtu);
}

/* netdev.c */
int ornic_netdev_create(struct ornic_core *core);
void ornic_netdev_destroy(struct ornic_core *core);
void ornic_netdev_suspend(struct ornic_core *core);
int ornic_netdev_resume(struct ornic_core *core);
void ornic_netdev_restart(struct ornic_netdev *nd);
int ornic_netdev_replace(struct ornic_netdev *nd, int mtu);
int ornic_netdev_recover(struct ornic_core *core);
void ornic_netdev_touch(struct ornic_core *core);

/* queues.c */
struct ornic_queues *ornic_queues_create(struct ornic_netdev *nd, int mtu);
void ornic_queues_destroy(struct ornic_queues *q);
u8 ornic_queues_max_log(const struct ornic_netdev *nd, u8 wq_log);
bool ornic_cq_next(struct ornic_cq *cq, struct ornic_cqe *cqe);
void ornic_cq_consumed(struct ornic_cq *cq);
bool ornic_cq_arm(struct ornic_cq *cq, u32 next);

/* tx.c */
netdev_tx_t ornic_start_xmit(struct sk_buff *skb, struct net_device *dev);
int ornic_tx_init(struct ornic_queues *q);
void ornic_tx_cleanup(struct ornic_queues *q);
void ornic_tx_clean(struct ornic_queues *q, int budget);
bool ornic_tx_settle(struct ornic_queues *q);

/* rx.c */
struct ornic_rx_shape ornic_rx_shape(const struct ornic_netdev *nd, int mtu);
u32 ornic_rx_max_mtu(const struct ornic_netdev *nd);
int ornic_rx_init(struct ornic_queues *q);
void ornic_rx_use(struct ornic_queues *q);
void ornic_rx_cleanup(struct ornic_queues *q);
bool ornic_rx_fill(struct ornic_queues *q);
int ornic_napi_poll(struct napi_struct *napi, int budget);

/* steer.c */
int ornic_steer_start(struct ornic_netdev *nd, u32 qpn);
void ornic_steer_stop(struct ornic_netdev *nd);
void ornic_steer_init(struct ornic_netdev *nd);
void ornic_set_rx_mode(struct net_device *dev);

/* netstats.c */
extern const struct netdev_stat_ops ornic_stat_ops;
void ornic_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *out);
int ornic_netstats_init(struct ornic_netdev *nd);
void ornic_netstats_cleanup(struct ornic_netdev *nd);
int ornic_netstats_count(struct ornic_netdev *nd);
void ornic_netstats_names(struct ornic_netdev *nd, u8 *data);
void ornic_netstats_values(struct ornic_netdev *nd, u64 *data);
void ornic_netstats_mac(struct ornic_netdev *nd, struct ethtool_eth_mac_stats *mac);

/* ethtool.c */
extern const struct ethtool_ops ornic_ethtool_ops;

#endif
