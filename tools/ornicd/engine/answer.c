// SPDX-License-Identifier: GPL-2.0
/*
 * RC responder: ACKs, NAKs, READ and atomic responses (IBTA volume 1, 9.7.5).
 *
 * Responses are sent in PSN order. A READ is answered over several turns if necessary; an ACK or
 * NAK for a later request waits until the READ is answered. A repeated READ moves the only response
 * stream back and never adds a second one (ORN-SEC-5). One ACK is sent for all requests that were
 * delivered together (IBTA 9.7.5.1.2, coalesced acknowledge messages).
 */
#include "credit.h"
#include "engine.h"
#include "link.h"
#include "mr.h"
#include "psn.h"
#include "qp.h"
#include "srq.h"
#include "../packet/ecn.h"

#include <endian.h>

/** ANSWER_BUDGET - packets per turn of one queue pair */
#define ANSWER_BUDGET	16

/* Return true if a READ, atomic, FLUSH or ATOMIC WRITE is unanswered. */
static bool streaming(const struct responder *r)
{
	return r->rd_answer != r->rd_next;
}

static struct packet *answer_packet(struct qp *qp, uint8_t opcode, uint32_t psn, uint8_t aeth,
				    uint32_t msn)
{
	uint32_t syndrome;
	struct packet *p = link_packet(qp, &qp->path, &syndrome);

	if (!p)
		return NULL;
	p->opcode = qp_transport(qp) | opcode;
	p->dqpn = qp->dest_qpn;
	p->mtu = qp_mtu(qp);
	p->psn = psn & BTH_PSN_MASK;
	p->aeth = aeth;
	p->msn = msn & BTH_PSN_MASK;
	return p;
}

static void send_ack(struct qp *qp, uint32_t psn, uint8_t aeth)
{
	struct packet *p = answer_packet(qp, BTH_RC_ACK, psn, aeth, qp->resp.msn);

	if (!p)
		return;
	/* No rate limits ACKs, so a congestion mark on them is useless. */
	if (qp->dev->engine->cc.on)
		p->tclass &= ~ECN_MASK;
	link_send(qp, p);
}

/* Send the ACK that is due, unless answers have to be sent before it. */
static void send_due(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (!r->ack_due || streaming(r))
		return;
	r->ack_due = false;
	send_ack(qp, psn_add(r->epsn, -1), credit_syndrome(qp));
}

void answer_ack(struct qp *qp)
{
	struct responder *r = &qp->resp;

	r->ack_due = true;
	if (r->ack_queued || streaming(r))
		return;
	r->ack_queued = true;
	TAILQ_INSERT_TAIL(&qp->dev->engine->acks, qp, ack_link);
}

static void dequeue_ack(struct qp *qp)
{
	if (qp->resp.ack_queued)
		TAILQ_REMOVE(&qp->dev->engine->acks, qp, ack_link);
	qp->resp.ack_queued = false;
}

bool answer_flush(struct engine *e)
{
	bool any = !TAILQ_EMPTY(&e->acks);
	struct qp *qp;

	while ((qp = TAILQ_FIRST(&e->acks))) {
		dequeue_ack(qp);
		send_due(qp);
	}
	return any;
}

/* Executed requests are acknowledged even if the queue pair ends in the same delivery. */
void answer_stop(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (r->ack_queued && qp->dev->running)
		send_due(qp);
	dequeue_ack(qp);
	r->rd_answer = r->rd_next;
	/* responder_run() may still follow in this turn: it sends nothing for what is dropped. */
	r->ack_due = false;
	r->nak = 0;
}

/* Send a NAK for the expected PSN, now or after the answers before it. */
static void answer_nak(struct qp *qp, uint8_t aeth)
{
	struct responder *r = &qp->resp;

	if (streaming(r)) {
		r->nak = aeth;
		return;
	}
	r->ack_due = false;
	send_ack(qp, r->epsn, aeth);
}

void answer_rnr(struct qp *qp)
{
	qp_count(qp, CNT_rnr_naks_sent, 1);
	qp->resp.nak_sent = true;
	answer_nak(qp, AETH_RNR_NAK | (qp->min_rnr_timer & AETH_VALUE_MASK));
}

void answer_sequence(struct qp *qp)
{
	if (qp->resp.nak_sent)
		return;
	qp_count(qp, CNT_seq_naks_sent, 1);
	qp->resp.nak_sent = true;
	answer_nak(qp, AETH_NAK | NAK_PSN_SEQUENCE);
}

/* Enter ERR after the answers before; send a NAK with @aeth unless that is 0. */
static void answer_last(struct qp *qp, uint8_t aeth, uint8_t event, uint32_t syndrome)
{
	struct responder *r = &qp->resp;

	r->failed = true;
	r->fail_event = event;
	r->fail_syndrome = syndrome;
	if (aeth)
		answer_nak(qp, aeth);
	if (!streaming(r))
		qp_fail(qp, event, syndrome, qp->rq.cons);
}

void answer_fail(struct qp *qp, uint8_t code, uint8_t event, uint32_t syndrome)
{
	if (code == NAK_REMOTE_ACCESS)
		qp_count(qp, CNT_remote_access_errors, 1);
	else if (code == NAK_INVALID_REQUEST)
		qp_count(qp, CNT_remote_invalid_requests, 1);
	answer_last(qp, AETH_NAK | code, event, syndrome);
}

void answer_none(struct qp *qp, uint32_t syndrome)
{
	qp_count(qp, CNT_remote_access_errors, 1);
	answer_last(qp, 0, 0, syndrome);
}

struct rd_resource *answer_add(struct qp *qp, uint8_t opcode, uint32_t npsn)
{
	struct responder *r = &qp->resp;
	struct rd_resource *rd;

	if (r->rd_next - r->rd_fresh >= qp->max_dest_rd_atomic)
		return NULL;
	if (r->rd_next - r->rd_first == QP_MAX_RD_ATOMIC) {
		if (r->rd_answer == r->rd_first)
			r->rd_answer++;
		r->rd_first++;
	}
	if (!streaming(r))
		r->ack_due = false;	/* the response acknowledges the same requests */
	rd = responder_rd(r, r->rd_next++);
	*rd = (struct rd_resource) {
		.opcode = opcode,
		.psn = r->epsn,
		.npsn = npsn,
		.msn = r->msn,
		.pd = responder_pd(qp),
		.srqn = qp->srq ? qp->srq->number : 0,
	};
	return rd;
}

void answer_again(struct qp *qp, const struct packet *p)
{
	struct responder *r = &qp->resp;

	/* Newest first: PSNs wrap around while old resources stay. */
	for (uint32_t i = r->rd_next; i-- != r->rd_first;) {
		struct rd_resource *rd = responder_rd(r, i);
		uint32_t off = (p->psn - rd->psn) & BTH_PSN_MASK;

		if (off >= rd->npsn || rd->opcode != p->opcode)
			continue;
		for (uint32_t j = i; j != r->rd_next; j++) {
			responder_rd(r, j)->from = 0;
			responder_rd(r, j)->sent = 0;
		}
		rd->from = off;
		rd->sent = off;
		if ((int32_t)(i - r->rd_answer) < 0)
			r->rd_answer = i;
		engine_activate(qp->dev->engine, qp);
		return;
	}
}

/*
 * Build the next packet of a READ's answer. Check the key for each packet, because the region may
 * be gone. Return: the packet, or NULL if the pool is empty or the request failed.
 */
static struct packet *read_packet(struct qp *qp, struct rd_resource *rd)
{
	uint64_t off = (uint64_t)rd->sent * qp_mtu(qp);
	uint64_t left = rd->len - off;
	uint64_t want = left < qp_max_payload(qp) ? left : qp_max_payload(qp);
	uint64_t got = 0;
	struct packet *p = answer_packet(qp, 0, rd->psn + rd->sent, credit_syndrome(qp),
					 rd->msn);
	uint32_t syndrome = ORNIC_SYN_KEY_PAGE;
	struct mr *mr;
	int n = 0;

	if (!p)
		return NULL;
	if (want) {
		struct mr_access who = responder_access(qp, rd->pd, ORNIC_ACCESS_REMOTE_READ);

		mr = mr_check(qp->dev, &who, rd->rkey, rd->va + off, want, &syndrome);
		n = mr ? mr_segs(qp->dev, mr, rd->va + off, want, false, p->seg, PACKET_SEGS,
				 &got) : -1;
	}
	if (n < 0 && qp->resp.rd_answer != qp->resp.rd_fresh) {
		/* A failed duplicate does not end the connection, but the peer gets its NAK. */
		p->opcode |= BTH_RC_ACK;
		p->aeth = AETH_NAK | NAK_REMOTE_ACCESS;
		link_send(qp, p);
		qp->resp.rd_answer = qp->resp.rd_fresh;
		return NULL;
	}
	if (n < 0) {
		packet_put(&qp->dev->engine->pool, p);
		qp->resp.rd_next = qp->resp.rd_answer;
		qp->resp.epsn = psn_add(rd->psn, rd->sent);
		answer_fail(qp, NAK_REMOTE_ACCESS, ORNIC_EV_QP_ACCESS_ERR, syndrome);
		return NULL;
	}
	p->nseg = n;
	p->len = got;
	if (got < left)
		packet_trim_back(p, got % qp_mtu(qp));
	p->npsn = psn_count(p->len, qp_mtu(qp));
	return p;
}

/* Send one response packet. Return: false if none can be sent now. */
static bool answer_next(struct qp *qp)
{
	struct responder *r = &qp->resp;
	struct rd_resource *rd = responder_rd(r, r->rd_answer);
	uint8_t operation = bth_operation(rd->opcode);
	struct packet *p;

	if (operation == BTH_RC_COMPARE_SWAP || operation == BTH_RC_FETCH_ADD) {
		p = answer_packet(qp, BTH_RC_ATOMIC_ACK, rd->psn, credit_syndrome(qp),
				  rd->msn);
		if (!p)
			return false;
		p->atomic_ack = rd->value;
	} else {
		bool first = rd->sent == rd->from, last;

		p = read_packet(qp, rd);
		if (!p)
			return false;
		last = rd->sent + p->npsn == rd->npsn;
		if (last)
			p->opcode |= first ? BTH_RC_READ_RESP_ONLY : BTH_RC_READ_RESP_LAST;
		else
			p->opcode |= first ? BTH_RC_READ_RESP_FIRST : BTH_RC_READ_RESP_MIDDLE;
	}
	rd->sent += p->npsn;
	if (rd->sent == rd->npsn) {
		r->rd_answer++;
		if ((int32_t)(r->rd_answer - r->rd_fresh) > 0)
			r->rd_fresh = r->rd_answer;
	}
	link_send(qp, p);
	return true;
}

bool responder_run(struct qp *qp)
{
	struct engine *e = qp->dev->engine;
	struct responder *r = &qp->resp;

	for (int budget = ANSWER_BUDGET; streaming(r); budget--) {
		/* the oldest unanswered request is a FLUSH whose data is not yet persistent */
		if (r->held && r->rd_answer + 1 == r->rd_next)
			return false;
		if (!rate_open(&qp->rate, &qp->dev->timers, e->now))
			return false;
		if (!budget || !answer_next(qp))
			return qp->state != ORNIC_QPS_ERR && link_gid(qp, &qp->path);
	}
	send_due(qp);
	if (r->nak) {
		uint8_t nak = r->nak;

		r->nak = 0;
		answer_nak(qp, nak);
	}
	if (r->failed && qp->state != ORNIC_QPS_ERR)
		qp_fail(qp, r->fail_event, r->fail_syndrome, qp->rq.cons);
	return false;
}
