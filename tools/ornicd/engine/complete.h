/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completions of work requests.
 */
#ifndef ORNICD_ENGINE_COMPLETE_H
#define ORNICD_ENGINE_COMPLETE_H

#include <ornic/cq.h>
#include <stdint.h>

struct qp;
struct wqe;

/* complete_send() - finish @w with its status: write a CQE if one is due, free its slots */
void complete_send(struct qp *qp, struct wqe *w);

/**
 * complete_recv() - write the CQE of a receive
 * @index:	of struct rwqe
 * @cqe:	what the transport knows (byte_len, imm, flags, src_qp, ...); this function adds the
 *		queue, index, opcode, status and syndrome
 */
void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe);

#endif /* ORNICD_ENGINE_COMPLETE_H */
