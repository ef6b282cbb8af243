// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, rejected create verbs: the errno and the reason in the log. Values on the limit are
 * accepted.
 */
#include <errno.h>

#include "test_libornic_kernel.h"

static struct rig rig;
static struct ibv_context *ctx;
static struct verbs_xrcd xrcd;
static struct ibv_srq some_srq;
static struct ibv_rwq_ind_table table;

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	rig.ctx->limits.log_max_srq = 4;
	rig.ctx->limits.max_srq_sge = 4;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* Check that a verb returned NULL with this errno and this reason in the log. */
static void expect(const void *object, int err, const char *reason)
{
	int got = errno;

	assert_null(object);
	assert_int_equal(got, err);
	if (!strstr(kernel.log, reason))
		fail_msg("\"%s\" says nothing of \"%s\"", kernel.log, reason);
	kernel.log[0] = 0;
}

static struct ibv_qp_init_attr_ex qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq,
		.cap = { 4, 4, 2, 2, 16 }, .qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
}

static void accept_qp(struct ibv_qp_init_attr_ex attr)
{
	struct ibv_qp *qp = ornic_create_qp_ex(ctx, &attr);

	assert_non_null(qp);
	assert_int_equal(ornic_destroy_qp(qp), 0);
	assert_int_equal(kernel.log[0], 0);
}

static void reject_qp(struct ibv_qp_init_attr_ex attr, int err, const char *reason)
{
	expect(ornic_create_qp_ex(ctx, &attr), err, reason);
}

static void test_qp_parts(void **state)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(IBV_QPT_RC);

	(void)state;
	attr.comp_mask = 0;
	reject_qp(attr, EINVAL, "needs a protection domain");
	attr = qp_attr(IBV_QPT_RC);
	attr.send_cq = NULL;
	reject_qp(attr, EINVAL, "needs a CQ for sends");
	attr = qp_attr(IBV_QPT_RC);
	attr.recv_cq = NULL;
	reject_qp(attr, EINVAL, "needs a CQ for receives");
	attr.qp_type = IBV_QPT_XRC_SEND;
	accept_qp(attr);
	attr.srq = &some_srq;
	reject_qp(attr, EINVAL, "has no SRQ");
	reject_qp(qp_attr(IBV_QPT_DRIVER), EOPNOTSUPP, "type 255");
	attr = qp_attr(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	reject_qp(attr, EOPNOTSUPP, "comp_mask has unsupported bits 0x8");
	attr = qp_attr(IBV_QPT_XRC_RECV);
	reject_qp(attr, EINVAL, "XRC domain");
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	reject_qp(attr, EOPNOTSUPP, "XRC target has unsupported bits 0x4");
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	accept_qp(attr);
}

static void test_qp_flags(void **state)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(IBV_QPT_UD);

	(void)state;
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	accept_qp(attr);
	attr.create_flags |= IBV_QP_CREATE_SOURCE_QPN;
	reject_qp(attr, EOPNOTSUPP, "create_flags has unsupported bits 0x400");
	attr.qp_type = IBV_QPT_RC;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	reject_qp(attr, EOPNOTSUPP, "create_flags has unsupported bits 0x2");
	attr.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	accept_qp(attr);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	reject_qp(attr, EOPNOTSUPP, "send_ops_flags has unsupported bits 0x400");
}

/* Each limit, one beyond it, and values of a queue pair without that queue. */
static void test_qp_limits(void **state)
{
	const struct ornic_uresp_alloc_ucontext *lim = &rig.ctx->limits;
	struct ibv_qp_init_attr_ex attr = qp_attr(IBV_QPT_RC);
	static const char *const names[] = {
		"max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data",
	};
	uint32_t *const caps[] = {
		&attr.cap.max_send_wr, &attr.cap.max_recv_wr, &attr.cap.max_send_sge,
		&attr.cap.max_recv_sge, &attr.cap.max_inline_data,
	};
	const uint32_t limits[] = {
		lim->max_send_wr, lim->max_recv_wr, lim->max_send_sge, lim->max_recv_sge,
		lim->max_inline,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		uint32_t before = *caps[i];

		*caps[i] = limits[i];
		accept_qp(attr);
		++*caps[i];
		reject_qp(attr, EINVAL, names[i]);
		*caps[i] = before;
	}
	rig.ctx->limits.max_sq_stride = 6;
	attr.cap.max_inline_data = 32;
	accept_qp(attr);
	attr.cap.max_inline_data = 33;
	reject_qp(attr, EINVAL, "log2 of a send slot is 7, the limit is 6");
	attr.cap.max_inline_data = 0;
	rig.ctx->limits.max_rq_stride = 6;
	attr.cap.max_recv_sge = 3;
	accept_qp(attr);
	attr.cap.max_recv_sge = 4;
	reject_qp(attr, EINVAL, "log2 of a receive slot is 7, the limit is 6");
	/* limits of a missing queue do not matter */
	attr.cap.max_recv_wr = 0;
	accept_qp(attr);
	attr.cap.max_recv_wr = 4;
	attr.cap.max_recv_sge = 1;
	attr.cap.max_send_wr = 0;
	attr.cap.max_inline_data = 512;
	accept_qp(attr);
}

static void reject_cq(struct ibv_cq_init_attr_ex attr, int err, const char *reason)
{
	expect(ornic_create_cq_ex(ctx, &attr), err, reason);
}

static void accept_cq(struct ibv_cq_init_attr_ex attr)
{
	struct ibv_cq_ex *cq = ornic_create_cq_ex(ctx, &attr);

	assert_non_null(cq);
	assert_int_equal(ornic_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void test_cq(void **state)
{
	const struct ibv_cq_init_attr_ex ok = { .cqe = 5 };
	struct ibv_cq_init_attr_ex attr = ok;
	uint32_t max = rig.ctx->limits.max_cqe;

	(void)state;
	kernel.clocks = CLOCKS;
	attr.cqe = 0;
	reject_cq(attr, EINVAL, "needs entries");
	expect(ornic_create_cq(ctx, -1, NULL, 0), EINVAL, "needs entries");
	attr.cqe = max + 1;
	reject_cq(attr, EINVAL, "cqe is 65537, the limit is 65536");
	attr.cqe = max;
	accept_cq(attr);
	attr = ok;
	attr.comp_mask = 1u << 7;
	reject_cq(attr, EOPNOTSUPP, "comp_mask of a CQ has unsupported bits 0x80");
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	reject_cq(attr, EINVAL, "not a parent domain");
	attr.parent_domain = rig.pd;
	reject_cq(attr, EINVAL, "not a parent domain");
	attr = ok;
	attr.flags = 1u << 9;
	accept_cq(attr);		/* the mask bit of flags is not set */
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	reject_cq(attr, EOPNOTSUPP, "flags of a CQ has unsupported bits 0x200");
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	accept_cq(attr);
	attr = ok;
	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	reject_cq(attr, EOPNOTSUPP, "wc_flags has unsupported bits");
	attr.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN |
			IBV_WC_EX_WITH_FLOW_TAG;
	accept_cq(attr);
}

static struct ibv_srq_init_attr_ex srq_attr(enum ibv_srq_type type)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 16, .max_sge = 4, .srq_limit = UINT32_MAX },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     (type == IBV_SRQT_XRC ?
			      IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ : 0),
		.srq_type = type, .pd = rig.pd, .xrcd = &xrcd.xrcd, .cq = &rig.cq->vcq.cq,
	};
}

static void reject_srq(struct ibv_srq_init_attr_ex attr, int err, const char *reason)
{
	expect(ornic_create_srq_ex(ctx, &attr), err, reason);
}

/* ibv_create_srq(3): srq_limit is irrelevant, so no value of it arms the limit. */
static void accept_srq(struct ibv_srq_init_attr_ex attr)
{
	struct ibv_srq *srq = ornic_create_srq_ex(ctx, &attr);

	assert_non_null(srq);
	assert_int_equal(kernel.log[0], 0);
	assert_int_equal(attr.attr.max_wr, 16);		/* the actual size */
	assert_int_equal(attr.attr.srq_limit, UINT32_MAX);
	assert_int_equal(kernel.srq_attr.srq_limit, 0);
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

static void test_srq(void **state)
{
	static const enum ibv_srq_type types[] = { IBV_SRQT_BASIC, IBV_SRQT_XRC };
	struct ibv_srq_init_attr_ex attr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		accept_srq(srq_attr(types[i]));
		attr = srq_attr(types[i]);
		attr.attr.max_wr = 9;
		accept_srq(attr);
		attr.attr.max_wr = 0;
		reject_srq(attr, EINVAL, "needs entries");
		attr.attr.max_wr = 17;
		reject_srq(attr, EINVAL, "max_wr of an SRQ is 17, the limit is 16");
		attr = srq_attr(types[i]);
		attr.attr.max_sge = 5;
		reject_srq(attr, EINVAL, "max_sge of an SRQ is 5, the limit is 4");
		attr = srq_attr(types[i]);
		rig.ctx->limits.max_rq_stride = 6;
		reject_srq(attr, EINVAL, "log2 of a slot of an SRQ is 7, the limit is 6");
		rig.ctx->limits.max_rq_stride = 7;
		accept_srq(attr);
		rig.ctx->limits.max_rq_stride = 10;
	}
}

static void test_srq_parts(void **state)
{
	static const uint32_t needed[] = {
		IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq_init_attr_ex attr = srq_attr(IBV_SRQT_BASIC);

	(void)state;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	accept_srq(attr);		/* a basic SRQ needs no type, */
	attr.srq_type = IBV_SRQT_XRC;
	accept_srq(attr);		/* and the type is ignored without its bit */
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	attr.srq_type = IBV_SRQT_BASIC;
	reject_srq(attr, EINVAL, "needs a protection domain");
	attr = srq_attr(IBV_SRQT_BASIC);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	reject_srq(attr, EOPNOTSUPP, "comp_mask of an SRQ has unsupported bits 0x10");
	reject_srq(srq_attr(IBV_SRQT_TM), EOPNOTSUPP, "no SRQs of type 2");
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		attr = srq_attr(IBV_SRQT_XRC);
		attr.comp_mask &= ~needed[i];
		reject_srq(attr, EINVAL, "needs a PD, an XRC domain and a CQ");
	}
}

static struct ibv_wq_init_attr wq_attr(void)
{
	return (struct ibv_wq_init_attr){
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 2, .pd = rig.pd,
		.cq = &rig.cq->vcq.cq,
	};
}

static void reject_wq(struct ibv_wq_init_attr attr, int err, const char *reason)
{
	expect(ornic_create_wq(ctx, &attr), err, reason);
}

static void accept_wq(struct ibv_wq_init_attr attr)
{
	struct ibv_wq *wq = ornic_create_wq(ctx, &attr);

	assert_non_null(wq);
	assert_int_equal(ornic_destroy_wq(wq), 0);
}

static void test_wq(void **state)
{
	struct ibv_wq_init_attr attr = wq_attr();

	(void)state;
	accept_wq(attr);
	attr.wq_type = IBV_WQT_RQ + 1;
	reject_wq(attr, EOPNOTSUPP, "no work queues of type 1");
	attr = wq_attr();
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS << 1;
	reject_wq(attr, EOPNOTSUPP, "comp_mask of a work queue");
	attr = wq_attr();
	attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	accept_wq(attr);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	reject_wq(attr, EOPNOTSUPP, "create_flags of a work queue");
	attr.create_flags = 0;
	accept_wq(attr);
	attr.max_wr = 0;
	reject_wq(attr, EINVAL, "needs entries");
	attr = wq_attr();
	attr.max_sge = 33;
	reject_wq(attr, EINVAL, "max_recv_sge");
}

static uint8_t key[ORNIC_RSS_KEY_BYTES];

static struct ibv_qp_init_attr_ex rss_attr(void)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = rig.pd, .rwq_ind_tbl = &table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		},
	};
}

static void test_rss(void **state)
{
	struct ibv_qp_init_attr_ex attr = rss_attr();

	(void)state;
	accept_qp(attr);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	reject_qp(attr, EOPNOTSUPP, "comp_mask of an RSS queue pair");
	attr = rss_attr();
	attr.create_flags = 1;
	accept_qp(attr);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	reject_qp(attr, EOPNOTSUPP, "create_flags of an RSS queue pair");
	attr.create_flags = 0;
	accept_qp(attr);
	attr = rss_attr();
	attr.qp_type = IBV_QPT_UD;
	reject_qp(attr, EOPNOTSUPP, "only raw packet");
	attr = rss_attr();
	attr.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH;
	reject_qp(attr, EINVAL, "RSS needs");
	attr = rss_attr();
	attr.comp_mask &= ~IBV_QP_INIT_ATTR_PD;
	reject_qp(attr, EINVAL, "RSS needs");
	attr = rss_attr();
	attr.rwq_ind_tbl = NULL;
	reject_qp(attr, EINVAL, "RSS needs");
	attr = rss_attr();
	attr.send_cq = &rig.cq->vcq.cq;
	reject_qp(attr, EINVAL, "no send queue");
	attr = rss_attr();
	attr.cap.max_send_wr = 1;
	reject_qp(attr, EINVAL, "no send queue");
	attr = rss_attr();
	attr.cap.max_send_sge = 1;
	reject_qp(attr, EINVAL, "no send queue");
	attr = rss_attr();
	attr.rx_hash_conf.rx_hash_function = 0;
	reject_qp(attr, EOPNOTSUPP, "no hash function 0");
	attr = rss_attr();
	attr.rx_hash_conf.rx_hash_fields_mask |= 1ull << 32;
	reject_qp(attr, EOPNOTSUPP, "rx_hash_fields_mask has unsupported bits 0x100000000");
	attr = rss_attr();
	attr.rx_hash_conf.rx_hash_key_len--;
	reject_qp(attr, EINVAL, "hash key has 39 bytes, not 40");
	attr = rss_attr();
	attr.rx_hash_conf.rx_hash_key = NULL;
	reject_qp(attr, EINVAL, "hash key");
}

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {};

	(void)state;
	expect(ornic_create_ah(rig.pd, &attr), EINVAL, "needs a GRH");
}

static void *fake_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			uint64_t type)
{
	(void)pd, (void)context, (void)size, (void)alignment, (void)type;
	return NULL;
}

static void test_parent_domain(void **state)
{
	struct ibv_parent_domain_init_attr attr = { .pd = rig.pd };
	struct ibv_td_init_attr thread = { .comp_mask = 1 };
	struct ibv_pd *parent = ornic_alloc_parent_domain(ctx, &attr);
	struct ibv_td other = {};

	(void)state;
	assert_non_null(parent);
	assert_int_equal(kernel.log[0], 0);
	expect(ornic_alloc_td(ctx, &thread), EOPNOTSUPP, "comp_mask of a thread domain");
	attr.comp_mask = 4;
	expect(ornic_alloc_parent_domain(ctx, &attr), EOPNOTSUPP, "comp_mask of a parent domain");
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = fake_alloc;
	expect(ornic_alloc_parent_domain(ctx, &attr), EINVAL, "both functions");
	attr.comp_mask = 0;
	attr.td = &other;
	expect(ornic_alloc_parent_domain(ctx, &attr), EINVAL, "another context");
	attr.td = NULL;
	attr.pd = parent;
	expect(ornic_alloc_parent_domain(ctx, &attr), EINVAL, "cannot have a parent domain");
	attr.pd = NULL;
	expect(ornic_alloc_parent_domain(ctx, &attr), EINVAL, "needs a protection domain");
	assert_int_equal(ornic_dealloc_pd(parent), 0);
}

static void test_dm(void **state)
{
	struct ibv_alloc_dm_attr attr = { .length = 64, .comp_mask = 1 };

	(void)state;
	expect(ornic_alloc_dm(ctx, &attr), EOPNOTSUPP, "comp_mask of device memory");
}

/* Check that a verb returned this errno and its reason in the log. */
static void expect_errno(int ret, int err, const char *reason)
{
	errno = ret;
	expect(NULL, err, reason);
}

static void test_resize_cq(void **state)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(IBV_QPT_RC);
	struct ibv_qp *qp = ornic_create_qp_ex(ctx, &attr);
	struct ibv_cq *cq = &rig.cq->vcq.cq;

	(void)state;
	assert_non_null(qp);
	rig_state(to_oqp(qp), IBV_QPS_RTS);
	expect_errno(ornic_resize_cq(cq, 0), EINVAL, "needs entries");
	expect_errno(ornic_resize_cq(cq, -1), EINVAL, "needs entries");
	rig.ctx->limits.max_cqe = 64;
	expect_errno(ornic_resize_cq(cq, 65), EINVAL, "cqe is 65, the limit is 64");
	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

		assert_int_equal(ornic_post_send(qp, &wr, &bad), 0);
	}
	assert_int_equal(ornic_resize_cq(cq, 2), 0);
	assert_int_equal(kernel.log[0], 0);
	for (int i = 0; i < 3; i++)
		rig_complete(&rig, cqe_of(to_oqp(qp)->qpn, i, ORNIC_WC_SEND, 0));
	expect_errno(ornic_resize_cq(cq, 2), EINVAL, "a CQ of 2 entries is too small");
	assert_int_equal(ornic_destroy_qp(qp), 0);
}

static void test_resize_srq(void **state)
{
	struct ibv_srq_attr attr = { .max_wr = 0 };
	struct ibv_srq_init_attr_ex init = srq_attr(IBV_SRQT_BASIC);
	struct ibv_srq *srq = ornic_create_srq_ex(ctx, &init);
	struct ibv_recv_wr wr = {}, *bad;

	(void)state;
	assert_non_null(srq);
	expect_errno(ornic_resize_srq(to_osrq(srq), &attr, IBV_SRQ_MAX_WR), EINVAL,
		     "needs entries");
	attr.max_wr = 17;
	expect_errno(ornic_resize_srq(to_osrq(srq), &attr, IBV_SRQ_MAX_WR), EINVAL,
		     "max_wr of an SRQ is 17, the limit is 16");
	for (int i = 0; i < 5; i++)
		assert_int_equal(ornic_post_srq_recv(srq, &wr, &bad), 0);
	attr.max_wr = 4;
	expect_errno(ornic_resize_srq(to_osrq(srq), &attr, IBV_SRQ_MAX_WR), EINVAL,
		     "more receives are posted than 4");
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_qp_parts), RIG_TEST(test_qp_flags), RIG_TEST(test_qp_limits),
		RIG_TEST(test_cq), RIG_TEST(test_srq), RIG_TEST(test_srq_parts), RIG_TEST(test_wq),
		RIG_TEST(test_rss), RIG_TEST(test_ah), RIG_TEST(test_parent_domain),
		RIG_TEST(test_dm), RIG_TEST(test_resize_cq), RIG_TEST(test_resize_srq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
