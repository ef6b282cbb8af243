// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, ibv_wr_*: every opcode call followed by every data call, in every wrong order of a
 * program. No byte outside the slot changes, and the device can read every published work
 * request.
 */
#include <errno.h>
#include <stdio.h>

#include "test_libornic_kernel.h"

#define SLOTS	4
#define SLOT	1	/* the one that is built; the one before it is skipped */

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

static char bytes[512];
static struct ibv_mr mr = { .lkey = 0x4a07 };
static struct ibv_mw mw = { .rkey = 0x12345601, .type = IBV_MW_TYPE_2 };
static const struct ibv_mw_bind_info info = { .mr = &mr, .addr = 0x1000, .length = 64 };
static struct ibv_ah *ah;

enum { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, SWAP, ADD, FLUSH, ATOMIC_WRITE,
       LOCAL_INV, BIND, NO_OPCODE, OPCODES };

/* Call the opcode function, if the queue pair has it. */
static bool open_wr(struct ibv_qp_ex *ex, int opcode)
{
	switch (opcode) {
	case SEND:
		return ex->wr_send ? ibv_wr_send(ex), true : false;
	case SEND_IMM:
		return ex->wr_send_imm ? ibv_wr_send_imm(ex, 1), true : false;
	case SEND_INV:
		return ex->wr_send_inv ? ibv_wr_send_inv(ex, 1), true : false;
	case WRITE:
		return ex->wr_rdma_write ? ibv_wr_rdma_write(ex, 1, 2), true : false;
	case WRITE_IMM:
		return ex->wr_rdma_write_imm ? ibv_wr_rdma_write_imm(ex, 1, 2, 3), true : false;
	case READ:
		return ex->wr_rdma_read ? ibv_wr_rdma_read(ex, 1, 2), true : false;
	case SWAP:
		return ex->wr_atomic_cmp_swp ? ibv_wr_atomic_cmp_swp(ex, 1, 2, 3, 4), true : false;
	case ADD:
		return ex->wr_atomic_fetch_add ? ibv_wr_atomic_fetch_add(ex, 1, 2, 3), true : false;
#ifndef ORNIC_LACKS_WR_FLUSH
	case FLUSH:
		return ex->wr_flush ? ibv_wr_flush(ex, 1, 2, 64, 1, 0), true : false;
#endif
	case ATOMIC_WRITE:
		return ex->wr_atomic_write ? ibv_wr_atomic_write(ex, 1, 2, bytes), true : false;
	case LOCAL_INV:
		return ex->wr_local_inv ? ibv_wr_local_inv(ex, 1), true : false;
	case BIND:
		return ex->wr_bind_mw ? ibv_wr_bind_mw(ex, &mw, 1, &info), true : false;
	default:
		return opcode == NO_OPCODE;
	}
}

/* No data, 0, 1, 2 or all SGEs, one SGE, inline data of no, one, two parts or all that fits. */
enum { NOTHING, SGES_0, SGES_1, SGES_2, SGES_MAX, ONE_SGE, INLINE_0, INLINE_1, INLINE_2,
       INLINE_MAX, INLINE_MORE, DATA_CALLS };

static void inline_call(struct ibv_qp_ex *ex, size_t parts, size_t length)
{
	const struct ibv_data_buf buf[2] = { { bytes, length }, { bytes, length } };

	ibv_wr_set_inline_data_list(ex, parts, buf);
}

static void give_data(struct ibv_qp_ex *ex, const struct ornic_qp *qp, int call)
{
	static struct ibv_sge sge[32];

	switch (call) {
	case SGES_0: case SGES_1: case SGES_2:
		return ibv_wr_set_sge_list(ex, call - SGES_0, sge);
	case SGES_MAX:
		return ibv_wr_set_sge_list(ex, qp->sq.max_sge, sge);
	case ONE_SGE:
		return ibv_wr_set_sge(ex, 1, 2, 3);
	case INLINE_0: case INLINE_1: case INLINE_2:
		return inline_call(ex, call - INLINE_0, 8);
	case INLINE_MAX:
		return ibv_wr_set_inline_data(ex, bytes, qp->max_inline);
	case INLINE_MORE:
		return inline_call(ex, 2, qp->max_inline / 2 + 1);
	}
}

static void give_address(struct ibv_qp_ex *ex)
{
	if (ex->wr_set_ud_addr)
		ibv_wr_set_ud_addr(ex, ah, 1, 2);
	if (ex->wr_set_xrc_srqn)
		ibv_wr_set_xrc_srqn(ex, 1);
}

/* Return the bytes between control and data, by opcode and type; -1: no data */
static int header(const struct ornic_qp *qp, uint8_t opcode)
{
	switch (opcode) {
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
		return qp->vqp.qp.qp_type == IBV_QPT_UD ? sizeof(struct ornic_path) :
		       qp->vqp.qp.qp_type == IBV_QPT_RAW_PACKET ? sizeof(struct ornic_wqe_eth) :
		       qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND ? sizeof(struct ornic_wqe_remote) : 0;
	case ORNIC_WR_SEND_INV:
		return 0;
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return sizeof(struct ornic_wqe_remote) + sizeof(struct ornic_wqe_atomic);
	case ORNIC_WR_FLUSH:
	case ORNIC_WR_LOCAL_INV:
	case ORNIC_WR_BIND_MW:
		return -1;
	default:
		return sizeof(struct ornic_wqe_remote);
	}
}

/* A published request names no data outside its slot, and none where its opcode has none. */
static void expect_sound(const struct ornic_qp *qp)
{
	const struct ornic_wqe_ctrl *ctrl =
		(void *)((char *)qp->sq.ring + ((size_t)SLOT << qp->sq.stride));
	int before = header(qp, ctrl->opcode), count = le16toh(ctrl->count);
	bool is_inline = ctrl->flags & ORNIC_WQE_INLINE;
	size_t bytes_of_data;

	if (before < 0) {
		assert_int_equal(count, 0);
		assert_false(is_inline);
		return;
	}
	if (ctrl->opcode == ORNIC_WR_ATOMIC_WRITE) {
		assert_true(is_inline);
		assert_int_equal(count, 8);
	}
	if (ctrl->opcode == ORNIC_WR_COMP_SWAP || ctrl->opcode == ORNIC_WR_FETCH_ADD) {
		assert_false(is_inline);
		assert_true(count <= 1);
	}
	bytes_of_data = is_inline ? (size_t)count : count * sizeof(struct ornic_sge);
	assert_true(sizeof(*ctrl) + before + bytes_of_data <= 1u << qp->sq.stride);
}

/* Build one work request; it may be rejected, but no byte outside its slot may change. */
static void build(struct rig *rig, struct ornic_qp *qp, int opcode, const int *data, bool address)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	size_t slot = (size_t)1 << qp->sq.stride;
	char *ring = qp->sq.ring;
	char other[1 << 11];
	size_t rest = (char *)qp->buf.addr + qp->buf.bytes - ring;

	atomic_store(&qp->sq.head, SLOT);
	atomic_store(&qp->sq.tail, SLOT);
	memset(ring, 0xee, slot * SLOTS);
	memset(qp->rq.ring, 0xee, (size_t)qp->rq.entries << qp->rq.stride);
	memset(other, 0xee, sizeof(other));
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	if (!open_wr(ex, opcode)) {
		ibv_wr_abort(ex);
		return;
	}
	if (address)
		give_address(ex);
	give_data(ex, qp, data[0]);
	give_data(ex, qp, data[1]);
	if (!ibv_wr_complete(ex) && opcode != NO_OPCODE)
		expect_sound(qp);
	rig_doorbell(rig);
	assert_memory_equal(ring, other, slot);
	assert_true(rest >= slot * SLOTS);
	for (size_t i = SLOT + 1; i < SLOTS; i++)
		assert_memory_equal(ring + i * slot, other, slot);
	assert_memory_equal(qp->rq.ring, other, (size_t)qp->rq.entries << qp->rq.stride);
}

static void all_calls(struct rig *rig, struct ornic_qp *qp)
{
	for (int opcode = 0; opcode < OPCODES; opcode++)
		for (int calls = 0; calls < DATA_CALLS * DATA_CALLS * 2; calls++) {
			const int data[2] = { calls / 2 % DATA_CALLS, calls / 2 / DATA_CALLS };

			build(rig, qp, opcode, data, calls % 2);
		}
}

static const struct {
	enum ibv_qp_type type;
	uint64_t ops;
} types[] = {
	{ IBV_QPT_RC, ORNIC_SEND_OPS_RC }, { IBV_QPT_UC, ORNIC_SEND_OPS_UC },
	{ IBV_QPT_XRC_SEND, ORNIC_SEND_OPS_XRC }, { IBV_QPT_UD, ORNIC_SEND_OPS_UD },
	{ IBV_QPT_RAW_PACKET, ORNIC_SEND_OPS_RAW },
};

/* The smallest stride for each number of SGEs, or of inline bytes, and larger strides. */
static void test_stays_in_slot(void **state)
{
	static const struct { uint32_t sges, inl; } sizes[] = {
		{ 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 }, { 6, 0 }, { 8, 0 }, { 30, 0 },
		{ 1, 16 }, { 1, 33 }, { 2, 100 }, { 1, 512 },
	};
	struct rig *rig = *state;
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	ah = ornic_create_ah(rig->pd, &attr);
	assert_non_null(ah);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
			struct ibv_qp_cap cap = { SLOTS, 2, sizes[s].sges, 1, sizes[s].inl };
			struct ornic_qp *qp = rig_qp(rig, types[t].type, cap, types[t].ops);

			assert_non_null(qp);
			all_calls(rig, qp);
			assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
			rig->qp = NULL;
		}
	ornic_destroy_ah(ah);
}

/* Requests without data ignore data calls; the call of ATOMIC_WRITE has its operand. */
static void test_no_data(void **state)
{
	static const int without[] = { FLUSH, ATOMIC_WRITE, LOCAL_INV, BIND };
	struct rig *rig = *state;
	const struct ibv_qp_cap cap = { SLOTS, 2, 2, 1, 0 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		for (int call = NOTHING; call < DATA_CALLS; call++) {
			ibv_wr_start(ex);
			if (!open_wr(ex, without[i])) {
				ibv_wr_abort(ex);
				continue;
			}
			give_data(ex, qp, call);
			assert_int_equal(ibv_wr_complete(ex), call == NOTHING ? 0 : EINVAL);
			atomic_store(&qp->sq.tail, atomic_load(&qp->sq.head));
		}
}

/* The last data call counts, for every kind of earlier data call. */
static void test_data_again(void **state)
{
	struct rig *rig = *state;
	const struct ibv_qp_cap cap = { SLOTS, 2, 2, 1, 32 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	const struct ornic_wqe_ctrl *ctrl = qp->sq.ring;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, bytes, 5);
	ibv_wr_set_sge(ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(ctrl->flags & ORNIC_WQE_INLINE, 0);
	assert_int_equal(le16toh(ctrl->count), 1);
}

/* INLINE in wr_flags has no effect: the data call decides whether the data is inline. */
static void test_inline_flag(void **state)
{
	static const struct { int opcode, call; bool is_inline; uint16_t count; } t[] = {
		{ SEND, ONE_SGE, false, 1 }, { SEND, NOTHING, false, 0 },
		{ SEND, INLINE_1, true, 8 }, { READ, ONE_SGE, false, 1 },
		{ ADD, ONE_SGE, false, 1 }, { LOCAL_INV, NOTHING, false, 0 },
		{ ATOMIC_WRITE, NOTHING, true, 8 },
	};
	struct rig *rig = *state;
	const struct ibv_qp_cap cap = { SLOTS, 2, 2, 1, 32 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	for (uint32_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct ornic_wqe_ctrl *ctrl =
			(void *)((char *)qp->sq.ring + ((i % SLOTS) << qp->sq.stride));

		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
		assert_true(open_wr(ex, t[i].opcode));
		give_data(ex, qp, t[i].call);
		assert_int_equal(ibv_wr_complete(ex), 0);
		assert_int_equal(ctrl->flags, ORNIC_WQE_SIGNALED |
				 (t[i].is_inline ? ORNIC_WQE_INLINE : 0));
		assert_int_equal(le16toh(ctrl->count), t[i].count);
		atomic_store(&qp->sq.tail, atomic_load(&qp->sq.head));
	}
}

/* ORN-WQE-64: before RTS nothing is posted, as by ibv_post_send(). */
static void test_states(void **state)
{
	struct rig *rig = *state;
	const struct ibv_qp_cap cap = { SLOTS, 2, 1, 1, 0 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	for (int s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		rig_state(qp, s);
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		assert_int_equal(ibv_wr_complete(ex), s < IBV_QPS_RTS ? EINVAL : 0);
	}
	assert_int_equal(le32toh(qp->sq.rec->host_index), IBV_QPS_ERR - IBV_QPS_RTS + 1);
}

/* In a full queue no opcode call writes anything. */
static void test_full(void **state)
{
	const struct ibv_qp_cap cap = { 1, 2, 1, 1, 0 };
	struct rig *rig = *state;
	char before[256];

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct ornic_qp *qp = rig_qp(rig, types[t].type, cap, types[t].ops);
		struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
		size_t bytes_of_ring = 1u << qp->sq.stride;

		assert_in_range(bytes_of_ring, 1, sizeof(before));
		for (int opcode = 0; opcode < NO_OPCODE; opcode++) {
			ibv_wr_start(ex);
			ibv_wr_send(ex);
			memcpy(before, qp->sq.ring, bytes_of_ring);
			if (open_wr(ex, opcode))
				assert_int_equal(ibv_wr_complete(ex), ENOMEM);
			else
				ibv_wr_abort(ex);
			assert_memory_equal(qp->sq.ring, before, bytes_of_ring);
			assert_int_equal(atomic_load(&qp->sq.head), 0);
		}
		assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
		rig->qp = NULL;
	}
}

/* ibv_wr_complete() returns the first error, also if a bad bind follows a full queue. */
static void test_first_error(void **state)
{
	struct rig *rig = *state;
	const struct ibv_qp_cap cap = { 1, 2, 1, 1, 0 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	const struct ibv_mw_bind_info bad = { .length = 1 };

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_send(ex);
	ibv_wr_bind_mw(ex, &mw, 1, &bad);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
}

/* Start a batch, send with @flags and return the result. */
static int send_with(struct ornic_qp *qp, unsigned int flags)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ibv_wr_start(ex);
	ex->wr_flags = flags;
	ibv_wr_send(ex);
	return ibv_wr_complete(ex);
}

/* Errors that no poll of the CQ removes are not ENOMEM, as with ibv_post_send(). */
static void test_lasting_errors(void **state)
{
	struct rig *rig = *state;
	struct ibv_qp_cap cap = { 0, 2, 0, 1, 0 };
	struct ornic_qp *qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);

	assert_int_equal(send_with(qp, 0), EINVAL);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	cap = (struct ibv_qp_cap){ 1, 2, 1, 1, 0 };
	qp = rig_qp(rig, IBV_QPT_RC, cap, ORNIC_SEND_OPS_RC);
	assert_int_equal(send_with(qp, 0), 0);
	assert_int_equal(send_with(qp, IBV_SEND_IP_CSUM), EINVAL);
	assert_int_equal(send_with(qp, 0), ENOMEM);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_stays_in_slot), RIG_TEST(test_no_data), RIG_TEST(test_data_again),
		RIG_TEST(test_inline_flag), RIG_TEST(test_full), RIG_TEST(test_first_error),
		RIG_TEST(test_states), RIG_TEST(test_lasting_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
