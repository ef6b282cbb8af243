// SPDX-License-Identifier: GPL-2.0
/*
 * Incoming messages: execute SEND and WRITE packets.
 */
#include "message.h"

#include "memop.h"
#include "mr.h"
#include "qp.h"

#include <endian.h>
#include <errno.h>

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
	[BTH_RC_FLUSH]		= { true, REQ_FLUSH, true, true, false },
	[BTH_RC_ATOMIC_WRITE]	= { true, REQ_ATOMIC_WRITE, true, true, false },
	[BTH_RC_SEND_LAST_INV]	= { true, REQ_SEND, false, true, false, .inv = true },
	[BTH_RC_SEND_ONLY_INV]	= { true, REQ_SEND, true, true, false, .inv = true },
};

/* The lower bits of an opcode are the operation, the same for every transport. */
const struct opcode_info *message_opcode(uint8_t opcode)
{
	uint8_t operation = opcode & ~BTH_TRANSPORT_MASK;

	if (operation >= sizeof(opcodes) / sizeof(opcodes[0]) || !opcodes[operation].known)
		return NULL;
	return &opcodes[operation];
}

bool message_continues(const struct qp *qp, const struct packet *p, const struct opcode_info *op)
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
	/* Only a message of one packet may be empty (IBTA 9.7.4.1, length validation). */
	if (!op->first && !p->len)
		return false;
	return p->len <= full && psn_count(p->len, qp_mtu(qp)) == p->npsn;
}

/* Take a receive, unless the message has one. */
static enum message_fault take_receive(struct qp *qp, uint32_t *syndrome)
{
	int ret = qp->resp.recv.valid ? 1 : rwqe_fetch(qp, &qp->resp.recv);

	if (ret > 0)
		return MESSAGE_OK;
	*syndrome = qp->syndrome;
	return ret ? MESSAGE_BAD_RECEIVE : MESSAGE_NO_RECEIVE;
}

/* Complete the receive of the message that @p ends. */
static void finish_receive(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			   uint8_t wc_opcode)
{
	struct ornic_cqe cqe = {
		.byte_len = htole32(qp->resp.offset),
		.flags = htole32((op->imm ? ORNIC_CQE_WITH_IMM : 0) |
				 (op->inv ? ORNIC_CQE_WITH_INV : 0) |
				 (p->solicited ? ORNIC_CQE_SOLICITED : 0)),
	};

	if (op->imm)
		cqe.imm = p->imm;
	if (op->inv)
		cqe.inv_key = htole32(p->rkey);
	qp->resp.recv.valid = false;
	complete_recv(qp, qp->resp.recv.index, wc_opcode, ORNIC_WC_SUCCESS, 0, &cqe);
}

void message_fail_receive(struct qp *qp, uint8_t status, uint32_t syndrome)
{
	struct ornic_cqe cqe = {};

	qp->resp.recv.valid = false;
	complete_recv(qp, qp->resp.recv.index, ORNIC_WC_RECV, status, syndrome, &cqe);
}

/* Return what a failed copy means: @fault, or that the packet has not arrived. */
static enum message_fault copy_fault(struct qp *qp, const struct opcode_info *op, int err,
				     enum message_fault fault)
{
	if (err != -EAGAIN)
		return fault;
	if (op->first)
		qp->resp.message = RESP_IDLE;
	return MESSAGE_LOST;
}

static enum message_fault execute_send(struct qp *qp, const struct packet *p,
				       const struct opcode_info *op, uint32_t *syndrome)
{
	struct responder *r = &qp->resp;
	enum message_fault fault;
	int err;

	if (op->first) {
		fault = take_receive(qp, syndrome);
		if (fault)
			return fault;
		r->offset = 0;
		r->message = RESP_SEND;
	}
	if (r->offset + p->len > r->recv.len) {
		*syndrome = ORNIC_SYN_WQE_LENGTH;
		return MESSAGE_TOO_LONG;
	}
	err = data_receive(qp, r->offset, p, syndrome);
	if (err)
		return copy_fault(qp, op, err, MESSAGE_RECEIVE_KEY);
	r->offset += p->len;
	if (op->inv && !memop_invalidate(qp, p->rkey, syndrome))
		return MESSAGE_INVALIDATE;
	if (op->last)
		finish_receive(qp, p, op, ORNIC_WC_RECV);
	return MESSAGE_OK;
}

/* Check the key of a WRITE for the rest of its range, with every packet (ORN-MEM-3). */
static struct mr *write_target(struct qp *qp, uint32_t *syndrome)
{
	struct mr_access who = responder_access(qp, responder_pd(qp), ORNIC_ACCESS_REMOTE_WRITE);
	const struct responder *r = &qp->resp;

	return mr_check(qp->dev, &who, r->rkey, r->va, r->left, syndrome);
}

/* Begin a WRITE with the RETH of @p. Return: false if its lengths do not match. */
static bool begin_write(struct qp *qp, const struct packet *p, const struct opcode_info *op)
{
	struct responder *r = &qp->resp;

	if (p->dmalen > ORNIC_MAX_MSG || (op->last ? p->dmalen != p->len : p->dmalen <= p->len))
		return false;
	r->message = RESP_WRITE;
	r->va = p->va;
	r->rkey = p->rkey;
	r->left = p->dmalen;
	r->offset = 0;
	return true;
}

static enum message_fault execute_write(struct qp *qp, const struct packet *p,
					const struct opcode_info *op, uint32_t *syndrome)
{
	struct responder *r = &qp->resp;
	enum message_fault fault;
	bool match;
	struct mr *mr;
	int err;

	*syndrome = ORNIC_SYN_KEY_ACCESS;
	if (!(qp->access & ORNIC_ACCESS_REMOTE_WRITE))
		return MESSAGE_ACCESS;
	if (op->first)
		match = begin_write(qp, p, op);
	else
		match = op->last ? p->len == r->left : p->len < r->left;
	if (!match) {
		*syndrome = ORNIC_SYN_WIRE | p->opcode;
		return MESSAGE_INVALID;
	}
	if (op->imm) {
		/*
		 * Over UC, a rejected WRITE leaves the receive alone (ORN-UC-9), so check the key
		 * first. Over RC, it completes the receive with an error.
		 */
		if (qp->type == ORNIC_QPT_UC && r->left && !write_target(qp, syndrome))
			fault = MESSAGE_ACCESS;
		else
			fault = take_receive(qp, syndrome);
		if (fault) {
			if (op->first)
				r->message = RESP_IDLE;
			return fault;
		}
	}
	if (r->left) {
		mr = write_target(qp, syndrome);
		if (!mr)
			return MESSAGE_ACCESS;
		*syndrome = ORNIC_SYN_KEY_PAGE;
		err = data_place(qp, mr, r->va, p);
		if (err)
			return copy_fault(qp, op, err, MESSAGE_ACCESS);
		r->va += p->len;
		r->offset += p->len;
		r->left -= p->len;
	}
	if (op->imm)
		finish_receive(qp, p, op, ORNIC_WC_RECV_RDMA_WITH_IMM);
	return MESSAGE_OK;
}

enum message_fault message_execute(struct qp *qp, const struct packet *p,
				   const struct opcode_info *op, uint32_t *syndrome)
{
	enum message_fault fault;

	if (op->request == REQ_SEND)
		fault = execute_send(qp, p, op, syndrome);
	else
		fault = execute_write(qp, p, op, syndrome);
	if (fault)
		return fault;
	/* A first packet that is rejected, or repeated after an RNR NAK, is not executed. */
	if (op->first)
		qp_count(qp, op->request == REQ_SEND ? CNT_rx_send : CNT_rx_write, 1);
	if (op->last)
		qp->resp.message = RESP_IDLE;
	return MESSAGE_OK;
}

void message_established(struct qp *qp)
{
	if (qp->state != ORNIC_QPS_RTR || qp->comm_est)
		return;
	qp->comm_est = true;
	device_event(qp->dev, ORNIC_EV_COMM_EST, qp->handle, qp->owner, 0, qp->state, 0);
}
