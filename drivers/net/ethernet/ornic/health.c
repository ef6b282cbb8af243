// SPDX-License-Identifier: GPL-2.0
/*
 * Health: the check of the heartbeat. What follows when the device is broken is in death.c.
 *
 * A device without a heartbeat is late, not dead: its host may be suspended or short of
 * processors, and then everything continues where it stopped. Meanwhile the driver reads no
 * register and does not access configuration space. QEMU (11.1) stops the virtual machine
 * for up to 5 s per access that the device does not answer, and the value is then all ones, as if
 * the function had left the bus. Doorbells need no answer.
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/jiffies.h>

#include "netdev.h"
#include "ornic.h"

/* A silent device holds up a teardown, a start or a recovery for this long, in jiffies. */
#define ORNIC_LATE_LIMIT	(10 * HZ)

/* Return: true if a start, a teardown or a recovery is in progress. */
static bool ornic_hurried(struct ornic_core *core)
{
	return atomic_read(&core->hurry) || READ_ONCE(core->closing);
}

/* Let devlink show that the device is late, or no longer. */
static void ornic_report_health(struct ornic_core *core)
{
	spin_lock_irq(&core->death_lock);
	if (core->recoverable)
		queue_work(system_long_wq, &core->late_work);
	spin_unlock_irq(&core->death_lock);
}

static void ornic_health_beat(struct ornic_core *core, u64 beat)
{
	if (core->late) {
		WRITE_ONCE(core->late, false);
		dev_info(ornic_dma_dev(core), "device is no longer late, after %u ms\n",
			 jiffies_to_msecs(jiffies - core->beat_time));
		ornic_report_health(core);
	}
	core->last_beat = beat;
	core->beat_time = jiffies;
	WRITE_ONCE(core->missed_beats, 0);
}

static void ornic_health_late(struct ornic_core *core)
{
	if (!core->late) {
		WRITE_ONCE(core->late, true);
		dev_warn(ornic_dma_dev(core), "device is late: no heartbeat for %u ms\n",
			 jiffies_to_msecs(jiffies - core->beat_time));
		ornic_report_health(core);
	}
}

/* Give up a silent device that the PCI core has lost, or for which somebody cannot wait. */
static void ornic_health_give_up(struct ornic_core *core)
{
	if (pci_channel_offline(core->pdev))
		ornic_fatal(core, ORNIC_REASON_SHUTDOWN);
	else if (ornic_hurried(core) && time_after(jiffies, core->beat_time + ORNIC_LATE_LIMIT))
		ornic_fatal(core, ORNIC_REASON_HEARTBEAT);
}

static void ornic_health_check(struct ornic_core *core)
{
	u64 beat = le64_to_cpu(READ_ONCE(core->status->heartbeat));
	u32 status = le32_to_cpu(READ_ONCE(core->status->status));

	if (status & ORNIC_STS_FATAL) {
		ornic_failed(core, le32_to_cpu(READ_ONCE(core->status->syndrome)));
		return;
	}
	if (beat != core->last_beat) {
		ornic_health_beat(core, beat);
		return;
	}
	WRITE_ONCE(core->missed_beats, core->missed_beats + 1);
	/* one missed beat may only be a beat between two checks */
	if (core->missed_beats > 1)
		ornic_netdev_touch(core);
	if (core->missed_beats >= core->late_beats)
		ornic_health_late(core);
	ornic_health_give_up(core);
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

/* ornic_health_start() - from now on a device without a heartbeat is late. */
void ornic_health_start(struct ornic_core *core)
{
	core->last_beat = 0;
	core->beat_time = jiffies;
	core->missed_beats = 0;
	if (!core->hb_ms)
		return;
	WRITE_ONCE(core->watched, true);
	schedule_delayed_work(&core->health_work, msecs_to_jiffies(core->hb_ms));
}

/**
 * ornic_health_settle() - wait until the device is not late, because it is back or given up
 * @core: device, after ornic_device_hurry()
 *
 * Call it before ornic_health_stop(), behind which the teardown reads registers (ORN-CTL-37).
 * Context: process.
 */
void ornic_health_settle(struct ornic_core *core)
{
	while (ornic_late(core))
		msleep(50);
}

/* ornic_health_stop() - the device is late no more; one that does not answer has failed. */
void ornic_health_stop(struct ornic_core *core)
{
	cancel_delayed_work_sync(&core->health_work);
	WRITE_ONCE(core->watched, false);
	WRITE_ONCE(core->late, false);
}

void ornic_device_hurry(struct ornic_dev *odev)
{
	atomic_inc(&odev->core->hurry);
}
EXPORT_SYMBOL_GPL(ornic_device_hurry);

void ornic_device_unhurry(struct ornic_dev *odev)
{
	atomic_dec(&odev->core->hurry);
}
EXPORT_SYMBOL_GPL(ornic_device_unhurry);
