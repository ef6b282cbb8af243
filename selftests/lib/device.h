/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host whose bus is a vfio-user connection: a process that acts as the VMM and the
 * guest's driver at once.
 */
#ifndef SELFTESTS_LIB_DEVICE_H
#define SELFTESTS_LIB_DEVICE_H

#include "host.h"
#include "vfu_client.h"

/** DEVICE_VECTORS - number of interrupts with an eventfd */
#define DEVICE_VECTORS	4

/** DEVICE_DMA_BASE - DMA address of the shared memory */
#define DEVICE_DMA_BASE	0x100000000ull

/**
 * struct device_client - a host and its vfio-user connection to the device
 * @host:	the host
 * @vfu:	the connection
 * @irq:	eventfd per vector
 */
struct device_client {
	struct host host;
	struct vfu_client vfu;
	int irq[DEVICE_VECTORS];
};

/*
 * device_open() - connect to the vfio-user socket @path, share @bytes of memory, set up interrupts,
 * enable bus mastering
 * Return: 0 or a negative errno.
 */
int device_open(struct device_client *d, const char *path, uint64_t bytes);
void device_close(struct device_client *d);

/*
 * device_irqs() - wait at most @ms milliseconds for an interrupt of @vector
 * Return: interrupts since the last call; 0 if none came in time.
 */
uint64_t device_irqs(struct device_client *d, unsigned int vector, int ms);

#endif /* SELFTESTS_LIB_DEVICE_H */
