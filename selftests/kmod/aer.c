// SPDX-License-Identifier: GPL-2.0
/*
 * Call the PCI error handlers of ornic.ko as the kernel's recovery from a PCIe error does, for
 * machines whose ports cannot inject one. Loading the module is one such recovery; it fails
 * if a handler does not answer as expected. Parameters: permanent, the error cannot be
 * recovered; lose, the reset of the slot clears the configuration space.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/string.h>

static bool permanent;
module_param(permanent, bool, 0444);
MODULE_PARM_DESC(permanent, "report an error that cannot be recovered");

static bool lose = true;
module_param(lose, bool, 0444);
MODULE_PARM_DESC(lose, "clear command register and BARs, as a reset of the slot does");

static pci_ers_result_t aer_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	const struct pci_error_handlers *handlers;
	pci_ers_result_t result = PCI_ERS_RESULT_NONE;

	device_lock(&pdev->dev);
	handlers = pdev->driver ? pdev->driver->err_handler : NULL;
	pdev->error_state = state;
	if (handlers)
		result = handlers->error_detected(pdev, state);
	device_unlock(&pdev->dev);
	return result;
}

static void aer_lose(struct pci_dev *pdev)
{
	int i;

	pci_write_config_word(pdev, PCI_COMMAND, 0);
	for (i = 0; i < PCI_STD_NUM_BARS; i++)
		pci_write_config_dword(pdev, PCI_BASE_ADDRESS_0 + 4 * i, 0);
}

static pci_ers_result_t aer_slot_reset(struct pci_dev *pdev)
{
	pci_ers_result_t result;

	device_lock(&pdev->dev);
	result = pdev->driver->err_handler->slot_reset(pdev);
	device_unlock(&pdev->dev);
	return result;
}

static void aer_resume(struct pci_dev *pdev)
{
	device_lock(&pdev->dev);
	pdev->error_state = pci_channel_io_normal;
	pdev->driver->err_handler->resume(pdev);
	device_unlock(&pdev->dev);
}

static int aer_recover(struct pci_dev *pdev)
{
	pci_ers_result_t result;

	if (permanent) {
		result = aer_detected(pdev, pci_channel_io_perm_failure);
		return result == PCI_ERS_RESULT_DISCONNECT ? 0 : -EIO;
	}
	result = aer_detected(pdev, pci_channel_io_frozen);
	if (result != PCI_ERS_RESULT_NEED_RESET)
		return -EIO;
	if (lose)
		aer_lose(pdev);
	result = aer_slot_reset(pdev);
	if (result != PCI_ERS_RESULT_RECOVERED)
		return -EIO;
	aer_resume(pdev);
	return 0;
}

/* Return: the first function of ornic.ko with a reference, or NULL. */
static struct pci_dev *aer_find(void)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev)
		if (pdev->driver && !strcmp(pdev->driver->name, "ornic"))
			break;
	return pdev;
}

static int __init aer_init(void)
{
	struct pci_dev *pdev = aer_find();
	int err;

	if (!pdev)
		return -ENODEV;
	err = aer_recover(pdev);
	pci_dev_put(pdev);
	return err;
}

static void __exit aer_exit(void)
{
}

module_init(aer_init);
module_exit(aer_exit);

MODULE_DESCRIPTION("recovery from a PCIe error, for tests");
MODULE_LICENSE("GPL");
