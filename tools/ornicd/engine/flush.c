// SPDX-License-Identifier: GPL-2.0
/*
 * RC responder: FLUSH and ATOMIC WRITE (IBTA annex A19).
 *
 * Both take a responder resource and are answered by a READ response without data. A
 * duplicate is answered again and not executed again: an ATOMIC WRITE must not undo what
 * came after it, and what a FLUSH promised still holds.
 *
 * Requests of a queue pair are executed in order and writes are in memory when the next
 * request is looked at, so a FLUSH has nothing to wait for: whoever sees a completion that
 * its answer causes sees those writes, and memory of a guest is coherent for its processors
 * and devices alike.
 * PERSISTENT is another matter. This device cannot know what becomes of guest memory when
 * the host loses power, so it does not offer the feature, no key has the right, and such
 * a FLUSH is refused.
 */
#include "responder.h"

#include "engine.h"

/* Rights that a FLUSH needs, of queue pair and key; 0: the FETH is malformed. */
static uint32_t flush_rights(uint32_t feth)
{
	uint32_t type = feth & FETH_TYPE_MASK;

	if (type & ~(uint32_t)(ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT) ||
	    (feth >> FETH_LEVEL_SHIFT & FETH_LEVEL_MASK) > ORNIC_FLUSH_REGION)
		return 0;
	return (type & ORNIC_FLUSH_GLOBAL ? ORNIC_ACCESS_FLUSH_GLOBAL : 0) |
	       (type & ORNIC_FLUSH_PERSISTENT ? ORNIC_ACCESS_FLUSH_PERSISTENT : 0);
}

/* May the peer flush what @p names? A range of no bytes names nothing. */
static bool flush_allowed(struct qp *qp, uint32_t rights, const struct packet *p,
			  uint32_t *syndrome)
{
	bool region = (p->feth >> FETH_LEVEL_SHIFT & FETH_LEVEL_MASK) == ORNIC_FLUSH_REGION;

	*syndrome = ORNIC_SYN_KEY_ACCESS;
	if (rights & ~qp->access)
		return false;
	if (region)
		return responder_key(qp, rights, p->rkey, syndrome);
	return !p->dmalen || responder_mr(qp, rights, p->rkey, p->va, p->dmalen, syndrome);
}

/* Remember the request at the expected PSN, to be answered without data. */
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

void execute_flush(struct qp *qp, const struct packet *p)
{
	uint32_t rights = flush_rights(p->feth);
	uint32_t syndrome;

	if (!rights || p->len || p->dmalen > ORNIC_MAX_MSG) {
		invalid_request(qp, p->opcode);
		return;
	}
	if (!flush_allowed(qp, rights, p, &syndrome)) {
		access_error(qp, syndrome);
		return;
	}
	if (answer_empty(qp, p))
		qp_count(qp, CNT_rx_flush, 1);
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
	if (!word || !answer_empty(qp, p))
		return;
	qp_count(qp, CNT_rx_write, 1);
	device_count(qp->dev, CNT_rdma_copied_bytes, sizeof(value));
	seg_copy_out(&value, p->seg, p->nseg, 0, sizeof(value));
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}
