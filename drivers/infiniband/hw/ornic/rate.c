// SPDX-License-Identifier: GPL-2.0
/*
 * Rate limits of queue pairs (ORN-QP-42, ORN-QP-44). The static rate of a path is a field of
 * the address vector and is not handled here.
 */
#include <linux/bits.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <rdma/ornic-abi.h>

#include "rate.h"
#include "ornic_ib.h"
#include "qp.h"

/**
 * ornic_ib_rate_types() - return the queue pair types that may have a rate limit
 * @dev: device
 *
 * Kernels differ in the types for which ib_core allows a rate limit: raw packet in 6.12, all
 * in 7.2. ib_modify_qp_is_ok() tells.
 *
 * Return: a bit per &enum ib_qp_type.
 */
u32 ornic_ib_rate_types(const struct ornic_ib_dev *dev)
{
	static const struct {
		enum ib_qp_type verbs;
		enum ornic_qp_type device;
	} types[] = {
		{ IB_QPT_RC, ORNIC_QPT_RC },
		{ IB_QPT_RAW_PACKET, ORNIC_QPT_RAW },
	};
	u32 offered = le32_to_cpu(dev->odev->id.rate_qp_types);
	u32 qpts = 0, i;

	if (!ornic_has(dev->odev, ORNIC_FEATURE(RATE_LIMIT)))
		return 0;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		if ((offered & BIT(types[i].device)) &&
		    ib_modify_qp_is_ok(IB_QPS_RTS, IB_QPS_RTS, types[i].verbs, IB_QP_RATE_LIMIT))
			qpts |= BIT(types[i].verbs);
	return qpts;
}

/* Read the burst attributes from the provider's data, since struct ib_qp_attr has none. */
static int ornic_read_burst(struct ib_udata *udata, struct ornic_ureq_modify_qp *req)
{
	int ret;

	memset(req, 0, sizeof(*req));
	if (!udata || !udata->inlen)
		return 0;
	ret = ib_copy_validate_udata_in(udata, *req, reserved);
	if (ret)
		return ret;
	return req->reserved ? -EOPNOTSUPP : 0;
}

/**
 * ornic_ib_rate_fill() - fill the rate limit into a modify command
 * @dev: device
 * @qp: queue pair
 * @attr: attributes; rate_limit is in kbit/s
 * @mask: enum ib_qp_attr_mask, the attributes that are set
 * @udata: data of the provider, NULL for the kernel
 * @cmd: command to fill
 *
 * Return: 0 or a negative errno.
 */
int ornic_ib_rate_fill(const struct ornic_ib_dev *dev, const struct ornic_ib_qp *qp,
		       const struct ib_qp_attr *attr, int mask, struct ib_udata *udata,
		       struct ornic_qp_modify_cmd *cmd)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	u32 kbps = mask & IB_QP_RATE_LIMIT ? attr->rate_limit : 0;
	struct ornic_ureq_modify_qp req;
	int ret;

	ret = ornic_read_burst(udata, &req);
	if (ret)
		return ret;
	if (!kbps && (req.rate_burst || req.rate_packet))
		return -EINVAL;
	if (!(mask & IB_QP_RATE_LIMIT))
		return 0;
	if (!(ornic_ib_rate_types(dev) & BIT(qp->ibqp.qp_type)))
		return -EOPNOTSUPP;
	if (kbps && (kbps < le32_to_cpu(id->rate_min_kbps) ||
		     kbps > le32_to_cpu(id->rate_max_kbps)))
		return -EINVAL;
	cmd->rate_kbps = cpu_to_le32(kbps);
	cmd->rate_burst = cpu_to_le32(req.rate_burst);
	cmd->rate_packet = cpu_to_le16(req.rate_packet);
	return 0;
}
