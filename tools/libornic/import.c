// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Import protection domains and memory regions of another process, which passed the file
 * descriptor of its context and the handles. ornic.c imports the context, dm.c device
 * memory.
 *
 * Queues cannot be imported: they lie in the memory of the process that created them.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ornic-ioctl.h>

#include "ornic.h"

/* Read the limits of an imported context. Return 0 or a positive errno. */
int ornic_query_context(struct ornic_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);

	fill_attr_out_ptr(cmd, ORNIC_IB_ATTR_QUERY_CONTEXT_RESP, &ctx->limits);
	return ibv_cmd_query_context(&ctx->ibv_ctx.context, cmd);
}

/* The query checks that the handle is that of a protection domain; its answer is not needed. */
struct ibv_pd *ornic_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, ORNIC_IB_METHOD_PD_QUERY, 2);
	struct ornic_uresp_alloc_pd resp = {};
	struct ornic_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	fill_attr_in_obj(cmd, ORNIC_IB_ATTR_PD_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, ORNIC_IB_ATTR_PD_QUERY_RESP, &resp);
	ret = execute_ioctl(ctx, cmd);
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	pd->ibv_pd.context = ctx;
	pd->ibv_pd.handle = handle;
	return &pd->ibv_pd;
}

void ornic_unimport_pd(struct ibv_pd *pd)
{
	free(to_opd(pd));
}

struct ibv_mr *ornic_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_query_mr(pd, vmr, handle);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void ornic_unimport_mr(struct ibv_mr *mr)
{
	free(verbs_get_mr(mr));
}
