// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_modify_srq with IBV_SRQ_MAX_WR: move an SRQ in use to a new ring (ORN-SRQ-17 to 26).
 *
 * Indices continue in the new ring, so both rings can hold the same entries before the device
 * switches. While the device executes the command, other threads post to both rings. So they
 * need not wait, and the device finds all posted entries no matter when it switches.
 */
#include <errno.h>
#include <string.h>

#include <ccan/minmax.h>

#include "wqe.h"

/*
 * Run the command. As at create, request as many entries as the ring has slots, so that
 * ibv_query_srq() reports the real size. Return 0 or a positive errno.
 */
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

/* Copy the entries from @first to @end - 1 to the new ring. Caller holds the lock of the SRQ. */
static void ornic_srq_copy(const struct ornic_wq *wq, const struct ornic_srq_mem *to,
			   uint32_t first, uint32_t end)
{
	size_t bytes = (size_t)1 << wq->stride;

	for (; first != end; first++)
		memcpy((char *)to->ring + (first & (to->entries - 1)) * bytes,
		       (const char *)wq->ring + (first & (wq->entries - 1)) * bytes, bytes);
}

/*
 * Copy the entries from @old to @new - 1 to the new ring and publish them there, before the
 * caller publishes them in the old ring (ORN-SRQ-18). Caller holds the lock of the SRQ.
 */
void ornic_srq_post_coming(struct ornic_srq *srq, uint32_t old, uint32_t new)
{
	struct ornic_context *ctx = to_octx(srq->vsrq.srq.context);

	ornic_srq_copy(&srq->wq, srq->coming, old, new);
	if (ornic_rec_publish(srq->coming->rec, old, new))
		ornic_db_ring(ctx, ORNIC_DB_SRQ, srq->srqn, new);
}

/*
 * Ensure that there are at least @entries ids. The arrays never shrink, because a posted id may
 * have any value. Caller holds the resize mutex. Return 0 or ENOMEM.
 */
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
 * Copy to the new ring all entries that the device may not have taken, and start to post to both
 * rings. Until ornic_srq_finish() the smaller ring limits the posted entries (ORN-SRQ-15).
 * Return false and change nothing if more entries are posted already.
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

/*
 * Stop posting to both rings. If @done, the device has switched: use the new ring. On return @mem
 * is the ring that the device does not use, which the caller frees.
 */
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

/* Switch the SRQ to the ring @mem. Caller holds the resize mutex. Return 0 or a positive errno. */
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

/*
 * Resize an SRQ to at least attr->max_wr entries, and set its limit if @attr_mask contains
 * IBV_SRQ_LIMIT. Return 0 or a positive errno, which leaves the SRQ as it was.
 */
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
