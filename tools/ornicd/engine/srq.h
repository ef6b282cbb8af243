/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues in the data path (ORN-SRQ).
 *
 * Whichever queue pair has a message takes the next entry, in ring order, and
 * completes it when its message is done, in any order. A slot of the ring is free
 * for the host as soon as an entry of it has completed, since it was copied before;
 * so the device keeps no list of slots, and the entry's id says to the host which
 * of its work requests completed (ORN-SRQ-1).
 */
#ifndef ORNICD_ENGINE_SRQ_H
#define ORNICD_ENGINE_SRQ_H

#include "device.h"
#include "wq.h"

#include <ornic/srq.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct srq - a shared receive queue
 * @dev:	its function
 * @number:	SRQ number
 * @type:	enum ornic_srq_type
 * @owner, @dbpage: as given at create
 * @pd:		domain of the keys in its entries
 * @privileged:	they may name PHYS_ALL keys
 * @xrcd:	XRC: domain
 * @cq:		XRC: completions of its entries
 * @wq:		the ring
 * @limit:	SRQ_LIMIT below so many entries; 0 = not armed
 * @syndrome:	why @wq is bad
 * @users:	queue pairs that name it
 * @attr:	as created, for queries
 */
struct srq {
	struct device *dev;
	uint32_t number;
	uint8_t type;
	uint32_t owner;
	uint32_t dbpage;
	struct pd *pd;
	bool privileged;
	struct xrcd *xrcd;
	struct cq *cq;
	struct wq wq;
	uint32_t limit;
	uint32_t syndrome;
	uint32_t users;
	struct ornic_srq_create_cmd attr;
};

/*
 * srq_init() - start an SRQ whose attributes are filled in and whose memory is loaded:
 * it never asks for doorbells, since it is looked at when a message comes (ORN-RNG-7).
 */
void srq_init(struct srq *srq);

/*
 * srq_take() - copy the next entry to @bytes, 2^stride of them. Return: 1 taken, 0 none
 * posted, -EIO the ring is bad: SRQ_ERR has been told, its queue pairs are in ERR.
 */
int srq_take(struct srq *srq, uint8_t *bytes);

/*
 * srq_resize() - from now on the SRQ is at @to; its old place is there on return.
 * On failure nothing has changed. Return: enum ornic_status.
 */
uint8_t srq_resize(struct srq *srq, struct ring_place *to);

/* srq_arm() - one SRQ_LIMIT when fewer than @limit entries are posted, now or later */
void srq_arm(struct srq *srq, uint32_t limit);

#endif /* ORNICD_ENGINE_SRQ_H */
