/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Incoming messages: the effect of SEND and WRITE packets of a connection on memory and on the
 * receive queue. It is the same for RC and UC. The callers (responder.c, uc.c) handle errors
 * differently.
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
 * struct opcode_info - properties of a request opcode
 * @known:	the opcode is a request
 * @request:	kind of request
 * @first, @last: the packet begins, ends a message
 * @imm:	the packet has immediate data
 * @inv:	the packet names a key to invalidate; RC only
 */
struct opcode_info {
	bool known;
	enum request request;
	bool first;
	bool last;
	bool imm;
	bool inv;
};

/** enum message_fault - reason why a packet was not executed */
enum message_fault {
	MESSAGE_OK,
	MESSAGE_NO_RECEIVE,	/* no receive is posted */
	MESSAGE_BAD_RECEIVE,	/* the next receive is malformed: the queue pair has failed */
	MESSAGE_INVALID,	/* the lengths do not match */
	MESSAGE_TOO_LONG,	/* longer than the receive in progress */
	MESSAGE_RECEIVE_KEY,	/* a key of the receive in progress does not allow it */
	MESSAGE_ACCESS,		/* the key or the queue pair grants the peer no such access */
	MESSAGE_INVALIDATE,	/* the key of a SEND_INV cannot be invalidated */
	MESSAGE_LOST,		/* data_scatter() returned -EAGAIN: the packet has not arrived */
};

/* message_opcode() - return the properties of a request of any connected transport, or NULL */
const struct opcode_info *message_opcode(uint8_t opcode);

/* message_continues() - return true if opcode and length of @p fit the message in progress */
bool message_continues(const struct qp *qp, const struct packet *p, const struct opcode_info *op);

/*
 * message_execute() - execute a SEND or WRITE packet for which message_continues() is true
 * A message that needs a receive takes one, which stays with the queue pair until it completes.
 * Return: MESSAGE_OK, or the error with its syndrome in *@syndrome.
 */
enum message_fault message_execute(struct qp *qp, const struct packet *p,
				   const struct opcode_info *op, uint32_t *syndrome);

/* message_fail_receive() - complete the receive in progress with error @status */
void message_fail_receive(struct qp *qp, uint8_t status, uint32_t syndrome);

/* message_established() - raise COMM_EST, once, for the first packet of a connection (ORN-QP-30) */
void message_established(struct qp *qp);

#endif /* ORNICD_ENGINE_MESSAGE_H */
