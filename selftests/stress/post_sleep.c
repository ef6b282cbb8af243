// SPDX-License-Identifier: GPL-2.0
/*
 * Race of posting and falling asleep (ORN-RNG-5, 6, ORN-GEN-6): the provider's ring.h
 * posts, the daemon's ring.h sleeps, two threads, across the wraps of the 31-bit notify
 * word and of the 32-bit index. A lost wake leaves the device asleep in front of a
 * non-empty ring and fails the test.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/libornic/ring.h"
#include "tools/ornicd/engine/ring.h"
#include "stress.h"

#define ENTRIES	64u

struct ring {
	_Alignas(64) struct ornic_rec rec;
	uint32_t entry[ENTRIES];
	_Alignas(64) _Atomic uint32_t doorbell;	/* rung so far */
	_Alignas(64) _Atomic uint32_t consumed;	/* the device's consumer index */
	_Atomic bool stop;
	uint32_t start;
	uint64_t posts, wakes, recheck;
	_Atomic uint64_t sleeps;
};

static struct ring ring;

static void lost(const char *who, uint32_t cons)
{
	fprintf(stderr, "%s waits for ever: device at 0x%08x, host_index 0x%08x, notify 0x%08x\n",
		who, cons, ring.rec.host_index, ring.rec.notify);
	exit(1);
}

/* Wait for a doorbell later than @seen; a stop counts only if the ring is empty. */
static bool device_wait(uint32_t seen, uint32_t cons)
{
	struct stress_wait wait = {};

	while (atomic_load_explicit(&ring.doorbell, memory_order_acquire) == seen) {
		if (atomic_load(&ring.stop) && ring_host_index(&ring.rec) == cons)
			return false;
		if (!stress_turn(&wait) && ring_host_index(&ring.rec) != cons)
			lost("device", cons);
	}
	ring.wakes++;
	return true;
}

static void *device(void *arg)
{
	uint32_t cons = ring.start, seen, prod, rnd = 88172645;

	for (;;) {
		prod = ring_host_index(&ring.rec);
		for (; cons != prod; cons++) {
			if (ring.entry[cons & (ENTRIES - 1)] != cons) {
				fprintf(stderr, "entry 0x%08x is not visible\n", cons);
				exit(1);
			}
		}
		atomic_store_explicit(&ring.consumed, cons, memory_order_release);
		stress_jitter(&rnd);
		if (ring_host_index(&ring.rec) != cons)
			continue;
		seen = atomic_load_explicit(&ring.doorbell, memory_order_relaxed);
		if (!ring_sleep(&ring.rec, cons)) {
			ring.recheck++;
			continue;
		}
		atomic_fetch_add_explicit(&ring.sleeps, 1, memory_order_relaxed);
		if (!device_wait(seen, cons))
			return arg;
	}
}

/* Wait until the device has left room for @n more entries; n = ENTRIES: until it took all. */
static void host_wait(uint32_t index, uint32_t n)
{
	struct stress_wait wait = {};
	uint32_t cons;

	for (;;) {
		cons = atomic_load_explicit(&ring.consumed, memory_order_acquire);
		if (index - cons <= ENTRIES - n)
			return;
		if (!stress_turn(&wait))
			lost("host", cons);
	}
}

static uint32_t host(void)
{
	uint64_t since = stress_now();
	uint32_t index = ring.start, rnd = 2463534242u, n, i;

	while (ring.posts % 256 ||
	       !stress_over(since, index - ring.start, atomic_load(&ring.sleeps))) {
		n = 1 + (stress_random(&rnd) & 3);
		host_wait(index, stress_random(&rnd) & 4 ? ENTRIES : n);
		stress_jitter(&rnd);
		for (i = 0; i < n; i++)
			ring.entry[(index + i) & (ENTRIES - 1)] = index + i;
		if (ornic_rec_publish(&ring.rec, index, index + n))
			atomic_fetch_add_explicit(&ring.doorbell, 1, memory_order_release);
		index += n;
		ring.posts++;
	}
	return index;
}

static void run(uint32_t start)
{
	uint32_t end;
	pthread_t thread;

	memset(&ring, 0, sizeof(ring));
	ornic_rec_init(&ring.rec);
	ring.rec.host_index = htole32(start);
	ring.start = start;
	atomic_store(&ring.consumed, start);
	if (pthread_create(&thread, NULL, device, NULL)) {
		fputs("cannot start the device's thread\n", stderr);
		exit(1);
	}
	end = host();
	host_wait(end, ENTRIES);
	atomic_store(&ring.stop, true);
	pthread_join(thread, NULL);
	printf("0x%08x..0x%08x: %llu posts, %llu sleeps, %llu wakes, %llu sleeps called off\n",
	       start, end, (unsigned long long)ring.posts, (unsigned long long)ring.sleeps,
	       (unsigned long long)ring.wakes, (unsigned long long)ring.recheck);
	if (end - start < STRESS_ENTRIES || ring.sleeps < STRESS_MEETINGS) {
		fputs("too few posts or sleeps to mean anything\n", stderr);
		exit(1);
	}
}

int main(void)
{
	run(0);
	run(0x80000000u - 2048);
	run(0u - 2048);
	return 0;
}
