// SPDX-License-Identifier: GPL-2.0
/*
 * The provider's raw packet queue pairs: bytes of a send, by both senders, and the
 * operations that such a queue pair does not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "test_libornic_kernel.h"

#define RAW_CAP	{ .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1 }

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

/* Between control segment and data nothing is asked of the device. */
static void expect_send(struct ornic_qp *qp, uint32_t index)
{
	const struct ornic_wqe_ctrl *c =
		(void *)((char *)qp->sq.ring + ((size_t)index << qp->sq.stride));
	static const struct ornic_wqe_eth nothing;
	const struct ornic_wqe_eth *eth = (const void *)(c + 1);
	const struct ornic_sge *sge = (const void *)(eth + 1);

	assert_int_equal(c->opcode, ORNIC_WR_SEND);
	assert_int_equal(le16toh(c->count), 1);
	assert_int_equal(le32toh(c->inv_key), 0);
	assert_int_equal(le32toh(c->index), index);
	assert_memory_equal(eth, &nothing, sizeof(nothing));
	assert_int_equal(le64toh(sge->addr), 0x7f0000001234);
	assert_int_equal(le32toh(sge->length), 60);
	assert_int_equal(le32toh(sge->lkey), 0x4a07);
}

static void test_send(void **state)
{
	const struct ibv_qp_cap cap = RAW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RAW_PACKET, cap, ORNIC_SEND_OPS_RAW);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	struct ibv_sge sge = { 0x7f0000001234, 60, 0x4a07 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	memset(qp->sq.ring, 0xee, 2 << qp->sq.stride);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), 0);
	expect_send(qp, 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_send(qp, 1);
}

static void test_refused(void **state)
{
	static const enum ibv_wr_opcode none[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
	};
	const struct ibv_qp_cap cap = RAW_CAP;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RAW_PACKET, cap, 0);
	struct ibv_sge sge = { 0x7f0000001234, 60, 0x4a07 };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct ibv_send_wr *bad, wr = {
			.opcode = none[i], .sg_list = &sge, .num_sge = 1,
		};

		assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
	}
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
