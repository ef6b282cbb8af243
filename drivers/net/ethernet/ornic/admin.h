/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admin queue (clauses ORN-ADM): many commands in flight, each in a slot of
 * its own with its own payload pages.
 */
#ifndef ORNIC_CORE_ADMIN_H
#define ORNIC_CORE_ADMIN_H

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>

/* Commands in flight, and entries of both rings, as log2. */
#define ORNIC_ADMIN_LOG		5
#define ORNIC_ADMIN_SLOTS	BIT(ORNIC_ADMIN_LOG)

enum ornic_admin_slot_state {
	ORNIC_SLOT_FREE,
	ORNIC_SLOT_SUBMITTED,	/* the device executes the command */
	ORNIC_SLOT_COMPLETED,	/* the submitter has not read the completion */
};

/**
 * struct ornic_admin_slot - a command in flight
 * @state: owner of the slot
 * @id: cmd_id of the command; its low bits are the slot's number
 * @opcode: opcode of the command, compared with that of the completion
 * @pages: pages in the page list of the command's memory region
 * @limit_ms: time in ms after which the submitter checks the heartbeat
 * @payload: input and output page
 * @payload_dma: DMA address of @payload
 * @cpl: copy of the completion
 * @done: the submitter waits here
 */
struct ornic_admin_slot {
	enum ornic_admin_slot_state state;
	u16 id;
	u16 opcode;
	u64 pages;
	u32 limit_ms;
	void *payload;
	dma_addr_t payload_dma;
	struct ornic_admin_cpl cpl;
	struct completion done;
};

/**
 * struct ornic_admin - admin submission and completion queue
 * @lock: protects everything below but @room and the payload of a slot
 * @room: counts free slots
 * @sq: submission ring
 * @cq: completion ring
 * @sq_rec: record of the submission ring
 * @cq_rec: record of the completion ring
 * @dma: address of the allocation that holds these four and the status block
 * @sq_head: index of the next command
 * @cq_next: index of the next completion
 * @arm: arming state of the completion ring
 * @open: commands are accepted
 * @events: event queue 0 reports completions; while false, submitters poll
 * @sequence: makes consecutive cmd_id values of a slot differ
 * @slots: commands in flight
 */
struct ornic_admin {
	spinlock_t lock;	/* rings and slots */
	struct semaphore room;
	void *sq;
	void *cq;
	struct ornic_rec *sq_rec;
	struct ornic_rec *cq_rec;
	dma_addr_t dma;
	u32 sq_head;
	u32 cq_next;
	struct ornic_arm arm;
	bool open;
	bool events;
	u16 sequence;
	struct ornic_admin_slot slots[ORNIC_ADMIN_SLOTS];
};

/* Offsets within the one allocation of the admin rings. */
#define ORNIC_ADMIN_SQ_OFFSET		0
#define ORNIC_ADMIN_CQ_OFFSET		(ORNIC_ADMIN_SLOTS * ORNIC_ENTRY_BYTES)
#define ORNIC_ADMIN_SQ_REC_OFFSET	(2 * ORNIC_ADMIN_SLOTS * ORNIC_ENTRY_BYTES)
#define ORNIC_ADMIN_CQ_REC_OFFSET	(ORNIC_ADMIN_SQ_REC_OFFSET + ORNIC_ENTRY_BYTES)
#define ORNIC_ADMIN_STATUS_OFFSET	(ORNIC_ADMIN_CQ_REC_OFFSET + ORNIC_ENTRY_BYTES)
#define ORNIC_ADMIN_RING_BYTES		(ORNIC_ADMIN_STATUS_OFFSET + ORNIC_ENTRY_BYTES)

void ornic_admin_init(struct ornic_core *core);
int ornic_admin_alloc(struct ornic_core *core);
void ornic_admin_free(struct ornic_core *core);
void ornic_admin_open(struct ornic_core *core);
void ornic_admin_use_events(struct ornic_core *core);
bool ornic_admin_event(struct ornic_core *core);
void ornic_admin_abort(struct ornic_core *core);

#endif
