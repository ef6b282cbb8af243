/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive side of connections. UC uses only the PSN and the message in progress. RC and XRC execute
 * requests (responder.c, flush.c) and answer them (answer.c).
 */
#ifndef ORNICD_ENGINE_RESPONDER_H
#define ORNICD_ENGINE_RESPONDER_H

#include "rwqe.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct mr_access;
struct packet;
struct qp;

/** QP_MAX_RD_ATOMIC - responder resources and outstanding reads per queue pair */
#define QP_MAX_RD_ATOMIC	16

/**
 * struct rd_resource - a READ, atomic, FLUSH or ATOMIC WRITE, stored because the peer may repeat it
 * @opcode:	BTH opcode of the request
 * @psn:	first PSN of the answer
 * @npsn:	PSNs of the answer
 * @from:	PSN offset at which the answer in progress begins; not 0 for some repeated requests
 * @sent:	PSNs of the answer sent
 * @value:	atomic: previous content of memory
 * @va:		READ: address
 * @rkey:	READ: key
 * @pd:		protection domain that the key must belong to; 0 = none, the SRQ is gone
 * @srqn:	SRQ of the queue pair, which for XRC is the one that the request named; 0 = none
 * @len:	READ: bytes; 0 for FLUSH and ATOMIC WRITE, whose answers have no data
 * @msn:	MSN of the answer
 */
struct rd_resource {
	uint8_t opcode;
	uint32_t psn;
	uint32_t npsn;
	uint32_t from;
	uint32_t sent;
	uint64_t value;
	uint64_t va;
	uint32_t rkey;
	uint32_t pd;
	uint32_t srqn;
	uint32_t len;
	uint32_t msn;
};

enum resp_message {
	RESP_IDLE,	/* between messages */
	RESP_SEND,
	RESP_WRITE,
};

/**
 * struct responder - receive side of connections. Members for answers are used by RC and XRC only.
 * @epsn:	PSN expected next
 * @msn:	messages completed
 * @message:	kind of message in progress
 * @recv:	receive work request of the SEND in progress
 * @offset:	bytes of the message placed
 * @va:		WRITE: next address
 * @rkey:	WRITE: key
 * @left:	WRITE: bytes announced and not yet placed
 * @nak_sent:	a NAK or RNR NAK for @epsn was sent
 * @ack_due:	an ACK is due; it waits for the answers before it, or for more requests to
 *		acknowledge
 * @ack_queued:	the queue pair is in the engine's list of ACKs to send
 * @nak:	AETH syndrome of a NAK that waits for the answers before it; 0 = none
 * @held:	the last resource is a FLUSH whose data is not yet persistent: it is not answered,
 *		and no later request is executed
 * @failed:	a request failed: no further request is executed, ERR follows the NAK
 * @fail_event:	event to raise when ERR is entered
 * @fail_syndrome: syndrome of that event
 * @rd:		resources, a ring
 * @rd_first:	oldest resource, free-running
 * @rd_next:	next free resource
 * @rd_answer:	first resource not answered in full; = @rd_next if none
 * @rd_fresh:	first resource never answered in full: @rd_answer, or later in a replay
 */
struct responder {
	uint32_t epsn;
	uint32_t msn;
	enum resp_message message;
	struct rwqe recv;
	uint64_t offset;
	uint64_t va;
	uint32_t rkey;
	uint64_t left;
	bool nak_sent;
	bool ack_due;
	bool ack_queued;
	uint8_t nak;
	bool held;
	bool failed;
	uint8_t fail_event;
	uint32_t fail_syndrome;
	struct rd_resource rd[QP_MAX_RD_ATOMIC];
	uint32_t rd_first;
	uint32_t rd_next;
	uint32_t rd_answer;
	uint32_t rd_fresh;
};

static inline struct rd_resource *responder_rd(struct responder *r, uint32_t i)
{
	return &r->rd[i % QP_MAX_RD_ATOMIC];
}

/* responder.c */

/* responder_start() - expect the first PSN of the attributes, when RTR is entered */
void responder_start(struct qp *qp);
/* responder_stop() - end answers; nothing arrives until RESET clears the rest */
void responder_stop(struct qp *qp);

/* responder_receive() - execute a request that arrived for @qp, or repeat the answer */
void responder_receive(struct qp *qp, const struct packet *p);

/* responder_pd() - return the domain of the keys that requests may name; for XRC_TGT, its SRQ's */
uint32_t responder_pd(const struct qp *qp);

/*
 * responder_access() - describe @access of the peer of @qp to a key of domain @pd, for mr_check()
 */
struct mr_access responder_access(const struct qp *qp, uint32_t pd, uint32_t access);

/*
 * responder_word() - find the 8 bytes at the address of @p for @access
 * Return: a pointer to them, or NULL after the request failed.
 */
uint64_t *responder_word(struct qp *qp, uint32_t access, const struct packet *p);

/* invalid_request() - answer with NAK invalid request; @detail goes into the syndrome */
void invalid_request(struct qp *qp, uint32_t detail);
/* access_error() - answer with NAK remote access error */
void access_error(struct qp *qp, uint32_t syndrome);

/* flush.c */

/* execute_flush(), execute_atomic_write() - execute the requests of IBTA annex A19 */
void execute_flush(struct qp *qp, const struct packet *p);
void execute_atomic_write(struct qp *qp, const struct packet *p);
/* flush_cancel() - stop waiting for data to become persistent */
void flush_cancel(struct qp *qp);

/* answer.c */

/* responder_run() - send answers for one turn. Return: true if more work is ready. */
bool responder_run(struct qp *qp);

/*
 * answer_ack() - acknowledge all requests so far, once the packets that were delivered together are
 * executed and earlier answers are sent
 */
void answer_ack(struct qp *qp);
/* answer_flush() - send the ACKs that waited for the end of a delivery. Return: true if one did. */
bool answer_flush(struct engine *e);
/* answer_stop() - end all answers */
void answer_stop(struct qp *qp);

/* answer_rnr() - send an RNR NAK, because no receive is posted */
void answer_rnr(struct qp *qp);

/* answer_sequence() - report a gap before the PSN that arrived by a NAK, once */
void answer_sequence(struct qp *qp);

/*
 * answer_fail() - fail the request at the expected PSN: after the answers before it, send a NAK
 * with
 * @code, then enter ERR with @event (0 = none)
 */
void answer_fail(struct qp *qp, uint8_t code, uint8_t event, uint32_t syndrome);

/* answer_none() - fail the request without a NAK and without an event (IBTA class J) */
void answer_none(struct qp *qp, uint32_t syndrome);

/*
 * answer_add() - queue the answer of @npsn packets to the READ, atomic, FLUSH or ATOMIC WRITE at
 * the expected PSN
 * Return: its resource, or NULL if the peer exceeds its limit.
 */
struct rd_resource *answer_add(struct qp *qp, uint8_t opcode, uint32_t npsn);

/* answer_again() - repeat the answer to a duplicate request, if its resource still exists */
void answer_again(struct qp *qp, const struct packet *p);

#endif /* ORNICD_ENGINE_RESPONDER_H */
