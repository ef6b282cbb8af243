/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues in the data path (ORN-SRQ).
 *
 * A queue pair takes the next entry in ring order when a message arrives, and completes it when the
 * message ends. So entries complete in any order. The device copies an entry before it completes,
 * so the slot is free for the host with the completion, and the device keeps no list of slots. The
 * id of an entry tells the host which of its work requests completed (ORN-SRQ-1).
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
 * @pd:		protection domain of the keys in its entries
 * @privileged:	the entries may name PHYS_ALL keys
 * @xrcd:	XRC: domain
 * @cq:		XRC: CQ of its receives
 * @wq:		the ring
 * @limit:	raise SRQ_LIMIT when fewer entries are posted; 0 = not armed
 * @syndrome:	reason if @wq is bad
 * @users:	number of queue pairs that use it
 * @going:	XRC: it is being destroyed; no message may name it
 * @forgot:	number of the queue pair at which xrc_forget() continues
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
	bool going;
	uint32_t forgot;
	struct ornic_srq_create_cmd attr;
};

/*
 * srq_init() - start an SRQ whose attributes are filled in and whose memory is loaded
 * It never asks for doorbells, because its ring is read when a message arrives (ORN-RNG-7).
 */
void srq_init(struct srq *srq);

/*
 * srq_take() - copy the next entry to @bytes, which has room for 2^stride
 * Return: 1 if taken, 0 if none is posted, -EIO if the ring is bad: SRQ_ERR was raised, and the
 * queue pairs of the SRQ enter ERR at the end of the turn. The caller fails the one that needs the
 * entry.
 */
int srq_take(struct srq *srq, uint8_t *bytes);

/*
 * srq_resize() - move the SRQ to @to and return the old place in *@to (ORN-SRQ-17, 18)
 * Return: enum ornic_status; on failure nothing has changed.
 */
uint8_t srq_resize(struct srq *srq, struct ring_place *to);

/* srq_arm() - raise SRQ_LIMIT once, as soon as fewer than @limit entries are posted (ORN-SRQ-5) */
void srq_arm(struct srq *srq, uint32_t limit);

#endif /* ORNICD_ENGINE_SRQ_H */
