// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, posting: bytes of each work request by both senders, strides and
 * limits, full rings, states, doorbells (ORN-RNG-5, ORN-WQE-1, ORN-DB-3).
 */
#include <errno.h>
#include <stdio.h>

#include "test_libornic_kernel.h"

#define RC_CAP ((struct ibv_qp_cap){ 256, 16, 2, 1, 32 })
#define UD_CAP ((struct ibv_qp_cap){ 4, 4, 2, 2, 32 })

static int setup(void **state)
{
	static struct rig rig;

	rig_open(&rig, 64);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	return 0;
}

static void *slot(struct ornic_wq *wq, uint32_t index)
{
	return (char *)wq->ring + ((index & (wq->entries - 1)) << wq->stride);
}

/* Work request @index of the SQ must be exactly these bytes. */
static void expect_wqe(struct ornic_qp *qp, uint32_t index, const char *hex)
{
	const uint8_t *p = slot(&qp->sq, index);
	unsigned int want, n = 0;
	int used;

	while (sscanf(hex, " %2x%n", &want, &used) == 1) {
		if (p[n] != want)
			fail_msg("byte 0x%02x of WQE %u is %02x, expected %02x", n, index, p[n],
				 want);
		hex += used;
		n++;
	}
}

/* Move a queue to @index as if that much had been posted and completed. */
static void wind(struct ornic_wq *wq, uint32_t index)
{
	atomic_store(&wq->head, index);
	atomic_store(&wq->tail, index);
	wq->rec->host_index = htole32(index);
}

static int post(struct ornic_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad = NULL;
	int ret = ornic_post_send(&qp->vqp.qp, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

static void test_worked_example(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, 0);
	struct ibv_sge sge = { 0x7f1234561000, 4096, 0x4a07 };
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	assert_int_equal(qp->sq.stride, 6);
	wind(&qp->sq, 0x1ff);
	qp->sq.rec->notify = htole32(0x1ff);
	assert_int_equal(post(qp, wr), 0);
	assert_ptr_equal(slot(&qp->sq, 0x1ff), (char *)qp->buf.addr + 0x3fc0);
	expect_wqe(qp, 0x1ff, "02 02 01 00  00 00 00 00  23 01 00 00  ff 01 00 00"
			      "00 10 56 34  12 7f 00 00  00 10 00 00  07 4a 00 00");
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0x200);
	assert_int_equal(rig_doorbell(rig), 0x0000020000000123);
	assert_int_equal(post(qp, wr), 0);
	assert_int_equal(rig_doorbell(rig), 0);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0x201);
}

#define CTRL(op, flags, count, imm) op " " flags " " count " 00 " imm " 23 01 00 00 "
#define REMOTE "88 77 66 55 44 33 22 11 04 03 02 01 00 00 00 00"
#define SGE1 "00 10 00 00 00 00 00 00 10 00 00 00 21 43 00 00"
#define SGE2 "00 20 00 00 00 00 00 00 20 00 00 00 65 87 00 00"
#define SWAP "08 07 06 05 04 03 02 01"
#define COMPARE "f8 f7 f6 f5 f4 f3 f2 f1"
#define ZERO8 "00 00 00 00 00 00 00 00"

static const char *const rc_wqe[] = {
	CTRL("00", "02", "02", "00 00 00 00") "00 00 00 00" REMOTE SGE1 SGE2,
	CTRL("01", "06", "01", "de ad be ef") "01 00 00 00" REMOTE SGE1,
	CTRL("02", "01", "02", "00 00 00 00") "02 00 00 00" SGE1 SGE2,
	CTRL("03", "00", "00", "de ad be ef") "03 00 00 00",
	CTRL("04", "02", "01", "00 00 00 00") "04 00 00 00" REMOTE SGE1,
	CTRL("05", "02", "01", "00 00 00 00") "05 00 00 00" REMOTE SWAP COMPARE SGE1,
	CTRL("06", "02", "01", "00 00 00 00") "06 00 00 00" REMOTE SWAP ZERO8 SGE1,
	CTRL("02", "0a", "05", "00 00 00 00") "07 00 00 00" "61 62 63 64 65",
	CTRL("00", "08", "05", "00 00 00 00") "08 00 00 00" REMOTE "61 62 63 64 65",
	CTRL("0f", "08", "08", "00 00 00 00") "09 00 00 00" REMOTE SWAP,
};

static const uint8_t operand[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
static struct ibv_sge two_sges[] = { { 0x1000, 16, 0x4321 }, { 0x2000, 32, 0x8765 } };

static struct ibv_send_wr rc_wr(enum ibv_wr_opcode op, unsigned int flags, int num_sge,
				uint32_t imm)
{
	struct ibv_send_wr wr = { .opcode = op, .send_flags = flags, .sg_list = two_sges,
				  .num_sge = num_sge };

	wr.imm_data = htobe32(imm);
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x1122334455667788;
		wr.wr.atomic.rkey = 0x01020304;
		wr.wr.atomic.compare_add = op == IBV_WR_ATOMIC_CMP_AND_SWP ? 0xf1f2f3f4f5f6f7f8 :
									     0x0102030405060708;
		wr.wr.atomic.swap = 0x0102030405060708;
	} else {
		wr.wr.rdma.remote_addr = 0x1122334455667788;
		wr.wr.rdma.rkey = 0x01020304;
	}
	return wr;
}

/* Immediate data given where the opcode has none must not reach the work request. */
static void test_rc_post_send(void **state)
{
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, RC_CAP, 0);
	struct ibv_sge inl[] = { { (uintptr_t)"abc", 3, 0 }, { (uintptr_t)"de", 2, 0 } };
	struct ibv_sge word = { (uintptr_t)operand, sizeof(operand), 0 };
	struct ibv_send_wr wr;
	const int s = IBV_SEND_SIGNALED;

	memset(qp->sq.ring, 0xee, 256 << 6);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_WRITE, s, 2, 0x1234)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_WRITE_WITH_IMM, s | IBV_SEND_SOLICITED, 1,
					0xdeadbeef)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, IBV_SEND_FENCE, 2, 0x1234)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND_WITH_IMM, 0, 0, 0xdeadbeef)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_READ, s, 1, 0x1234)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_ATOMIC_CMP_AND_SWP, s, 1, 0)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, s, 1, 0)), 0);
	wr = rc_wr(IBV_WR_SEND, s | IBV_SEND_INLINE, 2, 0);
	wr.sg_list = inl;
	assert_int_equal(post(qp, wr), 0);
	wr = rc_wr(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 2, 0);
	wr.sg_list = inl;
	assert_int_equal(post(qp, wr), 0);
	wr = rc_wr(IBV_WR_ATOMIC_WRITE, IBV_SEND_INLINE, 1, 0);
	wr.sg_list = &word;
	assert_int_equal(post(qp, wr), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rc_wqe); i++)
		expect_wqe(qp, i, rc_wqe[i]);
}

static void build_rc(struct ibv_qp_ex *ex)
{
	struct ibv_data_buf inl[] = { { (void *)"abc", 3 }, { (void *)"de", 2 } };
	const uint64_t addr = 0x1122334455667788;
	const uint32_t rkey = 0x01020304;

	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, rkey, addr);
	ibv_wr_set_sge_list(ex, 2, two_sges);
	ex->wr_flags |= IBV_SEND_SOLICITED;
	ibv_wr_rdma_write_imm(ex, rkey, addr, htobe32(0xdeadbeef));
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, two_sges);
	ex->wr_flags = 0;
	ibv_wr_send_imm(ex, htobe32(0xdeadbeef));
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(ex, rkey, addr);
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ibv_wr_atomic_cmp_swp(ex, rkey, addr, 0xf1f2f3f4f5f6f7f8, 0x0102030405060708);
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ibv_wr_atomic_fetch_add(ex, rkey, addr, 0x0102030405060708);
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ex->wr_id = 77;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, inl);
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, rkey, addr);
	ibv_wr_set_inline_data(ex, (void *)"abcde", 5);
	ibv_wr_atomic_write(ex, rkey, addr, operand);
}

static void test_rc_builders(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);

	assert_non_null(ex);
	memset(qp->sq.ring, 0xee, 256 << 6);
	ibv_wr_start(ex);
	build_rc(ex);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rc_wqe); i++)
		expect_wqe(qp, i, rc_wqe[i]);
	assert_int_equal(le32toh(qp->sq.rec->host_index), ARRAY_SIZE(rc_wqe));
	assert_int_equal(rig_doorbell(rig), (uint64_t)ARRAY_SIZE(rc_wqe) << 32 | 0x123);
	assert_int_equal(qp->sq.wr_id[7], 77);
}

/* UC: its subset of RC's work requests, by both senders (ORN-UC-1) */
static void test_uc(void **state)
{
	const uint64_t addr = 0x1122334455667788;
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_UC, RC_CAP, ORNIC_SEND_OPS_UC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	const int s = IBV_SEND_SIGNALED;

	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_WRITE, s, 2, 0x1234)), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_WRITE_WITH_IMM, s | IBV_SEND_SOLICITED, 1,
					0xdeadbeef)), 0);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, two_sges);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND_WITH_IMM, 0, 0, 0xdeadbeef)), 0);
	for (size_t i = 0; i < 4; i++)
		expect_wqe(qp, i, rc_wqe[i]);
	wind(&qp->sq, 0);
	ibv_wr_start(ex);
	ex->wr_flags = s;
	ibv_wr_rdma_write(ex, 0x01020304, addr);
	ibv_wr_set_sge_list(ex, 2, two_sges);
	ex->wr_flags = s | IBV_SEND_SOLICITED;
	ibv_wr_rdma_write_imm(ex, 0x01020304, addr, htobe32(0xdeadbeef));
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wqe(qp, 0, rc_wqe[0]);
	expect_wqe(qp, 1, rc_wqe[1]);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_READ, s, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_ATOMIC_CMP_AND_SWP, s, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, s, 1, 0)), EINVAL);
	assert_null(ex->wr_rdma_read);
}

/* XRC: the SRQ is in the remote segment, whose other fields a SEND does not use. */
static void test_xrc(void **state)
{
	static const char *const want[] = {
		CTRL("02", "02", "01", "00 00 00 00") "00 00 00 00"
			ZERO8 "00 00 00 00 56 34 12 00" SGE1,
		CTRL("00", "02", "01", "00 00 00 00") "01 00 00 00"
			"88 77 66 55 44 33 22 11 04 03 02 01 56 34 12 00" SGE1,
	};
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_XRC_SEND, RC_CAP, ORNIC_SEND_OPS_XRC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };

	for (size_t i = 0; i < 2; i++) {
		struct ibv_send_wr wr = rc_wr(ops[i], IBV_SEND_SIGNALED, 1, 0);

		wr.qp_type.xrc.remote_srqn = 0xff123456;
		assert_int_equal(post(qp, wr), 0);
		expect_wqe(qp, i, want[i]);
	}
	wind(&qp->sq, 0);
	memset(qp->sq.ring, 0xee, 128);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 0xff123456);
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ibv_wr_rdma_write(ex, 0x01020304, 0x1122334455667788);
	ibv_wr_set_xrc_srqn(ex, 0xff123456);
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (size_t i = 0; i < 2; i++)
		expect_wqe(qp, i, want[i]);
}

static struct ibv_ah *make_ah(struct rig *rig, uint32_t flow_label)
{
	struct ibv_ah_attr attr = { .is_global = 1, .sl = 3, .static_rate = 2, .port_num = 1 };
	struct ibv_ah *ah;

	for (int i = 0; i < 16; i++)
		attr.grh.dgid.raw[i] = i;
	attr.grh.flow_label = flow_label;
	attr.grh.sgid_index = 0x12;
	attr.grh.hop_limit = 64;
	attr.grh.traffic_class = 0x28;
	memcpy(kernel.dmac, "\x02\x11\x22\x33\x44\x55", 6);
	ah = ornic_create_ah(rig->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static const char ud_wqe[] =
	CTRL("03", "02", "01", "de ad be ef") "00 00 00 00"
	"00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f"
	"02 11 22 33 44 55 00 00  45 23 01 00 28 40 03 02"
	"12 00 41 e3  56 34 12 00  11 11 11 80  01 00 00 00" SGE1;

static void test_ud(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_UD, UD_CAP, ORNIC_SEND_OPS_UD);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_ah *ah = make_ah(rig, 0x12345);
	struct ibv_send_wr wr = rc_wr(IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED, 1, 0xdeadbeef);

	assert_int_equal(qp->sq.stride, 7);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x123456;
	wr.wr.ud.remote_qkey = 0x80111111;
	assert_int_equal(post(qp, wr), 0);
	expect_wqe(qp, 0, ud_wqe);

	rig_state(qp, IBV_QPS_RESET);
	memset(qp->sq.ring, 0xee, 128);
	rig_state(qp, IBV_QPS_RTS);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htobe32(0xdeadbeef));
	ibv_wr_set_sge(ex, 0x4321, 0x1000, 16);
	ibv_wr_set_ud_addr(ex, ah, 0x123456, 0x80111111);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wqe(qp, 0, ud_wqe);
	ornic_destroy_ah(ah);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {};
	struct ibv_ah *ah = make_ah(*state, 0);

	assert_int_equal(to_oah(ah)->path.udp_sport, 0);
	ornic_destroy_ah(ah);
	assert_null(ornic_create_ah(((struct rig *)*state)->pd, &attr));
	assert_int_equal(errno, EINVAL);
}

static void test_recv(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, 0);
	struct ibv_recv_wr wr = { .wr_id = 9, .sg_list = two_sges, .num_sge = 1 };
	const uint8_t want[32] = { 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
				   0, 0x10, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0x21, 0x43, 0, 0 };
	struct ibv_recv_wr *bad;

	assert_int_equal(qp->rq.stride, 5);
	wind(&qp->rq, 2);
	memset(qp->rq.ring, 0xee, 16 << 5);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
	assert_memory_equal(slot(&qp->rq, 2), want, sizeof(want));
	assert_int_equal(qp->rq.wr_id[2], 9);
	assert_int_equal(rig_doorbell(rig), 0x0000000301000123);
	wr.num_sge = 2;
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
}

/* The first four slots of a queue. */
static void keep(unsigned char *slots, size_t size, const struct ornic_wq *wq)
{
	assert_true(4u << wq->stride <= size);
	memcpy(slots, wq->ring, 4u << wq->stride);
}

/*
 * A list stops at the request that does not fit; those before it are posted. ORN-WQE-12: slots of
 * incomplete requests stay unchanged.
 */
static void test_full(void **state)
{
	unsigned char slots[4 << 8], rslots[4 << 7];
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_UD, UD_CAP, 0);
	struct ibv_recv_wr rwr[6] = {}, *rbad = NULL;
	struct ibv_send_wr wr[6], *bad = NULL;
	struct ibv_ah *ah = make_ah(rig, 1);

	for (int i = 0; i < 6; i++) {
		wr[i] = rc_wr(IBV_WR_SEND, 0, 1, 0);
		wr[i].wr.ud.ah = ah;
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
		rwr[i].next = i < 5 ? &rwr[i + 1] : NULL;
	}
	assert_int_equal(ornic_post_send(&qp->vqp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[4]);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 4);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, rwr, &rbad), ENOMEM);
	assert_ptr_equal(rbad, &rwr[4]);
	assert_int_equal(le32toh(qp->rq.rec->host_index), 4);
	keep(slots, sizeof(slots), &qp->sq);
	keep(rslots, sizeof(rslots), &qp->rq);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr[4], &bad), ENOMEM);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &rwr[4], &rbad), ENOMEM);
	assert_memory_equal(slots, qp->sq.ring, 4 << qp->sq.stride);
	assert_memory_equal(rslots, qp->rq.ring, 4 << qp->rq.stride);
	atomic_store(&qp->sq.tail, 1);
	assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr[4], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[5]);
	assert_memory_equal(slots + (1 << qp->sq.stride),
			    (char *)qp->sq.ring + (1 << qp->sq.stride), 3 << qp->sq.stride);
	ornic_destroy_ah(ah);
}

static void test_refused(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, 0);
	char big[33] = "";
	struct ibv_sge sge = { (uintptr_t)big, sizeof(big), 0 };
	struct ibv_send_wr wr = rc_wr(IBV_WR_SEND, IBV_SEND_INLINE, 1, 0);

	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, 0, 3, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_TSO, 0, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(99, 0, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, IBV_SEND_IP_CSUM, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 0)), EINVAL);
	assert_int_equal(post(qp, rc_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 2, 0)), EINVAL);
	wr.sg_list = &sge;
	assert_int_equal(post(qp, wr), EINVAL);
	sge.length = 32;
	assert_int_equal(rig_doorbell(rig), 0);
	assert_int_equal(post(qp, wr), 0);
}

static void test_states(void **state)
{
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, RC_CAP, 0);
	struct ibv_recv_wr rwr = {}, *rbad = NULL;
	const struct { enum ibv_qp_state state; int send, recv; } want[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL }, { IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 }, { IBV_QPS_RTS, 0, 0 }, { IBV_QPS_SQD, 0, 0 },
		{ IBV_QPS_SQE, 0, 0 }, { IBV_QPS_ERR, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		rig_state(qp, want[i].state);
		assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, 0, 1, 0)), want[i].send);
		assert_int_equal(ornic_post_recv(&qp->vqp.qp, &rwr, &rbad), want[i].recv);
	}
}

static struct ornic_qp *reset_qp;	/* to reset before the next lock is taken, or NULL */
static struct ibv_wq *reset_wq;

/* Replaces libc's function: another thread resets the queue just before the poster locks it. */
int pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct ibv_wq_attr wq_attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ornic_qp *qp = reset_qp;
	struct ibv_wq *wq = reset_wq;

	reset_qp = NULL;
	reset_wq = NULL;
	if (qp)
		assert_int_equal(ornic_modify_qp(&qp->vqp.qp, &attr, IBV_QP_STATE), 0);
	if (wq)
		assert_int_equal(ornic_modify_wq(wq, &wq_attr), 0);
	while (pthread_spin_trylock(lock))
		;
	return 0;
}

/*
 * ORN-RNG-4, ORN-WQE-64: nothing is posted after a reset, although libibverbs stores the state
 * later and the poster began before.
 */
static void test_reset_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, 0);
	struct ibv_recv_wr wr = {}, *bad;

	reset_qp = qp;
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, 0, 1, 0)), EINVAL);
	rig_state(qp, IBV_QPS_RTS);
	reset_qp = qp;
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
	assert_int_equal(le32toh(qp->rq.rec->host_index), 0);
	assert_int_equal(rig_doorbell(rig), 0);
}

static void test_wq_reset_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 3, .max_sge = 2, .pd = rig->pd,
		.cq = &rig->cq->vcq.cq,
	};
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = ornic_create_wq(&rig->ctx->ibv_ctx.context, &attr);
	struct ibv_recv_wr wr = {}, *bad;

	assert_non_null(wq);
	assert_int_equal(ornic_modify_wq(wq, &ready), 0);
	reset_wq = wq;
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(rig_doorbell(rig), 0);
	assert_int_equal(ornic_destroy_wq(wq), 0);
}

static enum ibv_qp_state moved_to;

static void move_on(struct ibv_qp *qp)
{
	kernel.after_query = NULL;
	rig_state(to_oqp(qp), moved_to);
}

/* Query the state by libibverbs, which stores it, while another thread moves the queue pair on. */
static void query_while_moving(struct ornic_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_state before = qp->vqp.qp.state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	moved_to = to;
	kernel.after_query = move_on;
	assert_int_equal(ibv_query_qp(&qp->vqp.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, before);
	assert_int_equal(qp->vqp.qp.state, before);
}

static int post_by_builder(struct ornic_qp *qp)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(&qp->vqp.qp);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 2, 3);
	return ibv_wr_complete(ex);
}

/* The answer of a query that is older than a modify neither closes nor opens the queues. */
static void test_query_is_late(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, RC_CAP, ORNIC_SEND_OPS_RC);
	struct ibv_recv_wr wr = {}, *bad;

	rig_state(qp, IBV_QPS_RESET);
	query_while_moving(qp, IBV_QPS_RTS);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, 0, 1, 0)), 0);
	assert_int_equal(post_by_builder(qp), 0);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
	qp->vqp.qp.state = IBV_QPS_RTS;
	query_while_moving(qp, IBV_QPS_RESET);
	rig_doorbell(rig);
	assert_int_equal(post(qp, rc_wr(IBV_WR_SEND, 0, 1, 0)), EINVAL);
	assert_int_equal(post_by_builder(qp), EINVAL);
	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
	assert_int_equal(le32toh(qp->rq.rec->host_index), 0);
	assert_int_equal(rig_doorbell(rig), 0);
}

/* The device enters an error state by itself: work requests are posted, and it flushes them. */
static void test_device_enters_error(void **state)
{
	static const enum ibv_qp_state error[] = { IBV_QPS_SQE, IBV_QPS_ERR };
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_UD, UD_CAP, 0);
	struct ibv_ah *ah = make_ah(rig, 1);
	struct ibv_send_wr wr = rc_wr(IBV_WR_SEND, 0, 1, 0);
	struct ibv_recv_wr rwr = {}, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	wr.wr.ud.ah = ah;
	for (uint32_t i = 0; i < ARRAY_SIZE(error); i++) {
		qp->vqp.qp.state = error[i];	/* the test's kernel answers this */
		assert_int_equal(ibv_query_qp(&qp->vqp.qp, &attr, IBV_QP_STATE, &init), 0);
		assert_int_equal(attr.qp_state, error[i]);
		assert_int_equal(post(qp, wr), 0);
		assert_int_equal(ornic_post_recv(&qp->vqp.qp, &rwr, &bad), 0);
		rig_complete(rig, cqe_of(qp->qpn, i, ORNIC_WC_SEND_FLUSHED, ORNIC_WC_WR_FLUSH_ERR));
		assert_int_equal(ornic_poll_cq(&rig->cq->vcq.cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	ornic_destroy_ah(ah);
}

/* One bad request cancels the whole batch; the next batch is unaffected. */
static void test_builder_errors(void **state)
{
	struct rig *rig = *state;
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, ((struct ibv_qp_cap){ 2, 1, 1, 1, 16 }),
				     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	char data[33] = "";	/* one more than the slot holds */

	ibv_wr_start(ex);
	for (int i = 0; i < 3; i++) {
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, 1, 2, 3);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, two_sges);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data, sizeof(data));
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, 1, 2);
	ibv_wr_set_inline_data(ex, data, 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_set_sge(ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 0);
	assert_int_equal(rig_doorbell(rig), 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data, 32);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(le32toh(qp->sq.rec->host_index), 1);
}

static void expect_size(struct rig *rig, enum ibv_qp_type type, struct ibv_qp_cap cap,
			struct ornic_ureq_create_qp want)
{
	struct ornic_qp *qp = rig_qp(rig, type, cap, 0);

	assert_non_null(qp);
	assert_int_equal(kernel.qp_req.sq_log, want.sq_log);
	assert_int_equal(kernel.qp_req.sq_stride, want.sq_stride);
	assert_int_equal(kernel.qp_req.rq_log, want.rq_log);
	assert_int_equal(kernel.qp_req.rq_stride, want.rq_stride);
	assert_memory_equal(&kernel.qp_cap, &qp->cap, sizeof(qp->cap));
	assert_int_equal(kernel.qp_req.buf_addr % 4096, 0);
	assert_int_equal((uintptr_t)qp->sq.rec % 64, 0);
	assert_ptr_equal(qp->rq.rec, qp->sq.rec + 1);
	assert_true((char *)(qp->rq.rec + 1) <= (char *)qp->buf.addr + qp->buf.bytes);
	ornic_destroy_qp(&qp->vqp.qp);
	rig->qp = NULL;
}

#define SIZE(sl, ss, rl, rs) ((struct ornic_ureq_create_qp){ .sq_log = sl, .sq_stride = ss, \
							     .rq_log = rl, .rq_stride = rs })
#define CAP(sw, rw, ss, rs, inl) ((struct ibv_qp_cap){ sw, rw, ss, rs, inl })

static void test_sizes(void **state)
{
	struct rig *rig = *state;

	expect_size(rig, IBV_QPT_RC, CAP(1, 2, 1, 1, 0), SIZE(0, 6, 1, 5));
	/* a ring of one small receive gets two slots, to keep the records aligned */
	expect_size(rig, IBV_QPT_RC, CAP(1, 1, 1, 1, 0), SIZE(0, 6, 1, 5));
	expect_size(rig, IBV_QPT_RC, CAP(100, 300, 2, 3, 32), SIZE(7, 6, 9, 6));
	expect_size(rig, IBV_QPT_RC, CAP(64, 64, 3, 4, 33), SIZE(6, 7, 6, 7));
	expect_size(rig, IBV_QPT_RC, CAP(64, 64, 30, 32, 512), SIZE(6, 10, 6, 10));
	expect_size(rig, IBV_QPT_UD, CAP(64, 64, 4, 2, 64), SIZE(6, 7, 6, 6));
	expect_size(rig, IBV_QPT_UD, CAP(64, 64, 4, 2, 65), SIZE(6, 8, 6, 6));
	expect_size(rig, IBV_QPT_RC, CAP(0, 4, 0, 1, 0), SIZE(ORNIC_ABI_NO_RING, 0, 2, 5));
	expect_size(rig, IBV_QPT_RC, CAP(4, 0, 1, 0, 0), SIZE(2, 6, ORNIC_ABI_NO_RING, 0));
}

static void test_limits(void **state)
{
	struct rig *rig = *state;
	const struct ibv_qp_cap too_much[] = {
		CAP((1 << 15) + 1, 1, 1, 1, 0), CAP(1, (1 << 15) + 1, 1, 1, 0),
		CAP(1, 1, 31, 1, 0), CAP(1, 1, 1, 33, 0), CAP(1, 1, 1, 1, 513),
	};

	for (size_t i = 0; i < ARRAY_SIZE(too_much); i++) {
		assert_null(rig_qp(rig, IBV_QPT_RC, too_much[i], 0));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(rig_qp(rig, IBV_QPT_DRIVER, RC_CAP, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(rig_qp(rig, IBV_QPT_UC, RC_CAP, IBV_QP_EX_WITH_RDMA_READ));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(rig_qp(rig, IBV_QPT_UD, UD_CAP, IBV_QP_EX_WITH_RDMA_READ));
	assert_int_equal(errno, EOPNOTSUPP);
	kernel.fail = ENOSPC;
	assert_null(rig_qp(rig, IBV_QPT_RC, RC_CAP, 0));
	assert_int_equal(errno, ENOSPC);
}

static void test_query(void **state)
{
	struct ornic_qp *qp = rig_qp(*state, IBV_QPT_RC, CAP(100, 10, 1, 1, 0), 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ornic_query_qp(&qp->vqp.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.cap.max_send_wr, 128);
	assert_int_equal(init.cap.max_recv_wr, 16);
	assert_int_equal(init.cap.max_send_sge, 1);
	assert_int_equal(ornic_query_qp_data_in_order(&qp->vqp.qp, IBV_WR_SEND, 0), 0);
	to_octx(qp->vqp.qp.context)->limits.flags = ORNIC_ABI_F_DATA_IN_ORDER;
	assert_int_equal(ornic_query_qp_data_in_order(&qp->vqp.qp, IBV_WR_SEND, 0),
			 IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG);
}

static void test_mr(void **state)
{
	struct rig *rig = *state;
	struct ibv_mr *mr = ornic_reg_mr(rig->pd, &mr, 8, 0, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	kernel.fail = EBUSY;
	assert_int_equal(ornic_dereg_mr(verbs_get_mr(mr)), EBUSY);
	assert_int_equal(ornic_dereg_mr(verbs_get_mr(mr)), 0);
	kernel.fail = EPERM;
	assert_null(ornic_reg_mr(rig->pd, &mr, 8, 0, 0));
	assert_int_equal(errno, EPERM);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_worked_example), RIG_TEST(test_rc_post_send),
		RIG_TEST(test_rc_builders), RIG_TEST(test_uc), RIG_TEST(test_xrc),
		RIG_TEST(test_ud), RIG_TEST(test_ah),
		RIG_TEST(test_recv), RIG_TEST(test_full), RIG_TEST(test_refused),
		RIG_TEST(test_states), RIG_TEST(test_reset_meanwhile),
		RIG_TEST(test_wq_reset_meanwhile), RIG_TEST(test_query_is_late),
		RIG_TEST(test_device_enters_error), RIG_TEST(test_builder_errors),
		RIG_TEST(test_sizes), RIG_TEST(test_limits), RIG_TEST(test_query), RIG_TEST(test_mr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
