/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Host side of a ring: publish, consume, arm, test the phase. Only this file and db.c have
 * memory barriers between host and device.
 *
 * Barriers. The device may be hardware, so the order that it observes comes from rdma-core's
 * udma_* barriers: on arm64 they act on the outer shareable domain, fences of C11 only on the
 * inner one. Loads and stores have a C11 order as well, for a device that is another thread
 * of this machine and for the thread sanitizer. On x86 that costs nothing.
 *
 * Races. Both races below are store buffering: each side stores its own word, executes a
 * full barrier and loads the word of the other side. So at least one of them sees the store
 * of the other.
 *
 *   ornic_rec_publish()  stores host_index, loads notify. The device that becomes
 *                        idle stores notify, loads host_index (ORN-RNG-6).
 *   ornic_rec_arm()      stores arm, then its caller tests for entries. The
 *                        device stores entries, loads arm (ORN-RNG-12).
 *
 * This header uses neither verbs nor MMIO: if a function returns true, its caller rings the
 * doorbell.
 */
#ifndef ORNIC_PROVIDER_RING_H
#define ORNIC_PROVIDER_RING_H

#include <endian.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <util/udma_barrier.h>
#include <ornic/ring.h>

static inline void ornic_ring_store(__le32 *word, uint32_t value)
{
	__atomic_store_n(word, htole32(value), __ATOMIC_RELEASE);
}

static inline uint32_t ornic_ring_load(const __le32 *word)
{
	return le32toh(__atomic_load_n(word, __ATOMIC_RELAXED));
}

/* Initialise a record before the create command and before a QP leaves RESET (ORN-RNG-4). */
static inline void ornic_rec_init(struct ornic_rec *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
}

/*
 * Order a store before a later load, as the device observes them (ORN-GEN-5). rdma-core has
 * no such barrier.
 *
 * On x86 gcc may compile a sequentially consistent fence to a locked instruction. QEMU's TCG
 * (observed with 11.1) executes that as plain accesses if the machine has one processor. Then
 * the store of host_index passes the load of notify, and a doorbell is lost, because the
 * device is another thread. So use mfence, as the kernel's mb() does.
 */
static inline void ornic_full_barrier(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence iorw,iorw" ::: "memory");
#else
	udma_to_device_barrier();
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Publish the entries from @old to @new - 1. Return true if the caller must ring the doorbell
 * with @new (ORN-RNG-5). The full barrier pairs with that of the device between its store of
 * notify and its last load of host_index. Caller holds the lock of the queue.
 */
static inline bool ornic_rec_publish(struct ornic_rec *rec, uint32_t old, uint32_t new)
{
	uint32_t notify;

	udma_to_device_barrier();
	ornic_ring_store(&rec->host_index, new);
	ornic_full_barrier();
	notify = ornic_ring_load(&rec->notify);
	return (notify & ORNIC_NOTIFY_ALWAYS) ||
	       ((notify - old) & ORNIC_NOTIFY_INDEX) < new - old;
}

/*
 * Return the entries before @index of a completion ring to the device. The barrier orders the
 * loads of the entries before the store, because the device may overwrite them when it sees
 * the index. Where the barrier orders only loads (riscv), the release store does it.
 */
static inline void ornic_rec_consumed(struct ornic_rec *rec, uint32_t index)
{
	udma_from_device_barrier();
	ornic_ring_store(&rec->host_index, index);
}

/* Arming state of a completion ring in the host. */
struct ornic_arm {
	uint8_t sn;		/* serial number of all arm words until the next event */
	uint8_t type;		/* strongest arm type requested with this serial number */
};

static inline void ornic_arm_init(struct ornic_arm *arm)
{
	arm->sn = 1;
	arm->type = ORNIC_ARM_NONE;
}

/* Advance the serial number: call it once per consumed event, never per arm (ORN-RNG-10). */
static inline void ornic_arm_event(struct ornic_arm *arm)
{
	arm->sn = (arm->sn + 1) & ORNIC_ARM_SN_MASK;
	arm->type = ORNIC_ARM_NONE;
}

/*
 * Return the next arm word. Another arm with the same serial number may change the index and
 * strengthen the type, but not weaken it (ORN-RNG-30). Caller holds the CQ's arm_lock.
 */
static inline uint32_t ornic_arm_word(struct ornic_arm *arm, uint32_t index,
				      enum ornic_arm_type type)
{
	if (arm->type < type)
		arm->type = type;
	return (index & ORNIC_ARM_INDEX_MASK) | (uint32_t)arm->sn << ORNIC_ARM_SN_SHIFT |
	       (uint32_t)arm->type << ORNIC_ARM_TYPE_SHIFT;
}

/*
 * Request an event. Return true if the caller must ring the doorbell with @word (ORN-RNG-11).
 * The application polls the CQ afterwards. The full barrier pairs with that of the device
 * between its stores of entries and its load of arm.
 */
static inline bool ornic_rec_arm(struct ornic_rec *rec, uint32_t word)
{
	udma_to_device_barrier();
	ornic_ring_store(&rec->arm, word);
	ornic_full_barrier();
	return ornic_ring_load(&rec->notify) & ORNIC_NOTIFY_ALWAYS;
}

/* The last 8 bytes of an entry of any type. */
typedef uint64_t __attribute__((__may_alias__)) ornic_entry_tail;

/*
 * Return true if the device has written entry @index of a ring of 2^@log entries. Only then
 * may the caller read the entry (ORN-RNG-17).
 */
static inline bool ornic_entry_ready(const void *entry, uint32_t index, unsigned int log)
{
	const char *tail = (const char *)entry + ORNIC_ENTRY_BYTES - sizeof(ornic_entry_tail);
	uint64_t word = __atomic_load_n((const ornic_entry_tail *)tail, __ATOMIC_ACQUIRE);

	if ((le64toh(word) >> 56 & ORNIC_PHASE) != ((index >> log & 1) ^ 1))
		return false;
	udma_from_device_barrier();
	return true;
}

#endif
