// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, the ends of queues: a queue pair with two CQs is destroyed or reset with unpolled
 * completions while others post; work queues; rings that fill a page.
 */
#include <errno.h>
#include <unistd.h>

#include "test_libornic_kernel.h"

static struct rig rig;
static struct ibv_context *ctx;
static struct ornic_cq *other;

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	other = to_ocq(ornic_create_cq(ctx, 8, NULL, 0));
	assert_non_null(other);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
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
	rig_state(to_oqp(qp), IBV_QPS_RTS);
	return to_oqp(qp);
}

static void post(struct ornic_qp *qp)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;

	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad_send), 0);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &recv, &bad_recv), 0);
}

/* The device completes into a CQ whose ring has not wrapped. */
static void complete(struct ornic_cq *cq, uint32_t index, struct ornic_cqe cqe)
{
	cqe.phase = ORNIC_PHASE;
	cq->mem.ring[index] = cqe;
}

static int polled(struct ornic_cq *cq)
{
	struct ibv_wc wc[8];

	return ornic_poll_cq(&cq->vcq.cq, 8, wc);
}

/*
 * ORN-CQ-19: unpolled completions in both CQs do not count for the next queue pair with the
 * number.
 */
static void destroy_with(struct ornic_cq *send, struct ornic_cq *recv)
{
	struct ornic_qp *qp = make_qp(send, recv);

	post(qp);
	complete(send, 0, cqe_of(qp->qpn, 0, ORNIC_WC_SEND, 0));
	complete(recv, 0, cqe_of(qp->qpn, 0, ORNIC_WC_RECV, 0));
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	qp = make_qp(send, recv);
	post(qp);
	assert_int_equal(polled(send), 0);
	assert_int_equal(polled(recv), 0);
	complete(send, 1, cqe_of(qp->qpn, 0, ORNIC_WC_SEND, 0));
	complete(recv, 1, cqe_of(qp->qpn, 0, ORNIC_WC_RECV, 0));
	assert_int_equal(polled(send), 1);
	assert_int_equal(polled(recv), 1);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static void test_destroy_two_cqs(void **state)
{
	(void)state;
	destroy_with(rig.cq, other);
}

/* Either CQ may have the lower number. */
static void test_destroy_two_cqs_crossed(void **state)
{
	(void)state;
	destroy_with(other, rig.cq);
}

/* Sends and receives are dropped separately: the number of one may have been reused already. */
static void test_drop_one_kind(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, rig.cq);
	struct ibv_wc wc[2];

	(void)state;
	for (int recv = 0; recv < 2; recv++) {
		post(qp);
		complete(rig.cq, 2 * recv, cqe_of(qp->qpn, recv, ORNIC_WC_SEND, 0));
		complete(rig.cq, 2 * recv + 1, cqe_of(qp->qpn, recv, ORNIC_WC_RECV, 0));
		ornic_cq_drop_qp(rig.cq, qp, recv);
		assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 2, wc), 1);
		assert_int_equal(wc[0].opcode, recv ? IBV_WC_SEND : IBV_WC_RECV);
	}
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* A send is dropped whatever SRQ it names: the number of an SRQ belongs to receives. */
static void test_drop_send_that_names_an_srq(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, rig.cq);
	struct ornic_cqe cqe = cqe_of(qp->qpn, 0, ORNIC_WC_SEND, 0);
	struct ibv_srq *srq;

	(void)state;
	rig.ctx->limits.log_max_srq = 5;
	rig.ctx->limits.max_srq_sge = 1;
	srq = rig_xsrq(&rig);
	assert_non_null(srq);
	cqe.srqn = htole32(to_osrq(srq)->srqn);
	complete(rig.cq, 0, cqe);
	ornic_cq_drop_qp(rig.cq, qp, false);
	assert_int_equal(le32toh(rig.cq->mem.ring[0].qpn), ORNIC_CQE_DROPPED);
	assert_int_equal(ornic_destroy_srq(srq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/*
 * The kernel does not know the CQ for receives of an XRC initiator, so the application can destroy
 * it first. Neither RESET nor destroy touches it: -fsanitize=address finds a use of freed memory.
 */
static void test_xrc_initiator_ignores_recv_cq(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = ornic_create_cq(ctx, 8, NULL, 0),
		.qp_type = IBV_QPT_XRC_SEND, .cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ornic_qp *qp;

	(void)state;
	assert_non_null(attr.recv_cq);
	qp = to_oqp(ornic_create_qp_ex(ctx, &attr));
	assert_non_null(qp);
	assert_int_equal(ornic_destroy_cq(attr.recv_cq), 0);
	rig_state(qp, IBV_QPS_RTS);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &send, &bad_send), 0);
	complete(rig.cq, 0, cqe_of(qp->qpn, 0, ORNIC_WC_SEND, 0));
	rig_state(qp, IBV_QPS_RESET);
	assert_int_equal(polled(rig.cq), 0);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* A poll that finds nothing, or has a wrong argument, releases the CQ's lock. */
static void test_start_poll_unlocks(void **state)
{
	struct ibv_poll_cq_attr attr = {}, wrong = { .comp_mask = 1 };
	struct ibv_cq_ex *ex = &other->vcq.cq_ex;

	(void)state;
	ornic_cq_set_reader(other, 0);
	assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
	assert_int_equal(pthread_spin_trylock(&other->lock.spin), 0);
	ornic_unlock(&other->lock);
	assert_int_equal(ibv_start_poll(ex, &wrong), EINVAL);
	assert_int_equal(pthread_spin_trylock(&other->lock.spin), 0);
	ornic_unlock(&other->lock);
}

static struct ornic_qp *resetting;
static _Atomic bool reset_done;

static void *reset_run(void *arg)
{
	ornic_qp_reset(resetting);
	atomic_store(&reset_done, true);
	return arg;
}

/* While another thread is inside one of its locks, a queue is not reset. */
static void test_reset_waits(void **state)
{
	struct ornic_qp *qp = make_qp(rig.cq, other);
	const struct { struct ornic_lock *lock; struct ornic_wq *wq; } held[] = {
		{ &rig.cq->lock, &qp->sq }, { &other->lock, &qp->rq },
		{ &qp->sq.lock, &qp->sq }, { &qp->rq.lock, &qp->rq },
	};

	(void)state;
	resetting = qp;
	for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
		pthread_t thread;

		post(qp);
		atomic_store(&reset_done, false);
		ornic_lock(held[i].lock);
		assert_int_equal(pthread_create(&thread, NULL, reset_run, NULL), 0);
		usleep(50000);
		assert_false(atomic_load(&reset_done));
		assert_int_equal(atomic_load(&held[i].wq->head), 1);
		ornic_unlock(held[i].lock);
		pthread_join(thread, NULL);
		assert_int_equal(atomic_load(&qp->sq.head), 0);
		assert_int_equal(atomic_load(&qp->rq.head), 0);
		rig_state(qp, IBV_QPS_RTS);
	}
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		assert_int_equal(pthread_spin_trylock(&held[i].lock->spin), 0);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		ornic_unlock(held[i].lock);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

static int post_wq(struct ibv_wq *wq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad = NULL;
	int ret = ibv_post_wq_recv(wq, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

static void wq_state(struct ibv_wq *wq, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = to };

	assert_int_equal(ornic_modify_wq(wq, &attr), 0);
}

/* A work queue: sizes, posting by state, completion, entries dropped by reset and destroy. */
static void test_wq(void **state)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 3, .max_sge = 2, .pd = rig.pd,
		.cq = &rig.cq->vcq.cq,
	};
	struct ibv_wq *wq = ornic_create_wq(ctx, &attr);
	struct ibv_wq_attr moved = { .attr_mask = 0, .wq_state = IBV_WQS_RESET };
	struct ibv_wc wc;

	(void)state;
	assert_non_null(wq);
	assert_int_equal(attr.max_wr, 4);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(kernel.qp_req.sq_log, ORNIC_ABI_NO_RING);
	assert_int_equal(kernel.qp_req.rq_log, 2);
	assert_int_equal(kernel.qp_req.rq_stride, 6);
	assert_int_equal(post_wq(wq, 1), EINVAL);
	wq_state(wq, IBV_WQS_RDY);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post_wq(wq, 10 + i), 0);
	assert_int_equal(post_wq(wq, 14), ENOMEM);
	assert_int_equal(rig_doorbell(&rig), kernel.qpn | (uint64_t)ORNIC_DB_RQ << 24 | 4ull << 32);
	rig_complete(&rig, cqe_of(kernel.qpn, 0, ORNIC_WC_RECV, 0));
	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 10);
	/* neither another attribute nor a failure is a reset */
	assert_int_equal(ornic_modify_wq(wq, &moved), 0);
	kernel.fail = EPERM;
	moved.attr_mask = IBV_WQ_ATTR_STATE;
	assert_int_equal(ornic_modify_wq(wq, &moved), EPERM);
	rig_complete(&rig, cqe_of(kernel.qpn, 1, ORNIC_WC_RECV, 0));
	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 11);
	rig_complete(&rig, cqe_of(kernel.qpn, 2, ORNIC_WC_RECV, 0));
	wq_state(wq, IBV_WQS_RESET);
	wq_state(wq, IBV_WQS_RDY);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post_wq(wq, 20 + i), 0);
	assert_int_equal(polled(rig.cq), 0);
	rig_complete(&rig, cqe_of(kernel.qpn, 0, ORNIC_WC_RECV, 0));
	assert_int_equal(ornic_destroy_wq(wq), 0);
	assert_int_equal(polled(rig.cq), 0);
}

/* The kernel gets the parameters of an RSS queue pair, to which nothing can be posted. */
static void test_rss(void **state)
{
	static struct ibv_rwq_ind_table table;
	uint8_t key[ORNIC_RSS_KEY_BYTES];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = rig.pd, .rwq_ind_tbl = &table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key,
				  IBV_RX_HASH_SRC_IPV4 | 0x80000000 },
	};
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_qp *qp;

	(void)state;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = i;
	qp = ornic_create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(kernel.rss_req.function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(kernel.rss_req.fields, IBV_RX_HASH_SRC_IPV4 | 0x80000000);
	assert_memory_equal(kernel.rss_req.key, key, sizeof(key));
	assert_int_equal(kernel.rss_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE);
	assert_int_equal(to_oqp(qp)->qpn, kernel.qpn);
	rig_state(to_oqp(qp), IBV_QPS_RTS);
	assert_int_equal(ornic_post_send(qp, &send, &bad_send), EINVAL);
	assert_int_equal(ornic_post_recv(qp, &recv, &bad_recv), EINVAL);
	rig_state(to_oqp(qp), IBV_QPS_RESET);
	assert_int_equal(ornic_destroy_qp(qp), 0);
}

/* Rings that fill their pages: the record has a page more. */
static void test_page_sized(void **state)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct ornic_srq_mem srq;
	struct ornic_cq_mem cq;

	(void)state;
	assert_int_equal(ornic_srq_mem_alloc(&srq, page >> 5, 5, NULL), 0);
	assert_int_equal(srq.buf.bytes, 2 * page);
	assert_ptr_equal(srq.rec, (char *)srq.buf.addr + page);
	ornic_buf_free(&srq.buf);
	assert_int_equal(ornic_cq_mem_alloc(&cq, page >> 6, NULL), 0);
	assert_int_equal(cq.buf.bytes, 2 * page);
	assert_ptr_equal(cq.rec, (char *)cq.buf.addr + page);
	ornic_buf_free(&cq.buf);
}

/* Completions of a destroyed XRC SRQ are dropped on both sides of the ring's end. */
static void test_drop_srq_wraps(void **state)
{
	struct ornic_cqe cqe = cqe_of(0x456, 0, ORNIC_WC_RECV, 0);

	(void)state;
	atomic_store(&rig.cq->index, 6);
	rig.cq_index = 6;
	for (uint32_t i = 0; i < 8; i++) {
		cqe.srqn = htole32(i % 2 ? 0x78 : 0x77);
		cqe.opcode = i == 6 ? ORNIC_WC_SEND : ORNIC_WC_RECV;
		rig_complete(&rig, cqe);
	}
	ornic_cq_drop_srq(rig.cq, 0x77);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(le32toh(rig.cq->mem.ring[(6 + i) & 7].srqn),
				 i % 2 ? 0x78 : i == 6 ? 0x77 : ORNIC_NONE);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_destroy_two_cqs), RIG_TEST(test_destroy_two_cqs_crossed),
		RIG_TEST(test_drop_one_kind), RIG_TEST(test_drop_send_that_names_an_srq),
		RIG_TEST(test_xrc_initiator_ignores_recv_cq),
		RIG_TEST(test_start_poll_unlocks), RIG_TEST(test_reset_waits),
		RIG_TEST(test_wq), RIG_TEST(test_rss), RIG_TEST(test_page_sized),
		RIG_TEST(test_drop_srq_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
