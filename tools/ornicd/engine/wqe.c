// SPDX-License-Identifier: GPL-2.0
/*
 * Fetching and judging work requests.
 *
 * A slot is copied once, then judged from the copy in the order of ORN-WQE-1:
 * opcode, must-be-zero, queue pair number, index, segments, counts, length.
 * Keys are checked later, as data is touched.
 */
#include "qp.h"

#include "../mem/fetch.h"
#include "../packet/bth.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Copy a ring entry; entries may straddle a page when the ring starts inside one. */
static bool ring_copy(const struct umem *m, uint64_t off, void *dst, uint64_t len)
{
	uint8_t *to = dst;

	while (len) {
		void *ptr;
		uint64_t n = umem_span(m, off, len, false, &ptr);

		if (!n)
			return false;
		fetch(to, ptr, n);
		to += n;
		off += n;
		len -= n;
	}
	return true;
}

struct ornic_rec *wq_record(struct qp *qp, struct wq *wq)
{
	return gpa_ptr(qp->dev->gpa, wq->rec, sizeof(struct ornic_rec), true);
}

int64_t wq_pending(struct qp *qp, struct wq *wq)
{
	const struct ornic_rec *rec = wq_record(qp, wq);
	uint32_t n;

	if (!rec)
		return -EFAULT;
	n = ring_host_index(rec) - wq->cons;
	return n <= 1u << wq->log ? (int64_t)n : -EPROTO;
}

/* The ring is unusable: no completion can tell, only the event (ORN-RNG-8). */
static void wq_broken(struct qp *qp, struct wq *wq, int64_t error)
{
	wq->bad = true;
	qp_fail(qp, ORNIC_EV_QP_FATAL,
		error == -EPROTO ? ORNIC_SYN_RING_INDEX : ORNIC_SYN_RING_MEMORY, wq->cons);
}

/* Copy the next slot's first @len bytes. Return as rwqe_fetch(). */
static int wq_copy(struct qp *qp, struct wq *wq, void *dst, uint64_t len)
{
	int64_t n = wq_pending(qp, wq);

	if (!n)
		return 0;
	if (n > 0) {
		uint64_t slot = wq->cons & ((1u << wq->log) - 1);

		if (ring_copy(&wq->mem, slot << wq->stride, dst, len))
			return 1;
		n = -EFAULT;
	}
	wq_broken(qp, wq, n);
	return -EIO;
}

static bool wqe_bad(struct wqe *w, uint8_t status, uint32_t syndrome)
{
	w->status = status;
	w->syndrome = syndrome;
	return false;
}

static bool opcode_legal(const struct qp *qp, uint8_t opcode)
{
	const uint64_t flushes = ORNIC_FEATURE(FLUSH_GLOBAL) | ORNIC_FEATURE(FLUSH_PERSISTENT);
	uint8_t type = qp->type;

	switch (opcode) {
	case ORNIC_WR_SEND:
	case ORNIC_WR_NOP:
		return true;
	case ORNIC_WR_SEND_IMM:
		return type != ORNIC_QPT_RAW;
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
		return type == ORNIC_QPT_RC || type == ORNIC_QPT_UC;
	case ORNIC_WR_RDMA_READ:
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return type == ORNIC_QPT_RC;
	case ORNIC_WR_FLUSH:
		return type == ORNIC_QPT_RC && qp->dev->features & flushes;
	case ORNIC_WR_ATOMIC_WRITE:
		return type == ORNIC_QPT_RC && qp->dev->features & ORNIC_FEATURE(ATOMIC_WRITE);
	default:
		return false;
	}
}

/* The flags that mean something for this opcode; the others must be zero. */
static uint8_t flags_legal(const struct qp *qp, uint8_t opcode)
{
	uint8_t flags = ORNIC_WQE_FENCE | ORNIC_WQE_SIGNALED | ORNIC_WQE_SOLICITED;

	if (opcode != ORNIC_WR_NOP && opcode != ORNIC_WR_RDMA_READ &&
	    opcode != ORNIC_WR_COMP_SWAP && opcode != ORNIC_WR_FETCH_ADD &&
	    opcode != ORNIC_WR_FLUSH)
		flags |= ORNIC_WQE_INLINE;
	if (qp->type == ORNIC_QPT_RAW)
		flags |= ORNIC_WQE_IP_CSUM;
	return flags;
}

/* The next @len bytes of the copy, or NULL when they do not fit the stride. */
static const void *take(const struct qp *qp, const struct wqe *w, uint32_t *off, uint32_t len)
{
	const uint8_t *p = w->bytes + *off;

	if (len > (1u << qp->sq.stride) - *off)
		return NULL;
	*off += len;
	return p;
}

static bool take_remote(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	const struct ornic_wqe_remote *r = take(qp, w, off, sizeof(*r));

	if (!r)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (r->xrc_srqn)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	w->raddr = le64toh(r->addr);
	w->rkey = le32toh(r->rkey);
	return true;
}

static bool take_atomic(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	const struct ornic_wqe_atomic *a = take(qp, w, off, sizeof(*a));

	if (!a)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (w->opcode == ORNIC_WR_FETCH_ADD && a->compare)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	w->swap_add = le64toh(a->swap_add);
	w->compare = le64toh(a->compare);
	return true;
}

static bool take_flush(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	const struct ornic_wqe_flush *f = take(qp, w, off, sizeof(*f));
	static const uint8_t zero[sizeof(f->mbz)];

	if (!f)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (!f->type || f->type & ~(ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT) ||
	    f->level > ORNIC_FLUSH_REGION || memcmp(f->mbz, zero, sizeof(zero)))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	w->feth = f->type | f->level << FETH_LEVEL_SHIFT;
	if (f->level == ORNIC_FLUSH_REGION)
		return true;
	if (le64toh(f->length) > ORNIC_MAX_MSG)
		return wqe_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
	w->flush_len = le64toh(f->length);
	return true;
}

static bool take_path(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	const struct ornic_path *p = take(qp, w, off, sizeof(*p));

	if (!p)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (p->mbz || p->flags || p->dlid || le32toh(p->dest_qpn) > ORNIC_NUMBER_MASK ||
	    (p->port && p->port != qp->port))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	w->path = p;
	return true;
}

static bool take_eth(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	const struct ornic_wqe_eth *e = take(qp, w, off, sizeof(*e));
	uint32_t hdr;

	if (!e)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (e->mss || e->hdr_len || e->vlan_tci || e->mbz[0] || e->mbz[1] || e->mbz[2] ||
	    (e->eflags & ~ORNIC_ETH_CSUM_PARTIAL))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	hdr = le16toh(e->inline_hdr);
	w->eth = e;
	w->hdr = take(qp, w, off, (hdr + 15) & ~15u);
	if (!w->hdr)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	return true;
}

/* Segments between control and data. */
static bool take_segments(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	switch (w->opcode) {
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return take_remote(qp, w, off) && take_atomic(qp, w, off);
	case ORNIC_WR_FLUSH:
		return take_remote(qp, w, off) && take_flush(qp, w, off);
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
	case ORNIC_WR_RDMA_READ:
	case ORNIC_WR_ATOMIC_WRITE:
		return take_remote(qp, w, off);
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
		if (qp->type == ORNIC_QPT_RAW)
			return take_eth(qp, w, off);
		return qp_connected(qp) || take_path(qp, w, off);
	default:
		return true;
	}
}

static bool take_inline(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	w->inl = take(qp, w, &off, count);
	if (!w->inl)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (count > qp->max_inline)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	w->len = count;
	return true;
}

static bool take_sges(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	bool read = w->opcode == ORNIC_WR_RDMA_READ;
	uint64_t len = 0;

	w->sge = take(qp, w, &off, count * sizeof(*w->sge));
	if (!w->sge)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (count > qp->sq.max_sge || (read && count > WQE_MAX_READ_SGE))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	for (uint32_t i = 0; i < count; i++)
		len += le32toh(w->sge[i].length);
	if (len > ORNIC_MAX_MSG)
		return wqe_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
	w->nsge = count;
	w->len = len;
	return true;
}

/* The one SGE of an operation on eight bytes. */
static bool take_word(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	if (!take_sges(qp, w, off, count))
		return false;
	if (count != 1)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	return w->len == 8 || wqe_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
}

/* The operand of an ATOMIC_WRITE in the slot: there is always room, whatever max_inline is. */
static bool take_inline_word(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	w->inl = take(qp, w, &off, count);
	if (!w->inl)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (count != 8)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	w->len = count;
	return true;
}

static bool take_data(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	switch (w->opcode) {
	case ORNIC_WR_FLUSH:
	case ORNIC_WR_NOP:
		return !count || wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return take_word(qp, w, off, count);
	case ORNIC_WR_ATOMIC_WRITE:
		return w->flags & ORNIC_WQE_INLINE ? take_inline_word(qp, w, off, count) :
						     take_word(qp, w, off, count);
	default:
		return w->flags & ORNIC_WQE_INLINE ? take_inline(qp, w, off, count) :
						     take_sges(qp, w, off, count);
	}
}

bool wqe_decode(const struct qp *qp, struct wqe *w, uint32_t index)
{
	const struct ornic_wqe_ctrl *c = (const void *)w->bytes;
	uint32_t off = sizeof(*c);

	*w = (struct wqe) {
		.index = index,
		.opcode = c->opcode,
		.flags = c->flags,
		.imm = c->imm,
	};
	if (!opcode_legal(qp, w->opcode))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_OPCODE);
	if (w->flags & ~flags_legal(qp, w->opcode))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	if (le32toh(c->qpn) != qp->handle)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_QPN);
	if (le32toh(c->index) != index)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_STALE);
	return take_segments(qp, w, &off) && take_data(qp, w, off, le16toh(c->count));
}

int wqe_fetch(struct qp *qp, struct wqe *w)
{
	int ret = wq_copy(qp, &qp->sq, w->bytes, 1u << qp->sq.stride);

	if (ret <= 0)
		return ret;
	if (!wqe_decode(qp, w, qp->sq.cons))
		qp_count(qp, CNT_wqe_errors, 1);
	qp->sq.cons++;
	return 1;
}

/* Judge a receive: its index, zeros and SGE count. */
static uint32_t rwqe_decode(const struct qp *qp, struct rwqe *r, const uint8_t *bytes)
{
	const struct ornic_rwqe *h = (const void *)bytes;
	uint16_t count = le16toh(h->count);

	if (h->mbz0 || h->mbz1)
		return ORNIC_SYN_WQE_MBZ;
	if (le32toh(h->id) != r->index)
		return ORNIC_SYN_WQE_STALE;
	if (sizeof(*h) + count * sizeof(r->sge[0]) > 1u << qp->rq.stride)
		return ORNIC_SYN_WQE_SEGMENT;
	if (count > qp->rq.max_sge || count > RWQE_MAX_SGE)
		return ORNIC_SYN_WQE_COUNT;
	memcpy(r->sge, bytes + sizeof(*h), count * sizeof(r->sge[0]));
	r->nsge = count;
	r->len = 0;
	for (uint32_t i = 0; i < count; i++)
		r->len += le32toh(r->sge[i].length);
	return 0;
}

int rwqe_fetch(struct qp *qp, struct rwqe *r)
{
	uint8_t bytes[WQE_MAX_BYTES] __attribute__((aligned(16)));
	struct ornic_cqe cqe = {};
	uint32_t syndrome;
	int ret;

	if (!qp->rq.present)
		return 0;
	ret = wq_copy(qp, &qp->rq, bytes, 1u << qp->rq.stride);
	if (ret <= 0)
		return ret;
	r->index = qp->rq.cons++;
	syndrome = rwqe_decode(qp, r, bytes);
	if (syndrome) {
		qp_count(qp, CNT_wqe_errors, 1);
		complete_recv(qp, r->index, ORNIC_WC_RECV, ORNIC_WC_LOC_QP_OP_ERR, syndrome, &cqe);
		qp_fail(qp, 0, syndrome, r->index);
		return -EINVAL;
	}
	r->valid = true;
	return 1;
}

int rwqe_skip(struct qp *qp, uint32_t *index)
{
	int64_t n = wq_pending(qp, &qp->rq);

	if (n < 0)
		wq_broken(qp, &qp->rq, n);
	if (n <= 0)
		return n;
	*index = qp->rq.cons++;
	return 1;
}
