/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Extended reliable connections (IBTA volume 1, annex A14): RC between an initiator and
 * a target queue pair, where each request names the SRQ that it is for.
 *
 * The target has neither queues nor a protection domain of its own: the SRQ lends it
 * both, for one message at a time. So its srq is not fixed but that of the message last
 * begun.
 */
#ifndef ORNICD_ENGINE_XRC_H
#define ORNICD_ENGINE_XRC_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;
struct srq;

/** struct xrcd - an XRC domain; counted by SRQs and targets (ORN-XRC-3) */
struct xrcd {
	uint32_t number;
	uint32_t owner;
	uint32_t users;
};

/*
 * xrc_select() - let target @qp work for the SRQ that @p names (ORN-XRC-6); @first: it begins
 * a message. Return: false if it may not.
 */
bool xrc_select(struct qp *qp, const struct packet *p, bool first);

/* xrc_forget() - @srq goes away: no target works for it or answers from its domain */
void xrc_forget(struct srq *srq);

#endif /* ORNICD_ENGINE_XRC_H */
