// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts and objects that another process imports: ibv_import_device() and
 * ibv_import_pd(); ibv_import_dm() is in dm.c.
 *
 * A process with the context's file descriptor has all rights of the context. Its
 * provider lacks the responses to the create verbs of the objects; these methods
 * return them again.
 */
#include <rdma/uverbs_ioctl.h>

#include <rdma/ornic-abi.h>
#include <rdma/ornic-ioctl.h>

#include "ucontext.h"
#include "pd.h"

#define UVERBS_MODULE_NAME ornic_ib
#include <rdma/uverbs_named_ioctl.h>

int ornic_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs)
{
	struct ornic_uresp_alloc_ucontext resp = {};

	ornic_ib_describe_ucontext(to_oucontext(ibucontext), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, ORNIC_IB_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

static int UVERBS_HANDLER(ORNIC_IB_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *pd = uverbs_attr_get_obj(attrs, ORNIC_IB_ATTR_PD_QUERY_HANDLE);
	struct ornic_uresp_alloc_pd resp = { .pdn = to_opd(pd)->pdn };

	return uverbs_copy_to_struct_or_zero(attrs, ORNIC_IB_ATTR_PD_QUERY_RESP, &resp,
					     sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(ornic_ib_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT
			     (ORNIC_IB_ATTR_QUERY_CONTEXT_RESP,
			      UVERBS_ATTR_STRUCT(struct ornic_uresp_alloc_ucontext, max_rq_stride),
			      UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(ORNIC_IB_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(ORNIC_IB_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(ORNIC_IB_ATTR_PD_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct ornic_uresp_alloc_pd,
								   reserved),
						UA_MANDATORY));

ADD_UVERBS_METHODS(ornic_ib_pd, UVERBS_OBJECT_PD, &UVERBS_METHOD(ORNIC_IB_METHOD_PD_QUERY));

const struct uapi_definition ornic_ib_import_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &ornic_ib_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &ornic_ib_pd),
	{}
};
