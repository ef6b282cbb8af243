// SPDX-License-Identifier: GPL-2.0
/* XRC domains. */
#include <rdma/uverbs_ioctl.h>

#include "xrcd.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "ucontext.h"

int ornic_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct ornic_ib_xrcd *xrcd = container_of(ibxrcd, struct ornic_ib_xrcd, ibxrcd);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	return ornic_ib_cmd_xrcd_create(to_oib(ibxrcd->device), ornic_ib_caller_page(udata),
					&xrcd->xrcdn);
}

int ornic_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct ornic_ib_xrcd *xrcd = container_of(ibxrcd, struct ornic_ib_xrcd, ibxrcd);

	ornic_ib_cmd_xrcd_destroy(to_oib(ibxrcd->device), xrcd->xrcdn);
	return 0;
}
