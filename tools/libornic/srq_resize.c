// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_modify_srq with IBV_SRQ_MAX_WR: another ring for an SRQ in use (ORN-SRQ-17 to 26).
 *
 * Indices go on, so the new ring can say what the old one says before the device changes over;
 * and while the command runs, whoever posts does so to both rings. Nobody waits for the
 * command, and no message finds fewer entries than are posted.
 */
#include <errno.h>
#include <string.h>

#include <ccan/minmax.h>

#include "wqe.h"

static int ornic_srq_resize_cmd(struct ornic_srq *srq, const struct ornic_srq_mem *mem,
				const struct ibv_srq_attr *attr, int attr_mask)
{
	uint32_t most = 1u << to_octx(srq->vsrq.srq.context)->limits.log_max_srq;
	struct ibv_srq_attr got = *attr;
	struct ornic_modify_srq cmd = {};

	got.max_wr = min_t(uint32_t, mem->entries, most);
	cmd.buf_addr = (uintptr_t)mem->buf.addr;
	cmd.log_entries = ornic_log2_up(mem->entries);
	return ibv_cmd_modify_srq(&srq->vsrq.srq, &got, attr_mask, &cmd.ibv_cmd, sizeof(cmd));
}

static void ornic_srq_copy(const struct ornic_wq *wq, const struct ornic_srq_mem *to,
			   uint32_t first, uint32_t end)
{
	size_t bytes = (size_t)1 << wq->stride;

	for (; first != end; first++)
		memcpy((char *)to->ring + (first & (to->entries - 1)) * bytes,
		       (const char *)wq->ring + (first & (wq->entries - 1)) * bytes, bytes);
}

/* Entries [old, new) lie in the old ring and are not published there yet (ORN-SRQ-18). */
void ornic_srq_post_coming(struct ornic_srq *srq, uint32_t old, uint32_t new)
{
	struct ornic_context *ctx = to_octx(srq->vsrq.srq.context);

	ornic_srq_copy(&srq->wq, srq->coming, old, new);
	if (ornic_rec_publish(srq->coming->rec, old, new))
		ornic_db_ring(ctx, ORNIC_DB_SRQ, srq->srqn, new);
}

/* They never become fewer: ids that are posted may have any of their numbers. */
static int ornic_srq_ids_grow(struct ornic_srq *srq, uint32_t entries)
{
	struct ornic_srq_ids ids, old = srq->ids;
	int ret;

	if (entries <= old.count)
		return 0;
	ret = ornic_srq_ids_alloc(&ids, entries);
	if (ret)
		return ret;
	ornic_lock(&srq->wq.lock);
	memcpy(ids.next, old.next, old.count * sizeof(*ids.next));
	memcpy(ids.wr_id, old.wr_id, old.count * sizeof(*ids.wr_id));
	srq->ids = ids;
	ornic_unlock(&srq->wq.lock);
	ornic_srq_ids_free(&old);
	return 0;
}

/*
 * Make the new ring say what the old one says, and from here on post to both. Only as much as
 * both hold may be posted meanwhile (ORN-SRQ-15); false if more is.
 */
static bool ornic_srq_begin(struct ornic_srq *srq, struct ornic_srq_mem *mem)
{
	uint32_t entries = min_t(uint32_t, srq->wq.entries, mem->entries);
	uint32_t head;
	bool fits;

	ornic_lock(&srq->wq.lock);
	fits = ornic_srq_use_ids(srq, entries);
	if (fits) {
		head = atomic_load_explicit(&srq->wq.head, memory_order_relaxed);
		ornic_srq_copy(&srq->wq, mem, head - entries, head);
		ornic_ring_store(&mem->rec->host_index, head);
		srq->coming = mem;
	}
	ornic_unlock(&srq->wq.lock);
	return fits;
}

/* @mem is the ring that the device does not use then. */
static void ornic_srq_finish(struct ornic_srq *srq, struct ornic_srq_mem *mem, bool done)
{
	struct ornic_wq *wq = &srq->wq;

	ornic_lock(&wq->lock);
	srq->coming = NULL;
	if (done) {
		struct ornic_buf old = srq->buf;

		wq->ring = mem->ring;
		wq->rec = mem->rec;
		wq->entries = mem->entries;
		srq->buf = mem->buf;
		mem->buf = old;
	}
	ornic_srq_use_ids(srq, wq->entries);
	ornic_unlock(&wq->lock);
}

/* Caller holds the mutex of the SRQ. */
static int ornic_srq_switch(struct ornic_srq *srq, struct ornic_srq_mem *mem,
			    const struct ibv_srq_attr *attr, int attr_mask)
{
	int ret;

	ret = ornic_srq_ids_grow(srq, mem->entries);
	if (ret)
		return ret;
	if (!ornic_srq_begin(srq, mem)) {
		verbs_err(verbs_get_ctx(srq->vsrq.srq.context),
			  "more receives are posted than %u\n", attr->max_wr);
		return EINVAL;
	}
	ret = ornic_srq_resize_cmd(srq, mem, attr, attr_mask);
	ornic_srq_finish(srq, mem, !ret);
	return ret;
}

int ornic_resize_srq(struct ornic_srq *srq, const struct ibv_srq_attr *attr, int attr_mask)
{
	struct ornic_context *ctx = to_octx(srq->vsrq.srq.context);
	struct ornic_srq_mem mem;
	int ret;

	if (!attr->max_wr) {
		verbs_err(&ctx->ibv_ctx, "an SRQ needs entries\n");
		return EINVAL;
	}
	if (ornic_exceeds(ctx, "max_wr of an SRQ", attr->max_wr, 1u << ctx->limits.log_max_srq))
		return EINVAL;
	ret = ornic_srq_mem_alloc(&mem, ornic_srq_entries(attr->max_wr, srq->wq.stride),
				  srq->wq.stride, srq->buf.pd);
	if (ret)
		return ret;
	pthread_mutex_lock(&srq->resize);
	ret = ornic_srq_switch(srq, &mem, attr, attr_mask);
	pthread_mutex_unlock(&srq->resize);
	ornic_buf_free(&mem.buf);
	return ret;
}
