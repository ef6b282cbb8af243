// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_resize_cq: move a CQ in use to a new ring (ORN-CQ-20 to 28).
 *
 * Both locks of the CQ are held during the command, so no thread polls or arms. The device
 * does not stop: it writes later completions to the new ring, behind the slots to which
 * ornic_cq_carry() copies the unpolled entries of the old ring.
 */
#include <errno.h>

#include <ccan/minmax.h>

#include "ornic.h"

/* Run the command; @at: indices of the old ring at the switch. Return 0 or a positive errno. */
static int ornic_cq_resize_cmd(struct ornic_cq *cq, const struct ornic_cq_mem *mem, int cqe,
			       struct ornic_uresp_resize_cq *at)
{
	struct ornic_resize_cq_resp resp = {};
	struct ornic_resize_cq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)mem->buf.addr;
	cmd.log_entries = mem->log;
	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	*at = resp.drv_payload;
	return ret;
}

/*
 * Copy the unpolled entries, from @index to the one before at->producer, to the new ring.
 * They become entries of its first lap, so their phase is 1 (ORN-RNG-2).
 *
 * The loop ends after at most one lap of the smaller ring, and no index of the new ring wraps:
 * the driver rejects a response with more entries between at->consumer and at->producer, and
 * the caller ensures that @index lies between the two.
 */
static void ornic_cq_carry(const struct ornic_cq_mem *from, const struct ornic_cq_mem *to,
			   const struct ornic_uresp_resize_cq *at, uint32_t index)
{
	struct ornic_cqe *cqe;

	for (; index != at->producer; index++) {
		cqe = &to->ring[index - at->consumer];
		*cqe = from->ring[index & ((1u << from->log) - 1)];
		cqe->phase |= ORNIC_PHASE;
	}
}

/*
 * Copy the arm word of the old record, its index reduced by @by, to the new record. Ring
 * the doorbell of an armed CQ even if notify does not request it: the thread that armed the
 * CQ has already tested it for entries and will not test again.
 */
static void ornic_cq_rearm(struct ornic_cq *cq, const struct ornic_rec *old, uint32_t by)
{
	uint32_t word = ornic_ring_load(&old->arm);

	word = (word & ~ORNIC_ARM_INDEX_MASK) | ((word - by) & ORNIC_ARM_INDEX_MASK);
	ornic_rec_arm(cq->mem.rec, word);
	if (word >> ORNIC_ARM_TYPE_SHIFT & ORNIC_ARM_TYPE_MASK)
		ornic_db_ring(to_octx(cq->vcq.cq.context), ORNIC_DB_CQ_ARM, cq->cqn, word);
}

/* Return the number of work requests that are posted and not completed. */
static uint32_t ornic_wq_outstanding(const struct ornic_wq *wq)
{
	return atomic_load_explicit(&wq->head, memory_order_relaxed) -
	       atomic_load_explicit(&wq->tail, memory_order_relaxed);
}

/*
 * Count the outstanding work requests of all queue pairs that complete to the CQ, with
 * those of their SRQs. Many queue pairs may share an SRQ, which counts once for this resize,
 * number @resize; it may count again if another CQ is resized at the same time. Caller holds the
 * CQ's lock.
 */
static uint64_t ornic_cq_qp_work(struct ornic_context *ctx, const struct ornic_cq *cq,
				 uint32_t resize)
{
	uint64_t sum = 0;
	struct ornic_qp *qp;
	uint32_t n;

	for (n = 0; (qp = ornic_qp_table_next(&ctx->sends, &n, cq)); n++)
		sum += ornic_wq_outstanding(&qp->sq);
	for (n = 0; (qp = ornic_qp_table_next(&ctx->recvs, &n, cq)); n++) {
		sum += ornic_wq_outstanding(&qp->rq);
		if (qp->vqp.qp.srq)
			sum += ornic_srq_posted(to_osrq(qp->vqp.qp.srq), resize);
	}
	return sum;
}

/* Count the posted receives of XRC SRQs that complete to the CQ. Caller holds the CQ's lock. */
static uint64_t ornic_cq_xrc_work(struct ornic_context *ctx, const struct ornic_cq *cq,
				  uint32_t resize)
{
	struct ornic_srq *srq;
	uint64_t sum = 0;
	uint32_t n;

	for (n = 0; (srq = ornic_qp_table_next(&ctx->xrc_srqs, &n, cq)); n++)
		sum += ornic_srq_posted(srq, resize);
	return sum;
}

/*
 * Count the unpolled entries: if @dropped, those of queues that are gone, which polling will skip,
 * otherwise all others. Caller holds the CQ's lock.
 */
static uint32_t ornic_cq_count(const struct ornic_cq *cq, bool dropped)
{
	const struct ornic_cqe *cqe;
	uint32_t n, sum = 0;

	for (n = 0; (cqe = ornic_cq_unpolled(cq, n)); n++)
		if ((le32toh(cqe->qpn) == ORNIC_CQE_DROPPED) == dropped)
			sum++;
	return sum;
}

/*
 * Return true if the outstanding work requests fit into @entries entries. Each of them may
 * produce a completion, for example when its queue pair enters an error state. The device
 * checks only the completions that it has written, with those that were dropped. A work request
 * that another thread posts during the resize may be missed: as at create, the application has
 * to leave room for requests that it posts. Caller holds the CQ's lock.
 */
static bool ornic_cq_work_fits(struct ornic_cq *cq, uint32_t entries)
{
	struct ornic_context *ctx = to_octx(cq->vcq.cq.context);
	uint32_t resize;

	if (entries >= 1u << cq->mem.log)
		return true;
	resize = atomic_fetch_add_explicit(&ctx->cq_resizes, 1, memory_order_relaxed) + 1;
	return ornic_cq_qp_work(ctx, cq, resize) + ornic_cq_xrc_work(ctx, cq, resize) +
	       ornic_cq_count(cq, true) <= entries;
}

/*
 * Switch the CQ to the ring @mem. After the switch @mem is the old ring, so the caller frees
 * @mem in either case. Return 0, or the errno of the command, which leaves the CQ as it was.
 * EIO after the switch: the device reported an index that it cannot have reached, so the
 * unpolled entries of the old ring are lost. Caller holds both locks of the CQ.
 */
static int ornic_cq_switch(struct ornic_cq *cq, struct ornic_cq_mem *mem, int cqe)
{
	uint32_t index = atomic_load_explicit(&cq->index, memory_order_relaxed);
	struct ornic_uresp_resize_cq at;
	struct ornic_cq_mem old = cq->mem;
	int ret;

	ret = ornic_cq_resize_cmd(cq, mem, cqe, &at);
	if (ret)
		return ret;
	if (index - at.consumer > at.producer - at.consumer) {
		index = at.producer;
		ret = EIO;
	}
	ornic_cq_carry(&old, mem, &at, index);
	cq->mem = *mem;
	*mem = old;
	index -= at.consumer;
	atomic_store_explicit(&cq->index, index, memory_order_relaxed);
	ornic_rec_consumed(cq->mem.rec, index);
	ornic_cq_rearm(cq, old.rec, at.consumer);
	cq->vcq.cq.cqe = min_t(uint32_t, 1u << cq->mem.log,
			       to_octx(cq->vcq.cq.context)->limits.max_cqe);
	return ret;
}

/*
 * Resize a CQ to at least @cqe entries. Keep the ring if a smaller one could overflow, because the
 * ring has at least @cqe entries, too. Reject @cqe if more entries are unpolled (ibv_resize_cq(3)).
 */
int ornic_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct ornic_context *ctx = to_octx(ibcq->context);
	struct ornic_cq *cq = to_ocq(ibcq);
	struct ornic_cq_mem mem;
	bool fits;
	int ret;

	if (cqe <= 0) {
		verbs_err(&ctx->ibv_ctx, "a CQ needs entries\n");
		return EINVAL;
	}
	if (ornic_exceeds(ctx, "cqe", cqe, ctx->limits.max_cqe))
		return EINVAL;
	ret = ornic_cq_mem_alloc(&mem, cqe, cq->mem.buf.pd);
	if (ret)
		return ret;
	ornic_lock(&cq->lock);
	fits = ornic_cq_work_fits(cq, 1u << mem.log);
	if (fits) {
		pthread_spin_lock(&cq->arm_lock);
		ret = ornic_cq_switch(cq, &mem, cqe);
		pthread_spin_unlock(&cq->arm_lock);
	} else {
		ret = ornic_cq_count(cq, false) > (uint32_t)cqe ? EINVAL : 0;
	}
	ornic_unlock(&cq->lock);
	ornic_buf_free(&mem.buf);
	if (!fits && ret)
		verbs_err(&ctx->ibv_ctx,
			  "a CQ of %d entries is too small for the unpolled completions\n", cqe);
	return ret;
}
