/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data path of unreliable connections.
 */
#ifndef ORNICD_ENGINE_UC_H
#define ORNICD_ENGINE_UC_H

#include <stdbool.h>

struct packet;
struct qp;

/* uc_run() - send for one turn. Return: true if more work is ready. */
bool uc_run(struct qp *qp);

/* uc_receive() - execute a packet that arrived for @qp */
void uc_receive(struct qp *qp, const struct packet *p);

#endif /* ORNICD_ENGINE_UC_H */
