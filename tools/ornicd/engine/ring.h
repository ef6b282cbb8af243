/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device side of a ring: the two rules of the doorbell record, with their barriers. No other file
 * of the daemon has a full barrier.
 *
 * Counterparts in the host: ornic_rec_publish() and ornic_rec_arm() of include/linux/ornic/ring.h
 * and of the provider's ring.h.
 */
#ifndef ORNICD_ENGINE_RING_H
#define ORNICD_ENGINE_RING_H

#include <ornic/ring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <endian.h>

/* ring_host_index() - return the index that the host published; entries before it are readable */
static inline uint32_t ring_host_index(const struct ornic_rec *rec)
{
	return le32toh(__atomic_load_n(&rec->host_index, __ATOMIC_ACQUIRE));
}

/* ring_notify() - ask for a doorbell when index @n is crossed, or at every post (NOTIFY_ALWAYS) */
static inline void ring_notify(struct ornic_rec *rec, uint32_t n)
{
	__atomic_store_n(&rec->notify, htole32(n), __ATOMIC_RELAXED);
}

/**
 * ring_sleep() - ask for a doorbell of a ring that is empty at @cons (ORN-RNG-6)
 *
 * The store of notify and the load of host_index must not be reordered: the host does the same two
 * accesses in the other order (ORN-RNG-5). With a full barrier on each side, at least one side sees
 * the store of the other.
 *
 * Return: true if the ring needs no polling until its doorbell; false if the host published entries
 * meanwhile.
 */
static inline bool ring_sleep(struct ornic_rec *rec, uint32_t cons)
{
	ring_notify(rec, cons & ORNIC_NOTIFY_INDEX);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring_host_index(rec) == cons;
}

/**
 * ring_listen() - ask for a doorbell at every arm, because events are held (ORN-EQ-3)
 *
 * The host stores host_index and arm, then loads notify (ORN-RNG-11). Either it sees ALWAYS and
 * rings the doorbell, or the device sees its host_index here.
 *
 * Return: true if the ring needs no attention until its doorbell; false if the host consumed
 * entries meanwhile.
 */
static inline bool ring_listen(struct ornic_rec *rec, uint32_t cons)
{
	ring_notify(rec, ORNIC_NOTIFY_ALWAYS);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring_host_index(rec) == cons;
}

/* ring_quiet() - never ask for doorbells: the device reads the ring when it needs to (ORN-RNG-7) */
static inline void ring_quiet(struct ornic_rec *rec, uint32_t cons)
{
	ring_notify(rec, (cons - 1) & ORNIC_NOTIFY_INDEX);
}

/**
 * struct ring_arm - the device's state of the arm word of a completion ring
 * @seen:	arm word as last read
 * @fired:	word that fired last; at create 0, which asks for nothing
 * @whole:	EQ: compare all of @fired; CQ: only its sn (ORN-RNG-9, 27)
 * @solicited:	index past the last solicited or error entry
 * @any_solicited: @solicited is at most a ring's length old
 * @hit:	an entry qualifies for @seen
 * @since:	first index that @seen asked for
 * @looked:	producer index at the last ring_arm_due()
 */
struct ring_arm {
	uint32_t seen;
	uint32_t fired;
	bool whole;
	bool any_solicited;
	uint32_t solicited;
	bool hit;
	uint32_t since;
	uint32_t looked;
};

/**
 * ring_arm_load() - read the arm word after all entries are written (ORN-RNG-12)
 *
 * The full barrier orders the load after the stores of the entries: either this load sees the arm,
 * or the host, which tests the ring after it armed, sees the entry (ORN-RNG-11).
 */
static inline uint32_t ring_arm_load(const struct ornic_rec *rec)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return le32toh(__atomic_load_n(&rec->arm, __ATOMIC_ACQUIRE));
}

static inline uint8_t ring_arm_sn(uint32_t word)
{
	return word >> ORNIC_ARM_SN_SHIFT & ORNIC_ARM_SN_MASK;
}

static inline uint32_t ring_arm_type(uint32_t word)
{
	return word >> ORNIC_ARM_TYPE_SHIFT & ORNIC_ARM_TYPE_MASK;
}

/* ring_arm_spent() - return true if @word has had its event */
static inline bool ring_arm_spent(const struct ring_arm *a, uint32_t word)
{
	return a->whole ? word == a->fired : ring_arm_sn(word) == ring_arm_sn(a->fired);
}

/**
 * ring_arm_due() - decide whether the arm word asks for an event now (ORN-RNG-9)
 * @a:		state
 * @word:	from ring_arm_load()
 * @prod:	next index to write
 * @log:	log2 entries of the ring
 *
 * A word that is read for the first time asks for entries from its index on. Later it asks for any
 * entry written since the last call, so that its index cannot alias. A malformed word asks for
 * nothing.
 *
 * Return: true until the caller sent the event and called ring_arm_fired().
 */
static inline bool ring_arm_due(struct ring_arm *a, uint32_t word, uint32_t prod, uint8_t log)
{
	uint32_t type = ring_arm_type(word), from = a->looked;

	if (word != a->seen) {
		int32_t ago = (int32_t)((prod - word) << 8) >> 8;

		from = prod - (ago > 0 ? ago : 0);
		a->seen = word;
		a->since = from;
		a->hit = false;
	}
	a->looked = prod;
	if (prod - a->solicited > 1u << log)
		a->any_solicited = false;
	if ((word & ORNIC_ARM_MBZ) || ring_arm_spent(a, word))
		return false;
	if (type == ORNIC_ARM_ANY)
		a->hit |= prod != from;
	else if (type == ORNIC_ARM_SOLICITED)
		a->hit |= a->any_solicited && (int32_t)(a->solicited - from) > 0;
	return a->hit;
}

/* ring_arm_fired() - note that the event for the arm word last read was sent */
static inline void ring_arm_fired(struct ring_arm *a)
{
	a->fired = a->seen;
}

/* ring_arm_solicited() - note that the entry at @index is solicited or an error */
static inline void ring_arm_solicited(struct ring_arm *a, uint32_t index)
{
	a->solicited = index + 1;
	a->any_solicited = true;
}

/* ring_arm_shift() - subtract @by from all indices, after a resize (ORN-CQ-24) */
static inline void ring_arm_shift(struct ring_arm *a, uint32_t by)
{
	a->seen = (a->seen & ~ORNIC_ARM_INDEX_MASK) | ((a->seen - by) & ORNIC_ARM_INDEX_MASK);
	a->solicited -= by;
	a->since -= by;
	a->looked -= by;
}

/* ring_arm_armed() - return true if a qualifying entry would fire; for queries */
static inline bool ring_arm_armed(const struct ring_arm *a, uint32_t word)
{
	uint32_t type = ring_arm_type(word);

	return !(word & ORNIC_ARM_MBZ) && !ring_arm_spent(a, word) &&
	       (type == ORNIC_ARM_ANY || type == ORNIC_ARM_SOLICITED);
}

/**
 * ring_write_entry() - publish a 64-byte entry (ORN-RNG-2)
 * @slot: slot of the ring, 64-byte aligned
 * @entry: the entry with its phase bit
 */
static inline void ring_write_entry(void *slot, const void *entry)
{
	const uint64_t *src = entry;
	uint64_t *dst = slot;

	for (int i = 0; i < 7; i++)
		__atomic_store_n(&dst[i], src[i], __ATOMIC_RELAXED);
	__atomic_store_n(&dst[7], src[7], __ATOMIC_RELEASE);
}

/* ring_phase() - return the phase bit of entry @index in a ring of 2^@log entries */
static inline uint8_t ring_phase(uint32_t index, uint8_t log)
{
	return ((index >> log) & 1) ^ 1;
}

#endif /* ORNICD_ENGINE_RING_H */
