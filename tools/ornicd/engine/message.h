/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Incoming messages: the effect of SEND and WRITE packets of a connection on memory and on the
 * receive queue. It is the same for RC and UC. What follows from an error differs, and is up to the
 * caller (responder.c, uc.c).
 */
#ifndef ORNICD_ENGINE_MESSAGE_H
#define ORNICD_ENGINE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;

enum request {
	REQ_SEND,
	REQ_WRITE,
	REQ_READ,
	REQ_ATOMIC,
	REQ_FLUSH,
	REQ_ATOMIC_WRITE,
};

/**
 * struct opcode_info - facts of a request opcode
 * @known:	it is a request
 * @request:	what it asks for
 * @first, @last: begins, ends a message
 * @imm:	carries immediate data
 * @inv:	names a key to invalidate; RC only
 */
struct opcode_info {
	bool known;
	enum request request;
	bool first;
	bool last;
	bool imm;
	bool inv;
};

/** enum message_fault - why a packet was not executed */
enum message_fault {
	MESSAGE_OK,
	MESSAGE_NO_RECEIVE,	/* none is posted */
	MESSAGE_BAD_RECEIVE,	/* the next one is malformed: the queue pair has failed */
	MESSAGE_INVALID,	/* the lengths do not add up */
	MESSAGE_TOO_LONG,	/* longer than the receive in progress */
	MESSAGE_RECEIVE_KEY,	/* a key of the receive in progress does not allow it */
	MESSAGE_ACCESS,		/* the key or the queue pair grants the peer no such access */
	MESSAGE_INVALIDATE,	/* the key of a SEND_INV cannot be invalidated */
};

/* message_opcode() - return the facts of a request of any connected transport, or NULL */
const struct opcode_info *message_opcode(uint8_t opcode);

/*
 * message_continues() - return true if @p fits the message in progress, and its length its opcode
 */
bool message_continues(const struct qp *qp, const struct packet *p, const struct opcode_info *op);

/*
 * message_execute() - execute a SEND or WRITE packet that continues the message in progress
 * The receive that a message took stays with the queue pair until it completes.
 * Return: MESSAGE_OK, or the error and its syndrome.
 */
enum message_fault message_execute(struct qp *qp, const struct packet *p,
				   const struct opcode_info *op, uint32_t *syndrome);

/* message_fail_receive() - complete the receive in progress with an error */
void message_fail_receive(struct qp *qp, uint8_t status, uint32_t syndrome);

/*
 * message_established() - raise COMM_EST when the first packet of the connection arrives (ORN-
 * QP-30)
 */
void message_established(struct qp *qp);

#endif /* ORNICD_ENGINE_MESSAGE_H */
