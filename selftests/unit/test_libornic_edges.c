// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, edges: empty lists, requests one byte or one type beyond the limits, attributes
 * without their bit in the mask.
 */
#include <errno.h>
#include <unistd.h>

#include "test_libornic_kernel.h"

static struct rig rig;
static struct ibv_context *ctx;

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	rig.ctx->limits.log_max_srq = 5;
	rig.ctx->limits.max_srq_sge = 4;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static struct ornic_qp *make_qp(enum ibv_qp_type type, struct ibv_qp_cap cap, uint32_t mask,
				uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .qp_type = type, .cap = cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | mask, .pd = rig.pd, .send_ops_flags = ops,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(ctx, &attr);

	return qp ? to_oqp(qp) : NULL;
}

static void drop(struct ornic_qp *qp)
{
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static void test_empty_lists(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ornic_qp *qp = rig_qp(&rig, IBV_QPT_RC, cap, 0);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ornic_create_srq(rig.pd, &attr);
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;

	(void)state;
	rig_doorbell(&rig);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, NULL, &bad_send), 0);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, NULL, &bad_recv), 0);
	assert_int_equal(ornic_post_srq_recv(srq, NULL, &bad_recv), 0);
	assert_int_equal(rig_doorbell(&rig), 0);
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

static void test_first_is_bad(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ornic_qp *qp = make_qp(IBV_QPT_RC, cap, 0, 0);
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_recv_wr recv = {}, *bad_recv = NULL;

	(void)state;
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, &send);
	drop(qp);
}

/* Each operation alone, as named in verbs.h: a type takes the operations it has and no other. */
static void test_operations(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
	} row[] = {
		{ IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
			      IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
			      IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			      IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW },
		{ IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM },
		{ IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND },
	};
	const struct ibv_qp_cap cap = { 4, 0, 1, 0, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		for (unsigned int bit = 0; bit < 64; bit++) {
			uint64_t op = 1ull << bit;
			struct ornic_qp *qp;

			qp = make_qp(row[i].type, cap, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, op);
			assert_int_equal(!!qp, !!(row[i].ops & op));
			if (qp)
				drop(qp);
			/* ignored without their bit in comp_mask */
			qp = make_qp(row[i].type, cap, 0, op);
			assert_non_null(qp);
			drop(qp);
		}
}

/* A size of 0 would be a ring of one slot, so the kernel is told that a target has none. */
static void test_target_has_no_rings(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(ctx, &attr);

	(void)state;
	assert_non_null(qp);
	assert_int_equal(kernel.qp_req.sq_log, ORNIC_ABI_NO_RING);
	assert_int_equal(kernel.qp_req.rq_log, ORNIC_ABI_NO_RING);
	assert_int_equal(ornic_destroy_qp(qp), 0);
}

/* A create that fails leaves the sizes that the application requested. */
static void test_failure_keeps_sizes(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 3, 5, 1, 1, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
	const struct ibv_qp_cap asked = attr.cap;

	(void)state;
	kernel.fail = ENOSPC;
	assert_null(ornic_create_qp_ex(ctx, &attr));
	assert_int_equal(errno, ENOSPC);
	assert_memory_equal(&attr.cap, &asked, sizeof(asked));
}

/* Only XRC has the call that names an SRQ. */
static void test_builders_by_type(void **state)
{
	const struct ibv_qp_cap cap = { 4, 0, 1, 0, 0 };
	const uint32_t mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ornic_qp *rc = make_qp(IBV_QPT_RC, cap, mask, IBV_QP_EX_WITH_SEND);
	struct ornic_qp *xrc;

	(void)state;
	kernel.qpn++;
	xrc = make_qp(IBV_QPT_XRC_SEND, cap, mask, IBV_QP_EX_WITH_SEND);
	assert_null(rc->vqp.qp_ex.wr_set_xrc_srqn);
	assert_non_null(xrc->vqp.qp_ex.wr_set_xrc_srqn);
	drop(rc);
	drop(xrc);
}

/* A slot holds the requested data, and no operand that the type never has. */
static void test_slot_without_data(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 0, 0, 0 };
	struct ornic_qp *ud = make_qp(IBV_QPT_UD, cap, 0, 0), *raw, *rc;

	(void)state;
	kernel.qpn++;
	raw = make_qp(IBV_QPT_RAW_PACKET, cap, 0, 0);
	kernel.qpn++;
	rc = make_qp(IBV_QPT_RC, cap, 0, 0);
	assert_true(1u << ud->sq.stride >=
		    sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_path));
	assert_true(1u << (ud->sq.stride - 1) <
		    sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_path));
	assert_int_equal(raw->sq.stride, ORNIC_SQ_MIN_STRIDE);
	assert_true(1u << rc->sq.stride >=
		    sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_wqe_remote) +
		    sizeof(struct ornic_wqe_atomic) + sizeof(struct ornic_sge));
	drop(ud);
	drop(raw);
	drop(rc);
}

/* Whole pages, and not one more than needed. */
static void test_whole_pages(void **state)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct ornic_buf buf;

	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		assert_int_equal(ornic_buf_alloc_in(&buf, n * page, NULL, 0), 0);
		assert_int_equal(buf.bytes, n * page);
		ornic_buf_free(&buf);
		assert_int_equal(ornic_buf_alloc_in(&buf, n * page + 1, NULL, 0), 0);
		assert_int_equal(buf.bytes, (n + 1) * page);
		ornic_buf_free(&buf);
	}
}

/* Pages that cannot be protected from fork are freed: rig_close() counts them. */
static void test_fork_cannot_be_told(void **state)
{
	struct ornic_buf buf;

	(void)state;
	kernel.dontfork = EINVAL;
	assert_int_equal(ornic_buf_alloc_in(&buf, 1, NULL, 0), EINVAL);
	kernel.dontfork = 0;
}

static unsigned int asked;
static uint64_t asked_type;

static void *use_default(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			 uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)size;
	(void)alignment;
	asked++;
	asked_type = type;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void never(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)ptr;
	(void)type;
	fail();
}

static struct ibv_pd *parent(uint32_t mask)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = rig.pd, .alloc = use_default, .free = never, .comp_mask = mask,
	};
	struct ibv_pd *pd = ornic_alloc_parent_domain(ctx, &attr);

	assert_non_null(pd);
	asked = 0;
	return pd;
}

static void test_allocators_need_their_bit(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = parent(0);
	struct ibv_srq *srq = ornic_create_srq(pd, &attr);

	(void)state;
	assert_non_null(srq);
	assert_int_equal(asked, 0);
	assert_int_equal(ornic_destroy_srq(srq), 0);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

/* Documentation/guide/applications.rst documents these numbers. */
static void test_resource_types(void **state)
{
	struct ibv_pd *pd = parent(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd,
	};
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	(void)state;
	qp = ornic_create_qp(pd, &qp_attr);
	assert_non_null(qp);
	assert_int_equal(asked_type, RESOURCE_TYPE(1));
	cq = ornic_create_cq_ex(ctx, &cq_attr);
	assert_non_null(cq);
	assert_int_equal(asked_type, RESOURCE_TYPE(2));
	srq = ornic_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(asked_type, RESOURCE_TYPE(3));
	assert_int_equal(asked, 3);
	assert_int_equal(ornic_destroy_srq(srq), 0);
	assert_int_equal(ornic_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ornic_destroy_qp(qp), 0);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

/* A queue whose number cannot be entered in the table is destroyed; a working one is not. */
static void test_kernel_object_without_number(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ornic_qp *qp = make_qp(IBV_QPT_RC, cap, 0, 0);
	struct ibv_srq *srq = rig_xsrq(&rig);
	struct ibv_wq *wq;

	(void)state;
	kernel.qpn++;
	wq = rig_wq(&rig, rig.cq);
	assert_int_equal(kernel.qps_destroyed, 0);
	assert_int_equal(kernel.wqs_destroyed, 0);
	assert_int_equal(kernel.srqs_destroyed, 0);
	assert_int_equal(ornic_destroy_wq(wq), 0);
	assert_int_equal(ornic_destroy_srq(srq), 0);
	assert_int_equal(kernel.wqs_destroyed, 1);
	assert_int_equal(kernel.srqs_destroyed, 1);
	drop(qp);
	assert_int_equal(kernel.qps_destroyed, 1);
	kernel.qpn = 1u << 24;
	assert_null(make_qp(IBV_QPT_RC, cap, 0, 0));
	assert_int_equal(kernel.qps_destroyed, 2);
	assert_null(rig_wq(&rig, rig.cq));
	assert_int_equal(kernel.wqs_destroyed, 2);
	kernel.srqn = 1u << 24;
	assert_null(rig_xsrq(&rig));
	assert_int_equal(kernel.srqs_destroyed, 2);
}

static struct ornic_qp_table grown;

static void grow_too(void)
{
	assert_int_equal(ornic_qp_table_insert(&grown, 5, rig.cq, &rig), 0);
}

/* Two threads allocate the same leaf: both objects are found, and one leaf is freed. */
static void test_leaf_of_two_threads(void **state)
{
	(void)state;
	kernel.on_calloc = grow_too;
	assert_int_equal(ornic_qp_table_insert(&grown, 6, rig.cq, &grown), 0);
	assert_ptr_equal(ornic_qp_table_find(&grown, 5, rig.cq), &rig);
	assert_ptr_equal(ornic_qp_table_find(&grown, 6, rig.cq), &grown);
	ornic_qp_table_free(&grown);
}

/* The layout of rdma/ornic-abi.h: a receive queue at a multiple of its slots, then two records. */
static void test_layout(void **state)
{
	static const struct {
		struct ibv_qp_cap cap;
		uint32_t rq_at, rec_at;
	} cases[] = {
		{ { 1, 1, 1, 3, 0 }, 64, 128 },
		{ { 2, 1, 1, 3, 0 }, 128, 192 },
		{ { 1, 2, 1, 10, 0 }, 256, 768 },
		{ { 4, 0, 1, 0, 0 }, 256, 256 },
		{ { 0, 4, 0, 3, 0 }, 0, 256 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_qp *qp = make_qp(IBV_QPT_RC, cases[i].cap, 0, 0);
		char *base = qp->buf.addr;

		assert_ptr_equal(qp->sq.ring, base);
		assert_ptr_equal(qp->rq.ring, base + cases[i].rq_at);
		assert_ptr_equal(qp->sq.rec, base + cases[i].rec_at);
		assert_ptr_equal(qp->rq.rec, base + cases[i].rec_at + sizeof(struct ornic_rec));
		drop(qp);
	}
}

/* A ring has two slots of 32 bytes, also if the device takes SRQs of one entry only. */
static void test_srq_of_one(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq;

	(void)state;
	rig.ctx->limits.log_max_srq = 0;
	srq = ornic_create_srq(rig.pd, &attr);
	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 1);
	assert_int_equal(kernel.srq_attr.max_wr, 1);
	assert_int_equal(kernel.srq_req.log_entries, 1);
	kernel.srq_attr.max_wr = 77;
	assert_int_equal(ornic_modify_srq(srq, &attr.attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(kernel.srq_attr.max_wr, 1);
	assert_int_equal(kernel.srq_modify_req.log_entries, 1);
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

static void test_rt_values(void **state)
{
	struct ibv_values_ex values = { .raw_clock = { .tv_sec = 77, .tv_nsec = 88 } };

	(void)state;
	kernel.clocks = CLOCKS;
	assert_int_equal(ornic_query_rt_values(ctx, &values), 0);
	assert_int_equal(values.raw_clock.tv_sec, 77);
	assert_int_equal(kernel.queries, 0);
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	assert_int_equal(ornic_query_rt_values(ctx, &values), 0);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	assert_int_equal(values.raw_clock.tv_nsec, 1000000);
}

/* Attributes count if the caller's structure has room for them, to the byte. */
static void test_query_sizes(void **state)
{
	const size_t rss = offsetof(struct ibv_device_attr_ex, rss_caps);
	const size_t pacing = offsetof(struct ibv_device_attr_ex, packet_pacing_caps);
	const struct ibv_rss_caps no_rss = {
		.rx_hash_fields_mask = 0xeeee, .rx_hash_function = 0xee,
	};
	struct ibv_device_attr_ex attr;

	(void)state;
	kernel.clocks.rss_fields = 0x1234;
	kernel.clocks.rss_functions = 0x56;
	kernel.clocks.rate_min_kbps = 7;
	for (int more = -1; more <= 0; more++) {
		memset(&attr, 0, sizeof(attr));
		attr.rss_caps = no_rss;
		attr.packet_pacing_caps.qp_rate_limit_min = 0xee;
		kernel.keep_attr = true;
		assert_int_equal(ornic_query_device_ex(ctx, NULL, &attr,
						       rss + sizeof(attr.rss_caps) + more), 0);
		assert_int_equal(attr.rss_caps.rx_hash_fields_mask, more ? 0xeeee : 0x1234);
		assert_int_equal(attr.rss_caps.rx_hash_function, more ? 0xee : 0x56);
		assert_int_equal(attr.packet_pacing_caps.qp_rate_limit_min, 0xee);
		assert_int_equal(ornic_query_device_ex(ctx, NULL, &attr,
						       pacing + more +
						       sizeof(attr.packet_pacing_caps)), 0);
		assert_int_equal(attr.packet_pacing_caps.qp_rate_limit_min, more ? 0xee : 7);
	}
}

/* The firmware version is read from sysfs; empty if the file is missing or empty. */
static void test_firmware_version(void **state)
{
	static const char *const versions[] = { "1.2-abc", NULL, "" };
	static const char zero[sizeof(((struct ibv_device_attr *)0)->fw_ver)];
	struct ibv_device_attr_ex attr;

	(void)state;
	for (int i = 0; i < 3; i++) {
		kernel.fw_ver = versions[i];
		assert_int_equal(ornic_query_device_ex(ctx, NULL, &attr, sizeof(attr)), 0);
		if (i)
			assert_memory_equal(attr.orig_attr.fw_ver, zero, sizeof(zero));
		else
			assert_string_equal(attr.orig_attr.fw_ver, versions[0]);
	}
}

static void *event_context;
static struct ibv_pd *event_pd;

/* An event thread that gets the first event of the new SRQ */
static void look_at(struct ibv_srq *srq)
{
	event_context = srq->srq_context;
	event_pd = srq->pd;
}

/* The kernel gets the parameters of an XRC SRQ's ring; the application has context and PD. */
static void test_xrc_srq_command(void **state)
{
	static struct verbs_xrcd xrcd;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 9, .max_sge = 3 }, .pd = rig.pd, .xrcd = &xrcd.xrcd,
		.cq = &rig.cq->vcq.cq, .srq_type = IBV_SRQT_XRC, .srq_context = &xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq;

	(void)state;
	kernel.on_create_xsrq = look_at;
	srq = ornic_create_srq_ex(ctx, &attr);
	assert_non_null(srq);
	assert_ptr_equal(event_context, &xrcd);
	assert_ptr_equal(event_pd, rig.pd);
	assert_ptr_equal(srq->srq_context, &xrcd);
	assert_ptr_equal(srq->pd, rig.pd);
	assert_int_equal(kernel.srq_req.buf_addr, (uintptr_t)to_osrq(srq)->buf.addr);
	assert_int_equal(kernel.srq_req.log_entries, 4);
	assert_int_equal(kernel.srq_req.stride, 6);
	assert_int_equal(attr.attr.max_wr, 16);
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

/* Receives of all SRQs that complete into a CQ need room there. */
static void test_two_srqs_on_a_cq(void **state)
{
	static struct verbs_xrcd xrcd;
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_srq *srq[2];
	struct ibv_cq *cq = ornic_create_cq(ctx, 16, NULL, 0);

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_srq_init_attr_ex attr = {
			.attr = { .max_wr = 8, .max_sge = 1 }, .pd = rig.pd, .xrcd = &xrcd.xrcd,
			.cq = cq, .srq_type = IBV_SRQT_XRC,
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		};

		kernel.srqn++;
		srq[i] = ornic_create_srq_ex(ctx, &attr);
		assert_non_null(srq[i]);
		for (unsigned int n = 0; n < 4; n++)
			assert_int_equal(ornic_post_srq_recv(srq[i], &recv, &bad), 0);
	}
	assert_int_equal(ornic_resize_cq(cq, 8), 0);
	assert_int_equal(ornic_resize_cq(cq, 4), 0);
	assert_int_equal(cq->cqe, 8);
	assert_int_equal(ornic_destroy_srq(srq[0]), 0);
	assert_int_equal(ornic_resize_cq(cq, 4), 0);
	assert_int_equal(cq->cqe, 4);
	assert_int_equal(ornic_destroy_srq(srq[1]), 0);
	assert_int_equal(ornic_destroy_cq(cq), 0);
}

static void test_wq_says_what_it_has(void **state)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 5, .max_sge = 3, .pd = rig.pd,
		.cq = &rig.cq->vcq.cq,
	};
	struct ibv_wq *wq = ornic_create_wq(ctx, &attr);

	(void)state;
	assert_non_null(wq);
	assert_int_equal(attr.max_wr, 8);
	assert_int_equal(attr.max_sge, 3);
	assert_int_equal(ornic_destroy_wq(wq), 0);
}

#ifndef ORNIC_LACKS_WR_FLUSH
/* The whole slot is written, for any earlier contents (ORN-WQE-1). */
static void test_flush(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ornic_qp *qp = rig_qp(&rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	const struct ornic_wqe_remote remote = { .addr = htole64(0x1122334455667788),
						 .rkey = htole32(0x99aabbcc) };
	const struct ornic_wqe_flush flush = {
		.length = htole64(0x123456789), .type = 2, .level = 1,
	};
	const struct ornic_wqe_ctrl *ctrl = (const void *)qp->sq.ring;

	(void)state;
	memset(qp->sq.ring, 0xee, 1u << qp->sq.stride);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_flush(ex, 0x99aabbcc, 0x1122334455667788, 0x123456789, 2, 1);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(ctrl->opcode, ORNIC_WR_FLUSH);
	assert_int_equal(ctrl->imm, 0);
	assert_memory_equal(ctrl + 1, &remote, sizeof(remote));
	assert_memory_equal((const char *)(ctrl + 1) + sizeof(remote), &flush, sizeof(flush));
}
#endif

/* The wire carries 24 bits of the SRQ number. */
static void test_xrc_target_number(void **state)
{
	const struct ibv_qp_cap cap = { 4, 0, 1, 0, 0 };
	struct ornic_qp *qp = rig_qp(&rig, IBV_QPT_XRC_SEND, cap, 0);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	const struct ornic_wqe_ctrl *ctrl = (const void *)qp->sq.ring;

	(void)state;
	wr.qp_type.xrc.remote_srqn = 0xff000077;
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), 0);
	assert_int_equal(le32toh(((const struct ornic_wqe_remote *)(ctrl + 1))->xrc_srqn), 0x77);
}

/* Every right that a window can have reaches the device, and no other. */
static void test_bind_rights(void **state)
{
	const struct ibv_qp_cap cap = { 16, 0, 1, 0, 0 };
	const uint32_t rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
	struct ornic_qp *qp = rig_qp(&rig, IBV_QPT_RC, cap, 0);
	struct ibv_mw mw = { .rkey = 0x12301, .type = IBV_MW_TYPE_2 };
	struct ibv_mr mr = { .lkey = 0x456 };
	const struct ornic_wqe_bind *bind;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	(void)state;
	wr.bind_mw.mw = &mw;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = &mr, .addr = 0x1000, .length = 64,
		.mw_access_flags = rights | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	};
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), 0);
	bind = (const void *)((const struct ornic_wqe_ctrl *)qp->sq.ring + 1);
	assert_int_equal(le32toh(bind->access), rights);
}

/* Independent of the old contents of the structure. */
static void test_arm_begins(void **state)
{
	struct ornic_arm arm;

	(void)state;
	memset(&arm, 0xff, sizeof(arm));
	ornic_arm_init(&arm);
	assert_int_equal(ornic_arm_word(&arm, 5, ORNIC_ARM_SOLICITED) >> ORNIC_ARM_TYPE_SHIFT & 3,
			 ORNIC_ARM_SOLICITED);
	assert_int_equal(arm.sn, 1);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_empty_lists),
		T(test_first_is_bad),
		T(test_operations),
		T(test_target_has_no_rings),
		T(test_failure_keeps_sizes),
		T(test_builders_by_type),
		T(test_slot_without_data),
		T(test_whole_pages),
		T(test_fork_cannot_be_told),
		T(test_allocators_need_their_bit),
		T(test_resource_types),
		T(test_kernel_object_without_number),
		T(test_leaf_of_two_threads),
		T(test_layout),
		T(test_srq_of_one),
		T(test_rt_values),
		T(test_query_sizes),
		T(test_firmware_version),
		T(test_xrc_srq_command),
		T(test_two_srqs_on_a_cq),
		T(test_wq_says_what_it_has),
#ifndef ORNIC_LACKS_WR_FLUSH
		T(test_flush),
#endif
		T(test_xrc_target_number),
		T(test_bind_rights),
		T(test_arm_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
