// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery: take everything down, reset the device, bring everything up again.
 * Fatal error, function level reset and suspend use the same path. A fatal error is reported
 * to devlink (reporter.c), which calls ornic_recover() unless an administrator forbade it.
 *
 * The network interface stays registered but detached, so it keeps its name, its
 * addresses and its bridge. The RDMA device is removed and added again, because
 * its objects do not survive a reset.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>

#include "netdev.h"
#include "ornic.h"

/* Recoveries, each within ORNIC_QUICK_PERIOD jiffies of the last, before giving up. */
#define ORNIC_QUICK_RESETS	3
#define ORNIC_QUICK_PERIOD	(30 * HZ)

/* Attempts to start a device that was taken down. */
#define ORNIC_REVIVE_ATTEMPTS	3

/**
 * ornic_quiesce() - take the device and all its users down
 * @core: device
 * @reason: enum ornic_reset_reason
 *
 * Context: process, under state_lock. Does nothing if the device is not up.
 */
void ornic_quiesce(struct ornic_core *core, u16 reason)
{
	lockdep_assert_held(&core->state_lock);

	if (!core->up)
		return;
	flush_work(&core->events.work);		/* DEVICE_FATAL has reached all subscribers */
	ornic_auxdev_del(core);
	ornic_netdev_suspend(core);
	ornic_health_settle(core);
	ornic_health_stop(core);
	ornic_teardown(core, reason);
}

/**
 * ornic_revive() - undo ornic_quiesce()
 * @core: device, quiesced, with a network interface
 *
 * No allocation does I/O: writeback may wait for storage that needs this device, its network
 * interface and its RDMA device.
 *
 * Context: process, under state_lock. Return: 0 or negative errno: then the
 * device stays down, its network interface detached.
 */
int ornic_revive(struct ornic_core *core)
{
	unsigned int noio;
	int err;

	lockdep_assert_held(&core->state_lock);

	if (core->up)
		return 0;
	noio = memalloc_noio_save();
	err = ornic_bringup(core);
	if (!err) {
		ornic_health_start(core);
		err = ornic_netdev_resume(core);
		if (!err)
			err = ornic_auxdev_add(core);
		if (err)
			ornic_quiesce(core, ORNIC_REASON_USER);
	}
	memalloc_noio_restore(noio);
	if (err)
		dev_err(ornic_dma_dev(core), "device cannot be restarted: %d\n", err);
	return err;
}

/**
 * ornic_revive_retry() - call ornic_revive() up to three times
 * @core: device, quiesced, with a network interface
 *
 * Waits 1 s between attempts, because a device may not be ready right after a reset.
 * Context: process, under state_lock. Return: 0 or negative errno: then the device stays down.
 */
int ornic_revive_retry(struct ornic_core *core)
{
	int attempt, err;

	for (attempt = 1; ; attempt++) {
		err = ornic_revive(core);
		if (!err || attempt == ORNIC_REVIVE_ATTEMPTS || ornic_ctrl_gone(core))
			return err;
		ssleep(1);
	}
}

static bool ornic_reset_too_often(struct ornic_core *core)
{
	if (time_after(jiffies, core->last_reset + ORNIC_QUICK_PERIOD))
		core->quick_resets = 0;
	core->last_reset = jiffies;
	return ++core->quick_resets > ORNIC_QUICK_RESETS;
}

/*
 * Do not count the recovery of a device that restarted (ORN-CTL-40), because the device is not
 * faulty. Limit these recoveries to one per second, so that a device that always reports a restart
 * does not keep this host busy.
 */
static void ornic_reset_restarted(struct ornic_core *core)
{
	unsigned long passed = jiffies - core->last_reset;

	if (passed < HZ)
		msleep(jiffies_to_msecs(HZ - passed));
	core->last_reset = jiffies;
}

/**
 * ornic_recover() - reset a device that died or that is down, and start it again
 * @core: device with a network interface
 * @automatic: no administrator asked for it: give up after several times in succession
 *
 * Context: process, under state_lock. Return: 0, -ENODEV if it does not answer, -EAGAIN if it
 * died too often, or another negative errno: then the device stays down.
 */
int ornic_recover(struct ornic_core *core, bool automatic)
{
	bool restarted = READ_ONCE(core->restarted);
	int err;

	if (!automatic)
		WRITE_ONCE(core->gone, false);	/* a late device looked gone, and may be back */
	ornic_quiesce(core, core->death_reason);
	if (ornic_ctrl_gone(core)) {
		dev_err(ornic_dma_dev(core), "device does not answer, no recovery\n");
		return -ENODEV;
	}
	if (!automatic) {
		core->quick_resets = 0;
	} else if (restarted) {
		ornic_reset_restarted(core);
	} else if (ornic_reset_too_often(core)) {
		dev_err(ornic_dma_dev(core),
			"device failed %u times in short succession, no recovery: reload the driver or recover it by devlink health\n",
			ORNIC_QUICK_RESETS);
		return -EAGAIN;
	}
	err = ornic_revive_retry(core);
	if (!err)
		dev_info(ornic_dma_dev(core), "device recovered\n");
	else
		dev_err(ornic_dma_dev(core),
			"no recovery: reload the driver or recover it by devlink health\n");
	return err;
}

static void ornic_reset_work(struct work_struct *work)
{
	ornic_report_death(container_of(work, struct ornic_core, reset_work));
}

static void ornic_late_work(struct work_struct *work)
{
	ornic_report_late(container_of(work, struct ornic_core, late_work));
}

static void ornic_tx_work(struct work_struct *work)
{
	ornic_report_tx(container_of(work, struct ornic_core, tx_work));
}

/**
 * ornic_recover_begin() - let fatal errors start the recovery
 * @core: device, registered with devlink; if it has already died, the recovery starts at once
 *
 * Call it after ornic_reporters_update(): from now on reports change the state of reporters.
 * Context: process, not under state_lock.
 */
void ornic_recover_begin(struct ornic_core *core)
{
	mutex_lock(&core->state_lock);
	spin_lock_irq(&core->death_lock);
	core->recoverable = !core->closing && !core->held;
	if (core->recoverable && core->up && core->dead)
		queue_work(system_long_wq, &core->reset_work);
	if (core->recoverable && ornic_late(core))
		queue_work(system_long_wq, &core->late_work);
	spin_unlock_irq(&core->death_lock);
	mutex_unlock(&core->state_lock);
}

/* ornic_recover_forbid() - start no more recoveries. One that was started may still run. */
void ornic_recover_forbid(struct ornic_core *core)
{
	spin_lock_irq(&core->death_lock);
	core->recoverable = false;
	spin_unlock_irq(&core->death_lock);
}

/*
 * ornic_recover_end() - start no more recoveries and wait for the end of the last. Neither under
 * devl_lock() nor under state_lock: the recovery takes both.
 */
void ornic_recover_end(struct ornic_core *core)
{
	ornic_recover_forbid(core);
	cancel_work_sync(&core->reset_work);
	cancel_work_sync(&core->tx_work);
	cancel_work_sync(&core->late_work);
}

void ornic_reset_init(struct ornic_core *core)
{
	INIT_WORK(&core->reset_work, ornic_reset_work);
	INIT_WORK(&core->tx_work, ornic_tx_work);
	INIT_WORK(&core->late_work, ornic_late_work);
	core->last_reset = jiffies - ORNIC_QUICK_PERIOD - 1;
}
