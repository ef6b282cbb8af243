// SPDX-License-Identifier: GPL-2.0
/*
 * devlink: serial number and versions of the device, for "devlink dev info".
 */
#include <linux/slab.h>
#include <net/devlink.h>

#include "ornic.h"

struct ornic_devlink {
	struct ornic_core *core;
};

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

static int ornic_devlink_info(struct devlink *devlink, struct devlink_info_req *req,
			      struct netlink_ext_ack *extack)
{
	struct ornic_devlink *odl = devlink_priv(devlink);
	const struct ornic_identify_device *id = &odl->core->odev.id;
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

static const struct devlink_ops ornic_devlink_ops = {
	.info_get = ornic_devlink_info,
};

/* ornic_devlink_add() - register the device with devlink. Return: 0 or -ENOMEM. */
int ornic_devlink_add(struct ornic_core *core)
{
	struct ornic_devlink *odl;

	core->devlink = devlink_alloc(&ornic_devlink_ops, sizeof(*odl), ornic_dma_dev(core));
	if (!core->devlink)
		return -ENOMEM;
	odl = devlink_priv(core->devlink);
	odl->core = core;
	devlink_register(core->devlink);
	return 0;
}

void ornic_devlink_del(struct ornic_core *core)
{
	devlink_unregister(core->devlink);
	devlink_free(core->devlink);
}
