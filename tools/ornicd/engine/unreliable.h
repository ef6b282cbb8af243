/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Send queues without acknowledgements (UC, UD, GSI): one work request at a time, which completes
 * when its last packet was sent (IBTA volume 1, 9.8).
 */
#ifndef ORNICD_ENGINE_UNRELIABLE_H
#define ORNICD_ENGINE_UNRELIABLE_H

#include <stdbool.h>

struct qp;
struct wqe;

/*
 * unreliable_run() - send for one turn
 * @send: callback that sends one packet of a work request, or sets its status. It returns false if
 * the pool is empty. A work request completes when its sent is equal to its npsn.
 * Return: true if more work is ready.
 */
bool unreliable_run(struct qp *qp, bool (*send)(struct qp *qp, struct wqe *w));

#endif /* ORNICD_ENGINE_UNRELIABLE_H */
