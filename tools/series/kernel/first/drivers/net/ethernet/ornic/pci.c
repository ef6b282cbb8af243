// SPDX-License-Identifier: GPL-2.0
/*
 * PCI function: probe and remove. Nothing uses the function yet.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>

#include <linux/ornic/hw/admin.h>
#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/dm.h>
#include <linux/ornic/hw/eq.h>
#include <linux/ornic/hw/identify.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/pd.h>
#include <linux/ornic/hw/port.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/regs.h>
#include <linux/ornic/hw/ring.h>
#include <linux/ornic/hw/srq.h>
#include <linux/ornic/hw/stats.h>
#include <linux/ornic/hw/steer.h>
#include <linux/ornic/hw/wqe.h>

#define ORNIC_DRV_NAME		"ornic"

static int ornic_pci_enable(struct pci_dev *pdev)
{
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_mem_regions(pdev, ORNIC_DRV_NAME);
	if (err)
		goto disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto release;
	return 0;

release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void ornic_pci_disable(struct pci_dev *pdev)
{
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

static int ornic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	return ornic_pci_enable(pdev);
}

static void ornic_remove(struct pci_dev *pdev)
{
	ornic_pci_disable(pdev);
}

static const struct pci_device_id ornic_ids[] = {
	{ PCI_DEVICE(ORNIC_PCI_VENDOR_ID, ORNIC_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ornic_ids);

static struct pci_driver ornic_driver = {
	.name		= ORNIC_DRV_NAME,
	.id_table	= ornic_ids,
	.probe		= ornic_probe,
	.remove		= ornic_remove,
};
module_pci_driver(ornic_driver);

MODULE_DESCRIPTION("ornic open RDMA network interface: core and Ethernet");
MODULE_LICENSE("GPL");
