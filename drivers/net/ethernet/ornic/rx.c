// SPDX-License-Identifier: GPL-2.0
/*
 * Receive: one buffer per work request, one frame per buffer, and the NAPI
 * poll of both directions.
 *
 * The first segment of a buffer is at least 2048 bytes, with headroom and room for
 * skb_shared_info, so it becomes an sk_buff without copying. Longer frames continue
 * in whole pages; no MTU needs contiguous pages. Frames of at most ORNIC_RX_COPY
 * bytes are copied, and their buffer is posted again.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

#define ORNIC_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define ORNIC_RX_MIN_HEAD	2048	/* bytes of the smallest first segment */
#define ORNIC_RX_COPY		256	/* copy frames of at most this many bytes */

static u32 ornic_rx_entries(const struct ornic_queues *q)
{
	return 1u << q->rq.ring.log;
}

static struct ornic_rx_seg *ornic_rx_segs(struct ornic_queues *q, u32 index)
{
	return &q->rx_segs[(index & (ornic_rx_entries(q) - 1)) * q->shape.segs];
}

static u32 ornic_rx_seg_bytes(const struct ornic_queues *q, u32 seg)
{
	return seg ? PAGE_SIZE : q->shape.head;
}

/* Allocate the missing segments of a slot. Return: false without memory. */
static bool ornic_rx_alloc(struct ornic_queues *q, struct ornic_rx_seg *seg)
{
	u32 i;

	for (i = 0; i < q->shape.segs; i++) {
		if (!seg[i].page)
			seg[i].page = page_pool_dev_alloc_frag(q->pool, &seg[i].offset,
							       ornic_rx_seg_bytes(q, i));
		if (unlikely(!seg[i].page))
			return false;
	}
	return true;
}

static bool ornic_rx_post(struct ornic_queues *q)
{
	u32 index = q->rq.head;
	struct ornic_rwqe *entry = ornic_ring_at(&q->rq.ring, index);
	struct ornic_rx_seg *seg = ornic_rx_segs(q, index);
	struct ornic_sge *sge = (struct ornic_sge *)(entry + 1);
	u32 i;

	if (unlikely(!ornic_rx_alloc(q, seg)))
		return false;

	memset(entry, 0, sizeof(*entry));
	entry->count = cpu_to_le16(q->shape.segs);
	entry->id = cpu_to_le32(index);
	for (i = 0; i < q->shape.segs; i++) {
		dma_addr_t addr = page_pool_get_dma_addr(seg[i].page) + seg[i].offset;

		sge[i].addr = cpu_to_le64(i ? addr : addr + ORNIC_RX_HEADROOM);
		sge[i].length = cpu_to_le32(i ? PAGE_SIZE : q->shape.head_room);
		sge[i].lkey = cpu_to_le32(q->nd->core->odev.dma_lkey);
	}
	q->rq.head++;
	return true;
}

/* ornic_rx_fill() - post buffers until the receive ring is full. Return: false without memory. */
bool ornic_rx_fill(struct ornic_queues *q)
{
	u32 old = q->rq.published;
	bool full = true;

	while (full && q->rq.head - q->rq.tail < ornic_rx_entries(q))
		full = ornic_rx_post(q);
	if (q->rq.head != old) {
		q->rq.published = q->rq.head;
		ornic_ring_post(&q->nd->core->odev, ORNIC_DB_RQ, q->qpn, q->rq.ring.rec, old,
				q->rq.head);
	}
	return full;
}

/*
 * Post buffers from NAPI, which alone writes the counter: new queues are filled in process context
 * while NAPI polls the old ones.
 */
static void ornic_rx_refill(struct ornic_queues *q)
{
	struct ornic_rx_stats *stats = &q->nd->rx_stats;

	if (likely(ornic_rx_fill(q)))
		return;
	u64_stats_update_begin(&stats->sync);
	stats->no_buffer++;
	u64_stats_update_end(&stats->sync);
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

static void ornic_rx_sync_for_cpu(struct ornic_queues *q, const struct ornic_rx_seg *seg,
				  u32 offset, u32 len)
{
	dma_sync_single_range_for_cpu(ornic_dma_dev(q->nd->core), page_pool_get_dma_addr(seg->page),
				      seg->offset + offset, len, DMA_FROM_DEVICE);
}

static void ornic_rx_sync_for_device(struct ornic_queues *q, const struct ornic_rx_seg *seg,
				     u32 offset, u32 len)
{
	dma_sync_single_range_for_device(ornic_dma_dev(q->nd->core),
					 page_pool_get_dma_addr(seg->page), seg->offset + offset,
					 len, DMA_FROM_DEVICE);
}

/* Copy a small frame; its buffer stays in the slot. */
static struct sk_buff *ornic_rx_copy(struct ornic_queues *q, struct ornic_rx_seg *seg, u32 len)
{
	struct sk_buff *skb = napi_alloc_skb(&q->nd->napi, len);

	if (unlikely(!skb))
		return NULL;
	skb_put_data(skb, page_address(seg->page) + seg->offset + ORNIC_RX_HEADROOM, len);
	return skb;
}

/* Build an sk_buff from the segments that the frame uses; the others stay in the slot. */
static struct sk_buff *ornic_rx_build(struct ornic_queues *q, struct ornic_rx_seg *seg, u32 len)
{
	u32 part = min(len, q->shape.head_room);
	struct sk_buff *skb;
	int i = 0;

	skb = napi_build_skb(page_address(seg->page) + seg->offset, q->shape.head);
	if (unlikely(!skb))
		return NULL;
	seg->page = NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, ORNIC_RX_HEADROOM);
	skb_put(skb, part);
	for (len -= part; len; len -= part, i++) {
		seg++;
		part = min_t(u32, len, PAGE_SIZE);
		ornic_rx_sync_for_cpu(q, seg, 0, part);
		skb_add_rx_frag(skb, i, seg->page, seg->offset, part, PAGE_SIZE);
		seg->page = NULL;
	}
	return skb;
}

/* Pass a frame to the stack. */
static void ornic_rx_frame(struct ornic_queues *q, struct ornic_rx_seg *seg,
			   const struct ornic_cqe *cqe)
{
	u32 len = le32_to_cpu(cqe->byte_len);
	u32 part = min(len, q->shape.head_room);
	struct ornic_netdev *nd = q->nd;
	struct sk_buff *skb;

	ornic_rx_sync_for_cpu(q, seg, ORNIC_RX_HEADROOM, part);
	skb = len <= ORNIC_RX_COPY ? ornic_rx_copy(q, seg, len) : ornic_rx_build(q, seg, len);
	if (seg->page)	/* the frame was copied or dropped: the buffer is posted again */
		ornic_rx_sync_for_device(q, seg, ORNIC_RX_HEADROOM, part);
	if (unlikely(!skb)) {
		u64_stats_update_begin(&nd->rx_stats.sync);
		nd->rx_stats.dropped++;
		u64_stats_update_end(&nd->rx_stats.sync);
		return;
	}
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
		netdev_err(nd->dev, "receive of %u bytes failed: status %u, syndrome %#010x\n",
			   le32_to_cpu(cqe->byte_len), cqe->status, le32_to_cpu(cqe->syndrome));
	if (cqe->status != ORNIC_WC_SUCCESS)
		ornic_netdev_restart(nd);
}

/*
 * Return: false unless the completion is the next in ring order (ORN-CQ-1), and its frame fits the
 * posted buffers. A longer one would mean that the device wrote past them.
 */
static bool ornic_rx_valid(struct ornic_queues *q, const struct ornic_cqe *cqe)
{
	return (le32_to_cpu(cqe->qpn) & ORNIC_NUMBER_MASK) == q->qpn &&
	       q->rq.tail != q->rq.published && le32_to_cpu(cqe->wqe_id) == q->rq.tail &&
	       (cqe->status != ORNIC_WC_SUCCESS || le32_to_cpu(cqe->byte_len) <= q->shape.room);
}

/* Return: false if a frame is shorter than its header or longer than the MTU allows. */
static bool ornic_rx_fits(struct ornic_queues *q, u32 len)
{
	return len >= ETH_HLEN && len <= ornic_netdev_mtu(q->nd) + ORNIC_FRAME_HEADER;
}

static int ornic_rx_clean(struct ornic_queues *q, int budget)
{
	struct ornic_cqe cqe;
	int done = 0;

	while (done < budget && ornic_cq_next(&q->rx_cq, &cqe)) {
		if (!ornic_rx_valid(q, &cqe)) {
			ornic_device_malformed(&q->nd->core->odev, "receive completion");
			break;
		}
		if (likely(cqe.status == ORNIC_WC_SUCCESS &&
			   ornic_rx_fits(q, le32_to_cpu(cqe.byte_len))))
			ornic_rx_frame(q, ornic_rx_segs(q, q->rq.tail), &cqe);
		else
			ornic_rx_failed(q->nd, &cqe);
		q->rq.tail++;
		done++;
	}
	if (done)
		ornic_cq_consumed(&q->rx_cq);
	return done;
}

int ornic_napi_poll(struct napi_struct *napi, int budget)
{
	struct ornic_netdev *nd = container_of(napi, struct ornic_netdev, napi);
	struct ornic_queues *q = nd->queues;
	u32 tx_next, rx_next;
	bool missed;
	int done;

	ornic_tx_clean(q, budget);
	if (unlikely(!budget))
		return 0;
	done = ornic_rx_clean(q, budget);
	ornic_rx_refill(q);
	if (done == budget)
		return budget;
	if (unlikely(q->rq.head == q->rq.tail) && !ornic_dead(nd->core))
		return budget;	/* no buffer posted: no event would schedule NAPI again */

	tx_next = q->tx_cq.next;
	rx_next = q->rx_cq.next;
	if (napi_complete_done(napi, done)) {
		missed = ornic_cq_arm(&q->tx_cq, tx_next);
		missed |= ornic_cq_arm(&q->rx_cq, rx_next);
		if (missed)
			napi_schedule(napi);
	}
	return done;
}

static u32 ornic_rx_head_room(u32 head)
{
	return SKB_WITH_OVERHEAD(head) - ORNIC_RX_HEADROOM;
}

/* ornic_rx_shape() - compute buffer sizes for an MTU of at most ornic_rx_max_mtu() bytes. */
struct ornic_rx_shape ornic_rx_shape(const struct ornic_netdev *nd, int mtu)
{
	struct ornic_rx_shape shape = { .head = ORNIC_RX_MIN_HEAD, .segs = 1 };
	u32 frame = mtu + ORNIC_FRAME_HEADER;

	while (shape.head < PAGE_SIZE && ornic_rx_head_room(shape.head) < frame)
		shape.head *= 2;
	shape.head_room = ornic_rx_head_room(shape.head);
	if (frame > shape.head_room)
		shape.segs += DIV_ROUND_UP(frame - shape.head_room, PAGE_SIZE);
	shape.segs = min(shape.segs, nd->max_segs);
	shape.room = shape.head_room + (shape.segs - 1) * PAGE_SIZE;
	return shape;
}

/* ornic_rx_max_mtu() - return the largest MTU that fits the device's segments, in bytes. */
u32 ornic_rx_max_mtu(const struct ornic_netdev *nd)
{
	return ornic_rx_head_room(PAGE_SIZE) + (nd->max_segs - 1) * PAGE_SIZE -
	       ORNIC_FRAME_HEADER;
}

/* ornic_rx_init() - create page pool and slots of the receive ring. Return: 0 or errno. */
int ornic_rx_init(struct ornic_queues *q)
{
	struct ornic_netdev *nd = q->nd;
	u32 bytes = q->shape.head + (q->shape.segs - 1) * PAGE_SIZE;
	struct page_pool_params params = {
		.pool_size	= ornic_rx_entries(q) * bytes / PAGE_SIZE,
		.nid		= dev_to_node(ornic_dma_dev(nd->core)),
		.dev		= ornic_dma_dev(nd->core),
		.netdev		= nd->dev,
		.flags		= PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.dma_dir	= DMA_FROM_DEVICE,
		.max_len	= PAGE_SIZE,
	};

	q->rx_segs = kvzalloc_objs(*q->rx_segs, size_mul(ornic_rx_entries(q), q->shape.segs));
	if (!q->rx_segs)
		return -ENOMEM;
	q->pool = page_pool_create(&params);
	if (IS_ERR(q->pool)) {
		kvfree(q->rx_segs);
		q->rx_segs = NULL;
		return PTR_ERR(q->pool);
	}
	return 0;
}

/*
 * ornic_rx_use() - let NAPI recycle pages into the pool without locks. Call while NAPI is disabled.
 * From then on the pool must be destroyed while NAPI is disabled. Queues that never come into use
 * are destroyed while NAPI polls others.
 */
void ornic_rx_use(struct ornic_queues *q)
{
	page_pool_enable_direct_recycling(q->pool, &q->nd->napi);
}

/*
 * ornic_rx_cleanup() - free the buffers. The device no longer uses them. NAPI is disabled, or
 * ornic_rx_use() was not called.
 */
void ornic_rx_cleanup(struct ornic_queues *q)
{
	u32 i;

	if (!q->rx_segs)
		return;
	for (i = 0; i < ornic_rx_entries(q) * q->shape.segs; i++)
		if (q->rx_segs[i].page)
			page_pool_put_full_page(q->pool, q->rx_segs[i].page, false);
	page_pool_destroy(q->pool);
	kvfree(q->rx_segs);
	q->rx_segs = NULL;
}
