// SPDX-License-Identifier: GPL-2.0
/* Work requests of the kernel: the ring entries of a post, and rejected requests. */
#include <kunit/test.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/ring.h>
#include <linux/ornic/hw/wqe.h>

#include "../ah.h"
#include "../cq.h"
#include "../ornic_ib.h"
#include "../post.h"
#include "../qp.h"
#include "../wq.h"

#define LOG_ENTRIES	2
#define LOG_STRIDE	8
#define QPN		0x123
#define FIRST		0xfffffffeu	/* the index wraps soon */
#define INLINE_BYTES	32
#define MAX_SGE		3

/**
 * struct ornic_test_qp - a queue pair without a device
 * @dev: its device
 * @cq: its completion queue
 * @qp: itself
 * @rec: doorbell record of both queues; asks for no doorbell
 * @page: both rings, send queue first
 * @cpu: where @page is, as the queues name it
 * @wr: of both queues
 */
struct ornic_test_qp {
	struct ornic_ib_dev dev;
	struct ornic_ib_cq cq;
	struct ornic_ib_qp qp;
	struct ornic_rec rec;
	void *page;
	void *cpu[1];
	struct ornic_ib_wr wr[1 << LOG_ENTRIES];
};

static void ornic_test_queue(struct ornic_test_qp *t, struct ornic_ib_wq *wq, size_t at)
{
	spin_lock_init(&wq->lock);
	wq->cpu = t->cpu;
	wq->at = at;
	wq->rec = &t->rec;
	wq->wr = t->wr;
	wq->log = LOG_ENTRIES;
	wq->stride = LOG_STRIDE;
	wq->max_sge = MAX_SGE;
	wq->max_inline = INLINE_BYTES;
	wq->prod = FIRST;
	wq->cons = FIRST;
}

static struct ornic_test_qp *ornic_test_qp(struct kunit *test, enum ib_qp_type type)
{
	struct ornic_test_qp *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->page = kunit_kzalloc(test, 2 << (LOG_ENTRIES + LOG_STRIDE), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->page);
	t->cpu[0] = t->page;
	/* a slot is written in full: no former content may remain */
	memset(t->page, 0xa5, 2 << (LOG_ENTRIES + LOG_STRIDE));
	t->rec.notify = cpu_to_le32((FIRST - 1) & ORNIC_NOTIFY_INDEX);
	t->qp.ibqp.device = &t->dev.ibdev;
	t->qp.ibqp.send_cq = &t->cq.ibcq;
	t->qp.ibqp.recv_cq = &t->cq.ibcq;
	t->qp.ibqp.qp_type = type;
	t->qp.qpn = QPN;
	t->qp.state = IB_QPS_RTS;
	ornic_test_queue(t, &t->qp.sq, 0);
	ornic_test_queue(t, &t->qp.rq, 1 << (LOG_ENTRIES + LOG_STRIDE));
	return t;
}

static void *ornic_test_slot(const struct ornic_ib_wq *wq, u32 index)
{
	return ornic_ib_wqe(wq, index);
}

static int ornic_test_post(struct ornic_test_qp *t, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad = NULL;

	return ornic_ib_post_send(&t->qp.ibqp, wr, &bad);
}

/* Return the control segment of the first request. */
static struct ornic_wqe_ctrl *ornic_test_ctrl(struct kunit *test, struct ornic_test_qp *t,
					      u8 opcode, u8 flags, u16 count)
{
	struct ornic_wqe_ctrl *ctrl = ornic_test_slot(&t->qp.sq, FIRST);

	KUNIT_EXPECT_EQ(test, ctrl->opcode, opcode);
	KUNIT_EXPECT_EQ(test, ctrl->flags, flags);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(ctrl->count), count);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->qpn), QPN);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->index), FIRST);
	return ctrl;
}

static void ornic_test_sge(struct kunit *test, const struct ornic_sge *have,
			   const struct ib_sge *want)
{
	KUNIT_EXPECT_EQ(test, le64_to_cpu(have->addr), want->addr);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(have->length), want->length);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(have->lkey), want->lkey);
}

static void ornic_test_send(struct kunit *test)
{
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	struct ib_sge sge[] = { { 0x1122334455667788, 0x100, 0x42 }, { 0x2000, 0, 0x43 } };
	struct ib_send_wr wr = {
		.wr_id = 7,
		.opcode = IB_WR_SEND_WITH_IMM,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_SOLICITED,
		.sg_list = sge,
		.num_sge = 2,
		.ex.imm_data = cpu_to_be32(0x01020304),
	};
	struct ornic_wqe_ctrl *ctrl;

	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr), 0);
	ctrl = ornic_test_ctrl(test, t, ORNIC_WR_SEND_IMM,
			       ORNIC_WQE_SIGNALED | ORNIC_WQE_SOLICITED, 2);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->imm), 0x01020304);
	ornic_test_sge(test, (struct ornic_sge *)(ctrl + 1), &sge[0]);
	ornic_test_sge(test, (struct ornic_sge *)(ctrl + 1) + 1, &sge[1]);
	KUNIT_EXPECT_EQ(test, t->wr[FIRST & 3].id, 7);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->rec.host_index), FIRST + 1);
}

static void ornic_test_inline(struct kunit *test)
{
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	static const u8 text[INLINE_BYTES + 1] = "abcdefghijklmnopqrstuvwxyz012345";
	struct ib_sge sge[] = {
		{ (uintptr_t)text, 5, 0 },
		{ (uintptr_t)text + 5, INLINE_BYTES - 5, 0 },
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_INLINE, .sg_list = sge, .num_sge = 2,
	};
	struct ornic_wqe_ctrl *ctrl;

	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr), 0);
	ctrl = ornic_test_ctrl(test, t, ORNIC_WR_SEND, ORNIC_WQE_INLINE, INLINE_BYTES);
	KUNIT_EXPECT_MEMEQ(test, ctrl + 1, text, INLINE_BYTES);

	sge[1].length++;
	KUNIT_EXPECT_EQ(test, ornic_test_post(t, &wr), -EINVAL);
	sge[1].length = U32_MAX;
	KUNIT_EXPECT_EQ(test, ornic_test_post(t, &wr), -EINVAL);
	KUNIT_EXPECT_EQ(test, t->qp.sq.prod, FIRST + 1);
}

static void ornic_test_rdma(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode verb;
		u8 opcode;
	} cases[] = {
		{ IB_WR_RDMA_WRITE, ORNIC_WR_RDMA_WRITE },
		{ IB_WR_RDMA_WRITE_WITH_IMM, ORNIC_WR_RDMA_WRITE_IMM },
		{ IB_WR_RDMA_READ, ORNIC_WR_RDMA_READ },
	};
	struct ib_sge sge = { 0x3000, 64, 0x44 };
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
		struct ib_rdma_wr wr = {
			.wr = { .opcode = cases[i].verb, .sg_list = &sge, .num_sge = 1 },
			.remote_addr = 0x8877665544332211,
			.rkey = 0x4b,
		};
		struct ornic_wqe_remote *remote;

		KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr.wr), 0);
		remote = (struct ornic_wqe_remote *)
			 (ornic_test_ctrl(test, t, cases[i].opcode, 0, 1) + 1);
		KUNIT_EXPECT_EQ(test, le64_to_cpu(remote->addr), 0x8877665544332211);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(remote->rkey), 0x4b);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(remote->xrc_srqn), 0);
		ornic_test_sge(test, (struct ornic_sge *)(remote + 1), &sge);
	}
}

static void ornic_test_atomics(struct kunit *test)
{
	struct ib_sge sge = { 0x3000, 8, 0x44 };
	struct ib_atomic_wr wr = {
		.wr = { .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = 0x4000, .rkey = 0x4b, .compare_add = 11, .swap = 22,
	};
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	struct ornic_wqe_atomic *operands;
	struct ornic_wqe_ctrl *ctrl;

	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr.wr), 0);
	ctrl = ornic_test_ctrl(test, t, ORNIC_WR_COMP_SWAP, 0, 1);
	operands = (void *)(ctrl + 1) + sizeof(struct ornic_wqe_remote);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(operands->swap_add), 22);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(operands->compare), 11);
	ornic_test_sge(test, (struct ornic_sge *)(operands + 1), &sge);

	t = ornic_test_qp(test, IB_QPT_RC);
	wr.wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr.wr), 0);
	ctrl = ornic_test_ctrl(test, t, ORNIC_WR_FETCH_ADD, 0, 1);
	operands = (void *)(ctrl + 1) + sizeof(struct ornic_wqe_remote);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(operands->swap_add), 11);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(operands->compare), 0);

	wr.wr.num_sge = 0;
	KUNIT_EXPECT_EQ(test, ornic_test_post(t, &wr.wr), -EINVAL);
}

static void ornic_test_datagram(struct kunit *test)
{
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_UD);
	struct ib_sge sge = { 0x3000, 64, 0x44 };
	struct ornic_ib_ah ah = { .path.sgid_index = cpu_to_le16(3) };
	struct ib_ud_wr wr = {
		.wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 },
		.ah = &ah.ibah, .remote_qpn = 0xff000456, .remote_qkey = 0x80000001,
	};
	struct ornic_path *path;

	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr.wr), 0);
	path = (struct ornic_path *)(ornic_test_ctrl(test, t, ORNIC_WR_SEND, 0, 1) + 1);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(path->sgid_index), 3);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(path->dest_qpn), 0x456);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(path->qkey), 0x80000001);
	ornic_test_sge(test, (struct ornic_sge *)(path + 1), &sge);

	wr.ah = NULL;
	KUNIT_EXPECT_EQ(test, ornic_test_post(t, &wr.wr), -EINVAL);
}

static void ornic_test_local_inv(struct kunit *test)
{
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_FENCE,
		.ex.invalidate_rkey = 0x1234,
	};
	struct ornic_wqe_ctrl *ctrl;

	KUNIT_ASSERT_EQ(test, ornic_test_post(t, &wr), 0);
	ctrl = ornic_test_ctrl(test, t, ORNIC_WR_LOCAL_INV, ORNIC_WQE_FENCE, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->inv_key), 0x1234);
}

/* A transport rejects operations that it does not have, and the ring is unchanged. */
static void ornic_test_rejected(struct kunit *test)
{
	static const struct {
		enum ib_qp_type type;
		enum ib_wr_opcode opcode;
		int flags;
		int num_sge;
	} cases[] = {
		{ IB_QPT_UD, IB_WR_RDMA_WRITE, 0, 1 },
		{ IB_QPT_UD, IB_WR_LOCAL_INV, 0, 0 },
		{ IB_QPT_UC, IB_WR_RDMA_READ, 0, 1 },
		{ IB_QPT_UC, IB_WR_SEND_WITH_INV, 0, 1 },
		{ IB_QPT_UC, IB_WR_ATOMIC_FETCH_AND_ADD, 0, 1 },
		{ IB_QPT_RC, IB_WR_RDMA_READ, IB_SEND_INLINE, 1 },
		{ IB_QPT_RC, IB_WR_ATOMIC_CMP_AND_SWP, IB_SEND_INLINE, 1 },
		{ IB_QPT_RC, IB_WR_SEND, IB_SEND_IP_CSUM, 1 },
		{ IB_QPT_RC, IB_WR_SEND, 0, MAX_SGE + 1 },
		{ IB_QPT_RC, IB_WR_SEND, 0, -1 },
		{ IB_QPT_RC, IB_WR_LSO, 0, 1 },
	};
	struct ib_sge sge[MAX_SGE + 1] = { { 0x3000, 8, 0x44 } };
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ornic_test_qp *t = ornic_test_qp(test, cases[i].type);
		struct ib_atomic_wr wr = {
			.wr = {
				.opcode = cases[i].opcode,
				.send_flags = cases[i].flags,
				.sg_list = sge,
				.num_sge = cases[i].num_sge,
			},
		};

		KUNIT_EXPECT_EQ_MSG(test, ornic_test_post(t, &wr.wr), -EINVAL, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, t->qp.sq.prod, FIRST, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(t->rec.host_index), 0, "case %d", i);
	}
}

/* A queue pair sends from RTS on; posting a list stops at the first request that does not fit. */
static void ornic_test_states_and_room(struct kunit *test)
{
	static const enum ib_qp_state early[] = { IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR };
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	struct ib_send_wr wr[(1 << LOG_ENTRIES) + 1] = {};
	const struct ib_send_wr *bad = NULL;
	int i;

	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].opcode = IB_WR_SEND;
		wr[i].wr_id = i;
		wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
	}
	for (i = 0; i < ARRAY_SIZE(early); i++) {
		t->qp.state = early[i];
		KUNIT_EXPECT_EQ(test, ornic_test_post(t, wr), -EINVAL);
	}
	t->qp.state = IB_QPS_RTS;
	KUNIT_EXPECT_EQ(test, ornic_ib_post_send(&t->qp.ibqp, wr, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_send_wr *)&wr[1 << LOG_ENTRIES]);
	KUNIT_EXPECT_EQ(test, t->qp.sq.prod, FIRST + (1 << LOG_ENTRIES));
	for (i = 0; i < 1 << LOG_ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, t->wr[(FIRST + i) & 3].id, i);
}

static void ornic_test_receive(struct kunit *test)
{
	struct ornic_test_qp *t = ornic_test_qp(test, IB_QPT_RC);
	struct ib_sge sge[] = { { 0x1000, 64, 0x42 }, { 0x2000, 128, 0x43 } };
	struct ib_recv_wr wr = { .wr_id = 9, .sg_list = sge, .num_sge = 2 };
	const struct ib_recv_wr *bad = NULL;
	struct ornic_rwqe *rwqe = ornic_test_slot(&t->qp.rq, FIRST);

	KUNIT_ASSERT_EQ(test, ornic_ib_post_recv(&t->qp.ibqp, &wr, &bad), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(rwqe->count), 2);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(rwqe->mbz0), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rwqe->id), FIRST);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(rwqe->mbz1), 0);
	ornic_test_sge(test, (struct ornic_sge *)(rwqe + 1), &sge[0]);
	ornic_test_sge(test, (struct ornic_sge *)(rwqe + 1) + 1, &sge[1]);
	KUNIT_EXPECT_EQ(test, t->wr[FIRST & 3].id, 9);

	wr.num_sge = MAX_SGE + 1;
	KUNIT_EXPECT_EQ(test, ornic_ib_post_recv(&t->qp.ibqp, &wr, &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr);
}

static struct kunit_case ornic_wqe_cases[] = {
	KUNIT_CASE(ornic_test_send),
	KUNIT_CASE(ornic_test_inline),
	KUNIT_CASE(ornic_test_rdma),
	KUNIT_CASE(ornic_test_atomics),
	KUNIT_CASE(ornic_test_datagram),
	KUNIT_CASE(ornic_test_local_inv),
	KUNIT_CASE(ornic_test_rejected),
	KUNIT_CASE(ornic_test_states_and_room),
	KUNIT_CASE(ornic_test_receive),
	{}
};

static struct kunit_suite ornic_wqe_suite = {
	.name = "ornic_wqe",
	.test_cases = ornic_wqe_cases,
};

kunit_test_suite(ornic_wqe_suite);
