// SPDX-License-Identifier: GPL-2.0
/*
 * Fetch and check send work requests.
 *
 * A slot is copied once, then the copy is checked in the order of ORN-WQE-1: opcode, must-be-zero,
 * queue pair number, index, segments, counts, length. Keys are checked when data is accessed.
 */
#include "wqe.h"

#include "latency.h"
#include "qp.h"

#include "../packet/bth.h"

#include <ornic/identify.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

static bool wqe_bad(struct wqe *w, uint8_t status, uint32_t syndrome)
{
	w->status = status;
	w->syndrome = syndrome;
	return false;
}

/* Return true unless @opcode needs a feature that is missing. */
static bool opcode_offered(const struct qp *qp, uint8_t opcode)
{
	switch (opcode) {
	case ORNIC_WR_FAST_REG:
		return qp->dev->features & ORNIC_FEATURE(FAST_REG);
	case ORNIC_WR_BIND_MW:
		return qp->dev->features & (ORNIC_FEATURE(MW1) | ORNIC_FEATURE(MW2B));
	case ORNIC_WR_LOCAL_INV:
	case ORNIC_WR_SEND_INV:
		return qp->dev->features & (ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(MW2B));
	default:
		return true;
	}
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
		return qp_connected(qp);
	case ORNIC_WR_FAST_REG:
	case ORNIC_WR_BIND_MW:
	case ORNIC_WR_LOCAL_INV:
		return type == ORNIC_QPT_RC || type == ORNIC_QPT_UC;
	case ORNIC_WR_RDMA_READ:
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return qp_reliable(qp);
	case ORNIC_WR_SEND_INV:
		return type == ORNIC_QPT_RC;
	case ORNIC_WR_FLUSH:
		return type == ORNIC_QPT_RC && qp->dev->features & flushes;
	case ORNIC_WR_ATOMIC_WRITE:
		return type == ORNIC_QPT_RC && qp->dev->features & ORNIC_FEATURE(ATOMIC_WRITE);
	default:
		return false;
	}
}

/* Return the flags that are defined for this opcode; the others must be zero. */
static uint8_t flags_legal(const struct qp *qp, uint8_t opcode)
{
	uint8_t flags = ORNIC_WQE_FENCE | ORNIC_WQE_SIGNALED | ORNIC_WQE_SOLICITED;

	if (opcode != ORNIC_WR_NOP && opcode != ORNIC_WR_RDMA_READ &&
	    opcode != ORNIC_WR_COMP_SWAP && opcode != ORNIC_WR_FETCH_ADD &&
	    opcode != ORNIC_WR_FLUSH && opcode != ORNIC_WR_FAST_REG &&
	    opcode != ORNIC_WR_BIND_MW && opcode != ORNIC_WR_LOCAL_INV)
		flags |= ORNIC_WQE_INLINE;
	if (qp->type == ORNIC_QPT_RAW)
		flags |= ORNIC_WQE_IP_CSUM;
	return flags;
}

/* Return the next @len bytes of the copy and advance *@off, or NULL if they exceed the slot. */
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
	if (le32toh(r->xrc_srqn) > (qp->type == ORNIC_QPT_XRC_INI ? ORNIC_NUMBER_MASK : 0))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	w->xrc_srqn = le32toh(r->xrc_srqn);
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

static bool take_fast_reg(const struct qp *qp, struct wqe *w, uint32_t *off)
{
	static const uint8_t zero[sizeof(w->reg->mbz)];

	w->reg = take(qp, w, off, sizeof(*w->reg));
	if (!w->reg)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (memcmp(w->reg->mbz, zero, sizeof(zero)))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	return true;
}

/* Decode the segments between control and data. */
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
	case ORNIC_WR_FAST_REG:
		return take_fast_reg(qp, w, off);
	case ORNIC_WR_BIND_MW:
		w->bind = take(qp, w, off, sizeof(*w->bind));
		if (!w->bind)
			return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
		return !w->bind->mbz ||
		       wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	case ORNIC_WR_SEND:
	case ORNIC_WR_SEND_IMM:
		if (qp->type == ORNIC_QPT_RAW)
			return take_eth(qp, w, off);
		if (qp->type != ORNIC_QPT_XRC_INI)
			return qp_connected(qp) || take_path(qp, w, off);
		/* The remote segment of an XRC SEND names the SRQ alone. */
		if (!take_remote(qp, w, off))
			return false;
		return (!w->raddr && !w->rkey) ||
		       wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ);
	default:
		return true;
	}
}

/*
 * Take @count inline bytes. ATOMIC_WRITE has 8 of them, which fit every slot: no max_inline
 * applies.
 */
static bool take_inline(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	bool word = w->opcode == ORNIC_WR_ATOMIC_WRITE;

	w->inl = take(qp, w, &off, count);
	if (!w->inl)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT);
	if (word ? count != 8 : count > qp->max_inline)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	w->len = count;
	return true;
}

/* Take a list of @count SGEs: one of 8 bytes if @word, the operand of an atomic operation. */
static bool take_sges(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count, bool word)
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
	if (word && count != 1)
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	if (word && len != 8)
		return wqe_bad(w, ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH);
	w->nsge = count;
	w->len = len;
	return true;
}

static bool take_data(const struct qp *qp, struct wqe *w, uint32_t off, uint32_t count)
{
	switch (w->opcode) {
	case ORNIC_WR_FLUSH:
	case ORNIC_WR_NOP:
	case ORNIC_WR_FAST_REG:
	case ORNIC_WR_BIND_MW:
	case ORNIC_WR_LOCAL_INV:
		return !count || wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_COUNT);
	default:
		if (w->flags & ORNIC_WQE_INLINE)
			return take_inline(qp, w, off, count);
		return take_sges(qp, w, off, count, w->opcode == ORNIC_WR_COMP_SWAP ||
						    w->opcode == ORNIC_WR_FETCH_ADD ||
						    w->opcode == ORNIC_WR_ATOMIC_WRITE);
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
	if (!opcode_legal(qp, w->opcode) || !opcode_offered(qp, w->opcode))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_OPCODE);
	if (w->opcode == ORNIC_WR_FAST_REG && !(qp->flags & ORNIC_QP_F_PRIVILEGED))
		return wqe_bad(w, ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_PRIVILEGED);
	if (w->opcode == ORNIC_WR_SEND_INV || w->opcode == ORNIC_WR_LOCAL_INV)
		w->rkey = le32toh(c->inv_key);
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
	int64_t n = wq_copy(qp->dev, &qp->sq, w->bytes, 1ull << qp->sq.stride);

	if (!n)
		return 0;
	if (n < 0) {
		/* Only the event reports this, no completion (ORN-RNG-8). */
		qp->sq.bad = true;
		qp_fail(qp, ORNIC_EV_QP_FATAL, wq_syndrome(n), qp->sq.cons);
		return -EIO;
	}
	if (!wqe_decode(qp, w, qp->sq.cons))
		qp_count(qp, CNT_wqe_errors, 1);
	latency_seen(qp->dev, w);
	qp->sq.cons++;
	return 1;
}
