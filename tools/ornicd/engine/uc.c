// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable connections (IBTA volume 1, 9.8.2).
 *
 * Packets are those of RC, without answers. A work request completes when its last packet is sent.
 * The receiver takes packets in order. A lost packet loses its message, and reception continues at
 * the first packet of another message. An error of the peer ends a message in the same way: it is
 * counted, and no event is raised. Only a malformed receive of the queue pair itself puts it into
 * ERR. The receive of a lost message serves the next one, but a receive of an SRQ that is too short
 * goes back to the host (ORN-SRQ-9).
 */
#include "uc.h"

#include "engine.h"
#include "link.h"
#include "message.h"
#include "qp.h"
#include "unreliable.h"

/* Assign sequence numbers to the work request. */
static void uc_begin(struct qp *qp, struct wqe *w)
{
	struct requester *r = &qp->req;
	bool write = w->opcode == ORNIC_WR_RDMA_WRITE || w->opcode == ORNIC_WR_RDMA_WRITE_IMM;

	w->psn = r->next_psn;
	w->npsn = psn_count(w->len, qp_mtu(qp));
	r->next_psn = wqe_end(w);
	qp_count(qp, write ? CNT_tx_write : CNT_tx_send, 1);
}

/* Send the next packet of @w, for unreliable_run(). */
static bool uc_send(struct qp *qp, struct wqe *w)
{
	struct packet *p = link_packet(qp, &qp->path, &w->syndrome);

	if (!p) {
		if (w->syndrome)
			w->status = ORNIC_WC_LOC_QP_OP_ERR;
		return w->status;
	}
	if (!w->npsn)
		uc_begin(qp, w);
	if (!requester_build(qp, w, p)) {
		packet_put(&qp->dev->engine->pool, p);
		return true;
	}
	p->opcode |= BTH_TRANSPORT_UC;
	p->ackreq = false;
	p->dqpn = qp->dest_qpn;
	p->mtu = qp_mtu(qp);
	p->psn = (w->psn + w->sent) & BTH_PSN_MASK;
	w->sent += p->npsn;
	link_send(qp, p);
	return true;
}

bool uc_run(struct qp *qp)
{
	return unreliable_run(qp, uc_send);
}

/* Give up the message in progress because of an error of the peer; its receive stays. */
static void uc_forget(struct qp *qp, enum counter why)
{
	qp_count(qp, why, 1);
	qp->resp.message = RESP_IDLE;
}

static void uc_fault(struct qp *qp, enum message_fault fault, uint32_t syndrome)
{
	switch (fault) {
	case MESSAGE_NO_RECEIVE:
		uc_forget(qp, CNT_rx_drop_no_wqe);
		break;
	case MESSAGE_BAD_RECEIVE:
		break;
	case MESSAGE_LOST:
		qp->resp.message = RESP_IDLE;
		break;
	case MESSAGE_TOO_LONG:
		uc_forget(qp, CNT_rx_drop_size);
		if (qp->srq)
			message_fail_receive(qp, ORNIC_WC_LOC_LEN_ERR, syndrome);
		break;
	case MESSAGE_RECEIVE_KEY:
		message_fail_receive(qp, ORNIC_WC_LOC_PROT_ERR, syndrome);
		qp_fail(qp, 0, syndrome, qp->resp.recv.index);
		break;
	case MESSAGE_ACCESS:
		uc_forget(qp, CNT_remote_access_errors);
		break;
	default:
		uc_forget(qp, CNT_remote_invalid_requests);
		break;
	}
}

/* Return true if @p begins or continues a message. A gap ends the message in progress. */
static bool uc_in_sequence(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;
	bool gap = p->psn != r->epsn;

	r->epsn = psn_add(p->psn, p->npsn);
	if (gap)
		uc_forget(qp, CNT_out_of_order);
	if (op->first)
		r->message = RESP_IDLE;
	return op->first || r->message != RESP_IDLE;
}

void uc_receive(struct qp *qp, const struct packet *p)
{
	const struct opcode_info *op = message_opcode(p->opcode);
	enum message_fault fault = MESSAGE_INVALID;
	uint32_t syndrome = 0;

	if (qp->state != ORNIC_QPS_RTR && qp->state != ORNIC_QPS_RTS &&
	    qp->state != ORNIC_QPS_SQD && qp->state != ORNIC_QPS_SQE)
		return;
	if (!op || op->inv || (op->request != REQ_SEND && op->request != REQ_WRITE)) {
		qp_count(qp, CNT_bad_opcode, 1);
		return;
	}
	message_established(qp);
	if (!uc_in_sequence(qp, p, op))
		return;
	if (message_continues(qp, p, op))
		fault = message_execute(qp, p, op, &syndrome);
	if (fault)
		uc_fault(qp, fault, syndrome);
}
