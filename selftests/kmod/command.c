// SPDX-License-Identifier: GPL-2.0
/*
 * Take the place of ornic_ib, and run one admin command: create a memory region whose page list is
 * as long as parameter log_pages says. The list does not exist, so the device rejects it.
 */
#include <linux/auxiliary_bus.h>
#include <linux/module.h>

#include <linux/ornic/core.h>
#include <linux/ornic/hw/mr.h>

static unsigned int log_pages;
module_param(log_pages, uint, 0444);
MODULE_PARM_DESC(log_pages, "log2 of the number of pages");

static int command_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct ornic_key_create_cmd in = {
		.kind = ORNIC_KEY_REGION,
		.length = cpu_to_le64(1ull << (log_pages + ORNIC_PAGES_MIN_SHIFT)),
		.pages = { .level = 2, .page_shift = ORNIC_PAGES_MIN_SHIFT },
	};
	struct ornic_cmd cmd = { .opcode = ORNIC_OP_KEY_CREATE, .in = &in, .in_len = sizeof(in) };
	typeof(ornic_cmd_exec) *exec = symbol_get(ornic_cmd_exec);

	if (!exec)
		return -ENOENT;
	exec(ornic_adev_to_odev(adev), &cmd);
	symbol_put(ornic_cmd_exec);
	return -ENODEV;
}

static const struct auxiliary_device_id command_ids[] = {
	{ .name = ORNIC_ADEV_MATCH },
	{ }
};

static struct auxiliary_driver command_driver = {
	.probe = command_probe,
	.id_table = command_ids,
};
module_auxiliary_driver(command_driver);

MODULE_DESCRIPTION("admin command with a long page list, for tests");
MODULE_LICENSE("GPL");
