// SPDX-License-Identifier: GPL-2.0
/*
 * Race of completing and arming (ORN-RNG-9 to 12): the provider's ring.h arms and consumes,
 * the daemon's ring.h writes entries and reads the arm word, two threads, across wraps of
 * the 24-bit arm index and of the 32-bit index. Each range runs with a device that reads
 * the record and with one that waits for doorbells. A lost event leaves the host asleep and
 * fails the test, and so does an entry whose phase the host sees before the rest of it
 * (ORN-RNG-2).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ornic/cq.h>

#include "tools/libornic/ring.h"
#include "tools/ornicd/engine/ring.h"
#include "stress.h"

#define LOG	6
#define ENTRIES	(1u << LOG)

struct cq {
	_Alignas(64) struct ornic_cqe entry[ENTRIES];
	_Alignas(64) struct ornic_rec rec;
	_Alignas(64) _Atomic uint32_t doorbell;	/* last arm word rung */
	_Alignas(64) _Atomic uint32_t events;
	_Atomic uint32_t produced;
	_Atomic bool done;
	bool by_doorbell;
	uint32_t start;
	uint64_t arms, missed, fired;
	_Atomic uint64_t waits;
};

static struct cq cq;

/* Device: its state of the ring and of the arm word. */
struct dev_arm {
	uint32_t prod;
	uint32_t solicited;	/* index past the last solicited entry */
	bool any_solicited;
	uint32_t seen;
	uint32_t seen_prod;	/* prod and solicited when this word was read last */
	uint32_t seen_solicited;
	uint32_t fired;
};

static bool past(uint32_t index, uint32_t arm)
{
	uint32_t gap = (index - arm) & ORNIC_ARM_INDEX_MASK;

	return gap && gap < (ORNIC_ARM_INDEX_MASK + 1) / 2;
}

static bool dev_qualifies(const struct dev_arm *d, uint32_t word, bool fresh)
{
	uint32_t type = word >> ORNIC_ARM_TYPE_SHIFT & ORNIC_ARM_TYPE_MASK;

	if (type == ORNIC_ARM_ANY)
		return fresh ? past(d->prod, word) : d->prod != d->seen_prod;
	if (!d->any_solicited)
		return false;
	return fresh ? past(d->solicited, word) : d->solicited != d->seen_solicited;
}

/* The index counts when a word is first seen; afterwards every new entry does. */
static void dev_look(struct dev_arm *d)
{
	uint32_t word = cq.by_doorbell ? atomic_load(&cq.doorbell) : ring_arm_load(&cq.rec);
	uint32_t sn = word >> ORNIC_ARM_SN_SHIFT & ORNIC_ARM_SN_MASK;
	bool armed = word >> ORNIC_ARM_TYPE_SHIFT && sn != d->fired;

	if (armed && dev_qualifies(d, word, word != d->seen)) {
		d->fired = sn;
		cq.fired++;
		atomic_fetch_add_explicit(&cq.events, 1, memory_order_release);
	}
	d->seen = word;
	d->seen_prod = d->prod;
	d->seen_solicited = d->solicited;
}

/* Every byte depends on the index, except the few that have a meaning here. */
static void entry_fill(struct ornic_cqe *cqe, uint32_t index, bool solicited)
{
	memset(cqe, index % 251, sizeof(*cqe));
	cqe->wqe_id = htole32(index);
	cqe->flags = htole32(solicited ? ORNIC_CQE_SOLICITED : 0);
	cqe->phase = ring_phase(index, LOG);
}

/* Return true if the entry with the phase of @index is complete. */
static bool entry_whole(const struct ornic_cqe *cqe, uint32_t index)
{
	struct ornic_cqe want;

	entry_fill(&want, index, le32toh(cqe->flags) & ORNIC_CQE_SOLICITED);
	return !memcmp(cqe, &want, sizeof(want));
}

static void dev_write(struct dev_arm *d, bool solicited)
{
	struct ornic_cqe cqe;

	entry_fill(&cqe, d->prod, solicited);
	ring_write_entry(&cq.entry[d->prod & (ENTRIES - 1)], &cqe);
	d->prod++;
	if (solicited) {
		d->solicited = d->prod;
		d->any_solicited = true;
	}
}

/* Wait while the ring is full, and sometimes until the host has taken everything. */
static void dev_wait(struct dev_arm *d, bool all)
{
	struct stress_wait wait = {};

	while (d->prod - ring_host_index(&cq.rec) > (all ? 0 : ENTRIES - 1)) {
		if (cq.by_doorbell)
			dev_look(d);
		stress_turn(&wait);
	}
}

/* The last entry that fits is solicited; otherwise a host armed for those would wait for ever. */
static void dev_batch(struct dev_arm *d, uint32_t *rnd)
{
	uint32_t n = 1 + (stress_random(rnd) & 3);
	bool last;

	while (n--) {
		dev_wait(d, false);
		last = d->prod + 1 - ring_host_index(&cq.rec) == ENTRIES;
		dev_write(d, last || !(stress_random(rnd) & 3));
	}
	dev_look(d);
}

static void *device(void *arg)
{
	uint64_t since = stress_now();
	struct dev_arm d = { .prod = cq.start, .solicited = cq.start };
	uint32_t rnd = 88172645;

	while (d.prod % 64 || !stress_over(since, d.prod - cq.start, atomic_load(&cq.waits))) {
		dev_batch(&d, &rnd);
		if (d.solicited == d.prod && !(stress_random(&rnd) & 3))
			dev_wait(&d, true);
		stress_jitter(&rnd);
	}
	dev_wait(&d, false);
	dev_write(&d, true);
	dev_look(&d);
	atomic_store(&cq.produced, d.prod);
	atomic_store(&cq.done, true);
	dev_wait(&d, true);
	return arg;
}

/* Consume all entries; return false if there is none. */
static bool host_poll(uint32_t *index)
{
	uint32_t first = *index;

	while (ornic_entry_ready(&cq.entry[*index & (ENTRIES - 1)], *index, LOG)) {
		if (!entry_whole(&cq.entry[*index & (ENTRIES - 1)], *index)) {
			fprintf(stderr, "entry 0x%08x is not visible\n", *index);
			exit(1);
		}
		++*index;
		ornic_rec_consumed(&cq.rec, *index);
	}
	return *index != first;
}

static bool host_finished(uint32_t index)
{
	return atomic_load(&cq.done) && atomic_load(&cq.produced) == index;
}

static bool host_wait(uint32_t index, uint32_t events)
{
	struct stress_wait wait = {};

	while (atomic_load_explicit(&cq.events, memory_order_acquire) == events) {
		if (host_finished(index))
			return false;
		if (!stress_turn(&wait)) {
			fprintf(stderr, "event lost: host at 0x%08x, arm 0x%08x\n", index,
				cq.rec.arm);
			exit(1);
		}
	}
	atomic_fetch_add_explicit(&cq.waits, 1, memory_order_relaxed);
	return true;
}

static uint32_t host(void)
{
	uint32_t index = cq.start, events = 0, rnd = 2463534242u, word;
	struct ornic_arm arm;

	ornic_arm_init(&arm);
	while (!host_finished(index)) {
		host_poll(&index);
		stress_jitter(&rnd);
		word = ornic_arm_word(&arm, index, stress_random(&rnd) & 1 ? ORNIC_ARM_ANY :
									     ORNIC_ARM_SOLICITED);
		if (ornic_rec_arm(&cq.rec, word))
			atomic_store(&cq.doorbell, word);
		cq.arms++;
		if (host_poll(&index)) {
			cq.missed++;
			continue;
		}
		if (host_wait(index, events)) {
			events++;
			ornic_arm_event(&arm);
		}
	}
	return index;
}

static void run(uint32_t start, bool by_doorbell)
{
	uint32_t end, i;
	pthread_t thread;

	memset(&cq, 0, sizeof(cq));
	ornic_rec_init(&cq.rec);
	cq.rec.host_index = htole32(start);
	if (!by_doorbell)
		cq.rec.notify = 0;
	for (i = 0; i < ENTRIES; i++)
		cq.entry[i].phase = !ring_phase(start, LOG);
	cq.start = start;
	cq.by_doorbell = by_doorbell;
	if (pthread_create(&thread, NULL, device, NULL)) {
		fputs("cannot start the device's thread\n", stderr);
		exit(1);
	}
	end = host();
	pthread_join(thread, NULL);
	printf("0x%08x..0x%08x %s: %llu arms, %llu entries found after arming, %llu waits, "
	       "%llu events\n", start, end, by_doorbell ? "doorbell" : "record",
	       (unsigned long long)cq.arms, (unsigned long long)cq.missed,
	       (unsigned long long)cq.waits, (unsigned long long)cq.fired);
	if (end - start < STRESS_ENTRIES || cq.waits < STRESS_MEETINGS) {
		fputs("too few entries or waits to mean anything\n", stderr);
		exit(1);
	}
}

int main(void)
{
	run(0x01000000 - 2048, false);
	run(0u - 2048, false);
	run(0x01000000 - 2048, true);
	run(0u - 2048, true);
	return 0;
}
