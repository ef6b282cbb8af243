// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, ibv_resize_cq: entries and waits are carried over to the new ring, while the device
 * writes behind them (ORN-CQ-20, 21, 22).
 */
#include <errno.h>

#include "test_libornic_kernel.h"

#define CAP ((struct ibv_qp_cap){ 64, 64, 1, 1, 0 })

static struct rig rig;
static unsigned int late;		/* completions between the switch and the command's end */
static uint32_t sent;

static struct ornic_cqe completion(uint32_t index)
{
	return cqe_of(rig.qp->qpn, index, ORNIC_WC_SEND, 0);
}

/* ORN-CQ-20: zeros, notify is ALWAYS. */
static void check_new_ring(const char *ring, size_t bytes)
{
	const struct ornic_rec *rec = (const struct ornic_rec *)(ring + bytes);
	const struct ornic_rec fresh = { .notify = htole32(ORNIC_NOTIFY_ALWAYS) };

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(ring[i], 0);
	assert_memory_equal(rec, &fresh, sizeof(fresh));
}

/* The device changes rings and continues in the new one. */
static void change_rings(struct ibv_cq *cq)
{
	struct ornic_cqe *ring = (void *)(uintptr_t)kernel.resize_req.buf_addr;
	uint32_t consumer = le32toh(to_ocq(cq)->mem.rec->host_index);

	check_new_ring((char *)ring, (size_t)64 << kernel.resize_req.log_entries);
	kernel.resized_at.producer = rig.cq_index;
	kernel.resized_at.consumer = consumer;
	rig.cq_index -= consumer;
	for (unsigned int i = 0; i < late; i++) {
		struct ornic_cqe cqe = completion(sent++);

		cqe.phase = ORNIC_PHASE;
		ring[rig.cq_index++] = cqe;
	}
}

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, 8);
	rig_qp(&rig, IBV_QPT_RC, CAP, 0);
	kernel.on_resize = change_rings;
	late = 0;
	sent = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static void post(int n)
{
	struct ibv_send_wr *bad;

	while (n--) {
		struct ibv_send_wr wr = { .wr_id = rig.qp->sq.head, .opcode = IBV_WR_SEND };

		assert_int_equal(ornic_post_send(&rig.qp->vqp.qp, &wr, &bad), 0);
	}
}

static void complete(int n)
{
	while (n--)
		rig_complete(&rig, completion(sent++));
}

/* Check that exactly the next @n completions are @first and those that follow. */
static void check_polled(uint32_t first, int n)
{
	struct ibv_wc wc[64];

	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 64, wc), n);
	for (int i = 0; i < n; i++) {
		assert_int_equal(wc[i].wr_id, first + i);
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	}
}

static void check_polled_any(int n)
{
	struct ibv_wc wc[64];

	assert_int_equal(ornic_poll_cq(&rig.cq->vcq.cq, 64, wc), n);
}

static int resize(int cqe)
{
	return ornic_resize_cq(&rig.cq->vcq.cq, cqe);
}

/* A smaller CQ could overflow: success without a change, as ibv_resize_cq(3) allows. */
static void expect_kept(struct ibv_cq *cq, int cqe)
{
	const struct ornic_cq_mem mem = to_ocq(cq)->mem;
	int before = cq->cqe;

	memset(&kernel.resize_req, 0, sizeof(kernel.resize_req));
	assert_int_equal(ornic_resize_cq(cq, cqe), 0);
	assert_int_equal(kernel.resize_req.buf_addr, 0);
	assert_int_equal(cq->cqe, before);
	assert_memory_equal(&mem, &to_ocq(cq)->mem, sizeof(mem));
}

static void keeps(int cqe)
{
	expect_kept(&rig.cq->vcq.cq, cqe);
}

/* ORN-CQ-22 */
static void test_keeps_entries(void **state)
{
	(void)state;
	post(20);
	complete(3);
	check_polled(0, 3);
	complete(5);
	late = 2;
	assert_int_equal(resize(9), 0);
	assert_int_equal(kernel.resize_req.log_entries, 4);
	assert_int_equal(rig.cq->vcq.cq.cqe, 16);
	assert_int_equal(le32toh(rig.cq->mem.rec->host_index), 0);
	complete(4);
	check_polled(3, 11);
	assert_int_equal(le32toh(rig.cq->mem.rec->host_index), 11);
	complete(6);
	check_polled(14, 6);
}

/* The old ring is in a lap whose phase is 0, and entries lie on both sides of its end. */
static void test_keeps_entries_of_later_laps(void **state)
{
	(void)state;
	post(40);
	complete(8);
	check_polled(0, 8);
	complete(6);
	check_polled(8, 6);
	complete(5);
	late = 1;
	assert_int_equal(resize(8), 0);
	check_polled(14, 6);
	complete(8);
	check_polled(20, 8);
	complete(8);
	check_polled(28, 8);
}

static void test_shrinks(void **state)
{
	(void)state;
	post(2);
	complete(2);
	assert_int_equal(resize(2), 0);
	assert_int_equal(rig.cq->vcq.cq.cqe, 2);
	check_polled(0, 2);
	post(2);
	complete(2);
	check_polled(2, 2);
	post(1);
	assert_int_equal(resize(1), 0);
	complete(1);
	check_polled(4, 1);
	post(1);
	complete(1);
	check_polled(5, 1);
}

/*
 * Unfinished work requests need room, too, before the device completes them. Only a CQ for fewer
 * entries than are unpolled is an error.
 */
static void test_keeps_room_for_work(void **state)
{
	struct ibv_recv_wr recv = {}, *bad;

	(void)state;
	post(4);
	complete(1);
	assert_int_equal(ornic_post_recv(&rig.qp->vqp.qp, &recv, &bad), 0);
	keeps(4);
	keeps(1);
	assert_int_equal(resize(5), 0);
	check_polled(0, 1);
	assert_int_equal(resize(4), 0);
	assert_int_equal(resize(3), 0);
	assert_int_equal(rig.cq->vcq.cq.cqe, 4);
	complete(2);
	keeps(2);
	complete(1);
	assert_int_equal(resize(2), EINVAL);
	assert_int_equal(rig.cq->vcq.cq.cqe, 4);
	check_polled(1, 3);
}

/* Entries of a destroyed queue pair need room until they are skipped, but are not unpolled. */
static void test_keeps_room_for_dropped(void **state)
{
	(void)state;
	post(8);
	complete(7);
	assert_int_equal(ornic_destroy_qp(&rig.qp->vqp.qp), 0);
	rig.qp = NULL;
	keeps(4);
	check_polled(0, 0);
	assert_int_equal(resize(4), 0);
	assert_int_equal(rig.cq->vcq.cq.cqe, 4);
}

/* Create an SRQ with @n posted receives: of type XRC if it has a CQ. */
static struct ornic_srq *make_srq(struct ibv_cq *cq, uint32_t n)
{
	static struct verbs_xrcd xrcd;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = cq ? IBV_SRQT_XRC : IBV_SRQT_BASIC, .pd = rig.pd,
		.xrcd = &xrcd.xrcd, .cq = cq,
	};
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_srq *srq;

	rig.ctx->limits.log_max_srq = 4;
	rig.ctx->limits.max_srq_sge = 1;
	if (cq)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	srq = ornic_create_srq_ex(&rig.ctx->ibv_ctx.context, &attr);
	assert_non_null(srq);
	while (n--)
		assert_int_equal(ornic_post_srq_recv(srq, &wr, &bad), 0);
	return to_osrq(srq);
}

static struct ornic_qp *make_srq_qp(struct ornic_srq *srq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = recv_cq, .srq = &srq->vsrq.srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 }, .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(&rig.ctx->ibv_ctx.context, &attr);

	assert_non_null(qp);
	kernel.qpn++;
	return to_oqp(qp);
}

/* So do receives of SRQs: each counts once, if a queue pair may complete it here. */
static void test_keeps_room_for_srqs(void **state)
{
	struct ibv_cq *other = ornic_create_cq(&rig.ctx->ibv_ctx.context, 8, NULL, 0);
	struct ornic_srq *srq = make_srq(NULL, 6);
	struct ornic_srq *elsewhere = make_srq(NULL, 16);
	struct ornic_qp *qp[3];
	struct ornic_cqe cqe;

	(void)state;
	assert_non_null(other);
	qp[0] = make_srq_qp(srq, &rig.cq->vcq.cq);
	qp[1] = make_srq_qp(srq, &rig.cq->vcq.cq);
	qp[2] = make_srq_qp(elsewhere, other);
	assert_int_equal(resize(16), 0);
	keeps(4);
	expect_kept(other, 4);
	assert_int_equal(resize(8), 0);

	/* two of them complete and are polled */
	for (uint32_t id = 0; id < 2; id++) {
		cqe = cqe_of(qp[0]->qpn, id, ORNIC_WC_RECV, 0);
		cqe.srqn = htole32(srq->srqn);
		rig_complete(&rig, cqe);
	}
	keeps(4);
	check_polled_any(2);
	assert_int_equal(resize(4), 0);
	for (size_t i = 0; i < ARRAY_SIZE(qp); i++)
		assert_int_equal(ornic_destroy_qp(&qp[i]->vqp.qp), 0);
	assert_int_equal(ornic_destroy_srq(&srq->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_srq(&elsewhere->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_cq(other), 0);
}

/* An XRC SRQ completes to its own CQ, for any number of queue pairs. */
static void test_keeps_room_for_xrc(void **state)
{
	struct ibv_cq *other = ornic_create_cq(&rig.ctx->ibv_ctx.context, 8, NULL, 0);
	struct ornic_srq *srq[2];

	(void)state;
	assert_non_null(other);
	srq[0] = make_srq(&rig.cq->vcq.cq, 3);
	kernel.srqn++;
	srq[1] = make_srq(other, 16);
	keeps(2);
	assert_int_equal(resize(4), 0);
	assert_int_equal(ornic_destroy_srq(&srq[0]->vsrq.srq), 0);
	assert_int_equal(resize(2), 0);
	assert_int_equal(ornic_destroy_srq(&srq[1]->vsrq.srq), 0);
	assert_int_equal(ornic_destroy_cq(other), 0);
}

static void test_refused(void **state)
{
	struct ornic_cq_mem mem = rig.cq->mem;

	(void)state;
	post(8);
	complete(8);
	kernel.fail = ENOMEM;
	assert_int_equal(resize(16), ENOMEM);
	assert_int_equal(kernel.log[0], 0);
	assert_memory_equal(&mem, &rig.cq->mem, sizeof(mem));
	memset(&kernel.resize_req, 0, sizeof(kernel.resize_req));
	assert_int_equal(resize(0), EINVAL);
	assert_int_equal(resize(-1), EINVAL);
	assert_int_equal(resize((1 << 16) + 1), EINVAL);
	assert_int_equal(kernel.resize_req.buf_addr, 0);
	check_polled(0, 8);
}

/* Completions of a destroyed queue pair that were dropped stay dropped. */
static void test_keeps_what_is_dropped(void **state)
{
	(void)state;
	post(4);
	complete(4);
	kernel.qpn = rig.qp->qpn;
	assert_int_equal(ornic_destroy_qp(&rig.qp->vqp.qp), 0);
	rig.qp = NULL;
	rig_qp(&rig, IBV_QPT_RC, CAP, 0);
	post(4);
	assert_int_equal(resize(16), 0);
	check_polled(0, 0);
	assert_int_equal(le32toh(rig.cq->mem.rec->host_index), 4);
}

/* The device reports another position in the old ring than the host knows. */
static void lie(struct ibv_cq *cq)
{
	(void)cq;
	kernel.resized_at = (struct ornic_uresp_resize_cq){ .producer = 100, .consumer = 98 };
	rig.cq_index = 2;
}

/* ORN-SEC-18: with impossible indices no entry is carried over; the new ring works. */
static void test_impossible_switch(void **state)
{
	(void)state;
	post(6);
	complete(3);
	kernel.on_resize = lie;
	assert_int_equal(resize(16), EIO);
	assert_int_equal(rig.cq->vcq.cq.cqe, 16);
	assert_int_equal(le32toh(rig.cq->mem.rec->host_index), 2);
	check_polled(0, 0);
	complete(1);
	check_polled(3, 1);
}

/* ORN-CQ-22: the wait is carried over, and the host rings the device. */
static void test_carries_the_arm_word(void **state)
{
	(void)state;
	post(20);
	complete(5);
	check_polled(0, 5);
	rig_doorbell(&rig);
	rig.cq->mem.rec->notify = 0;
	assert_int_equal(ornic_arm_cq(&rig.cq->vcq.cq, 1), 0);
	assert_int_equal(le32toh(rig.cq->mem.rec->arm), 0x11000005);
	assert_int_equal(rig_doorbell(&rig), 0);
	complete(1);
	check_polled(5, 1);
	assert_int_equal(resize(16), 0);
	/* index 6 became 0, so 5 is one before it */
	assert_int_equal(le32toh(rig.cq->mem.rec->arm), 0x11ffffff);
	assert_int_equal(rig_doorbell(&rig),
			 rig.cq->cqn | (uint64_t)ORNIC_DB_CQ_ARM << 24 | 0x11ffffffull << 32);
	ornic_cq_event(&rig.cq->vcq.cq);
	assert_int_equal(ornic_arm_cq(&rig.cq->vcq.cq, 0), 0);
	assert_int_equal(le32toh(rig.cq->mem.rec->arm), 0x22000000);
}

static void test_unarmed_stays_so(void **state)
{
	(void)state;
	rig_doorbell(&rig);
	assert_int_equal(resize(16), 0);
	assert_int_equal(rig.cq->mem.rec->arm, 0);
	assert_int_equal(rig_doorbell(&rig), 0);
}

static void test_moderate(void **state)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 16, 100 },
	};

	(void)state;
	assert_int_equal(ibv_modify_cq(&rig.cq->vcq.cq, &attr), 0);
	assert_int_equal(kernel.moderate.cq_count, 16);
	assert_int_equal(kernel.moderate.cq_period, 100);
	kernel.fail = EINVAL;
	assert_int_equal(ibv_modify_cq(&rig.cq->vcq.cq, &attr), EINVAL);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_keeps_entries), RIG_TEST(test_keeps_entries_of_later_laps),
		RIG_TEST(test_shrinks), RIG_TEST(test_keeps_room_for_work), RIG_TEST(test_refused),
		RIG_TEST(test_keeps_room_for_dropped),
		RIG_TEST(test_keeps_room_for_srqs), RIG_TEST(test_keeps_room_for_xrc),
		RIG_TEST(test_keeps_what_is_dropped), RIG_TEST(test_carries_the_arm_word),
		RIG_TEST(test_unarmed_stays_so), RIG_TEST(test_moderate),
		RIG_TEST(test_impossible_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
