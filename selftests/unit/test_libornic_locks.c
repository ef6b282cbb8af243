// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, locks: which locks an operation takes, in which order (ornic.h), and that a number
 * stays taken while a command destroys its queue. No other thread runs: the test's kernel notes
 * each lock. rig_close() checks that all locks were released and destroyed.
 */
#include "test_libornic_kernel.h"

static struct rig rig;
static struct ibv_context *ctx;
static struct ornic_cq *other;
static const volatile void *wanted;	/* lock that a destroy command must find held */
static unsigned int destroyed;

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	rig.ctx->limits.log_max_srq = 5;
	rig.ctx->limits.max_srq_sge = 1;
	other = to_ocq(ornic_create_cq(ctx, 8, NULL, 0));
	assert_non_null(other);
	destroyed = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kernel.on_destroy = NULL;
	assert_int_equal(ornic_destroy_cq(&other->vcq.cq), 0);
	rig_close(&rig);
	return 0;
}

static struct ornic_qp *make_qp(struct ornic_cq *send, struct ornic_cq *recv)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &send->vcq.cq, .recv_cq = &recv->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(ctx, &attr);

	assert_non_null(qp);
	return to_oqp(qp);
}

static struct ornic_srq *make_srq(bool xrc)
{
	static struct verbs_xrcd xrcd;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .pd = rig.pd, .xrcd = &xrcd.xrcd,
		.cq = &rig.cq->vcq.cq, .srq_type = xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     (xrc ? IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ : 0),
	};
	struct ibv_srq *srq = ornic_create_srq_ex(ctx, &attr);

	assert_non_null(srq);
	return to_osrq(srq);
}

/* Check that these locks were taken since locks_watch(), in this order, and released. */
static void expect_locks(unsigned int n, const volatile void *const *want)
{
	assert_int_equal(locks.taken, n);
	for (unsigned int i = 0; i < n; i++)
		assert_ptr_equal(locks.order[i], want[i]);
	assert_int_equal(locks.held, 0);
}

#define EXPECT(...)								\
	do {									\
		const volatile void *const want[] = { __VA_ARGS__ };		\
										\
		expect_locks(ARRAY_SIZE(want), want);				\
	} while (0)

static void found_held(void)
{
	assert_true(lock_is_held(wanted));
	destroyed++;
}

static void expect_held(const volatile void *lock)
{
	wanted = lock;
	kernel.on_destroy = found_held;
	locks_watch();
}

/* The CQ with the lower number is locked first, for either use of the CQs. */
static void test_reset(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other), *crossed = make_qp(other, rig.cq);
	struct ornic_qp *one = make_qp(other, other);

	(void)state;
	locks_watch();
	ornic_qp_reset(qp);
	EXPECT(&rig.cq->lock.spin, &other->lock.spin, &qp->sq.lock.spin, &qp->rq.lock.spin);
	locks_watch();
	ornic_qp_reset(crossed);
	EXPECT(&rig.cq->lock.spin, &other->lock.spin, &crossed->sq.lock.spin,
	       &crossed->rq.lock.spin);
	locks_watch();
	ornic_qp_reset(one);
	EXPECT(&other->lock.spin, &one->sq.lock.spin, &one->rq.lock.spin);
	assert_int_equal(ornic_destroy_qp(&one->vqp.qp), 0);
	assert_int_equal(ornic_destroy_qp(&crossed->vqp.qp), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* ORN-CQ-19: the number is not reused before its completions are gone. */
static void test_destroy_qp(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);

	(void)state;
	expect_held(&rig.ctx->qp_table.mutex);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&rig.ctx->qp_table.mutex, &rig.cq->lock.spin, &other->lock.spin);
}

static void test_destroy_wq(void **state)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = rig.pd,
		.cq = &other->vcq.cq,
	};
	struct ibv_wq *wq = ornic_create_wq(ctx, &attr);

	(void)state;
	assert_non_null(wq);
	expect_held(&rig.ctx->qp_table.mutex);
	assert_int_equal(ornic_destroy_wq(wq), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&rig.ctx->qp_table.mutex, &other->lock.spin);
}

static void test_destroy_xrc_srq(void **state)
{
	struct ornic_srq *srq = make_srq(true);

	(void)state;
	expect_held(&rig.ctx->srq_table.mutex);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&rig.ctx->srq_table.mutex, &rig.cq->lock.spin);
}

/* The kernel answers under no lock, but the number is entered under the table's lock. */
static void test_create(void **state)
{
	struct ornic_srq *srq;
	struct ornic_qp *qp;

	(void)state;
	locks_watch();
	qp = make_qp(rig.cq, other);
	EXPECT(&rig.ctx->qp_table.mutex);
	locks_watch();
	srq = make_srq(true);
	EXPECT(&rig.ctx->srq_table.mutex);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static void test_resize_cq(void **state)
{
	(void)state;
	kernel.resized_at.consumer = 0;
	locks_watch();
	assert_int_equal(ornic_resize_cq(&rig.cq->vcq.cq, 16), 0);
	EXPECT(&rig.ctx->qp_table.mutex, &rig.ctx->srq_table.mutex, &rig.cq->lock.spin,
	       &rig.cq->arm_lock);
}

/* Ids, both rings, the end: under the SRQ's lock each time, and its mutex around all of it. */
static void test_resize_srq(void **state)
{
	struct ibv_srq_attr attr = { .max_wr = 16 };
	struct ornic_srq *srq = make_srq(false);

	(void)state;
	locks_watch();
	assert_int_equal(ornic_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR), 0);
	EXPECT(&srq->resize, &srq->wq.lock.spin, &srq->wq.lock.spin, &srq->wq.lock.spin);
	attr.max_wr = 4;
	locks_watch();
	assert_int_equal(ornic_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR), 0);
	EXPECT(&srq->resize, &srq->wq.lock.spin, &srq->wq.lock.spin);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
}

static void test_post_and_poll(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);
	struct ornic_srq *srq = make_srq(false);
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_wc wc;

	(void)state;
	rig_state(qp, IBV_QPS_RTS);
	locks_watch();
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad_send), 0);
	EXPECT(&qp->sq.lock.spin);
	locks_watch();
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &recv, &bad_recv), 0);
	EXPECT(&qp->rq.lock.spin);
	locks_watch();
	assert_int_equal(ornic_post_srq_recv(&srq->vsrq.srq, &recv, &bad_recv), 0);
	EXPECT(&srq->wq.lock.spin);
	locks_watch();
	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 1, &wc), 0);
	EXPECT(&rig.cq->lock.spin);
	locks_watch();
	assert_int_equal(ornic_srq_posted(srq), 1);
	EXPECT(&srq->wq.lock.spin);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_reset),
		T(test_destroy_qp),
		T(test_destroy_wq),
		T(test_destroy_xrc_srq),
		T(test_create),
		T(test_resize_cq),
		T(test_resize_srq),
		T(test_post_and_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
