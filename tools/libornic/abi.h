/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Commands with a payload of ornic: the uverbs command, followed by a structure of
 * rdma/ornic-abi.h.
 */
#ifndef ORNIC_PROVIDER_ABI_H
#define ORNIC_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/ornic-abi.h>
#include <kernel-abi/ornic-abi.h>

DECLARE_DRV_CMD(ornic_alloc_ucontext, IB_USER_VERBS_CMD_GET_CONTEXT,
		ornic_ureq_alloc_ucontext, ornic_uresp_alloc_ucontext);
DECLARE_DRV_CMD(ornic_query_device, IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		empty, ornic_uresp_query_device);
DECLARE_DRV_CMD(ornic_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, ornic_uresp_alloc_pd);
DECLARE_DRV_CMD(ornic_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, ornic_uresp_create_ah);
DECLARE_DRV_CMD(ornic_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		ornic_ureq_create_cq, ornic_uresp_create_cq);
DECLARE_DRV_CMD(ornic_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		ornic_ureq_create_srq, ornic_uresp_create_srq);
DECLARE_DRV_CMD(ornic_create_xsrq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		ornic_ureq_create_srq, ornic_uresp_create_srq);
DECLARE_DRV_CMD(ornic_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		ornic_ureq_modify_srq, empty);
DECLARE_DRV_CMD(ornic_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		ornic_ureq_resize_cq, ornic_uresp_resize_cq);
DECLARE_DRV_CMD(ornic_create_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		ornic_ureq_create_qp, ornic_uresp_create_qp);
DECLARE_DRV_CMD(ornic_modify_qp, IB_USER_VERBS_EX_CMD_MODIFY_QP,
		ornic_ureq_modify_qp, empty);
DECLARE_DRV_CMD(ornic_create_rss, IB_USER_VERBS_EX_CMD_CREATE_QP,
		ornic_ureq_create_rss, ornic_uresp_create_qp);
DECLARE_DRV_CMD(ornic_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		ornic_ureq_create_qp, ornic_uresp_create_qp);

#endif
