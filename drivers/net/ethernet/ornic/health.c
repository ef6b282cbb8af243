// SPDX-License-Identifier: GPL-2.0
/*
 * Health: the heartbeat watchdog, the transition of a broken device to dead, and the start of a
 * recovery.
 */
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/ratelimit.h>

#include "ornic.h"

/* Periods without a heartbeat that mean death (ORN-CTL-31). */
#define ORNIC_MISSED_BEATS	3

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

void ornic_device_malformed(struct ornic_dev *odev, const char *what)
{
	dev_err_ratelimited(ornic_dma_dev(odev->core), "malformed device output: %s\n", what);
	ornic_fatal(odev->core, ORNIC_REASON_MALFORMED);
}
EXPORT_SYMBOL_GPL(ornic_device_malformed);

/* ornic_tx_stuck() - report a stuck send queue, which starts its recovery. Context: any. */
void ornic_tx_stuck(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->death_lock, flags);
	if (core->recoverable)
		queue_work(system_long_wq, &core->tx_work);
	spin_unlock_irqrestore(&core->death_lock, flags);
}

static void ornic_health_check(struct ornic_core *core)
{
	u64 beat = le64_to_cpu(READ_ONCE(core->status->heartbeat));
	u32 status = le32_to_cpu(READ_ONCE(core->status->status));

	if (status & ORNIC_STS_FATAL) {
		dev_err(ornic_dma_dev(core), "device failed, syndrome %#010x\n",
			le32_to_cpu(READ_ONCE(core->status->syndrome)));
		ornic_fatal(core, ORNIC_REASON_FATAL);
		return;
	}
	if (beat != core->last_beat) {
		core->last_beat = beat;
		core->missed_beats = 0;
		return;
	}
	if (++core->missed_beats < ORNIC_MISSED_BEATS)
		return;
	dev_err(ornic_dma_dev(core), "no heartbeat for %u ms%s\n",
		ORNIC_MISSED_BEATS * core->hb_ms, ornic_ctrl_gone(core) ? ", device is gone" : "");
	ornic_fatal(core, ORNIC_REASON_HEARTBEAT);
}

static void ornic_health_work(struct work_struct *work)
{
	struct ornic_core *core = container_of(to_delayed_work(work), struct ornic_core,
					       health_work);

	if (ornic_dead(core))
		return;
	ornic_health_check(core);
	schedule_delayed_work(&core->health_work, msecs_to_jiffies(core->hb_ms));
}

void ornic_health_init(struct ornic_core *core)
{
	INIT_DELAYED_WORK(&core->health_work, ornic_health_work);
}

void ornic_health_start(struct ornic_core *core)
{
	core->last_beat = 0;
	core->missed_beats = 0;
	if (core->hb_ms)
		schedule_delayed_work(&core->health_work, msecs_to_jiffies(core->hb_ms));
}

void ornic_health_stop(struct ornic_core *core)
{
	cancel_delayed_work_sync(&core->health_work);
}
