// SPDX-License-Identifier: GPL-2.0
/*
 * Admin queue: submit a command, sleep until its completion arrives.
 *
 * A submitter takes a slot, copies its input into the slot's page, writes the
 * entry and publishes it. The completion is found by whoever looks first: the
 * handler of event queue 0, or, before that queue exists and after a timeout,
 * the submitter itself. A command that stays unanswered means that the device
 * is broken: there is no abort command, the device is reset (ORN-ADM-5).
 *
 * Pages of a slot belong to the device until the completion or the reset, so
 * they are part of the queue's memory and not of the call.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/jiffies.h>

#include "ornic.h"

/* Each slot owns an input and an output page. */
#define ORNIC_ADMIN_SLOT_BYTES	(2 * ORNIC_ADMIN_MAX_PAYLOAD)

static const int ornic_status_errno[] = {
	[ORNIC_ST_OK]		= 0,
	[ORNIC_ST_BAD_OPCODE]	= -EOPNOTSUPP,
	[ORNIC_ST_BAD_SIZE]	= -EINVAL,
	[ORNIC_ST_RESERVED]	= -EINVAL,
	[ORNIC_ST_BAD_PARAM]	= -EINVAL,
	[ORNIC_ST_BAD_NUMBER]	= -ENOENT,
	[ORNIC_ST_UNSUPPORTED]	= -EOPNOTSUPP,
	[ORNIC_ST_EXISTS]	= -EEXIST,
	[ORNIC_ST_BUSY]		= -EBUSY,
	[ORNIC_ST_BAD_STATE]	= -EINVAL,
	[ORNIC_ST_NO_RESOURCE]	= -ENOMEM,
	[ORNIC_ST_LIMIT]	= -ENOMEM,
	[ORNIC_ST_DMA_ERROR]	= -EFAULT,
	[ORNIC_ST_PERMISSION]	= -EPERM,
	[ORNIC_ST_AGAIN]	= -EAGAIN,
	[ORNIC_ST_INTERNAL]	= -EIO,
	[ORNIC_ST_ABORTED]	= -EIO,
};

static u32 ornic_slot_number(struct ornic_admin *admin, struct ornic_admin_slot *slot)
{
	return slot - admin->slots;
}

static void *ornic_slot_in(struct ornic_admin *admin, struct ornic_admin_slot *slot)
{
	return admin->payload + ornic_slot_number(admin, slot) * ORNIC_ADMIN_SLOT_BYTES;
}

static dma_addr_t ornic_slot_in_dma(struct ornic_admin *admin, struct ornic_admin_slot *slot)
{
	return admin->payload_dma + ornic_slot_number(admin, slot) * ORNIC_ADMIN_SLOT_BYTES;
}

/* Takes the completion of one command; false if the device made it up. */
static bool ornic_admin_complete(struct ornic_admin *admin, const struct ornic_admin_cpl *cpl)
{
	u16 id = le16_to_cpu(cpl->cmd_id);
	struct ornic_admin_slot *slot = &admin->slots[id & (ORNIC_ADMIN_SLOTS - 1)];

	if (slot->state != ORNIC_SLOT_SUBMITTED || slot->id != id ||
	    slot->opcode != le16_to_cpu(cpl->opcode))
		return false;

	slot->cpl = *cpl;
	slot->state = ORNIC_SLOT_COMPLETED;
	complete(&slot->done);
	return true;
}

/*
 * Takes every completion there is and, with events, asks for the next one.
 * Bounded even if the device is hostile: each entry must belong to a command
 * in flight and none is submitted meanwhile. Return: false for a malformed one.
 */
static bool ornic_admin_reap(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	struct ornic_admin_cpl cpl;
	void *entry;

	lockdep_assert_held(&admin->lock);

	if (!admin->open)
		return true;
	for (;;) {
		entry = ornic_ring_entry(admin->cq, admin->cq_next, ORNIC_ADMIN_LOG, 6);
		if (!ornic_entry_ready(entry, admin->cq_next, ORNIC_ADMIN_LOG)) {
			if (!admin->events || admin->arm.type != ORNIC_ARM_NONE)
				return true;
			ornic_rec_arm(&core->odev, admin->cq_rec, &admin->arm, admin->cq_next,
				      ORNIC_ARM_ANY, ORNIC_DB_ADMIN, ORNIC_DB_ACQ);
			continue;
		}
		memcpy(&cpl, entry, sizeof(cpl));
		if (!ornic_admin_complete(admin, &cpl))
			return false;
		ornic_rec_consumed(admin->cq_rec, ++admin->cq_next);
	}
}

/**
 * ornic_admin_event() - event queue 0 says that there are completions
 * @core: device
 *
 * Context: hard interrupt. Return: false if the device wrote an impossible one.
 */
bool ornic_admin_event(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&admin->lock, flags);
	ornic_arm_event(&admin->arm);
	ok = ornic_admin_reap(core);
	spin_unlock_irqrestore(&admin->lock, flags);
	return ok;
}

/* Looks without being told; with renew, as if the event for the last arm was lost. */
static void ornic_admin_look(struct ornic_core *core, bool renew)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&core->admin.lock, flags);
	if (renew)
		ornic_arm_event(&core->admin.arm);
	ok = ornic_admin_reap(core);
	spin_unlock_irqrestore(&core->admin.lock, flags);
	if (!ok)
		ornic_device_malformed(&core->odev, "command completion");
}

static struct ornic_admin_slot *ornic_admin_get_slot(struct ornic_admin *admin)
{
	struct ornic_admin_slot *slot;
	u32 i;

	lockdep_assert_held(&admin->lock);

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++) {
		slot = &admin->slots[i];
		if (slot->state == ORNIC_SLOT_FREE)
			return slot;
	}
	return NULL;
}

static void ornic_admin_put_slot(struct ornic_admin *admin, struct ornic_admin_slot *slot)
{
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	slot->state = ORNIC_SLOT_FREE;
	spin_unlock_irqrestore(&admin->lock, flags);
	up(&admin->room);
}

static void ornic_admin_fill(struct ornic_admin *admin, struct ornic_admin_slot *slot,
			     const struct ornic_cmd *cmd, struct ornic_admin_cmd *entry)
{
	dma_addr_t in_dma = ornic_slot_in_dma(admin, slot);

	memset(entry, 0, sizeof(*entry));
	entry->opcode = cpu_to_le16(cmd->opcode);
	entry->cmd_id = cpu_to_le16(slot->id);
	entry->number = cpu_to_le32(cmd->number);
	entry->in_len = cpu_to_le16(cmd->in_len);
	entry->out_len = cpu_to_le16(cmd->out_len);

	if (cmd->in_len > ORNIC_ADMIN_INLINE) {
		memcpy(ornic_slot_in(admin, slot), cmd->in, cmd->in_len);
		entry->in_addr = cpu_to_le64(in_dma);
	} else if (cmd->in_len) {
		memcpy(entry->inline_in, cmd->in, cmd->in_len);
	}
	if (cmd->out_len > ORNIC_ADMIN_INLINE)
		entry->out_addr = cpu_to_le64(in_dma + ORNIC_ADMIN_MAX_PAYLOAD);
}

/* Return: the slot of the command, NULL if the queue takes none any more. */
static struct ornic_admin_slot *ornic_admin_submit(struct ornic_core *core,
						   const struct ornic_cmd *cmd)
{
	struct ornic_admin *admin = &core->admin;
	struct ornic_admin_slot *slot = NULL;
	unsigned long flags;
	u32 head;

	spin_lock_irqsave(&admin->lock, flags);
	if (admin->open)
		slot = ornic_admin_get_slot(admin);
	if (slot) {
		slot->id = ornic_slot_number(admin, slot) | admin->sequence++ << ORNIC_ADMIN_LOG;
		slot->opcode = cmd->opcode;
		slot->state = ORNIC_SLOT_SUBMITTED;
		reinit_completion(&slot->done);

		head = admin->sq_head++;
		ornic_admin_fill(admin, slot, cmd,
				 ornic_ring_entry(admin->sq, head, ORNIC_ADMIN_LOG, 6));
		ornic_ring_post(&core->odev, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, admin->sq_rec,
				head, head + 1);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
	return slot;
}

/* Before event queue 0 exists. Return: false after the timeout. */
static bool ornic_admin_poll(struct ornic_core *core, struct ornic_admin_slot *slot)
{
	unsigned long end = jiffies + msecs_to_jiffies(core->admin_ms);

	while (time_before(jiffies, end)) {
		ornic_admin_look(core, false);
		if (completion_done(&slot->done))
			return true;
		usleep_range(20, 100);
	}
	return false;
}

static void ornic_admin_wait(struct ornic_core *core, struct ornic_admin_slot *slot)
{
	bool done;

	if (core->admin.events)
		done = wait_for_completion_timeout(&slot->done, msecs_to_jiffies(core->admin_ms));
	else
		done = ornic_admin_poll(core, slot);
	if (done)
		return;

	ornic_eq_poll(core, 0);
	ornic_admin_look(core, true);
	if (completion_done(&slot->done)) {
		dev_warn(ornic_dma_dev(core), "command 0x%04x completed without an interrupt\n",
			 slot->opcode);
		return;
	}
	dev_err(ornic_dma_dev(core), "command 0x%04x not answered within %u ms\n",
		slot->opcode, core->admin_ms);
	ornic_fatal(core, ORNIC_REASON_ADMIN_TIMEOUT);
	wait_for_completion(&slot->done);
}

/* Output of a command: what the device wrote, then zeros. */
static void ornic_admin_output(struct ornic_admin *admin, struct ornic_admin_slot *slot,
			       struct ornic_cmd *cmd)
{
	u32 size = min_t(u32, le32_to_cpu(slot->cpl.out_size), cmd->out_len);
	const void *from = slot->cpl.inline_out;

	if (!cmd->out_len)
		return;
	if (cmd->out_len > ORNIC_ADMIN_INLINE)
		from = ornic_slot_in(admin, slot) + ORNIC_ADMIN_MAX_PAYLOAD;
	if (cmd->status != ORNIC_ST_OK)
		size = 0;
	memcpy(cmd->out, from, size);
	memset(cmd->out + size, 0, cmd->out_len - size);
}

/* Verb 4 of every class but the device's own is destroy. */
static bool ornic_cmd_destroys(const struct ornic_cmd *cmd)
{
	return cmd->opcode >> 8 && (cmd->opcode & 0xff) == 0x04;
}

static int ornic_cmd_errno(const struct ornic_cmd *cmd)
{
	if (cmd->status == ORNIC_ST_ABORTED && ornic_cmd_destroys(cmd))
		return 0;	/* the object died with the device */
	if (cmd->status >= ARRAY_SIZE(ornic_status_errno))
		return -EIO;
	return ornic_status_errno[cmd->status];
}

int ornic_cmd_exec(struct ornic_dev *odev, struct ornic_cmd *cmd)
{
	struct ornic_core *core = odev->core;
	struct ornic_admin *admin = &core->admin;
	struct ornic_admin_slot *slot;

	if (WARN_ON_ONCE(cmd->in_len > ORNIC_ADMIN_MAX_PAYLOAD ||
			 cmd->out_len > ORNIC_ADMIN_MAX_PAYLOAD))
		return -EINVAL;

	cmd->status = ORNIC_ST_ABORTED;
	cmd->syndrome = 0;
	cmd->result = 0;

	down(&admin->room);
	slot = ornic_admin_submit(core, cmd);
	if (!slot) {
		up(&admin->room);
		return ornic_cmd_errno(cmd);
	}
	ornic_admin_wait(core, slot);
	cmd->status = slot->cpl.status;
	cmd->syndrome = le32_to_cpu(slot->cpl.syndrome);
	cmd->result = le32_to_cpu(slot->cpl.number);
	ornic_admin_output(admin, slot, cmd);
	ornic_admin_put_slot(admin, slot);
	return ornic_cmd_errno(cmd);
}
EXPORT_SYMBOL_GPL(ornic_cmd_exec);

/**
 * ornic_admin_abort() - answer every command in flight with ABORTED and take no more
 * @core: device, which can no longer write to memory
 */
void ornic_admin_abort(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	struct ornic_admin_slot *slot;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&admin->lock, flags);
	admin->open = false;
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++) {
		slot = &admin->slots[i];
		if (slot->state != ORNIC_SLOT_SUBMITTED)
			continue;
		memset(&slot->cpl, 0, sizeof(slot->cpl));
		slot->cpl.status = ORNIC_ST_ABORTED;
		slot->state = ORNIC_SLOT_COMPLETED;
		complete(&slot->done);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
}

/* ornic_admin_open() - the device is ready: take commands, polling for completions. */
void ornic_admin_open(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->admin.lock, flags);
	core->admin.open = true;
	spin_unlock_irqrestore(&core->admin.lock, flags);
}

/* ornic_admin_use_events() - event queue 0 is armed: sleep instead of polling. */
void ornic_admin_use_events(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->admin.lock, flags);
	core->admin.events = true;
	spin_unlock_irqrestore(&core->admin.lock, flags);
	ornic_admin_look(core, false);	/* arms the completion ring */
}

/* ornic_admin_init() - once per device, before the first ornic_admin_alloc(). */
void ornic_admin_init(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	u32 i;

	spin_lock_init(&admin->lock);
	sema_init(&admin->room, ORNIC_ADMIN_SLOTS);
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		init_completion(&admin->slots[i].done);
}

/**
 * ornic_admin_alloc() - memory for the rings, zero as the device expects it
 * @core: device, disabled
 *
 * Return: 0 or -ENOMEM.
 */
int ornic_admin_alloc(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	struct device *dev = ornic_dma_dev(core);
	void *mem;

	mem = dma_alloc_coherent(dev, ORNIC_ADMIN_RING_BYTES, &admin->dma, GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	admin->payload = dma_alloc_coherent(dev, ORNIC_ADMIN_SLOTS * ORNIC_ADMIN_SLOT_BYTES,
					    &admin->payload_dma, GFP_KERNEL);
	if (!admin->payload) {
		dma_free_coherent(dev, ORNIC_ADMIN_RING_BYTES, mem, admin->dma);
		return -ENOMEM;
	}
	admin->sq = mem + ORNIC_ADMIN_SQ_OFFSET;
	admin->cq = mem + ORNIC_ADMIN_CQ_OFFSET;
	admin->sq_rec = mem + ORNIC_ADMIN_SQ_REC_OFFSET;
	admin->cq_rec = mem + ORNIC_ADMIN_CQ_REC_OFFSET;
	core->status = mem + ORNIC_ADMIN_STATUS_OFFSET;
	core->status_dma = admin->dma + ORNIC_ADMIN_STATUS_OFFSET;
	ornic_rec_init(admin->sq_rec);
	ornic_rec_init(admin->cq_rec);
	admin->sq_head = 0;
	admin->cq_next = 0;
	admin->events = false;
	ornic_arm_init(&admin->arm);
	return 0;
}

/**
 * ornic_admin_free() - give the memory back
 * @core: device, disabled or cut off from memory; no command can be running
 *	on the device any more, but a late caller may still get its -EIO
 */
void ornic_admin_free(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	struct device *dev = ornic_dma_dev(core);
	u32 i;

	ornic_admin_abort(core);
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		down(&admin->room);	/* submitters have read their completions */

	dma_free_coherent(dev, ORNIC_ADMIN_SLOTS * ORNIC_ADMIN_SLOT_BYTES, admin->payload,
			  admin->payload_dma);
	dma_free_coherent(dev, ORNIC_ADMIN_RING_BYTES, admin->sq, admin->dma);
	core->status = NULL;
	admin->payload = NULL;
	admin->sq = NULL;

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		up(&admin->room);
}
