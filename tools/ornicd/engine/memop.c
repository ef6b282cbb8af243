// SPDX-License-Identifier: GPL-2.0
/*
 * Memory management operations: fast registration, binding of windows, invalidation.
 *
 * A key that work requests fill is either invalid or bound. An invalid key names no memory. The
 * operation that binds it sets a new tag, so that earlier values of the key stay invalid. The
 * page-list entries of a fast registration were reserved when its key was created, so registering
 * cannot fail because of the budget.
 *
 * A window has no memory of its own. Its region counts it and cannot be destroyed before it.
 */
#include "memop.h"

#include "mr.h"
#include "qp.h"
#include "responder.h"

#include <ornic/admin.h>
#include <ornic/identify.h>
#include <endian.h>

/* Rights that a fast registration may have; REMOTE_ATOMIC also needs a feature. */
#define FAST_REG_ACCESS								\
	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |			\
	 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC |		\
	 ORNIC_ACCESS_RELAXED_ORDERING)

/* Rights that a window may have */
#define BIND_ACCESS								\
	(ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |			\
	 ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_ZERO_BASED)

#define NEEDS_LOCAL_WRITE	(ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_ATOMIC)

static struct mr *key_of(const struct qp *qp, uint32_t key)
{
	return table_get(&qp->dev->keys, key >> ORNIC_KEY_TAG_BITS);
}

void memop_unbind(struct mr *mr)
{
	if (!mr->bound)
		return;
	mr->bound = false;
	if (mr->qp)
		LIST_REMOVE(mr, on_qp);
	mr->qp = NULL;
	if (mr->region)
		mr->region->windows--;
	mr->region = NULL;
	if (mr->mem.page)
		umem_free(&mr->mem, &mr->lists);
}

bool memop_unbind_some(struct qp *qp, uint32_t n)
{
	struct mr *mr;

	for (; n && (mr = LIST_FIRST(&qp->windows)); n--)
		memop_unbind(mr);
	return LIST_EMPTY(&qp->windows);
}

bool memop_invalidate(struct qp *qp, uint32_t key, uint32_t *syndrome)
{
	struct mr *mr = key_of(qp, key);
	uint32_t why = 0;

	if (!mr)
		why = ORNIC_SYN_KEY_INDEX;
	else if (mr->tag != (key & ORNIC_KEY_TAG_MASK))
		why = ORNIC_SYN_KEY_TAG;
	else if (mr->pd != responder_pd(qp) || (mr->qp && mr->qp != qp))
		why = ORNIC_SYN_KEY_PD;
	else if (mr->kind != ORNIC_KEY_FAST_REG && mr->kind != ORNIC_KEY_MW2B)
		why = ORNIC_SYN_KEY_ACCESS;
	if (!why) {
		memop_unbind(mr);
		return true;
	}
	if (why != ORNIC_SYN_KEY_ACCESS && !(qp->flags & ORNIC_QP_F_PRIVILEGED))
		why = ORNIC_SYN_KEY_INDEX;	/* ORN-ERR-3 */
	*syndrome = why;
	return false;
}

/* Return 0 if a work request of @qp may bind @mr, or the syndrome. */
static uint32_t bindable(const struct qp *qp, const struct mr *mr)
{
	if (!mr)
		return ORNIC_SYN_KEY_INDEX;
	if (mr->pd != qp->pd->number)
		return qp->flags & ORNIC_QP_F_PRIVILEGED ? ORNIC_SYN_KEY_PD : ORNIC_SYN_KEY_INDEX;
	return mr->bound && mr->kind != ORNIC_KEY_MW1 ? ORNIC_SYN_KEY_STATE : 0;
}

/* Return true unless @access has a right whose feature is missing. */
static bool access_offered(const struct qp *qp, uint32_t access)
{
	uint64_t features = qp->dev->features;

	if (access & ORNIC_ACCESS_REMOTE_ATOMIC && !(features & ORNIC_FEATURE(ATOMICS)))
		return false;
	return !(access & ORNIC_ACCESS_ZERO_BASED) || features & ORNIC_FEATURE(ZERO_BASED);
}

static uint32_t fast_reg_check(const struct qp *qp, const struct ornic_wqe_fast_reg *reg)
{
	uint32_t access = le32toh(reg->access);
	uint64_t iova = le64toh(reg->iova), length = le64toh(reg->length);

	if (access & ~FAST_REG_ACCESS || !access_offered(qp, access) ||
	    (access & NEEDS_LOCAL_WRITE && !(access & ORNIC_ACCESS_LOCAL_WRITE)))
		return ORNIC_SYN_KEY_ACCESS;
	return iova + length < iova ? ORNIC_SYN_KEY_RANGE : 0;
}

/* Copy the page list, which must have @reg->npages entries. Return: 0 or the syndrome. */
static uint32_t fast_reg_load(const struct qp *qp, const struct ornic_wqe_fast_reg *reg,
			      struct mr *mr)
{
	struct ornic_pages desc = {
		.addr = reg->list,
		.offset = reg->offset,
		.page_shift = reg->page_shift,
		.level = 1,
	};
	struct umem mem;
	uint8_t st = umem_load(&mem, qp->dev->gpa, &desc, le64toh(reg->length), UMEM_PAGE_SIZES,
			       &mr->lists);

	if (st)
		return st == ORNIC_ST_DMA_ERROR ? ORNIC_SYN_KEY_PAGE : ORNIC_SYN_KEY_RANGE;
	if (mem.npages != le32toh(reg->npages)) {
		umem_free(&mem, &mr->lists);
		return ORNIC_SYN_KEY_RANGE;
	}
	mr->mem = mem;
	return 0;
}

static uint32_t fast_reg(struct qp *qp, const struct ornic_wqe_fast_reg *reg)
{
	struct mr *mr = key_of(qp, le32toh(reg->key));
	uint32_t why = bindable(qp, mr);

	if (!why && mr->kind != ORNIC_KEY_FAST_REG)
		why = ORNIC_SYN_KEY_ACCESS;
	why = why ?: fast_reg_check(qp, reg);
	why = why ?: fast_reg_load(qp, reg, mr);
	if (why)
		return why;
	mr->tag = le32toh(reg->key) & ORNIC_KEY_TAG_MASK;
	mr->access = le32toh(reg->access);
	mr->iova = le64toh(reg->iova);
	mr->length = le64toh(reg->length);
	mr->bound = true;
	return 0;
}

/* Return 0 if the region may have this window, or the syndrome. */
static uint32_t region_check(const struct qp *qp, const struct mr *region,
			     const struct ornic_wqe_bind *bind)
{
	uint64_t addr = le64toh(bind->addr), length = le64toh(bind->length);
	uint32_t access = le32toh(bind->access);

	if (!region || region->tag != (le32toh(bind->lkey) & ORNIC_KEY_TAG_MASK) ||
	    region->pd != qp->pd->number || region->kind != ORNIC_KEY_REGION)
		return ORNIC_SYN_KEY_INDEX;
	if (!(region->access & ORNIC_ACCESS_MW_BIND) || region->attr.flags & ORNIC_KEY_F_PEER ||
	    (access & NEEDS_LOCAL_WRITE && !(region->access & ORNIC_ACCESS_LOCAL_WRITE)))
		return ORNIC_SYN_KEY_ACCESS;
	if (addr < region->iova || addr - region->iova > region->length ||
	    length > region->length - (addr - region->iova))
		return ORNIC_SYN_KEY_RANGE;
	return 0;
}

static uint32_t bind_check(const struct qp *qp, const struct mr *mr,
			   const struct ornic_wqe_bind *bind)
{
	uint32_t access = le32toh(bind->access);
	uint32_t why = bindable(qp, mr);

	if (why)
		return why;
	if (!mr_is_window(mr) || access & ~BIND_ACCESS || !access_offered(qp, access) ||
	    (access & ORNIC_ACCESS_ZERO_BASED && mr->kind == ORNIC_KEY_MW1))
		return ORNIC_SYN_KEY_ACCESS;
	return !bind->length && mr->kind != ORNIC_KEY_MW1 ? ORNIC_SYN_KEY_RANGE : 0;
}

static void bind_to(struct qp *qp, struct mr *mr, struct mr *region,
		    const struct ornic_wqe_bind *bind)
{
	uint32_t access = le32toh(bind->access);

	mr->region = region;
	region->windows++;
	mr->start = le64toh(bind->addr) - region->iova;
	mr->iova = access & ORNIC_ACCESS_ZERO_BASED ? 0 : le64toh(bind->addr);
	mr->length = le64toh(bind->length);
	mr->access = access;
	mr->bound = true;
	if (mr->kind == ORNIC_KEY_MW1)
		return;
	mr->qp = qp;
	LIST_INSERT_HEAD(&qp->windows, mr, on_qp);
}

static uint32_t bind_mw(struct qp *qp, const struct ornic_wqe_bind *bind)
{
	struct mr *mr = key_of(qp, le32toh(bind->key));
	struct mr *region = key_of(qp, le32toh(bind->lkey));
	uint32_t why = bind_check(qp, mr, bind);

	if (!why && bind->length)
		why = region_check(qp, region, bind);
	if (why)
		return why;
	memop_unbind(mr);
	mr->tag = le32toh(bind->key) & ORNIC_KEY_TAG_MASK;
	if (bind->length)
		bind_to(qp, mr, region, bind);
	return 0;
}

void memop_execute(struct qp *qp, struct wqe *w)
{
	switch (w->opcode) {
	case ORNIC_WR_FAST_REG:
		w->syndrome = fast_reg(qp, w->reg);
		break;
	case ORNIC_WR_BIND_MW:
		w->syndrome = bind_mw(qp, w->bind);
		break;
	default:
		if (memop_invalidate(qp, w->rkey, &w->syndrome))
			w->syndrome = 0;
		break;
	}
	w->done = true;
	if (w->syndrome)
		w->status = ORNIC_WC_MW_BIND_ERR;
}
