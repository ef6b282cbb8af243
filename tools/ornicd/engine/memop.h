/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory management operations: work requests that change keys (IBTA volume 1, 10.6.5, 10.6.7;
 * ORN-MEM-60 to ORN-MEM-74).
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
 * Sets @w->done; on failure also @w->status and @w->syndrome, and the key is unchanged.
 */
void memop_execute(struct qp *qp, struct wqe *w);

/*
 * memop_invalidate() - invalidate @key on behalf of the queue pair or its peer
 * Return: true, or false with the reason in *@syndrome.
 */
bool memop_invalidate(struct qp *qp, uint32_t key, uint32_t *syndrome);

/* memop_unbind() - make a window or a fast registration invalid */
void memop_unbind(struct mr *mr);

/*
 * memop_unbind_some() - invalidate at most @n of the windows that are bound on the queue pair
 * Return: true if none is left.
 */
bool memop_unbind_some(struct qp *qp, uint32_t n);

#endif /* ORNICD_ENGINE_MEMOP_H */
