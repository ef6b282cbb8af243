// SPDX-License-Identifier: GPL-2.0
/* Protection domains. */
#include <linux/rwsem.h>
#include <rdma/uverbs_ioctl.h>

#include <rdma/ornic-abi.h>

#include "pd.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "ucontext.h"

int ornic_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_uresp_alloc_pd resp = {};
	struct ornic_ib_pd *pd = to_opd(ibpd);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	init_rwsem(&pd->windows_lock);
	ret = ornic_ib_cmd_pd_create(dev, ornic_ib_caller_page(udata), &pd->pdn);
	if (ret || !udata)
		return ret;

	resp.pdn = pd->pdn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		ornic_ib_cmd_pd_destroy(dev, pd->pdn);
	return ret;
}

int ornic_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	ornic_ib_cmd_pd_destroy(to_oib(ibpd->device), to_opd(ibpd)->pdn);
	return 0;
}
