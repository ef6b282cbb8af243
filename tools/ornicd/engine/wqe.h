/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Send work requests in the engine: a copy of the ring entry, checked once (ORN-RNG-3, ORN-WQE-1).
 */
#ifndef ORNICD_ENGINE_WQE_H
#define ORNICD_ENGINE_WQE_H

#include <ornic/admin.h>
#include <ornic/qp.h>
#include <ornic/wqe.h>
#include <stdbool.h>
#include <stdint.h>

struct qp;

/** WQE_MAX_BYTES - largest stride of a send queue */
#define WQE_MAX_BYTES	2048
/** WQE_MAX_READ_SGE - most data segments of an RDMA READ (Identify: max_sge_read) */
#define WQE_MAX_READ_SGE	16

/**
 * struct wqe - a send work request
 * @index:	ring index
 * @opcode:	enum ornic_wqe_opcode
 * @flags:	ORNIC_WQE_*
 * @status:	enum ornic_wc_status of its completion
 * @syndrome:	reason, if @status is an error
 * @imm:	immediate data, as stored (wire order)
 * @len:	message bytes
 * @nsge:	entries of @sge; 0 with inline data
 * @sge:	data segments, or NULL
 * @inl:	inline data, or NULL
 * @path:	UD: address vector
 * @eth:	RAW: Ethernet segment
 * @hdr:	RAW: inline header bytes
 * @raddr:	remote address
 * @rkey:	remote key; SEND_INV: key to invalidate at the peer; LOCAL_INV: key to invalidate
 *		here
 * @reg:	FAST_REG: its segment
 * @bind:	BIND_MW: its segment
 * @xrc_srqn:	XRC: SRQ at the responder
 * @swap_add:	COMP_SWAP: new value; FETCH_ADD: value to add
 * @compare:	COMP_SWAP: value to compare with
 * @feth:	FLUSH: placement type and selectivity level, in wire format
 * @flush_len:	FLUSH: bytes from @raddr on
 * @psn:	first PSN
 * @npsn:	number of PSNs: packets, or for READ packets of the response
 * @ssn:	send sequence number of the message, if it takes PSNs
 * @sent:	PSNs sent since the last rewind
 * @got:	READ: PSNs of responses received
 * @done:	wqe_is_read(): all responses arrived; wqe_is_memop(): executed
 * @seen:	time when it was fetched, ns; 0 if latency is not measured
 * @bytes:	the copy; the pointers above point into it and are valid as long as the slot of the
 *		window is in use
 */
struct wqe {
	uint32_t index;
	uint8_t opcode;
	uint8_t flags;
	uint8_t status;
	uint32_t syndrome;
	uint32_t imm;
	uint32_t len;
	uint16_t nsge;
	const struct ornic_sge *sge;
	const uint8_t *inl;
	const struct ornic_path *path;
	const struct ornic_wqe_eth *eth;
	const uint8_t *hdr;
	const struct ornic_wqe_fast_reg *reg;
	const struct ornic_wqe_bind *bind;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t xrc_srqn;
	uint64_t swap_add;
	uint64_t compare;
	uint32_t feth;
	uint32_t flush_len;
	uint32_t psn;
	uint32_t npsn;
	uint32_t ssn;
	uint32_t sent;
	uint32_t got;
	bool done;
	uint64_t seen;
	uint8_t bytes[] __attribute__((aligned(16)));
};

/*
 * wqe_decode() - check the copy of entry @index in @w->bytes, and fill in the members of @w
 * Return: true, or false with the reason in @w->status and @w->syndrome.
 */
bool wqe_decode(const struct qp *qp, struct wqe *w, uint32_t index);

/* wqe_is_read() - return true if @w takes a responder resource and has a response of its own */
static inline bool wqe_is_read(const struct wqe *w)
{
	switch (w->opcode) {
	case ORNIC_WR_RDMA_READ:
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
	case ORNIC_WR_FLUSH:
	case ORNIC_WR_ATOMIC_WRITE:
		return true;
	default:
		return false;
	}
}

/* wqe_is_memop() - return true if @w changes a key and sends no packets (memop.h) */
static inline bool wqe_is_memop(const struct wqe *w)
{
	return w->opcode == ORNIC_WR_FAST_REG || w->opcode == ORNIC_WR_BIND_MW ||
	       w->opcode == ORNIC_WR_LOCAL_INV;
}

/**
 * wqe_fetch() - copy the next entry of the SQ to @w and check it
 *
 * Return: 1 if one was fetched (a malformed one has its status set), 0 if none is posted, negative
 * if the ring is malformed; then @qp has failed.
 */
int wqe_fetch(struct qp *qp, struct wqe *w);

#endif /* ORNICD_ENGINE_WQE_H */
