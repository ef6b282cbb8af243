// SPDX-License-Identifier: GPL-2.0
/*
 * Receive: one buffer per work request, one frame per buffer, and the NAPI
 * poll of both directions.
 *
 * A buffer is one page, or one block of pages for large MTUs, with room in
 * front of the frame and behind it for what the stack wants, so a frame becomes
 * a packet buffer without copying.
 */
#include <linux/dma-mapping.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

#define ORNIC_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)

static u32 ornic_rx_entries(const struct ornic_netdev *nd)
{
	return 1u << nd->rq.log;
}

static struct page **ornic_rx_page(struct ornic_netdev *nd, u32 index)
{
	return &nd->rx_pages[index & (ornic_rx_entries(nd) - 1)];
}

static bool ornic_rx_post(struct ornic_netdev *nd)
{
	u32 index = nd->rq.head;
	struct ornic_rwqe *entry = ornic_ring_entry(nd->rq.ring, index, nd->rq.log,
						    nd->rq.stride);
	struct ornic_sge *sge = (struct ornic_sge *)(entry + 1);
	struct page *page = page_pool_dev_alloc_pages(nd->pool);

	if (unlikely(!page))
		return false;
	*ornic_rx_page(nd, index) = page;

	memset(entry, 0, sizeof(*entry));
	entry->count = cpu_to_le16(1);
	entry->id = cpu_to_le32(index);
	sge->addr = cpu_to_le64(page_pool_get_dma_addr(page) + ORNIC_RX_HEADROOM);
	sge->length = cpu_to_le32(nd->rx_room);
	sge->lkey = cpu_to_le32(nd->core->odev.dma_lkey);
	nd->rq.head++;
	return true;
}

/* ornic_rx_fill() - post buffers until the receive ring is full or memory is short. */
void ornic_rx_fill(struct ornic_netdev *nd)
{
	u32 old = nd->rq.published;

	while (nd->rq.head - nd->rq.tail < ornic_rx_entries(nd)) {
		if (ornic_rx_post(nd))
			continue;
		u64_stats_update_begin(&nd->rx_stats.sync);
		nd->rx_stats.no_buffer++;
		u64_stats_update_end(&nd->rx_stats.sync);
		break;
	}
	if (nd->rq.head == old)
		return;
	nd->rq.published = nd->rq.head;
	ornic_ring_post(&nd->core->odev, ORNIC_DB_RQ, nd->qpn, nd->rq.rec, old, nd->rq.head);
}

static void ornic_rx_csum(struct ornic_netdev *nd, struct sk_buff *skb, u32 flags)
{
	skb_checksum_none_assert(skb);
	if (!(nd->dev->features & NETIF_F_RXCSUM) || !(flags & ORNIC_CQE_L4_CSUM_OK))
		return;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	u64_stats_update_begin(&nd->rx_stats.sync);
	nd->rx_stats.csum_ok++;
	u64_stats_update_end(&nd->rx_stats.sync);
}

static void ornic_rx_count(struct ornic_netdev *nd, u32 len)
{
	u64_stats_update_begin(&nd->rx_stats.sync);
	nd->rx_stats.packets++;
	nd->rx_stats.bytes += len;
	u64_stats_update_end(&nd->rx_stats.sync);
}

/* Hands the frame in a page to the stack; the page is the stack's or the pool's afterwards. */
static void ornic_rx_frame(struct ornic_netdev *nd, struct page *page,
			   const struct ornic_cqe *cqe)
{
	u32 len = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb;

	dma_sync_single_range_for_cpu(ornic_dma_dev(nd->core), page_pool_get_dma_addr(page),
				      ORNIC_RX_HEADROOM, len, DMA_FROM_DEVICE);
	skb = napi_build_skb(page_address(page), PAGE_SIZE << nd->rx_order);
	if (unlikely(!skb)) {
		u64_stats_update_begin(&nd->rx_stats.sync);
		nd->rx_stats.dropped++;
		u64_stats_update_end(&nd->rx_stats.sync);
		page_pool_recycle_direct(nd->pool, page);
		return;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, ORNIC_RX_HEADROOM);
	skb_put(skb, len);
	skb_record_rx_queue(skb, 0);
	skb->protocol = eth_type_trans(skb, nd->dev);
	ornic_rx_csum(nd, skb, le32_to_cpu(cqe->flags));
	ornic_rx_count(nd, len);
	napi_gro_receive(&nd->napi, skb);
}

static void ornic_rx_failed(struct ornic_netdev *nd, const struct ornic_cqe *cqe)
{
	u64_stats_update_begin(&nd->rx_stats.sync);
	nd->rx_stats.errors++;
	u64_stats_update_end(&nd->rx_stats.sync);
	if (cqe->status != ORNIC_WC_WR_FLUSH_ERR && net_ratelimit())
		netdev_err(nd->dev, "receive failed: status %u, syndrome %#010x\n", cqe->status,
			   le32_to_cpu(cqe->syndrome));
	if (cqe->status != ORNIC_WC_SUCCESS)
		ornic_netdev_restart(nd);
}

/* Receives complete in ring order (ORN-CQ-1); anything else is impossible. */
static bool ornic_rx_valid(struct ornic_netdev *nd, const struct ornic_cqe *cqe)
{
	return (le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK) == nd->qpn &&
	       nd->rq.tail != nd->rq.published && le32_to_cpu(cqe->wqe_id) == nd->rq.tail;
}

static int ornic_rx_clean(struct ornic_netdev *nd, int budget)
{
	struct ornic_cqe cqe;
	struct page *page;
	int done = 0;
	u32 len;

	while (done < budget && ornic_cq_next(&nd->rx_cq, &cqe)) {
		if (!ornic_rx_valid(nd, &cqe)) {
			ornic_device_malformed(&nd->core->odev, "receive completion");
			break;
		}
		page = *ornic_rx_page(nd, nd->rq.tail);
		*ornic_rx_page(nd, nd->rq.tail) = NULL;
		nd->rq.tail++;
		done++;

		len = le32_to_cpu(cqe.byte_len);
		if (likely(cqe.status == ORNIC_WC_SUCCESS && len >= ETH_HLEN &&
			   len <= nd->rx_room)) {
			ornic_rx_frame(nd, page, &cqe);
		} else {
			ornic_rx_failed(nd, &cqe);
			page_pool_recycle_direct(nd->pool, page);
		}
	}
	if (done)
		ornic_cq_consumed(&nd->rx_cq);
	return done;
}

int ornic_napi_poll(struct napi_struct *napi, int budget)
{
	struct ornic_netdev *nd = container_of(napi, struct ornic_netdev, napi);
	bool missed;
	int done;

	ornic_tx_clean(nd, budget);
	if (unlikely(!budget))
		return 0;
	done = ornic_rx_clean(nd, budget);
	ornic_rx_fill(nd);
	if (done == budget)
		return budget;
	if (unlikely(nd->rq.head == nd->rq.tail) && !ornic_dead(nd->core))
		return budget;	/* no buffer at all: nothing would wake this up again */

	if (napi_complete_done(napi, done)) {
		missed = ornic_cq_arm(&nd->tx_cq);
		missed |= ornic_cq_arm(&nd->rx_cq);
		if (missed)
			napi_schedule(napi);
	}
	return done;
}

/* ornic_rx_init() - buffers of the size that the MTU asks for. The receive ring exists. */
int ornic_rx_init(struct ornic_netdev *nd)
{
	u32 room = nd->dev->mtu + ORNIC_FRAME_HEADER;
	u32 bytes = SKB_DATA_ALIGN(ORNIC_RX_HEADROOM + room) +
		    SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct page_pool_params params = {
		.order		= get_order(bytes),
		.pool_size	= ornic_rx_entries(nd),
		.nid		= dev_to_node(ornic_dma_dev(nd->core)),
		.dev		= ornic_dma_dev(nd->core),
		.napi		= &nd->napi,
		.netdev		= nd->dev,
		.flags		= PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.dma_dir	= DMA_FROM_DEVICE,
		.offset		= ORNIC_RX_HEADROOM,
		.max_len	= room,
	};

	nd->rx_room = room;
	nd->rx_order = params.order;
	nd->rx_pages = kvcalloc(ornic_rx_entries(nd), sizeof(*nd->rx_pages), GFP_KERNEL);
	if (!nd->rx_pages)
		return -ENOMEM;
	nd->pool = page_pool_create(&params);
	if (IS_ERR(nd->pool)) {
		kvfree(nd->rx_pages);
		nd->rx_pages = NULL;
		return PTR_ERR(nd->pool);
	}
	return 0;
}

/* ornic_rx_cleanup() - free the buffers. The device is done with them, NAPI is off. */
void ornic_rx_cleanup(struct ornic_netdev *nd)
{
	if (!nd->rx_pages)
		return;
	for (; nd->rq.tail != nd->rq.head; nd->rq.tail++)
		page_pool_put_full_page(nd->pool, *ornic_rx_page(nd, nd->rq.tail), false);
	page_pool_destroy(nd->pool);
	nd->pool = NULL;
	kvfree(nd->rx_pages);
	nd->rx_pages = NULL;
}
