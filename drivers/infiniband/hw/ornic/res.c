// SPDX-License-Identifier: GPL-2.0
/*
 * Resource tracking: driver details of an object in "rdma res show". Each call
 * queries the device. The raw form is the unchanged output of the query command.
 *
 * An object of a dead device is shown without details, and so is one that is being destroyed.
 */
#include <linux/bits.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/eq.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/srq.h>

#include "res.h"
#include "cmd.h"
#include "cq.h"
#include "ornic_ib.h"
#include "qp.h"
#include "srq.h"

struct field {
	const char *name;
	u64 value;
	bool hex;
};

static int ornic_put_field(struct sk_buff *msg, const struct field *field)
{
	if (field->hex)
		return rdma_nl_put_driver_u64_hex(msg, field->name, field->value);
	return rdma_nl_put_driver_u64(msg, field->name, field->value);
}

static int ornic_put_fields(struct sk_buff *msg, const struct field *fields, u32 count)
{
	struct nlattr *table;
	u32 i;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (ornic_put_field(msg, &fields[i])) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/* Convert the error of a query: 0 if the device is dead or no longer has the object. */
static int ornic_res_untold(struct ornic_ib_dev *dev, int err)
{
	return err == -ENOENT || ornic_device_dead(dev->odev) ? 0 : err;
}

static int ornic_put_qp(struct sk_buff *msg, u32 handle, const struct ornic_qp_query_rsp *rsp)
{
	const struct field fields[] = {
		{ "handle", handle },
		{ "device_state", rsp->attr.next_state },
		{ "syndrome", le32_to_cpu(rsp->syndrome), true },
		{ "sq_index", le32_to_cpu(rsp->sq_index) },
		{ "sq_done", le32_to_cpu(rsp->sq_done) },
		{ "rq_index", le32_to_cpu(rsp->rq_index) },
		{ "next_psn", le32_to_cpu(rsp->next_psn) },
		{ "expected_psn", le32_to_cpu(rsp->expected_psn) },
		{ "msn", le32_to_cpu(rsp->msn) },
		{ "rate_kbps", le32_to_cpu(rsp->attr.rate_kbps) },
	};

	return ornic_put_fields(msg, fields, ARRAY_SIZE(fields));
}

int ornic_ib_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	u32 handle = to_oqp(ibqp)->qpn;
	struct ornic_qp_query_rsp rsp;
	int ret;

	if (to_oqp(ibqp)->rss)
		return 0;
	ret = ornic_ib_cmd_qp_query(dev, handle, &rsp);
	return ret ? ornic_res_untold(dev, ret) : ornic_put_qp(msg, handle, &rsp);
}

int ornic_ib_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_qp_query_rsp rsp;
	int ret;

	if (to_oqp(ibqp)->rss)
		return 0;
	ret = ornic_ib_cmd_qp_query(dev, to_oqp(ibqp)->qpn, &rsp);
	return ret ? ornic_res_untold(dev, ret) :
		     nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(rsp), &rsp);
}

static int ornic_put_cq(struct sk_buff *msg, u32 cqn, const struct ornic_cq_query_rsp *rsp)
{
	u32 state = le32_to_cpu(rsp->state.state);
	const struct field fields[] = {
		{ "cqn", cqn },
		{ "eq", le32_to_cpu(rsp->attr.eq) },
		{ "entries", BIT_ULL(rsp->attr.log_entries & 31) },
		{ "producer", le32_to_cpu(rsp->state.producer) },
		{ "consumer", le32_to_cpu(rsp->state.consumer) },
		{ "armed", !!(state & ORNIC_RING_ARMED) },
		{ "error", !!(state & ORNIC_RING_ERROR) },
		{ "syndrome", le32_to_cpu(rsp->state.syndrome), true },
	};

	return ornic_put_fields(msg, fields, ARRAY_SIZE(fields));
}

int ornic_ib_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_cq_query_rsp rsp;
	int ret;

	ret = ornic_ib_cq_query(to_ocq(ibcq), &rsp);
	return ret ? ornic_res_untold(dev, ret) :
		     ornic_put_cq(msg, to_ocq(ibcq)->cqn, &rsp);
}

int ornic_ib_fill_res_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct ornic_ib_dev *dev = to_oib(ibcq->device);
	struct ornic_cq_query_rsp rsp;
	int ret;

	ret = ornic_ib_cq_query(to_ocq(ibcq), &rsp);
	return ret ? ornic_res_untold(dev, ret) :
		     nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(rsp), &rsp);
}

static int ornic_put_mr(struct sk_buff *msg, const struct ornic_key_query_rsp *rsp)
{
	const struct field fields[] = {
		{ "kind", rsp->attr.kind },
		{ "valid", le32_to_cpu(rsp->state) },
		{ "access", le32_to_cpu(rsp->attr.access), true },
		{ "page_shift", rsp->attr.pages.page_shift },
		{ "uses", le64_to_cpu(rsp->uses) },
	};

	return ornic_put_fields(msg, fields, ARRAY_SIZE(fields));
}

int ornic_ib_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct ornic_ib_dev *dev = to_oib(ibmr->device);
	struct ornic_key_query_rsp rsp;
	int ret;

	ret = ornic_ib_cmd_key_query(dev, ibmr->lkey, &rsp);
	return ret ? ornic_res_untold(dev, ret) : ornic_put_mr(msg, &rsp);
}

int ornic_ib_fill_res_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct ornic_ib_dev *dev = to_oib(ibmr->device);
	struct ornic_key_query_rsp rsp;
	int ret;

	ret = ornic_ib_cmd_key_query(dev, ibmr->lkey, &rsp);
	return ret ? ornic_res_untold(dev, ret) :
		     nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(rsp), &rsp);
}

static int ornic_put_srq(struct sk_buff *msg, u32 srqn, const struct ornic_srq_query_rsp *rsp)
{
	const struct field fields[] = {
		{ "srqn", srqn },
		{ "entries", BIT_ULL(rsp->attr.log_entries & 31) },
		{ "producer", le32_to_cpu(rsp->state.producer) },
		{ "consumer", le32_to_cpu(rsp->state.consumer) },
		{ "limit", le32_to_cpu(rsp->attr.limit) },
		{ "error", !!(le32_to_cpu(rsp->state.state) & ORNIC_RING_ERROR) },
		{ "syndrome", le32_to_cpu(rsp->state.syndrome), true },
	};

	return ornic_put_fields(msg, fields, ARRAY_SIZE(fields));
}

int ornic_ib_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	u32 srqn = to_osrq(ibsrq)->srqn;
	struct ornic_srq_query_rsp rsp;
	int ret;

	ret = ornic_ib_cmd_srq_query(dev, srqn, &rsp);
	return ret ? ornic_res_untold(dev, ret) : ornic_put_srq(msg, srqn, &rsp);
}

int ornic_ib_fill_res_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct ornic_ib_dev *dev = to_oib(ibsrq->device);
	struct ornic_srq_query_rsp rsp;
	int ret;

	ret = ornic_ib_cmd_srq_query(dev, to_osrq(ibsrq)->srqn, &rsp);
	return ret ? ornic_res_untold(dev, ret) :
		     nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(rsp), &rsp);
}
