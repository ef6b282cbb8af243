// SPDX-License-Identifier: GPL-2.0
/*
 * Ethernet queue pairs: each work request is a frame.
 *
 * A frame in the switch refers to guest memory and, for inline bytes, to the copy of its work
 * request. But its beginning (addresses, VLAN tag, and the EtherType behind the tag; all headers if
 * IP addresses are checked) and the checksum field are copied into the packet. So the guest cannot
 * change address or VLAN after they were checked (ORN-SEC-4), and no checksum is written to guest
 * memory.
 *
 * A send completes after the frame was delivered, when no packet refers to its memory any more
 * (ORN-WQE-12).
 */
#include "raw.h"

#include "engine.h"
#include "link.h"
#include "mr.h"
#include "qp.h"
#include "../packet/csum.h"
#include "../packet/wire.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

/** RAW_BUDGET - frames per turn of one queue pair */
#define RAW_BUDGET	32

#define ETH_HEADER	14
/* Longest headers that IP_CSUM needs: Ethernet, VLAN, IPv4 with options, TCP. */
#define PARSE_BYTES	(ETH_OVERHEAD + 60 + 20)
#define CSUM_BYTES	2u
/* Most bytes of a frame's beginning that are copied; a checksum field behind them fits, too. */
#define RAW_COPY	(PACKET_INLINE - CSUM_BYTES)

static bool raw_bad(struct wqe *w, uint8_t status, uint32_t syndrome)
{
	w->status = status;
	w->syndrome = syndrome;
	return false;
}

static bool csum_partial(const struct wqe *w)
{
	return w->eth->eflags & ORNIC_ETH_CSUM_PARTIAL;
}

/* Return the end of the checksum field of CSUM_PARTIAL, bytes from the beginning of the frame. */
static uint32_t csum_end(const struct wqe *w)
{
	return le16toh(w->eth->csum_start) + le16toh(w->eth->csum_offset) + CSUM_BYTES;
}

/*
 * Return the bytes of the beginning of a frame of @total bytes that have to be copied into the
 * packet. A checksum field that is further behind is copied alone.
 */
static uint32_t raw_own(const struct qp *qp, const struct wqe *w, uint32_t total)
{
	bool source = qp->dev->port.flags & ORNIC_PORT_F_ANTI_SPOOF_IP;
	uint32_t own = 0, least = source ? ANTISPOOF_BYTES : ETH_OVERHEAD;

	if (least > total)
		least = total;
	if (csum_partial(w) && csum_end(w) <= RAW_COPY)
		own = csum_end(w);
	else if (w->flags & ORNIC_WQE_IP_CSUM)
		own = total < PARSE_BYTES ? total : PARSE_BYTES;
	return own < least ? least : own;
}

/* Reject a frame of illegal length, or with a checksum field outside of it. */
static bool raw_check(const struct qp *qp, struct wqe *w)
{
	uint64_t total = (uint64_t)le16toh(w->eth->inline_hdr) + w->len;
	bool csum = csum_partial(w) || (w->flags & ORNIC_WQE_IP_CSUM);

	if (csum && !(qp->dev->features >> ORNIC_F_TX_CSUM & 1))
		return raw_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	if (total < ETH_HEADER || total > qp->dev->port.max_frame + ETH_OVERHEAD)
		return raw_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
	if (csum_partial(w) && csum_end(w) > total)
		return raw_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	return true;
}

/* Let a piece begin at byte @at of the frame. Return: its index. */
static uint32_t raw_cut(struct packet *p, uint32_t at)
{
	uint32_t i = 0;

	while (at && at >= p->seg[i].len)
		at -= p->seg[i++].len;
	if (!at)
		return i;
	memmove(p->seg + i + 1, p->seg + i, (p->nseg - i) * sizeof(p->seg[0]));
	p->nseg++;
	p->seg[i++].len = at;
	p->seg[i].ptr += at;
	p->seg[i].len -= at;
	return i;
}

/* Copy @len bytes of the frame from byte @at on to @own, and let the frame refer to the copy. */
static void raw_copy(struct packet *p, uint32_t at, uint32_t len, uint8_t *own)
{
	uint32_t first, end;

	seg_copy_out(own, p->seg, p->nseg, at, len);
	first = raw_cut(p, at);
	end = raw_cut(p, at + len);
	memmove(p->seg + first + 1, p->seg + end, (p->nseg - end) * sizeof(p->seg[0]));
	p->seg[first] = (struct seg){ .ptr = own, .len = len };
	p->nseg -= end - first - 1;
}

/*
 * Gather the frame into @p; its first piece is the copy of its beginning. A packet has room for all
 * pieces of a legal frame (dev/limits.h). Return: false if @w fails.
 */
static bool raw_gather(struct qp *qp, struct wqe *w, struct packet *p)
{
	uint32_t head = le16toh(w->eth->inline_hdr);
	uint64_t got;
	int n = 1;

	if (w->inl)
		p->seg[0] = (struct seg){ .ptr = (uint8_t *)w->inl, .len = w->len };
	else
		n = data_gather(qp, w->sge, w->nsge, 0, w->len, p->seg, &got, &w->syndrome);
	if (n < 0)
		return raw_bad(w, ORNIC_WC_LOC_PROT_ERR, w->syndrome);
	assert(n < PACKET_SEGS);
	memmove(p->seg + 1, p->seg, n * sizeof(p->seg[0]));
	p->seg[0] = (struct seg){ .ptr = (uint8_t *)w->hdr, .len = head };
	p->nseg = n + 1;
	p->len = head + w->len;
	raw_copy(p, 0, raw_own(qp, w, p->len), p->inl);
	return true;
}

static void raw_csum_partial(const struct wqe *w, struct packet *p)
{
	uint32_t at = csum_end(w) - CSUM_BYTES, own = p->seg[0].len;
	uint8_t *field = p->inl + at;
	uint16_t csum;

	csum = csum_fold_l4(csum_segs(0, p->seg, p->nseg, le16toh(w->eth->csum_start)));
	if (at + CSUM_BYTES > own) {
		field = p->inl + own;
		raw_copy(p, at, CSUM_BYTES, field);
	}
	memcpy(field, &csum, sizeof(csum));
	p->csum_ok = true;
}

static void raw_csum(const struct wqe *w, struct packet *p)
{
	if (csum_partial(w))
		raw_csum_partial(w, p);
	else if (w->flags & ORNIC_WQE_IP_CSUM)
		p->csum_ok = csum_fill(p->inl, p->seg[0].len, p->seg + 1, p->nseg - 1);
}

/* Pad a short frame. It uses less than ETH_MIN_FRAME bytes of @p->inl, so the rest is free. */
static void raw_pad(struct packet *p)
{
	uint32_t pad = ETH_MIN_FRAME - p->len;

	if (p->len >= ETH_MIN_FRAME)
		return;
	memset(p->inl + ETH_MIN_FRAME, 0, pad);
	p->seg[p->nseg++] = (struct seg){ .ptr = p->inl + ETH_MIN_FRAME, .len = pad };
	p->len += pad;
}

/* Send @w as @p. Return: false if @w failed; otherwise the switch owns @p. */
static bool raw_send(struct qp *qp, struct wqe *w, struct packet *p)
{
	if (!raw_check(qp, w) || !raw_gather(qp, w, p))
		return false;
	raw_csum(w, p);
	raw_pad(p);
	p->kind = PACKET_ETHERNET;
	memcpy(p->dmac, p->inl, sizeof(p->dmac));
	memcpy(p->smac, p->inl + sizeof(p->dmac), sizeof(p->smac));
	link_send_frame(qp, p);
	return true;
}

/* Send the next work request. Return: 1 if sent, 0 if none is posted, negative if it failed. */
static int raw_next(struct qp *qp, struct wqe *w, struct packet *p)
{
	struct packet_pool *pool = &qp->dev->engine->pool;
	int ret = wqe_fetch(qp, w);

	if (ret > 0 && !w->status && w->opcode == ORNIC_WR_SEND && raw_send(qp, w, p))
		return 1;
	packet_put(pool, p);
	return ret > 0 && w->status ? -1 : ret;
}

bool raw_run(struct qp *qp)
{
	struct engine *e = qp->dev->engine;
	struct wqe *w = (struct wqe *)qp->req.win;
	int budget = RAW_BUDGET;
	int ret = 1;

	if (!w)
		return false;
	for (; budget && qp->state == ORNIC_QPS_RTS && !engine_sated(e); budget--) {
		struct packet *p;

		ret = rate_open(&qp->rate, &qp->dev->timers, e->now);
		p = ret ? packet_get(&e->pool) : NULL;
		if (!p)
			break;
		w->status = ORNIC_WC_SUCCESS;
		ret = raw_next(qp, w, p);
		if (ret <= 0)
			break;
		switch_drain(e->sw);
		complete_send(qp, w);
	}
	if (ret < 0 && w->status) {
		complete_send(qp, w);
		qp_fail(qp, 0, w->syndrome, w->index);
	}
	return ret > 0 && qp->state == ORNIC_QPS_RTS;
}

/* Return true if the frame is IPv4 with a correct header checksum. Checks a copy. */
static bool raw_ipv4_ok(const struct packet *p)
{
	uint8_t head[ETH_OVERHEAD + 60];
	uint32_t len = p->len < sizeof(head) ? p->len : sizeof(head);
	uint32_t at = 12;

	seg_copy_out(head, p->seg, p->nseg, 0, len);
	if (len > at + 6 && head[at] == 0x81 && !head[at + 1])
		at += 4;
	if (len < at + 2 || head[at] != 0x08 || head[at + 1])
		return false;
	return csum_ipv4_ok(head + at + 2, len - at - 2);
}

static uint32_t raw_rx_flags(const struct qp *qp, const struct packet *p)
{
	uint32_t flags = 0;

	if (!(qp->dev->features >> ORNIC_F_RX_CSUM & 1))
		return 0;
	if (p->csum_ok)
		flags |= ORNIC_CQE_L4_CSUM_OK;
	if (raw_ipv4_ok(p))
		flags |= ORNIC_CQE_IP_CSUM_OK;
	return flags;
}

static void raw_describe(const struct qp *qp, const struct packet *p,
			 const struct raw_meta *meta, struct ornic_cqe *cqe)
{
	uint32_t flags = raw_rx_flags(qp, p);

	if (meta) {
		flags |= ORNIC_CQE_FLOW_TAG;
		cqe->src_qp = htole32(meta->flow_tag);
	}
	if (meta && meta->rss_type) {
		flags |= ORNIC_CQE_HASH;
		cqe->rss_hash = htole32(meta->rss_hash);
		cqe->rss_type = meta->rss_type;
	}
	cqe->flags = htole32(flags);
}

void raw_receive(struct qp *qp, const struct packet *p, const struct raw_meta *meta)
{
	struct rwqe *recv = &qp->resp.recv;
	struct ornic_cqe cqe = { .byte_len = htole32(p->len) };
	uint32_t syndrome;
	int err;

	if (qp->state < ORNIC_QPS_RTR || qp->state == ORNIC_QPS_ERR ||
	    (!recv->valid && rwqe_fetch(qp, recv) <= 0)) {
		qp_count(qp, CNT_rx_drop_no_wqe, 1);
		return;
	}
	if (p->len > recv->len) {
		qp_count(qp, CNT_rx_drop_size, 1);
		return;
	}
	err = data_scatter(qp, recv->sge, recv->nsge, 0, p, &syndrome);
	if (err == -EAGAIN)
		return;
	recv->valid = false;
	if (!err) {
		raw_describe(qp, p, meta, &cqe);
		complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_SUCCESS, 0, &cqe);
		return;
	}
	complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_LOC_PROT_ERR, syndrome, &cqe);
	qp_fail(qp, 0, syndrome, recv->index);
}
