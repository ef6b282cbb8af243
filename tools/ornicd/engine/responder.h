/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RC responder: what executing requests (responder.c) and answering them
 * (answer.c) share.
 */
#ifndef ORNICD_ENGINE_RESPONDER_H
#define ORNICD_ENGINE_RESPONDER_H

#include "mr.h"
#include "psn.h"
#include "qp.h"

static inline struct rd_resource *responder_rd(struct responder *r, uint32_t i)
{
	return &r->rd[i % QP_MAX_RD_ATOMIC];
}

/* responder_mr() - the key that lets the peer do @access to a range, or NULL and why not */
struct mr *responder_mr(struct qp *qp, uint32_t access, uint32_t rkey, uint64_t va, uint64_t len,
			uint32_t *syndrome);

/* answer.c */

/* answer_ack() - acknowledge all requests so far, once the reads before are answered */
void answer_ack(struct qp *qp);

/* answer_rnr() - no receive posted: the requester is to come back later */
void answer_rnr(struct qp *qp);

/* answer_sequence() - a gap before @p: report it once */
void answer_sequence(struct qp *qp);

/*
 * answer_fail() - the request at the expected PSN cannot be executed: NAK with @code,
 * then ERR with @event (0 = none), once the reads before are answered
 */
void answer_fail(struct qp *qp, uint8_t code, uint8_t event, uint32_t syndrome);

/* answer_add() - remember a READ or atomic just executed, to be answered; NULL = too many */
struct rd_resource *answer_add(struct qp *qp, uint32_t npsn);

/* answer_again() - a READ or atomic asked for again */
void answer_again(struct qp *qp, const struct packet *p);

#endif /* ORNICD_ENGINE_RESPONDER_H */
