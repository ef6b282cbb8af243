// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Thread domains and parent domains. A parent domain is a protection domain with options
 * for the queues that are created in it. The kernel knows neither kind.
 *
 * By a thread domain the application promises that one thread at a time uses the queues,
 * so they have no locks. A custom allocator provides the memory of the queues (buf.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "ornic.h"

#define ORNIC_PARENT_MASK	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |	\
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct ibv_td *ornic_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct ornic_td *td;

	if (ornic_unsupported(to_octx(ctx), "comp_mask of a thread domain", attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ctx;
	return &td->ibv_td;
}

int ornic_dealloc_td(struct ibv_td *ibtd)
{
	struct ornic_td *td = to_otd(ibtd);

	if (atomic_load_explicit(&td->users, memory_order_relaxed))
		return EBUSY;
	free(td);
	return 0;
}

/* Check the domains and functions of @attr. Return the error as text, or NULL. */
static const char *ornic_parent_wrong(struct ibv_context *ctx,
				      const struct ibv_parent_domain_init_attr *attr)
{
	bool custom = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;

	if (!attr->pd)
		return "needs a protection domain";
	if (to_opd(attr->pd)->on)
		return "cannot have a parent domain as its protection domain";
	if (attr->pd->context != ctx || (attr->td && attr->td->context != ctx))
		return "has domains of another context";
	if (custom && (!attr->alloc || !attr->free))
		return "needs both functions of a custom allocator";
	return NULL;
}

static int ornic_parent_check(struct ibv_context *ctx,
			      const struct ibv_parent_domain_init_attr *attr)
{
	const char *wrong;

	if (ornic_unsupported(to_octx(ctx), "comp_mask of a parent domain", attr->comp_mask,
			      ORNIC_PARENT_MASK))
		return EOPNOTSUPP;
	wrong = ornic_parent_wrong(ctx, attr);
	if (!wrong)
		return 0;
	verbs_err(verbs_get_ctx(ctx), "a parent domain %s\n", wrong);
	return EINVAL;
}

struct ibv_pd *ornic_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct ornic_pd *pd;
	int ret;

	ret = ornic_parent_check(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ibv_initialize_parent_domain(&pd->ibv_pd, attr->pd);
	pd->on = to_opd(attr->pd);
	atomic_fetch_add_explicit(&pd->on->users, 1, memory_order_relaxed);
	if (attr->td) {
		pd->td = to_otd(attr->td);
		atomic_fetch_add_explicit(&pd->td->users, 1, memory_order_relaxed);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->ibv_pd;
}

/* Free a parent domain; the caller has checked that it has no users. */
void ornic_free_parent_domain(struct ornic_pd *pd)
{
	if (pd->td)
		atomic_fetch_sub_explicit(&pd->td->users, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&pd->on->users, 1, memory_order_relaxed);
	free(pd);
}
