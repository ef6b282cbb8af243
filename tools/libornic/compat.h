/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Differences between the rdma-core versions that the provider builds against,
 * told apart by IBVERBS_PABI_VERSION; no other file mentions it. Where that number
 * stayed the same, the Makefile looks and says what is missing: ORNIC_LACKS_*.
 */
#ifndef ORNIC_PROVIDER_COMPAT_H
#define ORNIC_PROVIDER_COMPAT_H

#include <config.h>
#include <infiniband/driver.h>

#ifndef ORNIC_LACKS_WR_FLUSH
#define ORNIC_HAVE_FLUSH
#define ORNIC_SEND_OPS_FLUSH	IBV_QP_EX_WITH_FLUSH
#else
#define ORNIC_SEND_OPS_FLUSH	0
#endif

#ifndef ORNIC_LACKS_PORT_SPEED
#define ORNIC_PORT_SPEED_OPS	.query_port_speed = ibv_cmd_query_port_speed,
#else
#define ORNIC_PORT_SPEED_OPS
#endif

#ifndef ORNIC_LACKS_DMABUF_DRIVER
#define ornic_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)	\
	ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, NULL)
#else
#define ornic_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)	\
	ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)
#endif

/*
 * The kernel rejects each ioctl whose driver_id is not the one of its driver, and libibverbs
 * matches by that number. RDMA_DRIVER_ORNIC comes with the kernel series, which adds it to
 * rdma/ib_user_ioctl_verbs.h and to the driver. Without the series a number of our choice
 * could become another driver's, so the out-of-tree driver and its provider have the one of
 * unknown drivers and are matched by their PCI IDs.
 */
#ifndef ORNIC_LACKS_DRIVER_ID
#define ORNIC_DRIVER_ID		RDMA_DRIVER_ORNIC
#define ORNIC_MATCH		VERBS_DRIVER_ID(RDMA_DRIVER_ORNIC)
#else
#define ORNIC_DRIVER_ID		RDMA_DRIVER_UNKNOWN
#define ORNIC_MATCH		VERBS_PCI_MATCH(ORNIC_PCI_VENDOR_ID, ORNIC_PCI_DEVICE_ID, NULL)
#endif

#if IBVERBS_PABI_VERSION >= 57
#define ornic_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)		\
	ibv_cmd_get_context(ctx, cmd, cmd_size, NULL, resp, resp_size)
#else
#define ornic_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)		\
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#endif

#if IBVERBS_PABI_VERSION >= 59
#define ornic_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_create_cq_ex(ctx, attr, NULL, cq, cmd, cmd_size, resp, resp_size, 0)
#else
#define ornic_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size, 0)
#endif

#if IBVERBS_PABI_VERSION >= 65
#define ornic_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size, NULL)
#else
#define ornic_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size)
#endif

#endif
