// SPDX-License-Identifier: GPL-2.0
/*
 * Write the completions of work requests.
 */
#include "complete.h"

#include "engine.h"
#include "latency.h"
#include "qp.h"
#include "srq.h"

#include <endian.h>

static uint8_t wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
	case ORNIC_WR_SEND_INV:
		return ORNIC_WC_SEND;
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
		return ORNIC_WC_RDMA_WRITE;
	case ORNIC_WR_RDMA_READ:
		return ORNIC_WC_RDMA_READ;
	case ORNIC_WR_COMP_SWAP:
		return ORNIC_WC_COMP_SWAP;
	case ORNIC_WR_FETCH_ADD:
		return ORNIC_WC_FETCH_ADD;
	case ORNIC_WR_FLUSH:
		return ORNIC_WC_FLUSH;
	case ORNIC_WR_ATOMIC_WRITE:
		return ORNIC_WC_ATOMIC_WRITE;
	case ORNIC_WR_FAST_REG:
		return ORNIC_WC_FAST_REG;
	case ORNIC_WR_BIND_MW:
		return ORNIC_WC_BIND_MW;
	case ORNIC_WR_LOCAL_INV:
		return ORNIC_WC_LOCAL_INV;
	case ORNIC_WR_NOP:
		return ORNIC_WC_NOP;
	default:
		return ORNIC_WC_SEND_FLUSHED;
	}
}

static void count_status(struct qp *qp, uint8_t status)
{
	if (status == ORNIC_WC_WR_FLUSH_ERR)
		qp_count(qp, CNT_flushes, 1);
	else if (status == ORNIC_WC_LOC_PROT_ERR)
		qp_count(qp, CNT_local_protection_errors, 1);
}

/* Return true if fault injection turned a success into an error. */
static bool spoilt(struct qp *qp, bool recv, struct ornic_cqe *cqe)
{
	const struct engine_faults *faults = qp->dev->engine->faults;

	if (__builtin_expect(!faults, 1) || cqe->status)
		return false;
	cqe->status = faults->completion(qp, recv);
	if (!cqe->status)
		return false;
	cqe->syndrome = htole32(FAULT_SYNDROME);
	return true;
}

void complete_send(struct qp *qp, struct wqe *w)
{
	struct ornic_cqe cqe = {
		.qpn = htole32(qp->handle),
		.wqe_id = htole32(w->index),
		.srqn = htole32(ORNIC_NONE),
		.opcode = wc_opcode(w->opcode),
		.status = w->status,
		.syndrome = htole32(w->syndrome),
	};

	latency_done(qp->dev, w);
	qp->sq.done = w->index + 1;
	if (!w->status && !(w->flags & ORNIC_WQE_SIGNALED) && !(qp->flags & ORNIC_QP_F_SIG_ALL))
		return;
	if (spoilt(qp, false, &cqe)) {
		w->status = cqe.status;
		w->syndrome = FAULT_SYNDROME;
	}
	if (!w->status && wqe_is_read(w))
		cqe.byte_len = htole32(w->len);
	count_status(qp, w->status);
	cq_post(qp->scq, &cqe);
	/* UC and UD fail by the status, see unreliable.c */
	if (w->syndrome == FAULT_SYNDROME && (qp_reliable(qp) || qp->type == ORNIC_QPT_RAW))
		qp_fail(qp, 0, FAULT_SYNDROME, w->index);
}

void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe)
{
	bool injected;

	cqe->qpn = htole32(qp->handle);
	cqe->wqe_id = htole32(index);
	cqe->srqn = htole32(qp->srq ? qp->srq->number : ORNIC_NONE);
	cqe->opcode = opcode;
	cqe->status = status;
	cqe->syndrome = htole32(syndrome);
	injected = spoilt(qp, true, cqe);
	count_status(qp, cqe->status);
	cq_post(qp->type == ORNIC_QPT_XRC_TGT ? qp->srq->cq : qp->rcq, cqe);
	if (injected && qp_reliable(qp))
		answer_fail(qp, NAK_REMOTE_OPERATIONAL, 0, FAULT_SYNDROME);
	else if (injected)
		qp_fail(qp, 0, FAULT_SYNDROME, index);
}
