/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider calls the functions of the newest libibverbs. For an older one the macros
 * here drop the arguments that it lacks. The Makefile of the build out of tree includes this
 * header before each source; the series for rdma-core leaves it out.
 *
 * IBVERBS_PABI_VERSION tells the versions apart. Where that number stayed the same, the
 * Makefile looks into the headers and defines ORNIC_LACKS_*. The series removes the
 * conditionals on these names and keeps their contents.
 */
#ifndef ORNIC_PROVIDER_COMPAT_H
#define ORNIC_PROVIDER_COMPAT_H

#include <config.h>
#include <infiniband/driver.h>

#ifdef ORNIC_LACKS_WR_FLUSH
#define IBV_QP_EX_WITH_FLUSH	0
#endif

#ifdef ORNIC_LACKS_DMABUF_DRIVER
#define ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, buffer)	\
	ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)
#endif

/*
 * The kernel rejects each ioctl whose driver_id is not the one of its driver, and libibverbs
 * matches by that number. RDMA_DRIVER_ORNIC comes with the kernel series, which adds it to
 * rdma/ib_user_ioctl_verbs.h and to the driver. Without the series a number of our choice
 * could become another driver's, so the out-of-tree driver and its provider have the one of
 * unknown drivers and are matched by their PCI IDs.
 */
#ifdef ORNIC_LACKS_DRIVER_ID
#define RDMA_DRIVER_ORNIC	RDMA_DRIVER_UNKNOWN
#undef VERBS_DRIVER_ID
#define VERBS_DRIVER_ID(id)	VERBS_PCI_MATCH(ORNIC_PCI_VENDOR_ID, ORNIC_PCI_DEVICE_ID, NULL)
#endif

#if IBVERBS_PABI_VERSION < 57
#define ibv_cmd_get_context(ctx, cmd, cmd_size, fds, resp, resp_size)		\
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#endif

#if IBVERBS_PABI_VERSION < 59
#define ibv_cmd_create_cq_ex(ctx, attr, prov, cq, cmd, cmd_size, resp, resp_size, flags)	\
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size, flags)
#endif

#if IBVERBS_PABI_VERSION < 65
#define ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size, buffer)	\
	ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size)
#endif

#endif
