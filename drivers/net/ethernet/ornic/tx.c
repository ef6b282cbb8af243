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

static u32 ornic_tx_entries(const struct ornic_netdev *nd)
{
	return 1u << nd->sq.log;
}

static u32 ornic_tx_free(const struct ornic_netdev *nd)
{
	return ornic_tx_entries(nd) - (nd->sq.head - READ_ONCE(nd->sq.tail));
}

static struct ornic_tx_slot *ornic_tx_slot(struct ornic_netdev *nd, u32 index)
{
	return &nd->tx_slots[index & (ornic_tx_entries(nd) - 1)];
}

static void ornic_tx_unmap(struct ornic_netdev *nd, struct ornic_tx_slot *slot)
{
	struct device *dev = ornic_dma_dev(nd->core);
	u8 i;

	for (i = 0; i < slot->maps; i++)
		dma_unmap_page(dev, slot->map[i].addr, slot->map[i].len, DMA_TO_DEVICE);
	slot->maps = 0;
}

static int ornic_tx_map_one(struct ornic_netdev *nd, struct ornic_tx_slot *slot,
			    dma_addr_t addr, u32 len)
{
	if (dma_mapping_error(ornic_dma_dev(nd->core), addr))
		return -ENOMEM;
	slot->map[slot->maps].addr = addr;
	slot->map[slot->maps].len = len;
	slot->maps++;
	return 0;
}

static int ornic_tx_map(struct ornic_netdev *nd, struct ornic_tx_slot *slot, struct sk_buff *skb)
{
	struct device *dev = ornic_dma_dev(nd->core);
	u32 len = skb_headlen(skb);
	const skb_frag_t *frag;
	int err = 0;
	int i;

	slot->maps = 0;
	if (len)
		err = ornic_tx_map_one(nd, slot, dma_map_page(dev, virt_to_page(skb->data),
							      offset_in_page(skb->data), len,
							      DMA_TO_DEVICE), len);
	for (i = 0; !err && i < skb_shinfo(skb)->nr_frags; i++) {
		frag = &skb_shinfo(skb)->frags[i];
		len = skb_frag_size(frag);
		err = ornic_tx_map_one(nd, slot, skb_frag_dma_map(dev, frag, 0, len,
								  DMA_TO_DEVICE), len);
	}
	if (err)
		ornic_tx_unmap(nd, slot);
	return err;
}

/* Writes the work request of the frame in a slot. */
static void ornic_tx_write(struct ornic_netdev *nd, struct ornic_tx_slot *slot, u32 index)
{
	void *entry = ornic_ring_entry(nd->sq.ring, index, nd->sq.log, nd->sq.stride);
	struct ornic_wqe_ctrl *ctrl = entry;
	struct ornic_wqe_eth *eth = entry + sizeof(*ctrl);
	struct ornic_sge *sge = entry + sizeof(*ctrl) + sizeof(*eth);
	const struct sk_buff *skb = slot->skb;
	u8 i;

	memset(entry, 0, sizeof(*ctrl) + sizeof(*eth));
	ctrl->opcode = ORNIC_WR_SEND;
	ctrl->flags = index % ORNIC_TX_SIGNAL ? 0 : ORNIC_WQE_SIGNALED;
	ctrl->count = cpu_to_le16(slot->maps);
	ctrl->qpn = cpu_to_le32(nd->qpn);
	ctrl->index = cpu_to_le32(index);
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		eth->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		eth->csum_offset = cpu_to_le16(skb->csum_offset);
		eth->eflags = ORNIC_ETH_CSUM_PARTIAL;
	}
	for (i = 0; i < slot->maps; i++) {
		sge[i].addr = cpu_to_le64(slot->map[i].addr);
		sge[i].length = cpu_to_le32(slot->map[i].len);
		sge[i].lkey = cpu_to_le32(nd->core->odev.dma_lkey);
	}
}

/* Publishes what was written, if anything; the last request gets a completion. */
static void ornic_tx_publish(struct ornic_netdev *nd)
{
	struct ornic_wqe_ctrl *last;
	u32 old = nd->sq.published;
	u32 new = nd->sq.head;

	if (old == new)
		return;
	last = ornic_ring_entry(nd->sq.ring, new - 1, nd->sq.log, nd->sq.stride);
	last->flags |= ORNIC_WQE_SIGNALED;
	WRITE_ONCE(nd->sq.published, new);	/* before any completion of it */
	ornic_ring_post(&nd->core->odev, ORNIC_DB_SQ, nd->qpn, nd->sq.rec, old, new);
}

/* Frames that the device would refuse never reach it: a refusal stops the queue. */
static bool ornic_tx_acceptable(struct ornic_netdev *nd, struct sk_buff *skb)
{
	if (skb->len < ETH_HLEN || skb->len > nd->dev->mtu + ORNIC_FRAME_HEADER)
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

static void ornic_tx_stop_if_full(struct ornic_netdev *nd, struct netdev_queue *queue)
{
	if (likely(ornic_tx_free(nd)))
		return;
	netif_tx_stop_queue(queue);
	u64_stats_update_begin(&nd->tx_stats.sync);
	nd->tx_stats.stopped++;
	u64_stats_update_end(&nd->tx_stats.sync);
	smp_mb();	/* pairs with ornic_tx_wake(): it sees the stop or this sees its tail */
	if (ornic_tx_free(nd))
		netif_tx_start_queue(queue);
}

netdev_tx_t ornic_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct netdev_queue *queue = netdev_get_tx_queue(dev, 0);
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_tx_slot *slot;
	u32 len = skb->len;
	bool more;

	if (unlikely(!ornic_tx_free(nd))) {
		netif_tx_stop_queue(queue);
		ornic_tx_publish(nd);
		return NETDEV_TX_BUSY;
	}
	slot = ornic_tx_slot(nd, nd->sq.head);
	if (unlikely(!ornic_tx_acceptable(nd, skb) || ornic_tx_map(nd, slot, skb))) {
		ornic_tx_drop(nd, skb);
		if (!netdev_xmit_more())
			ornic_tx_publish(nd);
		return NETDEV_TX_OK;
	}
	slot->skb = skb;
	skb_tx_timestamp(skb);
	ornic_tx_write(nd, slot, nd->sq.head);
	nd->sq.head++;

	ornic_tx_stop_if_full(nd, queue);
	more = netdev_xmit_more();
	if (__netdev_tx_sent_queue(queue, len, more))
		ornic_tx_publish(nd);
	return NETDEV_TX_OK;
}

static void ornic_tx_wake(struct ornic_netdev *nd)
{
	struct netdev_queue *queue = netdev_get_tx_queue(nd->dev, 0);

	smp_mb();	/* pairs with ornic_tx_stop_if_full() */
	if (netif_tx_queue_stopped(queue) &&
	    ornic_tx_free(nd) >= ornic_tx_entries(nd) / 4)
		netif_tx_wake_queue(queue);
}

/* A completion that names no published request is impossible. */
static bool ornic_tx_valid(struct ornic_netdev *nd, const struct ornic_cqe *cqe, u32 tail)
{
	u32 index = le32_to_cpu(cqe->wqe_id);

	return (le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK) == nd->qpn &&
	       index - tail < READ_ONCE(nd->sq.published) - tail;
}

/* Frees the frames up to a completed one. Return: the new tail. */
static u32 ornic_tx_free_to(struct ornic_netdev *nd, u32 tail, u32 end, int budget,
			    u32 *packets, u32 *bytes)
{
	struct ornic_tx_slot *slot;

	for (; tail != end; tail++) {
		slot = ornic_tx_slot(nd, tail);
		ornic_tx_unmap(nd, slot);
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
		netdev_err(nd->dev, "frame refused: status %u, syndrome %#010x\n", cqe->status,
			   le32_to_cpu(cqe->syndrome));
	ornic_netdev_restart(nd);
}

/**
 * ornic_tx_clean() - free the frames that the device has sent
 * @nd: interface
 * @budget: of NAPI, says in which context frames are freed
 */
void ornic_tx_clean(struct ornic_netdev *nd, int budget)
{
	u32 tail = nd->sq.tail;
	u32 packets = 0, bytes = 0;
	struct ornic_cqe cqe;

	while (ornic_cq_next(&nd->tx_cq, &cqe)) {
		if (!ornic_tx_valid(nd, &cqe, tail)) {
			ornic_device_malformed(&nd->core->odev, "send completion");
			break;
		}
		if (cqe.status != ORNIC_WC_SUCCESS)
			ornic_tx_failed(nd, &cqe);
		tail = ornic_tx_free_to(nd, tail, le32_to_cpu(cqe.wqe_id) + 1, budget, &packets,
					&bytes);
	}
	if (!packets)
		return;
	ornic_cq_consumed(&nd->tx_cq);
	smp_store_release(&nd->sq.tail, tail);	/* slots before room */

	u64_stats_update_begin(&nd->tx_done.sync);
	nd->tx_done.packets += packets;
	nd->tx_done.bytes += bytes;
	u64_stats_update_end(&nd->tx_done.sync);
	netdev_tx_completed_queue(netdev_get_tx_queue(nd->dev, 0), packets, bytes);
	ornic_tx_wake(nd);
}

/* ornic_tx_init() - room for the frames in the send ring, which exists. */
int ornic_tx_init(struct ornic_netdev *nd)
{
	nd->tx_slots = kvcalloc(ornic_tx_entries(nd), sizeof(*nd->tx_slots), GFP_KERNEL);
	return nd->tx_slots ? 0 : -ENOMEM;
}

/* ornic_tx_cleanup() - free what was not sent. The device is done with it. */
void ornic_tx_cleanup(struct ornic_netdev *nd)
{
	u32 packets = 0, bytes = 0;

	if (!nd->tx_slots)
		return;
	nd->sq.tail = ornic_tx_free_to(nd, nd->sq.tail, nd->sq.head, 0, &packets, &bytes);
	netdev_tx_reset_queue(netdev_get_tx_queue(nd->dev, 0));
	kvfree(nd->tx_slots);
	nd->tx_slots = NULL;
}
