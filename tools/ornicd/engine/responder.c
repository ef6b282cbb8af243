// SPDX-License-Identifier: GPL-2.0
/*
 * RC responder: executing requests (IBTA volume 1, 9.7.4, 9.7.5).
 *
 * The PSN of a request is checked first. An old request is acknowledged or answered again, an early
 * one is reported as a gap. The expected one is checked (sequence of opcodes, lengths) and
 * executed: SENDs and WRITEs by message.c, other requests by one function per kind. After an error,
 * the responder sends a NAK and the queue pair enters ERR.
 */
#include "engine.h"
#include "message.h"
#include "mr.h"
#include "psn.h"
#include "qp.h"
#include "srq.h"
#include "xrc.h"

#include <endian.h>
#include <ornic/identify.h>
#include <string.h>

void responder_start(struct qp *qp)
{
	qp->resp = (struct responder) { .epsn = qp->rq_psn };
}

void responder_stop(struct qp *qp)
{
	flush_cancel(qp);
	answer_stop(qp);
}

void invalid_request(struct qp *qp, uint32_t detail)
{
	answer_fail(qp, NAK_INVALID_REQUEST, ORNIC_EV_QP_REQ_ERR, ORNIC_SYN_WIRE | detail);
}

void access_error(struct qp *qp, uint32_t syndrome)
{
	answer_fail(qp, NAK_REMOTE_ACCESS, ORNIC_EV_QP_ACCESS_ERR, syndrome);
}

/* Complete the receive in progress with @status and send NAK @code; no event (ORN-ERR-2). */
static void receive_error(struct qp *qp, uint8_t status, uint8_t code, uint32_t syndrome)
{
	message_fail_receive(qp, status, syndrome);
	answer_fail(qp, code, 0, syndrome);
}

/* Answer a SEND or WRITE packet that could not be executed. */
static void message_error(struct qp *qp, const struct opcode_info *op, enum message_fault fault,
			  uint32_t syndrome)
{
	switch (fault) {
	case MESSAGE_NO_RECEIVE:
		answer_rnr(qp);
		break;
	case MESSAGE_BAD_RECEIVE:
		answer_fail(qp, NAK_REMOTE_OPERATIONAL, 0, syndrome);
		break;
	case MESSAGE_TOO_LONG:
		receive_error(qp, ORNIC_WC_LOC_LEN_ERR, NAK_INVALID_REQUEST, syndrome);
		break;
	case MESSAGE_RECEIVE_KEY:
		receive_error(qp, ORNIC_WC_LOC_PROT_ERR, NAK_REMOTE_OPERATIONAL, syndrome);
		break;
	case MESSAGE_INVALIDATE:
		message_fail_receive(qp, ORNIC_WC_LOC_ACCESS_ERR, syndrome);
		answer_none(qp, syndrome);
		break;
	case MESSAGE_LOST:
		break;
	case MESSAGE_ACCESS:
		if (op->imm && qp->resp.recv.valid)
			receive_error(qp, ORNIC_WC_LOC_ACCESS_ERR, NAK_REMOTE_ACCESS, syndrome);
		else
			access_error(qp, syndrome);
		break;
	default:
		answer_fail(qp, NAK_INVALID_REQUEST, ORNIC_EV_QP_REQ_ERR, syndrome);
		break;
	}
}

uint32_t responder_pd(const struct qp *qp)
{
	if (qp->type != ORNIC_QPT_XRC_TGT)
		return qp->pd->number;
	return qp->srq ? qp->srq->pd->number : 0;
}

struct mr_access responder_access(const struct qp *qp, uint32_t pd, uint32_t access)
{
	return (struct mr_access) {
		.qp = qp,
		.pd = pd,
		.privileged = qp->flags & ORNIC_QP_F_PRIVILEGED,
		.access = access,
	};
}

static void execute_message(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;
	enum message_fault fault;
	uint32_t syndrome;

	fault = message_execute(qp, p, op, &syndrome);
	if (fault) {
		message_error(qp, op, fault, syndrome);
		return;
	}
	r->epsn = psn_add(r->epsn, p->npsn);
	if (op->last)
		r->msn = psn_add(r->msn, 1);
	if (p->ackreq && !r->failed)
		answer_ack(qp);
}

static void execute_read(struct qp *qp, const struct packet *p)
{
	struct mr_access who = responder_access(qp, responder_pd(qp), ORNIC_ACCESS_REMOTE_READ);
	uint32_t npsn = psn_count(p->dmalen, qp_mtu(qp));
	struct rd_resource *rd;
	uint32_t syndrome;

	if (!(qp->access & ORNIC_ACCESS_REMOTE_READ)) {
		access_error(qp, ORNIC_SYN_KEY_ACCESS);
		return;
	}
	if (p->len || p->dmalen > ORNIC_MAX_MSG) {
		invalid_request(qp, p->opcode);
		return;
	}
	if (p->dmalen && !mr_check(qp->dev, &who, p->rkey, p->va, p->dmalen, &syndrome)) {
		access_error(qp, syndrome);
		return;
	}
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	rd = answer_add(qp, p->opcode, npsn);
	if (!rd) {
		invalid_request(qp, p->opcode);
		return;
	}
	qp_count(qp, CNT_rx_read, 1);
	rd->va = p->va;
	rd->rkey = p->rkey;
	rd->len = p->dmalen;
	qp->resp.epsn = psn_add(qp->resp.epsn, npsn);
	engine_activate(qp->dev->engine, qp);
}

/*
 * Execute an atomic and return the previous value. Operands are in host order; guest memory has a
 * little-endian value (ORN-WQE-16).
 */
static uint64_t atomic_execute(uint64_t *mem, const struct packet *p)
{
	uint64_t old = __atomic_load_n(mem, __ATOMIC_SEQ_CST);
	uint64_t new;

	do {
		if (bth_operation(p->opcode) == BTH_RC_FETCH_ADD)
			new = htole64(le64toh(old) + p->swap_add);
		else if (le64toh(old) == p->compare)
			new = htole64(p->swap_add);
		else
			break;
	} while (!__atomic_compare_exchange_n(mem, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return le64toh(old);
}

uint64_t *responder_word(struct qp *qp, uint32_t access, const struct packet *p)
{
	struct mr_access who = responder_access(qp, responder_pd(qp), access);
	uint32_t syndrome = ORNIC_SYN_KEY_PAGE;
	struct seg seg;
	struct mr *mr;
	uint64_t got;

	mr = mr_check(qp->dev, &who, p->rkey, p->va, 8, &syndrome);
	if (!mr || mr_segs(qp->dev, mr, p->va, 8, true, &seg, 1, &got) != 1 || got != 8 ||
	    (uintptr_t)seg.ptr & 7) {
		access_error(qp, syndrome);
		return NULL;
	}
	return (uint64_t *)seg.ptr;
}

static void execute_atomic(struct qp *qp, const struct packet *p)
{
	struct rd_resource *rd;
	uint64_t *word;

	if (!(qp->access & ORNIC_ACCESS_REMOTE_ATOMIC)) {
		access_error(qp, ORNIC_SYN_KEY_ACCESS);
		return;
	}
	if (p->len || p->va & 7) {
		invalid_request(qp, p->opcode);
		return;
	}
	word = responder_word(qp, ORNIC_ACCESS_REMOTE_ATOMIC, p);
	if (!word)
		return;
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	rd = answer_add(qp, p->opcode, 1);
	if (!rd) {
		invalid_request(qp, p->opcode);
		return;
	}
	qp_count(qp, CNT_rx_atomic, 1);
	rd->value = atomic_execute(word, p);
	qp->resp.epsn = psn_add(qp->resp.epsn, 1);
	engine_activate(qp->dev->engine, qp);
}

/*
 * Return true if the peer may send this kind of request to @qp. Some kinds need a feature that the
 * host accepted (ORN-RQ-42); XRC has none of these (ORN-XRC-10).
 */
static bool request_offered(const struct qp *qp, const struct opcode_info *op)
{
	uint64_t needs = 0;

	if (op->request == REQ_FLUSH)
		needs = ORNIC_FEATURE(FLUSH_GLOBAL) | ORNIC_FEATURE(FLUSH_PERSISTENT);
	else if (op->request == REQ_ATOMIC_WRITE)
		needs = ORNIC_FEATURE(ATOMIC_WRITE);
	else if (op->inv)
		needs = ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW2B);
	return !needs || (qp->type == ORNIC_QPT_RC && qp->dev->features & needs);
}

static void execute(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	if (qp->resp.held) {
		answer_sequence(qp);	/* retransmit after the answer to the FLUSH */
		return;
	}
	qp->resp.nak_sent = false;
	qp->resp.nak = 0;
	if (!request_offered(qp, op) || !message_continues(qp, p, op)) {
		invalid_request(qp, p->opcode);
		return;
	}
	if (qp->type == ORNIC_QPT_XRC_TGT && !xrc_select(qp, p, op->first)) {
		invalid_request(qp, p->opcode);
		return;
	}
	switch (op->request) {
	case REQ_SEND:
	case REQ_WRITE:
		execute_message(qp, p, op);
		break;
	case REQ_READ:
		execute_read(qp, p);
		break;
	case REQ_ATOMIC:
		execute_atomic(qp, p);
		break;
	case REQ_FLUSH:
		execute_flush(qp, p);
		break;
	case REQ_ATOMIC_WRITE:
		execute_atomic_write(qp, p);
		break;
	}
}

/* Execute a request without its first @old packets, which were executed before. */
static void execute_rest(struct qp *qp, const struct packet *p, uint32_t old)
{
	struct packet rest = *p;

	packet_trim_front(&rest, old * qp_mtu(qp));
	rest.psn = psn_add(p->psn, old);
	rest.npsn = p->npsn - old;
	switch (bth_operation(p->opcode)) {
	case BTH_RC_SEND_FIRST:
	case BTH_RC_WRITE_FIRST:
		rest.opcode = p->opcode + 1;
		break;
	case BTH_RC_SEND_ONLY_INV:
		rest.opcode = BTH_RC_SEND_LAST_INV;
		break;
	case BTH_RC_SEND_ONLY:
	case BTH_RC_SEND_ONLY_IMM:
	case BTH_RC_WRITE_ONLY:
	case BTH_RC_WRITE_ONLY_IMM:
		rest.opcode = p->opcode - (BTH_RC_SEND_ONLY - BTH_RC_SEND_LAST);
		break;
	default:
		break;
	}
	execute(qp, &rest, message_opcode(rest.opcode));
}

/* Process a request of which all or the first packets were executed before. */
static void duplicate(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	uint32_t old = psn_diff(qp->resp.epsn, p->psn);

	qp_count(qp, CNT_duplicates, 1);
	if (op->request != REQ_SEND && op->request != REQ_WRITE)
		answer_again(qp, p);
	else if (old < p->npsn && p->mtu == qp_mtu(qp))
		execute_rest(qp, p, old);
	else
		answer_ack(qp);
}

void responder_receive(struct qp *qp, const struct packet *p)
{
	struct responder *r = &qp->resp;
	const struct opcode_info *op;
	int32_t ahead;

	if (qp->state != ORNIC_QPS_RTR && qp->state != ORNIC_QPS_RTS &&
	    qp->state != ORNIC_QPS_SQD)
		return;
	op = message_opcode(p->opcode);
	if (!op) {
		qp_count(qp, CNT_bad_opcode, 1);
		return;
	}
	if (r->failed)
		return;
	message_established(qp);
	ahead = psn_diff(p->psn, r->epsn);
	if (ahead > 0) {
		qp_count(qp, CNT_out_of_order, 1);
		answer_sequence(qp);
		return;
	}
	if (ahead < 0)
		duplicate(qp, p, op);
	else
		execute(qp, p, op);
}
