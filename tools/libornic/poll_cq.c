// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Consume completions: ibv_poll_cq and the reader of ibv_cq_ex.
 *
 * Both use ornic_cq_take(): it copies an entry, returns the slot to the device and finds
 * the work request. It skips an entry that names no queue pair of this CQ or no
 * outstanding work request, because the provider does not trust the device (ORN-SEC-18).
 * It does not look at a queue pair of another CQ, which another thread may free.
 */
#include <errno.h>
#include <string.h>

#include "ornic.h"

/*
 * Return the ibv_wc_flags of a completion. GRH and WITH_IMM have the same values in
 * libibverbs and in the device; IP_CSUM_OK and WITH_INV do not.
 */
static unsigned int ornic_wc_flags(const struct ornic_cqe *cqe)
{
	uint32_t flags = le32toh(cqe->flags);
	unsigned int wc = flags & (ORNIC_CQE_GRH | ORNIC_CQE_WITH_IMM);

	/* IBV_WC_IP_CSUM_OK means that both the IP and the L4 checksum are correct. */
	if (flags & ORNIC_CQE_IP_CSUM_OK && flags & ORNIC_CQE_L4_CSUM_OK)
		wc |= IBV_WC_IP_CSUM_OK;
	if (flags & ORNIC_CQE_WITH_INV)
		wc |= IBV_WC_WITH_INV;
	return wc;
}

static bool ornic_wc_opcode_known(uint8_t opcode)
{
	return opcode <= ORNIC_WC_LOCAL_INV || opcode == ORNIC_WC_FLUSH ||
	       opcode == ORNIC_WC_ATOMIC_WRITE || opcode == ORNIC_WC_RECV ||
	       opcode == ORNIC_WC_RECV_RDMA_WITH_IMM;
}

/*
 * Return the opcode of a completion. A flushed work request may have an unknown opcode, of
 * which only the queue is certain; report SEND or RECV for it.
 */
static enum ibv_wc_opcode ornic_wc_opcode(const struct ornic_cqe *cqe)
{
	if (ornic_wc_opcode_known(cqe->opcode))
		return (enum ibv_wc_opcode)cqe->opcode;
	return cqe->opcode & ORNIC_WC_RECV_BIT ? IBV_WC_RECV : IBV_WC_SEND;
}

/* Return the status; GENERAL_ERR for a success with an unknown opcode and for other errors. */
static enum ibv_wc_status ornic_wc_status(const struct ornic_cqe *cqe)
{
	if (cqe->status == ORNIC_WC_SUCCESS)
		return ornic_wc_opcode_known(cqe->opcode) ? IBV_WC_SUCCESS : IBV_WC_GENERAL_ERR;
	return cqe->status <= ORNIC_WC_RNR_RETRY_EXC_ERR ? (enum ibv_wc_status)cqe->status :
							   IBV_WC_GENERAL_ERR;
}

/*
 * Complete all work requests up to @index (ORN-CQ-8). Return false if @index is not
 * outstanding. Caller holds the CQ's lock.
 *
 * The load of tail is relaxed because only holders of that lock write it. The load of head
 * is relaxed because ornic_wq_publish() stores head before host_index. The device wrote the
 * entry after it had read host_index, and the caller read the entry with acquire semantics.
 * A faulty device may name a later index; then wr_id is stale, but lies inside the array.
 * The store of tail is a release, so that the wr_id is read before a poster reuses the slot
 * (ornic_wq_full()).
 */
static bool ornic_wq_complete(struct ornic_wq *wq, uint32_t index, uint64_t *wr_id)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&wq->head, memory_order_relaxed);

	if (index - tail >= head - tail)
		return false;
	*wr_id = wq->wr_id[index & (wq->entries - 1)];
	atomic_store_explicit(&wq->tail, index + 1, memory_order_release);
	return true;
}

/*
 * Return the XRC SRQ of an entry, or NULL if the entry is not a receive of an XRC SRQ of this CQ.
 * Ignore the number of the target: it may belong to another process, or be destroyed and its
 * number be that of a queue pair. The table ignores the upper 8 bits of the number of the SRQ, so
 * compare all 32. Caller holds the CQ's lock.
 */
struct ornic_srq *ornic_cqe_xrc_srq(const struct ornic_cq *cq, const struct ornic_cqe *cqe)
{
	struct ornic_context *ctx = to_octx(cq->vcq.cq.context);
	struct ornic_srq *srq = ornic_qp_table_find(&ctx->xrc_srqs, le32toh(cqe->srqn), cq);

	if (!(cqe->opcode & ORNIC_WC_RECV_BIT) || !srq || le32toh(cqe->srqn) != srq->srqn)
		return NULL;
	return srq;
}

/*
 * Complete a receive of an RQ, SRQ or XRC SRQ. Return false if it is not outstanding. Caller holds
 * the CQ's lock.
 */
static bool ornic_recv_complete(const struct ornic_cq *cq, const struct ornic_cqe *cqe,
				uint64_t *wr_id)
{
	struct ornic_context *ctx = to_octx(cq->vcq.cq.context);
	struct ornic_qp *qp = ornic_qp_table_find(&ctx->recvs, le32toh(cqe->qpn), cq);
	uint32_t id = le32toh(cqe->wqe_id), srqn = le32toh(cqe->srqn);
	struct ornic_srq *srq;

	srq = qp && qp->vqp.qp.srq ? to_osrq(qp->vqp.qp.srq) : NULL;
	if (srqn == ORNIC_NONE)
		return qp && !srq && ornic_wq_complete(&qp->rq, id, wr_id);
	if (!srq || srq->srqn != srqn)
		srq = ornic_cqe_xrc_srq(cq, cqe);
	return srq && ornic_srq_complete(srq, id, wr_id);
}

/*
 * Find and complete the work request of an entry. Return false if the entry names none that
 * is outstanding at this CQ. Caller holds the CQ's lock.
 */
static bool ornic_cqe_resolve(struct ornic_cq *cq, const struct ornic_cqe *cqe, uint64_t *wr_id)
{
	struct ornic_context *ctx = to_octx(cq->vcq.cq.context);
	struct ornic_qp *qp;

	if (cqe->opcode & ORNIC_WC_RECV_BIT)
		return ornic_recv_complete(cq, cqe, wr_id);
	qp = ornic_qp_table_find(&ctx->sends, le32toh(cqe->qpn), cq);
	return qp && ornic_wq_complete(&qp->sq, le32toh(cqe->wqe_id), wr_id);
}

/*
 * Take the next valid completion. Return false if there is none. One call reads at most one
 * lap of the ring, so a device that writes invalid entries without end cannot keep it busy
 * (ORN-SEC-18). Caller holds the CQ's lock.
 *
 * cq->index is written under the lock only. It is atomic because ornic_arm_cq() reads it
 * without that lock.
 */
static bool ornic_cq_take(struct ornic_cq *cq, struct ornic_cqe *cqe, uint64_t *wr_id)
{
	uint32_t first = atomic_load_explicit(&cq->index, memory_order_relaxed);
	uint32_t index = first;
	bool found = false;

	while (!found && index - first < 1u << cq->mem.log) {
		const struct ornic_cqe *entry = &cq->mem.ring[index & ((1u << cq->mem.log) - 1)];

		if (!ornic_entry_ready(entry, index, cq->mem.log))
			break;
		memcpy(cqe, entry, sizeof(*cqe));
		index++;
		atomic_store_explicit(&cq->index, index, memory_order_relaxed);
		ornic_rec_consumed(cq->mem.rec, index);
		found = ornic_cqe_resolve(cq, cqe, wr_id);
	}
	return found;
}

/*
 * Return the queue pair number of the sender. With a flow tag the completion is of a raw
 * frame: it has no sending queue pair, and the field holds the tag.
 */
static uint32_t ornic_wc_src_qp(const struct ornic_cqe *cqe)
{
	if (le32toh(cqe->flags) & ORNIC_CQE_FLOW_TAG)
		return 0;
	return le32toh(cqe->src_qp) & ORNIC_NUMBER_MASK;
}

/* Return the source LID, 0 for a raw frame whose checksum is in the field. */
static uint16_t ornic_wc_slid(const struct ornic_cqe *cqe)
{
	return le32toh(cqe->flags) & ORNIC_CQE_CSUM_COMPLETE ? 0 : le16toh(cqe->slid_csum);
}

static void ornic_wc_fill(struct ibv_wc *wc, const struct ornic_cqe *cqe, uint64_t wr_id)
{
	wc->wr_id = wr_id;
	wc->status = ornic_wc_status(cqe);
	wc->opcode = ornic_wc_opcode(cqe);
	wc->vendor_err = le32toh(cqe->syndrome);
	wc->byte_len = le32toh(cqe->byte_len);
	wc->wc_flags = ornic_wc_flags(cqe);
	if (wc->wc_flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = le32toh(cqe->inv_key);
	else
		wc->imm_data = cqe->imm;
	wc->qp_num = le32toh(cqe->qpn) & ORNIC_NUMBER_MASK;
	wc->src_qp = ornic_wc_src_qp(cqe);
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = ornic_wc_slid(cqe);
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->path_bits;
}

int ornic_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct ornic_cq *cq = to_ocq(ibcq);
	struct ornic_cqe cqe;
	uint64_t wr_id;
	int n;

	ornic_lock(&cq->lock);
	for (n = 0; n < num_entries && ornic_cq_take(cq, &cqe, &wr_id); n++)
		ornic_wc_fill(&wc[n], &cqe, wr_id);
	ornic_unlock(&cq->lock);
	return n;
}

static int ornic_next_poll(struct ibv_cq_ex *ibcq)
{
	struct ornic_cq *cq = to_ocq_ex(ibcq);

	if (!ornic_cq_take(cq, &cq->cur, &ibcq->wr_id))
		return ENOENT;
	ibcq->status = ornic_wc_status(&cq->cur);
	return 0;
}

/* Take the first completion of a poll. Caller holds the CQ's lock, which is released on failure. */
static int ornic_first_poll(struct ibv_cq_ex *ibcq)
{
	int ret = ornic_next_poll(ibcq);

	if (ret)
		ornic_unlock(&to_ocq_ex(ibcq)->lock);
	return ret;
}

static int ornic_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	if (attr->comp_mask)
		return EINVAL;
	ornic_lock(&to_ocq_ex(ibcq)->lock);
	return ornic_first_poll(ibcq);
}

/*
 * Start to poll a CQ with wall-clock times. Replace an old reading of the clocks before a
 * completion is taken, because the lock is released meanwhile. An empty CQ needs no reading.
 */
static int ornic_start_poll_wall(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct ornic_cq *cq = to_ocq_ex(ibcq);

	if (attr->comp_mask)
		return EINVAL;
	ornic_lock(&cq->lock);
	if (ornic_cq_unpolled(cq, 0) && ornic_wall_is_old(cq))
		ornic_wall_refresh(cq);
	return ornic_first_poll(ibcq);
}

static void ornic_end_poll(struct ibv_cq_ex *ibcq)
{
	ornic_unlock(&to_ocq_ex(ibcq)->lock);
}

static enum ibv_wc_opcode ornic_read_opcode(struct ibv_cq_ex *ibcq)
{
	return ornic_wc_opcode(&to_ocq_ex(ibcq)->cur);
}

static uint32_t ornic_read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_ocq_ex(ibcq)->cur.syndrome);
}

static uint32_t ornic_read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_ocq_ex(ibcq)->cur.byte_len);
}

/*
 * Return the immediate data or, with WITH_INV, the invalidated rkey in host byte order.
 * ibv_wc_read_invalidated_rkey() of libibverbs calls this function and casts the result
 * (verbs.h, at least to rdma-core 65).
 */
static __be32 ornic_read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct ornic_cqe *cqe = &to_ocq_ex(ibcq)->cur;

	if (le32toh(cqe->flags) & ORNIC_CQE_WITH_INV)
		return (__force __be32)le32toh(cqe->inv_key);
	return cqe->imm;
}

static uint32_t ornic_read_qp_num(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_ocq_ex(ibcq)->cur.qpn) & ORNIC_NUMBER_MASK;
}

static uint32_t ornic_read_src_qp(struct ibv_cq_ex *ibcq)
{
	return ornic_wc_src_qp(&to_ocq_ex(ibcq)->cur);
}

static unsigned int ornic_read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return ornic_wc_flags(&to_ocq_ex(ibcq)->cur);
}

static uint32_t ornic_read_slid(struct ibv_cq_ex *ibcq)
{
	return ornic_wc_slid(&to_ocq_ex(ibcq)->cur);
}

static uint8_t ornic_read_sl(struct ibv_cq_ex *ibcq)
{
	return to_ocq_ex(ibcq)->cur.sl;
}

static uint8_t ornic_read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return to_ocq_ex(ibcq)->cur.path_bits;
}

static uint64_t ornic_read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return le64toh(to_ocq_ex(ibcq)->cur.timestamp);
}

static uint64_t ornic_read_wallclock(struct ibv_cq_ex *ibcq)
{
	struct ornic_cq *cq = to_ocq_ex(ibcq);

	return ornic_wall_ns(cq, le64toh(cq->cur.timestamp));
}

/* Return the VLAN tag of the frame, 0 if it has none. */
static uint16_t ornic_read_cvlan(struct ibv_cq_ex *ibcq)
{
	const struct ornic_cqe *cqe = &to_ocq_ex(ibcq)->cur;

	return le32toh(cqe->flags) & ORNIC_CQE_VLAN ? le16toh(cqe->vlan_tci) : 0;
}

/* Return the flow tag of the frame, 0 if it has none. */
static uint32_t ornic_read_flow_tag(struct ibv_cq_ex *ibcq)
{
	const struct ornic_cqe *cqe = &to_ocq_ex(ibcq)->cur;

	return le32toh(cqe->flags) & ORNIC_CQE_FLOW_TAG ? le32toh(cqe->src_qp) : 0;
}

void ornic_cq_set_reader(struct ornic_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = ornic_start_poll;
	ex->next_poll = ornic_next_poll;
	ex->end_poll = ornic_end_poll;
	ex->read_opcode = ornic_read_opcode;
	ex->read_vendor_err = ornic_read_vendor_err;
	ex->read_wc_flags = ornic_read_wc_flags;
	ex->read_byte_len = ornic_read_byte_len;
	ex->read_imm_data = ornic_read_imm_data;
	ex->read_qp_num = ornic_read_qp_num;
	ex->read_src_qp = ornic_read_src_qp;
	ex->read_slid = ornic_read_slid;
	ex->read_sl = ornic_read_sl;
	ex->read_dlid_path_bits = ornic_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = ornic_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) {
		ex->start_poll = ornic_start_poll_wall;
		ex->read_completion_wallclock_ns = ornic_read_wallclock;
	}
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = ornic_read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = ornic_read_flow_tag;
}
