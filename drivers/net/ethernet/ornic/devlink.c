// SPDX-License-Identifier: GPL-2.0
/*
 * devlink: serial number and versions of the device, its port, its parameters, and the reload
 * that makes parameters take effect. The health reporters are in reporter.c.
 *
 * A reload removes the network interface and the auxiliary device and creates them again.
 * Recovery, suspend and PCI resets keep the interface and do not touch devlink objects.
 */
#include <linux/slab.h>
#include <net/devlink.h>

#include "ornic.h"

/* Missed beats after which a device counts as late, unless an administrator changed it. */
#define ORNIC_LATE_BEATS	3

enum ornic_devlink_param {
	ORNIC_PARAM_LATE_BEATS = DEVLINK_PARAM_GENERIC_ID_MAX + 1,
};

struct ornic_devlink {
	struct ornic_core *core;
};

static struct ornic_core *ornic_devlink_core(struct devlink *devlink)
{
	struct ornic_devlink *odl = devlink_priv(devlink);

	return odl->core;
}

/* Copy a text of Identify, which need not end with NUL. Return: NULL without memory. */
static char *ornic_id_text(const u8 *text, size_t size)
{
	return kstrndup((const char *)text, size, GFP_KERNEL);
}

static int ornic_put_serial(struct devlink_info_req *req, const struct ornic_identify_device *id)
{
	char *serial = ornic_id_text(id->serial, sizeof(id->serial));
	int err;

	if (!serial)
		return -ENOMEM;
	err = devlink_info_serial_number_put(req, serial);
	kfree(serial);
	return err;
}

static int ornic_put_firmware(struct devlink_info_req *req, const struct ornic_identify_device *id)
{
	char *version = ornic_id_text(id->fw_version, sizeof(id->fw_version));
	int err;

	if (!version)
		return -ENOMEM;
	err = devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, version);
	kfree(version);
	return err;
}

static int ornic_put_versions(struct devlink_info_req *req, const struct ornic_identify_device *id)
{
	char revision[12];
	int err;

	err = ornic_put_serial(req, id);
	if (!err)
		err = ornic_put_firmware(req, id);
	if (err)
		return err;
	snprintf(revision, sizeof(revision), "%u", le32_to_cpu(id->hw_version));
	return devlink_info_version_fixed_put(req, DEVLINK_INFO_VERSION_GENERIC_ASIC_REV,
					      revision);
}

static int ornic_devlink_info(struct devlink *devlink, struct devlink_info_req *req,
			      struct netlink_ext_ack *extack)
{
	struct ornic_core *core = ornic_devlink_core(devlink);
	int err;

	mutex_lock(&core->state_lock);	/* a recovery reads the page again */
	err = ornic_put_versions(req, &core->odev.id);
	mutex_unlock(&core->state_lock);
	return err;
}

/*
 * The port of the network interface. It goes during a reload, because devlink (6.12 to 7.2) warns
 * of a port that is there between reload_down() and reload_up().
 */
static int ornic_port_add(struct ornic_core *core)
{
	struct devlink_port_attrs attrs = {
		.flavour = DEVLINK_PORT_FLAVOUR_PHYSICAL,
		.phys.port_number = ORNIC_PORT,
	};
	int err;

	devlink_port_attrs_set(&core->devlink_port, &attrs);
	err = devl_port_register(core->devlink, &core->devlink_port, ORNIC_PORT);
	core->port_added = !err;
	return err;
}

static void ornic_port_del(struct ornic_core *core)
{
	if (core->port_added)
		devl_port_unregister(&core->devlink_port);
	core->port_added = false;
}

static int ornic_reload_down(struct devlink *devlink, bool netns_change,
			     enum devlink_reload_action action, enum devlink_reload_limit limit,
			     struct netlink_ext_ack *extack)
{
	struct ornic_core *core = ornic_devlink_core(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack,
				   "move the interface and the RDMA device to the namespace instead");
		return -EOPNOTSUPP;
	}
	if (READ_ONCE(core->held)) {
		NL_SET_ERR_MSG_MOD(extack, "the PCI function is being reset or has failed");
		return -EBUSY;
	}
	ornic_stop(core, ORNIC_REASON_USER);
	ornic_port_del(core);
	return 0;
}

/* Take over the parameters that were set since the last start. */
static void ornic_params_apply(struct ornic_core *core)
{
	union devlink_param_value value;

	if (!devl_param_driverinit_value_get(core->devlink,
					     DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA, &value))
		core->rdma = value.vbool;
	if (!devl_param_driverinit_value_get(core->devlink, ORNIC_PARAM_LATE_BEATS, &value))
		core->late_beats = value.vu8;
}

static int ornic_reload_start(struct ornic_core *core)
{
	int err;

	ornic_params_apply(core);
	err = ornic_port_add(core);
	if (err)
		return err;
	err = ornic_start(core);
	if (err)
		ornic_port_del(core);
	return err;
}

/* After a failure the device is down and has no interface: another reload may start it. */
static int ornic_reload_up(struct devlink *devlink, enum devlink_reload_action action,
			   enum devlink_reload_limit limit, u32 *actions_performed,
			   struct netlink_ext_ack *extack)
{
	struct ornic_core *core = ornic_devlink_core(devlink);
	int err;

	WRITE_ONCE(core->gone, false);	/* a late device looked gone, and may be back */
	err = ornic_reload_start(core);
	ornic_reporters_update_locked(core);
	if (!err)
		ornic_recover_begin(core);
	if (err == -EBUSY)
		NL_SET_ERR_MSG_MOD(extack, "the PCI function is being reset: reload again");
	else if (err == -ENODEV)
		NL_SET_ERR_MSG_MOD(extack, "the device has left the bus");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack,
				   "the device does not start: see the kernel's log, then reload again");
	else
		*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	return err;
}

static const struct devlink_ops ornic_devlink_ops = {
	.reload_actions	= BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down	= ornic_reload_down,
	.reload_up	= ornic_reload_up,
	.info_get	= ornic_devlink_info,
};

static const struct devlink_param ornic_devlink_params[] = {
	DEVLINK_PARAM_GENERIC(ENABLE_RDMA, BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL, NULL),
	DEVLINK_PARAM_DRIVER(ORNIC_PARAM_LATE_BEATS, "late_beats", DEVLINK_PARAM_TYPE_U8,
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL, NULL),
};

static int ornic_params_add(struct ornic_core *core)
{
	union devlink_param_value rdma = { .vbool = true };
	union devlink_param_value late_beats = { .vu8 = ORNIC_LATE_BEATS };
	int err;

	err = devl_params_register(core->devlink, ornic_devlink_params,
				   ARRAY_SIZE(ornic_devlink_params));
	if (err)
		return err;
	devl_param_driverinit_value_set(core->devlink, DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA,
					&rdma);
	devl_param_driverinit_value_set(core->devlink, ORNIC_PARAM_LATE_BEATS, &late_beats);
	core->rdma = rdma.vbool;
	core->late_beats = late_beats.vu8;
	return 0;
}

static void ornic_params_del(struct ornic_core *core)
{
	devl_params_unregister(core->devlink, ornic_devlink_params,
			       ARRAY_SIZE(ornic_devlink_params));
}

static int ornic_devlink_objects(struct ornic_core *core)
{
	int err;

	err = ornic_params_add(core);
	if (err)
		return err;
	err = ornic_port_add(core);
	if (err)
		goto params;
	err = ornic_reporters_create(core);
	if (err)
		goto port;
	return 0;

port:
	ornic_port_del(core);
params:
	ornic_params_del(core);
	return err;
}

/**
 * ornic_devlink_init() - create the devlink instance and its objects
 * @core: device, not started
 *
 * Users see nothing of it before ornic_devlink_register(). Return: 0 or negative errno.
 */
int ornic_devlink_init(struct ornic_core *core)
{
	struct ornic_devlink *odl;
	int err;

	core->devlink = devlink_alloc(&ornic_devlink_ops, sizeof(*odl), ornic_dma_dev(core));
	if (!core->devlink)
		return -ENOMEM;
	odl = devlink_priv(core->devlink);
	odl->core = core;
	devl_lock(core->devlink);
	err = ornic_devlink_objects(core);
	devl_unlock(core->devlink);
	if (err)
		devlink_free(core->devlink);
	return err;
}

/* ornic_devlink_cleanup() - undo ornic_devlink_init(). The network interface no longer exists. */
void ornic_devlink_cleanup(struct ornic_core *core)
{
	devl_lock(core->devlink);
	ornic_reporters_destroy(core);
	ornic_port_del(core);
	ornic_params_del(core);
	devl_unlock(core->devlink);
	devlink_free(core->devlink);
}

/* ornic_devlink_register() - let users see the instance, and devlink recover the device. */
void ornic_devlink_register(struct ornic_core *core)
{
	devlink_register(core->devlink);
	ornic_recover_begin(core);
}

/*
 * ornic_devlink_unregister() - end the recovery, then hide the instance from users. A report
 * needs a registered instance, and a reload that still runs must not begin another recovery.
 */
void ornic_devlink_unregister(struct ornic_core *core)
{
	spin_lock_irq(&core->death_lock);
	core->closing = true;
	spin_unlock_irq(&core->death_lock);
	ornic_recover_end(core);
	devlink_unregister(core->devlink);
}
