// SPDX-License-Identifier: GPL-2.0
/*
 * End-to-end flow control of RC (IBTA volume 1, 9.7.7.2).
 *
 * An ACK reports how many receives are posted. The requester numbers its messages (SSN) as the
 * responder counts them (MSN). So MSN plus credits is the last message that certainly finds a
 * receive. A later message that needs a receive is limited: its first packet goes alone, and the
 * rest follows its ACK. Messages are not limited for a peer that reports no credits, such as
 * Soft-RoCE (Linux 7.2) or any receiver with an SRQ.
 *
 * A code of credits has 5 bits: 0 and 1, then the powers of two and the numbers halfway between.
 */
#include "credit.h"

#include "qp.h"

/** CREDIT_MAX - code of the largest number of credits, 32768 */
#define CREDIT_MAX	30

uint8_t credit_encode(uint32_t n)
{
	uint32_t log, code;

	if (n < 2)
		return n;
	log = 31 - __builtin_clz(n);
	code = 2 * log + (n >> (log - 1) & 1);
	return code < CREDIT_MAX ? code : CREDIT_MAX;
}

uint32_t credit_decode(uint8_t code)
{
	return code < 2 ? code : (2u | (code & 1)) << (code / 2 - 1);
}

/* Count the receive of a message in progress too: MSN does not include that message yet. */
uint8_t credit_syndrome(const struct qp *qp)
{
	int64_t n = -1;

	if (!qp->srq && qp->rq.present && !qp->rq.bad)
		n = wq_pending(qp->dev, &qp->rq);
	return AETH_ACK | (n < 0 ? AETH_NO_CREDITS : credit_encode(n + qp->resp.recv.valid));
}

/* Posted receives cannot be withdrawn, so a limit never goes back. */
bool credit_receive(struct requester *r, uint8_t aeth, uint32_t msn)
{
	uint8_t code = aeth & AETH_VALUE_MASK;
	bool was_limited = r->limited;
	uint32_t limit;

	r->limited = code != AETH_NO_CREDITS;
	if (!r->limited)
		return was_limited;
	limit = psn_add(msn, credit_decode(code));
	if (was_limited && psn_diff(limit, r->limit) <= 0)
		return false;
	r->limit = limit;
	return was_limited;
}

bool credit_limits(const struct requester *r, const struct wqe *w)
{
	switch (w->opcode) {
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
	case ORNIC_WR_SEND_INV:
	case ORNIC_WR_RDMA_WRITE_IMM:
		/*
		 * After the first packet arrived, a SEND has its receive. A WRITE needs one only
		 * for its last packet.
		 */
		return r->limited && psn_diff(w->ssn, r->limit) > 0 &&
		       seq_diff(r->una, w->psn) <= 0;
	default:
		return false;
	}
}
