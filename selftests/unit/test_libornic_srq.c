// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, shared receive queues: ids, entries, completions in any order, entries returned by
 * RESET and destroy of a queue pair; another ring while entries are posted (ORN-SRQ-15 to 19).
 */
#include <errno.h>

#include "test_libornic_kernel.h"

#define QPN	0x123
#define SRQN	0x77
#define ENTRIES	4

struct srq_rig {
	struct rig rig;
	struct ornic_srq *srq;
};

static struct ornic_srq *srq_of(struct rig *rig, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge } };
	struct ibv_srq *srq = ornic_create_srq(rig->pd, &attr);

	return srq ? to_osrq(srq) : NULL;
}

static void rig_srq_qp(struct srq_rig *r)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &r->rig.cq->vcq.cq,
		.recv_cq = &r->rig.cq->vcq.cq,
		.srq = &r->srq->vsrq.srq,
		.cap = { .max_send_wr = 2, .max_send_sge = 1, .max_recv_wr = 5,
			 .max_recv_sge = 500 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = r->rig.pd,
	};

	kernel.qpn = QPN;
	r->rig.qp = to_oqp(ornic_create_qp_ex(&r->rig.ctx->ibv_ctx.context, &attr));
	assert_non_null(r->rig.qp);
	rig_state(r->rig.qp, IBV_QPS_RTS);
	assert_int_equal(attr.cap.max_recv_wr, 0);
}

static int setup(void **state)
{
	static struct srq_rig r;

	rig_open(&r.rig, 16);
	r.rig.ctx->limits.log_max_srq = 4;
	r.rig.ctx->limits.max_srq_sge = 4;
	r.srq = srq_of(&r.rig, ENTRIES - 1, 3);
	assert_non_null(r.srq);
	rig_srq_qp(&r);
	*state = &r;
	return 0;
}

static int teardown(void **state)
{
	struct srq_rig *r = *state;

	if (r->rig.qp)
		assert_int_equal(ornic_destroy_qp(&r->rig.qp->vqp.qp), 0);
	r->rig.qp = NULL;
	assert_int_equal(ornic_destroy_srq(&r->srq->vsrq.srq), 0);
	rig_close(&r->rig);
	return 0;
}

static int post_to(struct ornic_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = 0x1000, .length = 64, .lkey = 5 };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad = NULL;
	int ret = ornic_post_srq_recv(&srq->vsrq.srq, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

static int post(struct srq_rig *r, uint64_t wr_id)
{
	return post_to(r->srq, wr_id);
}

/* Return the id in the entry at ring index @index of the ring of @entries at @ring. */
static uint32_t id_in(const void *ring, uint32_t entries, unsigned int stride, uint32_t index)
{
	const struct ornic_rwqe *e = (const void *)((const char *)ring +
		((size_t)(index & (entries - 1)) << stride));

	assert_int_equal(le16toh(e->count), 1);
	assert_int_equal(le32toh(((const struct ornic_sge *)(e + 1))->lkey), 5);
	return le32toh(e->id);
}

static uint32_t id_at(struct srq_rig *r, uint32_t index)
{
	return id_in(r->srq->wq.ring, r->srq->wq.entries, r->srq->wq.stride, index);
}

static struct ornic_cqe done(uint32_t id, uint32_t srqn)
{
	struct ornic_cqe cqe = cqe_of(QPN, id, ORNIC_WC_RECV, 0);

	cqe.srqn = htole32(srqn);
	return cqe;
}

static int poll_one(struct srq_rig *r, uint64_t *wr_id)
{
	struct ibv_wc wc;
	int n = ornic_poll_cq(&r->rig.cq->vcq.cq, 1, &wc);

	if (n)
		*wr_id = wc.wr_id;
	return n;
}

/* Any order of completion frees exactly the entries that completed (ORN-SRQ-15). */
static void test_any_order(void **state)
{
	struct srq_rig *r = *state;
	uint32_t id[ENTRIES];
	uint64_t wr_id;

	for (uint32_t i = 0; i < ENTRIES; i++) {
		assert_int_equal(post(r, 0x100 + i), 0);
		id[i] = id_at(r, i);
	}
	assert_int_equal(post(r, 1), ENOMEM);
	assert_int_equal(le32toh(r->srq->wq.rec->host_index), ENTRIES);
	assert_int_equal(rig_doorbell(&r->rig),
			 SRQN | (uint64_t)ORNIC_DB_SRQ << ORNIC_DB_KIND_SHIFT |
			 (uint64_t)ENTRIES << ORNIC_DB_VALUE_SHIFT);
	rig_complete(&r->rig, done(id[2], SRQN));
	rig_complete(&r->rig, done(id[0], SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 0x102);
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 0x100);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(post(r, 0x200 + i), 0);
		assert_true(id_at(r, ENTRIES + i) == id[0] || id_at(r, ENTRIES + i) == id[2]);
	}
	assert_int_equal(post(r, 1), ENOMEM);
}

/* ORN-SEC-18: an id that is not posted, out of range, or of another SRQ is skipped. */
static void test_hostile(void **state)
{
	struct srq_rig *r = *state;
	uint64_t wr_id;

	assert_int_equal(post(r, 7), 0);
	rig_complete(&r->rig, done(1, SRQN));
	rig_complete(&r->rig, done(ENTRIES, SRQN));
	rig_complete(&r->rig, done(0xffffffff, SRQN));
	rig_complete(&r->rig, done(0xfffffffe, SRQN));
	rig_complete(&r->rig, done(id_at(r, 0), SRQN + 1));
	rig_complete(&r->rig, done(id_at(r, 0), ORNIC_NONE));
	assert_int_equal(poll_one(r, &wr_id), 0);
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 7);
	assert_int_equal(poll_one(r, &wr_id), 0);
}

static struct rig *flooded;		/* the device writes here whenever a lock is taken */
static unsigned int flood;		/* writes left */

/* Replaces libc's function, which the provider calls while it looks at an entry. */
int pthread_spin_lock(pthread_spinlock_t *lock)
{
	while (pthread_spin_trylock(lock))
		;
	if (flood) {
		flood--;
		rig_complete(flooded, done(ENTRIES, SRQN));
	}
	return 0;
}

/* ORN-SEC-18: polling ends, although there is always one more entry that does not count. */
static void test_endless(void **state)
{
	struct srq_rig *r = *state;
	uint64_t wr_id;

	assert_int_equal(post(r, 7), 0);
	flooded = &r->rig;
	flood = 1000;
	assert_int_equal(poll_one(r, &wr_id), 0);
	assert_int_equal(r->rig.cq->index, 1u << r->rig.cq->mem.log);
	assert_int_equal(le32toh(r->rig.cq->mem.rec->host_index), 1u << r->rig.cq->mem.log);
	flood = 0;
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 7);
}

/* ORN-SRQ-16; ORN-SEC-18: a dropped entry that names another SRQ frees nothing. */
static void test_dropped(void **state)
{
	struct srq_rig *r = *state;
	uint64_t wr_id;

	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(post(r, i), 0);
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	rig_state(r->rig.qp, IBV_QPS_RESET);
	assert_int_equal(poll_one(r, &wr_id), 0);
	assert_int_equal(post(r, 9), 0);
	assert_int_equal(post(r, 9), ENOMEM);
	rig_complete(&r->rig, done(id_at(r, 1), SRQN + 1));
	rig_complete(&r->rig, done(id_at(r, 1), ORNIC_NONE));
	rig_state(r->rig.qp, IBV_QPS_RESET);
	assert_int_equal(post(r, 9), ENOMEM);
	rig_state(r->rig.qp, IBV_QPS_RTS);
	rig_complete(&r->rig, done(id_at(r, 1), SRQN));
	assert_int_equal(ornic_destroy_qp(&r->rig.qp->vqp.qp), 0);
	r->rig.qp = NULL;
	assert_int_equal(post(r, 9), 0);
	assert_int_equal(post(r, 9), ENOMEM);
}

/* An XRC SRQ whose receives complete to the CQ of the rig. */
static struct ornic_srq *xrc_srq(struct srq_rig *r, uint32_t srqn)
{
	static struct verbs_xrcd xrcd;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = ENTRIES, .max_sge = 3 }, .pd = r->rig.pd, .xrcd = &xrcd.xrcd,
		.cq = &r->rig.cq->vcq.cq, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq;

	kernel.srqn = srqn;
	srq = ornic_create_srq_ex(&r->rig.ctx->ibv_ctx.context, &attr);
	assert_non_null(srq);
	return to_osrq(srq);
}

static void post_own(struct ornic_qp *qp)
{
	struct ibv_recv_wr wr = { .wr_id = 0x400 }, *bad;

	assert_int_equal(ornic_post_recv(&qp->vqp.qp, &wr, &bad), 0);
}

/* A queue pair with a receive queue, one receive posted. */
static struct ornic_qp *rq_qp(struct srq_rig *r, uint32_t qpn)
{
	struct ornic_qp *first = r->rig.qp, *qp;
	struct ibv_qp_cap cap = { 1, 2, 1, 1, 0 };

	kernel.qpn = qpn;
	qp = rig_qp(&r->rig, IBV_QPT_RC, cap, 0);
	assert_non_null(qp);
	r->rig.qp = first;
	post_own(qp);
	return qp;
}

/*
 * A completion of an XRC SRQ frees its entry, even if a queue pair has got the number of the
 * target and is reset. It never completes a receive of that queue pair, not even after the SRQ is
 * destroyed.
 */
static void test_xrc_target_number_reused(void **state)
{
	struct srq_rig *r = *state;
	struct ornic_srq *xrc = xrc_srq(r, SRQN + 1);
	struct ornic_qp *qp = rq_qp(r, QPN + 1);
	struct ornic_cqe cqe = cqe_of(QPN + 1, 0, ORNIC_WC_RECV, 0);
	struct ibv_wc wc;
	uint64_t wr_id;

	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(post_to(xrc, 0x300 + i), 0);
	cqe.srqn = htole32(SRQN + 1);
	rig_complete(&r->rig, cqe);
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 0x300);
	assert_int_equal(post_to(xrc, 0x300), 0);
	assert_int_equal(post_to(xrc, 0x300), ENOMEM);
	cqe.srqn = htole32(SRQN);
	rig_complete(&r->rig, cqe);
	assert_int_equal(poll_one(r, &wr_id), 0);
	cqe.srqn = htole32(SRQN + 1);
	rig_complete(&r->rig, cqe);
	rig_state(qp, IBV_QPS_RESET);
	assert_int_equal(ornic_poll_cq(&r->rig.cq->vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0x300);
	assert_int_equal(wc.qp_num, QPN + 1);
	rig_state(qp, IBV_QPS_RTS);
	post_own(qp);
	assert_int_equal(post_to(xrc, 0x300), 0);
	rig_complete(&r->rig, cqe);
	assert_int_equal(ornic_destroy_srq(&xrc->vsrq.srq), 0);
	assert_int_equal(poll_one(r, &wr_id), 0);
	cqe.srqn = htole32(ORNIC_NONE);
	rig_complete(&r->rig, cqe);
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 0x400);
	assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
}

/* A dropped completion is not taken for one of an XRC SRQ that got the number of the SRQ. */
static void test_srq_number_reused(void **state)
{
	struct srq_rig *r = *state;
	uint64_t wr_id;

	assert_int_equal(post(r, 1), 0);
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	assert_int_equal(ornic_destroy_qp(&r->rig.qp->vqp.qp), 0);
	r->rig.qp = NULL;
	assert_int_equal(ornic_destroy_srq(&r->srq->vsrq.srq), 0);
	r->srq = xrc_srq(r, SRQN);
	assert_int_equal(post(r, 2), 0);
	assert_int_equal(poll_one(r, &wr_id), 0);
	rig_complete(&r->rig, done(id_at(r, 0), SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 2);
}

static void test_create(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_sge sge[4] = {};
	uint32_t number;

	assert_int_equal(kernel.srq_req.log_entries, 2);
	assert_int_equal(kernel.srq_req.stride, 6);
	assert_int_equal(kernel.srq_req.buf_addr, (uintptr_t)r->srq->wq.ring);
	assert_int_equal(kernel.qp_req.rq_log, ORNIC_ABI_NO_RING);
	assert_int_equal(ornic_get_srq_num(&r->srq->vsrq.srq, &number), 0);
	assert_int_equal(number, SRQN);
	assert_null(srq_of(&r->rig, 0, 1));
	assert_null(srq_of(&r->rig, 17, 1));
	assert_null(srq_of(&r->rig, 4, 5));
	kernel.fail = ENOSPC;
	assert_null(srq_of(&r->rig, 4, 1));
	assert_int_equal(errno, ENOSPC);
	/* A queue pair with an SRQ has no receive queue to post to. */
	assert_int_equal(ornic_post_recv(&r->rig.qp->vqp.qp, &wr, &bad), EINVAL);
	wr.sg_list = sge;
	wr.num_sge = 4;
	assert_int_equal(ornic_post_srq_recv(&r->srq->vsrq.srq, &wr, &bad), EINVAL);
}

static int resize(struct srq_rig *r, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ornic_modify_srq(&r->srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR);
}

static struct srq_rig *resized;		/* the SRQ whose command is running */
static uint32_t meanwhile;		/* entries that its application posts meanwhile */
static int meanwhile_ret;		/* result of posting one more */

/*
 * ORN-SRQ-17, ORN-SRQ-18, ORN-SRQ-19, ORN-SRQ-25: while the command runs, both rings have the
 * same contents for all entries that the device may not have taken, and both records are equal.
 */
static void compare_rings(struct ibv_srq *ibsrq)
{
	struct ornic_srq *srq = to_osrq(ibsrq);
	uint32_t entries = 1u << kernel.srq_modify_req.log_entries;
	char *ring = (char *)(uintptr_t)kernel.srq_modify_req.buf_addr;
	struct ornic_rec *rec = (void *)(ring + ((size_t)entries << srq->wq.stride));
	struct ornic_rec fresh = { .notify = htole32(ORNIC_NOTIFY_ALWAYS) };
	uint32_t n = entries < srq->wq.entries ? entries : srq->wq.entries;
	uint32_t head;

	fresh.host_index = srq->wq.rec->host_index;
	assert_memory_equal(rec, &fresh, sizeof(fresh));
	for (uint32_t i = 0; i < meanwhile; i++)
		assert_int_equal(post(resized, 0x500 + i), 0);
	meanwhile_ret = post(resized, 0x5ff);
	head = srq->wq.head;
	assert_int_equal(le32toh(rec->host_index), head);
	assert_int_equal(le32toh(srq->wq.rec->host_index), head);
	for (uint32_t i = head > n ? head - n : 0; i < head; i++)
		assert_int_equal(id_in(ring, entries, srq->wq.stride, i), id_at(resized, i));
}

/* Entries posted before, meanwhile and after; capacity is that of the new ring. */
static void test_grow(void **state)
{
	struct srq_rig *r = *state;
	uint32_t id;
	uint64_t wr_id;

	for (uint32_t i = 0; i < ENTRIES - 1; i++)
		assert_int_equal(post(r, 0x100 + i), 0);
	id = id_at(r, 1);
	resized = r;
	meanwhile = 0;
	kernel.on_srq_resize = compare_rings;
	assert_int_equal(resize(r, 9), 0);
	assert_int_equal(kernel.srq_mask, IBV_SRQ_MAX_WR);
	assert_int_equal(kernel.srq_attr.max_wr, 16);
	assert_int_equal(kernel.srq_modify_req.log_entries, 4);
	assert_int_equal(kernel.srq_modify_req.buf_addr, (uintptr_t)r->srq->wq.ring);
	assert_int_equal(id_at(r, 1), id);
	/* the one posted meanwhile was the last that both rings hold */
	assert_int_equal(meanwhile_ret, 0);
	for (uint32_t i = 0; i < 16 - ENTRIES; i++)
		assert_int_equal(post(r, 0x200 + i), 0);
	assert_int_equal(post(r, 1), ENOMEM);
	rig_complete(&r->rig, done(id, SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(wr_id, 0x101);
	for (uint32_t i = 0; i < 16 - ENTRIES; i++) {
		rig_complete(&r->rig, done(id_at(r, ENTRIES + i), SRQN));
		assert_int_equal(poll_one(r, &wr_id), 1);
		assert_int_equal(wr_id, 0x200 + i);
	}
}

/* Ids of posted entries survive a ring with fewer slots than their numbers, in any lap. */
static void test_shrink(void **state)
{
	struct srq_rig *r = *state;
	uint32_t id[10];
	uint64_t wr_id;

	assert_int_equal(resize(r, 16), 0);
	for (uint32_t lap = 0; lap < 3; lap++)
		for (uint32_t i = 0; i < 10; i++) {
			assert_int_equal(post(r, 0x300 + i), 0);
			id[i] = id_at(r, lap * 10 + i);
			if (lap == 2 && i >= 5)
				continue;
			rig_complete(&r->rig, done(id[i], SRQN));
			assert_int_equal(poll_one(r, &wr_id), 1);
		}
	/* five are posted: too many for four, and nothing has changed then */
	kernel.srq_mask = 0;
	assert_int_equal(resize(r, 4), EINVAL);
	assert_int_equal(kernel.srq_mask, 0);
	assert_int_equal(r->srq->wq.entries, 16);
	rig_complete(&r->rig, done(id[5], SRQN));
	rig_complete(&r->rig, done(id[7], SRQN));
	assert_int_equal(poll_one(r, &wr_id), 1);
	assert_int_equal(poll_one(r, &wr_id), 1);
	resized = r;
	meanwhile = 1;
	kernel.on_srq_resize = compare_rings;
	assert_int_equal(resize(r, 3), 0);
	assert_int_equal(meanwhile_ret, ENOMEM);
	assert_int_equal(r->srq->wq.entries, 4);
	assert_int_equal(post(r, 1), ENOMEM);
	for (uint32_t i = 6; i < 10; i += 1 + (i == 6)) {
		rig_complete(&r->rig, done(id[i], SRQN));
		assert_int_equal(poll_one(r, &wr_id), 1);
		assert_int_equal(wr_id, 0x300 + i);
		assert_int_equal(post(r, 0x400 + i), 0);
	}
	assert_int_equal(post(r, 1), ENOMEM);
}

/* An id without a slot completes nothing, and is used again in a larger ring, to its last slot. */
static void test_spare_ids(void **state)
{
	struct srq_rig *r = *state;
	uint64_t wr_id;

	assert_int_equal(resize(r, 16), 0);
	assert_int_equal(resize(r, ENTRIES), 0);
	for (uint32_t id = 0; id < 16; id++) {
		rig_complete(&r->rig, done(id, SRQN));
		assert_int_equal(poll_one(r, &wr_id), 0);
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(post(r, i), 0);
	assert_int_equal(post(r, 1), ENOMEM);
	assert_int_equal(resize(r, ENTRIES), 0);
	assert_int_equal(resize(r, 16), 0);
	for (uint32_t i = ENTRIES; i < 16; i++)
		assert_int_equal(post(r, i), 0);
	assert_int_equal(post(r, 1), ENOMEM);
}

static bool wants[2];		/* the device requests doorbells by the old and the new record */
static uint64_t doorbell;	/* of an entry that is posted while the command runs */

static void post_meanwhile(struct ibv_srq *ibsrq)
{
	struct ornic_srq *srq = to_osrq(ibsrq);
	struct ornic_rec *recs[] = { srq->wq.rec, srq->coming->rec };

	for (int i = 0; i < 2; i++)
		ornic_ring_store(&recs[i]->notify,
				 wants[i] ? ORNIC_NOTIFY_ALWAYS :
					    (srq->wq.head - 1) & ORNIC_NOTIFY_INDEX);
	rig_doorbell(&resized->rig);
	assert_int_equal(post(resized, 1), 0);
	doorbell = rig_doorbell(&resized->rig);
}

/* While the command runs, each of both records may request the doorbell. */
static void test_doorbells_of_both_rings(void **state)
{
	struct srq_rig *r = *state;

	resized = r;
	kernel.on_srq_resize = post_meanwhile;
	for (uint32_t i = 0; i < 4; i++) {
		wants[0] = i & 1;
		wants[1] = i & 2;
		assert_int_equal(resize(r, 16), 0);
		assert_int_equal(doorbell, i ? SRQN | (uint64_t)ORNIC_DB_SRQ << 24 |
					       (uint64_t)(i + 1) << 32 : 0);
	}
}

/* A resize that the kernel rejects changes nothing, not even entries posted meanwhile. */
static void test_resize_refused(void **state)
{
	struct srq_rig *r = *state;
	void *ring = r->srq->wq.ring;
	struct ibv_srq_attr attr = { .max_wr = 2, .srq_limit = 2 };

	assert_int_equal(resize(r, 0), EINVAL);
	assert_int_equal(resize(r, 17), EINVAL);
	resized = r;
	meanwhile = 1;
	kernel.on_srq_resize = compare_rings;
	kernel.fail = ENOSPC;
	assert_int_equal(ornic_modify_srq(&r->srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
			 ENOSPC);
	assert_int_equal(kernel.srq_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	assert_int_equal(kernel.srq_attr.srq_limit, 2);
	assert_ptr_equal(r->srq->wq.ring, ring);
	assert_int_equal(r->srq->wq.head, 2);
	for (uint32_t i = 2; i < ENTRIES; i++)
		assert_int_equal(post(r, i), 0);
	assert_int_equal(post(r, 9), ENOMEM);
	assert_int_equal(le32toh(r->srq->wq.rec->host_index), ENTRIES);
	attr.srq_limit = 1;
	assert_int_equal(ornic_modify_srq(&r->srq->vsrq.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(kernel.srq_mask, IBV_SRQ_LIMIT);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_any_order), RIG_TEST(test_hostile), RIG_TEST(test_dropped),
		RIG_TEST(test_xrc_target_number_reused), RIG_TEST(test_srq_number_reused),
		RIG_TEST(test_create), RIG_TEST(test_endless), RIG_TEST(test_grow),
		RIG_TEST(test_shrink), RIG_TEST(test_spare_ids),
		RIG_TEST(test_doorbells_of_both_rings), RIG_TEST(test_resize_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
