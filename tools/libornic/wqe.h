/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Build segments of work requests in the ring, for post_send.c, qp_ex.c and receives. Each
 * function writes its whole segment; those that return a pointer return the address behind it.
 *
 * A slot has room for the longest work request of its queue. After the control segment follow:
 *
 *   RC, UC, XRC	remote and data; or remote, atomic and one SGE; or remote and
 *			flush; or bind
 *   UD			path and data
 *   raw packet		Ethernet segment without inline header, and data
 */
#ifndef ORNIC_PROVIDER_WQE_H
#define ORNIC_PROVIDER_WQE_H

#include <errno.h>
#include <string.h>

#include <ornic/mr.h>

#include "ornic.h"

#define ORNIC_SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)

/* Return the IBV_SEND_* that a type supports besides INLINE; raw packets have IP_CSUM as well. */
static inline unsigned int ornic_send_flags(enum ibv_qp_type type)
{
	return type == IBV_QPT_RAW_PACKET ? ORNIC_SEND_FLAGS | IBV_SEND_IP_CSUM : ORNIC_SEND_FLAGS;
}

static inline void *ornic_wq_slot(const struct ornic_wq *wq, uint32_t index)
{
	return (char *)wq->ring + ((size_t)(index & (wq->entries - 1)) << wq->stride);
}

/*
 * Return true if there is no room for work request @index. The load is an acquire, because a
 * thread that polls the CQ advances the tail and must have read the wr_id of the slot.
 */
static inline bool ornic_wq_full(const struct ornic_wq *wq, uint32_t index)
{
	return index - atomic_load_explicit(&wq->tail, memory_order_acquire) >= wq->entries;
}

/*
 * Publish the work requests from @old to @new - 1. Return true if the caller must ring the
 * doorbell. The head is stored before the record, so that a thread that polls the completion
 * finds the work request posted. Caller holds the lock of the queue.
 */
static inline bool ornic_wq_publish(struct ornic_wq *wq, uint32_t old, uint32_t new)
{
	atomic_store_explicit(&wq->head, new, memory_order_relaxed);
	return ornic_rec_publish(wq->rec, old, new);
}

/* Write the control segment with a count of 0; @imm in network byte order. */
static inline void *ornic_wqe_ctrl(struct ornic_wqe_ctrl *ctrl, uint8_t opcode, uint8_t flags,
				   __be32 imm, uint32_t qpn, uint32_t index)
{
	ctrl->opcode = opcode;
	ctrl->flags = flags;
	ctrl->count = 0;
	ctrl->imm = imm;
	ctrl->qpn = htole32(qpn);
	ctrl->index = htole32(index);
	return ctrl + 1;
}

/* Set the key of LOCAL_INV and SEND_INV, which shares its field with immediate data. */
static inline void ornic_wqe_invalidate(struct ornic_wqe_ctrl *ctrl, uint32_t key)
{
	ctrl->inv_key = htole32(key);
}

/* Rights of a window; those that only regions have are ignored. */
#define ORNIC_BIND_ACCESS							\
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |			\
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)
#define ORNIC_BIND_IGNORED	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

/*
 * Return true if the bind is valid. Without a region, address and length must be 0: that
 * unbinds a window of type 1.
 */
static inline bool ornic_bind_legal(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	if (!mw)
		return false;
	if (!info->mr && (info->addr || info->length))
		return false;
	return !(info->mw_access_flags & ~(ORNIC_BIND_ACCESS | ORNIC_BIND_IGNORED));
}

/* Write the bind segment. The index of the key is that of @mw, the tag that of @rkey. */
static inline void ornic_wqe_bind(struct ornic_wqe_bind *seg, const struct ibv_mw *mw,
				  uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	uint32_t key = (mw->rkey & ~ORNIC_KEY_TAG_MASK) | (rkey & ORNIC_KEY_TAG_MASK);

	seg->addr = htole64(info->addr);
	seg->length = htole64(info->length);
	seg->lkey = htole32(info->mr ? info->mr->lkey : 0);
	seg->key = htole32(key);
	seg->access = htole32(info->mw_access_flags & ORNIC_BIND_ACCESS);
	seg->mbz = 0;
}

static inline void *ornic_wqe_remote(struct ornic_wqe_remote *seg, uint64_t addr, uint32_t rkey)
{
	seg->addr = htole64(addr);
	seg->rkey = htole32(rkey);
	seg->xrc_srqn = 0;
	return seg + 1;
}

/* Set the SRQ number of an XRC request, in the remote segment that follows the control segment. */
static inline void ornic_wqe_target(struct ornic_wqe_ctrl *ctrl, uint32_t srqn)
{
	((struct ornic_wqe_remote *)(ctrl + 1))->xrc_srqn = htole32(srqn & ORNIC_NUMBER_MASK);
}

static inline void *ornic_wqe_atomic(struct ornic_wqe_atomic *seg, uint64_t swap_add,
				     uint64_t compare)
{
	seg->swap_add = htole64(swap_add);
	seg->compare = htole64(compare);
	return seg + 1;
}

static inline void ornic_wqe_flush(struct ornic_wqe_flush *seg, uint64_t length, uint8_t type,
				   uint8_t level)
{
	memset(seg, 0, sizeof(*seg));
	seg->length = htole64(length);
	seg->type = type;
	seg->level = level;
}

static inline void *ornic_wqe_path(struct ornic_path *seg, const struct ornic_ah *ah,
				   uint32_t qpn, uint32_t qkey)
{
	*seg = ah->path;
	seg->dest_qpn = htole32(qpn & ORNIC_NUMBER_MASK);
	seg->qkey = htole32(qkey);
	return seg + 1;
}

static inline void *ornic_wqe_eth(struct ornic_wqe_eth *seg)
{
	memset(seg, 0, sizeof(*seg));
	return seg + 1;
}

static inline void ornic_wqe_sge(struct ornic_sge *seg, uint64_t addr, uint32_t length,
				 uint32_t lkey)
{
	seg->addr = htole64(addr);
	seg->length = htole32(length);
	seg->lkey = htole32(lkey);
}

static inline void ornic_wqe_sges(struct ornic_sge *seg, const struct ibv_sge *sge, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		ornic_wqe_sge(&seg[i], sge[i].addr, sge[i].length, sge[i].lkey);
}

/* Build a receive in the slot of @index. Its completion names @id. */
static inline void ornic_rwqe_build(const struct ornic_wq *wq, uint32_t index, uint32_t id,
				    const struct ibv_recv_wr *wr)
{
	struct ornic_rwqe *rwqe = ornic_wq_slot(wq, index);

	rwqe->count = htole16(wr->num_sge);
	rwqe->mbz0 = 0;
	rwqe->id = htole32(id);
	rwqe->mbz1 = 0;
	ornic_wqe_sges((struct ornic_sge *)(rwqe + 1), wr->sg_list, wr->num_sge);
}

/* Append @length bytes to the *@used bytes of inline data. Return false if more than @max. */
static inline bool ornic_wqe_inline(void *data, size_t *used, size_t max, const void *src,
				    size_t length)
{
	if (length > max - *used)
		return false;
	memcpy((char *)data + *used, src, length);
	*used += length;
	return true;
}

#endif
