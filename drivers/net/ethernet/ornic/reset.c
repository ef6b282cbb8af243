// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery: take everything down, reset the device, bring everything up again.
 * Fatal error, function level reset and suspend use the same path.
 *
 * The network interface stays registered but detached, so it keeps its name, its
 * addresses and its bridge. The RDMA device is removed and added again, because
 * its objects do not survive a reset.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>

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
	ornic_health_stop(core);
	ornic_teardown(core, reason);
}

/**
 * ornic_revive() - undo ornic_quiesce()
 * @core: device, quiesced
 *
 * Context: process, under state_lock. Return: 0 or negative errno: then the
 * device stays down, its network interface detached.
 */
int ornic_revive(struct ornic_core *core)
{
	int err;

	lockdep_assert_held(&core->state_lock);

	if (core->up)
		return 0;
	err = ornic_bringup(core);
	if (err)
		goto failed;
	ornic_health_start(core);
	err = ornic_netdev_resume(core);
	if (!err)
		err = ornic_auxdev_add(core);
	if (!err)
		return 0;
	ornic_quiesce(core, ORNIC_REASON_USER);
failed:
	dev_err(ornic_dma_dev(core), "device cannot be restarted: %d\n", err);
	return err;
}

/**
 * ornic_revive_retry() - call ornic_revive() up to three times
 * @core: device, quiesced
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

static void ornic_recover(struct ornic_core *core)
{
	if (ornic_ctrl_gone(core)) {
		dev_err(ornic_dma_dev(core), "device is gone, no recovery\n");
		return;
	}
	if (ornic_reset_too_often(core)) {
		dev_err(ornic_dma_dev(core),
			"device failed %u times in short succession, no recovery: reload the driver\n",
			ORNIC_QUICK_RESETS);
		return;
	}
	if (!ornic_revive_retry(core))
		dev_info(ornic_dma_dev(core), "device recovered\n");
	else
		dev_err(ornic_dma_dev(core), "no recovery: reload the driver\n");
}

static void ornic_reset_work(struct work_struct *work)
{
	struct ornic_core *core = container_of(work, struct ornic_core, reset_work);

	mutex_lock(&core->state_lock);
	if (core->up && ornic_dead(core)) {
		ornic_quiesce(core, core->death_reason);
		ornic_recover(core);
	}
	mutex_unlock(&core->state_lock);
}

/**
 * ornic_recover_begin() - let fatal errors start the recovery
 * @core: device, up; if it has already died, the recovery starts at once
 *
 * Context: process, under state_lock.
 */
void ornic_recover_begin(struct ornic_core *core)
{
	lockdep_assert_held(&core->state_lock);

	spin_lock_irq(&core->death_lock);
	core->recoverable = true;
	if (core->up && core->dead)
		queue_work(system_long_wq, &core->reset_work);
	spin_unlock_irq(&core->death_lock);
}

/* ornic_recover_end() - stop the recovery and disable it. Not under state_lock: it waits. */
void ornic_recover_end(struct ornic_core *core)
{
	spin_lock_irq(&core->death_lock);
	core->recoverable = false;
	spin_unlock_irq(&core->death_lock);
	cancel_work_sync(&core->reset_work);
}

void ornic_reset_init(struct ornic_core *core)
{
	INIT_WORK(&core->reset_work, ornic_reset_work);
	core->last_reset = jiffies - ORNIC_QUICK_PERIOD - 1;
}
