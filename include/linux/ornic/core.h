/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between ornic.ko and the drivers of its auxiliary devices
 * (ornic_ib.ko): the device, admin commands, completion and asynchronous
 * events, doorbell pages.
 *
 * Lifetime: everything here is valid from the auxiliary driver's probe to the
 * end of its remove. After a fatal error or surprise removal the functions
 * still work: commands return -EIO at once, destroy commands succeed because
 * the objects died with the device, and doorbells are dropped.
 */
#ifndef LINUX_ORNIC_CORE_H
#define LINUX_ORNIC_CORE_H

#include <linux/auxiliary_bus.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/sched/mm.h>

#include <linux/ornic/hw/admin.h>
#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/eq.h>
#include <linux/ornic/hw/identify.h>
#include <linux/ornic/hw/port.h>

struct ornic_core;
struct net_device;

/* Name of the auxiliary device, as MODULE_NAME.NAME. */
#define ORNIC_ADEV_NAME		"rdma"
#define ORNIC_ADEV_MATCH	"ornic." ORNIC_ADEV_NAME

/**
 * struct ornic_share - objects that auxiliary drivers may have at one time
 * @pd: protection domains; the device counts them, because the interface has its own already
 * @cq: completion queues
 * @qp: queue pairs
 * @raw_qp: queue pairs of type RAW, part of @qp
 * @rules: receive rules that are no memberships of multicast groups
 *
 * Less than Identify reports: the rest is for the network interface, which creates its queues when
 * it is opened, however many of these objects processes have. Each value fits an int.
 */
struct ornic_share {
	u32 pd;
	u32 cq;
	u32 qp;
	u32 raw_qp;
	u32 rules;
};

/**
 * struct ornic_dev - part of a device that auxiliary drivers use
 * @pdev: the PCI function; DMA is done with &pdev->dev
 * @netdev: the Ethernet interface of port 1
 * @id: Identify page 0, as read at probe
 * @port: Identify page 1 of port 1, as read at probe
 * @share: limits of objects; auxiliary drivers count their own, except PDs, and create no more
 * @features: feature word 0 as negotiated, CPU order
 * @dma_lkey: PHYS_ALL key with local write access that belongs to no protection
 *	domain: the local_dma_lkey of all privileged queue pairs
 * @comp_vectors: number of completion vectors; they are numbered from 0
 * @numbers: protects tables that find objects by number, because the device may reuse
 *	the number of a destroyed object at once. Held for reading from the destroy
 *	command until the object has left all tables, and for writing, by
 *	ornic_numbers_lock(), while a new object enters them. Process context, may sleep.
 * @core: private to ornic.ko
 */
struct ornic_dev {
	struct pci_dev *pdev;
	struct net_device *netdev;
	struct ornic_identify_device id;
	struct ornic_identify_port port;
	struct ornic_share share;
	u64 features;
	u32 dma_lkey;
	u32 comp_vectors;
	struct rw_semaphore numbers;
	struct ornic_core *core;
};

/**
 * struct ornic_adev - auxiliary device that ornic.ko creates per function
 * @adev: the device on the auxiliary bus
 * @odev: device for which ornic.ko created it
 */
struct ornic_adev {
	struct auxiliary_device adev;
	struct ornic_dev *odev;
};

static inline struct ornic_dev *ornic_adev_to_odev(struct auxiliary_device *adev)
{
	return container_of(adev, struct ornic_adev, adev)->odev;
}

static inline bool ornic_has(const struct ornic_dev *odev, u64 feature)
{
	return odev->features & feature;
}

/**
 * ornic_numbers_lock() - take odev->numbers for writing
 * @odev: device
 *
 * Allocations under the lock do no I/O: reclaim could wait for a write to storage over this device,
 * whose recovery destroys and creates queue pairs and so waits for the lock.
 *
 * Context: process context, may sleep. Return: argument of ornic_numbers_unlock().
 */
static inline unsigned int ornic_numbers_lock(struct ornic_dev *odev)
{
	down_write(&odev->numbers);
	return memalloc_noio_save();
}

/**
 * ornic_numbers_unlock() - release odev->numbers after ornic_numbers_lock()
 * @odev: device
 * @noio: what ornic_numbers_lock() returned
 */
static inline void ornic_numbers_unlock(struct ornic_dev *odev, unsigned int noio)
{
	up_write(&odev->numbers);
	memalloc_noio_restore(noio);
}

/**
 * struct ornic_cmd - one admin command
 * @opcode: enum ornic_opcode
 * @number: number of the object; 0 for a create command
 * @in: input payload, copied before the call returns; may be NULL
 * @in_len: length of @in in bytes
 * @out: output buffer; bytes that the device did not write are zeroed
 * @out_len: size of @out in bytes
 * @result: out: number in the completion, for example of the created object
 * @status: out: enum ornic_status; ORNIC_ST_ABORTED if the device is dead
 * @syndrome: out: device-specific detail of an error
 */
struct ornic_cmd {
	u16 opcode;
	u32 number;
	const void *in;
	u16 in_len;
	void *out;
	u16 out_len;
	u32 result;
	u8 status;
	u32 syndrome;
};

/**
 * ornic_cmd_exec() - run an admin command and wait for its completion
 * @odev: device
 * @cmd: the command
 *
 * Context: process context, may sleep. A timeout starts the recovery of the
 * device (ORN-ADM-29). Waits for a late device as long as it is late.
 *
 * Return: 0, or the errno of the completion's status (admin.rst). If the device
 * is dead or dies during the command: -EIO, but 0 for a destroy command, so
 * that unwinding never fails.
 */
int ornic_cmd_exec(struct ornic_dev *odev, struct ornic_cmd *cmd);

/**
 * struct ornic_comp - receiver of the completion events of one CQ
 * @comp: called for each completion event, in hard interrupt context; calls
 *	for one CQ do not overlap
 *
 * Embedded in the owner's CQ. ornic_comp_add() registers it under the CQ's number.
 */
struct ornic_comp {
	void (*comp)(struct ornic_comp *comp);
};

/**
 * ornic_comp_vector_eq() - return the number of a completion vector's event queue
 * @odev: device
 * @vector: 0 .. odev->comp_vectors - 1
 */
u32 ornic_comp_vector_eq(struct ornic_dev *odev, u32 vector);

/**
 * ornic_comp_add() - start the delivery of a CQ's completion events
 * @odev: device
 * @cqn: number of the CQ
 * @comp: receiver of the events
 *
 * Return: 0, -EBUSY if the number has a receiver already, -ENOMEM.
 */
int ornic_comp_add(struct ornic_dev *odev, u32 cqn, struct ornic_comp *comp);

/**
 * ornic_comp_del() - stop the delivery of a CQ's completion events
 * @odev: device
 * @cqn: number of the CQ, already destroyed in the device
 *
 * On return its handler does not run and will not be called. No event of the CQ is left in an
 * event queue, so a new CQ with this number cannot receive one.
 *
 * Context: process context, may sleep.
 */
void ornic_comp_del(struct ornic_dev *odev, u32 cqn);

/**
 * ornic_event_register() - subscribe to asynchronous events
 * @odev: device
 * @nb: called in process context (a workqueue), one event at a time, in order;
 *	action is the event type (enum ornic_event), data a struct ornic_eqe
 *	with all fields as the device wrote them. ORNIC_EV_DEVICE_FATAL is
 *	delivered at most once, also if the host declares the device dead, and
 *	instead of the events that have not been delivered by then.
 *
 * Return: 0 or negative errno.
 */
int ornic_event_register(struct ornic_dev *odev, struct notifier_block *nb);

/* ornic_event_unregister() - unsubscribe; on return @nb does not run and will not be called. */
void ornic_event_unregister(struct ornic_dev *odev, struct notifier_block *nb);

/**
 * ornic_event_flush() - wait until no event read so far will be delivered later
 * @odev: device
 *
 * Called after the destroy command of an object has completed, it ensures that
 * no event of the object is delivered later (ORN-ADM-4).
 *
 * Context: process context, may sleep.
 */
void ornic_event_flush(struct ornic_dev *odev);

/**
 * ornic_event_last() - return the position of the last event that the device has written
 * @odev: device
 *
 * Events have positions 1, 2, ... in the order of delivery. Unlike ornic_event_flush(), this
 * function does not wait for subscribers, so one may call it while it handles an event.
 *
 * Context: process context, may sleep.
 */
u64 ornic_event_last(struct ornic_dev *odev);

/**
 * ornic_event_current() - return the position of the event being delivered
 * @odev: device
 *
 * Context: a subscriber that handles an event other than ORNIC_EV_DEVICE_FATAL, which has no
 * position.
 */
u64 ornic_event_current(struct ornic_dev *odev);

/**
 * struct ornic_dbpage - a doorbell page
 * @index: page number that create commands of objects contain
 * @phys: bus address, for mapping into a process
 * @size: size in bytes
 */
struct ornic_dbpage {
	u32 index;
	phys_addr_t phys;
	u32 size;
};

/* ornic_dbpage_alloc() - allocate a page for one user context; -ENOSPC if none is free. */
int ornic_dbpage_alloc(struct ornic_dev *odev, struct ornic_dbpage *page);
void ornic_dbpage_free(struct ornic_dev *odev, struct ornic_dbpage *page);

/**
 * ornic_db_ring() - ring a doorbell on the driver's own page
 * @odev: device
 * @kind: enum ornic_db_kind
 * @number: queue number
 * @value: producer index just published, or arm word
 *
 * Context: any. Earlier writes to host memory are ordered before the doorbell.
 */
void ornic_db_ring(struct ornic_dev *odev, u8 kind, u32 number, u32 value);

/**
 * ornic_device_dead() - return true if the device has died or was unplugged
 * @odev: device
 *
 * Context: any. Once true it stays true until the auxiliary device is removed.
 */
bool ornic_device_dead(struct ornic_dev *odev);

/**
 * ornic_device_hurry() - from now on declare the device dead if it is late for 10 s (ORN-CTL-31)
 * @odev: device
 *
 * For a removal, a start or a recovery: its commands would wait as long as the device is late,
 * and hold up locks, a shutdown or an administrator. Call it before these locks are taken. Calls
 * nest.
 *
 * Context: any.
 */
void ornic_device_hurry(struct ornic_dev *odev);

/* ornic_device_unhurry() - undo ornic_device_hurry(). */
void ornic_device_unhurry(struct ornic_dev *odev);

/**
 * ornic_device_stuck() - give up a device for whose completions a removal waits in vain
 * @odev: device
 *
 * Declares the device dead with reset reason ORNIC_REASON_EVENTS_LOST, which ends the wait.
 *
 * Context: any; repeated calls are harmless.
 */
void ornic_device_stuck(struct ornic_dev *odev);

/**
 * ornic_device_malformed() - report device output that violates the specification (ORN-SEC-7)
 * @odev: device
 * @what: description of the violation for the kernel log
 *
 * Declares the device dead with reset reason ORNIC_REASON_MALFORMED, which
 * starts the recovery. The caller discards the malformed value.
 *
 * Context: any; repeated calls are harmless.
 */
void ornic_device_malformed(struct ornic_dev *odev, const char *what);

#endif
