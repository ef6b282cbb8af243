/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data segments of work requests to pieces of host memory.
 */
#ifndef ORNICD_ENGINE_DATA_H
#define ORNICD_ENGINE_DATA_H

#include "../packet/packet.h"

#include <ornic/wqe.h>
#include <stdbool.h>
#include <stdint.h>

struct mr;
struct qp;

/**
 * data_gather() - check keys and find the pieces of memory behind part of an SGE list (ORN-MEM-6)
 * @qp: whose PD and privileges count
 * @sge, @nsge: the list
 * @off: first byte of the message
 * @len: bytes; @off + @len is within the list's sum
 * @write: they will be written: needs ORNIC_ACCESS_LOCAL_WRITE
 * @seg: where the pieces go, PACKET_SEGS of them
 * @got: bytes covered; less than @len when @seg is full
 * @syndrome: why it failed
 *
 * Return: pieces, or -EACCES.
 */
int data_gather(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t off,
		uint64_t len, bool write, struct seg *seg, uint64_t *got, uint32_t *syndrome);

/**
 * data_scatter() - copy a packet's payload into an SGE list
 * @skip: bytes of the list before the payload's place
 *
 * Return: 0, or -EACCES and *@syndrome; then nothing behind the failing SGE was written.
 */
int data_scatter(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t skip,
		 const struct packet *p, uint32_t *syndrome);

/**
 * data_receive() - copy a payload into the receive in progress, with the rights of the queue that it
 * came from: the queue pair or the SRQ (ORN-SRQ-3)
 */
int data_receive(struct qp *qp, uint64_t skip, const struct packet *p, uint32_t *syndrome);

/**
 * data_place() - copy a packet's payload to [@addr, @addr + p->len) of a checked key
 *
 * Return: 0 or -EFAULT.
 */
int data_place(struct qp *qp, struct mr *mr, uint64_t addr, const struct packet *p);

#endif /* ORNICD_ENGINE_DATA_H */
