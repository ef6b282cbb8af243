// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows of processes. The driver only creates the key; the provider binds it by work
 * requests. A protection domain counts its windows: while it has none, the device must not reject
 * the destroy command of a region as busy (mr.c).
 */
#include <linux/rwsem.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/mr.h>

#include "mw.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "pd.h"
#include "ucontext.h"

static void ornic_count_windows(struct ornic_ib_pd *pd, int by)
{
	down_write(&pd->windows_lock);
	pd->windows += by;
	up_write(&pd->windows_lock);
}

int ornic_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibmw->device);
	struct ornic_key_create_cmd cmd = {
		.pd = cpu_to_le32(to_opd(ibmw->pd)->pdn),
		.owner = cpu_to_le32(ornic_ib_caller_page(udata)),
	};
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (ibmw->type == IB_MW_TYPE_1 && ornic_has(dev->odev, ORNIC_FEATURE(MW1)))
		cmd.kind = ORNIC_KEY_MW1;
	else if (ibmw->type == IB_MW_TYPE_2 && ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		cmd.kind = ORNIC_KEY_MW2B;
	else
		return -EINVAL;
	ornic_count_windows(to_opd(ibmw->pd), 1);
	ret = ornic_ib_cmd_key_create(dev, &cmd, &ibmw->rkey);
	if (ret)
		ornic_count_windows(to_opd(ibmw->pd), -1);
	return ret;
}

int ornic_ib_dealloc_mw(struct ib_mw *ibmw)
{
	ornic_ib_cmd_key_destroy(to_oib(ibmw->device), ibmw->rkey);
	ornic_count_windows(to_opd(ibmw->pd), -1);
	return 0;
}
