// SPDX-License-Identifier: GPL-2.0
/*
 * RC responder: executing requests (IBTA volume 1, 9.7.4, 9.7.5).
 *
 * A request is first placed by its PSN: old ones are acknowledged or answered
 * again, early ones reported as a gap, the expected one judged (sequence of
 * opcodes, lengths), then executed: one function per kind of request. An error
 * ends in a NAK and the queue pair in ERR.
 */
#include "responder.h"

#include "data.h"
#include "engine.h"

#include <endian.h>
#include <string.h>

enum request {
	REQ_SEND,
	REQ_WRITE,
	REQ_READ,
	REQ_ATOMIC,
};

/**
 * struct opcode_info - facts of a request opcode
 * @known:	it is a request
 * @request:	what it asks for
 * @first, @last: begins, ends a message
 * @imm:	carries immediate data
 */
struct opcode_info {
	bool known;
	enum request request;
	bool first;
	bool last;
	bool imm;
};

static const struct opcode_info opcodes[] = {
	[BTH_RC_SEND_FIRST]	= { true, REQ_SEND, true, false, false },
	[BTH_RC_SEND_MIDDLE]	= { true, REQ_SEND, false, false, false },
	[BTH_RC_SEND_LAST]	= { true, REQ_SEND, false, true, false },
	[BTH_RC_SEND_LAST_IMM]	= { true, REQ_SEND, false, true, true },
	[BTH_RC_SEND_ONLY]	= { true, REQ_SEND, true, true, false },
	[BTH_RC_SEND_ONLY_IMM]	= { true, REQ_SEND, true, true, true },
	[BTH_RC_WRITE_FIRST]	= { true, REQ_WRITE, true, false, false },
	[BTH_RC_WRITE_MIDDLE]	= { true, REQ_WRITE, false, false, false },
	[BTH_RC_WRITE_LAST]	= { true, REQ_WRITE, false, true, false },
	[BTH_RC_WRITE_LAST_IMM]	= { true, REQ_WRITE, false, true, true },
	[BTH_RC_WRITE_ONLY]	= { true, REQ_WRITE, true, true, false },
	[BTH_RC_WRITE_ONLY_IMM]	= { true, REQ_WRITE, true, true, true },
	[BTH_RC_READ_REQUEST]	= { true, REQ_READ, true, true, false },
	[BTH_RC_COMPARE_SWAP]	= { true, REQ_ATOMIC, true, true, false },
	[BTH_RC_FETCH_ADD]	= { true, REQ_ATOMIC, true, true, false },
};

void responder_start(struct qp *qp)
{
	qp->resp = (struct responder) { .epsn = qp->rq_psn };
}

void responder_stop(struct qp *qp)
{
	struct responder *r = &qp->resp;

	r->rd_answer = r->rd_next;
	r->ack_due = false;
	r->nak = 0;
	r->message = RESP_IDLE;
}

static void invalid_request(struct qp *qp, uint32_t detail)
{
	answer_fail(qp, NAK_INVALID_REQUEST, ORNIC_EV_QP_REQ_ERR, ORNIC_SYN_WIRE | detail);
}

static void access_error(struct qp *qp, uint32_t syndrome)
{
	answer_fail(qp, NAK_REMOTE_ACCESS, ORNIC_EV_QP_ACCESS_ERR, syndrome);
}

/* The receive taken completes with @status, and NAK @code: no event (ORN-ERR-2). */
static void receive_error(struct qp *qp, uint8_t status, uint8_t code, uint32_t syndrome)
{
	struct ornic_cqe cqe = {};

	qp->resp.recv.valid = false;
	complete_recv(qp, qp->resp.recv.index, ORNIC_WC_RECV, status, syndrome, &cqe);
	answer_fail(qp, code, 0, syndrome);
}

/* Take a receive for this message. Return: false if there is none; the peer knows. */
static bool take_receive(struct qp *qp)
{
	int ret = qp->resp.recv.valid ? 1 : rwqe_fetch(qp, &qp->resp.recv);

	if (!ret)
		answer_rnr(qp);
	else if (ret < 0)
		answer_fail(qp, NAK_REMOTE_OPERATIONAL, 0, qp->syndrome);
	return ret > 0;
}

/* The message of @p ended and took a receive: complete it. */
static void finish_receive(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			   uint8_t wc_opcode, uint32_t bytes)
{
	struct ornic_cqe cqe = {
		.byte_len = htole32(bytes),
		.flags = htole32((op->imm ? ORNIC_CQE_WITH_IMM : 0) |
				 (p->solicited ? ORNIC_CQE_SOLICITED : 0)),
	};

	if (op->imm)
		cqe.imm = p->imm;
	qp->resp.recv.valid = false;
	complete_recv(qp, qp->resp.recv.index, wc_opcode, ORNIC_WC_SUCCESS, 0, &cqe);
}

/* @p was executed in full. */
static void accept(struct qp *qp, const struct packet *p, bool message_ends, uint32_t npsn)
{
	struct responder *r = &qp->resp;

	r->epsn = psn_add(r->epsn, npsn);
	if (message_ends) {
		r->msn = psn_add(r->msn, 1);
		r->message = RESP_IDLE;
	}
	if (p->ackreq && !r->failed)
		answer_ack(qp);
}

static void execute_send(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;
	uint32_t syndrome;

	if (op->first) {
		if (!take_receive(qp))
			return;
		r->offset = 0;
		r->message = RESP_SEND;
		device_count(qp->dev, CNT_rx_send, 1);
	}
	if (r->offset + p->len > r->recv.len) {
		receive_error(qp, ORNIC_WC_LOC_LEN_ERR, NAK_INVALID_REQUEST, ORNIC_SYN_WQE_LENGTH);
		return;
	}
	if (data_scatter(qp, r->recv.sge, r->recv.nsge, r->offset, p, &syndrome)) {
		receive_error(qp, ORNIC_WC_LOC_PROT_ERR, NAK_REMOTE_OPERATIONAL, syndrome);
		return;
	}
	r->offset += p->len;
	if (op->last)
		finish_receive(qp, p, op, ORNIC_WC_RECV, r->offset);
	accept(qp, p, op->last, p->npsn);
}

/* Judge the RETH of a WRITE. */
static bool begin_write(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;

	if (p->dmalen > ORNIC_MAX_MSG || (op->last ? p->dmalen != p->len : p->dmalen <= p->len)) {
		invalid_request(qp, p->opcode);
		return false;
	}
	r->message = RESP_WRITE;
	r->va = p->va;
	r->rkey = p->rkey;
	r->left = p->dmalen;
	r->offset = 0;
	return true;
}

struct mr *responder_mr(struct qp *qp, uint32_t access, uint32_t rkey, uint64_t va, uint64_t len,
			uint32_t *syndrome)
{
	struct mr_access who = {
		.pd = qp->pd->number,
		.privileged = qp->flags & ORNIC_QP_F_PRIVILEGED,
		.access = access,
	};

	return mr_check(qp->dev, &who, rkey, va, len, syndrome);
}

/* Place the payload of a WRITE; the key is checked for every packet (ORN-MEM-3). */
static bool place_write(struct qp *qp, const struct packet *p, bool imm)
{
	struct responder *r = &qp->resp;
	uint32_t syndrome = ORNIC_SYN_KEY_PAGE;
	struct mr *mr;

	if (!r->left)
		return true;
	mr = responder_mr(qp, ORNIC_ACCESS_REMOTE_WRITE, r->rkey, r->va, r->left, &syndrome);
	if (!mr || data_place(qp, mr, r->va, p)) {
		if (imm)
			receive_error(qp, ORNIC_WC_LOC_ACCESS_ERR, NAK_REMOTE_ACCESS, syndrome);
		else
			access_error(qp, syndrome);
		return false;
	}
	r->va += p->len;
	r->offset += p->len;
	r->left -= p->len;
	return true;
}

static void execute_write(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;

	if (!(qp->access & ORNIC_ACCESS_REMOTE_WRITE)) {
		access_error(qp, ORNIC_SYN_KEY_ACCESS);
		return;
	}
	if (op->first) {
		if (!begin_write(qp, p, op))
			return;
		device_count(qp->dev, CNT_rx_write, 1);
	} else if (op->last ? p->len != r->left : p->len >= r->left) {
		invalid_request(qp, p->opcode);
		return;
	}
	if (op->imm && !take_receive(qp)) {
		if (op->first)
			r->message = RESP_IDLE;
		return;
	}
	if (!place_write(qp, p, op->imm))
		return;
	if (op->imm)
		finish_receive(qp, p, op, ORNIC_WC_RECV_RDMA_WITH_IMM, r->offset);
	accept(qp, p, op->last, p->npsn);
}

static void execute_read(struct qp *qp, const struct packet *p)
{
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
	if (p->dmalen && !responder_mr(qp, ORNIC_ACCESS_REMOTE_READ, p->rkey, p->va, p->dmalen,
				       &syndrome)) {
		access_error(qp, syndrome);
		return;
	}
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	rd = answer_add(qp, npsn);
	if (!rd) {
		invalid_request(qp, p->opcode);
		return;
	}
	device_count(qp->dev, CNT_rx_read, 1);
	rd->va = p->va;
	rd->rkey = p->rkey;
	rd->len = p->dmalen;
	qp->resp.epsn = psn_add(qp->resp.epsn, npsn);
	engine_activate(qp->dev->engine, qp);
}

/* Operands are host order; guest memory holds a little-endian value (ORN-WQE-16). */
static uint64_t atomic_execute(uint64_t *mem, const struct packet *p)
{
	uint64_t old = __atomic_load_n(mem, __ATOMIC_SEQ_CST);
	uint64_t new;

	do {
		if (p->opcode == BTH_RC_FETCH_ADD)
			new = htole64(le64toh(old) + p->swap_add);
		else if (le64toh(old) == p->compare)
			new = htole64(p->swap_add);
		else
			break;
	} while (!__atomic_compare_exchange_n(mem, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return le64toh(old);
}

static void execute_atomic(struct qp *qp, const struct packet *p)
{
	uint32_t syndrome = ORNIC_SYN_KEY_PAGE;
	struct rd_resource *rd;
	struct seg seg;
	struct mr *mr;
	uint64_t got;

	if (!(qp->access & ORNIC_ACCESS_REMOTE_ATOMIC)) {
		access_error(qp, ORNIC_SYN_KEY_ACCESS);
		return;
	}
	if (p->len || p->va & 7) {
		invalid_request(qp, p->opcode);
		return;
	}
	mr = responder_mr(qp, ORNIC_ACCESS_REMOTE_ATOMIC, p->rkey, p->va, 8, &syndrome);
	if (!mr || mr_segs(qp->dev, mr, p->va, 8, true, &seg, 1, &got) != 1 || got != 8 ||
	    (uintptr_t)seg.ptr & 7) {
		access_error(qp, syndrome);
		return;
	}
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	rd = answer_add(qp, 1);
	if (!rd) {
		invalid_request(qp, p->opcode);
		return;
	}
	device_count(qp->dev, CNT_rx_atomic, 1);
	rd->atomic = true;
	rd->value = atomic_execute((uint64_t *)seg.ptr, p);
	qp->resp.epsn = psn_add(qp->resp.epsn, 1);
	engine_activate(qp->dev->engine, qp);
}

/* Does @p continue what is in progress, with payload of the right size? */
static bool request_sane(const struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	const struct responder *r = &qp->resp;
	uint64_t full = (uint64_t)p->npsn * qp_mtu(qp);

	if (op->first ? r->message != RESP_IDLE :
			r->message != (op->request == REQ_SEND ? RESP_SEND : RESP_WRITE))
		return false;
	if (p->npsn > 1 && p->mtu != qp_mtu(qp))
		return false;
	if (!op->last)
		return p->len == full;
	return p->len <= full && psn_count(p->len, qp_mtu(qp)) == p->npsn;
}

static void execute(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	qp->resp.nak_sent = false;
	qp->resp.nak = 0;
	if (!request_sane(qp, p, op)) {
		invalid_request(qp, p->opcode);
		return;
	}
	switch (op->request) {
	case REQ_SEND:
		execute_send(qp, p, op);
		break;
	case REQ_WRITE:
		execute_write(qp, p, op);
		break;
	case REQ_READ:
		execute_read(qp, p);
		break;
	case REQ_ATOMIC:
		execute_atomic(qp, p);
		break;
	}
}

/* The same request without its first @old packets, which were executed before. */
static void execute_rest(struct qp *qp, const struct packet *p, uint32_t old)
{
	struct packet rest = *p;

	packet_trim_front(&rest, old * qp_mtu(qp));
	rest.psn = psn_add(p->psn, old);
	rest.npsn = p->npsn - old;
	switch (p->opcode) {
	case BTH_RC_SEND_FIRST:
	case BTH_RC_WRITE_FIRST:
		rest.opcode = p->opcode + 1;
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
	execute(qp, &rest, &opcodes[rest.opcode]);
}

/* A request, or its beginning, that was executed before. */
static void duplicate(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	uint32_t old = psn_diff(qp->resp.epsn, p->psn);

	device_count(qp->dev, CNT_duplicates, 1);
	if (op->request == REQ_READ || op->request == REQ_ATOMIC)
		answer_again(qp, p);
	else if (old < p->npsn && p->mtu == qp_mtu(qp))
		execute_rest(qp, p, old);
	else
		answer_ack(qp);
}

/* The first packet of the connection: the peer is there (ORN-EQ-4). */
static void established(struct qp *qp)
{
	if (qp->state != ORNIC_QPS_RTR || qp->comm_est)
		return;
	qp->comm_est = true;
	device_event(qp->dev, ORNIC_EV_COMM_EST, qp->handle, qp->owner, 0, qp->state, 0);
}

void responder_receive(struct qp *qp, const struct packet *p)
{
	struct responder *r = &qp->resp;
	const struct opcode_info *op;
	int32_t ahead;

	if (qp->state != ORNIC_QPS_RTR && qp->state != ORNIC_QPS_RTS &&
	    qp->state != ORNIC_QPS_SQD)
		return;
	if (p->opcode >= sizeof(opcodes) / sizeof(opcodes[0]) || !opcodes[p->opcode].known) {
		device_count(qp->dev, CNT_bad_opcode, 1);
		return;
	}
	if (r->failed)
		return;
	op = &opcodes[p->opcode];
	established(qp);
	ahead = psn_diff(p->psn, r->epsn);
	if (ahead > 0) {
		device_count(qp->dev, CNT_out_of_order, 1);
		answer_sequence(qp);
		return;
	}
	if (ahead < 0)
		duplicate(qp, p, op);
	else
		execute(qp, p, op);
}
