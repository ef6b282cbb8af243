// SPDX-License-Identifier: GPL-2.0
/*
 * Make RDS (6.12 to 7.2) free the objects of a device before the device goes.
 *
 * rds_ib_remove_one() queues the work that frees its protection domain and memory regions, and
 * does not wait for it. ib_core then warns of a left protection domain, and the work uses the
 * freed device. Load this module after rds and before rds_rdma: ib_core calls its clients in
 * reverse order, so the work has been queued when this client is called.
 */
#include <linux/module.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

extern struct workqueue_struct *rds_wq;		/* of rds; its header is not installed */

static int rds_free_add(struct ib_device *device)
{
	return 0;
}

static void rds_free_remove(struct ib_device *device, void *data)
{
	flush_workqueue(rds_wq);	/* ends connections, the last of which queues the work */
	flush_workqueue(rds_wq);
}

static struct ib_client rds_free_client = {
	.name = "ornic_rds_free",
	.add = rds_free_add,
	.remove = rds_free_remove,
};

static int __init rds_free_init(void)
{
	return ib_register_client(&rds_free_client);
}

static void __exit rds_free_exit(void)
{
	ib_unregister_client(&rds_free_client);
}

module_init(rds_free_init);
module_exit(rds_free_exit);

MODULE_DESCRIPTION("wait for the work of RDS at the removal of a device, for tests");
MODULE_LICENSE("GPL");
