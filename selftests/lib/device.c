// SPDX-License-Identifier: GPL-2.0
/*
 * Bus operations over vfio-user.
 */
#include "device.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static uint64_t bus_read(void *arg, uint64_t off, unsigned int len)
{
	struct device_client *d = arg;
	uint64_t val = 0;

	/* PCI's value for a read without an answer. */
	return vfu_client_read(&d->vfu, ORNIC_BAR_REGS, off, &val, len) ? UINT64_MAX : val;
}

/* A broken connection is noticed at the next read. */
static void bus_write(void *arg, uint64_t off, unsigned int len, uint64_t val)
{
	struct device_client *d = arg;

	vfu_client_post(&d->vfu, ORNIC_BAR_REGS, off, &val, len);
}

static void bus_turn(void *arg)
{
	(void)arg;
	sched_yield();
}

static int device_vectors(struct device_client *d)
{
	for (int i = 0; i < DEVICE_VECTORS; i++) {
		d->irq[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (d->irq[i] < 0)
			return -errno;
	}
	return vfu_client_msix(&d->vfu, 0, DEVICE_VECTORS, d->irq);
}

int device_open(struct device_client *d, const char *path, uint64_t bytes)
{
	int err;

	memset(d, 0, sizeof(*d));
	memset(d->irq, -1, sizeof(d->irq));
	err = dma_init(&d->host.dma, DEVICE_DMA_BASE, bytes);
	if (err)
		return err;
	d->host.bus = (struct bus) { bus_read, bus_write, bus_turn, d };
	host_init(&d->host);
	err = vfu_client_open(&d->vfu, path);
	if (err) {
		dma_fini(&d->host.dma);
		return err;
	}
	err = vfu_client_dma_map(&d->vfu, d->host.dma.fd, 0, DEVICE_DMA_BASE, bytes, true);
	if (!err)
		err = device_vectors(d);
	if (!err)
		err = vfu_client_bus_master(&d->vfu, true);
	if (err)
		device_close(d);
	return err;
}

void device_close(struct device_client *d)
{
	vfu_client_close(&d->vfu);
	for (int i = 0; i < DEVICE_VECTORS; i++)
		if (d->irq[i] >= 0)
			close(d->irq[i]);
	dma_fini(&d->host.dma);
}

uint64_t device_irqs(struct device_client *d, unsigned int vector, int ms)
{
	struct pollfd p = { .fd = d->irq[vector], .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, ms) <= 0 || read(p.fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}
