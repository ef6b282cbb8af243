// SPDX-License-Identifier: GPL-2.0
/*
 * The provider's memory windows: bytes of bind and invalidate work requests, by both senders, and
 * the key after a bind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "test_libornic_kernel.h"

#define MW_CAP	{ .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
#define RIGHTS	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int setup(void **state)
{
	static struct rig rig;

	rig_open(&rig, 15);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	return 0;
}

static struct ibv_mr mr = { .lkey = 0x4a07 };
static struct ibv_mw window = { .rkey = 0x12345601, .type = IBV_MW_TYPE_2 };

static const struct ibv_mw_bind_info info = {
	.mr = &mr, .addr = 0x7f1234561000, .length = 0x2000,
	.mw_access_flags = RIGHTS | IBV_ACCESS_LOCAL_WRITE,
};

static const struct ornic_wqe_ctrl *wqe(struct ornic_qp *qp, uint32_t index)
{
	return (void *)((char *)qp->sq.ring + ((size_t)index << qp->sq.stride));
}

static void expect_ctrl(struct ornic_qp *qp, uint32_t index, uint8_t opcode, uint32_t key)
{
	const struct ornic_wqe_ctrl *c = wqe(qp, index);

	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->count, 0);
	assert_int_equal(le32toh(c->inv_key), key);
	assert_int_equal(le32toh(c->qpn), qp->qpn);
	assert_int_equal(le32toh(c->index), index);
}

static void expect_bind(struct ornic_qp *qp, uint32_t index, uint32_t key)
{
	const struct ornic_wqe_bind *b = (const void *)(wqe(qp, index) + 1);

	expect_ctrl(qp, index, ORNIC_WR_BIND_MW, 0);
	assert_int_equal(le64toh(b->addr), info.addr);
	assert_int_equal(le64toh(b->length), info.length);
	assert_int_equal(le32toh(b->lkey), mr.lkey);
	assert_int_equal(le32toh(b->key), key);
	assert_int_equal(le32toh(b->access), RIGHTS);
	assert_int_equal(b->mbz, 0);
}

static int post(struct ornic_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	return ornic_post_send(&qp->vqp.qp, &wr, &bad);
}

static void test_post_send(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, 0);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	memset(qp->sq.ring, 0xee, 4 << qp->sq.stride);
	wr.bind_mw.mw = &window;
	wr.bind_mw.rkey = 0x12345678;
	wr.bind_mw.bind_info = info;
	assert_int_equal(post(qp, wr), 0);
	expect_bind(qp, 0, 0x12345678);
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = 0x11223344;
	assert_int_equal(post(qp, wr), 0);
	expect_ctrl(qp, 1, ORNIC_WR_LOCAL_INV, 0x11223344);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	assert_int_equal(post(qp, wr), 0);
	expect_ctrl(qp, 2, ORNIC_WR_SEND_INV, 0x11223344);
}

static void test_refused(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	struct ibv_mw_bind_info bad = info;

	wr.bind_mw.bind_info = info;
	assert_int_equal(post(qp, wr), EINVAL);	/* no window */
	wr.bind_mw.mw = &window;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){};
	wr.bind_mw.bind_info.length = 1;	/* memory of no region, twice */
	assert_int_equal(post(qp, wr), EINVAL);
	wr.bind_mw.bind_info.length = 0;
	wr.bind_mw.bind_info.addr = 1;
	assert_int_equal(post(qp, wr), EINVAL);
	bad.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
	wr.bind_mw.bind_info = bad;
	assert_int_equal(post(qp, wr), EINVAL);
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(qp, wr), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, &window, 1, &bad);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, NULL, 1, &info);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 1);
	ibv_wr_set_sge(ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
}

static void test_builders(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);

	memset(qp->sq.ring, 0xee, 4 << qp->sq.stride);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_bind_mw(ex, &window, 0x12345678, &info);
	ibv_wr_local_inv(ex, 0x11223344);
	ibv_wr_send_inv(ex, 0x55667788);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_bind(qp, 0, 0x12345678);
	expect_ctrl(qp, 1, ORNIC_WR_LOCAL_INV, 0x11223344);
	expect_ctrl(qp, 2, ORNIC_WR_SEND_INV, 0x55667788);
}

/* ORN-MEM-75: the window gives the index of the key, the work request its tag, as with mlx5 and rxe. */
static void test_key(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = &window;
	wr.bind_mw.rkey = 0xdeadbe02;
	wr.bind_mw.bind_info = info;
	assert_int_equal(post(qp, wr), 0);
	expect_bind(qp, 0, 0x12345602);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_bind_mw(ex, &window, 0xff, &info);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_bind(qp, 1, 0x123456ff);
	assert_int_equal(window.rkey, 0x12345601);
}

/* A bind without region, address and length ends the last bind: device and libibverbs allow it. */
static void test_unbind(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	struct ibv_mw mw = { .rkey = 0x12301, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = {};

	memset(qp->sq.ring, 0xee, 4 << qp->sq.stride);
	assert_int_equal(ornic_bind_mw(&qp->vqp.qp, &mw, &bind), 0);
	assert_int_equal(mw.rkey, 0x12302);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_bind_mw(ex, &mw, 0x12303, &bind.bind_info);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ornic_wqe_bind want = { .key = htole32(0x12302 + i) };

		expect_ctrl(qp, i, ORNIC_WR_BIND_MW, 0);
		assert_memory_equal(wqe(qp, i) + 1, &want, sizeof(want));
	}
}

/* ibv_bind_mw(): the window gets its next key only if the bind was posted */
static void test_bind_mw(void **state)
{
	const struct ibv_qp_cap cap = MW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, cap, 0);
	struct ibv_mw mw = { .rkey = 0x123ff, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = { .wr_id = 5, .bind_info = info };

	assert_int_equal(ornic_bind_mw(&qp->vqp.qp, &mw, &bind), 0);
	assert_int_equal(mw.rkey, 0x12300);
	expect_bind(qp, 0, 0x12300);
	assert_int_equal(qp->sq.wr_id[0], 5);
	bind.bind_info.mr = NULL;
	assert_int_equal(ornic_bind_mw(&qp->vqp.qp, &mw, &bind), EINVAL);
	assert_int_equal(mw.rkey, 0x12300);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_post_send),
		TEST(test_refused),
		TEST(test_builders),
		TEST(test_unbind),
		TEST(test_key),
		TEST(test_bind_mw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
