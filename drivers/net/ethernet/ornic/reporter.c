// SPDX-License-Identifier: GPL-2.0
/*
 * Health reporters of devlink: "fw" for the death of the device, "tx" for a send queue that no
 * longer moves. Devlink counts the errors, keeps a dump and calls the recovery, unless an
 * administrator has turned auto_recover off. "fw" is also in state "error" while the device is
 * late; then only an administrator, who may not want to wait, starts the recovery.
 *
 * Devlink (6.1 to 7.2) does not call the recovery of a reporter in state "error". Therefore each
 * start of the device sets "fw" to healthy (a recovery, a PCI reset, a resume and a reload): else
 * the next death would be the last. "fw" has no grace period, because reset.c itself counts its
 * recoveries in close succession. "tx" has none, and no limit.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/rtnetlink.h>

#include "netdev.h"
#include "ornic.h"

struct ornic_dump_reg {
	const char *name;
	u32 offset;
};

/* Registers of a dump, all of 32 bits and free of side effects. */
static const struct ornic_dump_reg ornic_dump_regs[] = {
	{ "version",		ORNIC_REG_VERSION },
	{ "control",		ORNIC_REG_CONTROL },
	{ "status",		ORNIC_REG_STATUS },
	{ "syndrome",		ORNIC_REG_SYNDROME },
	{ "reset_cause",	ORNIC_REG_RESET_CAUSE },
	{ "vectors",		ORNIC_REG_VECTORS },
	{ "heartbeat_ms",	ORNIC_REG_HB_MS },
	{ "admin_size",		ORNIC_REG_ADMIN_SIZE },
};

static void ornic_fmsg_begin(struct devlink_fmsg *fmsg, const char *name)
{
	devlink_fmsg_pair_nest_start(fmsg, name);
	devlink_fmsg_obj_nest_start(fmsg);
}

static void ornic_fmsg_end(struct devlink_fmsg *fmsg)
{
	devlink_fmsg_obj_nest_end(fmsg);
	devlink_fmsg_pair_nest_end(fmsg);
}

/* Return: true if the device lives, so that there is nothing to recover. */
static bool ornic_alive(struct ornic_core *core)
{
	lockdep_assert_held(&core->state_lock);

	return core->up && !ornic_dead(core);
}

static const char *ornic_state_text(struct ornic_core *core)
{
	if (core->held)
		return "held";
	if (READ_ONCE(core->gone))
		return "gone";
	if (!core->up)
		return "down";
	if (ornic_dead(core))
		return "dead";
	return ornic_late(core) ? "late" : "up";
}

static void ornic_fmsg_state(struct devlink_fmsg *fmsg, struct ornic_core *core)
{
	devlink_fmsg_string_pair_put(fmsg, "state", ornic_state_text(core));
	devlink_fmsg_string_pair_put(fmsg, "reset_reason", ornic_reason_text(core->last_death));
	devlink_fmsg_u32_pair_put(fmsg, "missed_beats", READ_ONCE(core->missed_beats));
	devlink_fmsg_u32_pair_put(fmsg, "quick_resets", core->quick_resets);
}

static u32 ornic_admin_in_flight(struct ornic_admin *admin)
{
	u32 i, count = 0;

	for (i = 0; i < ORNIC_ADMIN_SLOTS; i++)
		if (READ_ONCE(admin->slots[i].state) == ORNIC_SLOT_SUBMITTED)
			count++;
	return count;
}

static void ornic_fmsg_admin(struct devlink_fmsg *fmsg, struct ornic_admin *admin)
{
	ornic_fmsg_begin(fmsg, "admin_queue");
	devlink_fmsg_bool_pair_put(fmsg, "open", READ_ONCE(admin->open));
	devlink_fmsg_u32_pair_put(fmsg, "in_flight", ornic_admin_in_flight(admin));
	devlink_fmsg_u32_pair_put(fmsg, "submitted", READ_ONCE(admin->sq_head));
	devlink_fmsg_u32_pair_put(fmsg, "completed", READ_ONCE(admin->cq_next));
	ornic_fmsg_end(fmsg);
}

/* The status block is a copy in host memory of what the device reported last. */
static void ornic_fmsg_status(struct devlink_fmsg *fmsg, const struct ornic_status_block *status)
{
	if (!status)
		return;
	ornic_fmsg_begin(fmsg, "status_block");
	devlink_fmsg_u64_pair_put(fmsg, "heartbeat", le64_to_cpu(READ_ONCE(status->heartbeat)));
	devlink_fmsg_u32_pair_put(fmsg, "status", le32_to_cpu(READ_ONCE(status->status)));
	devlink_fmsg_u32_pair_put(fmsg, "syndrome", le32_to_cpu(READ_ONCE(status->syndrome)));
	devlink_fmsg_u32_pair_put(fmsg, "generation", le32_to_cpu(READ_ONCE(status->generation)));
	ornic_fmsg_end(fmsg);
}

/* The registers of a device that lives are not read (ORN-PCI-3). */
static void ornic_fmsg_regs(struct devlink_fmsg *fmsg, struct ornic_core *core)
{
	const struct ornic_dump_reg *reg = ornic_dump_regs;
	u32 i;

	if (ornic_alive(core) || core->held || ornic_ctrl_gone(core))
		return;
	ornic_fmsg_begin(fmsg, "registers");
	for (i = 0; i < ARRAY_SIZE(ornic_dump_regs); i++, reg++)
		devlink_fmsg_u32_pair_put(fmsg, reg->name, readl(core->regs + reg->offset));
	ornic_fmsg_end(fmsg);
}

static int ornic_fw_diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			     struct netlink_ext_ack *extack)
{
	struct ornic_core *core = devlink_health_reporter_priv(reporter);

	mutex_lock(&core->state_lock);
	ornic_fmsg_state(fmsg, core);
	ornic_fmsg_status(fmsg, core->status);
	ornic_fmsg_admin(fmsg, &core->admin);
	mutex_unlock(&core->state_lock);
	return 0;
}

static int ornic_fw_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			 void *context, struct netlink_ext_ack *extack)
{
	struct ornic_core *core = devlink_health_reporter_priv(reporter);

	mutex_lock(&core->state_lock);
	ornic_fmsg_state(fmsg, core);
	ornic_fmsg_status(fmsg, core->status);
	ornic_fmsg_admin(fmsg, &core->admin);
	ornic_fmsg_regs(fmsg, core);
	devlink_fmsg_binary_pair_put(fmsg, "identify", &core->odev.id, sizeof(core->odev.id));
	mutex_unlock(&core->state_lock);
	return 0;
}

/* context is NULL if an administrator asked. Under devl_lock(). */
static int ornic_fw_recover(struct devlink_health_reporter *reporter, void *context,
			    struct netlink_ext_ack *extack)
{
	struct ornic_core *core = devlink_health_reporter_priv(reporter);
	int err = 0;

	core->late_shown = false;	/* devlink sets the state */
	ornic_device_hurry(&core->odev);
	mutex_lock(&core->state_lock);
	if (!context && ornic_late(core))
		ornic_fatal(core, ORNIC_REASON_HEARTBEAT);
	if (ornic_alive(core)) {
		/* started by another way since the report */
	} else if (core->held) {
		NL_SET_ERR_MSG_MOD(extack, "the PCI function is being reset or has failed");
		err = -EBUSY;
	} else if (!core->nd) {
		NL_SET_ERR_MSG_MOD(extack, "a reload has failed: reload again");
		err = -ENODEV;
	} else {
		err = ornic_recover(core, context);
		if (err)
			NL_SET_ERR_MSG_MOD(extack, "no recovery: see the kernel's log");
	}
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
	return err;
}

static const struct devlink_health_reporter_ops ornic_fw_ops = {
	.name		= "fw",
	.recover	= ornic_fw_recover,
	.dump		= ornic_fw_dump,
	.diagnose	= ornic_fw_diagnose,
};

static void ornic_fmsg_queues(struct devlink_fmsg *fmsg, struct ornic_netdev *nd)
{
	struct netdev_queue *queue = netdev_get_tx_queue(nd->dev, 0);
	struct ornic_queues *q = nd->queues;

	devlink_fmsg_bool_pair_put(fmsg, "running", q);
	if (!q)
		return;
	devlink_fmsg_u32_pair_put(fmsg, "queue_pair", q->qpn);
	devlink_fmsg_u32_pair_put(fmsg, "entries", 1u << q->sq.ring.log);
	devlink_fmsg_u32_pair_put(fmsg, "head", READ_ONCE(q->sq.head));
	devlink_fmsg_u32_pair_put(fmsg, "published", READ_ONCE(q->sq.published));
	devlink_fmsg_u32_pair_put(fmsg, "tail", READ_ONCE(q->sq.tail));
	devlink_fmsg_bool_pair_put(fmsg, "stopped", netif_xmit_stopped(queue));
}

/*
 * Take rtnl within a second. Its holder may wait for a late device, and the recovery of that for
 * the caller's locks. Return: false if rtnl is busy.
 */
static bool ornic_rtnl_lock_soon(void)
{
	int tries = 50;

	while (!rtnl_trylock()) {
		if (!--tries)
			return false;
		msleep(20);
	}
	return true;
}

static int ornic_tx_diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			     struct netlink_ext_ack *extack)
{
	struct ornic_core *core = devlink_health_reporter_priv(reporter);
	int err = 0;

	mutex_lock(&core->state_lock);
	if (!core->nd) {
		/* no queue */
	} else if (ornic_rtnl_lock_soon()) {
		ornic_fmsg_queues(fmsg, core->nd);
		rtnl_unlock();
	} else {
		NL_SET_ERR_MSG_MOD(extack, "the interface is being changed: try again");
		err = -EBUSY;
	}
	mutex_unlock(&core->state_lock);
	return err;
}

/* Under devl_lock(). */
static int ornic_tx_recover(struct devlink_health_reporter *reporter, void *context,
			    struct netlink_ext_ack *extack)
{
	struct ornic_core *core = devlink_health_reporter_priv(reporter);
	int err;

	ornic_device_hurry(&core->odev);
	mutex_lock(&core->state_lock);
	err = ornic_netdev_recover(core);
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
	core->tx_failed = err;
	if (err)
		NL_SET_ERR_MSG_MOD(extack, "the queues cannot be created");
	return err;
}

static const struct devlink_health_reporter_ops ornic_tx_ops = {
	.name		= "tx",
	.recover	= ornic_tx_recover,
	.diagnose	= ornic_tx_diagnose,
};

/**
 * ornic_reporters_create() - create the health reporters
 * @core: device; its devlink instance is not registered
 *
 * Context: process, under devl_lock(). Return: 0 or negative errno.
 */
int ornic_reporters_create(struct ornic_core *core)
{
	core->fw_reporter = devl_health_reporter_create(core->devlink, &ornic_fw_ops, core);
	if (IS_ERR(core->fw_reporter))
		return PTR_ERR(core->fw_reporter);
	core->tx_reporter = devl_health_reporter_create(core->devlink, &ornic_tx_ops, core);
	if (!IS_ERR(core->tx_reporter))
		return 0;
	devl_health_reporter_destroy(core->fw_reporter);
	return PTR_ERR(core->tx_reporter);
}

/* ornic_reporters_destroy() - under devl_lock(), after ornic_recover_end(). */
void ornic_reporters_destroy(struct ornic_core *core)
{
	devl_health_reporter_destroy(core->tx_reporter);
	devl_health_reporter_destroy(core->fw_reporter);
}

/**
 * ornic_reporters_update_locked() - tell devlink whether the device lives
 * @core: device, registered with devlink
 *
 * Call it after a start of the device that was no recovery, before ornic_recover_begin(). A
 * device that has died since counts as living, because the report of that is still to come.
 * Context: process, under devl_lock().
 */
void ornic_reporters_update_locked(struct ornic_core *core)
{
	enum devlink_health_reporter_state state;
	bool reported;

	mutex_lock(&core->state_lock);
	reported = core->up && ornic_dead(core) && core->recoverable;
	state = core->up ? DEVLINK_HEALTH_REPORTER_STATE_HEALTHY :
			   DEVLINK_HEALTH_REPORTER_STATE_ERROR;
	mutex_unlock(&core->state_lock);
	if (reported)
		return;
	core->late_shown = false;
	devlink_health_reporter_state_update(core->fw_reporter, state);
}

/* ornic_reporters_update() - as ornic_reporters_update_locked(), but takes devl_lock(). */
void ornic_reporters_update(struct ornic_core *core)
{
	devl_lock(core->devlink);
	ornic_reporters_update_locked(core);
	devl_unlock(core->devlink);
}

/* Under devl_lock(). */
static void ornic_show_late(struct ornic_core *core, bool late)
{
	if (core->late_shown == late)
		return;
	core->late_shown = late;
	devlink_health_reporter_state_update(core->fw_reporter, late ?
					     DEVLINK_HEALTH_REPORTER_STATE_ERROR :
					     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/*
 * Return: true if a death is to be reported. devl_lock() waits for the end of a recovery that
 * an administrator started: devlink sets the state of the reporter behind it.
 */
static bool ornic_death_pending(struct ornic_core *core)
{
	bool pending;

	devl_lock(core->devlink);
	mutex_lock(&core->state_lock);
	pending = core->up && ornic_dead(core) && core->recoverable;
	mutex_unlock(&core->state_lock);
	if (pending)
		ornic_show_late(core, false);
	devl_unlock(core->devlink);
	return pending;
}

/**
 * ornic_report_death() - report the death of the device, which starts the recovery
 * @core: device, registered with devlink
 *
 * Context: process, without locks. Does nothing if the device lives or is down.
 */
void ornic_report_death(struct ornic_core *core)
{
	if (!ornic_death_pending(core))
		return;
	devlink_health_report(core->fw_reporter, ornic_reason_text(core->last_death), core);

	mutex_lock(&core->state_lock);
	if (core->up && ornic_dead(core) && core->recoverable)
		dev_err(ornic_dma_dev(core),
			"no automatic recovery: recover the device by devlink health\n");
	mutex_unlock(&core->state_lock);
}

/**
 * ornic_report_tx() - report a stuck send queue, which replaces the queues
 * @core: device, registered with devlink
 *
 * If an earlier recovery failed, its queues are gone: the queue that is stuck now is a new one.
 * Context: process, without locks.
 */
void ornic_report_tx(struct ornic_core *core)
{
	devl_lock(core->devlink);
	if (core->tx_failed)
		devlink_health_reporter_state_update(core->tx_reporter,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	core->tx_failed = false;
	devl_unlock(core->devlink);
	devlink_health_report(core->tx_reporter, "send queue stuck", core);
}

/**
 * ornic_report_late() - let the state of the reporter "fw" show whether the device is late
 * @core: device, registered with devlink
 *
 * Context: process, without locks. Does nothing if the device is dead: its report is to come.
 */
void ornic_report_late(struct ornic_core *core)
{
	devl_lock(core->devlink);
	if (!ornic_dead(core))
		ornic_show_late(core, ornic_late(core));
	devl_unlock(core->devlink);
}
