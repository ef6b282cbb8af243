// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, locks: which locks an operation takes, in which order (ornic.h), as the test's kernel
 * notes each lock; verbs of one thread do not wait for another thread that waits for it; numbers
 * that are reused too early. rig_close() checks that all locks were released and destroyed.
 */
#include <errno.h>
#include <unistd.h>

#include "test_libornic_kernel.h"

#define PATIENCE_MS	3000u		/* longer than any verb waits */

static struct rig rig;
static struct ibv_context *ctx;
static struct ornic_cq *other;
static unsigned int destroyed;

/* The device's answer to a resize: no entries are left. */
static void change_rings(struct ibv_cq *cq)
{
	uint32_t index = atomic_load(&to_ocq(cq)->index);

	kernel.resized_at = (struct ornic_uresp_resize_cq){ .producer = index, .consumer = index };
}

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	rig.ctx->limits.log_max_srq = 5;
	rig.ctx->limits.max_srq_sge = 1;
	other = to_ocq(ornic_create_cq(ctx, 8, NULL, 0));
	assert_non_null(other);
	kernel.on_resize = change_rings;
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

static void holds_nothing(void)
{
	assert_int_equal(locks.held, 0);
	destroyed++;
}

static void watch_destroy(void)
{
	kernel.on_destroy = holds_nothing;
	locks_watch();
}

/* One queue at a time, each under the lock of its CQ. */
static void test_reset(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other), *crossed, *one;

	(void)state;
	kernel.qpn++;
	crossed = make_qp(other, rig.cq);
	kernel.qpn++;
	one = make_qp(other, other);
	locks_watch();
	ornic_qp_reset(qp);
	EXPECT(&rig.cq->lock.spin, &qp->sq.lock.spin, &other->lock.spin, &qp->rq.lock.spin);
	locks_watch();
	ornic_qp_reset(crossed);
	EXPECT(&other->lock.spin, &crossed->sq.lock.spin, &rig.cq->lock.spin,
	       &crossed->rq.lock.spin);
	locks_watch();
	ornic_qp_reset(one);
	EXPECT(&other->lock.spin, &one->sq.lock.spin, &other->lock.spin, &one->rq.lock.spin);
	assert_int_equal(ornic_destroy_qp(&one->vqp.qp), 0);
	assert_int_equal(ornic_destroy_qp(&crossed->vqp.qp), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* The command may wait for the application, so no lock is held. */
static void test_destroy_qp(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);

	(void)state;
	watch_destroy();
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&rig.cq->lock.spin, &other->lock.spin);
}

static struct ibv_wq *make_wq(struct ornic_cq *cq)
{
	struct ibv_wq *wq = rig_wq(&rig, cq);

	assert_non_null(wq);
	return wq;
}

static void test_destroy_wq(void **state)
{
	struct ibv_wq *wq = make_wq(other);

	(void)state;
	watch_destroy();
	assert_int_equal(ornic_destroy_wq(wq), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&other->lock.spin);
}

static void test_destroy_xrc_srq(void **state)
{
	struct ornic_srq *srq = make_srq(true);

	(void)state;
	watch_destroy();
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(destroyed, 1);
	EXPECT(&rig.cq->lock.spin);
}

static void test_create(void **state)
{
	struct ornic_srq *srq;
	struct ornic_qp *qp;

	(void)state;
	locks_watch();
	qp = make_qp(rig.cq, other);
	srq = make_srq(true);
	assert_int_equal(locks.taken, 0);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static void test_resize_cq(void **state)
{
	(void)state;
	locks_watch();
	assert_int_equal(ornic_resize_cq(&rig.cq->vcq.cq, 16), 0);
	EXPECT(&rig.cq->lock.spin, &rig.cq->arm_lock);
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
	assert_int_equal(ornic_srq_posted(srq, 1), 1);
	EXPECT(&srq->wq.lock.spin);
	assert_int_equal(ornic_srq_posted(srq, 1), 0);
	assert_int_equal(ornic_srq_posted(srq, 2), 1);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static pthread_t destroyer;
static _Atomic bool asked, acknowledged, gave_up;

/* A destroy command that returns when the application has acknowledged an event of the object. */
static void wait_for_application(void)
{
	if (!pthread_equal(pthread_self(), destroyer))
		return;
	atomic_store(&asked, true);
	for (unsigned int ms = 0; !atomic_load(&acknowledged); ms++) {
		if (ms == PATIENCE_MS) {
			atomic_store(&gave_up, true);
			return;
		}
		usleep(1000);
	}
}

/* Create and destroy objects of rig.cq, and resize it. */
static void use_verbs(void)
{
	struct ornic_srq *srq;
	struct ornic_qp *qp;
	struct ibv_wq *wq;

	kernel.qpn = 0x500;
	qp = make_qp(rig.cq, rig.cq);
	kernel.qpn = 0x501;
	wq = make_wq(rig.cq);
	kernel.srqn = 0x78;
	srq = make_srq(true);
	assert_int_equal(ornic_resize_cq(&rig.cq->vcq.cq, 16), 0);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_wq(wq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* The thread that gets the events uses verbs before it acknowledges. */
static void *handle_event(void *arg)
{
	while (!atomic_load(&asked))
		usleep(1000);
	use_verbs();
	atomic_store(&acknowledged, true);
	return arg;
}

static pthread_t begin_destroy(void)
{
	pthread_t thread;

	destroyer = pthread_self();
	atomic_store(&asked, false);
	atomic_store(&acknowledged, false);
	kernel.on_destroy = wait_for_application;
	assert_int_equal(pthread_create(&thread, NULL, handle_event, NULL), 0);
	return thread;
}

static void end_destroy(pthread_t thread)
{
	pthread_join(thread, NULL);
	kernel.on_destroy = NULL;
	assert_false(atomic_load(&gave_up));
}

/* Verbs do not wait for a destroy that waits for an acknowledgement. */
static void test_destroy_waits_for_event(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);
	struct ornic_srq *srq = make_srq(true);
	struct ibv_wq *wq;
	pthread_t thread;

	(void)state;
	kernel.qpn++;
	wq = make_wq(other);
	thread = begin_destroy();
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	end_destroy(thread);
	thread = begin_destroy();
	assert_int_equal(ornic_destroy_wq(wq), 0);
	end_destroy(thread);
	thread = begin_destroy();
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	end_destroy(thread);
}

static void *destroy_run(void *arg)
{
	assert_int_equal(ornic_destroy_qp(arg), 0);
	return NULL;
}

static void *resize_run(void *arg)
{
	assert_int_equal(ornic_resize_cq(arg, 16), 0);
	return NULL;
}

/* The device completes the next send of @qp in @other. */
static void complete_in_other(struct ornic_qp *qp, uint32_t id)
{
	struct ornic_cqe cqe = cqe_of(qp->qpn, id, ORNIC_WC_SEND, 0);
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;

	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad), 0);
	cqe.phase = ORNIC_PHASE;
	other->mem.ring[atomic_load(&other->index)] = cqe;
}

/* Poll @other, and use verbs while another thread waits for its lock. */
static void poll_meanwhile(void *(*run)(void *), void *object)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *ex = &other->vcq.cq_ex;
	struct ornic_qp *qp;
	pthread_t thread;

	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(pthread_create(&thread, NULL, run, object), 0);
	usleep(50000);
	use_verbs();
	kernel.qpn = 0x600;
	qp = make_qp(other, other);
	ibv_end_poll(ex);
	pthread_join(thread, NULL);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* Verbs in a poll do not wait for a thread that waits for the end of the poll; or SIGALRM kills. */
static void test_poll_meanwhile(void **state)
{
	struct ornic_qp *qp = make_qp(other, other), *doomed;

	(void)state;
	kernel.qpn++;
	doomed = make_qp(other, other);
	ornic_cq_set_reader(other, 0);
	rig_state(qp, IBV_QPS_RTS);
	alarm(20);
	complete_in_other(qp, 0);
	poll_meanwhile(destroy_run, &doomed->vqp.qp);
	complete_in_other(qp, 1);
	poll_meanwhile(resize_run, &other->vcq.cq);
	alarm(0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static pthread_t creator;
static struct ornic_qp *successor;

static void *create_run(void *arg)
{
	successor = make_qp(rig.cq, other);
	return arg;
}

/* Another thread gets the number before the first one has dropped the completions. */
static void reuse_number(void)
{
	kernel.on_destroy = NULL;
	assert_int_equal(pthread_create(&creator, NULL, create_run, NULL), 0);
	usleep(50000);
}

/* ORN-CQ-19: the new queue pair does not get the completions of the old one. */
static void test_number_reused(void **state)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ornic_qp *qp = make_qp(rig.cq, other);
	struct ibv_wc wc;

	(void)state;
	rig_state(qp, IBV_QPS_RTS);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad), 0);
	rig_complete(&rig, cqe_of(qp->qpn, 0, ORNIC_WC_SEND, 0));
	kernel.on_destroy = reuse_number;
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	pthread_join(creator, NULL);
	assert_int_equal(successor->qpn, kernel.qpn);
	rig_state(successor, IBV_QPS_RTS);
	assert_int_equal(ornic_post_send(&successor->vqp.qp, &send, &bad), 0);
	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 1, &wc), 0);
	rig_complete(&rig, cqe_of(kernel.qpn, 0, ORNIC_WC_SEND, 0));
	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(ornic_destroy_qp(&successor->vqp.qp), 0);
}

static void expect_number_in_use(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &other->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};

	kernel.on_destroy = NULL;
	assert_null(ornic_create_qp(rig.pd, &attr));
	assert_int_equal(errno, EAGAIN);
}

/* A number that stays in use: create fails, and can be repeated. Either queue may be the one. */
static void test_number_in_use(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);

	(void)state;
	kernel.on_destroy = expect_number_in_use;
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	assert_int_equal(kernel.qps_destroyed, 2);
	assert_int_equal(ornic_qp_table_insert(&rig.ctx->recvs, kernel.qpn, other, &rig), 0);
	expect_number_in_use();
	assert_null(ornic_qp_table_find(&rig.ctx->sends, kernel.qpn, rig.cq));
	ornic_qp_table_remove(&rig.ctx->recvs, kernel.qpn);
	qp = make_qp(rig.cq, other);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* A CQ has no lock only if the application asks for that by flag and mask. */
static void test_single_threaded(void **state)
{
	static const struct {
		uint32_t mask, flags;
		bool lock;
	} cases[] = {
		{ 0, 0, true }, { 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, true },
		{ IBV_CQ_INIT_ATTR_MASK_FLAGS, 0, true },
		{ IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, true },
		{ IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_cq_init_attr_ex attr = {
			.cqe = 8, .comp_mask = cases[i].mask, .flags = cases[i].flags,
		};
		struct ibv_cq_ex *cq = ornic_create_cq_ex(ctx, &attr);

		assert_non_null(cq);
		assert_int_equal(to_ocq_ex(cq)->lock.needed, cases[i].lock);
		assert_int_equal(ornic_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
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
		T(test_destroy_waits_for_event),
		T(test_poll_meanwhile),
		T(test_number_reused),
		T(test_number_in_use),
		T(test_single_threaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
