// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit: one work request per frame, one SGE per fragment.
 *
 * The index is published, and the doorbell rung if the device wants it, at the
 * end of a batch only (xmit_more). The last request of a batch is signaled, and
 * every ORNIC_TX_SIGNAL-th in a long one: a completion stands for all requests
 * before it (ORN-CQ-8), so nothing published ever waits for a later frame to
 * be freed.
 */
#include <linux/dma-mapping.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "netdev.h"

/* Requests between completions within a batch, a power of two. */
#define ORNIC_TX_SIGNAL		16

/* Time in jiffies that a change of the interface waits for frames being sent. */
#define ORNIC_TX_SETTLE		msecs_to_jiffies(500)

static u32 ornic_tx_entries(const struct ornic_queues *q)
{
	return 1u << q->sq.ring.log;
}

static u32 ornic_tx_free(const struct ornic_queues *q)
{
	return ornic_tx_entries(q) - (q->sq.head - READ_ONCE(q->sq.tail));
}

static struct ornic_tx_slot *ornic_tx_slot(struct ornic_queues *q, u32 index)
{
	return &q->tx_slots[index & (ornic_tx_entries(q) - 1)];
}

static void ornic_tx_unmap(struct ornic_queues *q, struct ornic_tx_slot *slot)
{
	struct device *dev = ornic_dma_dev(q->nd->core);
	u8 i;

	for (i = 0; i < slot->maps; i++)
		dma_unmap_page(dev, slot->map[i].addr, slot->map[i].len, DMA_TO_DEVICE);
	slot->maps = 0;
}

static int ornic_tx_map_one(struct ornic_queues *q, struct ornic_tx_slot *slot,
			    dma_addr_t addr, u32 len)
{
	if (dma_mapping_error(ornic_dma_dev(q->nd->core), addr))
		return -ENOMEM;
	slot->map[slot->maps].addr = addr;
	slot->map[slot->maps].len = len;
	slot->maps++;
	return 0;
}

static int ornic_tx_map(struct ornic_queues *q, struct ornic_tx_slot *slot, struct sk_buff *skb)
{
	struct device *dev = ornic_dma_dev(q->nd->core);
	u32 len = skb_headlen(skb);
	const skb_frag_t *frag;
	int err = 0;
	int i;

	slot->maps = 0;
	if (len)
		err = ornic_tx_map_one(q, slot, dma_map_page(dev, virt_to_page(skb->data),
							     offset_in_page(skb->data), len,
							     DMA_TO_DEVICE), len);
	for (i = 0; !err && i < skb_shinfo(skb)->nr_frags; i++) {
		frag = &skb_shinfo(skb)->frags[i];
		len = skb_frag_size(frag);
		err = ornic_tx_map_one(q, slot, skb_frag_dma_map(dev, frag, 0, len,
								 DMA_TO_DEVICE), len);
	}
	if (err)
		ornic_tx_unmap(q, slot);
	return err;
}

/* Write the work request of the frame in a slot. */
static void ornic_tx_write(struct ornic_queues *q, struct ornic_tx_slot *slot, u32 index)
{
	void *entry = ornic_ring_at(&q->sq.ring, index);
	struct ornic_wqe_ctrl *ctrl = entry;
	struct ornic_wqe_eth *eth = entry + sizeof(*ctrl);
	struct ornic_sge *sge = entry + sizeof(*ctrl) + sizeof(*eth);
	const struct sk_buff *skb = slot->skb;
	u8 i;

	memset(entry, 0, sizeof(*ctrl) + sizeof(*eth));
	ctrl->opcode = ORNIC_WR_SEND;
	ctrl->flags = index % ORNIC_TX_SIGNAL ? 0 : ORNIC_WQE_SIGNALED;
	ctrl->count = cpu_to_le16(slot->maps);
	ctrl->qpn = cpu_to_le32(q->qpn);
	ctrl->index = cpu_to_le32(index);
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		eth->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		eth->csum_offset = cpu_to_le16(skb->csum_offset);
		eth->eflags = ORNIC_ETH_CSUM_PARTIAL;
	}
	for (i = 0; i < slot->maps; i++) {
		sge[i].addr = cpu_to_le64(slot->map[i].addr);
		sge[i].length = cpu_to_le32(slot->map[i].len);
		sge[i].lkey = cpu_to_le32(q->nd->core->odev.dma_lkey);
	}
}

/* Publish the work requests written so far and signal the last one. */
static void ornic_tx_publish(struct ornic_queues *q)
{
	struct ornic_wqe_ctrl *last;
	u32 old = q->sq.published;
	u32 new = q->sq.head;

	if (old == new)
		return;
	last = ornic_ring_at(&q->sq.ring, new - 1);
	last->flags |= ORNIC_WQE_SIGNALED;
	smp_store_release(&q->sq.published, new);	/* after the slots, before a completion */
	ornic_ring_post(&q->nd->core->odev, ORNIC_DB_SQ, q->qpn, q->sq.ring.rec, old, new);
}

/*
 * Return true if the checksum field lies within the frame (ORN-ETH-6). After headers were removed
 * or the frame was cut, it may be outside.
 */
static bool ornic_tx_has_csum_field(const struct sk_buff *skb)
{
	int start = skb_checksum_start_offset(skb);

	return start >= 0 && start + skb->csum_offset + sizeof(__sum16) <= skb->len;
}

/*
 * Return false for a frame that the device may reject, which would stop the queue: ORN-ETH-5 limits
 * the length, ORN-ETH-6 the checksum field.
 */
static bool ornic_tx_acceptable(struct ornic_netdev *nd, struct sk_buff *skb)
{
	if (skb->len < ETH_HLEN || skb->len > ornic_netdev_mtu(nd) + ORNIC_FRAME_HEADER)
		return false;
	if (skb->ip_summed == CHECKSUM_PARTIAL && !(nd->offered & NETIF_F_HW_CSUM) &&
	    skb_checksum_help(skb))
		return false;	/* queued when the device still had the feature */
	if (skb->ip_summed == CHECKSUM_PARTIAL && !ornic_tx_has_csum_field(skb))
		return false;
	if (skb_shinfo(skb)->nr_frags + 1 <= nd->max_sge)
		return true;
	u64_stats_update_begin(&nd->tx_stats.sync);
	nd->tx_stats.linearized++;
	u64_stats_update_end(&nd->tx_stats.sync);
	return !skb_linearize(skb);
}

static void ornic_tx_drop(struct ornic_netdev *nd, struct sk_buff *skb)
{
	u64_stats_update_begin(&nd->tx_stats.sync);
	nd->tx_stats.dropped++;
	u64_stats_update_end(&nd->tx_stats.sync);
	dev_kfree_skb_any(skb);
}

static void ornic_tx_stop_if_full(struct ornic_queues *q, struct netdev_queue *queue)
{
	struct ornic_netdev *nd = q->nd;

	if (likely(ornic_tx_free(q)))
		return;
	netif_tx_stop_queue(queue);
	u64_stats_update_begin(&nd->tx_stats.sync);
	nd->tx_stats.stopped++;
	u64_stats_update_end(&nd->tx_stats.sync);
	smp_mb();	/* pairs with ornic_tx_wake(): it sees the stop or this sees its tail */
	if (ornic_tx_free(q))
		netif_tx_start_queue(queue);
}

netdev_tx_t ornic_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct netdev_queue *queue = netdev_get_tx_queue(dev, 0);
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_queues *q = nd->queues;
	struct ornic_tx_slot *slot;
	u32 len;
	bool more;

	if (unlikely(!q)) {
		ornic_tx_drop(nd, skb);
		return NETDEV_TX_OK;
	}
	if (unlikely(!ornic_tx_free(q))) {
		netif_tx_stop_queue(queue);
		ornic_tx_publish(q);
		return NETDEV_TX_BUSY;
	}
	slot = ornic_tx_slot(q, q->sq.head);
	if (unlikely(!ornic_tx_acceptable(nd, skb) || ornic_tx_map(q, slot, skb))) {
		ornic_tx_drop(nd, skb);
		if (!netdev_xmit_more())
			ornic_tx_publish(q);
		return NETDEV_TX_OK;
	}
	len = skb->len;
	slot->skb = skb;
	skb_tx_timestamp(skb);
	ornic_tx_write(q, slot, q->sq.head);
	q->sq.head++;

	ornic_tx_stop_if_full(q, queue);
	more = netdev_xmit_more();
	if (__netdev_tx_sent_queue(queue, len, more))
		ornic_tx_publish(q);
	return NETDEV_TX_OK;
}

static void ornic_tx_wake(struct ornic_queues *q)
{
	struct netdev_queue *queue = netdev_get_tx_queue(q->nd->dev, 0);

	smp_mb();	/* pairs with ornic_tx_stop_if_full() */
	if (netif_tx_queue_stopped(queue) && netif_device_present(q->nd->dev) &&
	    ornic_tx_free(q) >= ornic_tx_entries(q) / 4)
		netif_tx_wake_queue(queue);
}

/* Return: false if a completion names no published request. */
static bool ornic_tx_valid(struct ornic_queues *q, const struct ornic_cqe *cqe, u32 tail)
{
	u32 index = le32_to_cpu(cqe->wqe_id);

	return (le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK) == q->qpn &&
	       index - tail < smp_load_acquire(&q->sq.published) - tail; /* before the slots */
}

/* Free the frames before index end. Return: the new tail. */
static u32 ornic_tx_free_to(struct ornic_queues *q, u32 tail, u32 end, int budget,
			    u32 *packets, u32 *bytes)
{
	struct ornic_tx_slot *slot;

	for (; tail != end; tail++) {
		slot = ornic_tx_slot(q, tail);
		ornic_tx_unmap(q, slot);
		*packets += 1;
		*bytes += slot->skb->len;
		napi_consume_skb(slot->skb, budget);
		slot->skb = NULL;
	}
	return tail;
}

static void ornic_tx_failed(struct ornic_netdev *nd, const struct ornic_cqe *cqe)
{
	u64_stats_update_begin(&nd->tx_done.sync);
	nd->tx_done.errors++;
	u64_stats_update_end(&nd->tx_done.sync);
	if (cqe->status != ORNIC_WC_WR_FLUSH_ERR)
		netdev_err(nd->dev, "frame rejected: status %u, syndrome %#010x\n", cqe->status,
			   le32_to_cpu(cqe->syndrome));
	ornic_netdev_restart(nd);
}

/**
 * ornic_tx_clean() - free the frames that the device has sent
 * @q: queues
 * @budget: NAPI budget; napi_consume_skb() derives the context from it
 */
void ornic_tx_clean(struct ornic_queues *q, int budget)
{
	struct ornic_netdev *nd = q->nd;
	u32 packets = 0, bytes = 0;
	u32 tail = q->sq.tail;
	struct ornic_cqe cqe;

	while (ornic_cq_next(&q->tx_cq, &cqe)) {
		if (!ornic_tx_valid(q, &cqe, tail)) {
			ornic_device_malformed(&nd->core->odev, "send completion");
			break;
		}
		if (cqe.status != ORNIC_WC_SUCCESS)
			ornic_tx_failed(nd, &cqe);
		tail = ornic_tx_free_to(q, tail, le32_to_cpu(cqe.wqe_id) + 1, budget, &packets,
					&bytes);
	}
	if (!packets)
		return;
	ornic_cq_consumed(&q->tx_cq);
	smp_store_release(&q->sq.tail, tail);	/* slots before room */

	u64_stats_update_begin(&nd->tx_done.sync);
	nd->tx_done.packets += packets;
	nd->tx_done.bytes += bytes;
	u64_stats_update_end(&nd->tx_done.sync);
	netdev_tx_completed_queue(netdev_get_tx_queue(nd->dev, 0), packets, bytes);
	ornic_tx_wake(q);
}

/**
 * ornic_tx_settle() - wait until the frames posted so far have been sent
 * @q: queues that NAPI polls
 *
 * Context: process. Return: false after 500 ms or if the device died.
 */
bool ornic_tx_settle(struct ornic_queues *q)
{
	unsigned long end = jiffies + ORNIC_TX_SETTLE;
	u32 head;

	netif_tx_lock_bh(q->nd->dev);
	ornic_tx_publish(q);
	head = q->sq.head;
	netif_tx_unlock_bh(q->nd->dev);
	while ((s32)(head - READ_ONCE(q->sq.tail)) > 0) {
		if (ornic_dead(q->nd->core) || time_after(jiffies, end))
			return false;
		usleep_range(100, 300);
	}
	return true;
}

/* ornic_tx_init() - allocate the slots of the send ring. Return: 0 or -ENOMEM. */
int ornic_tx_init(struct ornic_queues *q)
{
	q->tx_slots = kvzalloc_objs(*q->tx_slots, ornic_tx_entries(q));
	return q->tx_slots ? 0 : -ENOMEM;
}

/*
 * ornic_tx_cleanup() - free unsent frames and count them as dropped. The device no longer
 * accesses them, and the transmit path is stopped.
 */
void ornic_tx_cleanup(struct ornic_queues *q)
{
	struct ornic_tx_stats *stats = &q->nd->tx_stats;
	u32 packets = 0, bytes = 0;

	if (!q->tx_slots)
		return;
	q->sq.tail = ornic_tx_free_to(q, q->sq.tail, q->sq.head, 0, &packets, &bytes);
	if (packets) {
		local_bh_disable();
		u64_stats_update_begin(&stats->sync);
		stats->dropped += packets;
		u64_stats_update_end(&stats->sync);
		local_bh_enable();
	}
	kvfree(q->tx_slots);
	q->tx_slots = NULL;
}
