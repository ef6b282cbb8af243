// SPDX-License-Identifier: GPL-2.0
/*
 * Make the kernel believe that the PCI channel of a function is offline, as after a bus error,
 * until the module is unloaded. Parameters: bus and slot of the function.
 */
#include <linux/module.h>
#include <linux/pci.h>

static unsigned int bus = 1;
module_param(bus, uint, 0444);
MODULE_PARM_DESC(bus, "number of the bus");

static unsigned int slot;
module_param(slot, uint, 0444);
MODULE_PARM_DESC(slot, "number of the slot");

static struct pci_dev *function;

static int __init offline_init(void)
{
	function = pci_get_domain_bus_and_slot(0, bus, PCI_DEVFN(slot, 0));
	if (!function)
		return -ENODEV;
	function->error_state = pci_channel_io_frozen;
	return 0;
}

static void __exit offline_exit(void)
{
	function->error_state = pci_channel_io_normal;
	pci_dev_put(function);
}

module_init(offline_init);
module_exit(offline_exit);

MODULE_DESCRIPTION("PCI channel that is offline, for tests");
MODULE_LICENSE("GPL");
