/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Host side of a ring: publish, consume, arm, test the phase. With db.c the only file of
 * the provider that has memory barriers between host and device.
 *
 * Barriers. The device may be hardware, so rdma-core's udma_* barriers order accesses as
 * it sees them: on arm64 they act on the outer shareable domain, fences of C11 only on the
 * inner one. Loads and stores still have their C11 order, for a device that is another
 * thread of this machine and for the thread sanitizer; on x86 that costs nothing.
 *
 * Theory of operation. Both races below are store buffering: each side stores
 * its own word, passes a full barrier and loads the other's word, so at least
 * one of the two sees the other's store.
 *
 *   ornic_rec_publish()  stores host_index, loads notify;  the device falling
 *                         asleep stores notify, loads host_index (ORN-RNG-6)
 *   ornic_rec_arm()      stores arm, then its caller looks for entries;  the
 *                         device stores entries, loads arm (ORN-RNG-12)
 *
 * This header knows neither verbs nor MMIO: who gets "true" rings the doorbell.
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

/* State of a record before create and before a QP leaves RESET (ORN-RNG-4). */
static inline void ornic_rec_init(struct ornic_rec *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
}

/*
 * Full barrier between a store and a later load, as the device sees them; rdma-core has
 * none. On x86 a sequentially consistent fence may be a locked instruction, which an
 * emulator of a single CPU turns into plain accesses, while the device is another thread
 * (ORN-GEN-5). So use the instruction that only is a barrier, as the kernel's mb() does.
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
 * Hand the entries [old, new) to the device; true: ring the doorbell
 * (ORN-RNG-5). The full barrier pairs with the device's between its store of
 * notify and its last look at host_index.
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
 * Give consumed entries of a completion ring back. The barrier keeps the store behind the
 * loads of the entries, which the device may overwrite once it sees the index; where it
 * orders loads only (riscv), the release store does.
 */
static inline void ornic_rec_consumed(struct ornic_rec *rec, uint32_t index)
{
	udma_from_device_barrier();
	ornic_ring_store(&rec->host_index, index);
}

/* What the host remembers about arming a completion ring. */
struct ornic_arm {
	uint8_t sn;		/* serial number of the arms until the next event */
	uint8_t type;		/* strongest arm made with this number */
};

static inline void ornic_arm_init(struct ornic_arm *arm)
{
	arm->sn = 1;
	arm->type = ORNIC_ARM_NONE;
}

/* An event of this ring was consumed: once per event, never per arm (ORN-RNG-10). */
static inline void ornic_arm_event(struct ornic_arm *arm)
{
	arm->sn = (arm->sn + 1) & ORNIC_ARM_SN_MASK;
	arm->type = ORNIC_ARM_NONE;
}

/*
 * The next arm word. Arming again with the same number may move the index and
 * strengthen what was asked for, but never weaken it (ORN-RNG-30).
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
 * Ask for an event; true: ring the doorbell with the same word (ORN-RNG-11).
 * The caller looks at the ring afterwards; the full barrier pairs with the device's
 * between its entries and its load of arm.
 */
static inline bool ornic_rec_arm(struct ornic_rec *rec, uint32_t word)
{
	udma_to_device_barrier();
	ornic_ring_store(&rec->arm, word);
	ornic_full_barrier();
	return ornic_ring_load(&rec->notify) & ORNIC_NOTIFY_ALWAYS;
}

/* The last bytes of an entry of any type. */
typedef uint64_t __attribute__((__may_alias__)) ornic_entry_tail;

/*
 * Has the device written entry @index of a ring of 2^@log entries? If so, its
 * first 63 bytes may be read (ORN-RNG-17).
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
