// SPDX-License-Identifier: GPL-2.0
/*
 * RC responder: FLUSH and ATOMIC WRITE (IBTA annex A19).
 *
 * Both take a responder resource and are answered by a READ response without data. A duplicate is
 * answered again and not executed again: an ATOMIC WRITE must not undo later writes, and the data
 * of a FLUSH stays flushed.
 *
 * Requests of a queue pair are executed in order, and a write is in memory before the next request
 * is executed. So a GLOBAL FLUSH has nothing to wait for: a reader that sees the completion caused
 * by its answer also sees those writes, because guest memory is coherent for processors and
 * devices.
 *
 * A PERSISTENT FLUSH synchronises the whole file behind the memory, which takes the time of the
 * disk. Its answer and all later requests of the queue pair wait, because an ATOMIC WRITE must not
 * publish data that a power failure can still undo. A request that arrives meanwhile is dropped;
 * the NAK after the answer makes the peer retransmit it at once.
 */
#include "engine.h"
#include "mr.h"
#include "psn.h"
#include "qp.h"

#include <stddef.h>

/* Return the rights that a FLUSH needs of queue pair and key; 0 if the FETH is malformed. */
static uint32_t flush_rights(uint32_t feth)
{
	uint32_t type = feth & FETH_TYPE_MASK;

	if (type & ~(uint32_t)(ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT) ||
	    (feth >> FETH_LEVEL_SHIFT & FETH_LEVEL_MASK) > ORNIC_FLUSH_REGION)
		return 0;
	return (type & ORNIC_FLUSH_GLOBAL ? ORNIC_ACCESS_FLUSH_GLOBAL : 0) |
	       (type & ORNIC_FLUSH_PERSISTENT ? ORNIC_ACCESS_FLUSH_PERSISTENT : 0);
}

/*
 * Return true if the peer may flush the region or range of @p. *@mr is the region, or NULL if there
 * is nothing to flush, as for a range of 0 bytes.
 */
static bool flush_allowed(struct qp *qp, uint32_t rights, const struct packet *p, struct mr **mr,
			  uint32_t *syndrome)
{
	struct mr_access who = responder_access(qp, responder_pd(qp), rights);
	bool region = (p->feth >> FETH_LEVEL_SHIFT & FETH_LEVEL_MASK) == ORNIC_FLUSH_REGION;

	*mr = NULL;
	*syndrome = ORNIC_SYN_KEY_ACCESS;
	if (rights & ~qp->access)
		return false;
	if (!region && !p->dmalen)
		return true;
	if (region)
		*mr = mr_check_key(qp->dev, &who, p->rkey, syndrome);
	else
		*mr = mr_check(qp->dev, &who, p->rkey, p->va, p->dmalen, syndrome);
	return *mr;
}

/* Queue an answer without data to the request at the expected PSN. Return: false if it failed. */
static bool answer_empty(struct qp *qp, const struct packet *p)
{
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	if (!answer_add(qp, p->opcode, 1)) {
		invalid_request(qp, p->opcode);
		return false;
	}
	qp->resp.epsn = psn_add(qp->resp.epsn, 1);
	engine_activate(qp->dev->engine, qp);
	return true;
}

/*
 * Withdraw a FLUSH whose data did not reach persistence, and fail it after the answers before it.
 * It was held and so never answered: neither rd_answer nor rd_fresh has passed it.
 */
static void flush_failed(struct qp *qp)
{
	struct responder *r = &qp->resp;

	r->rd_next--;
	r->msn = psn_add(r->msn, -1);
	r->epsn = psn_add(r->epsn, -1);
	r->failed = true;
	r->fail_event = ORNIC_EV_QP_FATAL;
	r->fail_syndrome = ORNIC_SYN_PERSISTENCE;
	r->nak = AETH_NAK | NAK_REMOTE_OPERATIONAL;
}

/*
 * End the wait of a FLUSH. Called by syncer_reap() between turns, or at once by syncer_add() if the
 * file has lost data or no thread can start.
 */
static void flush_done(struct sync_wait *w, int err)
{
	struct qp *qp = (struct qp *)((char *)w - offsetof(struct qp, flush));

	qp->resp.held = false;
	if (err)
		flush_failed(qp);
	else
		qp_count(qp, CNT_flush_persistent, 1);
	engine_activate(qp->dev->engine, qp);
}

void flush_cancel(struct qp *qp)
{
	sync_cancel(&qp->flush);
	qp->resp.held = false;
}

void execute_flush(struct qp *qp, const struct packet *p)
{
	uint32_t rights = flush_rights(p->feth);
	uint32_t syndrome;
	struct mr *mr;

	if (!rights || p->len || p->dmalen > ORNIC_MAX_MSG) {
		invalid_request(qp, p->opcode);
		return;
	}
	if (!flush_allowed(qp, rights, p, &mr, &syndrome)) {
		access_error(qp, syndrome);
		return;
	}
	if (!answer_empty(qp, p))
		return;
	qp_count(qp, CNT_rx_flush, 1);
	if (!(rights & ORNIC_ACCESS_FLUSH_PERSISTENT) || !mr || !mr->durable)
		return;
	qp->resp.held = true;
	qp->flush.done = flush_done;
	syncer_add(&qp->dev->engine->syncer, mr->durable, &qp->flush);
}

void execute_atomic_write(struct qp *qp, const struct packet *p)
{
	uint64_t value, *word;

	if (!(qp->access & ORNIC_ACCESS_REMOTE_WRITE)) {
		access_error(qp, ORNIC_SYN_KEY_ACCESS);
		return;
	}
	if (p->len != sizeof(value) || p->dmalen != sizeof(value) || p->va & 7) {
		invalid_request(qp, p->opcode);
		return;
	}
	word = responder_word(qp, ORNIC_ACCESS_REMOTE_WRITE, p);
	seg_copy_out(&value, p->seg, p->nseg, 0, sizeof(value));
	if (!word || backing_loss_pending() || !answer_empty(qp, p))
		return;
	qp_count(qp, CNT_rx_write, 1);
	qp_count(qp, CNT_rdma_copied_bytes, sizeof(value));
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}
