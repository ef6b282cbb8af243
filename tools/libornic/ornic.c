// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Provider of ornic devices: match table, contexts, operations.
 *
 * The rings of a CQ or QP lie in memory of the process (layout in
 * rdma/ornic-abi.h). Posting writes an entry and its index (post_send.c,
 * qp_ex.c, post_recv.c) and rings the doorbell only if the device requests it
 * (ring.h). Polling reads entries that the device wrote (poll_cq.c). Only
 * control verbs enter the kernel.
 */
#include <errno.h>
#include <stdlib.h>

#include <ornic/regs.h>

#include "ornic.h"

static void ornic_free_context(struct ibv_context *ibctx);

static const struct verbs_context_ops ornic_ctx_ops = {
	.alloc_dm = ornic_alloc_dm,
	.alloc_mw = ornic_alloc_mw,
	.alloc_parent_domain = ornic_alloc_parent_domain,
	.alloc_pd = ornic_alloc_pd,
	.alloc_td = ornic_alloc_td,
	.attach_mcast = ornic_attach_mcast,
	.bind_mw = ornic_bind_mw,
	.close_xrcd = ornic_close_xrcd,
	.cq_event = ornic_cq_event,
	.create_ah = ornic_create_ah,
	.create_cq = ornic_create_cq,
	.create_cq_ex = ornic_create_cq_ex,
	.create_flow = ornic_create_flow,
	.create_qp = ornic_create_qp,
	.create_qp_ex = ornic_create_qp_ex,
	.create_rwq_ind_table = ornic_create_rwq_ind_table,
	.create_srq = ornic_create_srq,
	.create_srq_ex = ornic_create_srq_ex,
	.create_wq = ornic_create_wq,
	.dealloc_mw = ornic_dealloc_mw,
	.dealloc_pd = ornic_dealloc_pd,
	.dealloc_td = ornic_dealloc_td,
	.dereg_mr = ornic_dereg_mr,
	.destroy_ah = ornic_destroy_ah,
	.destroy_cq = ornic_destroy_cq,
	.destroy_flow = ornic_destroy_flow,
	.destroy_qp = ornic_destroy_qp,
	.destroy_rwq_ind_table = ornic_destroy_rwq_ind_table,
	.destroy_srq = ornic_destroy_srq,
	.destroy_wq = ornic_destroy_wq,
	.detach_mcast = ornic_detach_mcast,
	.free_context = ornic_free_context,
	.free_dm = ornic_free_dm,
	.get_srq_num = ornic_get_srq_num,
	.import_dm = ornic_import_dm,
	.import_mr = ornic_import_mr,
	.import_pd = ornic_import_pd,
	.modify_cq = ornic_modify_cq,
	.modify_qp = ornic_modify_qp,
	.modify_qp_rate_limit = ornic_modify_qp_rate_limit,
	.modify_wq = ornic_modify_wq,
	.modify_srq = ornic_modify_srq,
	.open_qp = ornic_open_qp,
	.open_xrcd = ornic_open_xrcd,
	.poll_cq = ornic_poll_cq,
	.post_recv = ornic_post_recv,
	.post_send = ornic_post_send,
	.post_srq_recv = ornic_post_srq_recv,
	.query_device_ex = ornic_query_device_ex,
	.query_port = ornic_query_port,
#ifndef ORNIC_LACKS_PORT_SPEED
	.query_port_speed = ibv_cmd_query_port_speed,
#endif
	.query_qp = ornic_query_qp,
	.query_qp_data_in_order = ornic_query_qp_data_in_order,
	.query_rt_values = ornic_query_rt_values,
	.query_srq = ornic_query_srq,
	.reg_dm_mr = ornic_reg_dm_mr,
	.reg_dmabuf_mr = ornic_reg_dmabuf_mr,
	.reg_mr = ornic_reg_mr,
	.req_notify_cq = ornic_arm_cq,
	.rereg_mr = ornic_rereg_mr,
	.resize_cq = ornic_resize_cq,
	.unimport_dm = ornic_unimport_dm,
	.unimport_mr = ornic_unimport_mr,
	.unimport_pd = ornic_unimport_pd,
};

static const struct verbs_match_ent ornic_match_table[] = {
	VERBS_DRIVER_ID(RDMA_DRIVER_ORNIC),
	{},
};

static int ornic_get_context(struct ornic_context *ctx)
{
	struct ornic_alloc_ucontext_resp resp = {};
	struct ornic_alloc_ucontext cmd = { .supported_caps = ORNIC_UCONTEXT_CAP_DM_COMBINE };
	int ret;

	ret = ibv_cmd_get_context(&ctx->ibv_ctx, &cmd.ibv_cmd, sizeof(cmd), NULL, &resp.ibv_resp,
				  sizeof(resp));
	if (!ret)
		ctx->limits = resp.drv_payload;
	return ret;
}

/*
 * Create the context of this process. @get creates or finds the context of the kernel and
 * reads the limits. Return NULL with errno on failure.
 */
static struct verbs_context *ornic_context_new(struct ibv_device *ibdev, int cmd_fd,
					       int (*get)(struct ornic_context *ctx))
{
	struct ornic_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_ORNIC);
	if (!ctx)
		return NULL;
	ret = get(ctx);
	if (!ret)
		ret = ornic_db_map(ctx, cmd_fd);
	if (ret) {
		verbs_uninit_context(&ctx->ibv_ctx);
		free(ctx);
		errno = ret;
		return NULL;
	}
	verbs_set_ops(&ctx->ibv_ctx, &ornic_ctx_ops);
	return &ctx->ibv_ctx;
}

static struct verbs_context *ornic_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						 void *private_data __attribute__((unused)))
{
	return ornic_context_new(ibdev, cmd_fd, ornic_get_context);
}

static struct verbs_context *ornic_import_context(struct ibv_device *ibdev, int cmd_fd)
{
	return ornic_context_new(ibdev, cmd_fd, ornic_query_context);
}

static void ornic_free_context(struct ibv_context *ibctx)
{
	struct ornic_context *ctx = to_octx(ibctx);

	ornic_qp_table_free(&ctx->xrc_srqs);
	ornic_qp_table_free(&ctx->recvs);
	ornic_qp_table_free(&ctx->sends);
	ornic_db_unmap(ctx);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

static struct verbs_device *ornic_alloc_device(struct verbs_sysfs_dev *sysfs
						__attribute__((unused)))
{
	return calloc(1, sizeof(struct verbs_device));
}

static void ornic_uninit_device(struct verbs_device *dev)
{
	free(dev);
}

const struct verbs_device_ops ornic_dev_ops = {
	.name = "ornic",
	.match_min_abi_version = ORNIC_UVERBS_ABI_VERSION,
	.match_max_abi_version = ORNIC_UVERBS_ABI_VERSION,
	.match_table = ornic_match_table,
	.alloc_device = ornic_alloc_device,
	.uninit_device = ornic_uninit_device,
	.alloc_context = ornic_alloc_context,
	.import_context = ornic_import_context,
};

PROVIDER_DRIVER(ornic, ornic_dev_ops);
