/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data path of datagrams (UD, GSI).
 */
#ifndef ORNICD_ENGINE_UD_H
#define ORNICD_ENGINE_UD_H

#include <stdbool.h>

struct packet;
struct qp;

/* ud_run() - send for one turn. Return: true if more work is ready. */
bool ud_run(struct qp *qp);

/* ud_catch_up() - deliver datagrams of the backlog. Return: true if some can still be delivered. */
bool ud_catch_up(struct qp *qp);

/* ud_receive() - deliver a datagram to @qp, or keep it in the backlog, or drop and count it */
void ud_receive(struct qp *qp, const struct packet *p);

#endif /* ORNICD_ENGINE_UD_H */
