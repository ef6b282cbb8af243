// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: create, modify, query, destroy, post. srq_resize.c replaces the ring.
 *
 * The device takes entries in ring order, but they complete in any order. So each entry has an
 * id, which its completion names. As many ids are posted or free as the ring has slots, so a
 * thread that gets a free id may write the next slot (ORN-SRQ-1).
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "wqe.h"

/* Values of ids.next: end of the list of free ids, posted id, id that the ring has no slot for. */
#define ORNIC_ID_END		UINT32_MAX
#define ORNIC_ID_POSTED		(UINT32_MAX - 1)
#define ORNIC_ID_SPARE		(UINT32_MAX - 2)

/*
 * Return the slots of a ring for @max_wr entries of 2^@stride bytes. The ring has at least 64
 * bytes, so that the record behind it is aligned.
 */
uint32_t ornic_srq_entries(uint32_t max_wr, unsigned int stride)
{
	uint32_t entries = 1u << ornic_log2_up(max_wr);

	return max_t(uint32_t, entries, sizeof(struct ornic_rec) >> stride);
}

/*
 * Compute slots and stride and update @attr. Its srq_limit becomes 0, because ibv_create_srq()
 * ignores it and does not arm the limit. Return 0 or EINVAL.
 */
static int ornic_srq_size(struct ornic_context *ctx, struct ornic_srq *srq,
			  struct ibv_srq_attr *attr)
{
	size_t need = sizeof(struct ornic_rwqe) + attr->max_sge * sizeof(struct ornic_sge);
	uint32_t max_wr = 1u << ctx->limits.log_max_srq;

	if (!attr->max_wr) {
		verbs_err(&ctx->ibv_ctx, "an SRQ needs entries\n");
		return EINVAL;
	}
	if (ornic_exceeds(ctx, "max_wr of an SRQ", attr->max_wr, max_wr) ||
	    ornic_exceeds(ctx, "max_sge of an SRQ", attr->max_sge, ctx->limits.max_srq_sge))
		return EINVAL;
	srq->wq.stride = max_t(unsigned int, ORNIC_RQ_MIN_STRIDE, ornic_log2_up(need));
	if (ornic_exceeds(ctx, "log2 of a slot of an SRQ", srq->wq.stride,
			  ctx->limits.max_rq_stride))
		return EINVAL;
	srq->wq.entries = ornic_srq_entries(attr->max_wr, srq->wq.stride);
	srq->wq.max_sge = attr->max_sge;
	attr->max_wr = min_t(uint32_t, srq->wq.entries, max_wr);
	attr->srq_limit = 0;
	return 0;
}

/*
 * Allocate a ring of @entries entries of 2^@stride bytes and its record, in the state that a
 * create command needs (ORN-RNG-4). Return 0 or a positive errno.
 */
int ornic_srq_mem_alloc(struct ornic_srq_mem *mem, uint32_t entries, unsigned int stride,
			struct ornic_pd *pd)
{
	size_t ring = (size_t)entries << stride;
	int ret;

	ret = ornic_buf_alloc_in(&mem->buf, ring + sizeof(*mem->rec), pd, ORNIC_RES_SRQ);
	if (ret)
		return ret;
	mem->entries = entries;
	mem->ring = mem->buf.addr;
	mem->rec = (struct ornic_rec *)((char *)mem->buf.addr + ring);
	ornic_rec_init(mem->rec);
	return 0;
}

/* Allocate @count ids; the caller sets their states. Return 0 or ENOMEM. */
int ornic_srq_ids_alloc(struct ornic_srq_ids *ids, uint32_t count)
{
	ids->count = count;
	ids->wr_id = calloc(count, sizeof(*ids->wr_id));
	ids->next = calloc(count, sizeof(*ids->next));
	if (ids->wr_id && ids->next)
		return 0;
	ornic_srq_ids_free(ids);
	return ENOMEM;
}

void ornic_srq_ids_free(struct ornic_srq_ids *ids)
{
	free(ids->next);
	free(ids->wr_id);
}

/*
 * Set the number of ids that are posted or free to @entries, the slots of a ring. Posted ids
 * stay posted, independent of their values; the others become free or spare. Return false and
 * change nothing if more than @entries ids are posted. Caller holds the lock of the SRQ.
 */
bool ornic_srq_use_ids(struct ornic_srq *srq, uint32_t entries)
{
	uint32_t *next = srq->ids.next, *last = &srq->free;
	uint32_t id;

	if (srq->posted > entries)
		return false;
	entries -= srq->posted;
	for (id = 0; id < srq->ids.count; id++) {
		if (next[id] == ORNIC_ID_POSTED)
			continue;
		next[id] = ORNIC_ID_SPARE;
		if (!entries)
			continue;
		entries--;
		*last = id;
		last = &next[id];
	}
	*last = ORNIC_ID_END;
	return true;
}

static int ornic_srq_init(struct ornic_srq *srq, struct ornic_pd *pd)
{
	struct ornic_wq *wq = &srq->wq;
	struct ornic_srq_mem mem;
	int ret;

	ret = ornic_srq_ids_alloc(&srq->ids, wq->entries);
	if (ret)
		return ret;
	ret = ornic_srq_mem_alloc(&mem, wq->entries, wq->stride, pd);
	if (ret) {
		ornic_srq_ids_free(&srq->ids);
		return ret;
	}
	ornic_srq_use_ids(srq, wq->entries);
	wq->ring = mem.ring;
	wq->rec = mem.rec;
	srq->buf = mem.buf;
	ornic_lock_init(&wq->lock, true);
	pthread_mutex_init(&srq->resize, NULL);
	return 0;
}

static void ornic_srq_free(struct ornic_srq *srq)
{
	pthread_mutex_destroy(&srq->resize);
	ornic_lock_destroy(&srq->wq.lock);
	ornic_buf_free(&srq->buf);
	ornic_srq_ids_free(&srq->ids);
	free(srq);
}

static int ornic_srq_cmd(struct ibv_pd *pd, struct ornic_srq *srq, struct ibv_srq_init_attr *attr)
{
	struct ornic_create_srq_resp resp = {};
	struct ornic_create_srq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)srq->buf.addr;
	cmd.log_entries = ornic_log2_up(srq->wq.entries);
	cmd.stride = srq->wq.stride;
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (!ret)
		srq->srqn = resp.srqn;
	return ret;
}

/*
 * Create an XRC SRQ in the kernel and add it to the table before the application learns its
 * number, so that the first completion already finds it. Return 0 or a positive errno.
 */
static int ornic_xsrq_cmd(struct ibv_context *ctx, struct ornic_srq *srq,
			  struct ibv_srq_init_attr_ex *attr)
{
	struct ornic_create_xsrq_resp resp = {};
	struct ornic_create_xsrq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)srq->buf.addr;
	cmd.log_entries = ornic_log2_up(srq->wq.entries);
	cmd.stride = srq->wq.stride;
	ret = ibv_cmd_create_srq_ex(ctx, &srq->vsrq, attr, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	srq->srqn = resp.srqn;
	ret = ornic_qp_table_insert(&to_octx(ctx)->xrc_srqs, srq->srqn, to_ocq(srq->vsrq.cq), srq);
	if (ret)
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
	return ret;
}

/* Allocate an SRQ with its ring; the kernel does not know it yet. Return NULL with errno. */
static struct ornic_srq *ornic_srq_new(struct ibv_pd *pd, struct ibv_srq_attr *attr)
{
	struct ornic_srq *srq = calloc(1, sizeof(*srq));
	int ret;

	if (!srq)
		return NULL;
	ret = ornic_srq_size(to_octx(pd->context), srq, attr);
	if (!ret)
		ret = ornic_srq_init(srq, to_opd(pd));
	if (!ret)
		return srq;
	free(srq);
	errno = ret;
	return NULL;
}

/* Tell the caller the actual sizes; its srq_limit, which was not used, stays. */
static void ornic_srq_report(struct ibv_srq_attr *attr, const struct ibv_srq_attr *got)
{
	attr->max_wr = got->max_wr;
	attr->max_sge = got->max_sge;
}

struct ibv_srq *ornic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr got = *attr;
	struct ornic_srq *srq;
	int ret;

	srq = ornic_srq_new(pd, &got.attr);
	if (!srq)
		return NULL;
	ret = ornic_srq_cmd(pd, srq, &got);
	if (ret) {
		ornic_srq_free(srq);
		errno = ret;
		return NULL;
	}
	ornic_srq_report(&attr->attr, &got.attr);
	return &srq->vsrq.srq;
}

static struct ibv_srq *ornic_create_xsrq(struct ibv_context *ctx,
					 struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
				IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_srq_init_attr_ex got = *attr;
	struct ornic_srq *srq;
	int ret;

	if ((attr->comp_mask & needed) != needed) {
		verbs_err(verbs_get_ctx(ctx), "an XRC SRQ needs a PD, an XRC domain and a CQ\n");
		errno = EINVAL;
		return NULL;
	}
	srq = ornic_srq_new(attr->pd, &got.attr);
	if (!srq)
		return NULL;
	/* As ibv_create_srq() does for other SRQs; an event may come before the command ends. */
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	ret = ornic_xsrq_cmd(ctx, srq, &got);
	if (ret) {
		ornic_srq_free(srq);
		errno = ret;
		return NULL;
	}
	ornic_srq_report(&attr->attr, &got.attr);
	return &srq->vsrq.srq;
}

struct ibv_srq *ornic_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = { .srq_context = attr->srq_context, .attr = attr->attr };
	bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
	struct ibv_srq *srq;

	if (typed && attr->srq_type == IBV_SRQT_XRC)
		return ornic_create_xsrq(ctx, attr);
	if (ornic_unsupported(to_octx(ctx), "comp_mask of an SRQ", attr->comp_mask,
			      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (typed && attr->srq_type != IBV_SRQT_BASIC) {
		verbs_err(verbs_get_ctx(ctx), "no SRQs of type %d\n", attr->srq_type);
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		verbs_err(verbs_get_ctx(ctx), "an SRQ needs a protection domain\n");
		errno = EINVAL;
		return NULL;
	}
	srq = ornic_create_srq(attr->pd, &basic);
	if (srq)
		attr->attr = basic.attr;
	return srq;
}

int ornic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct ibv_modify_srq cmd = {};

	if (attr_mask & IBV_SRQ_MAX_WR)
		return ornic_resize_srq(to_osrq(srq), attr, attr_mask);
	return ibv_cmd_modify_srq(srq, attr, attr_mask, &cmd, sizeof(cmd));
}

int ornic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int ornic_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = to_osrq(srq)->srqn;
	return 0;
}

static int ornic_destroy_xsrq(struct ornic_srq *srq)
{
	struct ornic_context *ctx = to_octx(srq->vsrq.srq.context);
	struct ornic_cq *cq = to_ocq(srq->vsrq.cq);
	int ret;

	ret = ibv_cmd_destroy_srq(&srq->vsrq.srq);
	if (ret)
		return ret;
	ornic_lock(&cq->lock);
	ornic_cq_drop_srq(cq, srq->srqn);
	ornic_qp_table_remove(&ctx->xrc_srqs, srq->srqn);
	ornic_unlock(&cq->lock);
	return 0;
}

int ornic_destroy_srq(struct ibv_srq *ibsrq)
{
	struct ornic_srq *srq = to_osrq(ibsrq);
	int ret;

	if (srq->vsrq.srq_type == IBV_SRQT_XRC)
		ret = ornic_destroy_xsrq(srq);
	else
		ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;
	ornic_srq_free(srq);
	return 0;
}

/* Write one entry. Caller holds the lock of the SRQ. Return 0, EINVAL, or ENOMEM if it is full. */
static int ornic_srq_build(struct ornic_srq *srq, uint32_t index, const struct ibv_recv_wr *wr)
{
	struct ornic_wq *wq = &srq->wq;
	uint32_t id = srq->free;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge)
		return EINVAL;
	if (id == ORNIC_ID_END)
		return ENOMEM;
	ornic_rwqe_build(wq, index, id, wr);
	srq->free = srq->ids.next[id];
	srq->ids.next[id] = ORNIC_ID_POSTED;
	srq->ids.wr_id[id] = wr->wr_id;
	srq->posted++;
	return 0;
}

int ornic_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ornic_srq *srq = to_osrq(ibsrq);
	struct ornic_wq *wq = &srq->wq;
	uint32_t old, new;
	int ret = 0;

	ornic_lock(&wq->lock);
	old = atomic_load_explicit(&wq->head, memory_order_relaxed);
	for (new = old; wr; wr = wr->next, new++) {
		ret = ornic_srq_build(srq, new, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (srq->coming && new != old)
		ornic_srq_post_coming(srq, old, new);
	if (new != old && ornic_wq_publish(wq, old, new))
		ornic_db_ring(to_octx(ibsrq->context), ORNIC_DB_SRQ, srq->srqn, new);
	ornic_unlock(&wq->lock);
	return ret;
}

/*
 * Complete the entry with @id: read its wr_id and free the id. Return false if @id, which may
 * be any value from the device, is not posted. Caller holds the lock of the CQ.
 */
bool ornic_srq_complete(struct ornic_srq *srq, uint32_t id, uint64_t *wr_id)
{
	bool posted;

	ornic_lock(&srq->wq.lock);
	posted = id < srq->ids.count && srq->ids.next[id] == ORNIC_ID_POSTED;
	if (posted) {
		*wr_id = srq->ids.wr_id[id];
		srq->ids.next[id] = srq->free;
		srq->free = id;
		srq->posted--;
	}
	ornic_unlock(&srq->wq.lock);
	return posted;
}

/*
 * Return the number of receives that are posted and whose completions are not polled; 0 if the CQ
 * resize with the number @resize has counted them before.
 */
uint32_t ornic_srq_posted(struct ornic_srq *srq, uint32_t resize)
{
	uint32_t posted = 0;

	ornic_lock(&srq->wq.lock);
	if (srq->counted != resize)
		posted = srq->posted;
	srq->counted = resize;
	ornic_unlock(&srq->wq.lock);
	return posted;
}
