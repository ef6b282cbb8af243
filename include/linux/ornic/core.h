/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ornic.ko offers to the drivers of its auxiliary devices (ornic_ib.ko):
 * the device, admin commands, completion and asynchronous events, doorbell
 * pages, memory for rings.
 *
 * Lifetime: everything here is valid from the auxiliary driver's probe to the
 * end of its remove. After a fatal error or surprise removal the functions
 * still work: commands answer -EIO at once, destroy commands succeed (the
 * objects died with the device), doorbells are dropped.
 */
#ifndef LINUX_ORNIC_CORE_H
#define LINUX_ORNIC_CORE_H

#include <linux/auxiliary_bus.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/rwsem.h>

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
 * struct ornic_dev - the part of a device that auxiliary drivers see
 * @pdev: the PCI function; DMA is done with &pdev->dev
 * @netdev: the Ethernet interface of port 1
 * @id: Identify page 0, as read at probe
 * @port: Identify page 1 of port 1, as read at probe
 * @features: feature word 0 as negotiated, CPU order
 * @dma_lkey: PHYS_ALL key of no protection domain with local write access: the
 *	lkey of every privileged queue pair for DMA addresses (local_dma_lkey)
 * @comp_vectors: completion vectors, numbered from 0
 * @numbers: whoever destroys an object that a table finds by its number holds this for
 *	reading from the command until no table has it; whoever enters a new one, for
 *	writing. The device may give a number again at once.
 * @core: private to ornic.ko
 */
struct ornic_dev {
	struct pci_dev *pdev;
	struct net_device *netdev;
	struct ornic_identify_device id;
	struct ornic_identify_port port;
	u64 features;
	u32 dma_lkey;
	u32 comp_vectors;
	struct rw_semaphore numbers;
	struct ornic_core *core;
};

/**
 * struct ornic_adev - auxiliary device that ornic.ko creates per function
 * @adev: the device on the auxiliary bus
 * @odev: what its driver works with
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
 * struct ornic_cmd - one admin command
 * @opcode: enum ornic_opcode
 * @number: object acted on; 0 for create
 * @in: input payload, copied before the call returns; may be NULL
 * @in_len: its length
 * @out: where output goes; bytes that the device did not write are zeroed
 * @out_len: room there
 * @result: out: number the completion carries
 * @status: out: enum ornic_status; ORNIC_ST_ABORTED if the device is gone
 * @syndrome: out: the device's detail
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
 * device (ORN-ADM-29). Return: 0, or the errno of the completion's status
 * (admin.rst), -EIO if the device is or went away. Destroy commands return 0
 * then, so that unwinding never fails.
 */
int ornic_cmd_exec(struct ornic_dev *odev, struct ornic_cmd *cmd);

/**
 * struct ornic_comp - a completion queue as the event queues see it
 * @comp: called for each completion event, in hard interrupt context; one
 *	call at a time per queue
 *
 * Embedded in the owner's CQ; registered under the CQ's number.
 */
struct ornic_comp {
	void (*comp)(struct ornic_comp *comp);
};

/**
 * ornic_comp_vector_eq() - number of the event queue behind a completion vector
 * @odev: device
 * @vector: 0 .. odev->comp_vectors - 1
 */
u32 ornic_comp_vector_eq(struct ornic_dev *odev, u32 vector);

/**
 * ornic_comp_add() - have completion events of a CQ delivered
 * @odev: device
 * @cqn: number of the CQ
 * @comp: what to call
 *
 * Return: 0, -EBUSY if the number is taken, -ENOMEM.
 */
int ornic_comp_add(struct ornic_dev *odev, u32 cqn, struct ornic_comp *comp);

/**
 * ornic_comp_del() - end delivery
 * @odev: device
 * @cqn: number of the CQ, already destroyed in the device
 *
 * On return no call of its handler is running or will start, and no event of the CQ is left
 * that a later one with this number could get. May sleep.
 */
void ornic_comp_del(struct ornic_dev *odev, u32 cqn);

/**
 * ornic_event_register() - subscribe to asynchronous events
 * @odev: device
 * @nb: called in process context (a workqueue), one event at a time, in order;
 *	action is the event type (enum ornic_event), data a struct ornic_eqe
 *	with all fields as the device wrote them. ORNIC_EV_DEVICE_FATAL comes
 *	at most once, also when the host declared the device dead.
 *
 * Return: 0 or negative errno.
 */
int ornic_event_register(struct ornic_dev *odev, struct notifier_block *nb);

/* ornic_event_unregister() - on return @nb is not running and will not be called. */
void ornic_event_unregister(struct ornic_dev *odev, struct notifier_block *nb);

/**
 * ornic_event_flush() - wait until every event read so far has been delivered
 * @odev: device
 *
 * After the DESTROY of an object completed, this makes sure that none of its
 * events is still on its way (ORN-ADM-4). May sleep.
 */
void ornic_event_flush(struct ornic_dev *odev);

/**
 * struct ornic_dbpage - a doorbell page
 * @index: page number, as objects name it
 * @phys: bus address, for mapping into a process
 * @size: bytes
 */
struct ornic_dbpage {
	u32 index;
	phys_addr_t phys;
	u32 size;
};

/* ornic_dbpage_alloc() - a page for one user context; -ENOSPC when they ran out. */
int ornic_dbpage_alloc(struct ornic_dev *odev, struct ornic_dbpage *page);
void ornic_dbpage_free(struct ornic_dev *odev, struct ornic_dbpage *page);

/**
 * ornic_db_ring() - store a doorbell to the driver's own page
 * @odev: device
 * @kind: enum ornic_db_kind
 * @number: queue number
 * @value: index just published, or arm word
 *
 * Context: any. Orders earlier writes to host memory before the store.
 */
void ornic_db_ring(struct ornic_dev *odev, u8 kind, u32 number, u32 value);

/**
 * ornic_device_dead() - has the device died or been unplugged?
 * @odev: device
 *
 * Once true it stays true until the auxiliary device is removed.
 */
bool ornic_device_dead(struct ornic_dev *odev);

/**
 * ornic_device_malformed() - the device wrote something impossible (ORN-SEC-7)
 * @odev: device
 * @what: what it was, for the log
 *
 * Declares the device dead with reset reason ORNIC_REASON_MALFORMED, which
 * starts the recovery. The caller drops what it found.
 *
 * Context: any; repeated calls are harmless.
 */
void ornic_device_malformed(struct ornic_dev *odev, const char *what);

#endif
