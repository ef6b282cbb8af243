/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Host side of a ring: publish, consume, arm, test the phase. The only file of
 * the provider with memory barriers between host and device.
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

#include <ornic/ring.h>

static inline void ornic_ring_store(__le32 *word, uint32_t value, memory_order order)
{
	atomic_store_explicit((_Atomic(__le32) *)word, htole32(value), order);
}

static inline uint32_t ornic_ring_load(const __le32 *word, memory_order order)
{
	return le32toh(atomic_load_explicit((const _Atomic(__le32) *)word, order));
}

/* State of a record before create and before a QP leaves RESET (ORN-RNG-4). */
static inline void ornic_rec_init(struct ornic_rec *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
}

/*
 * Full barrier between a store and a load that the device may see in the other
 * order. Compilers make a sequentially consistent fence of a locked instruction,
 * which is one on any processor; but an emulator that runs a single CPU makes
 * plain accesses of it, while the device is another thread all the same. So ask
 * for the instruction that is nothing but a barrier, as the kernel's mb() does.
 */
static inline void ornic_full_barrier(void)
{
#ifdef __x86_64__
	__asm__ volatile("mfence" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Hand the entries [old, new) to the device; true: ring the doorbell
 * (ORN-RNG-5). The fence pairs with the device's between its store of notify
 * and its last look at host_index.
 */
static inline bool ornic_rec_publish(struct ornic_rec *rec, uint32_t old, uint32_t new)
{
	uint32_t notify;

	ornic_ring_store(&rec->host_index, new, memory_order_release);
	ornic_full_barrier();
	notify = ornic_ring_load(&rec->notify, memory_order_relaxed);
	return (notify & ORNIC_NOTIFY_ALWAYS) ||
	       ((notify - old) & ORNIC_NOTIFY_INDEX) < new - old;
}

/* Give consumed entries of a completion ring back; what was read of them stays read before. */
static inline void ornic_rec_consumed(struct ornic_rec *rec, uint32_t index)
{
	ornic_ring_store(&rec->host_index, index, memory_order_release);
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
 * The caller looks at the ring afterwards; the fence pairs with the device's
 * between its entries and its load of arm.
 */
static inline bool ornic_rec_arm(struct ornic_rec *rec, uint32_t word)
{
	ornic_ring_store(&rec->arm, word, memory_order_release);
	ornic_full_barrier();
	return ornic_ring_load(&rec->notify, memory_order_relaxed) & ORNIC_NOTIFY_ALWAYS;
}

/*
 * Has the device written entry @index of a ring of 2^@log entries? If so, its
 * first 63 bytes may be read (ORN-RNG-17).
 */
static inline bool ornic_entry_ready(const void *entry, uint32_t index, unsigned int log)
{
	const char *tail = (const char *)entry + ORNIC_ENTRY_BYTES - sizeof(uint64_t);
	uint64_t word = atomic_load_explicit((const _Atomic(uint64_t) *)tail,
					     memory_order_acquire);

	return (le64toh(word) >> 56 & ORNIC_PHASE) == ((index >> log & 1) ^ 1);
}

#endif
