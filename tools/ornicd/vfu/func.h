/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between a PCI function and the vfio-user server, which knows functions
 * only through this file.
 *
 * All operations run on the loop's thread, between iterations of the data path. They
 * must not block, and a write must not wait for an action of the guest: the guest's
 * CPU stands still meanwhile.
 */
#ifndef ORNICD_VFU_FUNC_H
#define ORNICD_VFU_FUNC_H

#include "../log.h"

#include <stdbool.h>
#include <stdint.h>

struct gpa;
struct vfu_endpoint;
struct vfu_func;

#define VFU_NUM_BARS		6

/** VFU_MSIX_BAR - the server owns this BAR (and the next) if there are vectors */
#define VFU_MSIX_BAR		2

#define VFU_BAR_64		0x1u	/* of vfu_bar.flags: takes the next BAR too */
#define VFU_BAR_PREFETCH	0x2u

/**
 * struct vfu_bar - a memory BAR
 * @size:	bytes, a power of two, at least 4096; 0: no BAR
 * @flags:	VFU_BAR_*
 */
struct vfu_bar {
	uint64_t size;
	uint32_t flags;
};

/** enum vfu_reset - why a function is reset */
enum vfu_reset {
	VFU_RESET_FLR,		/* function level reset, by the guest */
	VFU_RESET_DEVICE,	/* the VMM: machine reset, secondary bus reset */
	VFU_RESET_DISCONNECT,	/* the VMM is gone; guest memory goes away right after */
};

/**
 * struct vfu_func_ops - operations that a function implements
 * @bar_read:	load of @len bytes; @len is 1, 2, 4 or 8, @off is a multiple of it and
 *		inside the BAR. The server answers other accesses with all ones.
 * @bar_write:	store, under the same rules; the server drops others
 * @reset:	return to power-on state; no DMA and no interrupt from now on. The server
 *		has already disabled bus mastering (with a call of @bus_master if it was on).
 * @bus_master:	PCI COMMAND.BusMaster changed; off: no DMA starts after the return.
 *		NULL if func->bus_master is enough.
 * @power_state: the function entered (@d3 true) or left D3hot. NULL if not wanted.
 * @begin:	requests of the client are going to be handled, until @end. NULL if not wanted.
 * @held:	return true while requests of the client have to wait, because the function used
 *		more than its share of the time; called before each. NULL: never.
 * @end:	some requests of the client were handled. NULL if not wanted.
 */
struct vfu_func_ops {
	uint64_t (*bar_read)(struct vfu_func *f, unsigned int bar, uint64_t off,
			     unsigned int len);
	void (*bar_write)(struct vfu_func *f, unsigned int bar, uint64_t off,
			  unsigned int len, uint64_t val);
	void (*reset)(struct vfu_func *f, enum vfu_reset why);
	void (*bus_master)(struct vfu_func *f, bool on);
	void (*power_state)(struct vfu_func *f, bool d3);
	void (*begin)(struct vfu_func *f);
	bool (*held)(struct vfu_func *f);
	void (*end)(struct vfu_func *f);
};

/**
 * struct vfu_func - a PCI function; embed it and use container_of()
 *
 * Filled in by the function before vfu_server_open(), constant afterwards:
 * @ops:	operations
 * @log:	source of log lines, with the name of the function
 * @vendor:	PCI ids
 * @device:
 * @subvendor:
 * @subdevice:
 * @class_code:	24 bits: class, subclass, programming interface
 * @revision:
 * @nvectors:	MSI-X vectors, 0..2048
 * @bar:	BARs, without the MSI-X one
 *
 * Set by the server:
 * @gpa:	DMA addresses of this function, valid from vfu_server_open() on
 * @ep:		the server's side
 * @bus_master:	DMA and interrupts are allowed: COMMAND.BusMaster is set and the power
 *		state is D0
 */
struct vfu_func {
	const struct vfu_func_ops *ops;
	struct log_source log;
	uint16_t vendor;
	uint16_t device;
	uint16_t subvendor;
	uint16_t subdevice;
	uint32_t class_code;
	uint8_t revision;
	unsigned int nvectors;
	struct vfu_bar bar[VFU_NUM_BARS];

	struct gpa *gpa;
	struct vfu_endpoint *ep;
	bool bus_master;
};

/**
 * vfu_irq() - raise an MSI-X interrupt
 * @f:		function
 * @vector:	vector; ignored if it does not exist
 *
 * While bus mastering is off the interrupt stays pending, as PCI requires.
 */
void vfu_irq(struct vfu_func *f, unsigned int vector);

#endif /* ORNICD_VFU_FUNC_H */
