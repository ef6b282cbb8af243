// SPDX-License-Identifier: GPL-2.0
/*
 * Count the writers of odev->numbers and the steps that bring a device up, and those of both whose
 * allocations may do I/O. The module finds the lock when a driver registers a CQ for events.
 * Parameters, read-only: writers and steps, all; io, those without PF_MEMALLOC_NOIO.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

#include <linux/ornic/core.h>

static unsigned int writers;
module_param(writers, uint, 0444);
MODULE_PARM_DESC(writers, "how often the lock was taken for writing");

static unsigned int steps;
module_param(steps, uint, 0444);
MODULE_PARM_DESC(steps, "how many steps brought a device up");

static unsigned int io;
module_param(io, uint, 0444);
MODULE_PARM_DESC(io, "how often without PF_MEMALLOC_NOIO");

static struct rw_semaphore *lock;

static int noio_find(struct kprobe *probe, struct pt_regs *regs)
{
	struct ornic_dev *odev = (void *)regs_get_kernel_argument(regs, 0);

	WRITE_ONCE(lock, &odev->numbers);
	return 0;
}

static void noio_count(unsigned int *all)
{
	(*all)++;
	if (!(current->flags & PF_MEMALLOC_NOIO))
		io++;
}

static int noio_unlock(struct kprobe *probe, struct pt_regs *regs)
{
	if ((void *)regs_get_kernel_argument(regs, 0) == READ_ONCE(lock))
		noio_count(&writers);
	return 0;
}

static int noio_step(struct kprobe *probe, struct pt_regs *regs)
{
	noio_count(&steps);
	return 0;
}

static struct kprobe noio_probes[] = {
	{ .symbol_name = "ornic_comp_add", .pre_handler = noio_find },
	{ .symbol_name = "up_write", .pre_handler = noio_unlock },
	{ .symbol_name = "ornic_bringup", .pre_handler = noio_step },
	{ .symbol_name = "ornic_netdev_resume", .pre_handler = noio_step },
	{ .symbol_name = "ornic_auxdev_add", .pre_handler = noio_step },
	{ .symbol_name = "ib_register_device", .pre_handler = noio_step },
};

static struct kprobe *noio_all[] = {
	&noio_probes[0], &noio_probes[1], &noio_probes[2], &noio_probes[3], &noio_probes[4],
	&noio_probes[5],
};

static int __init noio_init(void)
{
	return register_kprobes(noio_all, ARRAY_SIZE(noio_all));
}

static void __exit noio_exit(void)
{
	unregister_kprobes(noio_all, ARRAY_SIZE(noio_all));
}

module_init(noio_init);
module_exit(noio_exit);

MODULE_DESCRIPTION("counts of what must not wait for I/O, for tests");
MODULE_LICENSE("GPL");
