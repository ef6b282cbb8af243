/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device side of a ring: the two rules of the doorbell record, with their
 * barriers. Nowhere else in the daemon is there a barrier.
 *
 * Partners in the host: ornic_ring_post() and ornic_ring_arm() of
 * include/linux/ornic/ring.h and of the provider's ring.h.
 */
#ifndef ORNICD_ENGINE_RING_H
#define ORNICD_ENGINE_RING_H

#include <ornic/ring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <endian.h>

/* ring_host_index() - the index that the host published; entries before it are readable. */
static inline uint32_t ring_host_index(const struct ornic_rec *rec)
{
	return le32toh(__atomic_load_n(&rec->host_index, __ATOMIC_ACQUIRE));
}

/* ring_notify() - ask for a doorbell when index @n is crossed, or for every post. */
static inline void ring_notify(struct ornic_rec *rec, uint32_t n)
{
	__atomic_store_n(&rec->notify, htole32(n), __ATOMIC_RELAXED);
}

/**
 * ring_sleep() - stop looking at a ring that is empty at @cons (ORN-RNG-6)
 *
 * The store of notify and the load of host_index must not pass each other: the
 * host does the same two accesses in the other order (ORN-RNG-5), and with a
 * full barrier on each side one of the two sees the other.
 *
 * Return: true if the ring may be forgotten until a doorbell names it; false
 * if the host published something meanwhile.
 */
static inline bool ring_sleep(struct ornic_rec *rec, uint32_t cons)
{
	ring_notify(rec, cons & ORNIC_NOTIFY_INDEX);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring_host_index(rec) == cons;
}

/* ring_quiet() - never ask for doorbells: the device looks when it needs to (ORN-RNG-7). */
static inline void ring_quiet(struct ornic_rec *rec, uint32_t cons)
{
	ring_notify(rec, (cons - 1) & ORNIC_NOTIFY_INDEX);
}

/**
 * struct ring_arm - what the device knows of a completion ring's arm word
 * @seen:	arm word as last read
 * @fired:	sn of the last firing
 * @solicited:	index past the last solicited or error entry
 * @any_solicited: @solicited is not more than a ring's length old
 * @hit:	the arm word @seen qualifies for every entry from now on
 */
struct ring_arm {
	uint32_t seen;
	uint8_t fired;
	bool any_solicited;
	uint32_t solicited;
	bool hit;
};

/**
 * ring_arm_load() - the arm word, as of after all entries written so far (ORN-RNG-12)
 *
 * The full barrier keeps the load from passing the entries' stores: either this
 * load sees the arm, or the host's look after arming sees the entry (ORN-RNG-11).
 */
static inline uint32_t ring_arm_load(const struct ornic_rec *rec)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return le32toh(__atomic_load_n(&rec->arm, __ATOMIC_ACQUIRE));
}

/**
 * ring_write_entry() - publish a 64-byte entry (ORN-RNG-2)
 * @slot: 64-byte aligned place in the ring
 * @entry: the entry, its phase bit already set
 */
static inline void ring_write_entry(void *slot, const void *entry)
{
	const uint64_t *src = entry;
	uint64_t *dst = slot;

	for (int i = 0; i < 7; i++)
		__atomic_store_n(&dst[i], src[i], __ATOMIC_RELAXED);
	__atomic_store_n(&dst[7], src[7], __ATOMIC_RELEASE);
}

/* ring_phase() - phase bit of entry @index in a ring of 2^@log entries */
static inline uint8_t ring_phase(uint32_t index, uint8_t log)
{
	return ((index >> log) & 1) ^ 1;
}

#endif /* ORNICD_ENGINE_RING_H */
