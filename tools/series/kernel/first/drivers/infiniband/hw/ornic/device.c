// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of an ornic function: driver of the auxiliary device that
 * ornic.ko creates. It rejects the device until the driver has all verbs that
 * ib_core requires.
 */
#include <linux/auxiliary_bus.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>

#include <linux/ornic/core.h>

static int ornic_ib_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	return -ENODEV;
}

static const struct auxiliary_device_id ornic_ib_ids[] = {
	{ .name = ORNIC_ADEV_MATCH },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, ornic_ib_ids);

static struct auxiliary_driver ornic_ib_driver = {
	.name = "rdma",
	.probe = ornic_ib_probe,
	.id_table = ornic_ib_ids,
};
module_auxiliary_driver(ornic_ib_driver);

MODULE_DESCRIPTION("RDMA driver of the ornic open RDMA network interface");
MODULE_LICENSE("GPL");
