// SPDX-License-Identifier: GPL-2.0
/*
 * PCI function: probe and remove, suspend and resume, shutdown, error recovery,
 * function level reset.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "netdev.h"
#include "ornic.h"

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
	pci_save_state(pdev);	/* for ornic_slot_reset() */
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
	if (pci_is_enabled(pdev))	/* not after an error without a slot reset */
		pci_disable_device(pdev);
}

static struct ornic_core *ornic_core_alloc(struct pci_dev *pdev)
{
	struct ornic_core *core;

	core = kvzalloc_obj(*core);
	if (!core)
		return NULL;
	core->pdev = pdev;
	core->odev.pdev = pdev;
	core->odev.core = core;
	mutex_init(&core->state_lock);
	spin_lock_init(&core->death_lock);
	xa_init(&core->comps);
	init_rwsem(&core->odev.numbers);
	ornic_admin_init(core);
	ornic_health_init(core);
	ornic_reset_init(core);
	core->dead = true;	/* until bring-up */
	return core;
}

static void ornic_core_free(struct ornic_core *core)
{
	xa_destroy(&core->comps);
	mutex_destroy(&core->state_lock);
	kvfree(core);
}

/**
 * ornic_start() - bring the device up, then create network interface and auxiliary device
 * @core: device, down, without interface
 *
 * Context: process. The caller calls ornic_recover_begin(). Return: 0 or negative errno: then
 * the device is as before.
 */
int ornic_start(struct ornic_core *core)
{
	int err;

	ornic_device_hurry(&core->odev);
	mutex_lock(&core->state_lock);
	if (core->held) {
		err = -EBUSY;
		goto unlock;
	}
	err = ornic_bringup(core);
	if (err)
		goto unlock;
	ornic_health_start(core);
	err = ornic_netdev_create(core);
	if (err)
		goto teardown;
	err = ornic_auxdev_add(core);
	if (err)
		goto destroy_netdev;
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
	return 0;

destroy_netdev:
	ornic_netdev_destroy(core);
teardown:
	ornic_health_stop(core);
	ornic_teardown(core, ORNIC_REASON_SHUTDOWN);
unlock:
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
	return err;
}

/**
 * ornic_stop() - undo ornic_start(), whatever state the device is in
 * @core: device
 * @reason: enum ornic_reset_reason, reported to a device that lives
 *
 * Context: process. Starts no more recoveries; one that was started finds the device down.
 */
void ornic_stop(struct ornic_core *core, u16 reason)
{
	ornic_device_hurry(&core->odev);
	mutex_lock(&core->state_lock);
	ornic_recover_forbid(core);
	if (core->up && ornic_ctrl_gone(core))
		ornic_fatal(core, ORNIC_REASON_SHUTDOWN);
	ornic_auxdev_del(core);
	ornic_netdev_destroy(core);
	if (core->up) {
		ornic_health_settle(core);
		ornic_health_stop(core);
		ornic_teardown(core, reason);
	}
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
}

static int ornic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct ornic_core *core;
	int err;

	core = ornic_core_alloc(pdev);
	if (!core)
		return -ENOMEM;
	err = ornic_pci_enable(pdev);
	if (err)
		goto free;
	err = ornic_ctrl_map(core);
	if (err)
		goto disable;
	err = ornic_dbpages_init(core);
	if (err)
		goto unmap;
	err = ornic_events_init(core);
	if (err)
		goto dbpages;
	err = ornic_devlink_init(core);
	if (err)
		goto events;
	pci_set_drvdata(pdev, core);
	err = ornic_start(core);
	if (err)
		goto devlink;
	ornic_devlink_register(core);
	return 0;

devlink:
	ornic_devlink_cleanup(core);
events:
	ornic_events_cleanup(core);
dbpages:
	ornic_dbpages_cleanup(core);
unmap:
	ornic_ctrl_unmap(core);
disable:
	ornic_pci_disable(pdev);
free:
	ornic_core_free(core);
	return err;
}

static void ornic_remove(struct pci_dev *pdev)
{
	struct ornic_core *core = pci_get_drvdata(pdev);

	ornic_devlink_unregister(core);
	ornic_stop(core, ORNIC_REASON_SHUTDOWN);
	ornic_devlink_cleanup(core);
	ornic_events_cleanup(core);
	ornic_dbpages_cleanup(core);
	ornic_ctrl_unmap(core);
	ornic_pci_disable(pdev);
	ornic_core_free(core);
}

/* Take the device down. It cannot be started before ornic_unhold(). */
static void ornic_hold(struct ornic_core *core, u16 reason)
{
	ornic_device_hurry(&core->odev);
	ornic_recover_end(core);
	mutex_lock(&core->state_lock);
	core->held = true;
	ornic_recover_forbid(core);	/* a reload may have allowed it again */
	ornic_quiesce(core, reason);
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
}

/* Restart the device. After a devlink reload that failed it has no interface and stays down. */
static int ornic_unhold(struct ornic_core *core)
{
	int err = 0;

	pci_save_state(core->pdev);	/* restoring it has consumed the saved state */
	ornic_device_hurry(&core->odev);
	mutex_lock(&core->state_lock);
	core->held = false;
	core->gone = false;	/* the caller has restored the function */
	if (core->nd)
		err = ornic_revive_retry(core);
	mutex_unlock(&core->state_lock);
	ornic_device_unhurry(&core->odev);
	ornic_reporters_update(core);
	ornic_recover_begin(core);
	return err;
}

static void ornic_shutdown(struct pci_dev *pdev)
{
	ornic_hold(pci_get_drvdata(pdev), ORNIC_REASON_SHUTDOWN);
	pci_clear_master(pdev);
}

static int ornic_suspend(struct device *dev)
{
	ornic_hold(dev_get_drvdata(dev), ORNIC_REASON_SUSPEND);
	return 0;
}

static int ornic_resume(struct device *dev)
{
	return ornic_unhold(dev_get_drvdata(dev));
}

static DEFINE_SIMPLE_DEV_PM_OPS(ornic_pm_ops, ornic_suspend, ornic_resume);

/* The bus has failed: access no register before the slot is reset. */
static pci_ers_result_t ornic_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct ornic_core *core = pci_get_drvdata(pdev);

	ornic_recover_forbid(core);
	ornic_fatal(core, ORNIC_REASON_FATAL);	/* ends commands of a recovery that runs */
	ornic_hold(core, ORNIC_REASON_FATAL);
	if (state == pci_channel_io_perm_failure) {
		ornic_reporters_update(core);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	if (pci_is_enabled(pdev))
		pci_disable_device(pdev);
	return PCI_ERS_RESULT_NEED_RESET;
}

/* Bus mastering stays off until the device has been reset by its register, too (ORN-CTL-25). */
static pci_ers_result_t ornic_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev);
	if (pci_enable_device_mem(pdev)) {
		dev_err(&pdev->dev, "function cannot be enabled after a slot reset\n");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	pci_clear_master(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void ornic_error_resume(struct pci_dev *pdev)
{
	ornic_unhold(pci_get_drvdata(pdev));
}

static void ornic_reset_prepare(struct pci_dev *pdev)
{
	ornic_hold(pci_get_drvdata(pdev), ORNIC_REASON_USER);
}

static void ornic_reset_done(struct pci_dev *pdev)
{
	ornic_unhold(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers ornic_error_handlers = {
	.error_detected	= ornic_error_detected,
	.slot_reset	= ornic_slot_reset,
	.resume		= ornic_error_resume,
	.reset_prepare	= ornic_reset_prepare,
	.reset_done	= ornic_reset_done,
};

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
	.shutdown	= ornic_shutdown,
	.driver.pm	= pm_sleep_ptr(&ornic_pm_ops),
	.err_handler	= &ornic_error_handlers,
};
module_pci_driver(ornic_driver);

MODULE_DESCRIPTION("ornic open RDMA network interface: core and Ethernet");
MODULE_LICENSE("GPL");
