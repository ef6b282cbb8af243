// SPDX-License-Identifier: GPL-2.0
/*
 * Ethernet queue pairs: each work request is a frame.
 *
 * A frame in the switch refers to guest memory except for its beginning: addresses and checksum
 * field are copied into the packet. So the guest cannot change the address after it was checked,
 * and no checksum is written to guest memory.
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

#include <endian.h>
#include <string.h>

/** RAW_BUDGET - frames per turn of one queue pair */
#define RAW_BUDGET	32

#define ETH_HEADER	14
/* Bytes of a frame that max_frame does not count: Ethernet header and one VLAN tag. */
#define ETH_OVERHEAD	18u
/* Longest headers that IP_CSUM needs: Ethernet, VLAN, IPv4 with options, TCP. */
#define PARSE_BYTES	(ETH_OVERHEAD + 60 + 20)

static bool raw_bad(struct wqe *w, uint8_t status, uint32_t syndrome)
{
	w->status = status;
	w->syndrome = syndrome;
	return false;
}

/* Return the bytes of a frame of @total bytes that have to be copied into the packet. */
static uint32_t raw_own(const struct wqe *w, uint32_t total)
{
	uint32_t own = ETH_HEADER;

	if (w->eth->eflags & ORNIC_ETH_CSUM_PARTIAL)
		own = le16toh(w->eth->csum_start) + le16toh(w->eth->csum_offset) + 2;
	else if (w->flags & ORNIC_WQE_IP_CSUM)
		own = total < PARSE_BYTES ? total : PARSE_BYTES;
	return own < ETH_HEADER ? ETH_HEADER : own;
}

/* Reject a frame of illegal length, or with a checksum field outside of it. */
static bool raw_check(const struct qp *qp, struct wqe *w)
{
	uint64_t total = (uint64_t)le16toh(w->eth->inline_hdr) + w->len;
	uint32_t inlined = le16toh(w->eth->inline_hdr) + (w->inl ? w->len : 0);
	bool csum = (w->eth->eflags & ORNIC_ETH_CSUM_PARTIAL) || (w->flags & ORNIC_WQE_IP_CSUM);

	if (csum && !(qp->dev->features >> ORNIC_F_TX_CSUM & 1))
		return raw_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	if (total < ETH_HEADER || total > qp->dev->port.max_frame + ETH_OVERHEAD ||
	    inlined > PACKET_INLINE)
		return raw_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
	if (raw_own(w, total) > total || raw_own(w, total) > PACKET_INLINE)
		return raw_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	return true;
}

/*
 * Gather the frame into @p. A frame of more pieces than a packet can hold leaves @p without
 * payload.
 * Return: false if @w fails.
 */
static bool raw_gather(struct qp *qp, struct wqe *w, struct packet *p)
{
	uint32_t head = le16toh(w->eth->inline_hdr);
	uint32_t own = raw_own(w, head + w->len);
	uint64_t got = 0;
	int n = 0;

	memcpy(p->inl, w->hdr, head);
	if (w->inl) {
		memcpy(p->inl + head, w->inl, w->len);
		head += w->len;
	} else {
		n = data_gather(qp, w->sge, w->nsge, 0, w->len, p->seg, &got, &w->syndrome);
		if (n < 0)
			return raw_bad(w, ORNIC_WC_LOC_PROT_ERR, w->syndrome);
		if (got < w->len)
			return true;
	}
	p->len = got;
	p->nseg = n;
	if (own > head) {
		seg_copy_out(p->inl + head, p->seg, p->nseg, 0, own - head);
		packet_trim_front(p, own - head);
		head = own;
	}
	if (p->nseg > PACKET_SEGS - 2) {
		p->nseg = 0;
		return true;
	}
	memmove(p->seg + 1, p->seg, p->nseg * sizeof(p->seg[0]));
	p->seg[0] = (struct seg){ .ptr = p->inl, .len = head };
	p->nseg++;
	p->len += head;
	return true;
}

static void raw_csum(const struct wqe *w, struct packet *p)
{
	uint32_t start = le16toh(w->eth->csum_start);
	uint16_t csum;

	if (w->eth->eflags & ORNIC_ETH_CSUM_PARTIAL) {
		csum = csum_fold(csum_segs(0, p->seg, p->nseg, start));
		if (!csum)
			csum = 0xffff;
		memcpy(p->inl + start + le16toh(w->eth->csum_offset), &csum, sizeof(csum));
		p->csum_ok = true;
	} else if (w->flags & ORNIC_WQE_IP_CSUM) {
		p->csum_ok = csum_fill(p->inl, p->seg[0].len, p->seg + 1, p->nseg - 1);
	}
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
	if (!p->nseg) {
		qp_count(qp, CNT_tx_drop, 1);
		packet_put(&qp->dev->engine->pool, p);
		return true;
	}
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

		ret = rate_open(&qp->rate, &e->timers, e->now);
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

	if (qp->state < ORNIC_QPS_RTR || qp->state == ORNIC_QPS_ERR ||
	    (!recv->valid && rwqe_fetch(qp, recv) <= 0)) {
		qp_count(qp, CNT_rx_drop_no_wqe, 1);
		return;
	}
	if (p->len > recv->len) {
		qp_count(qp, CNT_rx_drop_size, 1);
		return;
	}
	recv->valid = false;
	if (!data_scatter(qp, recv->sge, recv->nsge, 0, p, &syndrome)) {
		raw_describe(qp, p, meta, &cqe);
		complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_SUCCESS, 0, &cqe);
		return;
	}
	complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_LOC_PROT_ERR, syndrome, &cqe);
	qp_fail(qp, 0, syndrome, recv->index);
}
