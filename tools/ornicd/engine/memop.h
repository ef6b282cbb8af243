/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory management operations: work requests that change keys (IBTA volume 1,
 * 10.6.5, 10.6.7; ORN-MEM-60 to ORN-MEM-74).
 */
#ifndef ORNICD_ENGINE_MEMOP_H
#define ORNICD_ENGINE_MEMOP_H

#include <stdbool.h>
#include <stdint.h>

struct mr;
struct qp;
struct wqe;

/*
 * memop_execute() - execute FAST_REG, BIND_MW or LOCAL_INV
 * Sets @w->done; on failure @w->status and @w->syndrome, and the key is unchanged.
 */
void memop_execute(struct qp *qp, struct wqe *w);

/*
 * memop_invalidate() - make @key invalid, for the queue pair or for its peer
 * Return: false if that one may not, and why in *@syndrome.
 */
bool memop_invalidate(struct qp *qp, uint32_t key, uint32_t *syndrome);

/* memop_unbind() - a window or a fast registration ends; nothing to do if it is invalid */
void memop_unbind(struct mr *mr);

/* memop_qp_gone() - windows bound on the queue pair become invalid */
void memop_qp_gone(struct qp *qp);

#endif /* ORNICD_ENGINE_MEMOP_H */
