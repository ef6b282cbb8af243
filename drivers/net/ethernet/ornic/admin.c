// SPDX-License-Identifier: GPL-2.0
/*
 * Admin queue: submit a command, sleep until its completion arrives.
 *
 * A submitter takes a slot, copies its input into the slot's page, writes the
 * entry and publishes it. The handler of event queue 0 reads the completion. Before
 * that queue exists and after a timeout, the submitter reads it itself.
 *
 * There is no abort command, and a reset ends the work of every user of the device.
 * Therefore a submitter keeps waiting after the time limit of its command while the
 * device has a heartbeat, and accepts a late completion. A device that exceeds four
 * limits is reset (ORN-ADM-29). Limits without a heartbeat do not count, because the
 * device is late (health.c); only a start of the device does not wait for it. If the
 * limit is shorter than two periods of the heartbeat, a missing beat proves nothing.
 *
 * The device owns the pages of a slot until the completion or the reset, so they
 * are allocated with the queue and not per command.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/jiffies.h>

#include <linux/ornic/hw/mr.h>
#include "ornic.h"

/* Each slot owns an input and an output page. */
#define ORNIC_ADMIN_SLOT_BYTES	(2 * ORNIC_ADMIN_MAX_PAYLOAD)

/* log2 of the page count that adds one admin timeout, largest addition in ms (admin.rst) */
#define ORNIC_ADMIN_LIST_LOG	22
#define ORNIC_ADMIN_MAX_EXTRA	(3600 * MSEC_PER_SEC)
/* A device with a heartbeat, also a slow one, is reset after this many time limits. */
#define ORNIC_ADMIN_ROUNDS	4
/* Wait in parts of 10 s, so that slow commands do not trigger the hung task detector. */
#define ORNIC_ADMIN_NAP		(10 * HZ)

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

/*
 * Complete one command. Return: false if no such command is in flight, or if its status is ABORTED,
 * which only the driver itself sets (ORN-ADM-26): a destroy with this status counts as done, so the
 * memory of the object is freed.
 */
static bool ornic_admin_complete(struct ornic_admin *admin, const struct ornic_admin_cpl *cpl)
{
	u16 id = le16_to_cpu(cpl->cmd_id);
	struct ornic_admin_slot *slot = &admin->slots[id & (ORNIC_ADMIN_SLOTS - 1)];

	if (slot->state != ORNIC_SLOT_SUBMITTED || slot->id != id ||
	    slot->opcode != le16_to_cpu(cpl->opcode) || cpl->status == ORNIC_ST_ABORTED)
		return false;

	slot->cpl = *cpl;
	slot->state = ORNIC_SLOT_COMPLETED;
	complete(&slot->done);
	return true;
}

/*
 * Process all completions and, with events, arm the completion ring.
 * Bounded even if the device is hostile: each entry must belong to a command
 * in flight, and the lock prevents new ones. Return: false if one is malformed.
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
 * ornic_admin_event() - process completions that event queue 0 reported
 * @core: device
 *
 * Context: hard interrupt. Return: false if a completion is malformed.
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

/*
 * Process completions without an event. The serial number of the next arm stays, because it counts
 * events (ORN-RNG-10): the device has not fired for the last arm, or its event is still unread.
 */
static void ornic_admin_look(struct ornic_core *core)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&core->admin.lock, flags);
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

static void ornic_admin_fill(struct ornic_admin_slot *slot, const struct ornic_cmd *cmd,
			     struct ornic_admin_cmd *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->opcode = cpu_to_le16(cmd->opcode);
	entry->cmd_id = cpu_to_le16(slot->id);
	entry->number = cpu_to_le32(cmd->number);
	entry->in_len = cpu_to_le16(cmd->in_len);
	entry->out_len = cpu_to_le16(cmd->out_len);

	if (cmd->in_len > ORNIC_ADMIN_INLINE) {
		memcpy(slot->payload, cmd->in, cmd->in_len);
		entry->in_addr = cpu_to_le64(slot->payload_dma);
	} else if (cmd->in_len) {
		memcpy(entry->inline_in, cmd->in, cmd->in_len);
	}
	if (cmd->out_len > ORNIC_ADMIN_INLINE)
		entry->out_addr = cpu_to_le64(slot->payload_dma + ORNIC_ADMIN_MAX_PAYLOAD);
}

/* Return: number of pages in the page list of the command's memory region, 0 without a list. */
static u64 ornic_cmd_pages(const struct ornic_cmd *cmd)
{
	const struct ornic_key_modify_cmd *modify = cmd->in;
	const struct ornic_key_create_cmd *create = cmd->in;
	u64 length, rest;
	u8 shift;

	if (cmd->opcode == ORNIC_OP_KEY_MODIFY && cmd->in_len >= sizeof(*modify))
		create = &modify->attr;
	else if (cmd->opcode != ORNIC_OP_KEY_CREATE || cmd->in_len < sizeof(*create))
		return 0;
	shift = create->pages.page_shift;
	if (!create->pages.level || shift >= BITS_PER_LONG_LONG)
		return 0;
	length = le64_to_cpu(create->length);
	/* apart from the whole pages, because length plus offset can overflow */
	rest = (length & (BIT_ULL(shift) - 1)) + le32_to_cpu(create->pages.offset);
	return (length >> shift) + (rest >> shift) + !!(rest & (BIT_ULL(shift) - 1));
}

/*
 * Set the time limit: the admin timeout, longer for long page lists. A device may execute
 * commands one after the other, so a long list also extends the limit of later commands.
 * The sum of all lists counts: many short ones take as long as one long list.
 */
static void ornic_admin_limit(struct ornic_core *core, struct ornic_admin_slot *slot,
			      const struct ornic_cmd *cmd)
{
	struct ornic_admin *admin = &core->admin;
	u64 extra, pages = 0;
	u32 i;

	slot->pages = ornic_cmd_pages(cmd);
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		if (&admin->slots[i] == slot || admin->slots[i].state == ORNIC_SLOT_SUBMITTED)
			pages += admin->slots[i].pages;
	extra = (pages >> ORNIC_ADMIN_LIST_LOG) * core->admin_ms;
	slot->limit_ms = core->admin_ms + min_t(u64, extra, ORNIC_ADMIN_MAX_EXTRA);
}

/* Wait until a slot is free. */
static void ornic_admin_wait_room(struct ornic_admin *admin)
{
	while (down_timeout(&admin->room, ORNIC_ADMIN_NAP))
		;
}

/* Return: the slot of the command, NULL if the queue is closed. */
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
		ornic_admin_limit(core, slot, cmd);
		slot->state = ORNIC_SLOT_SUBMITTED;
		reinit_completion(&slot->done);

		head = admin->sq_head++;
		ornic_admin_fill(slot, cmd,
				 ornic_ring_entry(admin->sq, head, ORNIC_ADMIN_LOG, 6));
		ornic_ring_post(&core->odev, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, admin->sq_rec,
				head, head + 1);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
	return slot;
}

/* Poll for completions before event queue 0 exists. Return: false after the timeout. */
static bool ornic_admin_poll(struct ornic_core *core, struct ornic_admin_slot *slot,
			     unsigned long timeout)
{
	unsigned long end = jiffies + timeout;

	while (time_before(jiffies, end)) {
		ornic_admin_look(core);
		if (completion_done(&slot->done))
			return true;
		usleep_range(20, 100);
	}
	return false;
}

/* Return: false after the limit of the command. */
static bool ornic_admin_sleep(struct ornic_core *core, struct ornic_admin_slot *slot)
{
	unsigned long left = msecs_to_jiffies(slot->limit_ms);
	unsigned long part;

	if (!core->admin.events)
		return ornic_admin_poll(core, slot, left);
	for (; left; left -= part) {
		part = min_t(unsigned long, left, ORNIC_ADMIN_NAP);
		if (wait_for_completion_timeout(&slot->done, part))
			return true;
	}
	return false;
}

static bool ornic_admin_found(struct ornic_core *core, struct ornic_admin_slot *slot)
{
	ornic_eq_poll(core, 0);
	ornic_admin_look(core);
	if (!completion_done(&slot->done))
		return false;
	dev_warn(ornic_dma_dev(core), "command 0x%04x completed without an interrupt\n",
		 slot->opcode);
	return true;
}

static u64 ornic_admin_beat(struct ornic_core *core)
{
	return le64_to_cpu(READ_ONCE(core->status->heartbeat));
}

/* Return true if two beats may not fit in the time limit, so that a missing one proves nothing. */
static bool ornic_admin_outpaces(const struct ornic_core *core, const struct ornic_admin_slot *slot)
{
	return slot->limit_ms < 2ull * core->hb_ms;
}

/* Return: the kind of heartbeat since @beat, for the log, or NULL. */
static const char *ornic_admin_heart(struct ornic_core *core, const struct ornic_admin_slot *slot,
				     u64 beat)
{
	if (beat != ornic_admin_beat(core))
		return "a";
	return ornic_admin_outpaces(core, slot) && !ornic_late(core) ? "a slow" : NULL;
}

static void ornic_admin_wait(struct ornic_core *core, struct ornic_admin_slot *slot)
{
	unsigned int round = 0;
	const char *heart;
	u64 beat;

	do {
		beat = ornic_admin_beat(core);
		if (ornic_admin_sleep(core, slot) || ornic_admin_found(core, slot))
			return;
		heart = ornic_admin_heart(core, slot, beat);
		if (!heart && ornic_watched(core))
			continue;
		round++;
		dev_err_ratelimited(ornic_dma_dev(core),
				    "command 0x%04x not answered within %u ms, device has %s heartbeat\n",
				    slot->opcode, round * slot->limit_ms, heart ?: "no");
		if (!heart)
			break;
	} while (round < ORNIC_ADMIN_ROUNDS);
	ornic_fatal(core, ORNIC_REASON_ADMIN_TIMEOUT);
	wait_for_completion(&slot->done);
}

/* Copy the output of a command; zero the bytes that the device did not write. */
static void ornic_admin_output(struct ornic_admin_slot *slot, struct ornic_cmd *cmd)
{
	u32 size = min_t(u32, le32_to_cpu(slot->cpl.out_size), cmd->out_len);
	const void *from = slot->cpl.inline_out;

	if (!cmd->out_len)
		return;
	if (cmd->out_len > ORNIC_ADMIN_INLINE)
		from = slot->payload + ORNIC_ADMIN_MAX_PAYLOAD;
	if (cmd->status != ORNIC_ST_OK)
		size = 0;
	memcpy(cmd->out, from, size);
	memset(cmd->out + size, 0, cmd->out_len - size);
}

/* The verb does not tell: class 0x0a has two kinds of objects, so RSS_DESTROY is not verb 4. */
static bool ornic_cmd_destroys(const struct ornic_cmd *cmd)
{
	switch (cmd->opcode) {
	case ORNIC_OP_EQ_DESTROY:
	case ORNIC_OP_PD_DESTROY:
	case ORNIC_OP_XRCD_DESTROY:
	case ORNIC_OP_KEY_DESTROY:
	case ORNIC_OP_DM_DESTROY:
	case ORNIC_OP_CQ_DESTROY:
	case ORNIC_OP_SRQ_DESTROY:
	case ORNIC_OP_QP_DESTROY:
	case ORNIC_OP_RULE_DESTROY:
	case ORNIC_OP_RSS_DESTROY:
	case ORNIC_OP_COUNTER_DESTROY:
		return true;
	default:
		return false;
	}
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

	ornic_admin_wait_room(admin);
	slot = ornic_admin_submit(core, cmd);
	if (!slot) {
		up(&admin->room);
		return ornic_cmd_errno(cmd);
	}
	ornic_admin_wait(core, slot);
	cmd->status = slot->cpl.status;
	cmd->syndrome = le32_to_cpu(slot->cpl.syndrome);
	cmd->result = le32_to_cpu(slot->cpl.number);
	ornic_admin_output(slot, cmd);
	ornic_admin_put_slot(admin, slot);
	return ornic_cmd_errno(cmd);
}
EXPORT_SYMBOL_GPL(ornic_cmd_exec);

/**
 * ornic_admin_abort() - complete all commands in flight with ABORTED, close the queue
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

/*
 * ornic_admin_open() - accept commands and poll for completions. The device is ready.
 *
 * If it was declared dead meanwhile, the queue stays closed, because nobody would end a command.
 * ornic_fatal() sets dead before it closes the queue, so one of the two functions sees the other.
 */
void ornic_admin_open(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->admin.lock, flags);
	core->admin.open = !ornic_dead(core);
	spin_unlock_irqrestore(&core->admin.lock, flags);
}

/* ornic_admin_use_events() - sleep instead of polling. Event queue 0 is armed. */
void ornic_admin_use_events(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->admin.lock, flags);
	core->admin.events = true;
	spin_unlock_irqrestore(&core->admin.lock, flags);
	ornic_admin_look(core);	/* arms the completion ring */
}

/* ornic_admin_init() - initialise locks. Call once, before the first ornic_admin_alloc(). */
void ornic_admin_init(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	u32 i;

	spin_lock_init(&admin->lock);
	sema_init(&admin->room, ORNIC_ADMIN_SLOTS);
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		init_completion(&admin->slots[i].done);
}

static void ornic_admin_free_payload(struct ornic_core *core)
{
	struct ornic_admin_slot *slot = core->admin.slots;
	u32 i;

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++, slot++) {
		if (slot->payload)
			dma_free_coherent(ornic_dma_dev(core), ORNIC_ADMIN_SLOT_BYTES,
					  slot->payload, slot->payload_dma);
		slot->payload = NULL;
	}
}

static int ornic_admin_alloc_payload(struct ornic_core *core)
{
	struct ornic_admin_slot *slot = core->admin.slots;
	u32 i;

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++, slot++) {
		slot->payload = dma_alloc_coherent(ornic_dma_dev(core), ORNIC_ADMIN_SLOT_BYTES,
						   &slot->payload_dma, GFP_KERNEL);
		if (!slot->payload) {
			ornic_admin_free_payload(core);
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * ornic_admin_alloc() - allocate the rings, zeroed as the device expects
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
	if (ornic_admin_alloc_payload(core)) {
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
 * ornic_admin_free() - free the rings
 * @core: device, disabled or unable to do DMA; it executes no command, but a
 *	late caller may still be returning -EIO
 */
void ornic_admin_free(struct ornic_core *core)
{
	struct ornic_admin *admin = &core->admin;
	struct device *dev = ornic_dma_dev(core);
	u32 i;

	ornic_admin_abort(core);
	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		down(&admin->room);	/* submitters have read their completions */

	ornic_admin_free_payload(core);
	dma_free_coherent(dev, ORNIC_ADMIN_RING_BYTES, admin->sq, admin->dma);
	core->status = NULL;
	admin->sq = NULL;

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		up(&admin->room);
}
