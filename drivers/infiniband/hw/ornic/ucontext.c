// SPDX-License-Identifier: GPL-2.0
/*
 * A process: its doorbell page and the limits its provider works with.
 *
 * The page is also what names the process to the device: objects carry its
 * index as owner.
 */
#include "ornic_ib.h"

/**
 * ornic_ib_udata_in() - read what the provider sent
 * @udata: of the verb
 * @req: where it goes
 * @size: bytes of the structure
 *
 * A newer provider may send a longer structure if the rest of it is zero.
 */
int ornic_ib_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(req, udata, size);
}

/**
 * ornic_ib_udata_out() - answer the provider
 * @udata: of the verb
 * @resp: answer
 * @size: its bytes; as many of them as the provider has room for are copied
 */
int ornic_ib_udata_out(struct ib_udata *udata, void *resp, size_t size)
{
	return ib_copy_to_udata(udata, resp, min(size, udata->outlen));
}

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
 * ornic_ib_describe_ucontext() - what a provider must know to work with a process
 * @uctx: the process
 * @resp: answer to fill in, zeroed
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
	int ret;

	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;

	ret = ornic_ib_db_map(uctx);
	if (ret)
		return ret;

	ornic_ib_describe_ucontext(uctx, &resp);
	ret = ornic_ib_udata_out(udata, &resp, sizeof(resp));
	if (ret)
		rdma_user_mmap_entry_remove(uctx->db_entry);
	return ret;
}

void ornic_ib_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	rdma_user_mmap_entry_remove(to_oucontext(ibucontext)->db_entry);
}

/*
 * Nothing to do: ib_core replaces the mappings of the doorbell page. Having the
 * operation lets the device go while processes still have it open.
 */
void ornic_ib_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}
