// SPDX-License-Identifier: GPL-2.0
/*
 * Death: the transition of a broken device to dead, and the start of a recovery.
 */
#include <linux/export.h>
#include <linux/ratelimit.h>

#include "ornic.h"

static const char * const ornic_reasons[] = {
	[0]				= "none",
	[ORNIC_REASON_SHUTDOWN]		= "function has left the bus",
	[ORNIC_REASON_ENABLE_TIMEOUT]	= "device does not become ready",
	[ORNIC_REASON_ADMIN_TIMEOUT]	= "command not answered",
	[ORNIC_REASON_HEARTBEAT]	= "no heartbeat",
	[ORNIC_REASON_FATAL]		= "device or PCI link failed",
	[ORNIC_REASON_MALFORMED]	= "malformed device output",
	[ORNIC_REASON_USER]		= "requested",
	[ORNIC_REASON_SUSPEND]		= "suspend",
	[ORNIC_REASON_INTERRUPT]	= "interrupts do not arrive",
	[ORNIC_REASON_EVENTS_LOST]	= "events lost",
};

/* ornic_reason_text() - describe an enum ornic_reset_reason for the administrator. */
const char *ornic_reason_text(u16 reason)
{
	return reason < ARRAY_SIZE(ornic_reasons) ? ornic_reasons[reason] : "unknown";
}

bool ornic_device_dead(struct ornic_dev *odev)
{
	return ornic_dead(odev->core);
}
EXPORT_SYMBOL_GPL(ornic_device_dead);

/**
 * ornic_fatal() - declare the device dead: end its DMA, fail its commands, start the recovery
 * @core: device
 * @reason: enum ornic_reset_reason
 *
 * Bus mastering ends before ornic_dead() returns true, because destroy commands
 * succeed on a dead device and their callers then free memory (ORN-PCI-4).
 *
 * Context: any, but not under ornic_admin.lock. Only the first call has an effect.
 */
void ornic_fatal(struct ornic_core *core, u16 reason)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&core->death_lock, flags);
	first = !core->dead;
	if (first) {
		pci_clear_master(core->pdev);
		core->death_reason = reason;
		core->last_death = reason;
		/* pairs with ornic_dead(): a reader may then free memory of the device */
		smp_store_release(&core->dead, true);
		ornic_event_queue_fatal(core);	/* first: ornic_quiesce() waits for its delivery */
		if (core->recoverable)
			queue_work(system_long_wq, &core->reset_work);
	}
	spin_unlock_irqrestore(&core->death_lock, flags);
	if (!first)
		return;

	dev_err(ornic_dma_dev(core), "device is dead, reset reason %u: %s\n", reason,
		ornic_reason_text(reason));
	ornic_admin_abort(core);
}

/**
 * ornic_failed() - handle a device that reports FATAL
 * @core: device
 * @syndrome: the reason it gives
 *
 * Context: any, but not under ornic_admin.lock.
 */
void ornic_failed(struct ornic_core *core, u32 syndrome)
{
	bool restarted = syndrome == ORNIC_SYN_RESTARTED;

	dev_err(ornic_dma_dev(core), "device %s, syndrome %#010x\n",
		restarted ? "restarted and lost its state" : "failed", syndrome);
	if (restarted)
		WRITE_ONCE(core->restarted, true);
	ornic_fatal(core, ORNIC_REASON_FATAL);
}

void ornic_device_stuck(struct ornic_dev *odev)
{
	ornic_fatal(odev->core, ORNIC_REASON_EVENTS_LOST);
}
EXPORT_SYMBOL_GPL(ornic_device_stuck);

void ornic_device_malformed(struct ornic_dev *odev, const char *what)
{
	dev_err_ratelimited(ornic_dma_dev(odev->core), "malformed device output: %s\n", what);
	ornic_fatal(odev->core, ORNIC_REASON_MALFORMED);
}
EXPORT_SYMBOL_GPL(ornic_device_malformed);

/**
 * ornic_tx_stuck() - report a stuck send queue, which starts its recovery
 * @core: device
 *
 * Context: any. Does nothing while the heartbeat is missing: the queue continues with the device.
 */
void ornic_tx_stuck(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->death_lock, flags);
	if (core->recoverable && !READ_ONCE(core->missed_beats))
		queue_work(system_long_wq, &core->tx_work);
	spin_unlock_irqrestore(&core->death_lock, flags);
}
