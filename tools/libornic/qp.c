// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: size, create, modify, query, destroy.
 *
 * Both rings start empty, with records as ORN-RNG-4 requires. A modify to RESET empties
 * them again. That happens after the command, when the device no longer accesses the
 * records (ORN-QP-14), and before the application can request INIT.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "ornic.h"

#define ORNIC_QP_INIT_MASK						\
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |	\
	 IBV_QP_INIT_ATTR_CREATE_FLAGS)
#define ORNIC_TARGET_MASK	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD)

/* Return the bytes of a send work request in front of its data. */
static size_t ornic_sq_header(enum ibv_qp_type type)
{
	const size_t ctrl = sizeof(struct ornic_wqe_ctrl);

	switch (type) {
	case IBV_QPT_UD:
		return ctrl + sizeof(struct ornic_path);
	case IBV_QPT_RAW_PACKET:
		return ctrl + sizeof(struct ornic_wqe_eth);
	default:
		return ctrl + sizeof(struct ornic_wqe_remote);
	}
}

/* Return the bytes of the longest send work request. Inline data is padded to 16 bytes. */
static size_t ornic_sq_need(enum ibv_qp_type type, const struct ibv_qp_cap *cap)
{
	size_t data = max_t(size_t, cap->max_send_sge * sizeof(struct ornic_sge),
			    (cap->max_inline_data + 15) & ~15u);

	if (type != IBV_QPT_UD && type != IBV_QPT_RAW_PACKET)
		data = max_t(size_t, data,
			     sizeof(struct ornic_wqe_atomic) + sizeof(struct ornic_sge));
	return ornic_sq_header(type) + data;
}

/*
 * Return the limit of inline data in bytes: all that the slot holds, even if the application
 * requested none. rdma_xclient of librdmacm (at least to rdma-core 65) requests none and posts
 * 16 bytes inline. With a limit of 0 its ibv_post_send() would fail with EINVAL.
 */
static uint32_t ornic_sq_inline(const struct ornic_context *ctx, enum ibv_qp_type type,
				unsigned int stride)
{
	return min_t(uint32_t, (1u << stride) - ornic_sq_header(type), ctx->limits.max_inline);
}

/* Compute slots and stride of the SQ and update @cap. Return 0 or EINVAL. */
static int ornic_sq_size(struct ornic_context *ctx, struct ornic_wq *sq,
			 enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	if (ornic_exceeds(ctx, "max_send_wr", cap->max_send_wr, ctx->limits.max_send_wr) ||
	    ornic_exceeds(ctx, "max_send_sge", cap->max_send_sge, ctx->limits.max_send_sge) ||
	    ornic_exceeds(ctx, "max_inline_data", cap->max_inline_data, ctx->limits.max_inline))
		return EINVAL;
	if (!cap->max_send_wr)
		return 0;
	sq->stride = max_t(unsigned int, ORNIC_SQ_MIN_STRIDE,
			   ornic_log2_up(ornic_sq_need(type, cap)));
	if (ornic_exceeds(ctx, "log2 of a send slot", sq->stride, ctx->limits.max_sq_stride))
		return EINVAL;
	sq->entries = 1u << ornic_log2_up(cap->max_send_wr);
	sq->max_sge = cap->max_send_sge;
	cap->max_inline_data = ornic_sq_inline(ctx, type, sq->stride);
	cap->max_send_wr = min_t(uint32_t, sq->entries, ctx->limits.max_send_wr);
	return 0;
}

/*
 * Compute slots and stride of the RQ and update @cap. The ring has at least 64 bytes, so
 * that the records behind it are aligned. Return 0 or EINVAL.
 */
static int ornic_rq_size(struct ornic_context *ctx, struct ornic_wq *rq,
			 struct ibv_qp_cap *cap)
{
	size_t need = sizeof(struct ornic_rwqe) + cap->max_recv_sge * sizeof(struct ornic_sge);

	if (ornic_exceeds(ctx, "max_recv_wr", cap->max_recv_wr, ctx->limits.max_recv_wr) ||
	    ornic_exceeds(ctx, "max_recv_sge", cap->max_recv_sge, ctx->limits.max_recv_sge))
		return EINVAL;
	if (!cap->max_recv_wr)
		return 0;
	rq->stride = max_t(unsigned int, ORNIC_RQ_MIN_STRIDE, ornic_log2_up(need));
	if (ornic_exceeds(ctx, "log2 of a receive slot", rq->stride, ctx->limits.max_rq_stride))
		return EINVAL;
	rq->entries = 1u << ornic_log2_up(cap->max_recv_wr);
	if (rq->entries << rq->stride < sizeof(struct ornic_rec))
		rq->entries = sizeof(struct ornic_rec) >> rq->stride;
	rq->max_sge = cap->max_recv_sge;
	cap->max_recv_wr = min_t(uint32_t, rq->entries, ctx->limits.max_recv_wr);
	return 0;
}

static void ornic_wq_reset(struct ornic_wq *wq)
{
	atomic_store_explicit(&wq->head, 0, memory_order_relaxed);
	atomic_store_explicit(&wq->tail, 0, memory_order_relaxed);
	ornic_rec_init(wq->rec);
}

static size_t ornic_wq_bytes(const struct ornic_wq *wq)
{
	return (size_t)wq->entries << wq->stride;
}

/* Allocate rings and records in the layout of rdma/ornic-abi.h. Return 0 or a positive errno. */
static int ornic_qp_alloc_rings(struct ornic_qp *qp, struct ornic_pd *pd)
{
	size_t rq_at = align(ornic_wq_bytes(&qp->sq), 1UL << qp->rq.stride);
	size_t rec_at = rq_at + ornic_wq_bytes(&qp->rq);
	char *base;
	int ret;

	ret = ornic_buf_alloc_in(&qp->buf, rec_at + 2 * sizeof(struct ornic_rec), pd, ORNIC_RES_QP);
	if (ret)
		return ret;
	base = qp->buf.addr;
	qp->sq.ring = base;
	qp->rq.ring = base + rq_at;
	qp->sq.rec = (struct ornic_rec *)(base + rec_at);
	qp->rq.rec = qp->sq.rec + 1;
	ornic_wq_reset(&qp->sq);
	ornic_wq_reset(&qp->rq);
	return 0;
}

static int ornic_qp_init(struct ornic_qp *qp, struct ornic_pd *pd)
{
	int ret;

	qp->sq.wr_id = calloc((size_t)qp->sq.entries + qp->rq.entries, sizeof(*qp->sq.wr_id));
	if (!qp->sq.wr_id)
		return ENOMEM;
	qp->rq.wr_id = qp->sq.wr_id + qp->sq.entries;
	ret = ornic_qp_alloc_rings(qp, pd);
	if (ret) {
		free(qp->sq.wr_id);
		return ret;
	}
	ornic_lock_init(&qp->sq.lock, !ornic_pd_single(pd));
	ornic_lock_init(&qp->rq.lock, !ornic_pd_single(pd));
	return 0;
}

void ornic_qp_free(struct ornic_qp *qp)
{
	ornic_lock_destroy(&qp->rq.lock);
	ornic_lock_destroy(&qp->sq.lock);
	ornic_buf_free(&qp->buf);
	free(qp->sq.wr_id);
	free(qp);
}

/* Return the IBV_QP_EX_WITH_* that a type supports, 0 for an unsupported type. */
static uint64_t ornic_qp_send_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return ORNIC_SEND_OPS_RC;
	case IBV_QPT_UC:
		return ORNIC_SEND_OPS_UC;
	case IBV_QPT_XRC_SEND:
		return ORNIC_SEND_OPS_XRC;
	case IBV_QPT_UD:
		return ORNIC_SEND_OPS_UD;
	case IBV_QPT_RAW_PACKET:
		return ORNIC_SEND_OPS_RAW;
	default:
		return 0;
	}
}

/* Return the IBV_QP_CREATE_* that a type supports; the kernel may reject more of them. */
static uint32_t ornic_qp_create_flags(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

static int ornic_target_check(struct ornic_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	if (ornic_unsupported(ctx, "comp_mask of an XRC target", attr->comp_mask,
			      ORNIC_TARGET_MASK))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		return 0;
	verbs_err(&ctx->ibv_ctx, "an XRC target needs an XRC domain\n");
	return EINVAL;
}

/* Check that the objects required by the type are given, and no SRQ for an XRC initiator. */
static int ornic_qp_parts_check(struct ornic_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const char *lacks = NULL;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		lacks = "a protection domain";
	else if (!attr->send_cq)
		lacks = "a CQ for sends";
	else if (attr->qp_type != IBV_QPT_XRC_SEND && !attr->recv_cq)
		lacks = "a CQ for receives";
	if (lacks) {
		verbs_err(&ctx->ibv_ctx, "the queue pair needs %s\n", lacks);
		return EINVAL;
	}
	if (attr->qp_type == IBV_QPT_XRC_SEND && attr->srq) {
		verbs_err(&ctx->ibv_ctx, "an XRC initiator has no SRQ\n");
		return EINVAL;
	}
	return 0;
}

static int ornic_qp_check(struct ornic_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t ops = ornic_qp_send_ops(attr->qp_type);
	int ret;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return ornic_target_check(ctx, attr);
	if (ornic_unsupported(ctx, "comp_mask", attr->comp_mask, ORNIC_QP_INIT_MASK))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    ornic_unsupported(ctx, "create_flags", attr->create_flags,
			      ornic_qp_create_flags(attr->qp_type)))
		return EOPNOTSUPP;
	ret = ornic_qp_parts_check(ctx, attr);
	if (ret)
		return ret;
	if (!ops) {
		verbs_err(&ctx->ibv_ctx, "no queue pairs of type %d\n", attr->qp_type);
		return EOPNOTSUPP;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    ornic_unsupported(ctx, "send_ops_flags", attr->send_ops_flags, ops))
		return EOPNOTSUPP;
	return 0;
}

static uint8_t ornic_wq_log(const struct ornic_wq *wq)
{
	return wq->entries ? ornic_log2_up(wq->entries) : ORNIC_ABI_NO_RING;
}

/* Fill the request with address and geometry of the rings. */
void ornic_qp_describe(const struct ornic_qp *qp, struct ornic_ureq_create_qp *req)
{
	req->buf_addr = (uintptr_t)qp->buf.addr;
	req->sq_log = ornic_wq_log(&qp->sq);
	req->sq_stride = qp->sq.stride;
	req->rq_log = ornic_wq_log(&qp->rq);
	req->rq_stride = qp->rq.stride;
}

/*
 * Return the CQ of the receives or of the sends, or NULL if there is none. libibverbs (44 to 65)
 * stores recv_cq of an XRC initiator, but does not pass it to the kernel, so the application may
 * destroy that CQ first.
 */
static struct ornic_cq *ornic_qp_cq(const struct ornic_qp *qp, bool recv)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	struct ibv_cq *ibcq = recv ? ibqp->recv_cq : ibqp->send_cq;

	return ibcq && !(recv && ibqp->qp_type == IBV_QPT_XRC_SEND) ? to_ocq(ibcq) : NULL;
}

static struct ornic_qp_table *ornic_qp_queues(const struct ornic_qp *qp, bool recv)
{
	struct ornic_context *ctx = to_octx(qp->vqp.qp.context);

	return recv ? &ctx->recvs : &ctx->sends;
}

/* Add one queue to its table; nothing to do without a CQ. Return 0 or a positive errno. */
static int ornic_qp_enter_wq(struct ornic_qp *qp, bool recv)
{
	struct ornic_cq *cq = ornic_qp_cq(qp, recv);

	return cq ? ornic_qp_table_insert(ornic_qp_queues(qp, recv), qp->qpn, cq, qp) : 0;
}

/* Remove one queue from its table, and its unpolled entries from its CQ. */
static void ornic_qp_leave_wq(struct ornic_qp *qp, bool recv)
{
	struct ornic_cq *cq = ornic_qp_cq(qp, recv);

	if (!cq)
		return;
	ornic_lock(&cq->lock);
	ornic_cq_drop_qp(cq, qp, recv);
	ornic_qp_table_remove(ornic_qp_queues(qp, recv), qp->qpn);
	ornic_unlock(&cq->lock);
}

/* Add the queue pair to the tables, so that polling finds it. Return 0 or a positive errno. */
int ornic_qp_enter(struct ornic_qp *qp)
{
	int ret;

	ret = ornic_qp_enter_wq(qp, false);
	if (ret)
		return ret;
	ret = ornic_qp_enter_wq(qp, true);
	if (ret)
		ornic_qp_leave_wq(qp, false);
	return ret;
}

static int ornic_qp_cmd(struct ibv_context *ctx, struct ornic_qp *qp,
			struct ibv_qp_init_attr_ex *attr)
{
	struct ornic_create_qp_resp resp = {};
	struct ornic_create_qp cmd = {};
	int ret;

	ornic_qp_describe(qp, &cmd.drv_payload);
	ret = ibv_cmd_create_qp_ex2(ctx, &qp->vqp, attr, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp), NULL);
	if (ret)
		return ret;
	qp->qpn = resp.qpn;
	ret = ornic_qp_enter(qp);
	if (ret)
		ibv_cmd_destroy_qp(&qp->vqp.qp);
	return ret;
}

/*
 * Allocate the queues for @cap and update @cap to their real sizes. @pd may be NULL. Return 0
 * or a positive errno, with nothing allocated.
 */
int ornic_qp_rings(struct ornic_context *ctx, struct ornic_qp *qp, struct ornic_pd *pd,
		   enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	int ret;

	ret = ornic_sq_size(ctx, &qp->sq, type, cap);
	if (!ret)
		ret = ornic_rq_size(ctx, &qp->rq, cap);
	return ret ? ret : ornic_qp_init(qp, pd);
}

/* Create queues and queue pair. On failure @qp is freed and @attr is unchanged. */
static int ornic_qp_setup(struct ibv_context *ctx, struct ornic_qp *qp,
			  struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap asked = attr->cap;
	struct ibv_qp_cap cap = asked;
	int ret;

	/* There is no receive queue, so ignore the capacities that the application requests. */
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND) {
		cap.max_recv_wr = 0;
		cap.max_recv_sge = 0;
	}
	ret = ornic_qp_rings(to_octx(ctx), qp, to_opd(attr->pd), attr->qp_type, &cap);
	if (ret) {
		free(qp);
		return ret;
	}
	qp->max_inline = cap.max_inline_data;
	attr->cap = cap;
	ret = ornic_qp_cmd(ctx, qp, attr);
	if (ret) {
		attr->cap = asked;
		ornic_qp_free(qp);
		return ret;
	}
	qp->cap = cap;
	attr->cap = cap;
	return 0;
}

struct ibv_qp *ornic_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ornic_qp *qp;
	int ret;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return ornic_rss_create(ctx, attr);
	ret = ornic_qp_check(to_octx(ctx), attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return ornic_create_target(ctx, attr);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ret = ornic_qp_setup(ctx, qp, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ornic_qp_set_builders(qp);
	return &qp->vqp.qp;
}

struct ibv_qp *ornic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/*
 * Store whether a queue accepts work requests. A queue that does not exist never does. Only modify
 * changes this, after its command. Posting does not use ibv_qp.state: libibverbs (44 to 65) stores
 * it without a lock after modify, and after a query, whose answer may be older than the last
 * modify. A state that the device enters by itself, SQE or ERR, accepts the same work requests as
 * the one before.
 */
void ornic_wq_set_open(struct ornic_wq *wq, bool open)
{
	ornic_lock(&wq->lock);
	wq->open = open && wq->entries;
	ornic_unlock(&wq->lock);
}

/*
 * Empty one queue and drop its unpolled entries. Close it in the same critical section, so that no
 * thread posts to the empty queue (ORN-RNG-4).
 */
static void ornic_qp_reset_wq(struct ornic_qp *qp, bool recv)
{
	struct ornic_wq *wq = recv ? &qp->rq : &qp->sq;
	struct ornic_cq *cq = ornic_qp_cq(qp, recv);

	if (!cq)
		return;
	ornic_lock(&cq->lock);
	ornic_lock(&wq->lock);
	ornic_cq_drop_qp(cq, qp, recv);
	ornic_wq_reset(wq);
	wq->open = false;
	ornic_unlock(&wq->lock);
	ornic_unlock(&cq->lock);
}

/* Empty the queues after the device has moved the queue pair to RESET (ORN-CQ-19). */
void ornic_qp_reset(struct ornic_qp *qp)
{
	ornic_qp_reset_wq(qp, false);
	ornic_qp_reset_wq(qp, true);
}

/*
 * Modify by the extended command, which has the rate limit (in kbit/s) and a payload for
 * @burst and @packet, both in bytes. Return 0 or a positive errno.
 */
static int ornic_modify_qp_ex(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
			      uint32_t burst, uint16_t packet)
{
	struct ornic_modify_qp_resp resp = {};
	struct ornic_modify_qp cmd = {};

	cmd.rate_burst = burst;
	cmd.rate_packet = packet;
	return ibv_cmd_modify_qp_ex(ibqp, attr, attr_mask, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
}

int ornic_modify_qp_rate_limit(struct ibv_qp *ibqp, struct ibv_qp_rate_limit_attr *limit)
{
	struct ibv_qp_attr attr = { .rate_limit = limit->rate_limit };

	if (limit->comp_mask)
		return EINVAL;
	return ornic_modify_qp_ex(ibqp, &attr, IBV_QP_RATE_LIMIT, limit->max_burst_sz,
				  limit->typical_pkt_sz);
}

/* Open or empty the queues after the device has moved the queue pair to @state. */
static void ornic_qp_moved(struct ornic_qp *qp, enum ibv_qp_state state)
{
	if (state == IBV_QPS_RESET) {
		ornic_qp_reset(qp);
		return;
	}
	ornic_wq_set_open(&qp->sq, state >= IBV_QPS_RTS);
	ornic_wq_set_open(&qp->rq, true);
}

int ornic_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct ornic_qp *qp = to_oqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	if (attr_mask & IBV_QP_RATE_LIMIT)
		ret = ornic_modify_qp_ex(ibqp, attr, attr_mask, 0, 0);
	else
		ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	if (attr_mask & IBV_QP_STATE && !qp->rss && !ornic_is_target(ibqp))
		ornic_qp_moved(qp, attr->qp_state);
	return 0;
}

int ornic_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr)
{
	struct ornic_qp *qp = to_oqp(ibqp);
	struct ibv_query_qp cmd;
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	return 0;
}

/* Return 1, which is IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG, or 0. The operation is irrelevant. */
int ornic_query_qp_data_in_order(struct ibv_qp *ibqp,
				 enum ibv_wr_opcode op __attribute__((unused)),
				 uint32_t flags __attribute__((unused)))
{
	return to_octx(ibqp->context)->limits.flags & ORNIC_ABI_F_DATA_IN_ORDER ? 1 : 0;
}

/* Remove a queue pair that the device has destroyed from its tables (ORN-CQ-19). */
void ornic_qp_leave(struct ornic_qp *qp)
{
	ornic_qp_leave_wq(qp, false);
	ornic_qp_leave_wq(qp, true);
}

int ornic_destroy_qp(struct ibv_qp *ibqp)
{
	struct ornic_qp *qp = to_oqp(ibqp);
	int ret;

	if (ornic_is_target(ibqp))
		return ornic_destroy_target(ibqp);
	if (qp->rss)
		return ornic_rss_destroy(qp);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	ornic_qp_leave(qp);
	ornic_qp_free(qp);
	return 0;
}
