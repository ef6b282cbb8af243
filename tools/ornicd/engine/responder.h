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

struct engine;

static inline struct rd_resource *responder_rd(struct responder *r, uint32_t i)
{
	return &r->rd[i % QP_MAX_RD_ATOMIC];
}

/* responder_mr() - the key that lets the peer do @access to a range, or NULL and why not */
struct mr *responder_mr(struct qp *qp, uint32_t access, uint32_t rkey, uint64_t va, uint64_t len,
			uint32_t *syndrome);

/* responder_mr_of() - the same for a key of domain @pd */
struct mr *responder_mr_of(struct qp *qp, uint32_t pd, uint32_t access, uint32_t rkey, uint64_t va,
			   uint64_t len, uint32_t *syndrome);

/* responder_pd() - domain of the keys that a request may name: XRC_TGT: that of its SRQ */
uint32_t responder_pd(const struct qp *qp);

/* responder_key() - the same for all of a key, whatever its range */
struct mr *responder_key(struct qp *qp, uint32_t access, uint32_t rkey, uint32_t *syndrome);

/* flush.c */

/* execute_flush(), execute_atomic_write() - the requests of IBTA annex A19 */
void execute_flush(struct qp *qp, const struct packet *p);
void execute_atomic_write(struct qp *qp, const struct packet *p);
/* flush_cancel() - the queue pair does not wait for data to become persistent any more */
void flush_cancel(struct qp *qp);

/* responder.c */

/* invalid_request() - NAK invalid request; @detail says which in the syndrome */
void invalid_request(struct qp *qp, uint32_t detail);
/* access_error() - NAK remote access */
void access_error(struct qp *qp, uint32_t syndrome);
/* responder_word() - the word of @access at the address of @p, or NULL: the request has failed */
uint64_t *responder_word(struct qp *qp, uint32_t access, const struct packet *p);

/* answer.c */

/*
 * answer_ack() - acknowledge all requests so far, once what was delivered with the last of them is
 * executed and the reads before are answered
 * answer_flush() - send the ACKs that waited only for the former. Return: whether any was sent
 * answer_stop() - answer nothing any more
 */
void answer_ack(struct qp *qp);
bool answer_flush(struct engine *e);
void answer_stop(struct qp *qp);

/* answer_rnr() - no receive posted: the requester is to come back later */
void answer_rnr(struct qp *qp);

/* answer_sequence() - a gap before @p: report it once */
void answer_sequence(struct qp *qp);

/*
 * answer_fail() - the request at the expected PSN cannot be executed: NAK with @code,
 * then ERR with @event (0 = none), once the reads before are answered
 */
void answer_fail(struct qp *qp, uint8_t code, uint8_t event, uint32_t syndrome);

/*
 * answer_add() - remember the READ, atomic and so on at the expected PSN, to be answered
 * with @npsn packets; NULL = too many
 */
struct rd_resource *answer_add(struct qp *qp, uint8_t opcode, uint32_t npsn);

/* answer_again() - something that answer_add() remembers is asked for again */
void answer_again(struct qp *qp, const struct packet *p);

#endif /* ORNICD_ENGINE_RESPONDER_H */
