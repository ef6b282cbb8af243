/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Spinlock of a queue. It does nothing if the application promised to use one thread. */
#ifndef ORNIC_PROVIDER_LOCK_H
#define ORNIC_PROVIDER_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct ornic_lock {
	pthread_spinlock_t spin;
	bool needed;
};

static inline void ornic_lock_init(struct ornic_lock *lock, bool needed)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->needed = needed;
}

static inline void ornic_lock_destroy(struct ornic_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void ornic_lock(struct ornic_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

static inline void ornic_unlock(struct ornic_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

#endif
