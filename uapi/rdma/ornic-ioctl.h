/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * ioctl attributes and methods of ornic_ib beyond those of all drivers. A process that
 * imports the context of another process uses them.
 */
#ifndef ORNIC_ABI_IOCTL_H
#define ORNIC_ABI_IOCTL_H

#include <rdma/ib_user_ioctl_cmds.h>

/* UVERBS_METHOD_QUERY_CONTEXT */
enum ornic_ib_query_context_attrs {
	/* struct ornic_uresp_alloc_ucontext, as when the context was created */
	ORNIC_IB_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/* UVERBS_OBJECT_PD */
enum ornic_ib_pd_methods {
	ORNIC_IB_METHOD_PD_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum ornic_ib_pd_query_attrs {
	ORNIC_IB_ATTR_PD_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	ORNIC_IB_ATTR_PD_QUERY_RESP,	/* struct ornic_uresp_alloc_pd */
};

/* UVERBS_OBJECT_DM */
enum ornic_ib_dm_methods {
	ORNIC_IB_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum ornic_ib_dm_query_attrs {
	ORNIC_IB_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	ORNIC_IB_ATTR_DM_QUERY_RESP,	/* struct ornic_uresp_query_dm */
};

#endif
