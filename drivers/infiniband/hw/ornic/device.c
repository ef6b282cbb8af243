// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of an ornic function: probe and remove of the auxiliary device
 * that ornic.ko creates, registration of the ib_device.
 *
 * ornic.ko owns the hardware: commands, event queues, doorbell pages, recovery.
 * After a failure it removes the auxiliary device and adds a new one when the
 * hardware works again, so an RDMA device never outlives a reset. On a dead
 * device every destroy verb succeeds, because the objects died with it.
 */
#include <linux/auxiliary_bus.h>
#include <linux/bits.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <rdma/ornic-abi.h>

#include "ornic_ib.h"
#include "ah.h"
#include "cmd.h"
#include "counters.h"
#include "cq.h"
#include "dm.h"
#include "event.h"
#include "fast_reg.h"
#include "flow.h"
#include "gid.h"
#include "mcast.h"
#include "mmap.h"
#include "mr.h"
#include "mw.h"
#include "pd.h"
#include "post.h"
#include "qp.h"
#include "query.h"
#include "res.h"
#include "rwq.h"
#include "srq.h"
#include "ucontext.h"
#include "xrcd.h"

/* Consumers of the kernel let the device go within this time, in jiffies, or it is given up. */
#define ORNIC_IB_REMOVE_LIMIT	(30 * HZ)

static const struct ib_device_ops ornic_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = ORNIC_UVERBS_ABI_VERSION,

	.add_gid = ornic_ib_add_gid,
	.alloc_pd = ornic_ib_alloc_pd,
	.alloc_ucontext = ornic_ib_alloc_ucontext,
	.create_ah = ornic_ib_create_ah,
	.create_cq = ornic_ib_create_cq,
	.create_qp = ornic_ib_create_qp,
	.create_user_ah = ornic_ib_create_ah,
	.create_user_cq = ornic_ib_create_user_cq,
	.dealloc_pd = ornic_ib_dealloc_pd,
	.dealloc_ucontext = ornic_ib_dealloc_ucontext,
	.del_gid = ornic_ib_del_gid,
	.dereg_mr = ornic_ib_dereg_mr,
	.destroy_ah = ornic_ib_destroy_ah,
	.destroy_cq = ornic_ib_destroy_cq,
	.destroy_qp = ornic_ib_destroy_qp,
	.disassociate_ucontext = ornic_ib_disassociate_ucontext,
	.fill_res_cq_entry = ornic_ib_fill_res_cq,
	.fill_res_cq_entry_raw = ornic_ib_fill_res_cq_raw,
	.fill_res_mr_entry = ornic_ib_fill_res_mr,
	.fill_res_mr_entry_raw = ornic_ib_fill_res_mr_raw,
	.fill_res_qp_entry = ornic_ib_fill_res_qp,
	.fill_res_qp_entry_raw = ornic_ib_fill_res_qp_raw,
	.fill_res_srq_entry = ornic_ib_fill_res_srq,
	.fill_res_srq_entry_raw = ornic_ib_fill_res_srq_raw,
	.get_dev_fw_str = ornic_ib_get_dev_fw_str,
	.get_dma_mr = ornic_ib_get_dma_mr,
	.get_link_layer = ornic_ib_get_link_layer,
	.get_port_immutable = ornic_ib_get_port_immutable,
	.mmap = ornic_ib_mmap,
	.mmap_free = ornic_ib_mmap_free,
	.modify_qp = ornic_ib_modify_qp,
	.poll_cq = ornic_ib_poll_cq,
	.post_destroy_cq = ornic_ib_post_destroy_cq,
	.post_recv = ornic_ib_post_recv,
	.post_send = ornic_ib_post_send,
	.pre_destroy_cq = ornic_ib_pre_destroy_cq,
	.query_device = ornic_ib_query_device,
	.query_pkey = ornic_ib_query_pkey,
	.query_port = ornic_ib_query_port,
	.query_port_speed = ornic_ib_query_port_speed,
	.query_qp = ornic_ib_query_qp,
	.query_ucontext = ornic_ib_query_ucontext,
	.reg_user_mr = ornic_ib_reg_user_mr,
	.reg_user_mr_dmabuf = ornic_ib_reg_user_mr_dmabuf,
	.report_port_event = ornic_ib_report_port_event,
	.req_notify_cq = ornic_ib_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, ornic_ib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, ornic_ib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, ornic_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, ornic_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, ornic_ib_ucontext, ibucontext),
};

static const struct ib_device_ops ornic_ib_moderation_ops = {
	.modify_cq = ornic_ib_modify_cq,
};

static const struct ib_device_ops ornic_ib_srq_ops = {
	.create_srq = ornic_ib_create_srq,
	.destroy_srq = ornic_ib_destroy_srq,
	.modify_srq = ornic_ib_modify_srq,
	.post_srq_recv = ornic_ib_post_srq_recv,
	.query_srq = ornic_ib_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, ornic_ib_srq, ibsrq),
};

static const struct ib_device_ops ornic_ib_mcast_ops = {
	.attach_mcast = ornic_ib_attach_mcast,
	.detach_mcast = ornic_ib_detach_mcast,
};

static const struct ib_device_ops ornic_ib_fast_reg_ops = {
	.alloc_mr = ornic_ib_alloc_mr,
	.map_mr_sg = ornic_ib_map_mr_sg,
};

static const struct ib_device_ops ornic_ib_mw_ops = {
	.alloc_mw = ornic_ib_alloc_mw,
	.dealloc_mw = ornic_ib_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, ornic_ib_mw, ibmw),
};

static const struct ib_device_ops ornic_ib_steer_ops = {
	.create_flow = ornic_ib_create_flow,
	.destroy_flow = ornic_ib_destroy_flow,
};

static const struct ib_device_ops ornic_ib_xrc_ops = {
	.alloc_xrcd = ornic_ib_alloc_xrcd,
	.dealloc_xrcd = ornic_ib_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, ornic_ib_xrcd, ibxrcd),
};

static const struct ib_device_ops ornic_ib_resize_ops = {
	.resize_user_cq = ornic_ib_resize_cq,
};

static const struct ib_device_ops ornic_ib_rss_ops = {
	.create_rwq_ind_table = ornic_ib_create_rwq_table,
	.create_wq = ornic_ib_create_wq,
	.destroy_rwq_ind_table = ornic_ib_destroy_rwq_table,
	.destroy_wq = ornic_ib_destroy_wq,
	.modify_wq = ornic_ib_modify_wq,

	/* ib_core allocates the object; this driver needs no members of its own */
	.size_ib_rwq_ind_table = sizeof(struct ib_rwq_ind_table),
};

static const struct ib_device_ops ornic_ib_port_stats_ops = {
	.alloc_hw_port_stats = ornic_ib_alloc_port_stats,
	.get_hw_stats = ornic_ib_get_hw_stats,
};

static const struct ib_device_ops ornic_ib_device_stats_ops = {
	.alloc_hw_device_stats = ornic_ib_alloc_device_stats,
	.get_hw_stats = ornic_ib_get_hw_stats,
};

static const struct ib_device_ops ornic_ib_rereg_ops = {
	.rereg_user_mr = ornic_ib_rereg_user_mr,
};

static const struct ib_device_ops ornic_ib_dm_ops = {
	.alloc_dm = ornic_ib_alloc_dm,
	.dealloc_dm = ornic_ib_dealloc_dm,
	.reg_dm_mr = ornic_ib_reg_dm_mr,
};

/* Set only the operations that the device supports: ib_core derives features from them. */
static void ornic_set_ops(struct ornic_ib_dev *dev)
{
	ib_set_device_ops(&dev->ibdev, &ornic_ib_ops);
	if (dev->lim.dm_bytes)
		ib_set_device_ops(&dev->ibdev, &ornic_ib_dm_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(REREG)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_rereg_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(CQ_MODERATION)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_moderation_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(SRQ)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_srq_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(MCAST)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_mcast_ops);
	if (dev->lim.fast_reg_pages)
		ib_set_device_ops(&dev->ibdev, &ornic_ib_fast_reg_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(MW1)) || ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_mw_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(STEER)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_steer_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(XRC)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_xrc_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(CQ_RESIZE)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_resize_ops);
	if (ornic_has(dev->odev, ORNIC_FEATURE(RSS)))
		ib_set_device_ops(&dev->ibdev, &ornic_ib_rss_ops);
	if (dev->port_stats.count)
		ib_set_device_ops(&dev->ibdev, &ornic_ib_port_stats_ops);
	if (dev->device_stats.count)
		ib_set_device_ops(&dev->ibdev, &ornic_ib_device_stats_ops);
	if (dev->port_stats.count && dev->qp_stats.count)
		ib_set_device_ops(&dev->ibdev, &ornic_ib_qp_stats_ops);
}

/* Check that the device has RoCEv2 with RC, UD and GSI, which the connection manager needs. */
static int ornic_check_transport(struct ornic_ib_dev *dev)
{
	const u32 types = BIT(ORNIC_QPT_RC) | BIT(ORNIC_QPT_UD) | BIT(ORNIC_QPT_GSI);
	u32 count = min_t(u32, le32_to_cpu(dev->odev->id.transports), U8_MAX + 1);
	struct ornic_identify_transport tp;
	u32 i;
	int ret;

	if (!ornic_has(dev->odev, ORNIC_FEATURE(RC)) || !ornic_has(dev->odev, ORNIC_FEATURE(UD)))
		goto missing;
	for (i = 0; i < count; i++) {
		ret = ornic_ib_cmd_transport(dev, i, &tp);
		if (ret)
			return ret;
		if (tp.id == ORNIC_TP_ROCEV2 && (le32_to_cpu(tp.qp_types) & types) == types) {
			dev->data_in_order = le32_to_cpu(tp.flags) & ORNIC_TP_F_DATA_IN_ORDER;
			return 0;
		}
	}
missing:
	dev_info(ornic_ib_dma(dev), "device has no RoCEv2 with RC and UD, RDMA not available\n");
	return -EOPNOTSUPP;
}

/*
 * Driver-specific ioctl methods and attributes. uverbs drops those of an object
 * if the object's operations are missing.
 */
static const struct uapi_definition ornic_ib_uapi_defs[] = {
	UAPI_DEF_CHAIN(ornic_ib_dm_defs),
	UAPI_DEF_CHAIN(ornic_ib_import_defs),
	{}
};

static void ornic_fill_ibdev(struct ornic_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->node_guid = dev->odev->id.node_guid;
	ibdev->phys_port_cnt = ORNIC_IB_PORT;
	ibdev->num_comp_vectors = dev->odev->comp_vectors;
	ibdev->local_dma_lkey = dev->odev->dma_lkey;
	ibdev->dev.parent = ornic_ib_dma(dev);
	if (IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS))
		ibdev->driver_def = ornic_ib_uapi_defs;
	strscpy(ibdev->node_desc, "ornic", sizeof(ibdev->node_desc));
}

static int ornic_register_ibdev(struct ornic_ib_dev *dev)
{
	int ret;

	/*
	 * Before registering, because ib_core (6.1 to 7.2) then derives the default GIDs from
	 * the netdev. Without one the GID table stays empty until the interface changes.
	 */
	ret = ib_device_set_netdev(&dev->ibdev, dev->odev->netdev, ORNIC_IB_PORT);
	if (ret)
		return ret;
	ret = ib_register_device(&dev->ibdev, "ornic%d", ornic_ib_dma(dev));
	if (!ret)
		ornic_ib_registered(dev);
	return ret;
}

static int ornic_device_start(struct ornic_ib_dev *dev)
{
	int ret;

	ret = ornic_check_transport(dev);
	if (!ret)
		ret = ornic_ib_read_limits(dev);
	if (ret)
		return ret;
	ret = ornic_ib_stats_init(dev);
	if (ret)
		goto err_stats;
	dev->wq = alloc_workqueue("ornic_ib", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!dev->wq) {
		ret = -ENOMEM;
		goto err_stats;
	}
	ornic_fill_ibdev(dev);
	ornic_set_ops(dev);

	/* before registering, because ib_register_device() creates the GSI, which needs events */
	dev->nb.notifier_call = ornic_ib_event;
	ret = ornic_event_register(dev->odev, &dev->nb);
	if (ret)
		goto err_wq;
	ret = ornic_register_ibdev(dev);
	if (!ret)
		return 0;

	ornic_event_unregister(dev->odev, &dev->nb);
err_wq:
	destroy_workqueue(dev->wq);
err_stats:
	ornic_ib_stats_free(dev);
	return ret;
}

/*
 * A consumer of the kernel drains its queue pairs before it lets the device go, so it waits for
 * ever for a completion that the device has lost. The queues of a dead device complete by
 * soft_flush.c.
 */
static void ornic_ib_remove_late(struct work_struct *work)
{
	struct ornic_ib_dev *dev = container_of(to_delayed_work(work), struct ornic_ib_dev,
						remove_late);

	ibdev_warn(&dev->ibdev, "still in use %u s after its removal began, given up\n",
		   ORNIC_IB_REMOVE_LIMIT / HZ);
	ornic_device_stuck(dev->odev);
}

static int ornic_ib_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct ornic_dev *odev = ornic_adev_to_odev(adev);
	struct ornic_ib_dev *dev;
	int ret;

	dev = ib_alloc_device(ornic_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->odev = odev;
	spin_lock_init(&dev->port_lock);
	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	INIT_DELAYED_WORK(&dev->remove_late, ornic_ib_remove_late);
	/* let ib_core merge adjacent pages into segments of up to 1 GiB */
	dma_set_max_seg_size(&odev->pdev->dev, SZ_1G);

	ret = ornic_device_start(dev);
	if (ret) {
		ib_dealloc_device(&dev->ibdev);
		return ret;
	}
	auxiliary_set_drvdata(adev, dev);
	return 0;
}

static void ornic_ib_remove(struct auxiliary_device *adev)
{
	struct ornic_ib_dev *dev = auxiliary_get_drvdata(adev);
	struct ornic_dev *odev = dev->odev;

	ornic_device_hurry(odev);
	/* ornic_device_event() says why ib_core must not get events from here on */
	WRITE_ONCE(dev->registered, false);
	ornic_event_flush(dev->odev);
	schedule_delayed_work(&dev->remove_late, ORNIC_IB_REMOVE_LIMIT);
	ib_unregister_device(&dev->ibdev);
	cancel_delayed_work_sync(&dev->remove_late);
	ornic_event_unregister(dev->odev, &dev->nb);
	destroy_workqueue(dev->wq);
	ornic_ib_stats_free(dev);
	ib_dealloc_device(&dev->ibdev);
	ornic_device_unhurry(odev);
}

static const struct auxiliary_device_id ornic_ib_ids[] = {
	{ .name = ORNIC_ADEV_MATCH },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, ornic_ib_ids);

static struct auxiliary_driver ornic_ib_driver = {
	.name = "rdma",
	.probe = ornic_ib_probe,
	.remove = ornic_ib_remove,
	.id_table = ornic_ib_ids,
};
module_auxiliary_driver(ornic_ib_driver);

MODULE_DESCRIPTION("RDMA driver of the ornic open RDMA network interface");
MODULE_LICENSE("GPL");
