/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive work requests, from the receive queue of a queue pair or from its SRQ.
 */
#ifndef ORNICD_ENGINE_RWQE_H
#define ORNICD_ENGINE_RWQE_H

#include <ornic/wqe.h>
#include <stdbool.h>
#include <stdint.h>

struct qp;

/** RWQE_MAX_SGE - most data segments of a receive */
#define RWQE_MAX_SGE	32

/**
 * struct rwqe - a receive that is being filled
 * @valid:	the queue pair holds a receive
 * @index:	wqe_id of its completion: ring index, or id of the SRQ's entry
 * @nsge:	entries of @sge
 * @len:	sum of the lengths of @sge, bytes
 * @sge:	data segments
 */
struct rwqe {
	bool valid;
	uint32_t index;
	uint16_t nsge;
	uint64_t len;
	struct ornic_sge sge[RWQE_MAX_SGE];
};

/**
 * rwqe_fetch() - take the next receive of the RQ or SRQ into @r
 *
 * Return: 1 if taken, 0 if none is posted, negative if the work request or the ring is malformed;
 * then
 * @qp has failed.
 */
int rwqe_fetch(struct qp *qp, struct rwqe *r);

/**
 * rwqe_skip() - take the next receive of the RQ without reading it, to flush it
 *
 * Return: 1 with its ring index in *@index, 0 if none is posted, negative if the ring is malformed;
 * then @qp has failed.
 */
int rwqe_skip(struct qp *qp, uint32_t *index);

#endif /* ORNICD_ENGINE_RWQE_H */
