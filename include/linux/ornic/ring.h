/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Host side of a ring: doorbell record, wake protocol, phase test, arming. Used
 * by ornic.ko and ornic_ib.ko.
 *
 * Only this file handles the two races between host and device. In both, each
 * side stores one word and then loads the word of the other side, so each side
 * needs a hardware store-load barrier in between. The barrier must be mb(): a
 * uniprocessor kernel compiles smp_mb() to nothing, but the device still runs
 * in parallel.
 */
#ifndef LINUX_ORNIC_RING_H
#define LINUX_ORNIC_RING_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>

#include <linux/ornic/hw/ring.h>
#include "core.h"

/**
 * ornic_rec_init() - initialise the record of a ring before the create command (ORN-RNG-4)
 * @rec: record in memory that the device reads
 *
 * Also needed before a queue pair leaves RESET for INIT.
 */
static inline void ornic_rec_init(struct ornic_rec *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->notify = cpu_to_le32(ORNIC_NOTIFY_ALWAYS);
}

/**
 * ornic_rec_publish() - publish new entries and decide whether to ring (ORN-RNG-5)
 * @rec: record of an SQ, RQ, SRQ or ASQ
 * @old: producer index published last
 * @new: producer index now; the entries before it are written
 *
 * The other side is a device that becomes idle (ORN-RNG-6): it stores notify,
 * executes a full barrier, then loads host_index. Either the device reads @new
 * or this function reads the new notify word. Without the barrier here a wakeup
 * can be lost.
 *
 * The caller holds the lock that serialises posting to the ring.
 *
 * Return: true if the caller must ring the doorbell with value @new.
 */
static inline bool ornic_rec_publish(struct ornic_rec *rec, u32 old, u32 new)
{
	u32 notify;

	dma_wmb();	/* entries before the index that covers them */
	WRITE_ONCE(rec->host_index, cpu_to_le32(new));
	mb();		/* pairs with the device's between notify and host_index */
	notify = le32_to_cpu(READ_ONCE(rec->notify));

	return (notify & ORNIC_NOTIFY_ALWAYS) ||
	       ((notify - old) & ORNIC_NOTIFY_INDEX) < new - old;
}

/**
 * ornic_ring_post() - publish new entries and ring if the device requests it
 * @odev: device
 * @kind: enum ornic_db_kind of the ring
 * @number: queue number
 * @rec: its record
 * @old: producer index published last
 * @new: producer index now
 *
 * Only for rings that use the driver's own doorbell page.
 *
 * Context: any; the caller holds the lock that serialises posting to the ring.
 */
static inline void ornic_ring_post(struct ornic_dev *odev, u8 kind, u32 number,
				   struct ornic_rec *rec, u32 old, u32 new)
{
	if (ornic_rec_publish(rec, old, new))
		ornic_db_ring(odev, kind, number, new);
}

/**
 * ornic_rec_consumed() - publish the consumer index of a completion ring
 * @rec: record of a CQ, EQ or ACQ
 * @index: consumer index
 */
static inline void ornic_rec_consumed(struct ornic_rec *rec, u32 index)
{
	dma_mb();	/* entries are read before the device may overwrite them */
	WRITE_ONCE(rec->host_index, cpu_to_le32(index));
}

/**
 * ornic_rec_keep_up() - publish the consumer index while many entries are consumed (ORN-RNG-13)
 * @rec: record of a CQ
 * @index: consumer index
 * @log_entries: log2 of the ring's entries
 *
 * Called after each entry, it publishes the index once per quarter of the ring. The caller
 * publishes the last index by ornic_rec_consumed().
 */
static inline void ornic_rec_keep_up(struct ornic_rec *rec, u32 index, u8 log_entries)
{
	u32 quarter = max_t(u32, BIT(log_entries) / 4, 1);

	if (!(index & (quarter - 1)))
		ornic_rec_consumed(rec, index);
}

/**
 * ornic_entry_ready() - return true if the device has written an entry (ORN-RNG-2)
 * @entry: the 64-byte slot of @index in a CQ, EQ or ACQ
 * @index: free-running index
 * @log_entries: log2 of the ring's entries
 *
 * The device makes the last 8 bytes visible last. This function loads them with
 * acquire semantics, so the caller may read the rest of the entry if it returns
 * true.
 */
static inline bool ornic_entry_ready(const void *entry, u32 index, u8 log_entries)
{
	const __le64 *last = entry + ORNIC_ENTRY_BYTES - sizeof(*last);
	u64 phase = le64_to_cpu(READ_ONCE(*last)) >> 56 & ORNIC_PHASE;

	if (phase == (index >> log_entries & 1))
		return false;
	dma_rmb();	/* the phase before the rest of the entry */
	return true;
}

/**
 * ornic_ring_entry() - return the address of the entry of a free-running index
 * @ring: first byte of the ring
 * @index: free-running index
 * @log_entries: log2 of the ring's entries
 * @log_stride: log2 of an entry's bytes
 */
static inline void *ornic_ring_entry(void *ring, u32 index, u8 log_entries, u8 log_stride)
{
	u32 slot = index & (BIT(log_entries) - 1);

	return ring + ((size_t)slot << log_stride);
}

/**
 * ornic_paged_entry() - return the address of the entry of a free-running index
 * @pages: pages of the buffer that holds the ring; no entry lies in two of them
 * @at: offset of the ring in the buffer, in bytes
 * @index: free-running index
 * @log_entries: log2 of the ring's entries
 * @log_stride: log2 of an entry's bytes
 */
static inline void *ornic_paged_entry(void *const *pages, size_t at, u32 index, u8 log_entries,
				      u8 log_stride)
{
	at += (size_t)(index & (BIT(log_entries) - 1)) << log_stride;
	return pages[at >> PAGE_SHIFT] + offset_in_page(at);
}

/**
 * struct ornic_arm - arming state of a completion ring in the host
 * @sn: serial number of all arm words until the next event (ORN-RNG-10)
 * @type: strongest arm type requested with this serial number
 *
 * The owner serialises ornic_arm_event() and ornic_rec_arm() of one ring. For a
 * CQ, ornic_arm_event() runs in hard interrupt context.
 */
struct ornic_arm {
	u8 sn;
	u8 type;
};

/* ornic_arm_init() - initialise the arming state of a new ring. */
static inline void ornic_arm_init(struct ornic_arm *arm)
{
	arm->sn = 1;
	arm->type = ORNIC_ARM_NONE;
}

/**
 * ornic_arm_event() - advance the serial number after an event (ORN-RNG-10)
 * @arm: arming state
 *
 * Must be called exactly once per consumed event and not per arm, because the
 * device compares the serial number with that of the last arm that produced an
 * event.
 */
static inline void ornic_arm_event(struct ornic_arm *arm)
{
	arm->sn = (arm->sn + 1) & ORNIC_ARM_SN_MASK;
	arm->type = ORNIC_ARM_NONE;
}

/**
 * ornic_rec_arm() - request an event (ORN-RNG-11)
 * @odev: device
 * @rec: record of a CQ, EQ or ACQ
 * @arm: its arming state
 * @index: consumer index: first entry that the host has not read
 * @type: entries that cause an event; an earlier, stronger type stays in effect
 * @kind: doorbell kind, ORNIC_DB_CQ_ARM, ORNIC_DB_EQ_ARM or ORNIC_DB_ADMIN
 * @number: queue number, ORNIC_DB_ACQ for the admin completion queue
 *
 * The other side is the device after a batch of entries (ORN-RNG-12): it
 * executes a full barrier, then loads the arm word. Either the device reads this
 * arm word or the caller sees the entry. For that, the caller MUST test
 * ornic_entry_ready() at @index afterwards and treat a ready entry as missed.
 */
static inline void ornic_rec_arm(struct ornic_dev *odev, struct ornic_rec *rec,
				 struct ornic_arm *arm, u32 index,
				 enum ornic_arm_type type, u8 kind, u32 number)
{
	u32 word;

	arm->type = max_t(u8, arm->type, type);
	word = (index & ORNIC_ARM_INDEX_MASK) | (u32)arm->sn << ORNIC_ARM_SN_SHIFT |
	       (u32)arm->type << ORNIC_ARM_TYPE_SHIFT;

	dma_wmb();	/* the consumer index before the arm word: ORN-RNG-11, ORN-RNG-34 */
	WRITE_ONCE(rec->arm, cpu_to_le32(word));
	mb();		/* pairs with the device's between its entries and the arm word */
	if (le32_to_cpu(READ_ONCE(rec->notify)) & ORNIC_NOTIFY_ALWAYS)
		ornic_db_ring(odev, kind, number, word);
}

/**
 * ornic_rec_rearm() - copy the arm word to the record of a resized ring (ORN-CQ-22)
 * @odev: device
 * @rec: new record
 * @old: old record, no longer used by the device
 * @by: index in the old ring that becomes index 0 in the new ring
 * @kind: doorbell kind
 * @number: queue number
 *
 * Rings the doorbell of an armed ring even if notify does not request it: the
 * consumer that armed the ring has tested it for entries and will not test again.
 */
static inline void ornic_rec_rearm(struct ornic_dev *odev, struct ornic_rec *rec,
				   const struct ornic_rec *old, u32 by, u8 kind, u32 number)
{
	u32 word = le32_to_cpu(READ_ONCE(old->arm));

	word = (word & ~ORNIC_ARM_INDEX_MASK) | ((word - by) & ORNIC_ARM_INDEX_MASK);
	dma_wmb();	/* the consumer index before the arm word: ORN-RNG-11 */
	WRITE_ONCE(rec->arm, cpu_to_le32(word));
	if (word >> ORNIC_ARM_TYPE_SHIFT & ORNIC_ARM_TYPE_MASK)
		ornic_db_ring(odev, kind, number, word);
}

/**
 * ornic_pages_contiguous() - describe a ring that is one coherent allocation
 * @pages: descriptor to fill
 * @addr: DMA address of the ring, a multiple of 4096
 */
static inline void ornic_pages_contiguous(struct ornic_pages *pages, dma_addr_t addr)
{
	memset(pages, 0, sizeof(*pages));
	pages->addr = cpu_to_le64(addr);
}

#endif
