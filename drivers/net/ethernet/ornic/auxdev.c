// SPDX-License-Identifier: GPL-2.0
/*
 * The auxiliary device that ornic_ib.ko binds to. It exists exactly while the
 * device is up and its network interface registered, unless RDMA is disabled.
 */
#include <linux/idr.h>
#include <linux/slab.h>

#include "ornic.h"

static DEFINE_IDA(ornic_auxdev_ids);

static void ornic_auxdev_release(struct device *dev)
{
	struct auxiliary_device *adev = to_auxiliary_dev(dev);

	ida_free(&ornic_auxdev_ids, adev->id);
	kfree(container_of(adev, struct ornic_adev, adev));
}

/* ornic_auxdev_add() - create the auxiliary device, if wanted. Return: 0 or negative errno. */
int ornic_auxdev_add(struct ornic_core *core)
{
	struct ornic_adev *oadev;
	int err, id;

	if (!core->rdma)
		return 0;
	oadev = kzalloc_obj(*oadev);
	if (!oadev)
		return -ENOMEM;
	id = ida_alloc(&ornic_auxdev_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(oadev);
		return id;
	}
	oadev->odev = &core->odev;
	oadev->adev.name = ORNIC_ADEV_NAME;
	oadev->adev.id = id;
	oadev->adev.dev.parent = ornic_dma_dev(core);
	oadev->adev.dev.release = ornic_auxdev_release;
	err = auxiliary_device_init(&oadev->adev);
	if (err) {
		ida_free(&ornic_auxdev_ids, id);
		kfree(oadev);
		return err;
	}
	err = auxiliary_device_add(&oadev->adev);
	if (err) {
		auxiliary_device_uninit(&oadev->adev);
		return err;
	}
	core->adev = oadev;
	return 0;
}

/* ornic_auxdev_del() - remove the auxiliary device; waits for its driver's remove. */
void ornic_auxdev_del(struct ornic_core *core)
{
	struct ornic_adev *oadev = core->adev;

	if (!oadev)
		return;
	core->adev = NULL;
	auxiliary_device_delete(&oadev->adev);
	auxiliary_device_uninit(&oadev->adev);
}
