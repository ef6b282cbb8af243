// SPDX-License-Identifier: GPL-2.0
/*
 * RC requester: from work requests to packets (IBTA volume 1, 9.7.3, 10.8).
 *
 * A work request is fetched into the window when it is next to send. It gets its PSNs there and is
 * sent in packets of up to PACKET_MAX_PAYLOAD bytes. It leaves the window when it and all work
 * requests before it are acknowledged (ack.c).
 */
#include "credit.h"
#include "engine.h"
#include "link.h"
#include "memop.h"
#include "mr.h"
#include "qp.h"

#include <string.h>

/** REQUESTER_BUDGET - packets per turn of one queue pair */
#define REQUESTER_BUDGET	16
/** REMOTE_PACKET - most PSNs of a packet to a remote peer, and PSNs between requests for an ACK */
#define REMOTE_PACKET		(REQUESTER_REMOTE_WINDOW / 4)

/* RESET has emptied the window. */
void requester_start(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->next_psn = qp->sq_psn;
	r->una = qp->sq_psn;
	r->sent_psn = qp->sq_psn;
	r->reads = 0;
	r->unread = 0;
	r->went_back = false;
	r->rewound = false;
	r->rnr_nak = false;
	r->remote = false;
	r->ssn = 0;
	r->limited = false;
	r->retry_left = qp->retry_cnt;
	r->rnr_left = qp->rnr_retry;
	r->rtt_sent = 0;
	r->rtt = 0;
	r->retransmits = 0;
	requester_timers_init(qp);
}

void requester_stop(struct qp *qp)
{
	struct timers *ts = &qp->dev->timers;

	timer_disarm(ts, &qp->req.ack_timer);
	timer_disarm(ts, &qp->req.rnr_timer);
	rate_stop(&qp->rate, ts);
}

static enum counter request_counter(const struct wqe *w)
{
	switch (w->opcode) {
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
	case ORNIC_WR_ATOMIC_WRITE:
		return CNT_tx_write;
	case ORNIC_WR_RDMA_READ:
		return CNT_tx_read;
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return CNT_tx_atomic;
	case ORNIC_WR_FLUSH:
		return CNT_tx_flush;
	default:
		return CNT_tx_send;
	}
}

/*
 * Fetch the next work request from the ring into the window. Return: false if none is posted or the
 * window is full.
 */
static bool requester_fetch(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct wqe *w = requester_wqe(r, r->tail);

	if (qp->state != ORNIC_QPS_RTS || r->tail - r->head > r->mask)
		return false;
	if (wqe_fetch(qp, w) <= 0)
		return false;
	if (!w->status && wqe_is_read(w) && !qp->max_rd_atomic) {
		w->status = ORNIC_WC_LOC_QP_OP_ERR;	/* it could never start */
		w->syndrome = ORNIC_SYN_WQE_OPCODE;
	}
	w->psn = r->next_psn;
	if (!w->status && w->opcode != ORNIC_WR_NOP && !wqe_is_memop(w)) {
		w->npsn = psn_count(w->len, qp_mtu(qp));
		r->ssn = psn_add(r->ssn, 1);
		w->ssn = r->ssn;
		qp_count(qp, request_counter(w), 1);
	}
	r->next_psn = wqe_end(w);
	r->tail++;
	if (!w->status && wqe_is_read(w))
		r->unread++;
	return true;
}

/* Return the most PSNs of a packet. The window to a remote peer has room for four packets. */
static uint32_t max_psns(const struct qp *qp)
{
	uint32_t most = qp_max_payload(qp) / qp_mtu(qp);

	return qp->req.remote && most > REMOTE_PACKET ? REMOTE_PACKET : most;
}

/*
 * Return true if the next packet of @w, the next work request to send from, may go. The window
 * bounds the PSNs in flight, a fence waits for reads, and the peer bounds the reads in flight.
 */
static bool wqe_may_send(const struct qp *qp, const struct wqe *w)
{
	const struct requester *r = &qp->req;
	uint32_t at = w->psn + w->sent;
	uint32_t psns = wqe_is_read(w) ? w->npsn : max_psns(qp);
	bool wide = wqe_is_read(w) || !r->remote;
	uint32_t window = wide ? REQUESTER_PSN_WINDOW : REQUESTER_REMOTE_WINDOW;

	if (at != r->una && (at + psns - r->una > window || credit_limits(r, w)))
		return false;
	if (w->sent)
		return true;
	if ((w->flags & ORNIC_WQE_FENCE) && r->reads)
		return false;
	return !wqe_is_read(w) || r->reads < qp->max_rd_atomic;
}

/*
 * Find the work request to send from, or NULL. Memory operations are executed on the way; each
 * work request without packets costs @budget too.
 *
 * A fence waits for reads. An invalidation waits until all work requests before it are complete,
 * because a retransmission of them needs the key (ORN-WQE-61).
 */
static struct wqe *requester_next(struct qp *qp, int *budget)
{
	struct requester *r = &qp->req;

	for (; *budget; --*budget) {
		struct wqe *w;

		if (r->cur == r->tail && !requester_fetch(qp))
			return NULL;
		w = requester_wqe(r, r->cur);
		if (w->status) {
			requester_retire(qp);
			return NULL;
		}
		if (wqe_is_memop(w) && !w->done) {
			bool waits = w->opcode == ORNIC_WR_LOCAL_INV ? r->head != r->cur :
				     (w->flags & ORNIC_WQE_FENCE) && r->unread;

			if (waits)
				return NULL;
			memop_execute(qp, w);
			if (w->status)
				continue;
		}
		if (w->sent < w->npsn)
			return wqe_may_send(qp, w) ? w : NULL;
		r->cur++;
		if (!w->npsn)
			requester_retire(qp);
		if (qp->state == ORNIC_QPS_ERR)
			return NULL;
	}
	return NULL;
}

static uint8_t opcode_of(const struct wqe *w, bool first, bool last)
{
	bool write = w->opcode == ORNIC_WR_RDMA_WRITE || w->opcode == ORNIC_WR_RDMA_WRITE_IMM;
	bool imm = w->opcode == ORNIC_WR_RDMA_WRITE_IMM || w->opcode == ORNIC_WR_SEND_IMM;
	uint8_t base = write ? BTH_RC_WRITE_FIRST : BTH_RC_SEND_FIRST;

	if (last && w->opcode == ORNIC_WR_SEND_INV)
		return first ? BTH_RC_SEND_ONLY_INV : BTH_RC_SEND_LAST_INV;
	if (first && last)
		return base + (BTH_RC_SEND_ONLY - BTH_RC_SEND_FIRST) + imm;
	if (last)
		return base + (BTH_RC_SEND_LAST - BTH_RC_SEND_FIRST) + imm;
	return first ? base : base + (BTH_RC_SEND_MIDDLE - BTH_RC_SEND_FIRST);
}

/*
 * Fill in the payload of @w from byte @off on: as much as fits a packet, cut to whole MTUs unless
 * the message ends. Return: false if a key does not allow it; then @w has status and syndrome.
 */
static bool fill_payload(struct qp *qp, struct wqe *w, struct packet *p, uint64_t off)
{
	uint64_t left = w->len - off;
	uint64_t most = (uint64_t)max_psns(qp) * qp_mtu(qp);
	uint64_t want = left < most ? left : most;
	uint64_t got;
	int n;

	if (w->inl) {
		memcpy(p->inl, w->inl + off, want);
		p->seg[0] = (struct seg) { p->inl, want };
		p->nseg = want ? 1 : 0;
		p->len = want;
		return true;
	}
	n = data_gather(qp, w->sge, w->nsge, off, want, p->seg, &got, &w->syndrome);
	if (n < 0) {
		w->status = ORNIC_WC_LOC_PROT_ERR;
		return false;
	}
	p->nseg = n;
	p->len = got;
	if (got < left)
		packet_trim_back(p, got % qp_mtu(qp));
	return true;
}

bool requester_build(struct qp *qp, struct wqe *w, struct packet *p)
{
	uint32_t mtu = qp_mtu(qp);
	uint64_t off = (uint64_t)w->sent * mtu;
	bool limited = credit_limits(&qp->req, w);
	bool last;

	if (!fill_payload(qp, w, p, off))
		return false;
	if (limited && p->len > mtu)
		packet_trim_back(p, p->len - mtu);
	p->npsn = psn_count(p->len, mtu);
	last = w->sent + p->npsn == w->npsn;
	p->opcode = opcode_of(w, !w->sent, last);
	p->imm = w->imm;
	p->solicited = last && (w->flags & ORNIC_WQE_SOLICITED);
	p->va = w->raddr;
	p->rkey = w->rkey;
	p->dmalen = w->len;
	/*
	 * A rate limit sends packets one by one. They ask for four ACKs per window: without them,
	 * the window would close and stay closed until the ACK timeout.
	 */
	p->ackreq = last || p->npsn > 1 || limited || !((w->sent + 1) % REMOTE_PACKET);
	return true;
}

/*
 * Build the request of an atomic, FLUSH, ATOMIC WRITE, or READ (of the part not received yet).
 * Return: false if a key does not allow it.
 */
static bool build_read(struct qp *qp, struct wqe *w, struct packet *p)
{
	uint64_t off = (uint64_t)w->got * qp_mtu(qp);

	p->va = w->raddr;
	p->rkey = w->rkey;
	p->ackreq = true;
	switch (w->opcode) {
	case ORNIC_WR_RDMA_READ:
		p->opcode = BTH_RC_READ_REQUEST;
		p->psn = (w->psn + w->got) & BTH_PSN_MASK;
		p->va = w->raddr + off;
		p->dmalen = w->len - off;
		break;
	case ORNIC_WR_COMP_SWAP:
		p->opcode = BTH_RC_COMPARE_SWAP;
		break;
	case ORNIC_WR_FETCH_ADD:
		p->opcode = BTH_RC_FETCH_ADD;
		break;
	case ORNIC_WR_FLUSH:
		p->opcode = BTH_RC_FLUSH;
		p->feth = w->feth;
		p->dmalen = w->flush_len;
		break;
	default:
		p->opcode = BTH_RC_ATOMIC_WRITE;
		p->dmalen = w->len;
		return fill_payload(qp, w, p, 0);
	}
	p->swap_add = w->swap_add;
	p->compare = w->compare;
	return true;
}

/* Send one packet of @w. Return: false if nothing can be sent now. */
static bool requester_send(struct qp *qp, struct wqe *w)
{
	struct requester *r = &qp->req;
	struct packet *p = link_packet(qp, &qp->path, &w->syndrome);
	bool read = wqe_is_read(w);
	uint32_t npsn, end;

	if (!p) {
		if (w->syndrome)
			w->status = ORNIC_WC_LOC_QP_OP_ERR;
		return w->status;
	}
	r->remote = p->remote || switch_is_faulty(qp->dev->engine->sw);
	p->dqpn = qp->dest_qpn;
	p->mtu = qp_mtu(qp);
	p->psn = (w->psn + w->sent) & BTH_PSN_MASK;
	if (!(read ? build_read(qp, w, p) : requester_build(qp, w, p))) {
		packet_put(&qp->dev->engine->pool, p);
		return w->status;
	}
	p->opcode |= qp_transport(qp);
	p->srqn = w->xrc_srqn;
	npsn = read ? w->npsn : p->npsn;
	r->reads += read;
	requester_sending(qp);
	w->sent += npsn;
	end = w->psn + w->sent;
	if (seq_diff(end, r->sent_psn) > 0) {
		r->sent_psn = end;
		if (r->remote && p->ackreq && !read && !r->rtt_sent) {
			r->rtt_seq = r->sent_psn;
			r->rtt_sent = qp->dev->engine->now;
		}
	}
	link_send(qp, p);
	return true;
}

bool requester_run(struct qp *qp)
{
	struct engine *e = qp->dev->engine;

	if (!qp->sq.present || (qp->state != ORNIC_QPS_RTS && qp->state != ORNIC_QPS_SQD))
		return false;
	if (timer_armed(&qp->req.rnr_timer))
		return false;
	for (int budget = REQUESTER_BUDGET; budget; budget--) {
		struct wqe *w;

		if (!rate_open(&qp->rate, &qp->dev->timers, e->now))
			return false;
		w = requester_next(qp, &budget);
		if (!budget)
			return true;
		if (!w)
			return false;
		if (!requester_send(qp, w))
			return true;
	}
	return true;
}
