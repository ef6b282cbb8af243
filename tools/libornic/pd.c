// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains. */
#include <errno.h>
#include <stdlib.h>

#include "ornic.h"

struct ibv_pd *ornic_alloc_pd(struct ibv_context *ctx)
{
	struct ornic_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct ornic_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(ctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibv_pd;
}

/* Free a protection domain or a parent domain: ibv_dealloc_pd() is used for both. */
int ornic_dealloc_pd(struct ibv_pd *ibpd)
{
	struct ornic_pd *pd = to_opd(ibpd);
	int ret;

	if (atomic_load_explicit(&pd->users, memory_order_relaxed))
		return EBUSY;
	if (pd->on) {
		ornic_free_parent_domain(pd);
		return 0;
	}
	ret = ibv_cmd_dealloc_pd(ibpd);
	if (ret)
		return ret;
	free(pd);
	return 0;
}
