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

/* Check a send. Its Ethernet segment between control and data requests no offload. */
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

/*
 * A frame has no source queue pair and no LID. A completion has flow tag and checksum in their
 * place, which must not be reported as such. No number has more than 24 bits.
 */
static void test_address(void **state)
{
	const struct ibv_qp_cap cap = RAW_CAP;
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RAW_PACKET, cap, 0);
	struct ornic_cqe cqe = cqe_of(qp->qpn, 0, ORNIC_WC_RECV, 0);
	struct ibv_cq_ex *ex = &rig->cq->vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_wc wc;

	cqe.flags = htole32(ORNIC_CQE_FLOW_TAG | ORNIC_CQE_CSUM_COMPLETE);
	cqe.src_qp = htole32(0xabcd1234);
	cqe.slid_csum = htole16(0x5678);
	ornic_cq_set_reader(rig->cq, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_FLOW_TAG);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
		cqe.wqe_id = htole32(i);
		if (i == 2)
			cqe.flags = 0;
		rig_complete(rig, cqe);
	}
	assert_int_equal(ornic_poll_cq(&rig->cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.src_qp, 0);
	assert_int_equal(wc.slid, 0);
	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(ibv_wc_read_src_qp(ex), 0);
	assert_int_equal(ibv_wc_read_slid(ex), 0);
	assert_int_equal(ibv_wc_read_flow_tag(ex), 0xabcd1234);
	ibv_end_poll(ex);
	assert_int_equal(ornic_poll_cq(&rig->cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.src_qp, 0xcd1234);
	assert_int_equal(wc.slid, 0x5678);
}

/* IBV_WC_IP_CSUM_OK covers both checksums. */
static void test_checksums(void **state)
{
	static const struct { uint32_t flags; bool ok; } cases[] = {
		{ 0, false }, { ORNIC_CQE_IP_CSUM_OK, false }, { ORNIC_CQE_L4_CSUM_OK, false },
		{ ORNIC_CQE_IP_CSUM_OK | ORNIC_CQE_L4_CSUM_OK, true },
	};
	const struct ibv_qp_cap cap = RAW_CAP;
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RAW_PACKET, cap, 0);
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_cqe cqe = cqe_of(qp->qpn, i, ORNIC_WC_RECV, 0);

		cqe.flags = htole32(cases[i].flags);
		assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
		rig_complete(rig, cqe);
		assert_int_equal(ornic_poll_cq(&rig->cq->vcq.cq, 1, &wc), 1);
		assert_int_equal(wc.wc_flags, cases[i].ok ? IBV_WC_IP_CSUM_OK : 0);
	}
}

static void expect_rate(uint32_t kbps, uint32_t burst, uint16_t packet)
{
	assert_int_equal(kernel.rate_kbps, kbps);
	assert_int_equal(kernel.rate_req.rate_burst, burst);
	assert_int_equal(kernel.rate_req.rate_packet, packet);
	assert_int_equal(kernel.rate_req.reserved, 0);
}

/* A rate limit by both verbs, and the device's capabilities. */
static void test_rate(void **state)
{
	struct ibv_qp_rate_limit_attr limit = {
		.rate_limit = 1000, .max_burst_sz = 0x12345678, .typical_pkt_sz = 1500,
	};
	struct ibv_qp_attr attr = { .rate_limit = 5000, .qp_state = IBV_QPS_RTS };
	const struct ibv_qp_cap cap = RAW_CAP;
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RAW_PACKET, cap, 0);
	struct ibv_context *ctx = &rig->ctx->ibv_ctx.context;
	struct ibv_device_attr_ex dev;

	assert_int_equal(ornic_modify_qp_rate_limit(&qp->vqp.qp, &limit), 0);
	expect_rate(1000, 0x12345678, 1500);
	ornic_wq_set_open(&qp->sq, false);
	assert_int_equal(ornic_modify_qp(&qp->vqp.qp, &attr, IBV_QP_RATE_LIMIT), 0);
	expect_rate(5000, 0, 0);
	assert_false(qp->sq.open);	/* the state is not valid without its mask */
	limit.comp_mask = 1;
	assert_int_equal(ornic_modify_qp_rate_limit(&qp->vqp.qp, &limit), EINVAL);
	expect_rate(5000, 0, 0);
	limit.comp_mask = 0;
	kernel.fail = EOPNOTSUPP;
	assert_int_equal(ornic_modify_qp_rate_limit(&qp->vqp.qp, &limit), EOPNOTSUPP);

	kernel.clocks = (struct ornic_uresp_query_device){
		.rate_qpts = 1u << IBV_QPT_RAW_PACKET, .rate_min_kbps = 3, .rate_max_kbps = 4,
	};
	assert_int_equal(ornic_query_device_ex(ctx, NULL, &dev, sizeof(dev)), 0);
	assert_int_equal(dev.packet_pacing_caps.qp_rate_limit_min, 3);
	assert_int_equal(dev.packet_pacing_caps.qp_rate_limit_max, 4);
	assert_int_equal(dev.packet_pacing_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	/* A program built before these capabilities has no room for them. */
	memset(&dev, 0xee, sizeof(dev));
	assert_int_equal(ornic_query_device_ex(ctx, NULL, &dev, offsetof(struct ibv_device_attr_ex,
									 packet_pacing_caps)), 0);
	assert_int_equal(dev.packet_pacing_caps.qp_rate_limit_min, 0xeeeeeeee);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_checksums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
