// SPDX-License-Identifier: GPL-2.0
/*
 * The test cases. Each frees all that it allocates and prints the condition that failed.
 */
#include <linux/slab.h>

#include "ktest.h"

bool ktest_failed(const char *where, int line, const char *what)
{
	pr_info("ornic_ktest: # %s:%d: not true: %s\n", where, line, what);
	return true;
}

/* Memory of a client, registered for remote access by the server */
struct region {
	struct ktest_conn *conn;
	struct sg_table mem;
	int mapped;
	u32 len;
	struct ib_mr *mr;
	struct ib_reg_wr reg;
	struct ib_cqe cqe;
};

static void region_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct region *r = container_of(wc->wr_cqe, struct region, cqe);

	r->conn->broken = true;		/* unsignaled, so every completion is an error */
	complete_all(&r->conn->reply);
}

static void region_free(struct region *r)
{
	if (r->mapped)
		ib_dma_unmap_sg(r->conn->id->device, r->mem.sgl, r->mem.orig_nents,
				DMA_BIDIRECTIONAL);
	if (!IS_ERR_OR_NULL(r->mr))
		ib_dereg_mr(r->mr);
	if (r->mem.sgl)
		ktest_mem_free(&r->mem);
	memset(r, 0, sizeof(*r));
}

static int region_alloc(struct region *r, struct ktest_conn *conn, u32 offset, u32 len)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->conn = conn;
	r->len = len;
	r->cqe.done = region_done;
	ret = ktest_mem_alloc(&r->mem, offset, len);
	if (ret) {
		r->mem.sgl = NULL;
		return ret;
	}
	r->mr = ib_alloc_mr(conn->pd, IB_MR_TYPE_MEM_REG, r->mem.orig_nents);
	if (IS_ERR(r->mr))
		return PTR_ERR(r->mr);
	r->mapped = ib_dma_map_sg(conn->id->device, r->mem.sgl, r->mem.orig_nents,
				  DMA_BIDIRECTIONAL);
	return r->mapped ? 0 : -ENOMEM;
}

/* Prepare the work request that registers the mapped memory under the region's next key. */
static struct ib_send_wr *region_wr(struct region *r)
{
	ib_update_fast_reg_key(r->mr, ib_inc_rkey(r->mr->rkey));
	memset(&r->reg, 0, sizeof(r->reg));
	r->reg.wr.opcode = IB_WR_REG_MR;
	r->reg.wr.wr_cqe = &r->cqe;
	r->reg.mr = r->mr;
	r->reg.key = r->mr->rkey;
	r->reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	return &r->reg.wr;
}

/* Map the region and prepare the work request that registers it. */
static struct ib_send_wr *region_register(struct region *r)
{
	if (ib_map_mr_sg(r->mr, r->mem.sgl, r->mapped, NULL, PAGE_SIZE) != r->mapped)
		return NULL;
	return region_wr(r);
}

static struct ktest_msg region_msg(const struct region *r, u32 op, u32 seed)
{
	return (struct ktest_msg){ .op = op, .addr = r->mr->iova, .rkey = r->mr->rkey,
				   .len = r->len, .seed = seed };
}

/* Register the region under its next key; let the server write to it or read from it. */
static bool region_exchange(struct region *r, u32 op, u32 seed)
{
	struct ib_send_wr *reg = region_register(r);
	struct ktest_msg msg;

	if (FAILED(reg))
		return false;
	msg = region_msg(r, op, seed);
	return !FAILED(!ktest_call(r->conn, &msg, reg));
}

/* Unmap the region, whose key is invalid, check its pattern and map it again. */
static bool region_holds(struct region *r, u32 seed)
{
	struct ib_device *dev = r->conn->id->device;

	ib_dma_unmap_sg(dev, r->mem.sgl, r->mem.orig_nents, DMA_BIDIRECTIONAL);
	r->mapped = 0;
	if (FAILED(ktest_mem_check(&r->mem, seed)))
		return false;
	r->mapped = ib_dma_map_sg(dev, r->mem.sgl, r->mem.orig_nents, DMA_BIDIRECTIONAL);
	return !FAILED(r->mapped);
}

/* Attributes that nvme-rdma, xprtrdma, iser, srp and rds check before they use a device. */
static bool case_attributes(struct ktest_conn *conn)
{
	const struct ib_device_attr *attr = &conn->id->device->attrs;
	bool ok = false;

	if (FAILED(attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		goto out;
	if (FAILED(attr->max_fast_reg_page_list_len >= 256))
		goto out;
	if (FAILED(attr->max_send_sge >= 16))
		goto out;
	if (FAILED(attr->max_sge_rd >= 1 && attr->max_sge_rd <= 16))
		goto out;
	if (FAILED(attr->max_qp_rd_atom >= 16))
		goto out;
	if (FAILED(conn->id->device->node_type == RDMA_NODE_IB_CA))
		goto out;
	if (FAILED(conn->pd->local_dma_lkey == conn->id->device->local_dma_lkey))
		goto out;
	if (FAILED(!(conn->pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY)))
		goto out;
	ok = true;
out:
	return ok;
}

static bool case_echo(struct ktest_conn *conn)
{
	struct ktest_msg msg = { .op = KTEST_ECHO };
	bool ok = false;

	for (msg.seed = 0; msg.seed < 200; msg.seed++) {
		if (FAILED(!ktest_call(conn, &msg, NULL)))
			goto out;
		if (FAILED(conn->answer.seed == msg.seed))
			goto out;
		if (FAILED(!(conn->wc.wc_flags & IB_WC_WITH_INVALIDATE)))
			goto out;
	}
	ok = true;
out:
	return ok;
}

/*
 * Write to the region and read from it; the server invalidates the key each time. The client unmaps
 * the memory only after it has the completion of the invalidation (ORN-MEM-73).
 */
static bool remote_invalidate(struct ktest_conn *conn, u32 offset, u32 len)
{
	struct region r;
	bool ok = false;
	u32 i;

	if (FAILED(!region_alloc(&r, conn, offset, len)))
		goto out;
	for (i = 0; i < 4; i++) {
		u32 op = i & 1 ? KTEST_PULL : KTEST_PUSH;

		if (!region_exchange(&r, op | KTEST_F_INVALIDATE, i / 2))
			goto out;
		if (FAILED(conn->wc.wc_flags & IB_WC_WITH_INVALIDATE))
			goto out;
		if (FAILED(conn->wc.ex.invalidate_rkey == r.mr->rkey))
			goto out;
		if (!region_holds(&r, i / 2))
			goto out;
	}
	ok = true;
out:
	region_free(&r);
	return ok;
}

static bool case_remote_invalidate(struct ktest_conn *conn)
{
	static const u32 lens[] = { 1, 4096, 65536, 1 << 20 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		if (!remote_invalidate(conn, 0, lens[i]) || !remote_invalidate(conn, 1234, lens[i]))
			return false;
	return true;
}

/* A region with the largest number of pages that the device supports */
static bool case_largest(struct ktest_conn *conn)
{
	return remote_invalidate(conn, 0,
				 conn->id->device->attrs.max_fast_reg_page_list_len * PAGE_SIZE);
}

#define PREFIX_BYTES	(8 * PAGE_SIZE)	/* memory */
#define PREFIX_PAGES	3		/* pages of the region */

/*
 * Memory of one element that is longer than the region can be: the region consists of the prefix
 * that ib_map_mr_sg() returns as length and offset.
 */
static bool prefix(struct ktest_conn *conn, u32 first)
{
	struct region r = { .conn = conn, .cqe.done = region_done };
	struct ib_device *dev = conn->id->device;
	unsigned int offset = first;
	struct ib_send_wr *reg;
	struct ktest_msg msg;
	bool ok = false;

	if (FAILED(!ktest_mem_alloc_block(&r.mem, PREFIX_BYTES)))
		goto out;
	r.mr = ib_alloc_mr(conn->pd, IB_MR_TYPE_MEM_REG, PREFIX_PAGES);
	if (FAILED(!IS_ERR(r.mr)))
		goto out;
	r.mapped = ib_dma_map_sg(dev, r.mem.sgl, 1, DMA_BIDIRECTIONAL);
	if (FAILED(r.mapped == 1))
		goto out;
	if (FAILED(!ib_map_mr_sg(r.mr, r.mem.sgl, 1, &offset, PAGE_SIZE)))
		goto out;
	r.len = r.mr->length;
	if (FAILED(r.len && r.len == offset - first && r.len <= PREFIX_PAGES * PAGE_SIZE))
		goto out;
	reg = region_wr(&r);
	msg = region_msg(&r, KTEST_PUSH | KTEST_F_INVALIDATE, 1);
	if (FAILED(!ktest_call(conn, &msg, reg)))
		goto out;
	ib_dma_unmap_sg(dev, r.mem.sgl, 1, DMA_BIDIRECTIONAL);
	r.mapped = 0;
	ok = !FAILED(ktest_block_check(&r.mem, first, r.len, 1));
out:
	region_free(&r);
	return ok;
}

static bool case_prefix(struct ktest_conn *conn)
{
	return prefix(conn, 0) && prefix(conn, 100) && prefix(conn, PAGE_SIZE);
}

/* A region that the client itself invalidates and registers again. */
static bool case_local_invalidate(struct ktest_conn *conn)
{
	struct ib_send_wr inv;
	struct region r;
	bool ok = false;
	u32 i;

	if (FAILED(!region_alloc(&r, conn, 100, 10000)))
		goto out;
	for (i = 0; i < 8; i++) {
		if (!region_exchange(&r, KTEST_PUSH, i))
			goto out;
		inv = (struct ib_send_wr){ .opcode = IB_WR_LOCAL_INV,
					   .ex.invalidate_rkey = r.mr->rkey };
		if (FAILED(ktest_run_wr(conn, &inv) == IB_WC_SUCCESS))
			goto out;
		if (!region_holds(&r, i))
			goto out;
	}
	ok = true;
out:
	region_free(&r);
	return ok;
}

/* An invalidated key gives no access: a request that uses it breaks the connection. */
static bool case_stale_key(struct ktest_conn *conn)
{
	struct ktest_msg msg;
	struct region r;
	bool ok = false;

	if (FAILED(!region_alloc(&r, conn, 0, 8192)))
		goto out;
	if (!region_exchange(&r, KTEST_PUSH | KTEST_F_INVALIDATE, 1))
		goto out;
	msg = region_msg(&r, KTEST_PUSH, 2);
	if (FAILED(ktest_call(conn, &msg, NULL) < 0))
		goto out;
	if (!region_holds(&r, 1))
		goto out;
	ok = true;
out:
	region_free(&r);
	return ok;
}

/* Registering a registered region fails with a memory management error. */
static bool case_register_twice(struct ktest_conn *conn)
{
	struct ib_send_wr *reg;
	struct region r;
	bool ok = false;

	if (FAILED(!region_alloc(&r, conn, 0, 8192)))
		goto out;
	reg = region_register(&r);
	if (FAILED(reg))
		goto out;
	if (FAILED(ktest_run_wr(conn, reg) == IB_WC_SUCCESS))
		goto out;
	if (FAILED(ktest_run_wr(conn, reg) == IB_WC_MW_BIND_ERR))
		goto out;
	ok = true;
out:
	region_free(&r);
	return ok;
}

/* ORN-MEM-72: map the second region before the registration of the first has completed. */
static bool case_two_regions(struct ktest_conn *conn)
{
	struct region a = {}, b = {};
	struct ktest_msg msg;
	struct ib_send_wr *reg;
	bool ok = false;

	if (FAILED(!region_alloc(&a, conn, 0, 40000)))
		goto out;
	if (FAILED(!region_alloc(&b, conn, 100, 30000)))
		goto out;
	reg = region_register(&a);
	if (FAILED(reg && !ib_post_send(conn->id->qp, reg, NULL)))
		goto out;
	reg = region_register(&b);
	if (FAILED(reg))
		goto out;
	msg = region_msg(&b, KTEST_PUSH | KTEST_F_INVALIDATE, 2);
	if (FAILED(!ktest_call(conn, &msg, reg)))
		goto out;
	msg = region_msg(&a, KTEST_PUSH | KTEST_F_INVALIDATE, 1);
	if (FAILED(!ktest_call(conn, &msg, NULL)))
		goto out;
	if (!region_holds(&a, 1) || !region_holds(&b, 2))
		goto out;
	ok = true;
out:
	region_free(&b);
	region_free(&a);
	return ok;
}

/* The driver rejects what the device does not have or a kernel consumer cannot use. */
static bool case_refused(struct ktest_conn *conn)
{
	const struct ib_device_attr *attr = &conn->id->device->attrs;
	const struct ib_cq_init_attr overrun = {
		.cqe = 1, .flags = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
	};
	struct ib_send_wr wr = { .opcode = IB_WR_RDMA_READ_WITH_INV };
	struct ib_mr *mr;
	struct ib_cq *cq;
	bool ok = false;

	mr = ib_alloc_mr(conn->pd, IB_MR_TYPE_MEM_REG, attr->max_fast_reg_page_list_len + 1);
	if (FAILED(IS_ERR(mr)))
		goto out;
	mr = ib_alloc_mr(conn->pd, IB_MR_TYPE_SG_GAPS, 4);
	if (FAILED(IS_ERR(mr)))
		goto out;
	if (FAILED(ktest_run_wr(conn, &wr) == -EINVAL))
		goto out;
	cq = ib_create_cq(conn->id->device, NULL, NULL, NULL, &overrun);
	if (FAILED(PTR_ERR(cq) == -EOPNOTSUPP))
		goto out;
	ok = true;
out:
	return ok;
}

/* After ib_drain_qp() all work requests have completed, including those in flight. */
static bool case_drain(struct ktest_conn *conn)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	bool ok = false;
	int i;

	for (i = 0; i < KTEST_DEPTH; i++) {
		*conn->send[i].msg = (struct ktest_msg){ .op = KTEST_ECHO, .seed = i };
		if (FAILED(!ktest_post_send(&conn->send[i], NULL, 0)))
			goto out;
	}
	ib_drain_qp(conn->id->qp);
	if (FAILED(atomic_read(&conn->posted) == atomic_read(&conn->completed)))
		goto out;
	if (FAILED(!ib_query_qp(conn->id->qp, &attr, IB_QP_STATE, &init)))
		goto out;
	if (FAILED(attr.qp_state == IB_QPS_ERR))
		goto out;
	ib_drain_qp(conn->id->qp);
	ok = true;
out:
	return ok;
}

static const struct {
	const char *name;
	bool (*run)(struct ktest_conn *conn);
	enum ib_poll_context poll;
	bool pooled;
	bool shared;
} cases[] = {
	{ "attributes", case_attributes, IB_POLL_SOFTIRQ, true },
	{ "echo_softirq_pooled", case_echo, IB_POLL_SOFTIRQ, true },
	{ "echo_workqueue", case_echo, IB_POLL_WORKQUEUE, false },
	{ "echo_workqueue_pooled", case_echo, IB_POLL_UNBOUND_WORKQUEUE, true },
	{ "echo_direct", case_echo, IB_POLL_DIRECT, false },
	{ "remote_invalidate", case_remote_invalidate, IB_POLL_SOFTIRQ, true },
	{ "remote_invalidate_workqueue", case_remote_invalidate, IB_POLL_WORKQUEUE, false },
	{ "largest", case_largest, IB_POLL_SOFTIRQ, true },
	{ "prefix", case_prefix, IB_POLL_SOFTIRQ, true },
	{ "local_invalidate", case_local_invalidate, IB_POLL_SOFTIRQ, true },
	{ "stale_key", case_stale_key, IB_POLL_SOFTIRQ, true },
	{ "register_twice", case_register_twice, IB_POLL_SOFTIRQ, true },
	{ "two_regions", case_two_regions, IB_POLL_SOFTIRQ, true },
	{ "refused", case_refused, IB_POLL_SOFTIRQ, true },
	{ "drain", case_drain, IB_POLL_SOFTIRQ, true },
	{ "drain_direct", case_drain, IB_POLL_DIRECT, false },
	{ "srq_echo", case_echo, IB_POLL_SOFTIRQ, true, true },
	{ "srq_limit", ktest_case_srq_limit, IB_POLL_SOFTIRQ, true, true },
	{ "srq_resize", ktest_case_srq_resize, IB_POLL_SOFTIRQ, true, true },
	{ "srq_resize_workqueue", ktest_case_srq_resize, IB_POLL_WORKQUEUE, false, true },
	{ "resize_cq", ktest_case_resize_cq, IB_POLL_SOFTIRQ, false },
	{ "resize_cq_workqueue", ktest_case_resize_cq, IB_POLL_WORKQUEUE, false },
	{ "resize_cq_reset", ktest_case_resize_cq_reset, IB_POLL_SOFTIRQ, false },
	{ "resize_cq_destroy", ktest_case_resize_cq_destroy, IB_POLL_SOFTIRQ, false },
	{ "largest_queues", ktest_case_largest_queues, IB_POLL_SOFTIRQ, true },
	{ "mcast", ktest_case_mcast, IB_POLL_SOFTIRQ, true },
};

static bool run_case(int i, struct sockaddr *addr)
{
	struct ktest_conn *conn = ktest_connect(addr, cases[i].poll, cases[i].pooled,
						cases[i].shared);
	bool ok;

	if (IS_ERR(conn)) {
		pr_info("ornic_ktest: # no connection: %ld\n", PTR_ERR(conn));
		return false;
	}
	ok = cases[i].run(conn);
	ktest_disconnect(conn);
	return ok;
}

/* Run @only, or all cases if it is empty. Print the results in the Test Anything Protocol. */
void ktest_cases(struct sockaddr *addr, const char *only)
{
	int i;

	pr_info("ornic_ktest: 1..%zu\n", ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *skip = " # SKIP this kernel does not have it";
		bool ok = true;

		if (*only && strcmp(only, cases[i].name)) {
			skip = " # SKIP not chosen";
		} else if (cases[i].run) {
			ok = run_case(i, addr);
			skip = "";
		}
		pr_info("ornic_ktest: %s %d - %s%s\n", ok ? "ok" : "not ok", i + 1, cases[i].name,
			skip);
	}
}
