// SPDX-License-Identifier: GPL-2.0
/*
 * RC requester: received acknowledgements, NAKs, READ and atomic responses (IBTA
 * volume 1, 9.7.5.1, 9.7.7).
 *
 * A response acknowledges all PSNs before it. If a READ or atomic among them was not answered, its
 * answer was lost: this is an implied NAK.
 */
#include "credit.h"
#include "engine.h"
#include "mr.h"
#include "qp.h"

#include <endian.h>
#include <errno.h>

void requester_fail(struct qp *qp, uint8_t status, uint32_t syndrome)
{
	struct requester *r = &qp->req;
	struct wqe *w = requester_wqe(r, r->head);

	if (r->head == r->tail)
		return;
	w->status = status;
	w->syndrome = syndrome;
	r->head++;
	complete_send(qp, w);
	qp_fail(qp, 0, syndrome, w->index);
}

void requester_retire(struct qp *qp)
{
	struct requester *r = &qp->req;

	while (r->head != r->tail) {
		struct wqe *w = requester_wqe(r, r->head);
		bool answered = wqe_is_read(w) || wqe_is_memop(w);

		if (w->status) {
			requester_fail(qp, w->status, w->syndrome);
			return;
		}
		if (!(answered ? w->done : seq_diff(r->una, wqe_end(w)) >= 0))
			return;
		if (r->cur == r->head)
			r->cur++;
		r->head++;
		complete_send(qp, w);
		if (qp->state == ORNIC_QPS_ERR)
			return;
	}
}

/* Find the first READ or atomic whose answer is not complete, or NULL. */
static struct wqe *oldest_read(struct requester *r)
{
	for (uint32_t i = r->head; r->unread && i != r->tail; i++) {
		struct wqe *w = requester_wqe(r, i);

		if (wqe_is_read(w) && !w->done)
			return w;
	}
	return NULL;
}

/* Skip packets that are due for retransmission and were then acknowledged by a late ACK. */
static void skip_acked(struct requester *r)
{
	while (r->cur != r->tail) {
		struct wqe *w = requester_wqe(r, r->cur);
		int32_t acked = seq_diff(r->una, w->psn);

		if (wqe_is_read(w) || w->status || acked <= (int32_t)w->sent)
			return;
		if (acked < (int32_t)w->npsn) {
			w->sent = acked;
			return;
		}
		r->cur++;
	}
}

/*
 * Note that everything before @seq is acknowledged.
 *
 * This may end a measurement of the round trip time. Only operators use the result. Only remote
 * peers are measured, because the round trip to a peer in this daemon takes no longer than one
 * iteration. One packet at a time is measured, never a retransmitted one (Karn's algorithm), and
 * the results are smoothed as by TCP (RFC 6298). The engine's time is used, so no clock is read
 * here, and the result includes the time that the ACK waits for an iteration.
 */
static void advance(struct qp *qp, uint32_t seq)
{
	struct requester *r = &qp->req;

	if (seq_diff(seq, r->una) <= 0)
		return;
	r->una = seq;
	if (r->rtt_sent && seq_diff(seq, r->rtt_seq) >= 0) {
		uint64_t rtt = qp->dev->engine->now - r->rtt_sent;

		r->rtt = r->rtt ? r->rtt - r->rtt / 8 + rtt / 8 : rtt;
		r->rtt_sent = 0;
	}
	requester_progress(qp);
	skip_acked(r);
}

void requester_acked(struct qp *qp, uint32_t seq)
{
	struct requester *r = &qp->req;
	struct wqe *read = oldest_read(r);
	uint32_t limit = read ? read->psn + read->got : seq;
	bool implied = seq_diff(seq, limit) > 0;

	advance(qp, implied ? limit : seq);
	requester_retire(qp);
	if (implied && qp->state != ORNIC_QPS_ERR) {
		qp_count(qp, CNT_implied_nak, 1);
		requester_retry(qp, ORNIC_SYN_WIRE | NAK_PSN_SEQUENCE);
	}
	engine_activate(qp->dev->engine, qp);
}

/* Process a NAK of the oldest PSN in flight. */
static void nak_receive(struct qp *qp, uint8_t code)
{
	switch (code) {
	case NAK_PSN_SEQUENCE:
		qp_count(qp, CNT_seq_naks_received, 1);
		requester_retry(qp, ORNIC_SYN_WIRE | code);
		break;
	case NAK_INVALID_REQUEST:
		qp_count(qp, CNT_remote_invalid_requests, 1);
		requester_fail(qp, ORNIC_WC_REM_INV_REQ_ERR, ORNIC_SYN_WIRE | code);
		break;
	case NAK_REMOTE_ACCESS:
		qp_count(qp, CNT_remote_access_errors, 1);
		requester_fail(qp, ORNIC_WC_REM_ACCESS_ERR, ORNIC_SYN_WIRE | code);
		break;
	case NAK_REMOTE_OPERATIONAL:
		requester_fail(qp, ORNIC_WC_REM_OP_ERR, ORNIC_SYN_WIRE | code);
		break;
	default:
		break;
	}
}

/*
 * Process an ACK, NAK or RNR NAK. A NAK acknowledges everything before its PSN. If a READ before it
 * is not answered, the answer was lost. This loss is repaired first; the peer will repeat the NAK.
 */
static void ack_receive(struct qp *qp, uint32_t seq, uint8_t aeth)
{
	uint8_t kind = aeth & AETH_KIND_MASK;

	requester_acked(qp, kind == AETH_ACK ? seq + 1 : seq);
	if (qp->state == ORNIC_QPS_ERR || qp->req.una != seq)
		return;
	if (kind == AETH_RNR_NAK)
		requester_rnr(qp, seq, aeth);
	else if (kind == AETH_NAK)
		nak_receive(qp, aeth & AETH_VALUE_MASK);
}

/* Return true if @p is the response that READ @w needs next. */
static bool read_response_fits(const struct qp *qp, const struct wqe *w, const struct packet *p)
{
	uint64_t mtu = qp_mtu(qp);
	uint64_t off = w->got * mtu;
	uint8_t operation = bth_operation(p->opcode);
	bool ends = operation == BTH_RC_READ_RESP_LAST || operation == BTH_RC_READ_RESP_ONLY;
	uint32_t left = w->npsn - w->got;
	bool finishes = p->npsn == left;

	if (w->opcode != ORNIC_WR_RDMA_READ || p->npsn > left || ends != finishes)
		return false;
	if (p->npsn > 1 && p->mtu != mtu)
		return false;
	return p->len == (ends ? w->len - off : p->npsn * mtu);
}

static void read_response(struct qp *qp, struct wqe *w, const struct packet *p)
{
	struct requester *r = &qp->req;
	uint32_t syndrome;
	int err;

	if (!read_response_fits(qp, w, p)) {
		w->status = ORNIC_WC_BAD_RESP_ERR;
		w->syndrome = ORNIC_SYN_WIRE | p->opcode;
		return;
	}
	err = data_scatter(qp, w->sge, w->nsge, (uint64_t)w->got * qp_mtu(qp), p, &syndrome);
	if (err == -EAGAIN)
		return;
	if (err) {
		w->status = ORNIC_WC_LOC_PROT_ERR;
		w->syndrome = syndrome;
	} else {
		w->got += p->npsn;
		w->done = w->got == w->npsn;
	}
	if (w->done) {
		r->reads--;
		r->unread--;
	}
}

static void atomic_response(struct qp *qp, struct wqe *w, const struct packet *p)
{
	uint64_t value = htole64(p->atomic_ack);
	struct packet data = {
		.len = sizeof(value),
		.nseg = 1,
		.seg[0] = { (uint8_t *)&value, sizeof(value) },
	};
	uint32_t syndrome;
	int err;

	if (w->opcode != ORNIC_WR_COMP_SWAP && w->opcode != ORNIC_WR_FETCH_ADD) {
		w->status = ORNIC_WC_BAD_RESP_ERR;
		w->syndrome = ORNIC_SYN_WIRE | p->opcode;
		return;
	}
	err = data_scatter(qp, w->sge, w->nsge, 0, &data, &syndrome);
	if (err == -EAGAIN)
		return;
	if (err) {
		w->status = ORNIC_WC_LOC_PROT_ERR;
		w->syndrome = syndrome;
	} else {
		w->got = 1;
		w->done = true;
		qp->req.reads--;
		qp->req.unread--;
	}
}

/* Process the answer to a FLUSH or ATOMIC WRITE: a READ response without data (IBTA annex A19). */
static void empty_response(struct qp *qp, struct wqe *w, const struct packet *p)
{
	if (bth_operation(p->opcode) != BTH_RC_READ_RESP_ONLY || p->len || p->npsn != 1) {
		w->status = ORNIC_WC_BAD_RESP_ERR;
		w->syndrome = ORNIC_SYN_WIRE | p->opcode;
		return;
	}
	w->got = 1;
	w->done = true;
	qp->req.reads--;
	qp->req.unread--;
}

/*
 * Process a READ or atomic response. It belongs to the oldest such work request, is stale, or
 * follows a lost response. A response to a request that waits for its retransmission implies a loss
 * that is already being repaired.
 */
static void response_receive(struct qp *qp, uint32_t seq, const struct packet *p)
{
	struct requester *r = &qp->req;
	const struct wqe *cur = requester_wqe(r, r->cur);
	uint32_t next = r->cur == r->tail ? r->sent_psn : cur->psn + cur->sent;
	struct wqe *w = oldest_read(r);

	if (w && seq_diff(seq, next) >= 0 && seq_diff(seq, w->psn + w->got) > 0) {
		requester_acked(qp, w->psn + w->got);
		return;
	}
	requester_acked(qp, seq);
	if (qp->state == ORNIC_QPS_ERR)
		return;
	if (!w || !w->sent || seq != w->psn + w->got)
		return;
	if (bth_operation(p->opcode) == BTH_RC_ATOMIC_ACK)
		atomic_response(qp, w, p);
	else if (w->opcode == ORNIC_WR_FLUSH || w->opcode == ORNIC_WR_ATOMIC_WRITE)
		empty_response(qp, w, p);
	else
		read_response(qp, w, p);
	if (!w->status)
		advance(qp, w->psn + w->got);
	requester_retire(qp);
}

void requester_receive(struct qp *qp, const struct packet *p)
{
	struct requester *r = &qp->req;
	uint32_t seq = seq_of(p->psn, r->una);
	uint8_t operation = bth_operation(p->opcode);
	bool credits;

	if (qp->state != ORNIC_QPS_RTS && qp->state != ORNIC_QPS_SQD)
		return;
	if (seq_diff(seq, r->una - 1) < 0 || seq_diff(seq, r->sent_psn) >= 0)
		return;
	/*
	 * Middle packets of READ responses have no AETH. The last packet repeats the credits of the
	 * first one.
	 */
	credits = (p->aeth & AETH_KIND_MASK) == AETH_ACK &&
		  operation != BTH_RC_READ_RESP_FIRST && operation != BTH_RC_READ_RESP_MIDDLE;
	if (credits && credit_receive(r, p->aeth, p->msn))
		engine_activate(qp->dev->engine, qp);
	if (seq_diff(seq, r->una) < 0)
		return;
	if (operation == BTH_RC_ACK)
		ack_receive(qp, seq, p->aeth);
	else
		response_receive(qp, seq, p);
}
