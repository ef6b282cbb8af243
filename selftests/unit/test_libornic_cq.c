// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, completions: polling and the extended reader with entries written by hand, also
 * hostile ones; arming; completions left after RESET and destroy (ORN-RNG-10, ORN-RNG-11,
 * ORN-CQ-1, ORN-QP-3).
 */
#include <errno.h>

#include "test_libornic_kernel.h"

#define CAP ((struct ibv_qp_cap){ 8, 8, 1, 1, 0 })

static int setup(void **state)
{
	static struct rig rig;

	rig_open(&rig, 8);
	rig_qp(&rig, IBV_QPT_RC, CAP, 0);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	return 0;
}

static void post_sends(struct ornic_qp *qp, int n)
{
	struct ibv_send_wr *bad;

	while (n--) {
		struct ibv_send_wr wr = {
			.wr_id = 0x1000 + qp->sq.head, .opcode = IBV_WR_SEND,
		};

		assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), 0);
	}
}

static void post_recvs(struct ornic_qp *qp, int n)
{
	struct ibv_recv_wr *bad;

	while (n--) {
		struct ibv_recv_wr wr = { .wr_id = 0x2000 + qp->rq.head };

		assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
	}
}

static int poll(struct rig *rig, struct ibv_wc *wc, int n)
{
	return ornic_poll_cq(&rig->cq->vcq.cq, n, wc);
}

static void test_wc_fields(void **state)
{
	struct rig *rig = *state;
	struct ornic_cqe cqe = cqe_of(0x123, 0, ORNIC_WC_RECV, 0);
	struct ibv_wc wc;

	cqe.byte_len = htole32(140);
	cqe.imm = htobe32(0xdeadbeef);
	cqe.src_qp = htole32(0x456);
	cqe.pkey_index = htole16(1);
	cqe.slid_csum = htole16(2);
	cqe.sl = 3;
	cqe.path_bits = 4;
	cqe.flags = htole32(ORNIC_CQE_GRH | ORNIC_CQE_WITH_IMM | ORNIC_CQE_IP_CSUM_OK |
			    ORNIC_CQE_L4_CSUM_OK | ORNIC_CQE_SMAC | ORNIC_CQE_SOLICITED);
	post_recvs(rig->qp, 3);
	assert_int_equal(poll(rig, &wc, 1), 0);
	rig_complete(rig, cqe);
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 0x2000);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 140);
	assert_int_equal(be32toh(wc.imm_data), 0xdeadbeef);
	assert_int_equal(wc.qp_num, 0x123);
	assert_int_equal(wc.src_qp, 0x456);
	assert_int_equal(wc.pkey_index, 1);
	assert_int_equal(wc.slid, 2);
	assert_int_equal(wc.sl, 3);
	assert_int_equal(wc.dlid_path_bits, 4);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_IP_CSUM_OK);

	/* the verbs' flag stands for both checksums */
	cqe.wqe_id = htole32(1);
	cqe.flags = htole32(ORNIC_CQE_IP_CSUM_OK);
	rig_complete(rig, cqe);
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.wc_flags, 0);

	cqe.wqe_id = htole32(2);
	cqe.flags = htole32(ORNIC_CQE_WITH_INV);
	cqe.inv_key = htole32(0x12345678);
	rig_complete(rig, cqe);
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, 0x12345678);
	assert_int_equal(poll(rig, &wc, 1), 0);
}

static void test_status(void **state)
{
	struct rig *rig = *state;
	const struct {
		uint8_t opcode, status;
		enum ibv_wc_opcode op;
		enum ibv_wc_status st;
	} t[] = {
		{ ORNIC_WC_RDMA_READ, ORNIC_WC_REM_ACCESS_ERR, IBV_WC_RDMA_READ,
		  IBV_WC_REM_ACCESS_ERR },
		{ ORNIC_WC_FETCH_ADD, 0, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS },
		{ ORNIC_WC_SEND_FLUSHED, ORNIC_WC_WR_FLUSH_ERR, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR },
		{ ORNIC_WC_SEND, ORNIC_WC_RNR_RETRY_EXC_ERR, IBV_WC_SEND,
		  IBV_WC_RNR_RETRY_EXC_ERR },
		{ ORNIC_WC_SEND, ORNIC_WC_RNR_RETRY_EXC_ERR + 1, IBV_WC_SEND, IBV_WC_GENERAL_ERR },
		{ ORNIC_WC_SEND, 200, IBV_WC_SEND, IBV_WC_GENERAL_ERR },
		{ 0x55, 0, IBV_WC_SEND, IBV_WC_GENERAL_ERR },
		{ ORNIC_WC_SEND_FLUSHED, 0, IBV_WC_SEND, IBV_WC_GENERAL_ERR },
	};
	struct ibv_wc wc;

	for (unsigned int i = 0; i < ARRAY_SIZE(t); i++) {
		struct ornic_cqe cqe = cqe_of(0x123, i, t[i].opcode, t[i].status);

		cqe.syndrome = htole32(0x70081);
		post_sends(rig->qp, 1);
		rig_complete(rig, cqe);
		assert_int_equal(poll(rig, &wc, 4), 1);
		assert_int_equal(wc.wr_id, 0x1000 + i);
		assert_int_equal(wc.opcode, t[i].op);
		assert_int_equal(wc.status, t[i].st);
		assert_int_equal(wc.vendor_err, 0x70081);
	}
	post_recvs(rig->qp, 1);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_RECV_FLUSHED, ORNIC_WC_WR_FLUSH_ERR));
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 0x2000);
}

/* ORN-CQ-8: a signaled completion frees the unsignaled ones before it. */
static void test_frees_slots(void **state)
{
	struct rig *rig = *state;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	post_sends(rig->qp, 8);
	assert_int_equal(ornic_post_send(&rig->qp->vqp.qp, &wr, &bad), ENOMEM);
	rig_complete(rig, cqe_of(0x123, 5, ORNIC_WC_SEND, 0));
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 0x1005);
	post_sends(rig->qp, 6);
	assert_int_equal(ornic_post_send(&rig->qp->vqp.qp, &wr, &bad), ENOMEM);
}

static void test_hostile(void **state)
{
	struct rig *rig = *state;
	struct ibv_wc wc[8];

	post_sends(rig->qp, 3);
	post_recvs(rig->qp, 1);
	rig_complete(rig, cqe_of(0x777, 0, ORNIC_WC_SEND, 0));		/* no such queue pair */
	rig_complete(rig, cqe_of(0xffffff, 0, ORNIC_WC_SEND, 0));	/* dropped */
	rig_complete(rig, cqe_of(0x123, 3, ORNIC_WC_SEND, 0));		/* not posted yet */
	rig_complete(rig, cqe_of(0x123, 1, ORNIC_WC_RECV, 0));
	rig_complete(rig, cqe_of(0x123, 0xffffffff, ORNIC_WC_SEND, 0));	/* before the first */
	rig_complete(rig, cqe_of(0x123, 1, ORNIC_WC_SEND, 0));
	rig_complete(rig, cqe_of(0x123, 1, ORNIC_WC_SEND, 0));		/* again */
	assert_int_equal(poll(rig, wc, 8), 1);
	assert_int_equal(wc[0].wr_id, 0x1001);
	assert_int_equal(le32toh(rig->cq->mem.rec->host_index), 7);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));		/* already completed */
	rig_complete(rig, cqe_of(0xab000123, 2, ORNIC_WC_SEND, 0));	/* reserved bits */
	assert_int_equal(poll(rig, wc, 8), 1);
	assert_int_equal(wc[0].wr_id, 0x1002);
	assert_int_equal(wc[0].qp_num, 0x123);
}

/* A queue pair's completion counts only in the CQ it belongs to. */
static void test_foreign_cq(void **state)
{
	struct rig *rig = *state;
	struct ornic_cq *mine = rig->cq;
	struct ibv_wc wc;

	post_sends(rig->qp, 1);
	post_recvs(rig->qp, 1);
	rig->cq = to_ocq(ornic_create_cq(&rig->ctx->ibv_ctx.context, 8, NULL, 0));
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_RECV, 0));
	assert_int_equal(poll(rig, &wc, 1), 0);
	ornic_destroy_cq(&rig->cq->vcq.cq);
	rig->cq = mine;
}

/*
 * ORN-SEC-18: entries that name objects of another CQ are skipped or dropped without a look at the
 * objects, which another thread may have freed: here they lie where no memory is.
 */
static void test_foreign_objects(void **state)
{
	struct rig *rig = *state;
	struct ornic_cq *foreign = (void *)rig;
	struct ornic_cqe cqe = cqe_of(0x456, 0, ORNIC_WC_RECV, 0);
	struct ibv_wc wc;
	void *freed = (void *)64;

	assert_int_equal(ornic_qp_table_insert(&rig->ctx->sends, 0x456, foreign, freed), 0);
	assert_int_equal(ornic_qp_table_insert(&rig->ctx->recvs, 0x456, foreign, freed), 0);
	assert_int_equal(ornic_qp_table_insert(&rig->ctx->xrc_srqs, 0x78, foreign, freed), 0);
	post_sends(rig->qp, 1);
	post_recvs(rig->qp, 1);
	rig_complete(rig, cqe_of(0x456, 0, ORNIC_WC_SEND, 0));
	rig_complete(rig, cqe);
	cqe.srqn = htole32(0x78);
	rig_complete(rig, cqe);
	cqe.qpn = htole32(0x123);
	rig_complete(rig, cqe);
	assert_int_equal(poll(rig, &wc, 1), 0);
	assert_int_equal(le32toh(rig->cq->mem.rec->host_index), 4);
	rig_complete(rig, cqe);
	rig_state(rig->qp, IBV_QPS_RESET);
	assert_int_equal(poll(rig, &wc, 1), 0);
	kernel.resized_at = (struct ornic_uresp_resize_cq){ .producer = 5, .consumer = 5 };
	assert_int_equal(ornic_resize_cq(&rig->cq->vcq.cq, 4), 0);
}

static void test_wraps(void **state)
{
	struct rig *rig = *state;
	struct ibv_wc wc[8];

	for (uint32_t i = 0; i < 100; i++) {
		post_sends(rig->qp, 1);
		rig_complete(rig, cqe_of(0x123, i, ORNIC_WC_SEND, 0));
		if (i % 5 == 4) {
			assert_int_equal(poll(rig, wc, 8), 5);
			assert_int_equal(wc[4].wr_id, 0x1000 + i);
			assert_int_equal(le32toh(rig->cq->mem.rec->host_index), i + 1);
		}
	}
}

static void post_and_complete(struct rig *rig, uint32_t first, int n)
{
	for (int i = 0; i < n; i++) {
		post_sends(rig->qp, 1);
		rig_complete(rig, cqe_of(0x123, first + i, ORNIC_WC_SEND, 0));
	}
}

/*
 * ORN-RNG-13, ORN-RNG-32: the consumer index does not lag, so the depth is that of the ring.
 * ORN-RNG-33: it is written before the arm, for every fill level of the ring.
 */
static void test_gives_back_at_once(void **state)
{
	struct rig *rig = *state;
	struct ornic_rec *rec = rig->cq->mem.rec;
	struct ibv_wc wc;

	assert_int_equal(rig->cq->vcq.cq.cqe, 8);
	post_and_complete(rig, 0, 8);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(poll(rig, &wc, 1), 1);
		assert_int_equal(wc.wr_id, 0x1000 + i);
		assert_int_equal(le32toh(rec->host_index), i + 1);
		ornic_arm_cq(&rig->cq->vcq.cq, 0);
		assert_int_equal(le32toh(rec->arm) & ORNIC_ARM_INDEX_MASK, i + 1);
	}
	post_and_complete(rig, 8, 8);
	assert_int_equal(ibv_poll_cq(&rig->cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(le32toh(rec->host_index), 9);
}

/* ORN-GEN-7: unknown values that the device reports change nothing. */
static void test_unknown_bits(void **state)
{
	const uint32_t known = ORNIC_CQE_SOLICITED | ORNIC_CQE_GRH;
	struct rig *rig = *state;
	struct ornic_cqe cqe = cqe_of(0x123, 0, ORNIC_WC_RECV, 0);
	struct ibv_wc wc;

	post_recvs(rig->qp, 1);
	cqe.qpn |= htole32(0xff000000);
	cqe.flags = htole32(0xffff8080 | known);
	cqe.net_type = 0x77;
	cqe.rss_type = 0xff;
	cqe.res = 0xff;
	rig_complete(rig, cqe);
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, 0x123);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
}

static struct ibv_cq_ex *make_cq_ex(struct rig *rig, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .wc_flags = wc_flags, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.parent_domain = (void *)1,	/* not valid without its mask */
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};

	return ornic_create_cq_ex(&rig->ctx->ibv_ctx.context, &attr);
}

static void read_one(struct ibv_cq_ex *ex)
{
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ibv_wc_read_vendor_err(ex), 0);
	assert_int_equal(ibv_wc_read_byte_len(ex), 140);
	assert_int_equal(be32toh(ibv_wc_read_imm_data(ex)), 0xdeadbeef);
	assert_int_equal(ibv_wc_read_qp_num(ex), 0x124);
	assert_int_equal(ibv_wc_read_src_qp(ex), 0x456);
	assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(ex), 2);
	assert_int_equal(ibv_wc_read_sl(ex), 3);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 4);
	assert_int_equal(ibv_wc_read_completion_ts(ex), 0x123456789abc);
}

static void test_reader(void **state)
{
	struct rig *rig = *state;
	struct ornic_cqe cqe = cqe_of(0x124, 0, ORNIC_WC_RECV_RDMA_WITH_IMM, 0);
	struct ornic_qp *first_qp = rig->qp, *qp;
	struct ornic_cq *first_cq = rig->cq;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *ex;

	kernel.clocks = CLOCKS;
	ex = make_cq_ex(rig, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	assert_non_null(ex);
	rig->cq = to_ocq_ex(ex);
	qp = rig_qp(rig, IBV_QPT_RC, CAP, 0);
	post_recvs(qp, 1);
	post_sends(qp, 1);
	assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
	cqe.timestamp = htole64(0x123456789abc);
	cqe.byte_len = htole32(140);
	cqe.imm = htobe32(0xdeadbeef);
	cqe.src_qp = htole32(0x456);
	cqe.slid_csum = htole16(2);
	cqe.sl = 3;
	cqe.path_bits = 4;
	cqe.flags = htole32(ORNIC_CQE_WITH_IMM);
	rig_complete(rig, cqe);
	rig_complete(rig, cqe_of(0x999, 0, ORNIC_WC_SEND, 0));
	rig_complete(rig, cqe_of(0x124, 0, ORNIC_WC_SEND, ORNIC_WC_RETRY_EXC_ERR));
	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(ex->wr_id, 0x2000);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(le32toh(rig->cq->mem.rec->host_index), 1);
	memset(&rig->cq->mem.ring[0], 0x55, 60);	/* the slot belongs to the device again */
	read_one(ex);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 0x1000);
	assert_int_equal(ex->status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &attr), EINVAL);
	ornic_destroy_qp(&qp->vqp.qp);
	ornic_destroy_cq(ibv_cq_ex_to_cq(ex));
	rig->cq = first_cq;
	rig->qp = first_qp;
}

/* Missing fields read as zero. */
static void test_reader_tags(void **state)
{
	struct rig *rig = *state;
	struct ornic_cq *cq;
	struct ibv_cq_ex *ex = make_cq_ex(rig, IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG);

	assert_non_null(ex);
	cq = to_ocq_ex(ex);
	cq->cur.vlan_tci = htole16(0x2abc);
	cq->cur.src_qp = htole32(0x123456);
	cq->cur.flags = htole32(ORNIC_CQE_WITH_INV);
	cq->cur.inv_key = htole32(0x12345678);
	assert_int_equal(ibv_wc_read_invalidated_rkey(ex), 0x12345678);
	assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_INV);
	cq->cur.flags = 0;
	assert_int_equal(ibv_wc_read_cvlan(ex), 0);
	assert_int_equal(ibv_wc_read_flow_tag(ex), 0);
	cq->cur.flags = htole32(ORNIC_CQE_VLAN | ORNIC_CQE_FLOW_TAG);
	assert_int_equal(ibv_wc_read_cvlan(ex), 0x2abc);
	assert_int_equal(ibv_wc_read_flow_tag(ex), 0x123456);
	ornic_destroy_cq(&cq->vcq.cq);
}

/* A CQ can read what was requested, and nothing else: libibverbs calls the functions unchecked. */
static void test_readers(void **state)
{
	static const uint64_t flags[] = {
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_STANDARD_FLAGS,
	};

	kernel.clocks = CLOCKS;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct ibv_cq_ex *ex = make_cq_ex(*state, flags[i]);

		assert_non_null(ex);
		assert_int_equal(!!ex->read_completion_ts, i == 0);
		assert_int_equal(!!ex->read_completion_wallclock_ns, i == 1);
		assert_int_equal(!!ex->read_cvlan, i == 2);
		assert_int_equal(!!ex->read_flow_tag, i == 3);
		assert_int_equal(ornic_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	}
}

static void test_create(void **state)
{
	struct rig *rig = *state;
	struct ibv_context *ctx = &rig->ctx->ibv_ctx.context;
	const struct { int cqe; uint8_t log; } t[] = { { 1, 0 }, { 2, 1 }, { 3, 2 }, { 1000, 10 },
						       { 1 << 16, 16 } };
	struct ibv_cq *cq;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		cq = ornic_create_cq(ctx, t[i].cqe, NULL, 0);
		assert_non_null(cq);
		assert_int_equal(kernel.cq_req.log_entries, t[i].log);
		assert_int_equal(cq->cqe, 1 << t[i].log);
		assert_ptr_equal(to_ocq(cq)->mem.rec,
				 (char *)(uintptr_t)kernel.cq_req.buf_addr + (64 << t[i].log));
		assert_int_equal(le32toh(to_ocq(cq)->mem.rec->notify), ORNIC_NOTIFY_ALWAYS);
		ornic_destroy_cq(cq);
	}
	assert_null(ornic_create_cq(ctx, 0, NULL, 0));
	assert_null(ornic_create_cq(ctx, -1, NULL, 0));
	assert_null(ornic_create_cq(ctx, (1 << 16) + 1, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq_ex(rig, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_cq_ex(rig, IBV_WC_EX_WITH_TM_INFO));
	assert_int_equal(errno, EOPNOTSUPP);
	kernel.fail = ENOSPC;
	assert_null(ornic_create_cq(ctx, 1, NULL, 0));
	assert_int_equal(errno, ENOSPC);
}

static void test_arm(void **state)
{
	struct rig *rig = *state;
	struct ibv_cq *cq = &rig->cq->vcq.cq;
	struct ibv_wc wc;

	ornic_arm_cq(cq, 1);
	assert_int_equal(rig_doorbell(rig), 0x1100000003000001);
	ornic_arm_cq(cq, 0);
	assert_int_equal(rig_doorbell(rig), 0x2100000003000001);
	ornic_arm_cq(cq, 1);		/* ORN-RNG-30: never weaker with the same number */
	assert_int_equal(rig_doorbell(rig), 0x2100000003000001);
	post_sends(rig->qp, 1);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	assert_int_equal(poll(rig, &wc, 1), 1);
	ornic_cq_event(cq);
	rig->cq->mem.rec->notify = 0;	/* a device that polls the record */
	rig_doorbell(rig);
	ornic_arm_cq(cq, 1);
	assert_int_equal(rig_doorbell(rig), 0);
	assert_int_equal(le32toh(rig->cq->mem.rec->arm), 0x12000001);
	for (int i = 0; i < 14; i++)
		ornic_cq_event(cq);
	ornic_arm_cq(cq, 0);
	assert_int_equal(le32toh(rig->cq->mem.rec->arm), 0x20000001);
}

static struct rig *reset_rig;

/* Late work of the device before RESET completes: a CQE, its notify word. */
static void last_acts(struct ibv_qp *qp)
{
	rig_complete(reset_rig, cqe_of(0x123, 2, ORNIC_WC_SEND, ORNIC_WC_WR_FLUSH_ERR));
	to_oqp(qp)->sq.rec->notify = htole32(3);
}

/* ORN-CQ-19: completions from before RESET do not count for later work requests. */
static void test_reset(void **state)
{
	struct rig *rig = *state;
	struct ibv_wc wc;

	reset_rig = rig;
	post_sends(rig->qp, 3);
	post_recvs(rig->qp, 2);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_RECV, 0));
	kernel.before_reset = last_acts;
	rig_state(rig->qp, IBV_QPS_RESET);
	assert_int_equal(le32toh(rig->qp->sq.rec->host_index), 0);
	assert_int_equal(le32toh(rig->qp->sq.rec->notify), ORNIC_NOTIFY_ALWAYS);
	assert_int_equal(le32toh(rig->qp->rq.rec->host_index), 0);
	rig_state(rig->qp, IBV_QPS_RTS);
	post_sends(rig->qp, 1);
	post_recvs(rig->qp, 1);
	assert_int_equal(poll(rig, &wc, 1), 0);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	assert_int_equal(poll(rig, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 0x1000);
}

/* A RESET that the kernel rejects leaves the rings unchanged. */
static void test_reset_refused(void **state)
{
	struct rig *rig = *state;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	post_sends(rig->qp, 1);
	kernel.fail = EIO;
	assert_int_equal(ornic_modify_qp(&rig->qp->vqp.qp, &attr, IBV_QP_STATE), EIO);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	assert_int_equal(poll(rig, &wc, 1), 1);
}

/* ORN-CQ-19: the next queue pair with the number does not see completions of the former one. */
static void test_destroy_drops(void **state)
{
	struct rig *rig = *state;
	struct ibv_wc wc;

	post_sends(rig->qp, 1);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	kernel.fail = EBUSY;
	assert_int_equal(ornic_destroy_qp(&rig->qp->vqp.qp), EBUSY);
	assert_int_equal(ornic_destroy_qp(&rig->qp->vqp.qp), 0);
	kernel.qpn = 0x123;
	rig_qp(rig, IBV_QPT_RC, CAP, 0);
	post_sends(rig->qp, 1);
	assert_int_equal(poll(rig, &wc, 1), 0);
	rig_complete(rig, cqe_of(0x123, 0, ORNIC_WC_SEND, 0));
	assert_int_equal(poll(rig, &wc, 1), 1);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_wc_fields), RIG_TEST(test_status), RIG_TEST(test_frees_slots),
		RIG_TEST(test_hostile), RIG_TEST(test_foreign_cq),
		RIG_TEST(test_foreign_objects), RIG_TEST(test_wraps),
		RIG_TEST(test_gives_back_at_once), RIG_TEST(test_unknown_bits),
		RIG_TEST(test_reader), RIG_TEST(test_reader_tags), RIG_TEST(test_readers),
		RIG_TEST(test_create), RIG_TEST(test_arm),
		RIG_TEST(test_reset), RIG_TEST(test_reset_refused), RIG_TEST(test_destroy_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
