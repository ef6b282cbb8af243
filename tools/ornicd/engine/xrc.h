/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Extended reliable connections (IBTA volume 1, annex A14): RC between an initiator and
 * a target queue pair, where each request names the SRQ that it is for.
 *
 * The target has neither queues nor a protection domain of its own. It uses those of the SRQ that
 * each message names, so its srq member changes with each message.
 */
#ifndef ORNICD_ENGINE_XRC_H
#define ORNICD_ENGINE_XRC_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;
struct srq;

/** struct xrcd - an XRC domain; @users: SRQs and targets in it (ORN-XRC-3) */
struct xrcd {
	uint32_t number;
	uint32_t users;
};

/*
 * xrc_select() - make target @qp use the SRQ that @p names (ORN-XRC-6)
 * @first: @p begins a message; other packets must name the SRQ of their message.
 * Return: false if the SRQ is not allowed.
 */
bool xrc_select(struct qp *qp, const struct packet *p, bool first);

/*
 * xrc_forget() - stop all targets from using @srq, and its protection domain for requests that
 * named it, before it goes away (ORN-XRC-9). It visits at most @n more queue pairs, because the
 * function may have many. From the first call on, no request can name the SRQ.
 * Return: true if all were visited.
 */
bool xrc_forget(struct srq *srq, uint32_t n);

#endif /* ORNICD_ENGINE_XRC_H */
