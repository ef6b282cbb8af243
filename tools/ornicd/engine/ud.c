// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable datagrams: UD queue pairs and the GSI (IBTA volume 1, 9.8.3).
 *
 * A send completes when the datagram was sent. A datagram without a receive waits in the backlog
 * (backlog.h). A datagram that cannot be delivered is dropped and counted, and the next receive
 * stays.
 */
#include "ud.h"

#include "engine.h"
#include "link.h"
#include "message.h"
#include "mr.h"
#include "qp.h"
#include "unreliable.h"
#include "../net/vlan.h"
#include "../packet/bth.h"
#include "../packet/ip.h"
#include "../packet/wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/** UD_BUDGET - datagrams per turn of one queue pair */
#define UD_BUDGET	16

/* Bytes of UDP, BTH, DETH and ICRC around a datagram's payload, without immediate data */
#define UD_OVERHEAD	(8 + 12 + 8 + 4)

static bool ud_bad(struct wqe *w, uint8_t status, uint32_t syndrome)
{
	w->status = status;
	w->syndrome = syndrome;
	return false;
}

/* Gather the payload into @p, which has room for all its pieces (dev/limits.h). */
static bool ud_payload(struct qp *qp, struct wqe *w, struct packet *p)
{
	uint64_t got;
	int n;

	if (w->inl) {
		memcpy(p->inl, w->inl, w->len);
		p->seg[0] = (struct seg) { p->inl, w->len };
		p->nseg = 1;
		p->len = w->len;
		return true;
	}
	n = data_gather(qp, w->sge, w->nsge, 0, w->len, p->seg, &got, &w->syndrome);
	if (n < 0)
		return ud_bad(w, ORNIC_WC_LOC_PROT_ERR, w->syndrome);
	p->nseg = n;
	p->len = got;
	return true;
}

static void ud_headers(struct qp *qp, const struct wqe *w, struct packet *p)
{
	uint32_t qkey = le32toh(w->path->qkey);

	p->opcode = w->opcode == ORNIC_WR_SEND_IMM ? BTH_UD_SEND_ONLY_IMM : BTH_UD_SEND_ONLY;
	p->solicited = w->flags & ORNIC_WQE_SOLICITED;
	p->imm = w->imm;
	p->dqpn = le32toh(w->path->dest_qpn);
	p->sender = qp;
	p->qkey = qkey & ORNIC_QKEY_OWN ? qp->qkey : qkey;
	p->psn = qp->req.next_psn++ & BTH_PSN_MASK;
}

/* Send the datagram of @w, or set its status. Return: false if the pool is empty; try again. */
static bool ud_send(struct qp *qp, struct wqe *w)
{
	struct packet *p;

	if (w->len > link_mtu(qp->dev)) {
		ud_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
		return true;
	}
	p = link_packet(qp, w->path, &w->syndrome);
	if (!p)
		return w->syndrome ? !ud_bad(w, ORNIC_WC_LOC_QP_OP_ERR, w->syndrome) : false;
	if (!ud_payload(qp, w, p)) {
		packet_put(&qp->dev->engine->pool, p);
		return true;
	}
	ud_headers(qp, w, p);
	qp_count(qp, CNT_tx_send, 1);
	link_send(qp, p);
	return true;
}

bool ud_run(struct qp *qp)
{
	return unreliable_run(qp, ud_send);
}

static void ud_complete(struct qp *qp, const struct packet *p)
{
	uint16_t vlan = vlan_id(p);
	struct ornic_cqe cqe = {
		.byte_len = htole32(p->len + ORNIC_GRH_BYTES),
		.src_qp = htole32(p->sqpn),
		.vlan_tci = htole16(vlan ? p->vlan_tci : 0),
		.sl = p->vlan ? p->vlan_tci >> 13 : 0,
		.net_type = ip_is_v4(p->dgid) ? ORNIC_NET_IPV4 : ORNIC_NET_IPV6,
	};
	uint32_t flags = ORNIC_CQE_GRH | ORNIC_CQE_SMAC | ORNIC_CQE_NET_TYPE;

	if (p->opcode == BTH_UD_SEND_ONLY_IMM) {
		flags |= ORNIC_CQE_WITH_IMM;
		cqe.imm = p->imm;
	}
	if (p->solicited)
		flags |= ORNIC_CQE_SOLICITED;
	if (vlan)
		flags |= ORNIC_CQE_VLAN;
	memcpy(cqe.smac, p->smac, sizeof(cqe.smac));
	cqe.flags = htole32(flags);
	qp->resp.recv.valid = false;
	complete_recv(qp, qp->resp.recv.index, ORNIC_WC_RECV, ORNIC_WC_SUCCESS, 0, &cqe);
}

/*
 * Build the 40-byte GRH area in front of a received datagram: the IPv6 header, or the IPv4 header
 * in its last 20 bytes (RoCEv2 annex A17.4.5.2). @transport_len: bytes of the IP payload.
 */
static void grh_build(uint8_t grh[ORNIC_GRH_BYTES], const struct packet *p, uint16_t transport_len)
{
	memset(grh, 0, ORNIC_GRH_BYTES);
	/*
	 * ib_get_rdma_header_version() of Linux (6.12, 7.2) and ibv_init_ah_from_wc() of rdma-core
	 * (65.0) find an IPv4 header by its version or, if the first 20 bytes look like IPv6, by
	 * its checksum. Otherwise they take it for IPv6, and a reply goes to a wrong address.
	 */
	if (ip_is_v4(p->dgid))
		ip_v4_build(grh + ORNIC_GRH_BYTES - IPV4_BYTES, p, transport_len);
	else
		ip_v6_build(grh, p, transport_len);
}

/* Write GRH area and payload, or fail the receive if a key does not allow it. */
static void ud_place(struct qp *qp, const struct packet *p)
{
	struct rwqe *recv = &qp->resp.recv;
	uint16_t imm = p->opcode == BTH_UD_SEND_ONLY_IMM ? 4 : 0;
	uint8_t grh[ORNIC_GRH_BYTES];
	struct packet head = {
		.len = sizeof(grh),
		.nseg = 1,
		.seg[0] = { grh, sizeof(grh) },
	};
	struct ornic_cqe cqe = {};
	uint32_t syndrome;
	int err;

	grh_build(grh, p, p->len + ((4 - p->len) & 3) + UD_OVERHEAD + imm);
	err = data_receive(qp, 0, &head, &syndrome) ?:
	      data_receive(qp, sizeof(grh), p, &syndrome);
	if (!err)
		ud_complete(qp, p);
	if (!err || err == -EAGAIN)
		return;
	recv->valid = false;
	complete_recv(qp, recv->index, ORNIC_WC_RECV, ORNIC_WC_LOC_PROT_ERR, syndrome, &cqe);
	qp_fail(qp, 0, syndrome, recv->index);
}

/*
 * Drop a datagram that is longer than its receive. A receive of an RQ stays for the next datagram;
 * one of an SRQ goes back to the host, so that idle queue pairs hold no shared entries (ORN-SRQ-9).
 */
static void ud_too_long(struct qp *qp)
{
	qp_count(qp, CNT_rx_drop_size, 1);
	if (qp->srq)
		message_fail_receive(qp, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
}

/* Deliver @p, or drop and count it. Return: false if no receive is posted. */
static bool ud_deliver(struct qp *qp, const struct packet *p)
{
	struct rwqe *recv = &qp->resp.recv;

	if (!recv->valid && rwqe_fetch(qp, recv) <= 0)
		return false;
	if (p->len + ORNIC_GRH_BYTES > recv->len) {
		ud_too_long(qp);
		return true;
	}
	qp_count(qp, CNT_rx_send, 1);
	ud_place(qp, p);
	return true;
}

/*
 * Keep @p for a receive that is posted later. This works only with an own RQ, which is polled
 * meanwhile; a post to an SRQ does not wake its queue pairs.
 */
static bool ud_keep(struct qp *qp, const struct packet *p)
{
	if (!qp->rq.present || !backlog_add(&qp->backlog, qp->dev, p))
		return false;
	engine_activate(qp->dev->engine, qp);
	return true;
}

void ud_receive(struct qp *qp, const struct packet *p)
{
	bool known = p->opcode == BTH_UD_SEND_ONLY || p->opcode == BTH_UD_SEND_ONLY_IMM;

	if (qp->state < ORNIC_QPS_RTR || qp->state == ORNIC_QPS_ERR)
		return;
	if (!known) {
		qp_count(qp, CNT_bad_opcode, 1);
		return;
	}
	if (p->qkey != qp->qkey) {
		qp_count(qp, CNT_bad_qkey, 1);
		return;
	}
	if (!backlog_empty(&qp->backlog) || !ud_deliver(qp, p)) {
		if (qp->state != ORNIC_QPS_ERR && !ud_keep(qp, p))
			qp_count(qp, CNT_rx_drop_no_wqe, 1);
	}
}

bool ud_catch_up(struct qp *qp)
{
	for (int budget = UD_BUDGET; budget && !backlog_empty(&qp->backlog); budget--) {
		struct packet *p = backlog_first(&qp->backlog, qp->dev);
		bool done;

		/*
		 * No packet is free: run again. Polling the receive ring need not wake the queue
		 * pair, because its last receive may have left the ring already, for a datagram
		 * that was too long for it.
		 */
		if (!p)
			return true;
		done = ud_deliver(qp, p);
		packet_put(&qp->dev->engine->pool, p);
		/* A malformed receive puts the queue pair into ERR, which clears the backlog. */
		if (!done || backlog_empty(&qp->backlog))
			return false;
		backlog_drop(&qp->backlog, qp->dev);
	}
	return !backlog_empty(&qp->backlog);
}
