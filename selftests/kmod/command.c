// SPDX-License-Identifier: GPL-2.0
/*
 * Take the place of ornic_ib, and run admin commands at once: create memory regions. Parameters:
 * pages, the length of each one's page list; copies, the number of commands. The lists do not
 * exist, so the device rejects them.
 */
#include <linux/auxiliary_bus.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include <linux/ornic/core.h>
#include <linux/ornic/hw/mr.h>

#define COMMAND_MOST	8

static unsigned long pages = 1;
module_param(pages, ulong, 0444);
MODULE_PARM_DESC(pages, "number of pages in a list");

static unsigned int copies = 1;
module_param(copies, uint, 0444);
MODULE_PARM_DESC(copies, "number of commands");

static struct command {
	struct work_struct work;
	struct ornic_dev *odev;
	typeof(ornic_cmd_exec) *exec;
} commands[COMMAND_MOST];

static void command_work(struct work_struct *work)
{
	struct command *command = container_of(work, struct command, work);
	struct ornic_key_create_cmd in = {
		.kind = ORNIC_KEY_REGION,
		.length = cpu_to_le64((u64)pages << ORNIC_PAGES_MIN_SHIFT),
		.pages = { .level = 2, .page_shift = ORNIC_PAGES_MIN_SHIFT },
	};
	struct ornic_cmd cmd = { .opcode = ORNIC_OP_KEY_CREATE, .in = &in, .in_len = sizeof(in) };

	command->exec(command->odev, &cmd);
}

static int command_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	typeof(ornic_cmd_exec) *exec = symbol_get(ornic_cmd_exec);
	unsigned int i;

	if (!exec)
		return -ENOENT;
	for (i = 0; i < min(copies, COMMAND_MOST); i++) {
		commands[i].odev = ornic_adev_to_odev(adev);
		commands[i].exec = exec;
		INIT_WORK(&commands[i].work, command_work);
		queue_work(system_unbound_wq, &commands[i].work);
	}
	while (i--)
		flush_work(&commands[i].work);
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

MODULE_DESCRIPTION("admin commands with long page lists, for tests");
MODULE_LICENSE("GPL");
