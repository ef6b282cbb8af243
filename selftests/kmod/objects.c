// SPDX-License-Identifier: GPL-2.0
/*
 * Create one object of each kind that kernel consumers use, without a connection. For tests
 * that make allocations fail.
 */
#include <linux/err.h>
#include <rdma/ib_cache.h>
#include <rdma/mr_pool.h>

#include "ktest.h"

#define MRS	3

static struct {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_cq *direct_cq;
	struct ib_srq *srq;
	struct ib_qp *rc;
	struct ib_qp *ud;
	struct ib_ah *ah;
} it;

static int make_ah(void)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	const struct ib_gid_attr *gid = rdma_get_gid_attr(it.ibdev, 1, 0);

	if (IS_ERR(gid))
		return PTR_ERR(gid);
	rdma_ah_set_port_num(&attr, 1);
	rdma_move_grh_sgid_attr(&attr, (union ib_gid *)&gid->gid, 0, 64, 0, gid);
	it.ah = rdma_create_ah(it.pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr);
	return PTR_ERR_OR_ZERO(it.ah);
}

static int make_srq(void)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = 1000, .max_sge = 2 }, .srq_type = IB_SRQT_BASIC,
	};

	it.srq = ib_create_srq(it.pd, &attr);
	return PTR_ERR_OR_ZERO(it.srq);
}

/* max_rdma_ctxs adds room for work requests of rdma_rw, and its registrations */
static struct ib_qp *make_qp(enum ib_qp_type type, struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.qp_type = type, .send_cq = it.send_cq, .recv_cq = it.recv_cq, .srq = srq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 600, .max_recv_wr = 600,
			.max_send_sge = 2, .max_recv_sge = 1,
			.max_rdma_ctxs = type == IB_QPT_RC ? 4 : 0,
		},
		.port_num = 1,
	};

	return ib_create_qp(it.pd, &attr);
}

/* In INIT the queue pair can be drained. */
static int make_drainable(enum ib_qp_type type, struct ib_srq *srq, struct ib_qp **made)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ib_qp *qp = make_qp(type, srq);
	int ret;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   (type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
	if (ret) {
		ib_destroy_qp(qp);
		return ret;
	}
	*made = qp;
	return 0;
}

static int make_all(void)
{
	u32 pages = it.ibdev->attrs.max_fast_reg_page_list_len;
	int ret;

	it.pd = ib_alloc_pd(it.ibdev, 0);
	if (IS_ERR(it.pd))
		return PTR_ERR(it.pd);
	it.send_cq = ib_alloc_cq(it.ibdev, NULL, 2000, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(it.send_cq))
		return PTR_ERR(it.send_cq);
	it.recv_cq = ib_alloc_cq(it.ibdev, NULL, 100, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(it.recv_cq))
		return PTR_ERR(it.recv_cq);
	it.direct_cq = ib_alloc_cq(it.ibdev, NULL, 50, 0, IB_POLL_DIRECT);
	if (IS_ERR(it.direct_cq))
		return PTR_ERR(it.direct_cq);
	ret = make_srq();
	if (ret)
		return ret;
	ret = make_drainable(IB_QPT_RC, it.srq, &it.rc);
	if (ret)
		return ret;
	ret = make_drainable(IB_QPT_UD, NULL, &it.ud);
	if (ret)
		return ret;
	ret = ib_mr_pool_init(it.rc, &it.rc->rdma_mrs, MRS, IB_MR_TYPE_MEM_REG, pages, 0);
	return ret ? ret : make_ah();
}

void ktest_objects_destroy(void)
{
	if (!IS_ERR_OR_NULL(it.ah))
		rdma_destroy_ah(it.ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (it.ud) {
		ib_drain_rq(it.ud);
		ib_destroy_qp(it.ud);
	}
	if (it.rc) {
		ib_drain_qp(it.rc);
		ib_mr_pool_destroy(it.rc, &it.rc->rdma_mrs);
		ib_destroy_qp(it.rc);
	}
	if (!IS_ERR_OR_NULL(it.srq))
		ib_destroy_srq(it.srq);
	if (!IS_ERR_OR_NULL(it.direct_cq))
		ib_free_cq(it.direct_cq);
	if (!IS_ERR_OR_NULL(it.recv_cq))
		ib_free_cq(it.recv_cq);
	if (!IS_ERR_OR_NULL(it.send_cq))
		ib_free_cq(it.send_cq);
	if (!IS_ERR_OR_NULL(it.pd))
		ib_dealloc_pd(it.pd);
	ib_device_put(it.ibdev);
}

/**
 * ktest_objects_create() - create all objects, or none after an error
 * @name: name of the RDMA device
 */
int ktest_objects_create(const char *name)
{
	int ret;

	it.ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!it.ibdev)
		return -ENODEV;
	ret = make_all();
	if (ret)
		ktest_objects_destroy();
	return ret;
}
