// SPDX-License-Identifier: GPL-2.0
/*
 * User contexts: the doorbell page of a process and the limits for its provider.
 *
 * The index of the page also identifies the process to the device: it is the owner
 * in create commands.
 */
#include <linux/bits.h>
#include <rdma/uverbs_ioctl.h>

#include <rdma/ornic-abi.h>

#include "ucontext.h"
#include "mmap.h"
#include "ornic_ib.h"

static void ornic_fill_limits(const struct ornic_ib_dev *dev,
			      struct ornic_uresp_alloc_ucontext *resp)
{
	const struct ornic_ib_limits *lim = &dev->lim;

	resp->max_inline = lim->max_inline;
	resp->max_send_wr = BIT(lim->log_sq);
	resp->max_recv_wr = BIT(lim->log_rq);
	resp->max_cqe = lim->max_cqe;
	resp->max_send_sge = lim->send_sge;
	resp->max_recv_sge = lim->recv_sge;
	resp->max_sq_stride = lim->sq_stride;
	resp->max_rq_stride = lim->rq_stride;
	if (dev->data_in_order)
		resp->flags |= ORNIC_ABI_F_DATA_IN_ORDER;
	if (!ornic_has(dev->odev, ORNIC_FEATURE(SRQ)))
		return;
	resp->log_max_srq = lim->log_srq;
	resp->max_srq_sge = lim->srq_sge;
}

/**
 * ornic_ib_describe_ucontext() - fill in the limits and the doorbell page of a context
 * @uctx: context of the process
 * @resp: response to fill, zeroed
 */
void ornic_ib_describe_ucontext(struct ornic_ib_ucontext *uctx,
				struct ornic_uresp_alloc_ucontext *resp)
{
	ornic_fill_limits(to_oib(uctx->ibucontext.device), resp);
	ornic_ib_db_describe(uctx, resp);
}

int ornic_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct ornic_ib_ucontext *uctx = to_oucontext(ibucontext);
	struct ornic_uresp_alloc_ucontext resp = {};
	struct ornic_ureq_alloc_ucontext req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (req.reserved)
		return -EOPNOTSUPP;
	uctx->caps = req.supported_caps;
	ret = ornic_ib_db_map(uctx);
	if (ret)
		return ret;

	ornic_ib_describe_ucontext(uctx, &resp);
	ret = ib_respond_udata(udata, resp);
	if (ret)
		rdma_user_mmap_entry_remove(uctx->db_entry);
	return ret;
}

void ornic_ib_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	rdma_user_mmap_entry_remove(to_oucontext(ibucontext)->db_entry);
}

/*
 * Empty, because uverbs itself replaces the mappings of the doorbell page. Without
 * this operation, unbinding the driver would wait until all processes have closed
 * the device (ib_uverbs_remove_one(), 6.12 and 7.2).
 */
void ornic_ib_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}
