// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: create, destroy, moderate, arm, drop the entries of a queue pair.
 * poll_cq.c consumes entries, cq_resize.c replaces the ring.
 *
 * The consumer index is stored for each entry, before the application sees the entry. So it
 * does not lag (D = 0 in ORN-RNG-32) and the application may use all 2^n entries. The store
 * is cheap because the host owns that cache line of the record.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "ornic.h"

#define ORNIC_CQ_FLAGS		(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | \
				 IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define ORNIC_CQ_STAMPS		((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
					    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
#define ORNIC_CQ_WC_FLAGS	(IBV_WC_STANDARD_FLAGS | ORNIC_CQ_STAMPS | \
				 IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG)

static int ornic_cq_check(struct ornic_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	if (ornic_unsupported(ctx, "comp_mask of a CQ", attr->comp_mask,
			      IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || !to_opd(attr->parent_domain)->on)) {
		verbs_err(&ctx->ibv_ctx, "the domain of the CQ is not a parent domain\n");
		return EINVAL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    ornic_unsupported(ctx, "flags of a CQ", attr->flags, ORNIC_CQ_FLAGS))
		return EOPNOTSUPP;
	if (ornic_unsupported(ctx, "wc_flags", attr->wc_flags, ORNIC_CQ_WC_FLAGS))
		return EOPNOTSUPP;
	if (!attr->cqe) {
		verbs_err(&ctx->ibv_ctx, "a CQ needs entries\n");
		return EINVAL;
	}
	return ornic_exceeds(ctx, "cqe", attr->cqe, ctx->limits.max_cqe) ? EINVAL : 0;
}

/*
 * Allocate a ring of at least @cqe entries and its record, in the state that a create
 * command needs (ORN-RNG-4). @pd: parent domain with the allocator, or NULL. Return 0 or
 * a positive errno.
 */
int ornic_cq_mem_alloc(struct ornic_cq_mem *mem, uint32_t cqe, struct ornic_pd *pd)
{
	size_t ring;
	int ret;

	mem->log = ornic_log2_up(cqe);
	ring = sizeof(*mem->ring) << mem->log;
	ret = ornic_buf_alloc_in(&mem->buf, ring + sizeof(*mem->rec), pd, ORNIC_RES_CQ);
	if (ret)
		return ret;
	mem->ring = mem->buf.addr;
	mem->rec = (struct ornic_rec *)((char *)mem->buf.addr + ring);
	ornic_rec_init(mem->rec);
	return 0;
}

static int ornic_cq_init(struct ornic_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	bool single = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
		      attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct ornic_pd *pd = NULL;
	int ret;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		pd = to_opd(attr->parent_domain);
	ret = ornic_cq_mem_alloc(&cq->mem, attr->cqe, pd);
	if (ret)
		return ret;
	ornic_arm_init(&cq->arm);
	ornic_lock_init(&cq->lock, !single && !ornic_pd_single(pd));
	pthread_spin_init(&cq->arm_lock, PTHREAD_PROCESS_PRIVATE);
	return 0;
}

static void ornic_cq_free(struct ornic_cq *cq)
{
	pthread_spin_destroy(&cq->arm_lock);
	ornic_lock_destroy(&cq->lock);
	ornic_buf_free(&cq->mem.buf);
	free(cq);
}

static int ornic_cq_cmd(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
			struct ornic_cq *cq)
{
	struct ornic_create_cq_resp resp = {};
	struct ornic_create_cq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)cq->mem.buf.addr;
	cmd.log_entries = cq->mem.log;
	ret = ibv_cmd_create_cq_ex(ctx, attr, NULL, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	if (ret)
		return ret;
	cq->cqn = resp.cqn;
	cq->vcq.cq.cqe = min_t(uint32_t, 1u << cq->mem.log, to_octx(ctx)->limits.max_cqe);
	return 0;
}

static struct ornic_cq *ornic_cq_new(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ornic_cq *cq;
	int ret;

	ret = ornic_cq_check(to_octx(ctx), attr);
	if (ret)
		goto err;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	if (attr->wc_flags & ORNIC_CQ_STAMPS)
		ret = ornic_wall_init(to_octx(ctx), &cq->wall);
	if (!ret)
		ret = ornic_cq_init(cq, attr);
	if (ret) {
		free(cq);
		goto err;
	}
	ret = ornic_cq_cmd(ctx, attr, cq);
	if (ret) {
		ornic_cq_free(cq);
		goto err;
	}
	return cq;

err:
	errno = ret;
	return NULL;
}

struct ibv_cq *ornic_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct ornic_cq *cq = ornic_cq_new(ctx, &attr);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *ornic_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ornic_cq *cq = ornic_cq_new(ctx, attr);

	if (!cq)
		return NULL;
	ornic_cq_set_reader(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int ornic_destroy_cq(struct ibv_cq *ibcq)
{
	int ret = ibv_cmd_destroy_cq(ibcq);

	if (ret)
		return ret;
	ornic_cq_free(to_ocq(ibcq));
	return 0;
}

int ornic_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int ornic_arm_cq(struct ibv_cq *ibcq, int solicited_only)
{
	enum ornic_arm_type type = solicited_only ? ORNIC_ARM_SOLICITED : ORNIC_ARM_ANY;
	struct ornic_cq *cq = to_ocq(ibcq);
	uint32_t word;

	pthread_spin_lock(&cq->arm_lock);
	word = ornic_arm_word(&cq->arm, atomic_load_explicit(&cq->index, memory_order_relaxed),
			      type);
	if (ornic_rec_arm(cq->mem.rec, word))
		ornic_db_ring(to_octx(ibcq->context), ORNIC_DB_CQ_ARM, cq->cqn, word);
	pthread_spin_unlock(&cq->arm_lock);
	return 0;
}

/*
 * Advance the serial number of arms. libibverbs calls this function for each event of the
 * CQ that the application takes from its completion channel.
 */
void ornic_cq_event(struct ibv_cq *ibcq)
{
	struct ornic_cq *cq = to_ocq(ibcq);

	pthread_spin_lock(&cq->arm_lock);
	ornic_arm_event(&cq->arm);
	pthread_spin_unlock(&cq->arm_lock);
}

/*
 * Return unpolled entry @n, counted from the oldest, or NULL if the device has not written as many.
 * Caller holds the CQ's lock.
 */
struct ornic_cqe *ornic_cq_unpolled(const struct ornic_cq *cq, uint32_t n)
{
	uint32_t index = atomic_load_explicit(&cq->index, memory_order_relaxed) + n;
	struct ornic_cqe *cqe = &cq->mem.ring[index & ((1u << cq->mem.log) - 1)];

	return n < 1u << cq->mem.log && ornic_entry_ready(cqe, index, cq->mem.log) ? cqe : NULL;
}

/*
 * Overwrite both numbers of an entry, so that polling skips it. With the number of the SRQ alone
 * it could become an entry of a later XRC SRQ, with that of the queue pair one of a later RQ.
 */
static void ornic_cqe_drop(struct ornic_cqe *cqe)
{
	cqe->qpn = htole32(ORNIC_CQE_DROPPED);
	cqe->srqn = htole32(ORNIC_NONE);
}

/*
 * Drop the unpolled receives, or sends, of a queue pair that was reset or destroyed (ORN-CQ-19),
 * so that they are not taken for those of a later queue pair with the same number. Entries of an
 * SRQ that they name are freed (ORN-SRQ-16). Keep those of an XRC target that had the number
 * before. Caller holds the CQ's lock.
 */
void ornic_cq_drop_qp(struct ornic_cq *cq, const struct ornic_qp *qp, bool recv)
{
	struct ibv_srq *srq = qp->vqp.qp.srq;
	struct ornic_cqe *cqe;
	uint64_t wr_id;
	uint32_t n;

	for (n = 0; (cqe = ornic_cq_unpolled(cq, n)); n++) {
		if ((le32toh(cqe->qpn) & ORNIC_NUMBER_MASK) != qp->qpn ||
		    !!(cqe->opcode & ORNIC_WC_RECV_BIT) != recv || ornic_cqe_xrc_srq(cq, cqe))
			continue;
		if (srq && recv && le32toh(cqe->srqn) == to_osrq(srq)->srqn)
			ornic_srq_complete(to_osrq(srq), le32toh(cqe->wqe_id), &wr_id);
		ornic_cqe_drop(cqe);
	}
}

/* Drop the unpolled entries of a destroyed XRC SRQ. Caller holds the CQ's lock. */
void ornic_cq_drop_srq(struct ornic_cq *cq, uint32_t srqn)
{
	struct ornic_cqe *cqe;
	uint32_t n;

	for (n = 0; (cqe = ornic_cq_unpolled(cq, n)); n++)
		if (cqe->opcode & ORNIC_WC_RECV_BIT && le32toh(cqe->srqn) == srqn)
			ornic_cqe_drop(cqe);
}
